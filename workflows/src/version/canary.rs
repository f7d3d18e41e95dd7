//! A canary: the version is open to a percentage of projects, or to those on a list, or both. While it runs it can only
//! grow; whoever wants fewer rolls back and begins anew.

use domain::Permission;
use domain::canary::Canary;
use domain::version_status::VersionAction;
use serde::Deserialize;
use sqlx::PgConnection;
use store::app_versions::AppVersion;
use store::projects;
use utoipa::ToSchema;
use uuid::Uuid;

use super::PromoteVersion;
use crate::action::{Action, Refused, Requester};

pub struct CanaryVersion;

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "percent": 10, "reason": "The first tenth." }))]
pub struct CanaryVersionInput {
    /// Kept with the version and in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
    /// Out of a hundred projects, chosen by a stable hash: whoever is in stays in as it grows.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 100)]
    pub percent: Option<u8>,
    /// Projects that are in whatever the percentage.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub project_ids: Option<Vec<Uuid>>,
}

impl Action for CanaryVersion {
    type Subject = AppVersion;
    type Input = CanaryVersionInput;
    type Run = PromoteVersion;

    const VERB: &'static str = "canary";
    const OPERATION: &'static str = "canary_version";
    const SUMMARY: &'static str = "Open a staged version to some projects, or a canary to more";
    const PERMISSION: Permission = Permission::AppsVersionManage;

    fn is_legal(version: &AppVersion) -> bool {
        VersionAction::Canary.leads(version.status).is_some()
    }

    fn reason(input: &CanaryVersionInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        version: &AppVersion,
        input: CanaryVersionInput,
        by: Requester,
    ) -> Result<PromoteVersion, Refused> {
        let asked = input.project_ids.unwrap_or_default();
        let mut problems = Vec::new();
        for (place, project) in asked.iter().enumerate() {
            if projects::org_of(conn, *project).await?.is_none() {
                problems.push((format!("/project_ids/{place}"), "is not a project".to_owned()));
            }
        }
        let before = version.canary.clone().unwrap_or_default();
        let canary = grown(&before, input.percent, asked);
        if canary.percent < before.percent {
            let rule = format!("must be at least {}: a running canary only grows", before.percent);
            problems.push(("/percent".to_owned(), rule));
        }
        if canary == Canary::default() {
            problems
                .push(("/percent".to_owned(), "or project_ids must name at least one project".to_owned()));
        }
        if !problems.is_empty() {
            return Err(Refused::Invalid(problems));
        }
        Ok(PromoteVersion { canary: Some(canary), ..PromoteVersion::new(version, VersionAction::Canary, by) })
    }
}

fn grown(before: &Canary, percent: Option<u8>, asked: Vec<Uuid>) -> Canary {
    let mut project_ids = before.project_ids.clone();
    project_ids.extend(asked);
    project_ids.sort_unstable();
    project_ids.dedup();
    Canary { percent: percent.unwrap_or(before.percent), project_ids }
}
