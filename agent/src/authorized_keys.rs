//! `ssh.install_authorized_keys`: the complete set of keys that the platform wants, inside a block of its own. What people wrote
//! around it is kept to the byte, and a file that says what is wanted already is not written at all.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use domain::StatusReason;
use node_protocol::AuthorizedKeys;

use crate::drivers::DriverFault;

const BEGIN: &str = "# BEGIN gpuaas: this block is written by the node agent";
const END: &str = "# END gpuaas";
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
    write(&account, &wanted.keys).map_err(|error| DriverFault::new(StatusReason::Internal, error.to_string()))
}

fn is_key(line: &str) -> bool {
    KINDS.iter().any(|kind| line.starts_with(kind)) && !line.contains(['\n', '\r', '\0'])
}

fn account(people: &str, name: &str) -> Option<Account> {
    let fields = people.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = fields.into_iter().find(|fields| fields.len() == 7 && fields[0] == name)?;
    Some(Account { home: fields[5].into(), owner: (fields[2].parse().ok()?, fields[3].parse().ok()?) })
}

/// Beside the file and then in its place, so that nobody is locked out by half of it.
fn write(account: &Account, keys: &[String]) -> io::Result<()> {
    let folder = account.home.join(".ssh");
    let (user, group) = account.owner;
    if !folder.exists() {
        DirBuilder::new().mode(0o700).create(&folder)?;
        chown(&folder, Some(user), Some(group))?;
    }
    let path = folder.join("authorized_keys");
    let before = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let after = with_block(&before, keys);
    if after == before {
        return Ok(());
    }
    replace(&path, &after, account.owner)
}

fn replace(path: &Path, text: &str, (user, group): (u32, u32)) -> io::Result<()> {
    let fresh = path.with_extension("gpuaas-new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    chown(&fresh, Some(user), Some(group))?;
    fs::rename(&fresh, path)
}

/// The text with this block and no other of ours; without keys there is no block.
fn with_block(before: &str, keys: &[String]) -> String {
    let mut after = String::new();
    let mut inside = false;
    for line in before.split_inclusive('\n') {
        match line.trim_end() {
            BEGIN => inside = true,
            END if inside => inside = false,
            _ if !inside => after.push_str(line),
            _ => {}
        }
    }
    if keys.is_empty() {
        return after;
    }
    if !after.is_empty() && !after.ends_with('\n') {
        after.push('\n');
    }
    for line in [BEGIN].into_iter().chain(keys.iter().map(String::as_str)).chain([END]) {
        after.push_str(line);
        after.push('\n');
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHERS: &str = "# mine\nssh-ed25519 AAAA me@home\n\n";

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("ssh-ed25519 AAAA {name}")).collect()
    }

    #[test]
    fn the_block_holds_what_is_wanted_and_nothing_else_changes() {
        let first = with_block(OTHERS, &keys(&["a", "b"]));
        assert!(first.starts_with(OTHERS) && first.contains("AAAA a") && first.contains("AAAA b"));
        let second = with_block(&first, &keys(&["b"]));
        assert!(second.starts_with(OTHERS) && !second.contains("AAAA a") && second.contains("AAAA b"));
        assert_eq!(with_block(&second, &keys(&["b"])), second, "what is so stays so");
        assert_eq!(with_block(&second, &[]), OTHERS, "nothing of ours is left");
    }

    #[test]
    fn a_file_without_a_last_line_break_keeps_its_last_key() {
        let text = with_block("ssh-rsa AAAA last", &keys(&["a"]));
        assert!(text.starts_with("ssh-rsa AAAA last\n# BEGIN"), "{text}");
    }

    #[test]
    fn a_key_brings_no_options_and_no_second_line() {
        for bad in ["command=\"sh\" ssh-ed25519 AAAA", "ssh-ed25519 AAAA\nssh-rsa B", "AAAA", ""] {
            assert!(!is_key(bad), "{bad:?}");
        }
        assert!(is_key("ssh-ed25519 AAAA a@b"));
    }

    #[test]
    fn the_file_is_the_users_own_and_nobody_elses_to_read() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let home = std::env::temp_dir().join(format!("gpuaas-keys-{}", uuid::Uuid::now_v7()));
        fs::create_dir_all(&home).unwrap();
        let own = fs::metadata(&home).unwrap();
        let account = Account { home: home.clone(), owner: (own.uid(), own.gid()) };
        write(&account, &keys(&["a"])).unwrap();
        let file = fs::metadata(home.join(".ssh/authorized_keys")).unwrap();
        assert_eq!((file.permissions().mode() & 0o777, file.uid()), (0o600, own.uid()));
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn users_are_found_by_their_whole_name() {
        let people = "root:x:0:0:root:/root:/bin/sh\nops:x:1000:1001::/home/ops:/bin/sh\n";
        let found = account(people, "ops").unwrap();
        assert_eq!((found.home.as_path(), found.owner), (Path::new("/home/ops"), (1000, 1001)));
        assert!(account(people, "op").is_none());
    }
}
