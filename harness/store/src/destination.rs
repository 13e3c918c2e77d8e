//! Where a file goes that a person named for output: a regular file is replaced whole, and what is a device, a pipe or an
//! open file of this process gets the bytes and stays what it is.

use crate::trust::{STICKY, WRITABLE_BY_OTHERS};
use nix::libc;
use nix::unistd::geteuid;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

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
            let facts = match fs::symlink_metadata(&path) {
                Ok(facts) => facts,
                // Whoever writes there reports what is wrong.
                Err(_) => {
                    refuse_evidence(&path)?;
                    return Ok(Destination::File(path));
                }
            };
            let kind = facts.file_type();
            if kind.is_symlink() || kind.is_fifo() || kind.is_socket() {
                refuse_planted(&path, &facts)?;
            }
            if kind.is_symlink() {
                let target = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(target);
                continue;
            }
            let is_stream =
                kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket();
            if is_stream {
                return Ok(Destination::Stream(path));
            }
            refuse_evidence(&path)?;
            return Ok(Destination::File(path));
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

/// As the kernel follows links: in a sticky folder that others can write, only those of this user or of the folder's
/// owner. Any user can put one there, to have the file behind it replaced.
fn refuse_planted(path: &Path, facts: &Metadata) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let of_folder = fs::metadata(folder)?;
    let is_shared = of_folder.mode() & STICKY != 0 && of_folder.mode() & WRITABLE_BY_OTHERS != 0;
    if !is_shared || [geteuid().as_raw(), of_folder.uid()].contains(&facts.uid()) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "a link or pipe of user {} in `{}`, where other users can make files, is not followed; name another file",
        facts.uid(),
        folder.display()
    )))
}

/// The files that a run's verdicts stand on: replaced by a report, they are lost, and no verb reads the run any more.
/// Reports of a run, such as its `junit.xml`, can be made again. A new file of that kind is one of the run from then on.
fn refuse_evidence(path: &Path) -> io::Result<()> {
    let at = |part: &Path| fs::canonicalize(if part.as_os_str().is_empty() { Path::new(".") } else { part });
    let Some((there, real)) = path.ancestors().find_map(|part| Some((part, at(part).ok()?))) else {
        return Ok(());
    };
    let path = real.join(path.strip_prefix(there).unwrap_or(Path::new("")));
    let of_run = |folder: &&Path| folder.join("plan.json").is_file() && folder.join("cases").is_dir();
    let Some(run) = path.ancestors().skip(1).find(of_run) else { return Ok(()) };
    let inside = path.strip_prefix(run).unwrap_or(&path);
    let is_open = inside.components().any(|part| part == Component::ParentDir);
    let is_read = |kind: &OsStr| kind == "json" || kind == "jsonl";
    if is_open || inside.starts_with("cases") || inside.extension().is_some_and(is_read) {
        return Err(io::Error::other("a file of a stored run, which is kept as it is; name another file"));
    }
    Ok(())
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
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

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
    fn links_and_pipes_of_other_users_in_a_sticky_folder_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("shared")).expect("made");
        fs::write(at("key"), "key").expect("written");
        symlink("../key", at("shared/report.json")).expect("linked");
        mkfifo(&at("shared/pipe"), Mode::from_bits_truncate(0o600)).expect("made");
        let set = |mode: u32| {
            fs::set_permissions(at("shared"), fs::Permissions::from_mode(mode)).expect("set");
        };
        set(0o1777);
        write_output(&at("shared/report.json"), b"key").expect("a link of one's own");
        // Only root can give a link away.
        if lchown(at("shared/report.json"), Some(54_321), None).is_err() {
            return;
        }
        lchown(at("shared/pipe"), Some(54_321), None).expect("given away");
        for name in ["shared/report.json", "shared/pipe"] {
            let why = write_output(&at(name), b"x").expect_err("planted").to_string();
            assert!(why.contains("a link or pipe of user 54321") && why.contains("shared"), "{why}");
        }
        crate::remove_earlier(&at("shared/report.json"), "key").expect("left alone");
        assert_eq!(fs::read_to_string(at("key")).expect("there"), "key");
        // The folder's owner may, and so may whoever alone can write it.
        lchown(at("shared"), Some(54_321), None).expect("given away");
        write_output(&at("shared/report.json"), b"of the owner").expect("written");
        lchown(at("shared"), Some(0), None).expect("given back");
        set(0o755);
        write_output(&at("shared/report.json"), b"x").expect("written");
        assert_eq!(fs::read_to_string(at("key")).expect("there"), "x");
    }

    #[test]
    fn what_the_verdicts_of_a_stored_run_stand_on_is_not_replaced_by_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("run/cases/a")).expect("made");
        let evidence = ["run/plan.json", "run/summary.json", "run/events.jsonl", "run/cases/a/verdict.json"];
        for name in evidence.into_iter().chain(["run/junit.xml", "plan.json"]) {
            fs::write(at(name), "{}").expect("written");
        }
        symlink("run/plan.json", at("link")).expect("linked");
        for name in evidence.into_iter().chain(["link"]) {
            let why = write_output(&at(name), b"x").expect_err("kept").to_string();
            assert!(why.contains("a file of a stored run, which is kept as it is"), "{name}: {why}");
            assert!(crate::check_output(&at(name)).is_err(), "{name}");
            crate::remove_earlier(&at(name), "{").expect("left alone");
            assert_eq!(fs::read_to_string(at(name)).expect("there"), "{}", "{name}");
        }
        // Nor is one added that would be read as the run's.
        for name in [
            "run/probe.json",
            "run/ctrf.json",
            "run/cases/a/page.html",
            "run/cases/b/c/page.html",
            "run/x/../cases/d",
        ] {
            let why = write_output(&at(name), b"x").expect_err("left out").to_string();
            assert!(why.contains("a file of a stored run, which is kept as it is"), "{name}: {why}");
            assert!(crate::check_output(&at(name)).is_err() && !at(name).exists(), "{name}");
        }
        assert!(!at("run/cases/b").exists() && !at("run/x").exists());
        for name in ["run/junit.xml", "run/page.html", "plan.json", "new/folder/plan.json"] {
            write_output(&at(name), b"x").expect("written");
        }
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
