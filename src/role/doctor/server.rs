//! The database server, its clock, the schema in it, and the rights we serve with.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use store::migrate::{Fit, RELEASE};

use super::Finding;

const OLDEST_POSTGRES: i32 = 150_000;

pub(super) async fn examine(conn: &mut PgConnection) -> sqlx::Result<Vec<Finding>> {
    let before = local_time();
    let facts = store::server::facts(conn).await?;
    let skew = facts.clock - (before + (local_time() - before) / 2);
    Ok(vec![version(&facts), durability(&facts), clock(skew)])
}

fn version(facts: &store::server::Facts) -> Finding {
    let version = format!("Postgres {} as {}", facts.version, facts.role);
    if facts.version_number < OLDEST_POSTGRES {
        return Finding::wrong("database", format!("{version}; the platform needs 15 or newer"));
    }
    Finding::well("database", version)
}

fn durability(facts: &store::server::Facts) -> Finding {
    let settings = [
        (facts.fsync, "fsync"),
        (facts.full_page_writes, "full_page_writes"),
        (facts.synchronous_commit, "synchronous_commit"),
    ];
    let off: Vec<&str> = settings.into_iter().filter(|(on, _)| !on).map(|(_, name)| name).collect();
    if !off.is_empty() {
        let off = off.join(", ");
        return Finding::wrong(
            "durability",
            format!("{off} off: a power cut would lose confirmed work; turn it on"),
        );
    }
    if !facts.checksums {
        return Finding::warning("durability", "data checksums are off; see pg_checksums");
    }
    Finding::well("durability", "fsync and checksums are on")
}

fn clock(skew: TimeDelta) -> Finding {
    let apart = format!("{} ms between this machine and the database", skew.num_milliseconds());
    match skew.abs() {
        far if far > TimeDelta::seconds(5) => Finding::wrong("clock", format!("{apart}; set both by NTP")),
        some if some > TimeDelta::seconds(1) => {
            Finding::warning("clock", format!("{apart}; set both by NTP"))
        }
        _ => Finding::well("clock", apart),
    }
}

pub(super) async fn schema(conn: &mut PgConnection) -> Finding {
    match store::migrate::check(conn).await {
        Ok(Fit::Current) => Finding::well("schema", format!("current, release {RELEASE}")),
        Ok(Fit::Newer { release }) => {
            Finding::warning("schema", format!("of release {release}, newer than this binary; upgrade soon"))
        }
        Err(error) => Finding::wrong("schema", error.to_string()),
    }
}

pub(super) async fn rights(conn: &mut PgConnection) -> sqlx::Result<Finding> {
    let excess = store::roles::excess_rights(conn).await?;
    if excess.is_empty() {
        return Ok(Finding::well("rights", "the serving role makes no tables and rewrites no history"));
    }
    let excess = excess.join(", ");
    Ok(Finding::wrong(
        "rights",
        format!("this role {excess}; serve with `database.app_role`, not with the owner"),
    ))
}

/// The one place that needs the machine's own clock: to compare it with the database's.
#[expect(clippy::disallowed_methods)]
fn local_time() -> DateTime<Utc> {
    Utc::now()
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn clocks_may_differ_a_little_but_not_much_either_way() {
        for (seconds, verdict) in [
            (0, Verdict::Well),
            (2, Verdict::Warning),
            (-2, Verdict::Warning),
            (6, Verdict::Wrong),
            (-6, Verdict::Wrong),
        ] {
            assert_eq!(clock(TimeDelta::seconds(seconds)).verdict, verdict, "{seconds} s");
        }
    }
}
