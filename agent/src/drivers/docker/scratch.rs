//! The files a workload is given: a folder of its own in the host's memory, shown to the container read-only. It is the one
//! thing of the host that a container sees; its name comes from the container's, and it goes with it.
//!
//! What a host has in memory is lost when it is started anew. Of texts that hold no secret the container's label knows enough to
//! write them again; any other is on no disk, and only another launch brings it. Anybody on the host may make a folder of such a
//! name first, so none is used but what the agent alone can write to.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bollard::models::{Mount, MountType};
use node_protocol::{Generations, Workload};
use uuid::Uuid;

/// A file system in memory wherever there is Linux: nothing of it is ever on a disk.
const ROOT: &str = "/dev/shm/gpuaas";

/// The files whose texts hold no secret.
const OPEN: [&str; 1] = [Workload::PACKAGES];

/// Files by name, with their texts where those may be on a disk.
type Kept = BTreeMap<String, Option<String>>;

/// Writes the files anew, and says how the container sees them; nothing where there are none.
pub(super) fn write(workload: &Workload) -> io::Result<()> {
    if workload.files.is_empty() {
        return Ok(());
    }
    fill(&made(&workload.container_name())?, &workload.files)
}

/// What the container's label says of its files, if it has any.
pub(super) fn kept(workload: &Workload) -> Option<String> {
    let text = |name: &str, text: &String| OPEN.contains(&name).then(|| text.clone());
    let kept: Kept = workload.files.iter().map(|(name, said)| (name.clone(), text(name, said))).collect();
    if kept.is_empty() { None } else { serde_json::to_string(&kept).ok() }
}

/// Writes the files again whose texts the container's label has.
pub(super) fn restore(container: &str, kept: &str) -> io::Result<()> {
    let kept: Kept = serde_json::from_str(kept).map_err(io::Error::other)?;
    let folder = made(container)?;
    fill(&folder, &known(&folder, kept)?)
}

/// A container that was given a file is not started without it.
fn known(folder: &Path, kept: Kept) -> io::Result<BTreeMap<String, String>> {
    let mut known = BTreeMap::new();
    for (name, text) in kept {
        match text {
            Some(text) => {
                known.insert(name, text);
            }
            None if folder.join(&name).exists() => {}
            None => {
                let message =
                    format!("{name} was in the host's memory alone: the workload must be launched again");
                return Err(io::Error::other(message));
            }
        }
    }
    Ok(known)
}

fn made(container: &str) -> io::Result<PathBuf> {
    let folder = folder(container);
    DirBuilder::new().recursive(true).mode(0o700).create(ROOT)?;
    ours(Path::new(ROOT))?;
    DirBuilder::new().recursive(true).mode(0o755).create(&folder)?;
    ours(&folder)?;
    fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// What somebody else made, can write to or linked to elsewhere is neither believed nor changed. The root comes first: once it is
/// ours, nobody puts another folder in place of one that was looked at.
fn ours(folder: &Path) -> io::Result<()> {
    let seen = fs::symlink_metadata(folder)?;
    // The kernel lists a process as owned by its effective user.
    let own = fs::metadata("/proc/self")?.uid();
    if seen.is_dir() && seen.uid() == own && seen.mode() & 0o022 == 0 {
        return Ok(());
    }
    let message = format!("{} is no folder that the agent alone can write to", folder.display());
    Err(io::Error::other(message))
}

fn fill(folder: &Path, files: &BTreeMap<String, String>) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::contract::Stage;

    fn given(instance: Uuid) -> Workload {
        let stage = Stage { digest: format!("sha256:{}", "a".repeat(64)), port: 8080 };
        let mut workload = stage.workload(instance, 1);
        workload.files.insert(Workload::PACKAGES.to_owned(), "[\"numpy\"]".to_owned());
        workload
    }

    #[test]
    fn files_that_a_host_lost_are_written_again() {
        let workload = given(Uuid::now_v7());
        let (name, kept) = (workload.container_name(), kept(&workload).unwrap());
        write(&workload).unwrap();
        let written = folder(&name).join(Workload::PACKAGES);
        restore(&name, &kept).unwrap();
        fs::remove_dir_all(folder(&name)).unwrap();
        restore(&name, &kept).unwrap();
        assert_eq!(fs::read_to_string(&written).unwrap(), "[\"numpy\"]");
        assert_eq!(fs::metadata(&written).unwrap().permissions().mode() & 0o777, 0o444);
        fs::remove_file(&written).unwrap();
        fs::write(&written, "[\"another\"]").unwrap();
        restore(&name, &kept).unwrap();
        assert_eq!(fs::read_to_string(&written).unwrap(), "[\"numpy\"]", "what is known is not looked up");
        remove(&name).unwrap();
    }

    #[test]
    fn a_secret_is_on_no_label_and_without_it_nothing_is_started() {
        let mut workload = given(Uuid::now_v7());
        workload.files.insert("token".to_owned(), "hunter2".to_owned());
        let (name, kept) = (workload.container_name(), kept(&workload).unwrap());
        assert!(kept.contains("token") && !kept.contains("hunter2"), "{kept}");
        write(&workload).unwrap();
        restore(&name, &kept).unwrap();
        fs::remove_dir_all(folder(&name)).unwrap();
        let trouble = restore(&name, &kept).unwrap_err().to_string();
        assert!(trouble.contains("token") && trouble.contains("launched again"), "{trouble}");
        assert!(!folder(&name).join(Workload::PACKAGES).exists(), "not even what could be written");
        remove(&name).unwrap();
        workload.files.clear();
        assert_eq!(super::kept(&workload), None);
    }

    #[test]
    fn a_folder_that_others_can_write_to_or_that_leads_elsewhere_is_not_used() {
        let workload = given(Uuid::now_v7());
        let (name, kept) = (workload.container_name(), kept(&workload).unwrap());
        let refused = || {
            for tried in [write(&workload), restore(&name, &kept)] {
                let trouble = tried.unwrap_err().to_string();
                assert!(trouble.contains(&name), "{trouble}");
            }
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write(&workload).unwrap();
        let (own, elsewhere) = (folder(&name), folder(&format!("elsewhere-{name}")));
        fs::set_permissions(&own, Permissions::from_mode(0o775)).unwrap();
        refused();
        assert_eq!(mode(&own), 0o775, "nor is it changed");
        remove(&name).unwrap();
        DirBuilder::new().mode(0o700).create(&elsewhere).unwrap();
        symlink(&elsewhere, &own).unwrap();
        refused();
        assert_eq!((mode(&elsewhere), fs::read_dir(&elsewhere).unwrap().count()), (0o700, 0));
        fs::remove_file(&own).unwrap();
        fs::remove_dir(&elsewhere).unwrap();
    }
}
