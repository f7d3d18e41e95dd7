//! `P/app-artifacts/{id}/promote|deprecate|retire`: how the API finds and shows an artifact that is acted on.

use api_types::{Artifact, ArtifactAccepted, WorkflowHandle};
use domain::ErrorCode;
use sqlx::PgConnection;
use store::app_artifacts::{self, AppArtifact};

use super::{offered, shown};
use crate::action::Resource;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Id;
use crate::router::PROJECT;

impl Resource for AppArtifact {
    const PLACE: &'static str = PROJECT;
    const PATH: &'static str = "/app-artifacts/{id}";
    const MISSING: ErrorCode = ErrorCode::ArtifactNotFound;
    type Key = Id;
    type Shown = Artifact;
    type Accepted = ArtifactAccepted;

    async fn find_locked(
        conn: &mut PgConnection,
        caller: &Caller,
        key: &Id,
    ) -> Result<Option<AppArtifact>, ApiError> {
        let found = app_artifacts::find_locked(conn, key.or(Self::MISSING)?).await?;
        Ok(found.filter(|artifact| Some(artifact.project_id) == caller.scope.project()))
    }

    async fn shown(&self, _: &mut PgConnection, _: &Caller) -> Result<Artifact, ApiError> {
        shown(self.clone())
    }

    async fn offered(&self, _: &mut PgConnection) -> Result<Vec<&'static str>, ApiError> {
        Ok(offered(self, self.trust()?))
    }

    fn accepted(artifact: Artifact, workflow: WorkflowHandle) -> ArtifactAccepted {
        ArtifactAccepted { artifact, workflow }
    }
}
