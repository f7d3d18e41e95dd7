//! Whether somebody listens to nodes, and since when. A node that nobody could hear has not fallen silent.

use sqlx::PgConnection;

/// Longer than the time between two marks, and shorter than the silence of a node that is given up for lost.
pub const BREAK_SECONDS: f64 = 30.0;

/// Whoever answers nodes says so, every few seconds. After a break it begins anew.
pub async fn mark(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into listening as l (since, until) select now, now from engine.now() now
         on conflict (one) do update set until = greatest(l.until, excluded.until),
             since = case when l.until < excluded.until - make_interval(secs => $1) then excluded.since else l.since end",
        BREAK_SECONDS
    )
    .execute(conn)
    .await
    .map(drop)
}
