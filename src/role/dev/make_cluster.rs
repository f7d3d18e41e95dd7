//! Makes a new Postgres cluster. It is made under a name of its own, so that the final name always means a whole cluster,
//! and so that an `initdb` which a killed process left behind never works where the next one does. What was left
//! unfinished is taken away once no process works in it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::ClusterError;
use super::account::Account;
use super::data::{DataDir, Passwords, write_secret};
use super::tools::Tools;

/// After the cluster's name, and before what makes the name its own.
const UNFINISHED: &str = ".new";

/// Makes the cluster `data` in `folder`. Dropped before it is done, it ends `initdb` and leaves what `tidy` takes away.
pub async fn make(
    tools: &Tools,
    account: Account,
    folder: &DataDir,
    data: &Path,
    passwords: &Passwords,
) -> Result<(), ClusterError> {
    let unfinished = unfinished(data);
    let io = |verb: &'static str| {
        let path = unfinished.clone();
        move |error| ClusterError::io(verb, path, error)
    };
    fs::create_dir(&unfinished).map_err(io("create"))?;
    account.give(&unfinished).map_err(io("give away"))?;
    let password_file = folder.path.join("superuser-password");
    write_secret(&password_file, &passwords.superuser)?;
    account.give(&password_file).map_err(io("give away"))?;

    let mut initdb = tools.command("initdb");
    initdb.arg("-D").arg(&unfinished).arg("--pwfile").arg(&password_file);
    initdb.args([
        "--username=postgres",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",
        "--data-checksums",
    ]);
    initdb.kill_on_drop(true);
    let answer = account.output(initdb, "initdb").await;
    let _ = fs::remove_file(&password_file);
    let answer = answer?;
    if !answer.status.success() {
        return Err(ClusterError::program("initdb", &answer));
    }
    fs::rename(&unfinished, data).map_err(io("rename"))?;
    File::open(&folder.path).and_then(|parent| parent.sync_all()).map_err(io("keep"))
}

/// Takes away what earlier attempts at `data` left. What stays is in nobody's way, and the next start tries again.
pub fn tidy(data: &Path) {
    let (Some(folder), Some(name)) = (data.parent(), data.file_name()) else { return };
    let begins = format!("{}{UNFINISHED}", name.to_string_lossy());
    let Ok(entries) = fs::read_dir(folder) else { return };
    let left = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&begins));
    for path in left.map(|entry| entry.path()) {
        if !is_worked_in(&path) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn unfinished(data: &Path) -> PathBuf {
    let mut name = data.as_os_str().to_owned();
    name.push(format!("{UNFINISHED}-{}", Uuid::new_v4().simple()));
    PathBuf::from(name)
}

/// Whether some process was started with this very folder as a word.
fn is_worked_in(folder: &Path) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|word| word == folder.as_os_str().as_encoded_bytes())
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_is_unfinished_goes_once_nobody_works_in_it() {
        let folder = std::env::temp_dir().join(format!("gpuaas-{}", Uuid::new_v4()));
        let data = folder.join("postgres");
        let (worked_in, left) = (unfinished(&data), unfinished(&data));
        for made in [&data, &worked_in, &left, &folder.join("postgres.new")] {
            fs::create_dir_all(made).unwrap();
        }
        let mut worker = Command::new("sh");
        worker.args(["-c", "read line"]).arg(&worked_in).stdin(Stdio::piped());
        let mut worker = worker.spawn().unwrap();
        tidy(&data);
        let mut kept: Vec<PathBuf> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        kept.sort();
        assert_eq!(kept, [data.clone(), worked_in.clone()]);

        drop(worker.stdin.take());
        worker.wait().unwrap();
        tidy(&data);
        assert!(!worked_in.exists() && data.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
