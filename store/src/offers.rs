//! What an app offers a project: its active versions, and those in a canary that the project is in. Who is in a canary is
//! the domain's rule alone; the database only says which canaries there are.

use std::collections::HashMap;

use domain::canary::Canary;
use domain::manifest::number;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::Slice;
use crate::apps::{self, App};

/// The newest version the project may deploy of each app.
pub async fn newest(
    conn: &mut PgConnection,
    project: Uuid,
    apps: &[App],
) -> sqlx::Result<HashMap<Uuid, String>> {
    let mut offers: HashMap<Uuid, String> =
        apps.iter().filter_map(|app| Some((app.id, app.active_version.clone()?))).collect();
    let rolling: Vec<Uuid> = apps.iter().filter(|app| app.canaries > 0).map(|app| app.id).collect();
    if rolling.is_empty() {
        return Ok(offers);
    }
    let canaries = sqlx::query!(
        r#"select id, app_id, version, canary as "canary!: Json<Canary>" from app_versions
           where app_id = any($1) and status = 'canary'"#,
        &rolling
    )
    .fetch_all(conn)
    .await?;
    for row in canaries.into_iter().filter(|row| row.canary.includes(row.id, project)) {
        let newest = offers.entry(row.app_id).or_insert_with(|| row.version.clone());
        if number::compare(&row.version, newest).is_gt() {
            *newest = row.version;
        }
    }
    Ok(offers)
}

/// A page of the apps that the project is entitled to and may deploy, each with the newest version it may.
pub async fn page(
    conn: &mut PgConnection,
    project: Uuid,
    mut slice: Slice,
) -> sqlx::Result<Vec<(App, String)>> {
    let wanted = usize::try_from(slice.limit).unwrap_or_default();
    let mut offered = Vec::new();
    // A row is passed over only where all an app has is a canary without this project.
    loop {
        // After the first look only as many as are missing.
        slice.limit = i64::try_from(wanted - offered.len()).unwrap_or(i64::MAX);
        let rows = apps::list_entitled(conn, project, slice).await?;
        let (were_last, last) = (rows.len() + offered.len() < wanted, rows.last().map(|app| app.id));
        let mut versions = newest(conn, project, &rows).await?;
        offered.extend(
            rows.into_iter().filter_map(|app| versions.remove(&app.id).map(|version| (app, version))),
        );
        if were_last || offered.len() == wanted {
            return Ok(offered);
        }
        slice.after = last;
    }
}
