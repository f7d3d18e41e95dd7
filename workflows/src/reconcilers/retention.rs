//! Clears away what publishing left behind: secrets that nobody fetched, credentials and intents whose time is over, uploads
//! that were never registered and manifests that were pushed and never registered.
//!
//! What is deleted outside the database is decided here first, and told to those who register: they find an intent closed
//! or a manifest condemned. Whatever a registration needs, as its own or because it vouches for it, stays.

use std::time::Duration;

use activities::Env;
use activities::delete_strays::DeleteStrays;
use activities::discard_uploads::DiscardUploads;
use activities::list_strays::ListStrays;
use engine::{Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, Schedule, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::publish_intents::{self, Closed};
use store::registry_pushes::{self, Stray};
use store::{app_artifacts, pull_intents, registry_credentials, wrapped_secrets};
use uuid::Uuid;

/// A look that was missed is not made up for: the next one sees the same.
pub const HOURLY: Schedule =
    Schedule { name: "retention", cron: "0 17 * * * *", missed: Missed::Skip, overlap: Overlap::Skip };

/// What was published may be registered for so long after the intent's time is over.
const KEPT_FOR: Duration = Duration::from_secs(7 * 86_400);
/// What only opened a door is kept a little, for people who ask why it does not open any more.
const SHOWN_FOR: Duration = Duration::from_secs(86_400);
/// As many intents as one look deals with.
const MOST: i64 = 200;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClearAway {}

impl Workflow for ClearAway {
    const NAME: &'static str = "artifact.clear_away";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::transact("forget_expired"),
        PlannedStep::activity("discard_uploads"),
        PlannedStep::transact("forget_intents"),
        PlannedStep::activity("list_strays"),
        PlannedStep::transact("condemn_strays"),
        PlannedStep::activity("delete_strays"),
        PlannedStep::transact("forget_strays"),
    ];
    // An hour in which nobody answered must not stand in the way of the next, which finds the same.
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let closed = run.transact("forget_expired", |conn| Box::pin(forget_expired(conn))).await?;
        run.step(DiscardUploads { closed: closed.clone() }).await?;
        let ids: Vec<Uuid> = closed.into_iter().map(|closed| closed.intent_id).collect();
        let intents =
            run.transact("forget_intents", |conn| Box::pin(forget_intents(conn, ids.clone()))).await?;
        let strays = run.step(ListStrays { older_seconds: KEPT_FOR.as_secs() }).await?;
        let condemned =
            run.transact("condemn_strays", |conn| Box::pin(condemn(conn, strays.clone()))).await?;
        run.step(DeleteStrays { condemned: condemned.clone() }).await?;
        run.transact("forget_strays", |conn| Box::pin(forget_strays(conn, condemned.clone()))).await?;
        run.output(&json!({ "intents": intents, "manifests": condemned })).await
    }
}

async fn forget_expired(conn: &mut PgConnection) -> Result<Vec<Closed>, Fault> {
    let shown = SHOWN_FOR.as_secs_f64();
    wrapped_secrets::forget_expired(conn).await?;
    registry_credentials::forget_expired(conn, shown).await?;
    pull_intents::forget_expired(conn, shown).await?;
    Ok(publish_intents::close_expired(conn, KEPT_FOR.as_secs_f64(), MOST).await?)
}

async fn forget_intents(conn: &mut PgConnection, ids: Vec<Uuid>) -> Result<u64, Fault> {
    Ok(publish_intents::forget(conn, &ids).await?)
}

/// Those that nothing needs, decided with their repositories held still.
async fn condemn(conn: &mut PgConnection, mut strays: Vec<Stray>) -> Result<Vec<Stray>, Fault> {
    let older = KEPT_FOR.as_secs_f64();
    strays.sort_by(|one, other| one.repository.cmp(&other.repository));
    let mut condemned = Vec::new();
    for stray in strays {
        app_artifacts::hold(conn, &stray.repository).await?;
        if registry_pushes::condemn(conn, &stray, older).await? {
            condemned.push(stray);
        } else {
            registry_pushes::forget_needed(conn, &stray, older).await?;
        }
    }
    Ok(condemned)
}

async fn forget_strays(conn: &mut PgConnection, condemned: Vec<Stray>) -> Result<(), Fault> {
    for stray in &condemned {
        registry_pushes::mark_deleted(conn, stray).await?;
    }
    registry_pushes::forget(conn, KEPT_FOR.as_secs_f64()).await?;
    Ok(())
}
