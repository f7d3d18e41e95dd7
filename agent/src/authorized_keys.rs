//! `ssh.install_authorized_keys`: the complete set of keys that the platform wants, inside a block of its own. What people wrote
//! around it is kept to the byte, and a file that says what is wanted already is not written at all.

mod folder;

use std::fs;
use std::path::{Path, PathBuf};

use domain::StatusReason;
use node_protocol::AuthorizedKeys;

use self::folder::{Folder, FolderFault};
use crate::drivers::DriverFault;

const FILE: &str = "authorized_keys";
const BEGIN: &str = "# BEGIN gpuaas: this block is written by the node agent";
const END: &str = "# END gpuaas";
const ENDLESS: &str =
    "has a block of the node agent that does not end: put the line `# END gpuaas` after its last key";
const BEGINLESS: &str = "has a block of the node agent that does not begin: put the line \
    `# BEGIN gpuaas: this block is written by the node agent` before its first key";
/// What a key may begin with: no options, so no command and no environment comes in this way.
const KINDS: [&str; 6] = [
    "ssh-ed25519 ",
    "ssh-rsa ",
    "ecdsa-sha2-nistp256 ",
    "ecdsa-sha2-nistp384 ",
    "ecdsa-sha2-nistp521 ",
    "sk-ssh-ed25519@openssh.com ",
];

/// One line of `/etc/passwd`.
struct Account {
    home: PathBuf,
    owner: (u32, u32),
}

pub(crate) fn install(wanted: &AuthorizedKeys, people: &Path) -> Result<(), DriverFault> {
    let refused = |message: String| DriverFault::new(StatusReason::TaskRejected, message);
    if let Some(bad) = wanted.keys.iter().find(|key| !is_key(key)) {
        let shown: String = bad.chars().take(20).collect();
        return Err(refused(format!("{shown:?} does not begin as a public key does")));
    }
    let people = fs::read_to_string(people).map_err(|error| refused(error.to_string()))?;
    let account = account(&people, &wanted.user);
    // Where nobody is to come in, it is no matter that there is nobody.
    if account.is_none() && wanted.keys.is_empty() {
        return Ok(());
    }
    let account = account.ok_or_else(|| refused(format!("there is no user {:?} here", wanted.user)))?;
    write(&account, &wanted.keys).map_err(|fault| match fault {
        FolderFault::Disk { .. } => DriverFault::new(StatusReason::Internal, fault.to_string()),
        FolderFault::Refused { .. } => refused(fault.to_string()),
    })
}

fn is_key(line: &str) -> bool {
    KINDS.iter().any(|kind| line.starts_with(kind)) && !line.contains(['\n', '\r', '\0'])
}

fn account(people: &str, name: &str) -> Option<Account> {
    let fields = people.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = fields.into_iter().find(|fields| fields.len() == 7 && fields[0] == name)?;
    Some(Account { home: fields[5].into(), owner: (fields[2].parse().ok()?, fields[3].parse().ok()?) })
}

fn write(account: &Account, keys: &[String]) -> Result<(), FolderFault> {
    let Some(folder) = Folder::open(account, !keys.is_empty())? else { return Ok(()) };
    let before = folder.read(FILE)?;
    let after = with_block(&before, keys).map_err(|why| folder.refused(FILE, why))?;
    if after == before {
        return Ok(());
    }
    folder.replace(FILE, &after)
}

/// The text with this block and no other of ours; without keys there is no block. Refused where a block does not end or does not
/// begin: whose the lines after or before are cannot be told, and neither may theirs be lost nor ours go on to open the door.
fn with_block(before: &str, keys: &[String]) -> Result<String, &'static str> {
    let mut after = String::new();
    let mut inside = false;
    for line in before.split_inclusive('\n') {
        match line.trim_end() {
            BEGIN if inside => return Err(ENDLESS),
            BEGIN => inside = true,
            END if inside => inside = false,
            END => return Err(BEGINLESS),
            _ if !inside => after.push_str(line),
            _ => {}
        }
    }
    if inside {
        return Err(ENDLESS);
    }
    if keys.is_empty() {
        return Ok(after);
    }
    if !after.is_empty() && !after.ends_with('\n') {
        after.push('\n');
    }
    for line in [BEGIN].into_iter().chain(keys.iter().map(String::as_str)).chain([END]) {
        after.push_str(line);
        after.push('\n');
    }
    Ok(after)
}

#[cfg(test)]
mod tests;
