//! Deliveries: one event on its way to one webhook. What is taken up is written before it is sent, so a process that dies
//! in between sends it again; what was taken counts as delivered only once the receiver has said so.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::event::CloudEvent;
use domain::webhook::DeliveryStatus;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::outbox::{self, Filter};
use crate::{Slice, parsed};

#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: Uuid,
    pub event_id: Uuid,
    pub event_type: String,
    pub seq: i64,
    pub status: String,
    pub attempts: i32,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub response_status: Option<i32>,
    pub error: Option<String>,
    pub created_at: DateTime<Utc>,
    pub delivered_at: Option<DateTime<Utc>>,
}

impl Delivery {
    pub fn status(&self) -> sqlx::Result<DeliveryStatus> {
        parsed(&self.status)
    }
}

/// A webhook that has something to send, and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub webhook_id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
}

/// Passes over events that a webhook does not want, so that nobody looks at them again. Where some are no longer kept nobody
/// knows whether it wanted them, and taking up says that they are lost.
pub async fn pass_over(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhooks w set position = c.last_seq from event_counters c
         where c.project_id = w.project_id and w.position < c.last_seq and w.status = 'active' and w.event_types <> '{}'
           and w.position >= c.forgotten
           and not exists (select 1 from outbox o where o.project_id = w.project_id and o.seq > w.position
               and o.seq <= c.last_seq and o.type = any(w.event_types))"
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The webhooks that have something to send now.
pub async fn due(conn: &mut PgConnection) -> sqlx::Result<Vec<Due>> {
    sqlx::query_as!(
        Due,
        "select w.id as webhook_id, w.org_id, w.project_id from webhooks w
         left join event_counters c on c.project_id = w.project_id
         where w.status = 'active' and (w.rests_until is null or w.rests_until <= (select engine.now()))
           and (w.position < c.last_seq or exists (select 1 from webhook_deliveries d where d.webhook_id = w.id
               and d.status = 'pending' and d.next_attempt_at <= (select engine.now())))"
    )
    .fetch_all(conn)
    .await
}

/// Whether this one does.
pub async fn is_due(conn: &mut PgConnection, webhook: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
               select 1 from webhooks w left join event_counters c on c.project_id = w.project_id
               where w.id = $1 and w.status = 'active' and (w.rests_until is null or w.rests_until <= (select engine.now()))
                 and (w.position < c.last_seq or exists (select 1 from webhook_deliveries d where d.webhook_id = w.id
                     and d.status = 'pending' and d.next_attempt_at <= (select engine.now())))) as "due!""#,
        webhook
    )
    .fetch_one(conn)
    .await
}

/// Takes up the next events that the webhook wants, and notes how many are lost, because they were not kept for so long; they are
/// answered. The webhook is held by the caller.
pub async fn take_up(
    conn: &mut PgConnection,
    webhook: Uuid,
    project: Uuid,
    types: Vec<String>,
    most: i64,
) -> sqlx::Result<i64> {
    let kept = outbox::extent(conn, project).await?;
    let position = sqlx::query_scalar!("select position from webhooks where id = $1", webhook)
        .fetch_one(&mut *conn)
        .await?;
    let filter = Filter { project_id: project, types, after: position, limit: most, ..Filter::default() };
    let events = outbox::told(conn, &filter).await?;
    for event in &events {
        sqlx::query!(
            "insert into webhook_deliveries (id, webhook_id, event_id, event_type, seq) values ($1, $2, $3, $4, $5)
             on conflict (webhook_id, event_id) do nothing",
            Uuid::now_v7(),
            webhook,
            event.id,
            event.kind,
            event.seq()
        )
        .execute(&mut *conn)
        .await?;
    }
    let reached = match events.last() {
        Some(last) if events.len() as i64 == most => last.seq(),
        // The page ended before the limit: nothing up to `last` is left, and perhaps something newer was seen too.
        newest => newest.map_or(kept.last, |newest| newest.seq().max(kept.last)),
    };
    // Asked once the events are read: what went since the first look is lost too, but what was read before it went is not.
    let forgotten = outbox::extent(conn, project).await?.forgotten;
    let unread = events.first().map_or(kept.last, |oldest| oldest.seq() - 1);
    let lost = (forgotten.min(unread) - position).max(0);
    sqlx::query!(
        "update webhooks set position = greatest(position, $2), events_lost = events_lost + $3,
                events_lost_at = case when $3 > 0 then engine.now() else events_lost_at end
         where id = $1",
        webhook,
        reached,
        lost
    )
    .execute(conn)
    .await?;
    Ok(lost)
}

/// What is to be sent now, in the order of the events.
pub async fn waiting(conn: &mut PgConnection, webhook: Uuid, most: i64) -> sqlx::Result<Vec<Delivery>> {
    sqlx::query_as!(
        Delivery,
        "select id, event_id, event_type, seq, status, attempts, next_attempt_at, response_status, error, created_at,
                delivered_at
         from webhook_deliveries
         where webhook_id = $1 and status = 'pending' and next_attempt_at <= (select engine.now()) order by seq limit $2",
        webhook,
        most
    )
    .fetch_all(conn)
    .await
}

/// The event itself, unless it is no longer kept.
pub async fn event(
    conn: &mut PgConnection,
    project: Uuid,
    delivery: &Delivery,
) -> sqlx::Result<Option<CloudEvent>> {
    let one = Filter { project_id: project, after: delivery.seq - 1, limit: 1, ..Filter::default() };
    let found = outbox::told(conn, &one).await?.pop();
    Ok(found.filter(|event| event.id == delivery.event_id))
}

pub async fn delivered(conn: &mut PgConnection, id: Uuid, response_status: i32) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_deliveries set status = 'delivered', attempts = attempts + 1, next_attempt_at = null,
                response_status = $2, error = null, delivered_at = engine.now(), updated_at = engine.now()
         where id = $1",
        id,
        response_status
    )
    .execute(conn)
    .await
    .map(drop)
}

/// It is tried again after the pause; without one it is a dead letter.
pub async fn not_delivered(
    conn: &mut PgConnection,
    id: Uuid,
    response_status: Option<i32>,
    error: &str,
    pause: Option<Duration>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhook_deliveries set status = case when $4::float8 is null then 'failed' else 'pending' end,
                attempts = attempts + 1, next_attempt_at = engine.now() + make_interval(secs => $4::float8),
                response_status = $2, error = $3, updated_at = engine.now()
         where id = $1",
        id,
        response_status,
        error,
        pause.map(|pause| pause.as_secs_f64())
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Newest first.
pub async fn list(
    conn: &mut PgConnection,
    webhook: Uuid,
    status: Option<DeliveryStatus>,
    slice: Slice,
) -> sqlx::Result<Vec<Delivery>> {
    sqlx::query_as!(
        Delivery,
        "select id, event_id, event_type, seq, status, attempts, next_attempt_at, response_status, error, created_at,
                delivered_at
         from webhook_deliveries
         where webhook_id = $1 and ($2::text is null or status = $2) and ($3::uuid is null or id < $3)
         order by id desc limit $4",
        webhook,
        status.map(DeliveryStatus::as_str),
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

/// Sends these again, or every dead letter since a time, as if for the first time. Answers how many.
pub async fn replay(
    conn: &mut PgConnection,
    webhook: Uuid,
    ids: &[Uuid],
    failed_since: Option<DateTime<Utc>>,
) -> sqlx::Result<u64> {
    let again = sqlx::query!(
        "update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = engine.now(), delivered_at = null,
                updated_at = engine.now()
         where webhook_id = $1 and (id = any($2) or (status = 'failed' and created_at >= $3))",
        webhook,
        ids,
        failed_since
    )
    .execute(conn)
    .await?;
    Ok(again.rows_affected())
}

/// Forgets at most so many that came to an end, one way or the other, more than so many seconds ago.
pub async fn forget(conn: &mut PgConnection, seconds: f64, most: i64) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "delete from webhook_deliveries where id in (
             select id from webhook_deliveries
             where status <> 'pending' and updated_at < (select engine.now()) - make_interval(secs => $1)
             order by updated_at limit $2 for update skip locked)",
        seconds,
        most
    )
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
