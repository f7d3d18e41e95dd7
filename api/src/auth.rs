//! Where machines get their tokens: by proving a registered key, or by showing an outside issuer's token that their
//! project trusts. Every token issued and every refusal is in the audit log.

mod line_breaks;
mod pattern;
mod service_account_token;
mod token_exchange;

pub(crate) use service_account_token::service_account_token;
pub(crate) use token_exchange::token_exchange;

use api_types::AccessToken;
use axum::http::{HeaderName, header};
use chrono::TimeDelta;
use clients::tokens::Bearer;
use domain::{ActorType, ErrorCode, PolicyKey};
use sqlx::PgConnection;
use store::audit::{self, NewEntry};
use store::policies::{self, Subject};
use store::service_accounts::{self, ServiceAccount};
use uuid::Uuid;

use crate::edge::Context;
use crate::error::ApiError;
use crate::state::State;

/// Tokens must not stay in anybody's cache (RFC 6749, section 5.1).
pub(crate) const UNCACHED: [(HeaderName, &str); 2] =
    [(header::CACHE_CONTROL, "no-store"), (header::PRAGMA, "no-cache")];

/// The longest a token lives that was exchanged for an outside issuer's, whatever the policy says.
const LONGEST_EXCHANGED: i64 = 900;

/// A token for an account that has proven itself, by which of its keys if by one, in the transaction that used up the proof.
async fn issue(
    state: &State,
    conn: &mut PgConnection,
    (account, key_id): (&ServiceAccount, Option<&str>),
    most_seconds: i64,
) -> Result<AccessToken, ApiError> {
    let subject =
        Subject { user: Some(account.id), project: Some(account.project_id), org: Some(account.org_id) };
    let ttl = policies::whole_number(conn, PolicyKey::ServiceAccountTokenTtlSeconds, subject).await?;
    let seconds = ttl.min(most_seconds);
    let bearer = Bearer {
        subject: account.id,
        actor_type: ActorType::ServiceAccount,
        org_id: Some(account.org_id),
        project_id: Some(account.project_id),
        scope: account.keys().names().join(" "),
        key_id: key_id.map(str::to_owned),
        lifetime: TimeDelta::seconds(seconds),
    };
    let minted = state.keys.minter.mint(bearer).map_err(|fault| ApiError::internal(&fault))?;
    service_accounts::used(conn, account.id).await?;
    Ok(AccessToken {
        access_token: minted.access_token.expose().clone(),
        token_type: "Bearer".to_owned(),
        expires_in: seconds,
        expires_at: minted.claims.exp,
        scope: minted.claims.scope,
        issued_token_type: None,
    })
}

/// The beginning of an audit entry about an account that asks for a token.
fn entry(context: &Context, action: &str, account: Uuid, known: Option<&ServiceAccount>) -> NewEntry {
    NewEntry {
        org_id: known.map(|account| account.org_id),
        project_id: known.map(|account| account.project_id),
        actor_id: known.map(|account| account.id),
        actor_type: known.map(|_| ActorType::ServiceAccount.as_str()),
        action: action.to_owned(),
        target: format!("service_account:{account}"),
        ..context.entry()
    }
}

/// In a transaction of its own: what the refused request began is taken back.
async fn record_denial(state: &State, mut entry: NewEntry, code: ErrorCode) -> Result<(), ApiError> {
    entry.code = Some(code.as_str());
    let mut tx = state.write().await?;
    audit::insert(&mut tx, &entry).await?;
    tx.commit().await?;
    Ok(())
}
