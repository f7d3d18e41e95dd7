//! Who may have a worker. The backlog is the run table; the queue holds only admitted drives, because its order is
//! first come first served and cannot be fair.
//!
//! A start or wake-up is admitted at once while its project is under its cap and the window (twice all slots) has
//! room. Otherwise the run stays ready, and whoever frees a slot admits the next, round-robin over projects.
//! The counts and caps are a snapshot of the database, read at least once a second and kept current locally, so a burst
//! spread over several processes may pass a cap by what they start within that second.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tokio::sync::Notify;
use ulid::Ulid;
use uuid::Uuid;

use crate::engine::Inner;
use crate::settings::Settings;

pub(crate) const QUEUE: &str = "drive";
const FRESH: Duration = Duration::from_secs(1);
/// How long after its commit the end of a drive may take to be noted here.
const JUST_NOW: Duration = Duration::from_millis(50);
/// Admitted runs that are counted even where there are few slots.
const MARGIN: i64 = 1000;

#[derive(Debug)]
pub(crate) struct Admission {
    cap: i64,
    counts: Mutex<Counts>,
    /// Wakes the local admitter.
    pub(crate) nudge: Notify,
    /// Something was left for the admitter by a transaction that has yet to commit.
    left: AtomicBool,
}

#[derive(Debug, Default)]
struct Counts {
    read: Option<Instant>,
    window: i64,
    total: i64,
    by_project: HashMap<Uuid, i64>,
    /// Caps that an administrator set: of single projects, and of everybody else.
    caps: HashMap<Option<Uuid>, i64>,
    /// Places given in the last second: their transactions may not have committed when the counts are read.
    recent: VecDeque<(Instant, Uuid)>,
    /// The admitter is at work: starts leave their run to it, so that no place is given twice.
    admitting: bool,
    /// Some process drives, and none that does is kept up with by the database.
    pressed: bool,
}

impl Counts {
    fn cap_of(&self, project: Uuid, usual: i64) -> i64 {
        let set = self.caps.get(&Some(project)).or_else(|| self.caps.get(&None));
        set.copied().unwrap_or(usual)
    }
}

impl Admission {
    pub(crate) fn new(settings: &Settings) -> Admission {
        let left = AtomicBool::new(false);
        Admission { cap: settings.project_cap, counts: Mutex::default(), nudge: Notify::new(), left }
    }

    /// Takes a place for one run of the project, if there is one.
    pub(crate) async fn admit(&self, conn: &mut PgConnection, project: Uuid) -> sqlx::Result<bool> {
        self.look(conn).await?;
        let admitted = self.with(|c| {
            let cap = c.cap_of(project, self.cap);
            let used = c.by_project.entry(project).or_default();
            let room = !c.admitting && *used < cap && c.total < c.window;
            if room {
                *used += 1;
                c.total += 1;
                c.recent.push_back((Instant::now(), project));
            }
            room
        });
        if !admitted {
            self.leave();
        }
        Ok(admitted)
    }

    /// Reads the counts anew if they are stale.
    pub(crate) async fn look(&self, conn: &mut PgConnection) -> sqlx::Result<()> {
        if self.takes_turn_to_read() { self.refresh(conn).await } else { Ok(()) }
    }

    /// As of the last look.
    pub(crate) fn everybody_is_pressed(&self) -> bool {
        self.with(|c| c.pressed)
    }

    /// No more are admitted than there are slots, so nobody waits in the queue.
    pub(crate) fn uncrowded(&self) -> bool {
        self.with(|c| 2 * c.total <= c.window)
    }

    fn taken_lately(&self) -> Vec<Uuid> {
        self.with(|c| {
            c.recent.iter().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, project)| *project).collect()
        })
    }

    /// Notes that the admitter has something to do once the caller's transaction commits.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Called after that commit.
    pub(crate) fn committed(&self) {
        if self.left.swap(false, Ordering::AcqRel) {
            self.nudge.notify_one();
        }
    }

    /// A drive ended and gave its place back. Counts that were read just now may have seen that: a project's place must not be
    /// taken off twice, or its cap is passed. Left on, it only sends the next start through the admitter. The window is no
    /// promise to anybody, so of all places it is taken off in any case: left on, a busy process would take itself for crowded.
    pub(crate) fn freed(&self, project: Uuid) {
        let was_full = self.with(|c| {
            let cap = c.cap_of(project, self.cap);
            let was_full = c.total >= c.window || c.by_project.get(&project).is_some_and(|n| *n >= cap);
            c.total = (c.total - 1).max(0);
            if c.read.is_none_or(|at| at.elapsed() >= JUST_NOW)
                && let Some(used) = c.by_project.get_mut(&project)
            {
                *used = (*used - 1).max(0);
            }
            was_full
        });
        if was_full {
            self.nudge.notify_one();
        }
    }

    /// Whether the counts are stale and the caller is the one to read them: the others go on with what they have. Before the
    /// first reading there is nothing to go on with, so all of them read.
    fn takes_turn_to_read(&self) -> bool {
        self.with(|c| match c.read {
            None => true,
            Some(at) if at.elapsed() <= FRESH => false,
            Some(_) => {
                c.read = Some(Instant::now());
                true
            }
        })
    }

    pub(crate) async fn refresh(&self, conn: &mut PgConnection) -> sqlx::Result<()> {
        let living = sqlx::query!(
            r#"select coalesce(sum(slots), 0)::bigint as "slots!",
                      coalesce(bool_and(pressed_since is not null), false) as "pressed!"
               from engine.incarnation where died_at is null and expires_at > clock_timestamp()"#
        )
        .fetch_one(&mut *conn)
        .await?;
        let slots = living.slots;
        // Ordered and bounded, so that the index is walked whatever the statistics say: the walk also marks the entries of runs
        // that ended since, which would otherwise be visited each time until the table is vacuumed. The window bounds what is
        // admitted; twice of it leaves room for what a burst adds.
        let rows = sqlx::query!(
            r#"select project_id, count(*) as "used!"
               from (select project_id from engine.run where queued_job is not null order by project_id limit $1) admitted
               group by project_id"#,
            MARGIN + 4 * slots
        )
        .fetch_all(&mut *conn)
        .await?;
        let caps = sqlx::query!(r#"select project_id, cap as "cap!" from engine.project_cap"#);
        let caps = caps.fetch_all(conn).await?;
        self.with(|c| {
            c.read = Some(Instant::now());
            c.pressed = living.pressed;
            c.caps = caps.iter().map(|r| (r.project_id, r.cap)).collect();
            c.window = 2 * slots;
            c.by_project = rows.iter().map(|r| (r.project_id, r.used)).collect();
            c.total = c.by_project.values().sum();
            c.recent.retain(|(at, _)| at.elapsed() < FRESH);
            // Counting some twice only sends the next start through the admitter; missing some would pass the cap.
            for (_, project) in &c.recent {
                *c.by_project.entry(*project).or_default() += 1;
            }
        });
        Ok(())
    }

    fn with<T>(&self, f: impl FnOnce(&mut Counts) -> T) -> T {
        f(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Held while the admitter gives places.
struct Turn<'a>(&'a Admission);

impl Turn<'_> {
    fn take(admission: &Admission) -> Turn<'_> {
        admission.with(|c| c.admitting = true);
        Turn(admission)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // What was just admitted counts from the next look at the database on.
        self.0.with(|c| (c.admitting, c.read) = (false, None));
    }
}

/// The queue's ids are ULIDs; ours are made here so that the run can name its job in the same statement.
pub(crate) fn new_job() -> String {
    Ulid::generate().to_string()
}

/// Puts a run's job into the queue.
pub(crate) async fn push(conn: &mut PgConnection, job: &str, run: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into apalis.jobs (id, job_type, job, run_at) values ($1, $2, convert_to($3, 'UTF8'), now())",
        job,
        QUEUE,
        run.to_string()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Queues the run now if it may be, else marks it ready. The caller's transaction already woke or changed it.
pub(crate) async fn admit_or_ready(
    engine: &Inner,
    conn: &mut PgConnection,
    run: Uuid,
    project: Uuid,
) -> sqlx::Result<()> {
    if engine.admission.admit(conn, project).await? {
        queue(conn, &[run]).await?;
    } else {
        sqlx::query!(
            "update engine.run set wake_at = engine.now()
             where id = $1 and queued_job is null and owner is null and (not succeeds_holder or unwinding)",
            run
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}

/// Gives each of these runs a job, unless it has one already. One that waits for its target goes only backwards: forwards it
/// would meet the holder. One whose row somebody holds has its turn another time, and keeps nobody from theirs.
async fn queue(conn: &mut PgConnection, runs: &[Uuid]) -> sqlx::Result<u64> {
    let jobs: Vec<String> = runs.iter().map(|_| new_job()).collect();
    let done = sqlx::query!(
        r#"
        with free as materialized (
            select id from engine.run where id = any($1) order by id for update skip locked
        ), admitted as (
            update engine.run r set queued_job = a.job, queued_at = engine.now(), wake_at = null
            from unnest($1::uuid[], $2::text[]) as a (id, job) join free on free.id = a.id
            where r.id = a.id and r.queued_job is null and r.owner is null and r.finished_at is null
              and r.state <> 'stuck' and (r.state <> 'paused' or r.wake_at is not null)
              and (not r.succeeds_holder or r.unwinding)
            returning r.id, r.queued_job
        )
        insert into apalis.jobs (id, job_type, job, run_at)
        select queued_job, $3, convert_to(id::text, 'UTF8'), now() from admitted
        "#,
        runs,
        &jobs,
        QUEUE
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Admits what is due, at most one window's worth, always for the project that has the fewest. Returns how many were admitted and
/// when the next run wants to wake.
pub(crate) async fn admit_due(engine: &Inner) -> sqlx::Result<(u64, Option<DateTime<Utc>>, DateTime<Utc>)> {
    let mut tx = engine.db.drives.begin().await?;
    let next = sqlx::query!(
        r#"select (select wake_at from engine.run where wake_at is not null order by wake_at limit 1) as first,
                  engine.now() as "now!""#
    )
    .fetch_one(&mut *tx)
    .await?;
    let now = next.now;
    if next.first.is_none_or(|at| at > now) {
        tx.commit().await?;
        return Ok((0, next.first, now));
    }
    let _turn = Turn::take(&engine.admission);
    engine.admission.refresh(&mut tx).await?;
    let room = engine.admission.with(|c| c.window - c.total);
    let mut admitted = 0;
    if room > 0 {
        let taken = engine.admission.taken_lately();
        let due = due(&mut tx, engine.admission.cap, room, &taken).await?;
        admitted = queue(&mut tx, &due).await?;
    }
    tx.commit().await?;
    if admitted > 0 {
        engine.bell.ring();
    }
    Ok((admitted, next.first, now))
}

/// Walks the projects that have anything due by skipping along the index, and takes from each up to its free places. Who has
/// the fewest places comes first: places are given back one by one, and by age alone each would go to the oldest flood.
/// `taken` are places the database may not show yet; counting one twice only postpones an admission. What is due is asked
/// together with who is: whoever came while places were counted must not find them given to older runs.
async fn due(conn: &mut PgConnection, cap: i64, room: i64, taken: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        r#"
        with recursive project as (
            (select project_id from engine.run where wake_at is not null order by project_id limit 1)
            union all
            select (select r.project_id from engine.run r
                    where r.wake_at is not null and r.project_id > p.project_id order by r.project_id limit 1)
            from project p where p.project_id is not null
        ), place as (
            select p.project_id,
                coalesce((select c.cap from engine.project_cap c where c.project_id = p.project_id),
                         (select c.cap from engine.project_cap c where c.project_id is null), $1) as cap,
                (select count(*) from engine.run a
                where a.project_id = p.project_id and a.queued_job is not null)
                + (select count(*) from unnest($3::uuid[]) as t (project_id) where t.project_id = p.project_id) as used
            from project p where p.project_id is not null
        )
        select d.id as "id!" from place p cross join lateral (
            select r.id, r.wake_at, row_number() over (order by r.wake_at, r.id) as turn
            from engine.run r where r.project_id = p.project_id and r.wake_at <= (select engine.now())
            order by r.wake_at, r.id limit greatest(least($2, p.cap - p.used), 0)
        ) d
        order by p.used + d.turn, d.wake_at limit $2
        "#,
        cap,
        room,
        taken
    )
    .fetch_all(conn)
    .await
}

/// Ready runs of a project, counted no further than the limit that matters.
pub(crate) async fn backlog_reached(
    conn: &mut PgConnection,
    project: Uuid,
    limit: i64,
) -> sqlx::Result<bool> {
    let ready = sqlx::query_scalar!(
        r#"select count(*) as "n!" from (select 1 from engine.run
           where project_id = $1 and wake_at <= (select engine.now()) limit $2) ready"#,
        project,
        limit
    )
    .fetch_one(conn)
    .await?;
    Ok(ready >= limit)
}
