//! Two harmless effects for the demo workflow: one that can be undone, one that needs several tries.

use std::time::Duration;

use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};

use crate::Env;

/// Puts something on the desk; undone by taking it off.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReserveDesk {
    pub thing: String,
}

impl Activity for ReserveDesk {
    const NAME: &'static str = "reserve_desk";
    const UNDO: bool = true;
    type Env = Env;
    type Output = String;

    async fn run(&self, env: &Env, call: &Call) -> Result<String, Fault> {
        env.put_on_desk(&self.thing);
        Ok(call.idempotency_key.clone())
    }

    async fn undo(&self, env: &Env, _call: &Call) -> Result<(), Fault> {
        env.take_off_desk(&self.thing);
        Ok(())
    }
}

/// Is busy for the first tries, as a registry might be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FetchParts {
    pub busy_tries: i32,
}

impl Activity for FetchParts {
    const NAME: &'static str = "fetch_parts";
    const RETRY: Retry = Retry::times(6).starting_at(Duration::from_secs(2));
    type Env = Env;
    type Output = u32;

    async fn run(&self, _env: &Env, call: &Call) -> Result<u32, Fault> {
        if call.attempt <= self.busy_tries {
            return Err(Fault::retry(
                "busy",
                "the parts store is busy; this is the demo's way to show a retry",
            ));
        }
        Ok(42)
    }
}

/// Puts the parts together, or finds that they do not fit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assemble {
    pub parts: u32,
    pub fits: bool,
}

impl Activity for Assemble {
    const NAME: &'static str = "assemble";
    type Env = Env;
    type Output = ();

    async fn run(&self, _env: &Env, _call: &Call) -> Result<(), Fault> {
        if self.fits {
            return Ok(());
        }
        Err(Fault::terminal("does_not_fit", "the parts do not fit; this is the demo's way to show an undo"))
    }
}
