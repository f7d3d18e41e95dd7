//! `P/access-credentials`: secrets in the platform's custody. They come in here, are sealed at once, and leave in two ways
//! alone: inside a launch for a node, or wrapped for somebody who may manage them. A revocation reaches what is on its way by
//! either.

use api_types::{
    AccessCredential, AccessCredentialStatus, AccessCredentialType, DeliverAccessCredential,
    DeliveredAccessCredential, NewAccessCredential, Operate, Page, RotateAccessCredential, WrappedCredential,
};
use axum::extract::State as Shared;
use axum::response::Response;
use clients::ssh_key;
use domain::{ErrorCode, Secret, StatusReason};
use serde_json::json;
use sqlx::PgConnection;
use store::access_credentials as table;
use store::node_tasks;
use store::wrapped_secrets::{self, About};
use uuid::Uuid;
use workflows::trust;

use crate::caller::Caller;
use crate::depot::Wanted;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::{IfMatch, Tagged};
use crate::json::Json;
use crate::launches;
use crate::mutation::{Answer, Change, Mutation};
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

const FIVE_MINUTES: i32 = 300;
const MISSING: ErrorCode = ErrorCode::AccessCredentialNotFound;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_access_credentials", "The secrets that the platform keeps for the project", all)
        .answers_page::<AccessCredential>("A page of credentials, revoked ones included; never what they hold.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_access_credential", "A credential, without what it holds", one)
        .answers::<AccessCredential>(
            200,
            "The credential; the `ETag` header is a strong tag of this very body.",
        )
        .tagged()
        .refuses(&[MISSING])
}

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_access_credential", "Give a secret into the platform's custody", make)
        .body::<NewAccessCredential>()
        .answers::<AccessCredential>(201, "The credential, without what it holds.")
        .tagged()
        .refuses(&[ErrorCode::AlreadyExists])
}

pub(crate) fn rotate() -> Endpoint {
    Endpoint::new(
        "rotate_access_credential",
        "Replace the secret for everything that is launched from now on",
        turn,
    )
    .header("If-Match", "Only if the credential still has this tag.")
    .body::<RotateAccessCredential>()
    .answers::<AccessCredential>(200, "The credential, one version further.")
    .tagged()
    .refuses(&[MISSING, ErrorCode::StateConflict, ErrorCode::PreconditionFailed])
}

pub(crate) fn deliver() -> Endpoint {
    Endpoint::new("deliver_access_credential", "Hand the secret over, wrapped, to be fetched once", hand_over)
        .header("If-Match", "Only if the credential still has this tag.")
        .body::<DeliverAccessCredential>()
        .answers::<DeliveredAccessCredential>(200, "A token that opens the secret once, told this once.")
        .refuses(&[MISSING, ErrorCode::StateConflict, ErrorCode::PreconditionFailed])
}

pub(crate) fn revoke() -> Endpoint {
    Endpoint::new("revoke_access_credential", "Forget the secret; nothing is launched with it any more", end)
        .header("If-Match", "Only if the credential still has this tag.")
        .body::<Operate>()
        .answers::<AccessCredential>(200, "The credential, revoked.")
        .tagged()
        .refuses(&[MISSING, ErrorCode::PreconditionFailed])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<AccessCredential>>, ApiError> {
    let paging = Paging::read(&mut params, "ac1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, place(&caller)?.1, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<AccessCredential>, ApiError> {
    params.finish()?;
    let missing = MISSING;
    let mut tx = state.read().await?;
    let found = table::find(&mut tx, place(&caller)?.1, id.or(missing)?).await?;
    tx.rollback().await?;
    found.map(|row| Tagged(shown(row))).ok_or_else(|| ApiError::plain(missing))
}

async fn make(
    Shared(state): Shared<State>,
    mut change: Mutation<NewAccessCredential>,
) -> Result<Response, ApiError> {
    let (org_id, project_id) = place(&change.caller)?;
    let id = Uuid::now_v7();
    let sealed = seal(&state, id, &change.body.value)?;
    let public_key = public_key(change.body.kind, &change.body.value)?;
    let new = table::NewAccessCredential {
        id,
        org_id,
        project_id,
        name: &change.body.name,
        kind: change.body.kind.as_str(),
        sealed: &sealed,
        public_key: public_key.as_deref(),
        created_by: change.caller.principal().id,
    };
    let made = shown(table::insert(&mut change.tx, &new).await?);
    let location = format!("/api/v1/projects/{project_id}/access-credentials/{id}");
    let told = Change::of("access_credential", id).to(&made);
    change.commit(told, Answer::created(location, &made)?.tagged()).await
}

async fn turn(
    Shared(state): Shared<State>,
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<RotateAccessCredential>,
) -> Result<Response, ApiError> {
    let before = in_custody(&mut change.tx, &change.caller, id).await?;
    if_match.require(&before)?;
    let sealed = seal(&state, before.id, &change.body.value)?;
    let public_key = public_key(before.kind, &change.body.value)?;
    let after = shown(table::rotate(&mut change.tx, before.id, &sealed, public_key.as_deref()).await?);
    // What was delivered and not fetched would open the old secret.
    wrapped_secrets::forget_target(&mut change.tx, &name(after.id)).await?;
    tell_nodes(&mut change, after.id).await?;
    let reason = change.body.reason.take();
    let told = Change::of("access_credential", after.id).from(&before).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

async fn hand_over(
    Shared(state): Shared<State>,
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<DeliverAccessCredential>,
) -> Result<Response, ApiError> {
    let depot = state.depot()?;
    let kept = in_custody(&mut change.tx, &change.caller, id).await?;
    if_match.require(&kept)?;
    let sealed = table::sealed(&mut change.tx, kept.project_id, kept.id).await?;
    let sealed = sealed.ok_or_else(|| ApiError::internal(&"a credential in custody has no seal"))?;
    let value = open(&state, kept.id, &sealed)?;
    let secret = json!({ "name": kept.name, "value": value.expose() });
    let ttl_seconds = change.body.ttl_seconds.unwrap_or(FIVE_MINUTES);
    let about = About {
        org_id: change.caller.scope.org(),
        project_id: Some(kept.project_id),
        target: Some(name(kept.id)),
        told: None,
    };
    let wanted = Wanted { purpose: "access-credential", ttl_seconds, about: &about };
    let handed = depot.hand_over(&mut change.tx, &secret, &wanted).await?;
    let answer = DeliveredAccessCredential {
        id: kept.id,
        version: kept.version,
        credential: WrappedCredential {
            mode: "wrapped".to_owned(),
            token: Some(handed.token.expose().clone()),
            unwrap_path: handed.unwrap_path,
        },
    };
    let reason = change.body.reason.take();
    let told = Change::of("access_credential", kept.id).to(&kept).because(reason);
    change.commit(told, Answer::ok(&answer)?.once(&["credential.token"])).await
}

async fn end(
    Shared(state): Shared<State>,
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<Operate>,
) -> Result<Response, ApiError> {
    let before = found(&mut change.tx, &change.caller, id).await?;
    if_match.require(&before)?;
    let after = shown(table::revoke(&mut change.tx, before.id).await?);
    wrapped_secrets::forget_target(&mut change.tx, &name(after.id)).await?;
    let launches = node_tasks::launches_with(&mut change.tx, after.id).await?;
    let why =
        (StatusReason::CredentialMissing, "a credential was revoked before the node had launched with it");
    launches::stop(&state, &mut change.tx, &launches, why).await?;
    tell_nodes(&mut change, after.id).await?;
    let reason = change.body.reason.take();
    let told = Change::of("access_credential", after.id).from(&before).to(&after).because(reason);
    let answer = change.commit(told, Answer::ok(&after)?.tagged()).await?;
    state.engine.wake();
    Ok(answer)
}

/// What was delivered of a credential is kept under this name.
fn name(id: Uuid) -> String {
    format!("access_credential:{id}")
}

async fn found(conn: &mut PgConnection, caller: &Caller, id: Id) -> Result<AccessCredential, ApiError> {
    let row = table::find_locked(conn, place(caller)?.1, id.or(MISSING)?).await?;
    row.map(shown).ok_or_else(|| ApiError::plain(MISSING))
}

/// One that was not revoked.
async fn in_custody(conn: &mut PgConnection, caller: &Caller, id: Id) -> Result<AccessCredential, ApiError> {
    let credential = found(conn, caller, id).await?;
    if credential.status == AccessCredentialStatus::Revoked {
        let refused = ApiError::new(ErrorCode::StateConflict, "The credential was revoked.");
        return Err(refused.with("state", "revoked").with("allowed_actions", json!([])));
    }
    Ok(credential)
}

/// Nodes that the key opened are told in the same transaction what opens them now.
async fn tell_nodes<B>(change: &mut Mutation<B>, id: Uuid) -> Result<(), ApiError> {
    let correlation_id = change.caller.context.correlation_id.to_string();
    Ok(trust::tell_all(&mut change.tx, id, &correlation_id).await?)
}

/// The line by which nodes know an SSH key.
fn public_key(kind: AccessCredentialType, value: &Secret<String>) -> Result<Option<String>, ApiError> {
    if kind != AccessCredentialType::SshKey {
        return Ok(None);
    }
    let line = ssh_key::public_line(value.expose());
    line.map(Some).ok_or_else(|| ApiError::invalid("/value", "is no SSH key in OpenSSH's form"))
}

fn seal(state: &State, id: Uuid, value: &Secret<String>) -> Result<String, ApiError> {
    let bytes = Secret::new(value.expose().clone().into_bytes());
    state.keys.sealer.seal(&bytes, &table::sealed_for(id)).map_err(|fault| ApiError::internal(&fault))
}

fn open(state: &State, id: Uuid, sealed: &str) -> Result<Secret<String>, ApiError> {
    let opened = state.keys.sealer.open(sealed, &table::sealed_for(id));
    let opened = opened.map_err(|fault| ApiError::internal(&fault))?;
    let text = String::from_utf8(opened.expose().clone());
    text.map(Secret::new).map_err(|_| ApiError::internal(&"a secret in custody is no text"))
}

fn place(caller: &Caller) -> Result<(Uuid, Uuid), ApiError> {
    let place = caller.scope.org().zip(caller.scope.project());
    place.ok_or_else(|| ApiError::internal(&"a route of projects outside of one"))
}

fn shown(row: table::AccessCredential) -> AccessCredential {
    let revoked = row.revoked_at.is_some();
    let is_key = row.kind == AccessCredentialType::SshKey.as_str();
    AccessCredential {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        name: row.name,
        kind: if is_key { AccessCredentialType::SshKey } else { AccessCredentialType::Secret },
        status: if revoked { AccessCredentialStatus::Revoked } else { AccessCredentialStatus::Active },
        version: row.version,
        created_by: row.created_by,
        created_at: row.created_at,
        rotated_at: row.rotated_at,
        revoked_at: row.revoked_at,
    }
}
