//! Effects that share a transaction. A driver that has run its effect hands the open transaction to the next who waits
//! for one; whoever finds nobody waiting writes the checkpoints of all aboard and commits for everybody. So a lone
//! effect has a transaction of its own, and under load many pay for one commit.
//!
//! Sharing changes nothing but the price. At the first trouble the transaction is given up and everybody aboard runs
//! again alone; a step that made trouble, or took long, travels alone for a while. Whether a commit whose answer was
//! lost took effect, each reads off its own token.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use uuid::Uuid;

use crate::alone::{Alone, Together, read_back};
use crate::checkpoint::{self, Checkpoint, Moved};
use crate::core::Core;
use crate::database::{Session, Shelf};
use crate::stats::Stats;

/// Effects in one transaction.
const MOST: usize = 32;
/// Nobody boards a transaction that has been open for longer.
const LONGEST: Duration = Duration::from_millis(25);
/// An effect that takes longer is trouble for others.
const SLOW: Duration = Duration::from_millis(500);
/// How long a step that made trouble for others travels alone.
const APART: Duration = Duration::from_secs(60);

/// A step of a workflow, by their names.
type Step = (&'static str, &'static str);

#[derive(Debug)]
pub(crate) struct Ferries {
    shelf: Shelf,
    owner: Uuid,
    stats: Arc<Stats>,
    port: Mutex<Port>,
}

#[derive(Debug, Default)]
struct Port {
    free: usize,
    waiting: VecDeque<oneshot::Sender<Ferry>>,
    apart: HashMap<Step, Instant>,
}

/// A place to run effects, perhaps with a transaction that others have been in already. Dropped, it rolls back, everybody
/// aboard learns that by the silence, and the place goes to the next who waits.
#[derive(Debug)]
struct Ferry {
    ferries: Arc<Ferries>,
    /// None once the place was passed on.
    place: Option<()>,
    session: Option<Session>,
    begun: Instant,
    aboard: Vec<Passenger>,
}

#[derive(Debug)]
struct Passenger {
    checkpoint: Checkpoint,
    reply: oneshot::Sender<Moved>,
}

impl Ferries {
    pub(crate) fn new(shelf: Shelf, places: usize, owner: Uuid, stats: Arc<Stats>) -> Arc<Ferries> {
        let port = Mutex::new(Port { free: places.max(1), ..Port::default() });
        Arc::new(Ferries { shelf, owner, stats, port })
    }

    /// Runs the effect and commits it with its checkpoint. `None` means that nothing was written and it should be
    /// tried alone.
    pub(crate) async fn ride(
        self: &Arc<Self>,
        core: &Core,
        step: &'static str,
        template: &Checkpoint,
        together: &dyn Together,
    ) -> Option<Alone> {
        let step = (core.kind.name, step);
        if self.travels_alone(&step) {
            return None;
        }
        let mut ferry = self.board().await.ok()?;
        let began = Instant::now();
        let added = match together.effect(ferry.session.as_mut()?).await {
            Ok(added) => added,
            // With nobody else aboard the fault is its own.
            Err(fault) if ferry.aboard.is_empty() => return Some(Alone::Fault(fault)),
            Err(_) => {
                self.keep_apart(step);
                return None;
            }
        };
        if began.elapsed() > SLOW {
            self.keep_apart(step);
        }
        // Each try has a token of its own: reading back must not mistake an earlier one for this.
        let mut checkpoint = Checkpoint { token: Uuid::new_v4(), ..template.clone() };
        checkpoint.entries.add(&added);
        let (token, (reply, answer)) = (checkpoint.token, oneshot::channel());
        ferry.aboard.push(Passenger { checkpoint, reply });
        if let Err(ferry) = ferry.go_on() {
            ferry.land().await;
        }
        match answer.await {
            Ok(moved) => Some(Alone::Moved(moved, added)),
            Err(_silence) => match read_back(core, template.seq, token).await {
                Some(Some(moved)) => Some(Alone::Moved(moved, added)),
                Some(None) => None,
                None => Some(Alone::Ended),
            },
        }
    }

    async fn board(self: &Arc<Self>) -> sqlx::Result<Ferry> {
        let turn = {
            let mut port = self.port();
            if port.free > 0 {
                port.free -= 1;
                None
            } else {
                let (call, turn) = oneshot::channel();
                port.waiting.push_back(call);
                Some(turn)
            }
        };
        let mut ferry = match turn {
            None => Ferry::empty(self),
            Some(turn) => turn.await.map_err(|_gone| sqlx::Error::PoolClosed)?,
        };
        if ferry.session.is_none() {
            ferry.session = Some(self.shelf.begin().await?);
            ferry.begun = Instant::now();
        }
        Ok(ferry)
    }

    fn travels_alone(&self, step: &Step) -> bool {
        let mut port = self.port();
        match port.apart.get(step) {
            Some(since) if since.elapsed() < APART => true,
            Some(_) => port.apart.remove(step).is_none(),
            None => false,
        }
    }

    fn keep_apart(&self, step: Step) {
        self.port().apart.insert(step, Instant::now());
    }

    fn somebody_waits(&self) -> bool {
        !self.port().waiting.is_empty()
    }

    fn next(&self) -> Option<oneshot::Sender<Ferry>> {
        self.port().waiting.pop_front()
    }

    /// The place of a ferry that is gone goes to the next, or is free.
    fn vacate(self: &Arc<Self>) {
        loop {
            let next = {
                let mut port = self.port();
                let next = port.waiting.pop_front();
                port.free += usize::from(next.is_none());
                next
            };
            let Some(next) = next else { return };
            match next.send(Ferry::empty(self)) {
                Ok(()) => return,
                Err(mut unwanted) => unwanted.place = None,
            }
        }
    }

    fn port(&self) -> MutexGuard<'_, Port> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ferry {
    fn empty(ferries: &Arc<Ferries>) -> Ferry {
        let ferries = Arc::clone(ferries);
        Ferry { ferries, place: Some(()), session: None, begun: Instant::now(), aboard: Vec::new() }
    }

    /// Takes the next one aboard, if somebody waits and there is room; else it must land.
    fn go_on(self) -> Result<(), Ferry> {
        if self.aboard.len() >= MOST || self.begun.elapsed() > LONGEST {
            return Err(self);
        }
        self.hand_over()
    }

    fn hand_over(mut self) -> Result<(), Ferry> {
        while let Some(next) = self.ferries.next() {
            match next.send(self) {
                Ok(()) => return Ok(()),
                Err(unwanted) => self = unwanted,
            }
        }
        Err(self)
    }

    /// Commits for everybody. On any trouble it is dropped, and silence is the answer.
    async fn land(mut self) {
        let Some(mut session) = self.session.take() else { return };
        let stats = Arc::clone(&self.ferries.stats);
        let _unanswered = stats.write_begins();
        let batch: Vec<&Checkpoint> = self.aboard.iter().map(|passenger| &passenger.checkpoint).collect();
        let written = self.ferries.shelf.in_time(checkpoint::write(&mut session, self.ferries.owner, &batch));
        let Ok(mut moved) = written.await else { return };
        if moved.len() < batch.len() {
            return;
        }
        let sails_again = self.ferries.somebody_waits();
        let committed = if sails_again {
            session.commit_and_chain().await.map(|()| Some(session))
        } else {
            session.commit().await.map(|()| None)
        };
        let Ok(session) = committed else { return };
        self.ferries.stats.wrote(moved.len());
        for Passenger { checkpoint, reply } in self.aboard.drain(..) {
            if let Some(moved) = moved.remove(&checkpoint.run) {
                let _ = reply.send(moved);
            }
        }
        (self.session, self.begun) = (session, Instant::now());
        if sails_again
            && let Err(mut ferry) = self.hand_over()
            && let Some(session) = ferry.session.take()
        {
            // Nobody came after all; the empty transaction ends, well or not.
            let _ = session.commit().await;
        }
    }
}

impl Drop for Ferry {
    fn drop(&mut self) {
        self.aboard.clear();
        self.session = None;
        if self.place.take().is_some() {
            self.ferries.vacate();
        }
    }
}
