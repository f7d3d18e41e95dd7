//! What was planned and is not done yet. A plan is kept together with the very request that does it, under a token that only
//! its answer tells: what is confirmed is what was shown, once, by whoever was shown it, and not for long.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::failure::Failure;

/// How long people may look at a plan.
const LIFETIME: Duration = Duration::from_secs(600);
/// Agents may ask for plans without end.
const MOST: usize = 200;

/// A request that changes something.
pub struct Request {
    pub method: Method,
    pub path: String,
    pub body: Value,
}

impl Request {
    pub fn post(path: String, body: Value) -> Request {
        Request { method: Method::POST, path, body }
    }
}

/// What would happen, and the request that makes it.
pub struct Proposal {
    pub plan: Value,
    pub request: Request,
}

#[derive(Default)]
pub struct Plans(Mutex<HashMap<String, Kept>>);

struct Kept {
    tool: String,
    arguments: Value,
    request: Request,
    made: Instant,
}

impl Plans {
    /// The answer to whoever asked: the plan, and the word that confirms it.
    pub fn keep(&self, tool: &str, arguments: Value, proposal: Proposal) -> Value {
        let token = Uuid::new_v4().simple().to_string();
        let Proposal { plan, request } = proposal;
        self.keep_as(&token, Kept { tool: tool.to_owned(), arguments, request, made: Instant::now() });
        json!({
            "done": false, "plan": plan, "confirm": token, "expires_in_seconds": LIFETIME.as_secs(),
            "next": "to do it, call again with the same arguments and this confirm",
        })
    }

    fn keep_as(&self, token: &str, kept: Kept) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, kept| kept.made.elapsed() < LIFETIME);
        while all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, kept)| kept.made).map(|(token, _)| token.clone());
            all.remove(&oldest.unwrap_or_default());
        }
        all.insert(token.to_owned(), kept);
    }

    /// The request that was planned under this token. It is handed out once.
    pub fn take(&self, token: &str, tool: &str, arguments: &Value) -> Result<Request, Failure> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |kept: &Kept| kept.tool == tool && kept.arguments == *arguments;
        match all.get(token).map(|kept| (kept.made.elapsed() < LIFETIME, fits(kept))) {
            Some((true, true)) => {}
            Some((true, false)) => {
                return Err(Failure::usage(
                    "this confirms another plan: call without confirm to see what these arguments would do",
                ));
            }
            Some((false, _)) | None => {
                return Err(Failure::usage(
                    "no plan is waiting for this confirm: it was used, it expired, or it never was; call without confirm first",
                ));
            }
        }
        match all.remove(token) {
            Some(kept) => Ok(kept.request),
            None => Err(Failure::usage("no plan is waiting for this confirm")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(made: Instant) -> Kept {
        let request = Request::post("/x".to_owned(), json!({}));
        Kept { tool: "deploy".to_owned(), arguments: json!({ "app": "hello" }), request, made }
    }

    #[test]
    fn a_plan_is_confirmed_once_by_its_own_arguments_and_in_time() {
        let plans = Plans::default();
        plans.keep_as("a", kept(Instant::now()));
        let hello = json!({ "app": "hello" });
        for (token, tool, arguments) in [
            ("b", "deploy", &hello),
            ("a", "decommission", &hello),
            ("a", "deploy", &json!({ "app": "other" })),
        ] {
            assert!(plans.take(token, tool, arguments).is_err(), "{token} {tool} {arguments}");
        }
        assert!(plans.take("a", "deploy", &hello).is_ok(), "what did not fit took nothing away");
        assert!(plans.take("a", "deploy", &hello).is_err(), "once is all");
        if let Some(long_ago) = Instant::now().checked_sub(LIFETIME) {
            plans.keep_as("c", kept(long_ago));
            assert!(plans.take("c", "deploy", &hello).is_err(), "it expired");
        }
    }
}
