//! One checker for the engine's promises, and with it whatever its host has promised besides. Tests run it after every
//! story, production each minute over what changed since the last time, with some that stand still besides, and in full
//! every night. An empty answer means every promise holds.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::BoxFuture;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tracing::error;
use uuid::Uuid;

use crate::database::Shelf;
use crate::engine::{Engine, Inner};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: String,
    pub run_id: Option<Uuid>,
    pub detail: String,
}

/// What is looked at in between: not everything, but in the end every one.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// What changed after this.
    pub since: DateTime<Utc>,
    /// Of what stands still, the part that has its turn: from 0 up to 1024.
    pub turn: i32,
    /// Of the runs that stand still, those after this one have it.
    after: Uuid,
    bite: i64,
}

/// Looks for promises broken beside the runs; everywhere, unless it is told where.
pub type AlsoPromised =
    for<'c> fn(&'c mut PgConnection, Option<Look>) -> BoxFuture<'c, sqlx::Result<Vec<Violation>>>;

impl Engine {
    /// From here on this is looked at wherever the engine's own promises are.
    pub fn also_promises(&self, check: AlsoPromised) {
        let _ = self.inner.also_promised.set(check);
    }

    /// The full check, on a connection of its own: all of history may take minutes, and nobody should wait behind it.
    pub async fn check_promises(&self, within: Duration) -> sqlx::Result<Vec<Violation>> {
        let mut conn = self.inner.db.options.connect().await?;
        let mut tx = conn.begin().await?;
        let limit = within.as_millis().to_string();
        sqlx::query!(
            "select set_config('statement_timeout', $1, true) as statement, set_config('lock_timeout', $1, true) as lock",
            limit
        )
        .fetch_one(&mut *tx)
        .await?;
        let broken = check_all(&self.inner, &mut tx, None).await?;
        tx.commit().await?;
        conn.close().await?;
        tell(&self.inner, &broken);
        Ok(broken)
    }
}

/// The most that a statement of the look in between may take.
const WITHIN: Duration = Duration::from_millis(200);
/// Runs whose journals one look reads, of each sort: as many as its time allows.
const BITES: std::ops::RangeInclusive<i64> = 10..=200;
const TURNS: i32 = 1024;

/// The look in between, which every process repeats each minute.
pub(crate) struct Watch {
    last: Option<DateTime<Utc>>,
    turn: i32,
    bite: i64,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch { last: None, turn: rand::random_range(0..TURNS), bite: 100 }
    }

    /// One look. It never takes long: where the database is slow, the next one looks at less.
    pub(crate) async fn look(&mut self, engine: &Inner, shelf: &Shelf) -> sqlx::Result<()> {
        let began = Instant::now();
        match self.try_look(engine, shelf).await {
            Ok(now) => self.last = Some(now),
            Err(error) if is_out_of_time(&error) => {
                self.bite = (self.bite / 2).max(*BITES.start());
                // What was too much now would be more the next time. The night's check sees what is left out.
                self.last = None;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        if began.elapsed() < WITHIN / 4 {
            self.bite = (self.bite * 2).min(*BITES.end());
        }
        Ok(())
    }

    async fn try_look(&mut self, engine: &Inner, shelf: &Shelf) -> sqlx::Result<DateTime<Utc>> {
        let mut tx = shelf.begin().await?;
        let limit = WITHIN.as_millis().to_string();
        let now = sqlx::query_scalar!(
            r#"select engine.now() as "now!" from (select set_config('statement_timeout', $1, true)) limited"#,
            limit
        )
        .fetch_one(&mut *tx)
        .await?;
        self.turn = (self.turn + 1) % TURNS;
        let look = Look {
            // What was under way during the last look may have been committed behind its back.
            since: self.last.unwrap_or(now - TimeDelta::minutes(1)) - TimeDelta::seconds(30),
            turn: self.turn,
            after: next_turn(&mut tx, self.bite).await?,
            bite: self.bite,
        };
        let broken = check_all(engine, &mut tx, Some(look)).await?;
        tx.commit().await?;
        tell(engine, &broken);
        Ok(now)
    }
}

/// After which run those come that have their turn now. The next look, whoever's it is, goes on behind them; whoever finds
/// another one looking leaves them to it.
async fn next_turn(conn: &mut PgConnection, bite: i64) -> sqlx::Result<Uuid> {
    let after = sqlx::query_scalar!(
        r#"with last as (select after from engine.look for update skip locked),
               turn as (select id from engine.run where id > (select after from last) order by id limit $1)
           update engine.look set after = case when (select count(*) from turn) < $1 then '00000000-0000-0000-0000-000000000000'
                                               else (select id from turn order by id desc limit 1) end
           where exists (select from last) returning (select after from last) as "after!""#,
        bite
    )
    .fetch_optional(conn)
    .await?;
    Ok(after.unwrap_or(Uuid::max()))
}

fn is_out_of_time(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "57014")
}

pub(crate) async fn check_all(
    engine: &Inner,
    conn: &mut PgConnection,
    look: Option<Look>,
) -> sqlx::Result<Vec<Violation>> {
    let mut broken = check(&mut *conn, look).await?;
    if let Some(also) = engine.also_promised.get() {
        broken.extend(also(conn, look).await?);
    }
    Ok(broken)
}

/// Whoever looks, a broken promise is counted and logged.
fn tell(engine: &Inner, broken: &[Violation]) {
    engine.stats.promises_broken.fetch_add(broken.len() as u64, Relaxed);
    for Violation { promise, run_id, detail } in broken {
        error!(promise, ?run_id, detail, "a promise is broken");
    }
}

/// Of every run there is.
pub async fn check_invariants(conn: &mut PgConnection) -> sqlx::Result<Vec<Violation>> {
    check(conn, None).await
}

async fn check(conn: &mut PgConnection, look: Option<Look>) -> sqlx::Result<Vec<Violation>> {
    let (since, bite) = (look.map(|look| look.since), look.map(|look| look.bite));
    let after = look.map(|look| look.after);
    sqlx::query_file_as!(Violation, "queries/invariants.sql", since, bite, after).fetch_all(conn).await
}
