//! One process start: it has a lease, renewed from a thread, runtime and connection of its own, so that neither a busy
//! worker nor an exhausted pool can cost it its runs. A lease that could not be renewed ends everything before the
//! database would say so. Dead never revives: a process that lost its lease goes on as a new incarnation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::{error, warn};
use uuid::Uuid;

use crate::admission::QUEUE;
use crate::database::{Database, Shelf};
use crate::engine::Inner;
use crate::reaper;
use crate::registry::Kind;

/// How often the keeper looks whether there is more to tell than that the process lives.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Incarnation {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    /// Cancelled when the lease is lost or the incarnation ended.
    pub(crate) alive: CancellationToken,
}

impl Incarnation {
    /// Registers the process with what it can drive, and keeps its lease from here on.
    pub(crate) async fn begin(engine: &Arc<Inner>, kinds: &[Kind]) -> sqlx::Result<Incarnation> {
        engine.db.in_time(Incarnation::register(engine, kinds)).await
    }

    async fn register(engine: &Arc<Inner>, kinds: &[Kind]) -> sqlx::Result<Incarnation> {
        let (db, settings) = (&engine.db, &engine.settings);
        let id = Uuid::now_v7();
        let name = format!("{}-{}-{id}", host(), std::process::id());
        let asked = Instant::now();
        let mut tx = db.drives.begin().await?;
        sqlx::query!(
            "insert into engine.incarnation (id, name, slots, expires_at, project_cap)
             values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4), $5)",
            id,
            name,
            i32::try_from(settings.slots).unwrap_or(i32::MAX),
            settings.lease.as_secs_f64(),
            settings.project_cap
        )
        .execute(&mut *tx)
        .await?;
        let (names, versions): (Vec<String>, Vec<i32>) =
            kinds.iter().map(|k| (k.name.to_owned(), k.version)).unzip();
        sqlx::query!(
            "insert into engine.capability (incarnation_id, kind, version)
             select $1, kind, version from unnest($2::text[], $3::int[]) as k (kind, version)",
            id,
            &names,
            &versions
        )
        .execute(&mut *tx)
        .await?;
        // The queue's locks refer to its worker table.
        sqlx::query!(
            "insert into apalis.workers (id, worker_type, storage_name, layers, last_seen)
             values ($1, $2, 'engine', '', now())",
            name,
            QUEUE
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        let alive = CancellationToken::new();
        let keeper = Keeper {
            id,
            engine: Arc::clone(engine),
            lease: settings.lease,
            every: settings.renew_every,
            alive: alive.clone(),
        };
        let begun = std::thread::Builder::new().name("lease".into()).spawn(move || keeper.run(asked));
        begun.map_err(sqlx::Error::Io)?;
        Ok(Incarnation { id, name, alive })
    }

    /// Lets go of everything at once, so that others need not wait for the lease to run out.
    pub(crate) async fn end(&self, db: &Database) {
        self.alive.cancel();
        let buried = async {
            let mut tx = db.drives.begin().await?;
            sqlx::query!("update engine.incarnation set died_at = clock_timestamp() where id = $1", self.id)
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            // Known to be dead it is, whatever keeps us from handing everything back.
            let mut tx = db.drives.begin().await?;
            reaper::free_runs_of_the_dead(&mut tx).await?;
            tx.commit().await
        };
        if let Err(error) = db.in_time(buried).await {
            warn!(%error, "could not hand the runs back; they will be taken when the lease ends");
        }
    }
}

struct Keeper {
    id: Uuid,
    engine: Arc<Inner>,
    lease: Duration,
    every: Duration,
    alive: CancellationToken,
}

impl Keeper {
    fn run(self, asked: Instant) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                error!(%error, "no runtime for the lease");
                self.alive.cancel();
                return;
            }
        };
        runtime.block_on(async {
            tokio::select! {
                () = self.alive.cancelled() => {}
                () = self.keep(asked) => self.alive.cancel(),
            }
        });
    }

    /// Returns when the lease is lost, or cannot be known to be held.
    async fn keep(&self, mut asked: Instant) {
        let shelf = self.engine.db.shelf_apart();
        let mut told = false;
        loop {
            // A little before the database would call us dead, we do, by our own monotonic clock.
            let deadline = asked + self.lease.mul_f64(0.9);
            let try_at = (Instant::now() + self.every).min(deadline);
            while Instant::now() < try_at && self.engine.is_pressed() == told {
                tokio::time::sleep_until((Instant::now() + LOOK).min(try_at).into()).await;
            }
            let (began, pressed) = (Instant::now(), self.engine.is_pressed());
            // Whether or not it is heard: the next renewal says it again.
            told = pressed;
            match tokio::time::timeout_at(deadline.into(), self.renew(&shelf, pressed)).await {
                Ok(Ok(true)) => asked = began,
                Ok(Ok(false)) => {
                    error!("the lease was lost: another process declared this one dead");
                    return;
                }
                Ok(Err(error)) => {
                    warn!(%error, "could not renew the lease");
                    if Instant::now() >= deadline {
                        return;
                    }
                }
                Err(_elapsed) => {
                    error!("the lease could not be renewed in time; stopping all drives");
                    return;
                }
            }
        }
    }

    async fn renew(&self, shelf: &Shelf, pressed: bool) -> sqlx::Result<bool> {
        let mut tx = shelf.begin().await?;
        let renewed = sqlx::query!(
            "update engine.incarnation set expires_at = clock_timestamp() + make_interval(secs => $2),
                    pressed_since = case when $3 then coalesce(pressed_since, clock_timestamp()) end
             where id = $1 and died_at is null and expires_at > clock_timestamp()",
            self.id,
            self.lease.as_secs_f64(),
            pressed
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(renewed.rows_affected() == 1)
    }
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "host".to_owned(), |h| h.trim().to_owned())
}
