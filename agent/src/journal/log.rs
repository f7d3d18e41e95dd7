//! The file that lines are written to. A line is in it whole or not at all: what a full disk cut off is taken back before
//! anything follows, because only a last line may be torn when the journal is read again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What lines are kept on: a file, and in tests one that fails.
pub(super) trait Paper: Send {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    fn cut(&self, length: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

impl Paper for File {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

pub(super) struct Log {
    pub(super) paper: Box<dyn Paper>,
    /// Up to here are whole lines.
    length: u64,
    /// Whether there may be something behind them.
    torn: bool,
}

impl Log {
    pub(super) fn new(file: File, length: u64) -> Log {
        Log { paper: Box::new(file), length, torn: false }
    }

    /// Of a file with perhaps something torn behind its whole lines.
    pub(super) fn found(file: File, length: u64) -> Log {
        Log { torn: true, ..Log::new(file, length) }
    }

    /// Writes a line, synced. While something torn cannot be taken back, nothing more is written.
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        if self.torn {
            self.mend()?;
        }
        let line = format!("{line}\n");
        let written = self.paper.write_at(line.as_bytes(), self.length).and_then(|()| self.paper.sync());
        if let Err(error) = written {
            self.torn = true;
            // Whether it is mended now or before the next line, this one was not written.
            let _ = self.mend();
            return Err(error);
        }
        self.length += line.len() as u64;
        Ok(())
    }

    fn mend(&mut self) -> io::Result<()> {
        self.paper.cut(self.length)?;
        self.paper.sync()?;
        self.torn = false;
        Ok(())
    }
}
