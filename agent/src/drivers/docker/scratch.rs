//! The files a workload is given: a folder of its own in the host's memory, shown to the container read-only. It is the one
//! thing of the host that a container sees; its name comes from the container's, and it goes with it.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

use bollard::models::{Mount, MountType};
use node_protocol::{Generations, Workload};
use uuid::Uuid;

/// A file system in memory wherever there is Linux: nothing of it is ever on a disk.
const ROOT: &str = "/dev/shm/gpuaas";

/// Writes the files anew, and says how the container sees them; nothing where there are none.
pub(super) fn write(workload: &Workload) -> io::Result<()> {
    if workload.files.is_empty() {
        return Ok(());
    }
    let folder = folder(&workload.container_name());
    DirBuilder::new().recursive(true).mode(0o700).create(ROOT)?;
    DirBuilder::new().recursive(true).create(&folder)?;
    fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
    fill(&folder, &workload.files)
}

fn fill(folder: &std::path::Path, files: &BTreeMap<String, String>) -> io::Result<()> {
    for (name, text) in files {
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
            || name.starts_with('.')
        {
            return Err(io::Error::other(format!("{name:?} is no name of a file")));
        }
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(0o444))?;
    }
    Ok(())
}

pub(super) fn mount(workload: &Workload) -> Option<Mount> {
    let mount = || Mount {
        target: Some(Workload::FILES.to_owned()),
        source: Some(folder(&workload.container_name()).display().to_string()),
        typ: Some(MountType::BIND),
        read_only: Some(true),
        ..Mount::default()
    };
    (!workload.files.is_empty()).then(mount)
}

/// Gone is well.
pub(super) fn remove(container: &str) -> io::Result<()> {
    match fs::remove_dir_all(folder(container)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the folders of containers that are gone or never came to be: those of these generations, or all where the
/// instance ends. Call it when the containers are gone.
pub(super) fn sweep(instance: Uuid, generations: Generations, for_good: bool) -> io::Result<Vec<String>> {
    let mut swept = Vec::new();
    for path in of(instance)? {
        if for_good || generation(&path).is_some_and(|generation| generations.contain(generation)) {
            fs::remove_dir_all(&path)?;
            swept.push(path);
        }
    }
    Ok(swept)
}

/// What is left of an instance, by path. What cannot be looked at is not taken for empty.
pub(super) fn of(instance: Uuid) -> io::Result<Vec<String>> {
    let prefix = format!("{}-", Workload::network_name(instance));
    let all = match fs::read_dir(ROOT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        all => all?,
    };
    let mut own = Vec::new();
    for entry in all {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            own.push(entry.path().display().to_string());
        }
    }
    Ok(own)
}

/// Containers, and so their folders, are named after it.
fn generation(path: &str) -> Option<i64> {
    path.rsplit_once("-g")?.1.parse().ok()
}

fn folder(container: &str) -> PathBuf {
    PathBuf::from(ROOT).join(container)
}
