//! A new instance: what was asked for, completed with what is usual, held against the version, and placed.

use std::collections::BTreeMap;

use domain::ErrorCode::{PlacementUnsatisfiable, PolicyDenied};
use domain::manifest::{self, Problem, Version};
use domain::placement::{self, Candidate, Grant, Row, Wanted};
use domain::{ControlPlaneScope, OperatingMode, compose};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::admission::pair_problem;
use super::images::{self, Which};
use super::{Admitted, Purpose, admit, credentials, places};
use crate::app_instance_artifacts::UsedArtifact;
use crate::app_instance_releases::Release;
use crate::app_versions::AppVersion;
use crate::{Refused, budgets};

/// What somebody asks for. What is left out the server decides.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    pub operating_mode: Option<OperatingMode>,
    pub control_plane_scope: Option<ControlPlaneScope>,
    pub config: Option<Value>,
    pub placement_intent: Option<Value>,
    pub resources: manifest::Wanted,
    pub host_port: Option<u16>,
    pub variant: Option<String>,
    pub artifact_id: Option<Uuid>,
    pub packages: Vec<String>,
    /// Class to credential.
    pub credentials: BTreeMap<String, Uuid>,
}

impl Wish {
    /// Who says nothing asks for nothing.
    pub(super) fn config(&self) -> Value {
        self.config.clone().unwrap_or_else(|| json!({}))
    }
}

/// What the instance would be.
#[derive(Clone, Debug)]
pub struct Decision {
    pub admitted: Admitted,
    pub allocation_id: Uuid,
    pub placement_intent: Value,
    pub images: Vec<UsedArtifact>,
    /// As it stands before it is launched.
    pub release: Release,
    pub matrix: Vec<Row>,
}

/// Everything that is wrong with the values is told at once, the named place among them; only then is room looked for.
pub async fn decide(
    conn: &mut PgConnection,
    place: (Uuid, Uuid),
    version: &AppVersion,
    wish: &Wish,
    purpose: Purpose,
) -> Result<Decision, Refused> {
    let asked = (wish.operating_mode, wish.control_plane_scope);
    let mut wrong: Vec<(String, String)> = pair_problem(asked).into_iter().collect();
    // Of a pair that there cannot be, neither half says what is wanted.
    let pair = if wrong.is_empty() { asked } else { (None, None) };
    let admitted = admit(conn, place, version, pair, purpose).await?;
    within_budget(conn, place.1).await?;
    let declared = &admitted.manifest.version;
    wrong.extend(credentials::problems(conn, place.1, declared, &wish.credentials).await?);
    let candidates = places::of_project(conn, place.1, wish.host_port).await?;
    wrong.extend(unknown_place(wish, &candidates));
    let grant = values(declared, wish, wrong)?;
    admitted.allows(&grant)?;
    let wanted = Wanted::of(&declared.compatibility, grant);
    let (at, matrix) = placed(&wanted, &candidates, named_place(wish))?;
    let placement_intent = intent(declared, wish, at)?;
    let which = Which {
        accelerator: at.accelerator.as_deref(),
        variant: wish.variant.as_deref(),
        artifact_id: wish.artifact_id,
    };
    let images = images::choose(conn, version, declared, which, purpose).await?;
    let (allocation_id, release) = (at.allocation_id, unlaunched(declared, wish, grant));
    Ok(Decision { allocation_id, placement_intent, images, release, matrix, admitted })
}

fn unlaunched(declared: &Version, wish: &Wish, grant: Grant) -> Release {
    Release {
        version: declared.version.clone(),
        generation: 1,
        profile: json!(declared.runtime_profile),
        config: declared.effective_config(&wish.config()),
        resources: json!(grant),
        ports: json!({}),
        gpus: Vec::new(),
    }
}

/// A project that has spent what it meant to takes nothing new on, where its budget says so.
pub async fn within_budget(conn: &mut PgConnection, project: Uuid) -> Result<(), Refused> {
    let standing = budgets::standing(conn, project).await?;
    if !standing.denies_new() {
        return Ok(());
    }
    let limit = standing.budget.and_then(|budget| budget.amount_minor);
    Err(Refused::no(PolicyDenied, "The project has spent its budget of this month.")
        .with("reason", "budget_exceeded")
        .with("budget_minor", json!(limit))
        .with("spent_minor", standing.spent_minor))
}

/// What the instance gets, or all that is wrong with what was asked for, beside what is known to be.
fn values(declared: &Version, wish: &Wish, mut wrong: Vec<(String, String)>) -> Result<Grant, Refused> {
    let mut below = |pointer: &str, problems: Vec<Problem>| {
        wrong.extend(problems.into_iter().map(|one| (format!("{pointer}{}", one.pointer), one.message)));
    };
    below("/config", declared.config_problems(&wish.config()));
    if let Some(intent) = &wish.placement_intent {
        below("/placement_intent", declared.placement_problems(intent));
    }
    below("/packages", declared.package_problems(&wish.packages));
    let granted = declared.grant(wish.resources);
    let granted = granted.map_err(|problems| below("/resources", problems)).ok();
    wrong.extend(images::variant_problem(declared, wish.variant.as_deref()));
    wrong.extend(unrenderable(declared, wish, granted));
    let ports = declared.runtime_profile.as_ref().map_or(0, |profile| profile.ports.len());
    if wish.host_port.is_some() && ports == 0 {
        wrong.push(("/resources/host_port".to_owned(), "is not taken: the version has no port".to_owned()));
    }
    match granted {
        Some(manifest::Granted { gpu_count, cpu_cores, memory_gib }) if wrong.is_empty() => {
            Ok(Grant { gpu_count, cpu_cores, memory_gib, host_port: wish.host_port })
        }
        _ => Err(Refused::Invalid(wrong)),
    }
}

/// A stack is rendered when it is launched; what cannot be is told now. A share that nobody gets hides nothing of the rest.
fn unrenderable(
    declared: &Version,
    wish: &Wish,
    granted: Option<manifest::Granted>,
) -> Vec<(String, String)> {
    let usual = || declared.grant(manifest::Wanted::default()).ok();
    let Some((granted, profile)) = granted.or_else(usual).zip(declared.runtime_profile.as_ref()) else {
        return Vec::new();
    };
    let manifest::Granted { gpu_count, cpu_cores, memory_gib } = granted;
    let grant = Grant { gpu_count, cpu_cores, memory_gib, host_port: wish.host_port };
    let config = declared.effective_config(&wish.config());
    let found = compose::problems(profile, &config, grant);
    found.into_iter().map(|one| (one.pointer, one.message)).collect()
}

/// Where it goes, as it was asked for or else as it was decided; the version's schema holds for both.
fn intent(declared: &Version, wish: &Wish, at: &Candidate) -> Result<Value, Refused> {
    if let Some(asked) = &wish.placement_intent {
        return Ok(asked.clone());
    }
    let decided = json!({ "allocation_id": at.allocation_id });
    let wrong: Vec<(String, String)> = declared
        .placement_problems(&decided)
        .into_iter()
        .map(|one| (format!("/placement_intent{}", one.pointer), one.message))
        .collect();
    if wrong.is_empty() { Ok(decided) } else { Err(Refused::Invalid(wrong)) }
}

fn named_place(wish: &Wish) -> Option<Uuid> {
    wish.placement_intent.as_ref()?["allocation_id"].as_str()?.parse().ok()
}

fn unknown_place(wish: &Wish, candidates: &[Candidate]) -> Option<(String, String)> {
    let named = named_place(wish)?;
    let unknown = !candidates.iter().any(|one| one.allocation_id == named);
    let pointer = "/placement_intent/allocation_id".to_owned();
    unknown.then(|| (pointer, "is not an allocation of this project".to_owned()))
}

/// The allocation that was named, or else the first that passes every predicate; with the whole matrix.
fn placed<'a>(
    wanted: &Wanted,
    candidates: &'a [Candidate],
    named: Option<Uuid>,
) -> Result<(&'a Candidate, Vec<Row>), Refused> {
    let matrix = placement::matrix(wanted, candidates);
    let fit = match named {
        Some(named) => matrix.iter().find(|row| row.allocation_id == named && row.fits),
        None => matrix.iter().find(|row| row.fits),
    };
    let fit = fit.map(|row| row.allocation_id);
    match candidates.iter().find(|one| Some(one.allocation_id) == fit) {
        Some(candidate) => Ok((candidate, matrix)),
        None => Err(unplaced(named, &matrix)),
    }
}

fn unplaced(named: Option<Uuid>, matrix: &[Row]) -> Refused {
    let message = match (named, matrix.is_empty()) {
        (Some(_), _) => "The named allocation cannot carry the instance; the matrix says why.",
        (None, true) => "The project has no allocation.",
        (None, false) => "No allocation can carry the instance; the matrix says why.",
    };
    Refused::no(PlacementUnsatisfiable, message).with("matrix", json!(matrix))
}
