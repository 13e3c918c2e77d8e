//! Files that are only appended to, a line at a time, and outlive the process that writes them at any moment: a line is
//! written before what it reports goes on, and a line that was cut off is one that was never written.

use super::StoreError;
use super::atomic_file::private_file;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names the write in whose middle the process ends itself, as by `kill -9`. Tests alone set it.
const KILL_AT: &str = "HARNESS_TEST_KILL_AT_WRITE";

/// A larger file holds something else; all of it would be in memory.
const MOST_BYTES: u64 = 4 << 30;

#[derive(Debug)]
pub(crate) struct Appender {
    written: AtomicU64,
    kill_at: Option<u64>,
    /// A line is on the disk, not only in the machine's memory, before what it reports goes on.
    outlives_power: bool,
}

impl Default for Appender {
    fn default() -> Self {
        Appender::new(true)
    }
}

impl Appender {
    pub(crate) fn new(outlives_power: bool) -> Appender {
        let kill_at = std::env::var(KILL_AT).ok().and_then(|number| number.parse().ok());
        Appender { written: AtomicU64::new(0), kill_at, outlives_power }
    }

    /// Whether a test wants the process to end in the middle of this write.
    pub(crate) fn is_last_write(&self) -> bool {
        Some(self.written.fetch_add(1, Ordering::Relaxed) + 1) == self.kill_at
    }

    pub(crate) fn append<T: Serialize>(&self, path: &Path, entry: &T) -> Result<(), StoreError> {
        let appended = (|| {
            let mut line = serde_json::to_vec(entry).map_err(io::Error::other)?;
            line.push(b'\n');
            let mut file = open(private_file().create(true).append(true), path)?;
            if self.is_last_write() {
                file.write_all(&line[..line.len() / 2])?;
                kill_this_process();
            }
            file.write_all(&line)?;
            if self.outlives_power { file.sync_data() } else { Ok(()) }
        })();
        appended.map_err(|error| StoreError::at(path, error))
    }
}

/// Nothing is reported, closed or removed: as after a power failure.
pub(crate) fn kill_this_process() {
    let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
}

/// Opens a file of lines. Others may be able to write its folder: what a link leads to would get the lines, or be cut to
/// whole ones, and a pipe would be waited for.
pub(crate) fn open(options: &mut fs::OpenOptions, path: &Path) -> io::Result<fs::File> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let file = options.custom_flags(flags).open(path).map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ELOOP) => io::Error::other("a link, which is not followed"),
        // A pipe that nothing reads.
        Some(nix::libc::ENXIO) => io::Error::other("not a regular file"),
        _ => error,
    })?;
    let facts = file.metadata()?;
    match (facts.is_file() || facts.is_dir(), facts.len() > MOST_BYTES) {
        (false, _) => Err(io::Error::other("not a regular file")),
        (true, true) => Err(io::Error::other(format!("{} bytes, limit {MOST_BYTES}", facts.len()))),
        // A folder is refused by whoever reads or writes it.
        (true, false) => Ok(file),
    }
}

/// The lines that were written whole. A file that is not there has none. What was cut off at its end is taken away, so
/// that what is appended next begins a line of its own.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, StoreError> {
    let mut bytes = Vec::new();
    let read = open(fs::OpenOptions::new().read(true), path)
        .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::at(path, error)),
    }
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() {
        let cut = open(fs::OpenOptions::new().write(true), path).and_then(|file| file.set_len(whole as u64));
        cut.map_err(|error| StoreError::at(path, error))?;
    }
    let lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_slice(line)
                .map_err(|error| StoreError::other(path, &format!("line {}: {error}", at + 1)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_line_that_was_cut_off_was_never_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        assert_eq!(read::<u64>(&path).expect("none"), [] as [u64; 0]);
        let appender = Appender::default();
        appender.append(&path, &1).expect("written");
        appender.append(&path, &22).expect("written");
        let whole = fs::read(&path).expect("there");
        fs::write(&path, [whole.as_slice(), b"33"].concat()).expect("cut off");
        assert_eq!(read::<u64>(&path).expect("two"), [1, 22]);
        appender.append(&path, &4).expect("written");
        assert_eq!(read::<u64>(&path).expect("three"), [1, 22, 4]);
    }

    #[test]
    fn links_pipes_devices_and_sparse_files_are_neither_read_nor_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("precious"), "1\nnotes without an end").expect("written");
        symlink("precious", path("link")).expect("linked");
        symlink("/dev/zero", path("device")).expect("linked");
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        fs::File::create(path("sparse"))
            .and_then(|file| file.set_len(MOST_BYTES + 1))
            .expect("a sparse file");
        let appender = Appender::default();
        for (name, why) in [
            ("link", "a link, which is not followed"),
            ("device", "a link, which is not followed"),
            ("pipe", "not a regular file"),
            ("sparse", "4294967297 bytes, limit 4294967296"),
        ] {
            let expected = format!("{}: {why}", path(name).display());
            assert_eq!(read::<u64>(&path(name)).expect_err("not read").to_string(), expected);
            assert_eq!(appender.append(&path(name), &1).expect_err("not written").to_string(), expected);
        }
        let kept = fs::read_to_string(path("precious")).expect("there");
        assert_eq!(kept, "1\nnotes without an end", "cut or added to through a link");
    }

    #[test]
    fn a_broken_line_in_the_middle_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        fs::write(&path, "1\nx\n3\n").expect("written");
        assert!(read::<u64>(&path).expect_err("broken").to_string().contains("line 2"));
    }
}
