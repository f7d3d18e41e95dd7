//! `POST P/service-accounts`: the account, its first key, and the one time the private half is told.

use api_types::{NewServiceAccount, ServiceAccountWithKey};
use axum::response::Response;
use domain::role::default_service_account_keys;
use domain::{ErrorCode, PermissionSet, slug};
use store::{service_account_keys, service_accounts as table};
use uuid::Uuid;

use super::{NewKey, shown};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::roles::grantable;

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_service_account", "Make a service account with a first key", make)
        .body::<NewServiceAccount>()
        .answers::<ServiceAccountWithKey>(
            201,
            "The account and its key; `private_key_pem` is told this once.",
        )
        .refuses(&[ErrorCode::AlreadyExists])
}

async fn make(mut change: Mutation<NewServiceAccount>) -> Result<Response, ApiError> {
    let keys = allowlist(&change.caller, &change.body)?;
    let (Some(org_id), Some(project_id)) = (change.caller.scope.org(), change.caller.scope.project()) else {
        return Err(ApiError::internal(&"a route of projects outside of one"));
    };
    let slug = slug_of(&change.body)?;
    let new = table::NewServiceAccount {
        id: Uuid::now_v7(),
        org_id,
        project_id,
        slug: &slug,
        name: &change.body.name,
        description: change.body.description.as_deref(),
        keys,
        created_by: change.caller.principal().id,
    };
    let account = table::insert(&mut change.tx, &new).await?;
    let key = NewKey::generate()?;
    service_account_keys::insert(&mut change.tx, account.id, &key.key_id, &key.public_key, false).await?;
    let live = service_account_keys::live(&mut change.tx, account.id).await?;
    let account = shown(account, live);
    let told = Change::of("service_account", account.id).to(&account);
    let location = format!("/api/v1/projects/{project_id}/service-accounts/{}", account.id);
    let body = ServiceAccountWithKey {
        account,
        key_id: key.key_id,
        private_key_pem: Some(key.private_key_pem.expose().clone()),
        secret_already_delivered: false,
    };
    change.commit(told, Answer::created(location, &body)?.once(&["private_key_pem"])).await
}

/// What was asked for, at most what the creator holds. The default is what of it the creator holds.
fn allowlist(caller: &Caller, wanted: &NewServiceAccount) -> Result<PermissionSet, ApiError> {
    match &wanted.permissions {
        Some(keys) => grantable(caller, keys),
        None => {
            let held = caller.keys();
            Ok(default_service_account_keys().iter().filter(|key| held.contains(*key)).collect())
        }
    }
}

fn slug_of(wanted: &NewServiceAccount) -> Result<String, ApiError> {
    let slug = wanted.slug.clone().or_else(|| slug::suggested_by(&wanted.name));
    slug.ok_or_else(|| ApiError::invalid("/slug", "is required where the name suggests none"))
}
