//! How far a transfer is: a bar with bytes and the time that is left on a terminal, one line at its end elsewhere.

use std::io::{self, IsTerminal, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use super::output;

const CHUNK: usize = 1 << 18;
const REDRAW: Duration = Duration::from_millis(100);
const WIDTH: u64 = 24;

pub struct Progress {
    what: String,
    total: u64,
    /// Where it began: an earlier try may have brought it so far.
    first: u64,
    now: AtomicU64,
    began: Instant,
    /// When the bar was drawn last; none where nobody watches.
    drawn: Option<Mutex<Instant>>,
}

impl Progress {
    pub fn new(what: &str, total: u64, first: u64) -> Progress {
        let began = Instant::now();
        let drawn = io::stderr().is_terminal().then(|| Mutex::new(began));
        Progress { what: what.to_owned(), total, first, now: AtomicU64::new(first), began, drawn }
    }

    /// These bytes of a file, counted as they go. What is sent again counts from where it begins.
    pub async fn part(
        self: Arc<Progress>,
        path: PathBuf,
        part: Range<u64>,
    ) -> io::Result<impl Stream<Item = io::Result<Bytes>>> {
        let mut file = File::open(path).await?;
        file.seek(SeekFrom::Start(part.start)).await?;
        self.now.store(part.start, Ordering::Relaxed);
        let rest = ReaderStream::with_capacity(file.take(part.end - part.start), CHUNK);
        Ok(rest.inspect_ok(move |chunk| self.add(chunk.len() as u64)))
    }

    fn add(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Some(drawn) = &self.drawn else { return };
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.elapsed() >= REDRAW {
            *drawn = Instant::now();
            let _ = write!(io::stderr(), "\r\x1b[K{}", self.bar(now, self.began.elapsed()));
        }
    }

    pub fn done(&self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
        output::say(&format!("{} {} sent", self.what, size(self.total - self.first)));
    }

    fn bar(&self, now: u64, took: Duration) -> String {
        let filled = usize::try_from(now * WIDTH / self.total.max(1)).unwrap_or_default();
        let bar: String = "=".repeat(filled) + &" ".repeat(WIDTH as usize - filled.min(WIDTH as usize));
        let rate = now.saturating_sub(self.first) as f64 / took.as_secs_f64().max(0.001);
        let left = (self.total.saturating_sub(now)) as f64 / rate.max(1.0);
        format!("{} [{bar}] {} of {}, {left:.0} s left", self.what, size(now), size(self.total))
    }
}

pub fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if number < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{number:.1} {unit}") };
        }
        number /= 1024.0;
    }
    format!("{number:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_tells_bytes_and_the_time_that_is_left() {
        let progress = Progress::new("weights", 4 << 20, 1 << 20);
        let drawn = progress.bar(2 << 20, Duration::from_secs(1));
        assert_eq!(drawn, "weights [============            ] 2.0 MiB of 4.0 MiB, 2 s left");
        assert_eq!((size(7), size(2048), size(5 << 40)), ("7 B".into(), "2.0 KiB".into(), "5.0 TiB".into()));
    }
}
