//! On whose behalf a run writes: what its entries and events belong to.

use domain::event::Thread;
use engine::Run;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) run: Uuid,
    pub(crate) correlation_id: String,
    traceparent: Option<String>,
}

impl Told {
    pub(crate) fn of<E: Send + Sync + 'static>(run: &Run<E>) -> Told {
        Told {
            run: run.id(),
            correlation_id: run.correlation_id().to_owned(),
            traceparent: run.traceparent().map(str::to_owned),
        }
    }

    pub(crate) fn thread(&self) -> Thread<'_> {
        Thread { correlation_id: &self.correlation_id, traceparent: self.traceparent.as_deref() }
    }
}
