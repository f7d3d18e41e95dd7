//! What an agent that starts again knows, and what it refuses. The disk is a file that can be cut off, filled up and broken, because
//! that is how a machine leaves it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::DateTime;
use node_protocol::{Output, Secrets};
use serde_json::Value;

use super::log::Paper;
use super::*;

const INSTANCE: Uuid = Uuid::from_u128(7);

struct Disk(PathBuf);

impl Disk {
    fn new() -> Disk {
        let folder = std::env::temp_dir().join(format!("gpuaas-journal-{}", Uuid::now_v7()));
        std::fs::create_dir_all(&folder).unwrap();
        Disk(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("journal")
    }

    fn open(&self) -> Journal {
        Journal::open(&self.path()).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file on a disk that is full from time to time: then half of a line is written, and perhaps it cannot be taken back.
struct Full {
    file: File,
    full: Arc<AtomicBool>,
    stuck: Arc<AtomicBool>,
}

impl Full {
    /// Puts it in the place of the journal's own; answers its switches.
    fn under(journal: &Journal, disk: &Disk) -> (Arc<AtomicBool>, Arc<AtomicBool>) {
        let file = File::options().write(true).open(disk.path()).unwrap();
        let (full, stuck) = (Arc::default(), Arc::default());
        let paper = Full { file, full: Arc::clone(&full), stuck: Arc::clone(&stuck) };
        journal.inner().log.paper = Box::new(paper);
        (full, stuck)
    }
}

impl Paper for Full {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) {
            Paper::write_at(&self.file, &bytes[..bytes.len() / 2], at)?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Paper::write_at(&self.file, bytes, at)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        if self.stuck.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Other.into());
        }
        self.file.cut(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

fn task(key: &str, generation: i64, epoch: i64) -> Envelope {
    let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    Envelope {
        task_id: Uuid::from_u128(u128::from(key.len() as u64)),
        node_id: Uuid::nil(),
        idempotency_key: key.to_owned(),
        instance_id: Some(INSTANCE),
        generation,
        epoch,
        correlation_id: "c".to_owned(),
        issued_at: now,
        expires_at: now,
        lease_seconds: 60,
        kind: "oci.launch".to_owned(),
        input: Value::Null,
        secrets: Secrets::default(),
    }
}

fn done() -> Outcome {
    Outcome::Succeeded { output: Output::Controlled }
}

#[test]
fn a_known_key_is_answered_from_the_journal_also_after_a_restart() {
    let disk = Disk::new();
    let journal = disk.open();
    assert_eq!(journal.admit(&task("a", 1, 1), Some(1)).unwrap(), Verdict::Do);
    assert_eq!(
        journal.admit(&task("a", 1, 1), Some(1)).unwrap(),
        Verdict::Do,
        "begun and not finished: again"
    );
    journal.finish("a", &done()).unwrap();
    drop(journal);
    for _ in 0..2 {
        let journal = disk.open();
        assert_eq!(journal.admit(&task("a", 1, 2), Some(1)).unwrap(), Verdict::Known(done()));
        assert_eq!(journal.untold().len(), 1);
    }
    disk.open().told("a").unwrap();
    assert_eq!(disk.open().untold(), []);
    assert_eq!(disk.open().admit(&task("a", 1, 1), Some(1)).unwrap(), Verdict::Known(done()));
}

#[test]
fn what_became_of_an_earlier_life_s_task_is_settled_once_and_only_if_it_is_open() {
    let disk = Disk::new();
    let failed = Outcome::Refused { refusal: Refusal::Expired };
    let journal = disk.open();
    journal.settle("never begun", &done()).unwrap();
    journal.admit(&task("a", 1, 1), None).unwrap();
    drop(journal);
    let journal = disk.open();
    journal.settle("a", &done()).unwrap();
    journal.settle("a", &failed).unwrap();
    let told: Vec<(String, Outcome)> = journal.untold().into_iter().map(|(_, key, of)| (key, of)).collect();
    assert_eq!(told, [("a".to_owned(), done())]);
    journal.told("a").unwrap();
    journal.settle("a", &failed).unwrap();
    assert_eq!(disk.open().admit(&task("a", 1, 1), None).unwrap(), Verdict::Known(done()));
    assert_eq!(disk.open().untold(), []);
}

#[test]
fn lower_generations_and_within_a_key_lower_epochs_are_refused() {
    let disk = Disk::new();
    let journal = disk.open();
    assert_eq!(journal.admit(&task("a", 3, 5), Some(3)).unwrap(), Verdict::Do);
    assert_eq!(journal.admit(&task("b", 2, 9), Some(2)).unwrap(), Verdict::Refuse(Refusal::StaleGeneration));
    assert_eq!(journal.admit(&task("a", 3, 4), Some(3)).unwrap(), Verdict::Refuse(Refusal::StaleEpoch));
    assert_eq!(
        journal.admit(&task("c", 3, 1), Some(3)).unwrap(),
        Verdict::Do,
        "epochs of two keys mean nothing"
    );
    drop(journal);
    let verdict = disk.open().admit(&task("b", 2, 9), Some(2)).unwrap();
    assert_eq!(verdict, Verdict::Refuse(Refusal::StaleGeneration), "after a restart too");
}

#[test]
fn what_was_removed_is_not_started_again_and_may_be_removed_again() {
    let disk = Disk::new();
    disk.open().bury(INSTANCE, Generations::UpTo(4)).unwrap();
    let journal = disk.open();
    assert_eq!(journal.admit(&task("late", 4, 1), Some(4)).unwrap(), Verdict::Refuse(Refusal::Removed));
    assert_eq!(journal.admit(&task("remove", 4, 1), None).unwrap(), Verdict::Do);
    assert_eq!(journal.admit(&task("next", 5, 1), Some(5)).unwrap(), Verdict::Do);
}

#[test]
fn an_undone_generation_leaves_the_one_before_it_alone() {
    let disk = Disk::new();
    let journal = disk.open();
    journal.bury(INSTANCE, Generations::Only(5)).unwrap();
    assert_eq!(journal.admit(&task("late", 5, 1), Some(5)).unwrap(), Verdict::Refuse(Refusal::Removed));
    assert_eq!(journal.admit(&task("next", 6, 1), Some(6)).unwrap(), Verdict::Do);
}

#[test]
fn reports_are_numbered_over_restarts() {
    let disk = Disk::new();
    assert_eq!(disk.open().next_report().unwrap(), 1);
    let journal = disk.open();
    assert_eq!((journal.next_report().unwrap(), journal.next_report().unwrap()), (2, 3));
}

#[test]
fn a_line_that_was_cut_off_is_left_out_and_a_broken_one_stops_the_agent() {
    let disk = Disk::new();
    disk.open().admit(&task("a", 1, 1), Some(1)).unwrap();
    let whole = std::fs::read_to_string(disk.path()).unwrap();
    std::fs::write(disk.path(), format!("{whole}{{\"entry\":\"fini")).unwrap();
    assert_eq!(disk.open().admit(&task("a", 1, 1), Some(1)).unwrap(), Verdict::Do);
    std::fs::write(disk.path(), format!("{{\"entry\":\"fini\n{whole}")).unwrap();
    assert!(matches!(Journal::open(&disk.path()), Err(JournalFault::Broken { line: 1, .. })));
}

#[test]
fn a_last_line_that_was_cut_off_within_a_letter_is_left_out() {
    let disk = Disk::new();
    disk.open().bury(INSTANCE, Generations::Only(5)).unwrap();
    let mut bytes = std::fs::read(disk.path()).unwrap();
    bytes.extend_from_slice(b"{\"entry\":\"told\",\"key\":\"\xc3");
    std::fs::write(disk.path(), bytes).unwrap();
    let verdict = disk.open().admit(&task("late", 5, 1), Some(5)).unwrap();
    assert_eq!(verdict, Verdict::Refuse(Refusal::Removed), "what was whole is known");
}

#[test]
fn a_journal_that_cannot_be_rewritten_is_written_on_behind_its_last_whole_line() {
    let disk = Disk::new();
    disk.open().bury(INSTANCE, Generations::Only(5)).unwrap();
    let whole = std::fs::read_to_string(disk.path()).unwrap();
    // There is no room for another file beside it.
    std::fs::create_dir(disk.path().with_extension("new")).unwrap();
    let torn = [r#"{"entry":"told","key":""#, r#"{"entry":"told","key":"a"}"#];
    for (torn, report) in torn.into_iter().zip(1..) {
        let before = std::fs::read_to_string(disk.path()).unwrap();
        std::fs::write(disk.path(), format!("{before}{torn}")).unwrap();
        let journal = disk.open();
        let verdict = journal.admit(&task("late", 5, 1), Some(5)).unwrap();
        assert_eq!(verdict, Verdict::Refuse(Refusal::Removed), "what was whole is known");
        assert_eq!(journal.next_report().unwrap(), report);
    }
    let text = std::fs::read_to_string(disk.path()).unwrap();
    assert!(text.starts_with(&whole) && !text.contains("told"), "{text}");
    std::fs::remove_dir(disk.path().with_extension("new")).unwrap();
    assert_eq!(disk.open().next_report().unwrap(), 3);
    std::fs::remove_file(disk.path()).unwrap();
    std::fs::create_dir(disk.path().with_extension("new")).unwrap();
    assert!(matches!(Journal::open(&disk.path()), Err(JournalFault::Disk { .. })), "nothing to write on");
}

#[test]
fn a_line_that_a_full_disk_cut_off_is_taken_back_before_the_next() {
    let disk = Disk::new();
    let journal = disk.open();
    let (full, _) = Full::under(&journal, &disk);
    journal.admit(&task("a", 1, 1), Some(1)).unwrap();
    full.store(true, Ordering::Relaxed);
    journal.finish("a", &done()).unwrap_err();
    journal.next_report().unwrap_err();
    assert_eq!(journal.untold(), [], "what was not written did not happen");
    full.store(false, Ordering::Relaxed);
    journal.told("a").unwrap();
    journal.finish("a", &done()).unwrap();
    drop(journal);
    let journal = disk.open();
    assert_eq!(journal.admit(&task("a", 1, 1), Some(1)).unwrap(), Verdict::Known(done()));
    assert_eq!(journal.next_report().unwrap(), 1);
}

#[test]
fn while_a_torn_line_cannot_be_taken_back_nothing_more_is_written() {
    let disk = Disk::new();
    let journal = disk.open();
    let (full, stuck) = Full::under(&journal, &disk);
    full.store(true, Ordering::Relaxed);
    stuck.store(true, Ordering::Relaxed);
    journal.next_report().unwrap_err();
    full.store(false, Ordering::Relaxed);
    let torn = std::fs::read(disk.path()).unwrap();
    journal.next_report().unwrap_err();
    assert_eq!(std::fs::read(disk.path()).unwrap(), torn);
    assert_eq!(disk.open().next_report().unwrap(), 1, "the agent starts all the same");
    let journal = disk.open();
    let (full, stuck) = Full::under(&journal, &disk);
    for (is_full, is_stuck) in [(true, true), (false, false)] {
        full.store(is_full, Ordering::Relaxed);
        stuck.store(is_stuck, Ordering::Relaxed);
        assert_eq!(journal.next_report().is_ok(), !is_full, "and goes on once it can be");
    }
    assert_eq!(disk.open().next_report().unwrap(), 3);
}

#[test]
fn a_journal_that_is_written_for_long_stays_short_and_forgets_nothing_that_matters() {
    let disk = Disk::new();
    let journal = disk.open();
    journal.admit(&task("untold", 1, 1), Some(1)).unwrap();
    journal.finish("untold", &done()).unwrap();
    let reports = i64::try_from(2 * IDLE_LINES + 100).unwrap();
    for sequence in 1..=reports {
        assert_eq!(journal.next_report().unwrap(), sequence);
    }
    let lines = std::fs::read_to_string(disk.path()).unwrap().lines().count();
    assert!(lines <= IDLE_LINES + 20, "{lines} lines");
    drop(journal);
    let journal = disk.open();
    assert_eq!(journal.next_report().unwrap(), reports + 1, "reports go on");
    assert_eq!(journal.untold().len(), 1, "what was not told is owed");
}

#[test]
fn memory_is_bounded_by_what_is_remembered() {
    let mut memory = Memory::default();
    for number in 0..=u128::try_from(memory::REMEMBERED).unwrap() {
        let instance_id = Uuid::from_u128(number);
        for last in 1..=3 {
            memory.take(Entry::Removed { instance_id, generations: Generations::UpTo(last) });
        }
        let (key, task_id) = (number.to_string(), instance_id);
        let begun = Entry::Begun {
            key: key.clone(),
            task_id,
            instance_id: Some(instance_id),
            generation: 1,
            epoch: 1,
        };
        memory.take(begun);
        if number > 0 {
            memory.take(Entry::Finished { key: key.clone(), outcome: done() });
            memory.take(Entry::Told { key });
        }
    }
    memory.forget();
    let entries = memory.entries();
    let removed = entries.iter().filter(|entry| matches!(entry, Entry::Removed { .. })).count();
    assert_eq!(removed, memory::REMEMBERED, "one line says what three removals came to");
    let begun = entries.iter().filter(|entry| matches!(entry, Entry::Begun { .. })).count();
    assert_eq!(begun, memory::REMEMBERED + 1, "the oldest was never told of, so it is kept");
}
