//! What is measured of our own tables, for `/metrics`: sums and ages, read in one pass over what is under way. Nothing here
//! counts what only grows.

use sqlx::PgConnection;
use uuid::Uuid;

/// A word and how many there are of it.
#[derive(Clone, Debug)]
pub struct Counted {
    pub word: String,
    pub number: i64,
}

/// Instances that are not decommissioned, by status.
pub async fn instances(conn: &mut PgConnection) -> sqlx::Result<Vec<Counted>> {
    sqlx::query_as!(
        Counted,
        r#"select status as word, count(*) as "number!" from app_instances where status <> 'decommissioned' group by status"#
    )
    .fetch_all(conn)
    .await
}

#[derive(Clone, Debug)]
pub struct NodeReading {
    pub name: String,
    pub status: String,
    /// Since its agent was last heard of; `None` before the first time.
    pub silent_seconds: Option<f64>,
    /// Tasks that its agent has not finished, and how long the oldest has waited.
    pub open_tasks: i64,
    pub oldest_task_seconds: f64,
}

pub async fn nodes(conn: &mut PgConnection) -> sqlx::Result<Vec<NodeReading>> {
    sqlx::query_as!(
        NodeReading,
        r#"with clock as materialized (select engine.now() as now)
           select n.name, n.status, extract(epoch from now - n.last_seen_at)::float8 as silent_seconds,
                  count(t.id) as "open_tasks!",
                  coalesce(extract(epoch from now - min(t.created_at)), 0)::float8 as "oldest_task_seconds!"
           from clock, nodes n left join node_tasks t on t.node_id = n.id and t.finished_at is null
           group by n.id, now order by n.name"#
    )
    .fetch_all(conn)
    .await
}

#[derive(Clone, Debug)]
pub struct OutboxReading {
    /// Events that have no number yet, and how long the oldest has none.
    pub unnumbered: i64,
    pub oldest_seconds: f64,
}

pub async fn outbox(conn: &mut PgConnection) -> sqlx::Result<OutboxReading> {
    sqlx::query_as!(
        OutboxReading,
        r#"select count(*) as "unnumbered!",
                  coalesce(extract(epoch from engine.now() - min(at)), 0)::float8 as "oldest_seconds!"
           from outbox where seq is null"#
    )
    .fetch_one(conn)
    .await
}

#[derive(Clone, Debug)]
pub struct WebhookReading {
    pub active: i64,
    /// Of the active ones, those whose last try failed.
    pub failing: i64,
    pub disabled: i64,
    /// Events that active webhooks have not taken up.
    pub behind: i64,
    /// Deliveries that are tried again, and how long the oldest due one has waited past its time. While its webhook rests,
    /// nothing is due.
    pub waiting: i64,
    pub overdue_seconds: f64,
    pub dead: i64,
}

pub async fn webhooks(conn: &mut PgConnection) -> sqlx::Result<WebhookReading> {
    sqlx::query_as!(
        WebhookReading,
        r#"select hooks.active as "active!", hooks.failing as "failing!", hooks.disabled as "disabled!",
                  hooks.behind as "behind!", waiting.number as "waiting!", waiting.overdue as "overdue_seconds!",
                  dead.number as "dead!"
           from (select count(*) filter (where status = 'active') as active,
                        count(*) filter (where status = 'active' and failures > 0) as failing,
                        count(*) filter (where status = 'disabled') as disabled,
                        coalesce(sum(greatest(c.last_seq - w.position, 0)) filter (where status = 'active'), 0)::bigint as behind
                 from webhooks w left join event_counters c on c.project_id = w.project_id) hooks,
                (select count(*) as number,
                        greatest(coalesce(extract(epoch from engine.now() - min(greatest(d.next_attempt_at, w.rests_until))
                            filter (where w.status = 'active')), 0), 0)::float8 as overdue
                 from webhook_deliveries d join webhooks w on w.id = d.webhook_id where d.status = 'pending') waiting,
                (select count(*) as number from webhook_deliveries where status = 'failed') dead"#
    )
    .fetch_one(conn)
    .await
}

/// A webhook whose receiver takes nothing.
#[derive(Clone, Debug)]
pub struct FailingWebhook {
    pub id: Uuid,
    pub project_id: Uuid,
    pub seconds: f64,
    /// Events that it has not taken up.
    pub behind: i64,
}

/// The active ones, those first that fail the longest; no more than a page of measures should hold.
pub async fn failing_webhooks(conn: &mut PgConnection) -> sqlx::Result<Vec<FailingWebhook>> {
    sqlx::query_as!(
        FailingWebhook,
        r#"select w.id, w.project_id, greatest(extract(epoch from engine.now() - w.failing_since), 0)::float8 as "seconds!",
                  greatest(coalesce(c.last_seq - w.position, 0), 0) as "behind!"
           from webhooks w left join event_counters c on c.project_id = w.project_id
           where w.status = 'active' and w.failing_since is not null order by w.failing_since limit 100"#
    )
    .fetch_all(conn)
    .await
}

#[derive(Clone, Debug)]
pub struct RelayReading {
    /// Events that were not passed on to the stream outside, and how long ago the oldest of them happened.
    pub behind: i64,
    pub oldest_seconds: f64,
}

/// Where nothing was ever passed on there is no stream, and nothing is behind.
pub async fn relay(conn: &mut PgConnection) -> sqlx::Result<RelayReading> {
    sqlx::query_as!(
        RelayReading,
        r#"select coalesce(sum(c.last_seq - reached.seq), 0)::bigint as "behind!",
                  greatest(coalesce(extract(epoch from engine.now() - min(oldest.at)), 0), 0)::float8 as "oldest_seconds!"
           from event_counters c left join event_relays r on r.project_id = c.project_id
           cross join lateral (select greatest(r.position, c.forgotten) as seq) reached
           left join lateral (select o.at from outbox o where o.project_id = c.project_id and o.seq > reached.seq
                              order by o.seq limit 1) oldest on true
           where c.last_seq > reached.seq and exists (select from event_relays)"#
    )
    .fetch_one(conn)
    .await
}

#[derive(Clone, Debug)]
pub struct RollupReading {
    /// Windows that are over and not rated, but for those that were put off, and since when the oldest is over.
    pub due: i64,
    pub lag_seconds: f64,
    /// Entries of all ledgers together.
    pub ledger_entries: i64,
    /// Projects that owe something.
    pub negative_balances: i64,
    /// Projects whose usage, or a part of it, cannot be rated; what waits for that is not among those above.
    pub set_aside: i64,
}

pub async fn rollup(conn: &mut PgConnection) -> sqlx::Result<RollupReading> {
    sqlx::query_as!(
        RollupReading,
        r#"select due.windows as "due!", due.lag as "lag_seconds!", ledgers.entries as "ledger_entries!",
                  ledgers.negative as "negative_balances!", (select count(*) from unrated_projects) as "set_aside!"
           from (select count(*) as windows, coalesce(extract(epoch from engine.now() - min(window_end)), 0)::float8 as lag
                 from open_windows o where window_end <= (select engine.now()) and o.tries = 0
                   and not exists (select from unrated_projects u where u.project_id = o.project_id and not u.in_part)) due,
                (select coalesce(sum(seq), 0)::bigint as entries, count(*) filter (where balance_minor < 0) as negative
                 from ledger_heads) ledgers"#
    )
    .fetch_one(conn)
    .await
}
