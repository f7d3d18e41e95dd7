//! What became of the tries of this process to deliver something, since it began. They are of the process as a whole, so
//! that `/metrics` can tell of them, which knows no `Env`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clients::webhook::SendFault;

/// Taken, answered with something else, not answered.
const WORDS: [&str; 3] = ["delivered", "refused", "unanswered"];

static TRIES: [AtomicU64; WORDS.len()] = [const { AtomicU64::new(0) }; WORDS.len()];

/// How many tries ended in which way.
pub fn results() -> impl Iterator<Item = (&'static str, u64)> {
    WORDS.into_iter().zip(&TRIES).map(|(word, count)| (word, count.load(Relaxed)))
}

/// Where a try that ended like this is counted.
pub(super) fn of(answer: &Result<u16, SendFault>) -> &'static AtomicU64 {
    match answer {
        Ok(200..=299) => &TRIES[0],
        Ok(_) => &TRIES[1],
        Err(_) => &TRIES[2],
    }
}

pub(super) fn count(tries: &AtomicU64) {
    tries.fetch_add(1, Relaxed);
}
