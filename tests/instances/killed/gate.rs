//! A gate in the database, at which the write waits that brings a run to a step: what came before it is done and not yet
//! written down. A story closes it, waits until somebody stands there, strikes, and opens it.

use std::time::Duration;

use sqlx::{PgPool, Postgres, Transaction};

use crate::support::story::Story;

const BUILD: &str = "
    create table story_gate (kind text not null, step text not null);
    create function story_gate_is_closed() returns trigger language plpgsql as $$
    begin
        if exists (select 1 from public.story_gate g join engine.run r on r.kind = g.kind where r.id = new.run_id
                   and new.events::jsonb @> jsonb_build_array(jsonb_build_object('e', 'intend', 'name', g.step))) then
            perform pg_advisory_xact_lock(20261118);
        end if;
        return new;
    end $$;
    create trigger story_gate before insert on engine.journal for each row execute function story_gate_is_closed();";

/// Those who stand at the gate of this database.
const STANDS_THERE: &str = "from pg_locks where locktype = 'advisory' and objid = 20261118 and not granted
    and database = (select oid from pg_database where datname = current_database())";

/// What becomes of the write that stands at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It is made, although whoever asked for it may never learn so.
    Kept,
    Lost,
}

pub struct Gate {
    pool: PgPool,
    step: &'static str,
    closed: Transaction<'static, Postgres>,
}

/// Once for every database.
pub async fn build(story: &Story) {
    sqlx::raw_sql(BUILD).execute(&story.pool).await.expect("a gate");
}

impl Gate {
    /// Before whatever will come to it is begun.
    pub async fn close(story: &Story, (kind, step): (&'static str, &'static str)) -> Gate {
        let mut closed = story.pool.begin().await.expect("a transaction");
        let lock = "select pg_advisory_xact_lock(20261118)";
        sqlx::query(lock).execute(&mut *closed).await.expect("the gate closes");
        let pool = story.pool.clone();
        let named = sqlx::query("insert into story_gate values ($1, $2)").bind(kind).bind(step);
        named.execute(&pool).await.expect("the gate is named");
        Gate { pool, step, closed }
    }

    /// Waits for somebody to stand there. One that waits for too long comes again, so this must not.
    pub async fn is_reached(&self, else_say: impl AsyncFn() -> String) {
        let asked = format!("select exists (select 1 {STANDS_THERE})");
        for _ in 0..60_000 {
            let stands = sqlx::query_scalar(sqlx::AssertSqlSafe(asked.clone()));
            if stands.fetch_one(&self.pool).await.expect("a look at the gate") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("nobody came to {}\n{}", self.step, else_say().await);
    }

    pub async fn open(self, write: Write) {
        sqlx::query("delete from story_gate").execute(&self.pool).await.expect("the gate is nobody's");
        if write == Write::Lost {
            let ends = format!("select pg_terminate_backend(pid) {STANDS_THERE}");
            sqlx::query(sqlx::AssertSqlSafe(ends)).execute(&self.pool).await.expect("the write ends");
        }
        self.closed.rollback().await.expect("the gate opens");
    }
}
