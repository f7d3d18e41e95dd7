//! Sends a webhook what is due: events in their order, one after the other, and those whose retry has come. The first
//! that is not taken ends the round, and the receiver is left alone for a while, so that one that is down is not
//! knocked at for every event.
//!
//! It may be repeated: what the receiver took is written down at once, and the rest is still due. A receiver knows a
//! repetition by `webhook-id`, which is the event's own id. Only so many are delivered to at once; whoever finds no place
//! comes again. A webhook that is changed ends the round: the next sends as it says then, and what a receiver answers that
//! events no longer go to counts for nobody.

mod places;
mod results;

pub(crate) use places::Places;
pub use results::results;

use std::time::{Duration, Instant};

use clients::webhook::{Letter, SendFault};
use domain::event::CloudEvent;
use domain::webhook::{self, DisabledReason};
use domain::{PolicyKey, Secret};
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{PgConnection, PgTransaction};
use store::audit::{self, NewEntry};
use store::policies::{self, Subject};
use store::webhook_deliveries::{self as deliveries, Delivery};
use store::webhooks::{self, Webhook};
use tracing::warn;
use uuid::Uuid;

use crate::Env;

/// How many are taken up at once.
const BATCH: i64 = 50;
/// A round ends here, so that a slow receiver does not outlast its step.
const ROUND: Duration = Duration::from_secs(30);
const GONE: u16 = 410;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeliverDue {
    pub webhook_id: Uuid,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Delivered {
    pub delivered: u32,
    /// Whether there is more to send now.
    pub more: bool,
    /// Nothing was sent, because as many are being delivered to as may be at once.
    #[serde(default)]
    pub full: bool,
}

impl Delivered {
    const NOTHING: Delivered = Delivered { delivered: 0, more: false, full: false };
}

impl Activity for DeliverDue {
    const NAME: &'static str = "deliver_due";
    const TIMEOUT: Duration = Duration::from_secs(90);
    type Env = Env;
    type Output = Delivered;

    async fn run(&self, env: &Env, call: &Call) -> Result<Delivered, Fault> {
        let mut tx = env.pool().begin().await?;
        let project = webhooks::project_of(&mut tx, self.webhook_id).await?;
        tx.rollback().await?;
        let Some(project) = project else { return Ok(Delivered::NOTHING) };
        let Some(_place) = env.deliveries.take(project) else {
            return Ok(Delivered { more: true, full: true, ..Delivered::NOTHING });
        };
        let (began, mut delivered) = (Instant::now(), 0);
        let Some(round) = Round::open(env, call, self.webhook_id).await? else {
            return Ok(Delivered::NOTHING);
        };
        for (delivery, event) in &round.letters {
            if call.cancelled.is_cancelled() || began.elapsed() > ROUND {
                break;
            }
            if !round.deliver(env, call, delivery, event.as_ref()).await? {
                break;
            }
            delivered += 1;
        }
        let mut tx = env.pool().begin().await?;
        let more = deliveries::is_due(&mut tx, self.webhook_id).await?;
        tx.rollback().await?;
        Ok(Delivered { delivered, more, full: false })
    }
}

/// What one round sends, and how.
struct Round {
    webhook: Webhook,
    secrets: Vec<Secret<String>>,
    private_allowed: bool,
    letters: Vec<(Delivery, Option<CloudEvent>)>,
}

impl Round {
    /// Takes up what is new and reads what is due; nothing for a webhook that is gone or disabled.
    async fn open(env: &Env, call: &Call, id: Uuid) -> Result<Option<Round>, Fault> {
        let mut tx = env.pool().begin().await?;
        let Some(webhook) = webhooks::find_locked(&mut tx, id).await?.filter(Webhook::is_active) else {
            return Ok(None);
        };
        if !deliveries::is_due(&mut tx, id).await? {
            return Ok(None);
        }
        let types = webhook.event_types.clone();
        let lost = deliveries::take_up(&mut tx, id, webhook.project_id, types, BATCH).await?;
        if lost > 0 {
            tell_loss(&mut tx, call, &webhook, lost).await?;
        }
        let mut letters = Vec::new();
        for delivery in deliveries::waiting(&mut tx, id, BATCH).await? {
            let event = deliveries::event(&mut tx, webhook.project_id, &delivery).await?;
            letters.push((delivery, event));
        }
        let private_allowed = private_allowed(&mut tx, &webhook).await?;
        let sealed = webhooks::live_secrets(&mut tx, id).await?;
        tx.commit().await?;
        let secrets = opened(env, id, sealed)?;
        Ok(Some(Round { webhook, secrets, private_allowed, letters }))
    }

    /// Answers whether the receiver took it; one that is not to have it any more is not asked.
    async fn deliver(
        &self,
        env: &Env,
        call: &Call,
        delivery: &Delivery,
        event: Option<&CloudEvent>,
    ) -> Result<bool, Fault> {
        let Some(event) = event else {
            let mut tx = env.pool().begin().await?;
            deliveries::not_delivered(&mut tx, delivery.id, None, "the event is no longer kept", None)
                .await?;
            tx.commit().await?;
            return Ok(true);
        };
        if !self.stands(env).await? {
            return Ok(false);
        }
        let body = serde_json::to_vec(event)
            .map_err(|error| Fault::needs_operator("unreadable", error.to_string()))?;
        let letter = Letter {
            url: &self.webhook.url,
            private_allowed: self.private_allowed,
            id: &event.id.to_string(),
            body: &body,
            secrets: &self.secrets,
        };
        let answer = env.webhooks()?.send(&letter).await;
        let result = results::of(&answer);
        let mut tx = env.pool().begin().await?;
        let taken = match answer {
            Ok(status @ 200..=299) => {
                webhooks::thrives(&mut tx, self.webhook.id).await?;
                deliveries::delivered(&mut tx, delivery.id, status.into()).await?;
                true
            }
            answer => {
                self.not_taken(&mut tx, call, delivery, answer).await?;
                false
            }
        };
        tx.commit().await?;
        results::count(result);
        Ok(taken)
    }

    /// Whether events still go where this round sends them, and as it signs them.
    async fn stands(&self, env: &Env) -> Result<bool, Fault> {
        let mut tx = env.pool().begin().await?;
        let unchanged = webhooks::is_unchanged(&mut tx, self.webhook.id, self.webhook.updated_at).await?;
        tx.rollback().await?;
        Ok(unchanged)
    }

    /// After the pause it is tried again. Where events go elsewhere by now, it is still due there as if never tried.
    async fn not_taken(
        &self,
        tx: &mut PgTransaction<'_>,
        call: &Call,
        delivery: &Delivery,
        answer: Result<u16, SendFault>,
    ) -> Result<(), Fault> {
        let id = self.webhook.id;
        let Some((failures, seconds)) = webhooks::suffers(tx, id, &self.webhook.url).await? else {
            return Ok(());
        };
        let gone = answer == Ok(GONE);
        let pause = if gone { None } else { webhook::pause(delivery.id, delivery.attempts + 1) };
        let (status, why) = match answer {
            Ok(status @ 300..=399) => {
                (Some(status.into()), "the receiver redirects; redirects are not followed".to_owned())
            }
            Ok(status) => (Some(status.into()), format!("the receiver answered {status}")),
            Err(fault) => (None, fault.to_string()),
        };
        deliveries::not_delivered(tx, delivery.id, status, &why, pause).await?;
        webhooks::rest(tx, id, webhook::rest(failures).as_secs_f64()).await?;
        if gone {
            self.disable(tx, call, DisabledReason::Gone, &why).await?;
        } else if pause.is_none() && seconds >= webhook::PATIENCE.as_secs_f64() {
            self.disable(tx, call, DisabledReason::Failing, &why).await?;
        }
        Ok(())
    }

    async fn disable(
        &self,
        conn: &mut PgConnection,
        call: &Call,
        reason: DisabledReason,
        why: &str,
    ) -> Result<(), Fault> {
        if !webhooks::disable(conn, self.webhook.id, reason).await? {
            return Ok(());
        }
        let entry = NewEntry {
            after: Some(json!({ "status": "disabled", "disabled_reason": reason })),
            reason: Some(why.to_owned()),
            ..entry(call, &self.webhook, "disable_webhook")
        };
        Ok(audit::insert(conn, &entry).await?)
    }
}

/// The receiver will never have them, and must not learn that from silence.
async fn tell_loss(conn: &mut PgConnection, call: &Call, webhook: &Webhook, lost: i64) -> Result<(), Fault> {
    warn!(webhook_id = %webhook.id, lost, "events were no longer kept when a webhook went on");
    let entry = NewEntry {
        after: Some(json!({ "events_lost": lost })),
        reason: Some("they were no longer kept when the webhook went on".to_owned()),
        ..entry(call, webhook, "lose_webhook_events")
    };
    Ok(audit::insert(conn, &entry).await?)
}

fn entry(call: &Call, webhook: &Webhook, action: &str) -> NewEntry {
    NewEntry {
        org_id: Some(webhook.org_id),
        project_id: Some(webhook.project_id),
        action: action.to_owned(),
        target: format!("webhook:{}", webhook.id),
        correlation_id: call.correlation_id.to_string(),
        ..NewEntry::default()
    }
}

async fn private_allowed(conn: &mut PgConnection, webhook: &Webhook) -> Result<bool, Fault> {
    let subject = Subject { user: None, project: Some(webhook.project_id), org: Some(webhook.org_id) };
    Ok(policies::flag(conn, PolicyKey::AllowPrivateAddresses, subject).await?)
}

fn opened(env: &Env, webhook: Uuid, sealed: Vec<String>) -> Result<Vec<Secret<String>>, Fault> {
    let sealer = env.signers()?.sealer();
    let unreadable = |why: String| Fault::needs_operator("unreadable_secret", why);
    let open = |sealed: String| {
        let opened = sealer
            .open(&sealed, &webhooks::sealed_for(webhook))
            .map_err(|fault| unreadable(fault.to_string()))?;
        let text =
            String::from_utf8(opened.expose().clone()).map_err(|_| unreadable("it is no text".to_owned()))?;
        Ok(Secret::new(text))
    };
    sealed.into_iter().map(open).collect()
}
