//! `A/nodes/{id}/update`: how the API finds and shows a node that is acted on.

use api_types::{Node as Shown, NodeWithRun, WorkflowHandle};
use domain::ErrorCode;
use sqlx::PgConnection;
use store::nodes::{self as table, Node};

use super::shown;
use crate::action::Resource;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Id;
use crate::router::ADMIN;

impl Resource for Node {
    const PLACE: &'static str = ADMIN;
    const PATH: &'static str = "/nodes/{id}";
    const MISSING: ErrorCode = ErrorCode::NodeNotFound;
    type Key = Id;
    type Shown = Shown;
    type Accepted = NodeWithRun;

    async fn find_locked(conn: &mut PgConnection, _: &Caller, key: &Id) -> Result<Option<Node>, ApiError> {
        Ok(table::find_locked(conn, key.or(Self::MISSING)?).await?)
    }

    async fn shown(&self, _: &mut PgConnection, _: &Caller) -> Result<Shown, ApiError> {
        shown(self.clone())
    }

    fn accepted(node: Shown, workflow: WorkflowHandle) -> NodeWithRun {
        NodeWithRun { node, workflow }
    }
}
