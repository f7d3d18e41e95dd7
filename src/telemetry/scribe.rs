//! Writes log lines in the order in which they were said, many with one call: every request says one, and a system call for
//! each would cost more than the rest of the line.
//!
//! Nothing is dropped. While nobody reads and the buffer is full, whoever speaks waits; a warning or an error is written
//! before its speaker goes on, because the process may be about to end; the guard writes the rest.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long a line may lie while others join it.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes that may wait for a slow reader.
const ROOM: usize = 1 << 20;

#[derive(Clone)]
pub struct Scribe(Arc<Desk>);

#[derive(Default)]
struct Desk {
    pages: Mutex<Pages>,
    /// Something is to be written, or is wanted now.
    wanted: Condvar,
    /// Something was written.
    written: Condvar,
}

#[derive(Default)]
struct Pages {
    waiting: Vec<u8>,
    /// Bytes said and bytes written, since the beginning.
    said: u64,
    written: u64,
    /// Somebody waits for what was said, or everything ends.
    hurry: bool,
    closing: bool,
}

/// Writes what is left when dropped.
pub struct Closing(Arc<Desk>, Option<JoinHandle<()>>);

impl Scribe {
    pub fn start(sink: impl Write + Send + 'static) -> io::Result<(Scribe, Closing)> {
        let desk = Arc::new(Desk::default());
        let own = Arc::clone(&desk);
        let writing = thread::Builder::new().name("log".to_owned()).spawn(move || own.write_to(sink))?;
        Ok((Scribe(Arc::clone(&desk)), Closing(desk, Some(writing))))
    }
}

impl Desk {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, line: &[u8], urgent: bool) {
        let full = |pages: &mut Pages| pages.waiting.len() > ROOM && !pages.closing;
        let mut pages = self.written.wait_while(self.pages(), full).unwrap_or_else(PoisonError::into_inner);
        let idle = pages.waiting.is_empty();
        pages.waiting.extend_from_slice(line);
        pages.said += line.len() as u64;
        pages.hurry |= urgent;
        if idle || urgent {
            self.wanted.notify_one();
        }
        if urgent {
            let mine = pages.said;
            let unwritten = |pages: &mut Pages| pages.written < mine && !pages.closing;
            drop(self.written.wait_while(pages, unwritten));
        }
    }

    fn write_to(&self, mut sink: impl Write) {
        let mut lines = Vec::new();
        loop {
            let quiet = |pages: &mut Pages| pages.waiting.is_empty() && !pages.closing;
            let pages = self.wanted.wait_while(self.pages(), quiet).unwrap_or_else(PoisonError::into_inner);
            let calm = |pages: &mut Pages| !pages.hurry && !pages.closing;
            let joined = self.wanted.wait_timeout_while(pages, PAUSE, calm);
            let (mut pages, _) = joined.unwrap_or_else(PoisonError::into_inner);
            if pages.waiting.is_empty() && pages.closing {
                return;
            }
            mem::swap(&mut pages.waiting, &mut lines);
            pages.hurry = false;
            drop(pages);
            // There is nobody left to tell that the log cannot be written.
            let _ = sink.write_all(&lines).and_then(|()| sink.flush());
            self.pages().written += lines.len() as u64;
            self.written.notify_all();
            lines.clear();
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.pages().closing = true;
        self.0.wanted.notify_one();
        if let Some(writing) = self.1.take() {
            let _ = writing.join();
        }
    }
}

/// One speaker's line.
pub struct Saying<'a> {
    desk: &'a Desk,
    urgent: bool,
}

impl Write for Saying<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.desk.say(line, self.urgent);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Scribe {
    type Writer = Saying<'a>;

    fn make_writer(&'a self) -> Saying<'a> {
        Saying { desk: &self.0, urgent: false }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Saying<'a> {
        Saying { desk: &self.0, urgent: *meta.level() <= Level::WARN }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Hands every write over, and takes the next only once it may.
    struct Slow(mpsc::Sender<Vec<u8>>, mpsc::Receiver<()>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).unwrap();
            let _ = self.1.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_said_while_a_write_is_under_way_goes_out_with_one_call_and_in_order() {
        let (writes, written) = mpsc::channel();
        let (go, may) = mpsc::channel();
        let (scribe, closing) = Scribe::start(Slow(writes, may)).unwrap();
        scribe.0.say(b"first\n", false);
        assert_eq!(written.recv().unwrap(), b"first\n");
        for line in ["a\n", "b\n", "c\n"] {
            scribe.0.say(line.as_bytes(), false);
        }
        go.send(()).unwrap();
        assert_eq!(written.recv().unwrap(), b"a\nb\nc\n");
        go.send(()).unwrap();
        scribe.0.say(b"last\n", false);
        drop(go);
        drop(closing);
        assert_eq!(written.recv().unwrap(), b"last\n", "the guard writes what is left");
    }

    #[test]
    fn a_warning_is_written_before_its_speaker_goes_on() {
        let (writes, written) = mpsc::channel();
        let (go, may) = mpsc::channel();
        drop(go);
        let (scribe, _closing) = Scribe::start(Slow(writes, may)).unwrap();
        scribe.0.say(b"careful\n", true);
        assert_eq!(written.try_recv().unwrap(), b"careful\n");
    }
}
