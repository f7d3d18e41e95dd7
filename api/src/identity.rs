//! From a bearer token, or the console's cookie, to a principal: the token is judged or the session looked up, then the
//! tables say who that is and what they may do.
//!
//! What was found is kept in memory under the token's digest, for as long as the version of authority stands still. A
//! change made by this process is seen by the next request; one made elsewhere, within [`Authority::GLANCE`].
//!
//! What seldom happens is boxed, here and at the gate: every request's future would else be as large as all of it.

mod authority;
mod bearer;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method, header};
use chrono::{DateTime, Utc};
use clients::TokenFault;
use domain::{ActorType, ErrorCode};
use store::console_sessions::Session;
use store::principals::{self, Standing};
use store::{audit, users};
use uuid::Uuid;

use self::authority::Authority;
use self::bearer::Digest;
use crate::console::{self, Presented};
use crate::edge::Context;
use crate::error::ApiError;
use crate::state::State;

/// An issuer may withdraw a key; a token it signed is judged again after this long.
const JUDGED_AGAIN: Duration = Duration::from_secs(60);
/// Beyond this many tokens, all are forgotten.
const MANY: usize = 10_000;

#[derive(Default)]
pub(crate) struct Identity {
    authority: Authority,
    known: Mutex<HashMap<Digest, Known>>,
}

#[derive(Clone)]
struct Known {
    standing: Arc<Standing>,
    expires_at: DateTime<Utc>,
    judged: Instant,
}

/// Who a token that was judged is about.
enum Subject {
    User { issuer: String, subject: String, username: Option<String> },
    ServiceAccount { id: Uuid, key_id: Option<String> },
    Node(Uuid),
}

impl Identity {
    pub(crate) async fn of(
        &self,
        state: &State,
        method: &Method,
        headers: &HeaderMap,
        context: &Context,
    ) -> Result<Arc<Standing>, ApiError> {
        // A token that was sent decides, whatever cookies the browser adds.
        if !headers.contains_key(header::AUTHORIZATION)
            && let Some(shown) = console::presented(state, headers)
        {
            shown.may(method, headers)?;
            return Box::pin(self.of_session(state, &shown, context)).await;
        }
        let token = bearer::token(headers)?;
        let digest = bearer::digest(token);
        if let Some(standing) = self.still_known(state, &digest).await? {
            return Ok(standing);
        }
        Box::pin(self.meet(state, token, digest, context)).await
    }

    /// Judges a token that was not seen before, or not lately.
    async fn meet(
        &self,
        state: &State,
        token: &str,
        digest: Digest,
        context: &Context,
    ) -> Result<Arc<Standing>, ApiError> {
        let (subject, expires_at) = judge(state, token).await.map_err(refused)?;
        let standing = Arc::new(find(state, &subject, context).await?);
        self.remember(digest, Known { standing: standing.clone(), expires_at, judged: Instant::now() });
        Ok(standing)
    }

    /// The session itself is asked for every time, what its person may do is remembered as with tokens.
    async fn of_session(
        &self,
        state: &State,
        shown: &Presented<'_>,
        context: &Context,
    ) -> Result<Arc<Standing>, ApiError> {
        let Session { issuer, subject, expires_at, .. } = shown.find(state).await?;
        let digest = shown.digest();
        if let Some(standing) = self.still_known(state, &digest).await? {
            return Ok(standing);
        }
        let standing =
            Arc::new(find(state, &Subject::User { issuer, subject, username: None }, context).await?);
        self.remember(digest, Known { standing: standing.clone(), expires_at, judged: Instant::now() });
        Ok(standing)
    }

    /// What was found before, if nothing has happened since that could have changed it.
    async fn still_known(&self, state: &State, digest: &Digest) -> Result<Option<Arc<Standing>>, ApiError> {
        let Some(known) = self.known(digest) else { return Ok(None) };
        let still = known.judged.elapsed() < JUDGED_AGAIN
            && state.keys.clock.now() < known.expires_at
            && known.standing.version == self.authority.version(state).await?;
        Ok(still.then_some(known.standing))
    }

    /// Called after every committed change: the next request asks whether it changed who may do what.
    pub(crate) fn distrust(&self) {
        self.authority.distrust();
    }

    fn known(&self, digest: &Digest) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    fn remember(&self, digest: Digest, found: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MANY {
            known.clear();
        }
        known.insert(digest, found);
    }
}

/// The platform's own tokens are told from others by the issuer they name; which keys they are judged by follows
/// from that, so naming the wrong one gains nothing.
async fn judge(state: &State, token: &str) -> Result<(Subject, DateTime<Utc>), TokenFault> {
    if state.keys.minter.issued(token) {
        let claims = state.keys.minter.verify(token)?;
        return match claims.actor_type {
            ActorType::ServiceAccount => {
                Ok((Subject::ServiceAccount { id: claims.sub, key_id: claims.key_id }, claims.exp))
            }
            ActorType::Node => Ok((Subject::Node(claims.sub), claims.exp)),
            _ => Err(TokenFault::Invalid("nothing of its kind signs in here")),
        };
    }
    let claims = state.keys.verifier.verify(token).await?;
    let subject = Subject::User { issuer: claims.issuer, subject: claims.subject, username: claims.username };
    Ok((subject, claims.expires_at))
}

async fn find(state: &State, subject: &Subject, context: &Context) -> Result<Standing, ApiError> {
    match subject {
        Subject::ServiceAccount { id, key_id } => {
            let mut tx = state.read().await?;
            let standing = principals::of_service_account(&mut tx, *id).await?;
            tx.rollback().await?;
            let gone = "The service account is disabled or deleted.";
            let refusal =
                || ApiError::new(ErrorCode::TokenInvalid, gone).about(ActorType::ServiceAccount, *id);
            let standing = standing.ok_or_else(refusal)?;
            Ok(Standing { key_id: key_id.clone(), ..standing })
        }
        Subject::Node(id) => {
            let mut tx = state.read().await?;
            let standing = principals::of_node(&mut tx, *id).await?;
            tx.rollback().await?;
            let refusal = || {
                ApiError::new(ErrorCode::TokenInvalid, "The node is not enrolled.")
                    .about(ActorType::Node, *id)
            };
            standing.ok_or_else(refusal)
        }
        Subject::User { issuer, subject, username } => {
            if let Some(standing) = find_user(state, issuer, subject).await? {
                return Ok(standing);
            }
            let name = username.as_deref().unwrap_or(subject);
            first_sign_in(state, issuer, subject, name, context).await?;
            let vanished = || ApiError::internal(&"a user vanished after signing in");
            find_user(state, issuer, subject).await?.ok_or_else(vanished)
        }
    }
}

async fn find_user(state: &State, issuer: &str, subject: &str) -> Result<Option<Standing>, ApiError> {
    let mut tx = state.read().await?;
    let standing = principals::of_user(&mut tx, issuer, subject).await?;
    tx.rollback().await?;
    Ok(standing)
}

async fn first_sign_in(
    state: &State,
    issuer: &str,
    subject: &str,
    username: &str,
    context: &Context,
) -> Result<(), ApiError> {
    let mut tx = state.write().await?;
    let user = users::sign_in(&mut tx, issuer, subject, username).await?;
    let entry = audit::NewEntry {
        actor_id: Some(user.id),
        actor_type: Some(ActorType::User.as_str()),
        action: "first_sign_in".to_owned(),
        target: format!("user:{}", user.id),
        ..context.entry()
    };
    audit::insert(&mut tx, &entry).await?;
    tx.commit().await?;
    Ok(())
}

/// The message of a fault never quotes the token.
pub(crate) fn refused(fault: TokenFault) -> ApiError {
    let code = match &fault {
        TokenFault::Missing => ErrorCode::TokenMissing,
        TokenFault::Invalid(_) => ErrorCode::TokenInvalid,
        TokenFault::WrongAudience => ErrorCode::TokenScopeInvalid,
        TokenFault::Expired => ErrorCode::TokenExpired,
        TokenFault::IssuerUnavailable { .. } => {
            tracing::warn!(error = %fault, "a token could not be judged");
            return ApiError::plain(ErrorCode::UpstreamError).retry_after(1);
        }
    };
    ApiError::new(code, sentence(&fault.to_string()))
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
