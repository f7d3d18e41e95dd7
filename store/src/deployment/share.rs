//! The part of its allocation that an instance serves with, which a version that takes its place may have. What else stands on
//! the books, such as an older workload that its node has yet to take away, is nobody's to give.

use domain::placement::Grant;
use sqlx::PgConnection;

use crate::app_instance_artifacts::Standing;
use crate::app_instances::AppInstance;
use crate::{Refused, app_instance_releases};

#[derive(Clone, Debug, Default)]
pub struct Share {
    pub grant: Grant,
    /// Which GPUs of its node.
    pub gpus: Vec<i32>,
}

/// None of it where nothing serves.
pub async fn own_share(conn: &mut PgConnection, instance: &AppInstance) -> Result<Share, Refused> {
    let serving = app_instance_releases::find(conn, instance.id, Standing::Serving).await?;
    let Some(serving) = serving else { return Ok(Share::default()) };
    let grant = serde_json::from_value(serving.resources);
    let grant = grant.map_err(|error| Refused::Database(sqlx::Error::Decode(Box::new(error))))?;
    Ok(Share { grant, gpus: serving.gpus })
}
