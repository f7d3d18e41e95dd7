//! The credentials that a version asks for and a launch names: each class to one of the project's secrets in custody.

use std::collections::BTreeMap;

use domain::ErrorCode::AccessCredentialNotFound;
use domain::manifest::Version;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app_instances::AppInstance;
use crate::{Refused, access_credentials};

/// What launches call the key by which their machine is set up, where a version asks for one.
pub const BOOTSTRAP: &str = "bootstrap_access_credential";

/// All that is wrong with the credentials that were named.
pub(super) async fn problems(
    conn: &mut PgConnection,
    project: Uuid,
    declared: &Version,
    named: &BTreeMap<String, Uuid>,
) -> sqlx::Result<Vec<(String, String)>> {
    let classes = &declared.runtime_requirements.credential_classes;
    let ids: Vec<Uuid> = named.values().copied().collect();
    let usable = access_credentials::usable(conn, project, &ids).await?;
    let mut wrong = Vec::new();
    let bootstraps = declared.runtime_requirements.bootstrap_access_credential.is_some();
    if bootstraps && !named.contains_key(BOOTSTRAP) {
        wrong.push((format!("/credentials/{BOOTSTRAP}"), "is required".to_owned()));
    }
    let keys = access_credentials::usable_keys(conn, project, &ids).await?;
    for (class, id) in named {
        if bootstraps && class == BOOTSTRAP {
            if !keys.contains(id) {
                wrong.push((format!("/credentials/{class}"), "is not an SSH key of this project".to_owned()));
            }
        } else if !classes.iter().any(|known| known.class == *class) {
            wrong.push((
                format!("/credentials/{class}"),
                "is not a class of credentials of this version".to_owned(),
            ));
        } else if !usable.contains(id) {
            wrong.push((format!("/credentials/{class}"), "is not a credential of this project".to_owned()));
        }
    }
    for class in classes.iter().filter(|class| class.required && !named.contains_key(&class.class)) {
        wrong.push((format!("/credentials/{}", class.class), "is required".to_owned()));
    }
    Ok(wrong)
}

/// What the instance was given, by class.
pub fn of(instance: &AppInstance) -> sqlx::Result<BTreeMap<String, Uuid>> {
    serde_json::from_value(instance.credentials.clone()).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// An instance keeps the credentials it was given: they must be there still, and be all that the version asks for.
pub async fn require(
    conn: &mut PgConnection,
    instance: &AppInstance,
    declared: &Version,
) -> Result<(), Refused> {
    let mut named = of(instance)?;
    // What another version asked for is of no use to this one.
    let classes = &declared.runtime_requirements.credential_classes;
    let bootstraps = declared.runtime_requirements.bootstrap_access_credential.is_some();
    named.retain(|class, _| {
        (bootstraps && class == BOOTSTRAP) || classes.iter().any(|known| known.class == *class)
    });
    match problems(conn, instance.project_id, declared, &named).await?.into_iter().next() {
        None => Ok(()),
        Some((pointer, problem)) => {
            let class = pointer.rsplit('/').next().unwrap_or_default().to_owned();
            let message = format!("The credential {class} {problem}.");
            Err(Refused::no(AccessCredentialNotFound, message).with("credential_class", class))
        }
    }
}
