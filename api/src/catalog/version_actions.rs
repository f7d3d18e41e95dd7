//! `A/apps/catalog/{slug}/versions/{version}/…`: how the API finds and shows a version that is acted on.

use api_types::{AppVersion, AppVersionAccepted, WorkflowHandle};
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use domain::ErrorCode;
use sqlx::PgConnection;
use store::app_versions as table;

use super::shown;
use crate::action::Resource;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::path;
use crate::router::ADMIN;

/// The `{slug}` and `{version}` of a path.
#[derive(Clone, Debug)]
pub(crate) struct VersionKey {
    slug: String,
    version: String,
}

impl VersionKey {
    pub(crate) async fn find(&self, conn: &mut PgConnection) -> Result<table::AppVersion, ApiError> {
        let found = table::find(conn, &self.slug, &self.version).await?;
        found.ok_or_else(|| ApiError::plain(ErrorCode::VersionNotFound))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for VersionKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<VersionKey, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|rejection| ApiError::new(ErrorCode::InvalidRequest, rejection.body_text()))?;
        let part = |name| path::value(&params, name).unwrap_or_default().to_owned();
        Ok(VersionKey { slug: part("slug"), version: part("version") })
    }
}

impl Resource for table::AppVersion {
    const PLACE: &'static str = ADMIN;
    const PATH: &'static str = "/apps/catalog/{slug}/versions/{version}";
    const MISSING: ErrorCode = ErrorCode::VersionNotFound;
    type Key = VersionKey;
    type Shown = AppVersion;
    type Accepted = AppVersionAccepted;

    async fn find_locked(
        conn: &mut PgConnection,
        _: &Caller,
        key: &VersionKey,
    ) -> Result<Option<table::AppVersion>, ApiError> {
        Ok(table::find_locked(conn, &key.slug, &key.version).await?)
    }

    async fn shown(&self, _: &mut PgConnection, caller: &Caller) -> Result<AppVersion, ApiError> {
        Ok(shown(self, caller))
    }

    fn accepted(version: AppVersion, workflow: WorkflowHandle) -> AppVersionAccepted {
        AppVersionAccepted { version, workflow }
    }
}
