//! Whose block it is, and that no other line, owner, mode or link is touched: on real files in a folder of the story's own, because
//! what counts is what stands on the disk afterwards.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use super::*;

const OTHERS: &str = "# mine\nssh-ed25519 AAAA me@home\n\n";

/// An account with a home of its own, and a folder beside it that is nobody's to reach from there.
struct Machine {
    folder: PathBuf,
    account: Account,
}

impl Machine {
    fn new() -> Machine {
        let folder = std::env::temp_dir().join(format!("gpuaas-keys-{}", uuid::Uuid::now_v7()));
        let home = folder.join("home");
        fs::create_dir_all(&home).unwrap();
        let own = fs::metadata(&home).unwrap();
        Machine { account: Account { home, owner: (own.uid(), own.gid()) }, folder }
    }

    fn with_ssh() -> Machine {
        let machine = Machine::new();
        fs::create_dir(machine.ssh()).unwrap();
        machine
    }

    fn ssh(&self) -> PathBuf {
        self.account.home.join(".ssh")
    }

    fn file(&self) -> PathBuf {
        self.ssh().join("authorized_keys")
    }

    /// Something that only root has: a folder with a file in it.
    fn elsewhere(&self) -> (PathBuf, PathBuf) {
        let folder = self.folder.join("elsewhere");
        fs::create_dir(&folder).unwrap();
        let file = folder.join("authorized_keys");
        fs::write(&file, "root:secret\n").unwrap();
        (folder, file)
    }

    fn install(&self, names: &[&str]) -> Result<(), String> {
        write(&self.account, &keys(names)).map_err(|fault| fault.to_string())
    }

    fn refuses(&self) -> String {
        self.install(&["a"]).expect_err("what was planted was taken for the account's own")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn keys(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("ssh-ed25519 AAAA {name}")).collect()
}

fn names_in(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn the_block_holds_what_is_wanted_and_nothing_else_changes() {
    let machine = Machine::with_ssh();
    fs::write(machine.file(), OTHERS).unwrap();
    let installed = |names: &[&str]| {
        machine.install(names).unwrap();
        fs::read_to_string(machine.file()).unwrap()
    };
    let first = installed(&["a", "b"]);
    assert!(first.starts_with(OTHERS) && first.contains("AAAA a") && first.contains("AAAA b"));
    let second = installed(&["b"]);
    assert!(second.starts_with(OTHERS) && !second.contains("AAAA a") && second.contains("AAAA b"));
    let inode = fs::metadata(machine.file()).unwrap().ino();
    assert_eq!(installed(&["b"]), second, "what is so stays so");
    assert_eq!(fs::metadata(machine.file()).unwrap().ino(), inode, "and is not written");
    assert_eq!(installed(&[]), OTHERS, "nothing of ours is left");
    assert_eq!(names_in(&machine.ssh()), ["authorized_keys"]);
}

#[test]
fn a_file_without_a_last_line_break_keeps_its_last_key() {
    let machine = Machine::with_ssh();
    fs::write(machine.file(), "ssh-rsa AAAA last").unwrap();
    machine.install(&["a"]).unwrap();
    let text = fs::read_to_string(machine.file()).unwrap();
    assert!(text.starts_with("ssh-rsa AAAA last\n# BEGIN"), "{text}");
}

#[test]
fn a_block_without_its_end_is_refused_and_no_line_is_lost() {
    let machine = Machine::with_ssh();
    let block = format!("{BEGIN}\nssh-ed25519 AAAA ours\n");
    for text in [
        format!("{OTHERS}{block}ssh-ed25519 AAAA theirs\n"),
        format!("{block}ssh-ed25519 AAAA theirs\n{block}{END}\n"),
    ] {
        fs::write(machine.file(), &text).unwrap();
        let fault = machine.refuses();
        assert!(fault.contains(END), "{fault}");
        machine
            .install(&[])
            .expect_err("whose the lines are cannot be told, so nobody says that ours are gone");
        assert_eq!(fs::read_to_string(machine.file()).unwrap(), text);
    }
}

#[test]
fn a_block_without_its_beginning_is_refused_and_no_line_is_lost() {
    let machine = Machine::with_ssh();
    let block = format!("{BEGIN}\nssh-ed25519 AAAA ours\n{END}\n");
    for text in [
        format!("{OTHERS}ssh-ed25519 AAAA ours\n{END}\n"),
        format!("{block}ssh-ed25519 AAAA ours too\n{END}\n{OTHERS}"),
    ] {
        fs::write(machine.file(), &text).unwrap();
        let fault = machine.refuses();
        assert!(fault.contains(BEGIN), "{fault}");
        machine
            .install(&[])
            .expect_err("ours may be among the lines before, so nobody says that they are gone");
        assert_eq!(fs::read_to_string(machine.file()).unwrap(), text);
    }
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
    let machine = Machine::new();
    machine.install(&["a"]).unwrap();
    let of = |path: &Path| {
        let seen = fs::metadata(path).unwrap();
        (seen.permissions().mode() & 0o777, (seen.uid(), seen.gid()))
    };
    assert_eq!(of(&machine.ssh()), (0o700, machine.account.owner));
    assert_eq!(of(&machine.file()), (0o600, machine.account.owner));
}

#[test]
fn where_nobody_is_to_come_in_no_folder_is_made() {
    let machine = Machine::new();
    machine.install(&[]).unwrap();
    assert!(!machine.ssh().exists());
}

#[test]
fn a_link_in_the_folders_place_is_refused_and_nothing_is_written_through_it() {
    let machine = Machine::new();
    let (folder, file) = machine.elsewhere();
    symlink(&folder, machine.ssh()).unwrap();
    let fault = machine.refuses();
    assert!(fault.contains(".ssh"), "{fault}");
    assert_eq!(names_in(&folder), ["authorized_keys"]);
    assert_eq!(fs::read_to_string(file).unwrap(), "root:secret\n");
    fs::remove_file(machine.ssh()).unwrap();
    let nowhere = machine.folder.join("nowhere");
    symlink(&nowhere, machine.ssh()).unwrap();
    machine.refuses();
    assert!(!nowhere.exists());
}

#[test]
fn a_link_in_the_files_place_is_neither_read_nor_replaced() {
    let machine = Machine::with_ssh();
    let (_, secret) = machine.elsewhere();
    for target in [secret.clone(), machine.folder.join("nowhere")] {
        symlink(&target, machine.file()).unwrap();
        let fault = machine.refuses();
        assert!(fault.contains("authorized_keys") && !fault.contains("secret"), "{fault}");
        assert_eq!(fs::read_link(machine.file()).unwrap(), target);
        assert_eq!(names_in(&machine.ssh()), ["authorized_keys"]);
        fs::remove_file(machine.file()).unwrap();
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "root:secret\n");
    assert!(!machine.folder.join("nowhere").exists());
}

#[test]
fn a_link_under_a_name_that_was_guessed_leads_nowhere() {
    let machine = Machine::with_ssh();
    let (_, secret) = machine.elsewhere();
    symlink(&secret, machine.ssh().join("authorized_keys.gpuaas-new")).unwrap();
    machine.install(&["a"]).unwrap();
    assert_eq!(fs::read_to_string(secret).unwrap(), "root:secret\n");
    assert!(fs::symlink_metadata(machine.file()).unwrap().is_file());
}

#[test]
fn what_is_no_file_or_too_large_is_refused_at_once() {
    let machine = Machine::with_ssh();
    fs::create_dir(machine.file()).unwrap();
    machine.refuses();
    fs::remove_dir(machine.file()).unwrap();
    fs::File::create(machine.file()).unwrap().set_len(1 << 30).unwrap();
    machine.refuses();
    fs::remove_file(machine.file()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(machine.file()).status().unwrap();
    assert!(made.success());
    machine.refuses();
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    let mut machine = Machine::with_ssh();
    fs::write(machine.file(), OTHERS).unwrap();
    machine.account.owner.0 += 1;
    let fault = machine.refuses();
    assert!(fault.contains(".ssh"), "{fault}");
    assert_eq!(fs::read_to_string(machine.file()).unwrap(), OTHERS);
}

#[test]
fn another_ones_file_under_a_hard_link_stays_theirs() {
    let mut machine = Machine::with_ssh();
    // Only root can give a folder away.
    if machine.account.owner.0 != 0 {
        return;
    }
    machine.account.owner = (12345, 12345);
    chown(machine.ssh(), Some(12345), Some(12345)).unwrap();
    let (_, secret) = machine.elsewhere();
    fs::hard_link(&secret, machine.file()).unwrap();
    let fault = machine.refuses();
    assert!(!fault.contains("secret"), "{fault}");
    assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
    assert_eq!(names_in(&machine.ssh()), ["authorized_keys"]);
}

#[test]
fn what_could_not_be_put_in_place_leaves_nothing_behind() {
    let machine = Machine::with_ssh();
    fs::create_dir(machine.file()).unwrap();
    let folder = Folder::open(&machine.account, true).unwrap().unwrap();
    folder.replace(FILE, "ssh-ed25519 AAAA a\n").unwrap_err();
    assert_eq!(names_in(&machine.ssh()), ["authorized_keys"]);
}

#[test]
fn a_folder_that_was_made_and_not_given_over_yet_is_given_over() {
    let mut machine = Machine::with_ssh();
    // Only root can give a folder away.
    if machine.account.owner.0 != 0 {
        return;
    }
    machine.account.owner = (12345, 12345);
    machine.install(&["a"]).unwrap();
    for path in [machine.ssh(), machine.file()] {
        assert_eq!(fs::metadata(path).unwrap().uid(), 12345);
    }
}

#[test]
fn users_are_found_by_their_whole_name() {
    let people = "root:x:0:0:root:/root:/bin/sh\nops:x:1000:1001::/home/ops:/bin/sh\n";
    let found = account(people, "ops").unwrap();
    assert_eq!((found.home.as_path(), found.owner), (Path::new("/home/ops"), (1000, 1001)));
    assert!(account(people, "op").is_none());
}
