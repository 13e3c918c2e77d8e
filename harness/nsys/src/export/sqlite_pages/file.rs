//! The pages of one file, by positioned reads. The file is never mapped: one that shrinks on a shared file system
//! while mapped kills the process, and here it is an error.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct PageFile {
    pub file: File,
    pub page_size: usize,
    pub pages: u32,
}

impl PageFile {
    /// How long a record could be at most.
    pub(super) fn bytes(&self) -> u64 {
        self.page_size as u64 * u64::from(self.pages)
    }

    /// Neighbouring pages in one read, from the first one on; the buffer is used again and never shrinks.
    pub(super) fn run<'b>(
        &self,
        first: u32,
        count: u32,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], String> {
        let end = u64::from(first) + u64::from(count);
        if first == 0 || end > u64::from(self.pages) + 1 {
            return Err(format!("page {first} is beyond the end of the file ({} pages)", self.pages));
        }
        let length = self.page_size.saturating_mul(count as usize);
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let into = buffer.get_mut(..length).unwrap_or_default();
        self.read(first, 0, into)?;
        Ok(into)
    }

    /// A number of two bytes at this place of a page.
    pub(super) fn two_bytes(&self, page: u32, at: usize) -> Result<u16, String> {
        let mut bytes = [0; 2];
        self.read(page, at, &mut bytes)?;
        Ok(u16::from_be_bytes(bytes))
    }

    fn read(&self, page: u32, at: usize, into: &mut [u8]) -> Result<(), String> {
        let begin = u64::from(page.saturating_sub(1)) * self.page_size as u64 + at as u64;
        self.file.read_exact_at(into, begin).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                format!("truncated while reading: page {page} of {}", self.pages)
            }
            _ => error.to_string(),
        })
    }
}

/// Which pages were used: in a sound file each has one place, so that whatever leads to a page again is damage, and no
/// walk is longer than the file.
pub(super) struct VisitedPages(Vec<AtomicU64>);

impl VisitedPages {
    pub(super) fn new(file: &PageFile) -> VisitedPages {
        VisitedPages((0..=file.pages / 64).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn mark(&self, page: u32) -> Result<(), String> {
        let word = self.0.get(page as usize / 64).filter(|_| page > 0);
        let word = word.ok_or_else(|| format!("page {page} is beyond the end of the file"))?;
        let bit = 1 << (page % 64);
        match word.fetch_or(bit, Ordering::Relaxed) & bit {
            0 => Ok(()),
            _ => Err(format!("page {page} is referenced twice")),
        }
    }
}

/// Pages that follow one another by links, mostly as neighbours: some are read ahead.
#[derive(Default)]
pub(super) struct Window {
    buffer: Vec<u8>,
    first: u32,
    count: u32,
}

impl Window {
    const AHEAD_BYTES: usize = 64 * 1024;

    /// One page; `more` is how many of the following ones may be wanted next.
    pub(super) fn page(&mut self, file: &PageFile, page: u32, more: usize) -> Result<&[u8], String> {
        let held = page.checked_sub(self.first).filter(|at| *at < self.count);
        if held.is_none() {
            self.count = 0;
            let left = file.pages.saturating_sub(page) as usize;
            let ahead = more.min(left).min((Window::AHEAD_BYTES / file.page_size).saturating_sub(1));
            let count = ahead as u32 + 1;
            file.run(page, count, &mut self.buffer)?;
            (self.first, self.count) = (page, count);
        }
        let at = (page - self.first) as usize * file.page_size;
        self.buffer.get(at..at + file.page_size).ok_or_else(|| format!("page {page} was not read"))
    }
}
