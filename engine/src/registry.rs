//! Workflows by name and version. A changed workflow is a new version beside the old one until no live run needs it.

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::PgConnection;
use tokio::time::timeout;
use tracing::{Instrument, Span};

use crate::fault::Halt;
use crate::operate::Asker;
use crate::run::Run;
use crate::state::Op;

/// How long a run waits for what is told of it in the log.
const DESCRIBED: Duration = Duration::from_secs(5);

/// A durable function. Code between its steps is pure: no clock, no randomness, no effects.
pub trait Workflow: Serialize + DeserializeOwned + Send + Sync + 'static {
    const NAME: &'static str;
    const VERSION: i32 = 1;
    /// What operators see ahead of time; `check_workflow` holds `run` to it.
    const PLAN: &'static [PlannedStep];
    /// What exhausted retries lead to before the pivot.
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Pause;
    type Env: Send + Sync + 'static;

    fn run(&self, run: &mut Run<Self::Env>) -> impl Future<Output = Result<(), Halt>> + Send;

    /// What a run is given that tries again what one with this input did not do; decided on the asker's transaction. Most take
    /// it as it was. What must not be done twice under one number, or not any more, says so here.
    fn again(self, _: &mut PgConnection, _: &Asker) -> impl Future<Output = Result<Self, NotAgain>> + Send {
        std::future::ready(Ok(self))
    }

    /// What every line and span of a drive shall say of what it acts on, besides what is true of any run.
    fn span(&self, _: &Self::Env) -> impl Future<Output = Span> + Send {
        std::future::ready(Span::none())
    }
}

/// Why an ended run is not tried again.
#[derive(Debug, thiserror::Error)]
pub enum NotAgain {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExhausted {
    Unwind,
    Pause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    pub name: &'static str,
    pub op: Op,
    pub undoable: bool,
}

impl PlannedStep {
    pub const fn activity(name: &'static str) -> PlannedStep {
        PlannedStep { name, op: Op::Activity, undoable: false }
    }

    pub const fn undoable(name: &'static str) -> PlannedStep {
        PlannedStep { name, op: Op::Activity, undoable: true }
    }

    pub const fn transact(name: &'static str) -> PlannedStep {
        PlannedStep { name, op: Op::Transact, undoable: false }
    }

    pub const fn sleep(name: &'static str) -> PlannedStep {
        PlannedStep { name, op: Op::Sleep, undoable: false }
    }

    pub const fn wait(name: &'static str) -> PlannedStep {
        PlannedStep { name, op: Op::Wait, undoable: false }
    }

    pub const fn child(name: &'static str) -> PlannedStep {
        PlannedStep { name, op: Op::Child, undoable: true }
    }
}

/// What a process can drive.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub version: i32,
    pub plan: &'static [PlannedStep],
    pub on_exhausted: OnExhausted,
    pub(crate) again: Again,
}

/// [`Workflow::again`] from one input to the next, both as they are kept.
pub(crate) type Again =
    for<'a> fn(&'a str, &'a mut PgConnection, &'a Asker) -> BoxFuture<'a, Result<String, NotAgain>>;

fn again<'a, W: Workflow>(
    input: &'a str,
    conn: &'a mut PgConnection,
    by: &'a Asker,
) -> BoxFuture<'a, Result<String, NotAgain>> {
    Box::pin(async move {
        let unfit = |error: serde_json::Error| NotAgain::Refused(format!("its input does not fit: {error}"));
        let old: W = serde_json::from_str(input).map_err(unfit)?;
        serde_json::to_string(&old.again(conn, by).await?).map_err(unfit)
    })
}

/// A workflow whose input type is forgotten, so that drivers can hold them all.
pub(crate) trait Drivable<E>: Send + Sync {
    fn kind(&self) -> Kind;
    /// The outer error is the input's own problem: it does not fit the workflow.
    fn call<'a>(
        &self,
        input: &'a str,
        run: &'a mut Run<E>,
    ) -> BoxFuture<'a, Result<Result<(), Halt>, serde_json::Error>>;
}

struct Definition<W>(PhantomData<fn() -> W>);

impl<W: Workflow> Drivable<W::Env> for Definition<W> {
    fn kind(&self) -> Kind {
        Kind {
            name: W::NAME,
            version: W::VERSION,
            plan: W::PLAN,
            on_exhausted: W::ON_EXHAUSTED,
            again: again::<W>,
        }
    }

    fn call<'a>(
        &self,
        input: &'a str,
        run: &'a mut Run<W::Env>,
    ) -> BoxFuture<'a, Result<Result<(), Halt>, serde_json::Error>> {
        Box::pin(async move {
            let workflow: W = serde_json::from_str(input)?;
            // It may ask the database, and no run waits for ever for its own description.
            run.about =
                timeout(DESCRIBED, workflow.span(&run.env)).await.unwrap_or_else(|_late| Span::none());
            let about = run.about.clone();
            Ok(workflow.run(run).instrument(about).await)
        })
    }
}

pub struct Registry<E> {
    definitions: BTreeMap<(&'static str, i32), Arc<dyn Drivable<E>>>,
}

impl<E: Send + Sync + 'static> Registry<E> {
    pub fn new() -> Registry<E> {
        Registry { definitions: BTreeMap::new() }
    }

    #[must_use]
    pub fn with<W: Workflow<Env = E>>(mut self) -> Registry<E> {
        self.definitions.insert((W::NAME, W::VERSION), Arc::new(Definition::<W>(PhantomData)));
        self
    }

    pub fn kinds(&self) -> Vec<Kind> {
        self.definitions.values().map(|d| d.kind()).collect()
    }

    pub(crate) fn find(&self, name: &str, version: i32) -> Option<Arc<dyn Drivable<E>>> {
        // The key type has a static lifetime, so a plain get would ask for one of `name` too.
        self.definitions.iter().find(|((n, v), _)| *n == name && *v == version).map(|(_, d)| Arc::clone(d))
    }
}

impl<E: Send + Sync + 'static> Default for Registry<E> {
    fn default() -> Registry<E> {
        Registry::new()
    }
}
