//! Looks at every run and instance there is and fails where a promise is broken. It only reads, so it may be repeated and
//! has nothing to undo.

use std::time::Duration;

use engine::{Activity, Call, Fault, Look, Violation};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::promises::Broken;

use crate::Env;

/// As many as a person reads; the log has them all.
const NAMED: usize = 10;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckPromises {}

impl Activity for CheckPromises {
    const NAME: &'static str = "check_promises";
    const TIMEOUT: Duration = Duration::from_secs(3600);
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, _call: &Call) -> Result<(), Fault> {
        let broken = env.engine.check_promises(Self::TIMEOUT).await?;
        if broken.is_empty() {
            return Ok(());
        }
        Err(Fault::terminal("promises_broken", in_words(&broken)))
    }
}

/// What the platform promises besides, for the engine to look at with its own.
pub fn of_the_platform(
    conn: &mut PgConnection,
    look: Option<Look>,
) -> BoxFuture<'_, sqlx::Result<Vec<Violation>>> {
    Box::pin(async move {
        let broken = store::promises::check(conn, look.map(|look| (look.since, look.turn))).await?;
        let seen = |Broken { promise, subject, detail }: Broken| Violation {
            promise,
            run_id: None,
            detail: format!("{subject} {detail}"),
        };
        Ok(broken.into_iter().map(seen).collect())
    })
}

fn in_words(broken: &[Violation]) -> String {
    let named: Vec<String> = broken.iter().take(NAMED).map(one_in_words).collect();
    let more = match broken.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more, in the log"),
    };
    format!("{} broken: {}{more}", broken.len(), named.join("; "))
}

fn one_in_words(violation: &Violation) -> String {
    let Violation { promise, run_id, detail } = violation;
    match run_id {
        Some(run) => format!("{promise}: run {run} {detail}"),
        None => format!("{promise}: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_are_named_and_the_others_counted() {
        let one = Violation { promise: "P6".into(), run_id: None, detail: "the guard is off".into() };
        assert_eq!(in_words(std::slice::from_ref(&one)), "1 broken: P6: the guard is off");
        let words = in_words(&vec![one; 12]);
        assert_eq!(words.matches("the guard is off").count(), 10);
        assert!(words.starts_with("12 broken: ") && words.ends_with("; and 2 more, in the log"), "{words}");
    }
}
