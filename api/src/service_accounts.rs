//! `P/service-accounts`: a project's machines. A private key is told once, when it is made; disabling and deleting hold
//! from the next request on.

mod create;
mod read;
mod rotate_key;
mod status;

pub(crate) use create::create;
pub(crate) use read::{list, show};
pub(crate) use rotate_key::rotate_key;
pub(crate) use status::{delete, disable, enable};

use api_types::{ServiceAccount, ServiceAccountKey, ServiceAccountStatus};
use clients::signing::{KeyFault, SigningKey};
use domain::{ErrorCode, Secret};
use store::service_account_keys;
use store::service_accounts as table;
use uuid::Uuid;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::mutation::Mutation;
use crate::path::Id;

fn project(caller: &Caller) -> Result<Uuid, ApiError> {
    caller.scope.project().ok_or_else(|| ApiError::internal(&"a route of projects outside of one"))
}

/// The account of this project, held still until the transaction ends.
async fn found<T>(change: &mut Mutation<T>, id: Id) -> Result<table::ServiceAccount, ApiError> {
    let missing = ErrorCode::ServiceAccountNotFound;
    let project = project(&change.caller)?;
    let account = table::find_locked(&mut change.tx, id.or(missing)?).await?;
    account.filter(|account| account.project_id == project).ok_or_else(|| ApiError::plain(missing))
}

/// A key that was just made; the private half leaves with the answer and is not kept.
struct NewKey {
    key_id: String,
    public_key: String,
    private_key_pem: Secret<String>,
}

impl NewKey {
    fn generate() -> Result<NewKey, ApiError> {
        let make = || -> Result<NewKey, KeyFault> {
            let key = SigningKey::generate()?;
            Ok(NewKey {
                key_id: key.id().to_owned(),
                public_key: key.public_key_pem()?,
                private_key_pem: key.private_key_pem()?,
            })
        };
        make().map_err(|fault| ApiError::internal(&fault))
    }
}

fn shown(row: table::ServiceAccount, keys: Vec<service_account_keys::ServiceAccountKey>) -> ServiceAccount {
    ServiceAccount {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        permissions: row.keys().iter().collect(),
        status: match row.status.as_str() {
            "active" => ServiceAccountStatus::Active,
            "disabled" => ServiceAccountStatus::Disabled,
            _ => ServiceAccountStatus::Deleted,
        },
        slug: row.slug,
        name: row.name,
        description: row.description,
        keys: keys
            .into_iter()
            .map(|key| ServiceAccountKey { key_id: key.key_id, created_at: key.created_at })
            .collect(),
        created_by: row.created_by,
        created_at: row.created_at,
        updated_at: row.updated_at,
        last_used_at: row.last_used_at,
    }
}
