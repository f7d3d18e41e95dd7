//! `node.update_agent`: a node's agent becomes the program of another release, or stays what it is. The node has the bytes from the
//! platform, tries them, and returns to its old program where the new one does not report; its word decides how the run ends.

use std::time::Duration;

use activities::Env;
use activities::order_update::{OrderUpdate, UPDATED};
use domain::artifact::Trust;
use domain::manifest::ArtifactKind;
use domain::{Digest, ErrorCode, NodeStatus, Permission};
use engine::{Halt, OnExhausted, PlannedStep, Run, Workflow};
use node_protocol::program_for;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::nodes::Node;
use store::platform_releases;
use utoipa::ToSchema;

use crate::action::{Action, Refused, Requester};
use crate::instance::answer;

/// A program takes its time over a slow line, and its trial up to ten minutes more.
const UPDATES_WITHIN: Duration = Duration::from_secs(45 * 60);

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "version": "1.2.0" }))]
pub struct UpdateNodeInput {
    /// A release of the platform, which has the program for the node's machine.
    #[schema(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$")]
    pub version: String,
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

pub struct UpdateNode;

impl Action for UpdateNode {
    type Subject = Node;
    type Input = UpdateNodeInput;
    type Run = UpdateAgent;

    const VERB: &'static str = "update";
    const OPERATION: &'static str = "update_node";
    const SUMMARY: &'static str = "Have a node's agent become that of another release";
    const PERMISSION: Permission = Permission::NodesManage;
    const REFUSES: &'static [ErrorCode] =
        &[ErrorCode::ReleaseNotFound, ErrorCode::ArtifactNotFound, ErrorCode::ArtifactUntrusted];

    /// A node that nobody hears would neither come for the program nor tell of it.
    fn is_legal(node: &Node) -> bool {
        matches!(node.status(), Ok(NodeStatus::Active | NodeStatus::Drained))
    }

    fn reason(input: &UpdateNodeInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        node: &Node,
        input: UpdateNodeInput,
        _: Requester,
    ) -> Result<UpdateAgent, Refused> {
        let release = platform_releases::find(conn, &input.version).await?;
        let release = release.ok_or_else(|| {
            Refused::no(ErrorCode::ReleaseNotFound, "The platform has no release of this version.")
        })?;
        let machine = node.inventory.as_ref().and_then(|inventory| inventory["machine"].as_str());
        let name = program_for(machine);
        let artifacts = platform_releases::artifacts_of(conn, &[release.id]).await?;
        let program = artifacts
            .into_iter()
            .find(|one| one.name == name && one.artifact_kind == ArtifactKind::Blob.as_str());
        let program = program.ok_or_else(|| {
            let message = format!("The release has no {name}, which is what the node runs.");
            Refused::no(ErrorCode::ArtifactNotFound, message).with("artifact", name.as_str())
        })?;
        if program.trust_state != Trust::Verified.as_str() {
            let message = format!("The {name} of this release is {}.", program.trust_state);
            return Err(Refused::no(ErrorCode::ArtifactUntrusted, message).with("state", program.trust_state));
        }
        Ok(UpdateAgent {
            order: OrderUpdate {
                node_id: node.id,
                artifact_id: program.artifact_id,
                version: release.version,
                artifact: name,
                digest: digest(&program.digest)?,
                size_bytes: program.size_bytes.unsigned_abs(),
            },
        })
    }
}

fn digest(text: &str) -> sqlx::Result<Digest> {
    text.parse::<Digest>().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateAgent {
    #[serde(flatten)]
    pub order: OrderUpdate,
}

impl Workflow for UpdateAgent {
    const NAME: &'static str = "node.update_agent";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::undoable("order_update"), PlannedStep::wait(UPDATED)];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.step(self.order.clone()).await?;
        answer(run, UPDATED, UPDATES_WITHIN).await?;
        let OrderUpdate { version, digest, .. } = &self.order;
        run.output(&json!({ "version": version, "digest": digest })).await
    }
}
