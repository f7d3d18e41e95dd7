//! What is due is fired: each tick once, whoever looks, and those that were missed as their schedule says.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use tracing::warn;

use super::{Due, Missed, Overlap, ScheduleError, is_live, load, parse, start, tick};
use crate::database::Shelf;
use crate::engine::{Engine, EngineError};
use crate::start::StartError;

/// At most this many missed ticks are made up for.
const MOST_MISSED: usize = 100;
/// A tick that is later than this was missed, if it is the only one too.
const LATE: TimeDelta = TimeDelta::seconds(60);

/// Fires what is due. Another process holding a schedule's row is doing the same work, so it is skipped. One that cannot be
/// fired keeps no other from its tick; answers the last trouble.
pub(crate) async fn fire_due(engine: &Engine, shelf: &Shelf) -> Result<(), ScheduleError> {
    let mut session = shelf.session().await?;
    let names = sqlx::query_scalar!(
        "select name from engine.schedule where not paused and next_at <= (select engine.now())"
    )
    .fetch_all(&mut *session)
    .await?;
    session.commit().await?;
    let mut trouble = Ok(());
    for name in names {
        if let Err(error) = fire_one(engine, shelf, &name).await {
            warn!(%error, schedule = name, "a schedule cannot be fired");
            trouble = Err(error);
        }
        engine.wake();
    }
    trouble
}

async fn fire_one(engine: &Engine, shelf: &Shelf, name: &str) -> Result<(), ScheduleError> {
    let mut tx = shelf.begin().await?;
    // Whoever holds the row is firing it; waiting would only find it done.
    let free =
        sqlx::query_scalar!("select 1 from engine.schedule where name = $1 for update skip locked", name)
            .fetch_optional(&mut *tx)
            .await?;
    let due = if free.is_some() { load(&mut tx, name).await? } else { None };
    if let Some(due) = due.filter(|due| due.next_at <= due.now) {
        fire(engine, &mut tx, &due).await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn fire(engine: &Engine, conn: &mut PgConnection, due: &Due) -> Result<(), ScheduleError> {
    let cron = parse(&due.cron)?;
    let waited = due.overlap == Overlap::Queue && due.waiting_tick == Some(due.next_at);
    if waited && is_live(conn, due).await? {
        return Ok(());
    }
    let ticks = due_ticks(&cron, due, waited);
    let (missed, wanted) = divide(due, &ticks, waited);
    for nominal in missed {
        tick(conn, due, *nominal, None, "missed").await?;
    }
    for nominal in wanted {
        let live = is_live(conn, due).await?;
        if live && due.overlap == Overlap::Queue {
            return queue(conn, due, *nominal).await;
        }
        if live {
            tick(conn, due, *nominal, None, "skipped_overlap").await?;
        } else {
            let correlation = format!("schedule:{}:{}", due.name, nominal.timestamp());
            match start(engine, conn, due, *nominal, "fired", &correlation).await {
                Ok(_) => {
                    engine.stats().schedules_fired.fetch_add(1, Relaxed);
                }
                Err(StartError::Engine(EngineError::Database(error))) => {
                    return Err(error.into());
                }
                // It stays due.
                Err(StartError::Pressure) => return Err(ScheduleError::Pressure),
                // Too much is waiting already: this tick is lost, and says so.
                Err(_) => tick(conn, due, *nominal, None, "missed").await?,
            }
        }
    }
    wait_until(conn, due, cron.after(&due.now).next().unwrap_or(DateTime::<Utc>::MAX_UTC)).await
}

/// The latest matter: after a long absence the oldest ticks are not even recorded, but for one that waited.
fn due_ticks(cron: &cron::Schedule, due: &Due, waited: bool) -> Vec<DateTime<Utc>> {
    let mut ticks = VecDeque::from([due.next_at]);
    for tick in cron.after(&due.next_at).take_while(|at| *at <= due.now) {
        if ticks.len() == MOST_MISSED {
            ticks.remove(usize::from(waited));
        }
        ticks.push_back(tick);
    }
    Vec::from(ticks)
}

type Ticks<'a> = &'a [DateTime<Utc>];

/// Those that were missed, and those that are wanted.
fn divide<'a>(due: &Due, ticks: Ticks<'a>, waited: bool) -> (Ticks<'a>, Ticks<'a>) {
    match due.missed {
        Missed::All => (&ticks[..0], ticks),
        // The latest tick stands for all that were missed.
        Missed::One => ticks.split_at(ticks.len() - 1),
        // A tick that waited for the run before it was seen in time; those behind it are judged as ever.
        Missed::Skip => {
            let (seen, others) = ticks.split_at(usize::from(waited));
            let late = others.len() > 1 || others.iter().any(|at| due.now - *at > LATE);
            if late { (others, seen) } else { (&ticks[..0], ticks) }
        }
    }
}

/// The tick stays due until the run before it has ended.
async fn queue(conn: &mut PgConnection, due: &Due, nominal: DateTime<Utc>) -> Result<(), ScheduleError> {
    sqlx::query!(
        "update engine.schedule set next_at = $2, waiting_tick = $2 where name = $1",
        due.name,
        nominal
    )
    .execute(conn)
    .await?;
    Ok(())
}

async fn wait_until(conn: &mut PgConnection, due: &Due, next: DateTime<Utc>) -> Result<(), ScheduleError> {
    sqlx::query!("update engine.schedule set next_at = $2 where name = $1", due.name, next)
        .execute(conn)
        .await?;
    Ok(())
}
