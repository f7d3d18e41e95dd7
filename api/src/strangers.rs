//! Those who have not proven who they are. They may ask so often a minute from one address, and the audit log tells of their
//! refusals at a bounded rate: the first of each kind from an address within a minute, with how many were left out before.
//! Whoever is known by name is told of every time; that is not decided here.

use std::net::IpAddr;

use axum::extract::{MatchedPath, Request, State as Shared};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use serde_json::json;
use store::audit::{self, NewEntry};

use crate::edge::Context;
use crate::error::ApiError;
use crate::rate::{Allowance, Limiter};
use crate::state::State;

const POLICY: &str = "anonymous";

/// Who is counted together. What workloads ask through their node's relay comes from the node's own address, so however often they
/// fail, the node itself is heard: the relay does not lead to where nodes speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowd {
    Anybody,
    Nodes,
}

pub(crate) struct Strangers {
    per_minute: u32,
    anybody: Limiter<IpAddr>,
    nodes: Limiter<IpAddr>,
    told: Limiter<(IpAddr, &'static str)>,
}

impl Strangers {
    pub(crate) fn limited_to(per_minute: u32) -> Strangers {
        Strangers {
            per_minute,
            anybody: Limiter::default(),
            nodes: Limiter::default(),
            told: Limiter::default(),
        }
    }

    /// Counts a request of somebody unknown. Without an address there is no network between us.
    pub(crate) fn count(&self, crowd: Crowd, context: &Context) -> Option<Allowance> {
        context.ip.map(|ip| self.asked(crowd).take(neighbourhood(ip), self.per_minute))
    }

    fn proven_after_all(&self, crowd: Crowd, context: &Context) {
        if let Some(ip) = context.ip {
            self.asked(crowd).give_back(&neighbourhood(ip));
        }
    }

    fn asked(&self, crowd: Crowd) -> &Limiter<IpAddr> {
        match crowd {
            Crowd::Anybody => &self.anybody,
            Crowd::Nodes => &self.nodes,
        }
    }

    pub(crate) fn too_many(&self, allowance: Allowance) -> ApiError {
        let message = format!("More than {} requests without proof within a minute.", self.per_minute);
        ApiError::new(ErrorCode::RateLimited, message).retry_after(allowance.resets_in)
    }

    /// What the audit log shall tell of this refusal, if anything.
    fn entry(&self, mut entry: NewEntry, context: &Context, action: &'static str) -> Option<NewEntry> {
        let Some(ip) = context.ip else { return Some(entry) };
        let once = self.told.take((neighbourhood(ip), action), 1);
        if once.missed > 0 {
            entry.after = Some(json!({ "left_out_before": once.missed }));
        }
        (!once.exceeded).then_some(entry)
    }
}

pub(crate) fn tell(allowance: Allowance, headers: &mut HeaderMap) {
    allowance.tell(POLICY, headers);
}

/// Told behind the request's back: whoever is refused at the gate need not wait for our database, nor for one that does not
/// answer. What strangers write into a path is not kept.
pub(crate) fn note(
    state: &State,
    context: &Context,
    action: &'static str,
    route: Option<&MatchedPath>,
    code: ErrorCode,
) {
    if context.ip.is_some() {
        let (state, context) = (state.clone(), context.clone());
        let target = route.map_or("", MatchedPath::as_str).to_owned();
        tokio::spawn(async move { record(&state, &context, action, target, code).await });
    }
}

/// In a transaction of its own: the refused request has none. A log that cannot be written must not turn a refusal into
/// something else.
pub(crate) async fn record(
    state: &State,
    context: &Context,
    action: &'static str,
    target: String,
    code: ErrorCode,
) {
    let entry = NewEntry { action: action.to_owned(), target, code: Some(code.as_str()), ..context.entry() };
    let Some(entry) = state.strangers.entry(entry, context, action) else { return };
    let written = async {
        let mut tx = state.write().await?;
        audit::insert(&mut tx, &entry).await?;
        tx.commit().await
    };
    if let Err(error) = written.await {
        tracing::error!(%error, action, "a denial could not be written to the audit log");
    }
}

/// Before a route that anybody may ask.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) state: State,
    /// Whether a request that succeeds has proven something by itself, and so is nobody's but its sender's.
    pub(crate) proves_itself: bool,
    pub(crate) crowd: Crowd,
}

pub(crate) async fn door(Shared(door): Shared<Door>, request: Request, next: Next) -> Response {
    let strangers = &door.state.strangers;
    let context = request.extensions().get::<Context>().cloned();
    let Some((context, allowance)) = context.and_then(|context| {
        let allowance = strangers.count(door.crowd, &context)?;
        Some((context, allowance))
    }) else {
        return next.run(request).await;
    };
    let mut answer = match allowance.exceeded {
        true => strangers.too_many(allowance).into_response(),
        false => next.run(request).await,
    };
    if door.proves_itself && answer.status().is_success() {
        strangers.proven_after_all(door.crowd, &context);
    } else {
        // Only what counts says so: whoever stands between a caller and us can count along.
        tell(allowance, answer.headers_mut());
    }
    answer
}

/// One household has one address of the old kind, or as many of the new kind as share their first half.
fn neighbourhood(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & !u128::from(u64::MAX)).into()),
        old => old,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_half_of_a_new_address_makes_nobody_else() {
        let near = |text: &str| neighbourhood(text.parse().unwrap());
        assert_eq!(near("2001:db8:1:2:3:4:5:6"), near("2001:db8:1:2::1"));
        assert_ne!(near("2001:db8:1:2::1"), near("2001:db8:1:3::1"));
        assert_ne!(near("192.0.2.1"), near("192.0.2.2"));
        assert_eq!(near("::ffff:192.0.2.1"), near("192.0.2.1"));
    }
}
