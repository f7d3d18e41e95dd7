//! The runs and the processes that drive them.

use engine::{Kind, inspect};
use sqlx::PgConnection;

use super::Finding;

pub(super) async fn queue(conn: &mut PgConnection) -> sqlx::Result<Finding> {
    Ok(match inspect::queue_is_quiet(conn).await? {
        true => Finding::well("queue", "wakes workers without a lock"),
        false => Finding::wrong(
            "queue",
            "the NOTIFY trigger of apalis.jobs is on and serialises every start; as the owner run \
             `alter table apalis.jobs disable trigger notify_workers`",
        ),
    })
}

/// Unfinished runs need a living process; without runs, having none is worth a word and no more.
pub(super) async fn workers(conn: &mut PgConnection) -> sqlx::Result<Finding> {
    let processes = inspect::processes(conn).await?;
    let waiting: i64 = inspect::needed_kinds(conn).await?.iter().map(|kind| kind.runs).sum();
    let living: Vec<_> = processes.iter().filter(|process| process.living).collect();
    let slots: i32 = living.iter().map(|process| process.slots).sum();
    let silent = processes.len() - living.len();
    Ok(match (living.len(), silent) {
        (0, _) if waiting > 0 => Finding::wrong(
            "workers",
            format!("{waiting} runs are unfinished and no process drives them; start `gpuaas serve`"),
        ),
        (0, _) => Finding::warning("workers", "no process drives runs; start `gpuaas serve`"),
        (alive, 0) => {
            Finding::well("workers", format!("{alive} living, {slots} slots, {waiting} unfinished runs"))
        }
        (alive, silent) => Finding::warning(
            "workers",
            format!("{alive} living, {silent} silent past their lease; the living take over their runs"),
        ),
    })
}

/// They fire all the same, and their runs stand still. A release removes what it no longer has; this is another's.
pub(super) async fn schedules(conn: &mut PgConnection, known: &[Kind]) -> sqlx::Result<Finding> {
    let stranded = inspect::stranded_schedules(conn, known).await?;
    if stranded.is_empty() {
        return Ok(Finding::well("schedules", "each is of a workflow that somebody knows"));
    }
    let names: Vec<String> =
        stranded.iter().map(|one| format!("{} ({} v{})", one.name, one.kind, one.version)).collect();
    Ok(Finding::warning(
        "schedules",
        format!(
            "neither this binary nor a living process knows the workflow of {}; start the release that has it, or pause it",
            names.join(", ")
        ),
    ))
}

pub(super) async fn promises(conn: &mut PgConnection) -> sqlx::Result<Finding> {
    let mut violations = engine::check_invariants(conn).await?;
    violations.extend(activities::promises::of_the_platform(conn, None).await?);
    let Some(first) = violations.first() else {
        return Ok(Finding::well("promises", "every run keeps them"));
    };
    let run = first.run_id.map(|id| format!(" by run {id}")).unwrap_or_default();
    let (count, promise, detail) = (violations.len(), &first.promise, &first.detail);
    Ok(Finding::wrong("promises", format!("{count} broken; the first is {promise}{run}: {detail}")))
}

/// A run keeps the definition it began with, so a binary that lacks it would strand the run.
pub(super) async fn before_upgrade(conn: &mut PgConnection, known: &[Kind]) -> sqlx::Result<Finding> {
    let needed = inspect::needed_kinds(conn).await?;
    let is_known = |one: &inspect::NeededKind| {
        known.iter().any(|kind| kind.name == one.name && kind.version == one.version)
    };
    let stranded: Vec<String> = needed
        .iter()
        .filter(|one| !is_known(one))
        .map(|one| format!("{} v{} ({} runs)", one.name, one.version, one.runs))
        .collect();
    if stranded.is_empty() {
        return Ok(Finding::well("upgrade", "this binary can drive every unfinished run"));
    }
    let stranded = stranded.join(", ");
    Ok(Finding::wrong(
        "upgrade",
        format!("this binary cannot drive {stranded}; let them finish on the old one first"),
    ))
}
