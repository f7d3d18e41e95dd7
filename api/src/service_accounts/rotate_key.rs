//! `POST P/service-accounts/{id}/rotate-key`: a new key beside the newest old one, so that nothing stops meanwhile.

use api_types::{RotateKey, ServiceAccountWithKey};
use axum::response::Response;
use domain::ErrorCode;
use store::service_account_keys;

use super::{NewKey, found, shown};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;
use crate::roles::within;

pub(crate) fn rotate_key() -> Endpoint {
    Endpoint::new("rotate_service_account_key", "Make a new key; the newest old one stays good", rotate)
        .header("If-Match", "Only if the service account still has this tag.")
        .body::<RotateKey>()
        .answers::<ServiceAccountWithKey>(
            200,
            "The account and its new key; `private_key_pem` is told this once.",
        )
        .refuses(&[ErrorCode::ServiceAccountNotFound, ErrorCode::PreconditionFailed])
}

async fn rotate(id: Id, if_match: IfMatch, mut change: Mutation<RotateKey>) -> Result<Response, ApiError> {
    let account = found(&mut change, id).await?;
    // Whoever holds a key of the account can do all that the account can.
    within(&change.caller, account.keys())?;
    let live = service_account_keys::live(&mut change.tx, account.id).await?;
    let before = shown(account.clone(), live);
    if_match.require(&before)?;
    let key = NewKey::generate()?;
    let alone = change.body.revoke_others;
    service_account_keys::insert(&mut change.tx, account.id, &key.key_id, &key.public_key, alone).await?;
    let live = service_account_keys::live(&mut change.tx, account.id).await?;
    let after = shown(account, live);
    let reason = change.body.reason.take();
    let told = Change::of("service_account", after.id).from(&before).to(&after).because(reason);
    let body = ServiceAccountWithKey {
        account: after,
        key_id: key.key_id,
        private_key_pem: Some(key.private_key_pem.expose().clone()),
        secret_already_delivered: false,
    };
    change.commit(told, Answer::ok(&body)?.once(&["private_key_pem"])).await
}
