//! Group commit: the checkpoints of all drivers in this process share transactions, and each driver goes on only after
//! the commit its row is in. There is no delay timer: a lane takes what is queued, so a lone run pays one commit per
//! step and a thousand runs share each.
//!
//! A lane never guesses. Contention is retried; a run whose row somebody holds waits apart from the others (`locked`); a
//! refused batch is split until the one bad row stands alone; after a lost connection the rows are read again under lock, and the random token of each checkpoint tells whether it is there.

mod locked;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use crate::checkpoint::{self, Checkpoint, Moved, is_fence};
use crate::claim::{self, Claimed, Wanted};
use crate::database::{Database, is_contention, is_locked, is_outage, is_timeout};
use crate::ferry::Ferries;
use crate::patience::Patience;
use crate::settings::Settings;
use crate::stats::Stats;

/// What became of a checkpoint.
#[derive(Debug)]
pub(crate) enum Verdict {
    Moved(Moved),
    /// The run is still ours, but a signal or a cancel came since the driver looked.
    LookAgain,
    /// The run is no longer ours.
    Fenced,
    /// The database will never take this row.
    Refused(String),
}

/// With no more drives than this there is nothing to batch: their checkpoints are written on the spot, which spares
/// each step two hand-overs between threads.
const FEW: i64 = 2;

/// When a run whose journal took too long to read is tried again.
const TOO_SLOW_AGAIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
enum Ask {
    Claim { wanted: Wanted, reply: oneshot::Sender<Option<Claimed>> },
    Write { checkpoint: Box<Checkpoint>, reply: oneshot::Sender<Verdict> },
}

/// The lanes of one process incarnation. They stop when `alive` is cancelled; whoever waits then learns nothing.
#[derive(Debug)]
pub(crate) struct Committer {
    lanes: Vec<(mpsc::Sender<Ask>, Arc<Lane>)>,
    pub(crate) ferries: Arc<Ferries>,
    stats: Arc<Stats>,
}

impl Committer {
    pub(crate) fn start(
        db: &Database,
        settings: &Settings,
        owner: Uuid,
        alive: &CancellationToken,
        stats: &Arc<Stats>,
    ) -> Committer {
        let lanes = (0..settings.lanes.max(1))
            .map(|_| {
                let (sender, asks) = mpsc::channel(settings.lane_queue);
                let lane = Arc::new(Lane {
                    db: db.clone(),
                    owner,
                    rows: settings.lane_rows,
                    bytes: settings.lane_bytes,
                    alive: alive.clone(),
                    stats: Arc::clone(stats),
                });
                tokio::spawn(Arc::clone(&lane).run(asks));
                (sender, lane)
            })
            .collect();
        let ferries = Ferries::new(db.drives.clone(), settings.ferries(), owner, Arc::clone(stats));
        Committer { lanes, ferries, stats: Arc::clone(stats) }
    }

    pub(crate) async fn claim(&self, run: Uuid, job: String) -> Option<Claimed> {
        let (reply, answer) = oneshot::channel();
        self.send(run, Ask::Claim { wanted: Wanted::new(run, job), reply }).await;
        answer.await.ok().flatten()
    }

    /// `None` when the incarnation ended before the outcome was known.
    pub(crate) async fn write(&self, checkpoint: Checkpoint) -> Option<Verdict> {
        let (reply, answer) = oneshot::channel();
        self.send(checkpoint.run, Ask::Write { checkpoint: Box::new(checkpoint), reply }).await;
        answer.await.ok()
    }

    async fn send(&self, run: Uuid, ask: Ask) {
        // The last bytes of a UUIDv7 are random, so they spread runs over the lanes.
        let (sender, lane) = &self.lanes[usize::from(run.as_bytes()[15]) % self.lanes.len()];
        if self.stats.drives_in_flight.load(Relaxed) <= FEW {
            lane.at_once(ask).await;
        } else {
            // A closed lane drops the ask, and with it the reply: the caller sees that as the end.
            let _ = sender.send(ask).await;
        }
    }
}

#[derive(Debug)]
struct Lane {
    db: Database,
    owner: Uuid,
    rows: usize,
    bytes: usize,
    alive: CancellationToken,
    stats: Arc<Stats>,
}

type Pending = (Box<Checkpoint>, oneshot::Sender<Verdict>);
type Claiming = (Wanted, oneshot::Sender<Option<Claimed>>);

impl Lane {
    async fn run(self: Arc<Lane>, mut asks: mpsc::Receiver<Ask>) {
        tokio::select! {
            () = self.alive.cancelled() => {}
            () = self.serve(&mut asks) => {}
        }
    }

    async fn at_once(self: &Arc<Self>, ask: Ask) {
        let mut alone = vec![ask];
        tokio::select! {
            () = self.alive.cancelled() => {}
            () = self.process(&mut alone) => {}
        }
    }

    async fn serve(self: &Arc<Self>, asks: &mut mpsc::Receiver<Ask>) {
        let mut taken = Vec::with_capacity(self.rows);
        while asks.recv_many(&mut taken, self.rows).await > 0 {
            self.process(&mut taken).await;
        }
    }

    async fn process(self: &Arc<Self>, taken: &mut Vec<Ask>) {
        let mut claims = Vec::new();
        let mut batch: Vec<Pending> = Vec::with_capacity(taken.len());
        let mut bytes = 0;
        for ask in taken.drain(..) {
            match ask {
                Ask::Claim { wanted, reply } => claims.push((wanted, reply)),
                Ask::Write { checkpoint, reply } => {
                    bytes += checkpoint.bytes();
                    batch.push((checkpoint, reply));
                    if bytes > self.bytes {
                        self.write(std::mem::take(&mut batch)).await;
                        bytes = 0;
                    }
                }
            }
        }
        self.write(batch).await;
        self.claim(claims).await;
    }

    /// Answers every claim, as `write` answers checkpoints: a run that cannot be read must not hold up the others.
    async fn claim(&self, asks: Vec<Claiming>) {
        let mut todo = if asks.is_empty() { Vec::new() } else { vec![asks] };
        let mut patience = Patience::default();
        let mut unanswered = self.stats.write_begins();
        while let Some(mut part) = todo.pop() {
            let began = Instant::now();
            match self.db.in_time(self.try_claim(&part)).await {
                Ok(mut claimed) => {
                    unanswered.one_answered();
                    self.stats.claimed(began.elapsed());
                    self.stats.wrote(claimed.len());
                    for (wanted, reply) in part {
                        let _ = reply.send(claimed.remove(&wanted.run));
                    }
                }
                Err(error) if is_locked(&error) => {
                    let all = part.len();
                    part = self.put_off_locked(part).await;
                    unanswered.some_answered(all - part.len());
                    patience.wait().await;
                    todo.extend((!part.is_empty()).then_some(part));
                }
                Err(error) if is_contention(&error) => {
                    self.stats.contended();
                    patience.wait().await;
                    todo.push(part);
                }
                // The journal of one run may take longer to read than a statement may.
                Err(error) if part.len() == 1 && (is_timeout(&error) || !is_outage(&error)) => {
                    self.set_aside(part, &error).await;
                }
                Err(error) if part.len() > 1 && (is_timeout(&error) || !is_outage(&error)) => {
                    self.stats.split();
                    todo.push(part.split_off(part.len() / 2));
                    todo.push(part);
                }
                Err(error) => {
                    self.endure(&error, &mut patience).await;
                    part.iter_mut().for_each(|(wanted, _)| wanted.try_again());
                    todo.push(part);
                }
            }
        }
    }

    async fn try_claim(&self, part: &[Claiming]) -> sqlx::Result<HashMap<Uuid, Claimed>> {
        let mut asked: Vec<&Wanted> = part.iter().map(|(wanted, _)| wanted).collect();
        asked.sort_unstable_by_key(|wanted| wanted.run);
        let mut session = self.db.lanes.session().await?;
        let claimed = claim::claim(&mut session, self.owner, &asked).await?;
        session.commit().await?;
        Ok(claimed)
    }

    /// So that nobody else falls over the run: what took too long is tried again later, the rest waits for an operator.
    async fn set_aside(&self, part: Vec<Claiming>, why: &sqlx::Error) {
        let mut patience = Patience::default();
        for (wanted, reply) in part {
            warn!(error = %why, run = %wanted.run, "a run cannot be claimed and is set aside");
            while let Err(error) = self.db.in_time(self.try_set_aside(&wanted, why)).await {
                self.endure(&error, &mut patience).await;
            }
            let _ = reply.send(None);
        }
    }

    async fn try_set_aside(&self, wanted: &Wanted, why: &sqlx::Error) -> sqlx::Result<()> {
        let again = is_timeout(why).then_some(TOO_SLOW_AGAIN);
        let mut tx = self.db.lanes.begin().await?;
        claim::set_aside(&mut tx, self.owner, wanted, &why.to_string(), again).await?;
        tx.commit().await
    }

    /// Answers every checkpoint of the batch, however many tries that takes.
    async fn write(self: &Arc<Self>, batch: Vec<Pending>) {
        let (going_on, resting): (Vec<Pending>, Vec<Pending>) =
            batch.into_iter().partition(|(c, _)| c.goes_on());
        let mut todo: Vec<Vec<Pending>> =
            [resting, going_on].into_iter().filter(|part| !part.is_empty()).collect();
        let mut patience = Patience::default();
        let mut unanswered = self.stats.write_begins();
        while let Some(mut part) = todo.pop() {
            match self.db.in_time(self.try_write(&part)).await {
                Ok(moved) => {
                    unanswered.one_answered();
                    self.stats.wrote(moved.len());
                    let unmoved = answer(part, moved);
                    self.tell_fenced(unmoved).await;
                }
                Err(error) if is_fence(&error) && part.len() == 1 => self.tell_fenced(part).await,
                Err(error) if is_locked(&error) => {
                    let all = part.len();
                    part = self.set_apart_locked(part).await;
                    unanswered.some_answered(all - part.len());
                    patience.wait().await;
                    todo.extend((!part.is_empty()).then_some(part));
                }
                Err(error) if is_contention(&error) => {
                    self.stats.contended();
                    patience.wait().await;
                    todo.push(part);
                }
                Err(error) if is_outage(&error) => {
                    self.endure(&error, &mut patience).await;
                    let unwritten = self.sort_out(part).await;
                    if !unwritten.is_empty() {
                        todo.push(unwritten);
                    }
                }
                Err(error) if part.len() == 1 => {
                    warn!(%error, run = %part[0].0.run, "the database refused a checkpoint");
                    for (_, reply) in part {
                        let _ = reply.send(Verdict::Refused(error.to_string()));
                    }
                }
                Err(_) => {
                    self.stats.split();
                    let half = part.split_off(part.len() / 2);
                    todo.push(half);
                    todo.push(part);
                }
            }
        }
    }

    /// Reads again to tell a fence from a signal; what is neither was fenced in between.
    async fn tell_fenced(&self, part: Vec<Pending>) {
        if part.is_empty() {
            return;
        }
        for (_, reply) in self.sort_out(part).await {
            let _ = reply.send(Verdict::Fenced);
        }
    }

    async fn try_write(&self, part: &[Pending]) -> sqlx::Result<HashMap<Uuid, Moved>> {
        let batch: Vec<&Checkpoint> = part.iter().map(|(checkpoint, _)| checkpoint.as_ref()).collect();
        let mut session = self.db.lanes.session().await?;
        let moved = checkpoint::write(&mut session, self.owner, &batch).await?;
        session.commit().await?;
        Ok(moved)
    }

    /// Reads the rows under lock, which waits for any older backend to end, and answers all whose fate is clear.
    /// Returns those that are certainly not written and still ours to write.
    async fn sort_out(&self, part: Vec<Pending>) -> Vec<Pending> {
        let mut patience = Patience::default();
        let rows = loop {
            match self.db.in_time(self.read_under_lock(&part)).await {
                Ok(rows) => break rows,
                Err(error) => self.endure(&error, &mut patience).await,
            }
        };
        let mut unwritten = Vec::new();
        for (checkpoint, reply) in part {
            let row = rows.get(&checkpoint.run);
            let ours = row.is_some_and(|r| {
                r.epoch == checkpoint.epoch && r.token.is_none() && r.owner == Some(self.owner)
            });
            match row {
                Some(row) if row.token == Some(checkpoint.token) => {
                    let _ = reply.send(Verdict::Moved(row.moved.clone()));
                }
                Some(row) if ours && row.moved.came_before(&checkpoint) => {
                    let _ = reply.send(Verdict::LookAgain);
                }
                Some(_) if ours => unwritten.push((checkpoint, reply)),
                _ => {
                    let _ = reply.send(Verdict::Fenced);
                }
            }
        }
        unwritten
    }

    async fn read_under_lock(&self, part: &[Pending]) -> sqlx::Result<HashMap<Uuid, Standing>> {
        let (ids, seqs): (Vec<Uuid>, Vec<i32>) = part.iter().map(|(c, _)| (c.run, c.seq)).unzip();
        let mut tx = self.db.lanes.begin().await?;
        let rows = sqlx::query!(
            "select id, epoch, owner, request, signals from engine.run where id = any($1) order by id for update",
            &ids
        )
        .fetch_all(&mut *tx)
        .await?;
        // Asked only now: what an older backend committed while we waited for its locks must be seen.
        let written = sqlx::query!(
            "select j.run_id, j.token from unnest($1::uuid[], $2::int[]) as m (id, seq)
             join engine.journal j on j.run_id = m.id and j.seq = m.seq",
            &ids,
            &seqs
        )
        .fetch_all(&mut *tx)
        .await?;
        tx.commit().await?;
        let tokens: HashMap<Uuid, Uuid> = written.into_iter().map(|w| (w.run_id, w.token)).collect();
        Ok(rows
            .into_iter()
            .map(|r| {
                let (token, moved) =
                    (tokens.get(&r.id).copied(), Moved { request: r.request, signals: r.signals });
                (r.id, Standing { epoch: r.epoch, owner: r.owner, token, moved })
            })
            .collect())
    }

    async fn endure(&self, error: &sqlx::Error, patience: &mut Patience) {
        warn!(%error, "the committer waits for the database");
        patience.wait().await;
    }
}

/// Returns those that did not move.
fn answer(part: Vec<Pending>, mut moved: HashMap<Uuid, Moved>) -> Vec<Pending> {
    let mut unmoved = Vec::new();
    for (checkpoint, reply) in part {
        match moved.remove(&checkpoint.run) {
            Some(moved) => _ = reply.send(Verdict::Moved(moved)),
            None => unmoved.push((checkpoint, reply)),
        }
    }
    unmoved
}

/// How a run stands, and the token of whoever wrote at the position in question.
struct Standing {
    epoch: i64,
    owner: Option<Uuid>,
    token: Option<Uuid>,
    moved: Moved,
}
