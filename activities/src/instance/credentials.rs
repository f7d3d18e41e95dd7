//! What a launch carries and nobody may read: the credential to pull the image, the workload's own key, and the secrets of the
//! project that the version asks for. They are put together in the transaction of the task and rest only inside it, sealed
//! for it alone.

use std::collections::BTreeMap;

use clients::registry::Password;
use clients::signing::{KeyFault, SigningKey};
use domain::Secret;
use domain::manifest::Manifest;
use engine::Fault;
use node_protocol::{PullCredential, Secrets};
use sqlx::PgConnection;
use store::app_instance_artifacts::{self, Standing};
use store::app_instances::AppInstance;
use store::registry_credentials::{self, NewCredential};
use store::{
    access_credentials, app_instance_releases, app_versions, deployment, node_tasks, service_account_keys,
};
use uuid::Uuid;

use super::pull::LIVES_SECONDS;
use super::unreadable;
use crate::Env;

pub(super) struct Credentials<'a> {
    pub(super) instance: &'a AppInstance,
    pub(super) pull: Uuid,
    pub(super) generation: i64,
}

/// What was made.
pub(super) struct Made {
    /// The id of the task it is sealed for.
    pub(super) task: Uuid,
    pub(super) sealed: String,
    /// The names of the variables inside.
    pub(super) given: Vec<String>,
}

impl Credentials<'_> {
    pub(super) async fn make(&self, conn: &mut PgConnection, env: &Env) -> Result<Made, Fault> {
        let task = Uuid::now_v7();
        let mut variables = self.bound(conn, env).await?;
        variables.extend(self.identity(conn).await?);
        let given = variables.keys().cloned().collect();
        let secrets = Secrets { pull: Some(self.pull(conn).await?), env: variables };
        let text = serde_json::to_vec(&secrets).map_err(|error| unreadable(&error))?;
        let sealer = env.signers()?.sealer();
        let sealed = sealer.seal(&Secret::new(text), &node_tasks::sealed_for(task));
        Ok(Made { task, sealed: sealed.map_err(|fault| unreadable(&fault))?, given })
    }

    async fn pull(&self, conn: &mut PgConnection) -> Result<PullCredential, Fault> {
        let artifacts = app_instance_artifacts::of(conn, self.instance.id, Standing::Target).await?;
        let image = deployment::runtime(&artifacts);
        let image = image.ok_or_else(|| unreadable(&"no image was resolved for the instance"))?;
        let password = Password::generate();
        let new = NewCredential {
            id: self.pull,
            org_id: self.instance.org_id,
            project_id: self.instance.project_id,
            repository: &image.repository,
            may_push: false,
            secret_hash: &password.hash,
            ttl_seconds: LIVES_SECONDS,
        };
        registry_credentials::insert(conn, &new).await?;
        Ok(PullCredential { username: self.pull.to_string(), password: password.secret.expose().clone() })
    }

    /// The project's secrets, opened here and sealed again for the task.
    async fn bound(&self, conn: &mut PgConnection, env: &Env) -> Result<BTreeMap<String, String>, Fault> {
        let named = deployment::credentials::of(self.instance)?;
        let release = app_instance_releases::find(conn, self.instance.id, Standing::Target).await?;
        let number = release.map_or_else(|| self.instance.version.clone(), |release| release.version);
        let version = app_versions::find(conn, &self.instance.app_slug, &number).await?;
        let version = version.ok_or_else(|| unreadable(&"the version is gone from the catalog"))?;
        let manifest: Manifest =
            serde_json::from_value(version.manifest).map_err(|error| unreadable(&error))?;
        let mut variables = BTreeMap::new();
        for class in &manifest.version.runtime_requirements.credential_classes {
            let Some(id) = named.get(&class.class) else { continue };
            let sealed = access_credentials::sealed(conn, self.instance.project_id, *id).await?;
            let gone = || {
                Fault::terminal("credential_missing", format!("the credential {} was revoked", class.class))
            };
            let opened =
                env.signers()?.sealer().open(&sealed.ok_or_else(gone)?, &access_credentials::sealed_for(*id));
            let opened = opened.map_err(|fault| unreadable(&fault))?;
            let text = std::str::from_utf8(opened.expose()).map_err(|error| unreadable(&error))?;
            variables.insert(class.env.clone(), text.to_owned());
        }
        Ok(variables)
    }

    /// Where the platform is reached, the node's own relay says.
    async fn identity(&self, conn: &mut PgConnection) -> Result<BTreeMap<String, String>, Fault> {
        let Some(account) = self.instance.operator_service_account_id else { return Ok(BTreeMap::new()) };
        let make = || -> Result<(String, String, Secret<String>), KeyFault> {
            let key = SigningKey::generate()?;
            Ok((key.id().to_owned(), key.public_key_pem()?, key.private_key_pem()?))
        };
        let (key_id, public_key, private_key) = make().map_err(|fault| unreadable(&fault))?;
        // The one before stays good until what it was given to is gone.
        service_account_keys::insert(conn, account, &key_id, &public_key, false).await?;
        service_account_keys::set_generation(conn, &key_id, self.generation).await?;
        Ok(BTreeMap::from([
            ("GPUAAS_SERVICE_ACCOUNT_ID".to_owned(), account.to_string()),
            ("GPUAAS_KEY_ID".to_owned(), key_id),
            ("GPUAAS_PRIVATE_KEY".to_owned(), private_key.expose().clone()),
            ("GPUAAS_APP_INSTANCE_ID".to_owned(), self.instance.id.to_string()),
        ]))
    }
}

/// The workload of this generation is gone, and with it who it was.
pub async fn revoke_key(
    conn: &mut PgConnection,
    instance: &AppInstance,
    generation: i64,
) -> Result<(), Fault> {
    if let Some(account) = instance.operator_service_account_id {
        service_account_keys::revoke_generation(conn, account, generation).await?;
    }
    Ok(())
}
