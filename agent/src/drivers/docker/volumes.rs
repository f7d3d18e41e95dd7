//! The folders of a stack's members: volumes that the engine keeps, known by their label. They outlive a container, so that a new
//! generation finds what the one before fetched, and go when the instance ends.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use bollard::models::{Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::ListVolumesOptionsBuilder;
use domain::container::{INSTANCE, volume_name};
use node_protocol::Workload;
use uuid::Uuid;

use super::{Docker, disk, fault, gone_is_well};
use crate::drivers::DriverFault;

impl Docker {
    /// Making one that is there finds it.
    pub(super) async fn ensure_volumes(&self, workload: &Workload) -> Result<(), DriverFault> {
        for (name, _) in named(workload) {
            let labels = HashMap::from([(INSTANCE.to_owned(), workload.instance_id.to_string())]);
            let request =
                VolumeCreateRequest { name: Some(name), labels: Some(labels), ..Default::default() };
            let made = self.client.create_volume(request).await;
            let made = made.map_err(|error| fault("make a folder for the container", &error))?;
            // Containers run as nobody, and a new volume is root's. Nobody else is led to it.
            let opened = fs::set_permissions(&made.mountpoint, Permissions::from_mode(0o1777));
            opened.map_err(|error| disk("open a folder for the container", &error))?;
        }
        Ok(())
    }

    pub(super) async fn volumes(&self, instance: Uuid) -> Result<Vec<String>, DriverFault> {
        let label = format!("{INSTANCE}={instance}");
        let filters = HashMap::from([("label", vec![label.as_str()])]);
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let listed = self.client.list_volumes(Some(options)).await;
        let listed = listed.map_err(|error| fault("list the folders", &error))?;
        Ok(listed.volumes.unwrap_or_default().into_iter().map(|volume| volume.name).collect())
    }

    pub(super) async fn remove_volumes(&self, instance: Uuid) -> Result<Vec<String>, DriverFault> {
        let all = self.volumes(instance).await?;
        for name in &all {
            let none = None::<bollard::query_parameters::RemoveVolumeOptions>;
            gone_is_well(self.client.remove_volume(name, none).await, "remove a folder")?;
        }
        Ok(all)
    }
}

pub(super) fn mounts(workload: &Workload) -> impl Iterator<Item = Mount> + '_ {
    named(workload).map(|(name, path)| Mount {
        target: Some(path),
        source: Some(name),
        typ: Some(MountType::VOLUME),
        ..Mount::default()
    })
}

/// The volumes, and where the container finds them.
fn named(workload: &Workload) -> impl Iterator<Item = (String, String)> + '_ {
    let folders = workload.scratch.iter().enumerate();
    folders.map(|(place, path)| (volume_name(workload.instance_id, &workload.member, place), path.clone()))
}
