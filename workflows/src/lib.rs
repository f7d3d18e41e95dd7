//! One file per lifecycle action, and the registry that makes them known. A new action is one file and one line here;
//! one that runs by the clock is declared here too. [`sequencer`] and [`relay`] are no runs: they number
//! what runs and requests tell, and pass it on; neither is [`listening`].

pub mod action;
pub mod allocation;
pub mod artifact;
pub mod billing;
pub mod check_promises;
pub mod demo;
pub mod instance;
pub mod listening;
pub mod node;
mod part;
pub mod reconcilers;
pub mod relay;
pub mod sequencer;
mod told;
pub use activities::trust;
pub mod version;
pub mod webhook;

pub use activities::{SignerFault, TaskSigners};

use activities::Env;
use engine::{Engine, Registry, ScheduleError};

use self::allocation::ReleaseAllocation;
use self::artifact::{Deprecation, Promotion, Withdrawal};
use self::billing::accrue::{self, AccrueAllocations};
use self::billing::prove::{self, ProveLedgers};
use self::billing::rerate::RerateUsage;
use self::billing::rollup::{self, RollUpUsage};
use self::check_promises::{CheckPromises, NIGHTLY};
use self::instance::decommission::DecommissionInstance;
use self::instance::deploy::DeployInstance;
use self::instance::reconcile::ReconcileInstance;
use self::instance::{RollbackInstance, UpgradeInstance};
use self::node::UpdateAgent;
use self::reconcilers::clean_up::{self, CleanUp};
use self::reconcilers::drift::{MINUTELY, WatchDrift};
use self::reconcilers::lost_nodes::{QUARTER_MINUTELY, WatchNodes};
use self::reconcilers::old_events::{self, ForgetEvents};
use self::reconcilers::retention::{ClearAway, HOURLY};
use self::reconcilers::retirement::{self, RetireOverdue};
use self::reconcilers::signers::{self, RotateSigners};
use self::reconcilers::stuck_runs::{self, WatchRuns};
use self::version::{PromoteVersion, Retirement};
use self::webhook::DeliverWebhook;

pub fn registry() -> Registry<Env> {
    Registry::new()
        .with::<CheckPromises>()
        .with::<ClearAway>()
        .with::<demo::Tour>()
        .with::<DeployInstance>()
        .with::<UpgradeInstance>()
        .with::<RollbackInstance>()
        .with::<DecommissionInstance>()
        .with::<ReleaseAllocation>()
        .with::<WatchNodes>()
        .with::<UpdateAgent>()
        .with::<AccrueAllocations>()
        .with::<RollUpUsage>()
        .with::<RerateUsage>()
        .with::<ProveLedgers>()
        .with::<WatchDrift>()
        .with::<WatchRuns>()
        .with::<ReconcileInstance>()
        .with::<PromoteVersion>()
        .with::<Retirement>()
        .with::<Promotion>()
        .with::<Deprecation>()
        .with::<Withdrawal>()
        .with::<DeliverWebhook>()
        .with::<ForgetEvents>()
        .with::<RetireOverdue>()
        .with::<CleanUp>()
        .with::<RotateSigners>()
}

/// Every process declares them when it starts, so a release brings its schedules with it and takes away what it no longer has.
pub async fn declare_schedules(engine: &Engine) -> Result<(), ScheduleError> {
    let mut transaction = engine.pool().begin().await?;
    let declared = [
        engine.ensure_schedule(&mut transaction, &HOURLY, &ClearAway {}).await?,
        engine.ensure_schedule(&mut transaction, &old_events::NIGHTLY, &ForgetEvents {}).await?,
        engine.ensure_schedule(&mut transaction, &clean_up::HOURLY, &CleanUp {}).await?,
        engine.ensure_schedule(&mut transaction, &NIGHTLY, &CheckPromises {}).await?,
        engine.ensure_schedule(&mut transaction, &QUARTER_MINUTELY, &WatchNodes {}).await?,
        engine.ensure_schedule(&mut transaction, &accrue::MINUTELY, &AccrueAllocations {}).await?,
        engine.ensure_schedule(&mut transaction, &rollup::MINUTELY, &RollUpUsage {}).await?,
        engine.ensure_schedule(&mut transaction, &prove::NIGHTLY, &ProveLedgers {}).await?,
        engine.ensure_schedule(&mut transaction, &MINUTELY, &WatchDrift {}).await?,
        engine.ensure_schedule(&mut transaction, &stuck_runs::MINUTELY, &WatchRuns {}).await?,
        engine.ensure_schedule(&mut transaction, &retirement::HOURLY, &RetireOverdue {}).await?,
        engine.ensure_schedule(&mut transaction, &signers::NIGHTLY, &RotateSigners::usual()).await?,
    ];
    engine.forget_schedules(&mut transaction, &declared, &registry().kinds()).await?;
    transaction.commit().await?;
    Ok(())
}
