//! Where a file goes that a person named for output: a regular file is replaced whole, and what is a device, a pipe or an
//! open file of this process gets the bytes and stays what it is.

use nix::libc;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A regular file, or nothing yet: behind all links.
    File(PathBuf),
    /// Something that exists and is never replaced.
    Stream(PathBuf),
    Stdout,
    Stderr,
}

impl Destination {
    pub(crate) fn find(path: &Path) -> io::Result<Destination> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            if let Some(open) = open_file(&path) {
                return Ok(open);
            }
            let kind = match fs::symlink_metadata(&path) {
                Ok(facts) => facts.file_type(),
                // Whoever writes there reports what is wrong.
                Err(_) => return Ok(Destination::File(path)),
            };
            if kind.is_symlink() {
                let target = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(target);
                continue;
            }
            let is_stream =
                kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket();
            return Ok(if is_stream { Destination::Stream(path) } else { Destination::File(path) });
        }
        Err(io::Error::other("too many symbolic links"))
    }

    /// Writes all or, where making it fails, nothing: what went into a stream cannot be taken back.
    pub(crate) fn stream(&self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut whole = tempfile::tempfile()?;
        write(&mut whole)?;
        io::Seek::rewind(&mut whole)?;
        let copied = match self {
            Destination::Stdout => io::copy(&mut whole, &mut io::stdout().lock()),
            Destination::Stderr => io::copy(&mut whole, &mut io::stderr().lock()),
            Destination::File(path) | Destination::Stream(path) => io::copy(&mut whole, &mut open(path)?),
        };
        copied?;
        io::stdout().flush()
    }
}

/// A file that this process or another has open, by its number in `/proc`: `/dev/stdout` leads there.
fn open_file(path: &Path) -> Option<Destination> {
    let number: u32 = path.file_name()?.to_str()?.parse().ok()?;
    let folder = fs::canonicalize(path.parent()?).ok()?;
    if !folder.starts_with("/proc") || !folder.ends_with("fd") {
        return None;
    }
    let is_own = folder.starts_with(Path::new("/proc").join(std::process::id().to_string()));
    Some(match (is_own, number) {
        (true, 1) => Destination::Stdout,
        (true, 2) => Destination::Stderr,
        _ => Destination::Stream(path.to_owned()),
    })
}

/// Opens what exists, for bytes behind those that are there. A pipe without a reader is an error, and not waited for.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true);
    let unblocked = options.clone().custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    // Held until the second one is open, which waits for a reader that is slow.
    let unblocked = unblocked.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::other("a pipe or socket that nothing reads"),
        _ => error,
    })?;
    match unblocked.metadata()?.is_dir() {
        true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        false => options.custom_flags(libc::O_NOCTTY).open(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{write_output, write_private_output_by};
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_and_the_file_behind_them_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).expect("made");
        symlink("deep/report.json", at("link")).expect("linked");
        symlink("link", at("link-to-link")).expect("linked");
        for text in ["first", "second"] {
            write_output(&at("link-to-link"), text.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(at("deep/report.json")).expect("there"), text);
        }
        assert!(at("link").is_symlink() && at("link-to-link").is_symlink());
        symlink("turn", at("turn")).expect("linked");
        assert!(
            write_output(&at("turn"), b"x").expect_err("a circle").to_string().contains("symbolic links")
        );
    }

    #[test]
    fn pipes_and_open_files_get_the_bytes_and_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        mkfifo(&pipe, Mode::from_bits_truncate(0o600)).expect("made");
        let why = write_output(&pipe, b"x").expect_err("no reader").to_string();
        assert!(why.contains("nothing reads"), "{why}");
        // Opened for both, it waits for no other end.
        let mut reader = File::options().read(true).write(true).open(&pipe).expect("opened");
        let text = "x".repeat(60_000);
        write_output(&pipe, text.as_bytes()).expect("written");
        let mut seen = vec![0; text.len()];
        reader.read_exact(&mut seen).expect("read");
        assert!(seen == text.as_bytes());
        assert!(fs::symlink_metadata(&pipe).expect("there").file_type().is_fifo());
    }

    #[test]
    fn devices_and_the_programs_own_output_are_streams() {
        let find = |path: &str| Destination::find(Path::new(path)).expect("found");
        assert_eq!(find("/dev/null"), Destination::Stream("/dev/null".into()));
        assert_eq!(find("/dev/stdout"), Destination::Stdout);
        assert_eq!(find("/proc/self/fd/2"), Destination::Stderr);
        assert_eq!(find("/dev/fd/1"), Destination::Stdout);
        assert!(matches!(find("/dev/fd/63"), Destination::Stream(_)));
        write_output(Path::new("/dev/null"), b"x").expect("written");
        write_private_output_by(Path::new("/dev/null"), &mut |file| file.write_all(b"x")).expect("written");
        assert!(fs::metadata("/dev/null").expect("there").file_type().is_char_device());
    }
}
