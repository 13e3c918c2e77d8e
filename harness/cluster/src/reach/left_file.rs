//! Files in a job's folder on a file system of this machine. Whoever can write there (the workload, or root on a node)
//! could put links there to files of the user: no link is followed, neither to read, nor to write, nor to remove.

use job::flight_recorder;
use job::script::files;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::libc::{S_IFMT, S_IFREG};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

/// Of a path, so many last names are the run's own: its folder, those of the case and of the job, and the file. What is
/// above may be linked by an administrator.
const OWN_NAMES: usize = 4;
/// One more lies below the job's folder.
const TABLES: &str = "_pqtdir";
/// Two are those of an analysis, whose folder lies beside those of runs.
const ANALYSIS: &str = "analysis-";
/// What a file may have at most that is held in memory: an exit code, a mark.
const HELD_LIMIT: u64 = 64 << 20;
/// What a file may have at most.
const LIMIT: u64 = 1 << 30;
/// The same of reports of profilers and their tables.
const REPORT_LIMIT: u64 = 4 << 30;
const REPORTS: [&str; 4] = ["nsys-rep", "parquet", "arrows", "sqlite"];

pub(super) fn limit(path: &str) -> u64 {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit('.').next() {
        _ if name.starts_with(flight_recorder::DUMP) => flight_recorder::DUMP_LIMIT,
        Some(end) if REPORTS.contains(&end) => REPORT_LIMIT,
        _ => LIMIT,
    }
}

/// The parts of an analysis are held, too, and are as large as the reports make them.
pub(super) fn held_limit(path: &str) -> u64 {
    if is_of_analysis(Path::new(path)) { LIMIT } else { HELD_LIMIT }
}

pub(super) fn over_limit(bytes: u64, limit: u64) -> String {
    format!("it has {bytes} bytes, the limit is {limit}")
}

/// A file and its length.
pub(super) fn open(path: &str, limit: u64) -> io::Result<(File, u64)> {
    let (folder, name) = open_folder(Path::new(path))?;
    // Opening a pipe blocks until its other end is open, unless O_NONBLOCK is set.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match openat(&folder, name.as_os_str(), flags, Mode::empty()) {
        Err(Errno::ELOOP) => return Err(io::Error::other("it is a symbolic link")),
        Err(Errno::ENXIO) => {
            return Err(io::Error::other("it is not a regular file, but a pipe or a socket"));
        }
        opened => File::from(opened?),
    };
    let facts = fstat(&file)?;
    check(&facts)?;
    let bytes = u64::try_from(facts.st_size).unwrap_or(u64::MAX);
    match bytes > limit {
        true => Err(io::Error::other(over_limit(bytes, limit))),
        false => Ok((file, bytes)),
    }
}

/// Removes a file. One that is not there is no failure.
pub(super) fn remove(path: &str) -> io::Result<()> {
    let removed = || -> io::Result<()> {
        let (folder, name) = open_folder(Path::new(path))?;
        check(&fstatat(&folder, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?)?;
        Ok(unlinkat(&folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir)?)
    };
    match removed() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes a file, which is complete under its own name, and the folders that it lacks, for the user alone.
pub(super) fn write(path: &str, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = folder_of(Path::new(path), true)?;
    let mut part = name.clone();
    part.push(".part");
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let private = Mode::S_IRUSR | Mode::S_IWUSR;
    let made = match openat(&folder, part.as_os_str(), flags, private) {
        // A write that was cut short left it, or somebody else put it there.
        Err(Errno::EEXIST) => {
            unlinkat(&folder, part.as_os_str(), UnlinkatFlags::NoRemoveDir)?;
            openat(&folder, part.as_os_str(), flags, private)
        }
        made => made,
    };
    File::from(made?).write_all(bytes)?;
    Ok(renameat(&folder, part.as_os_str(), &folder, name.as_os_str())?)
}

/// The folder of a file, none of whose own names is a link; and the file's name in it.
fn open_folder(path: &Path) -> io::Result<(File, OsString)> {
    folder_of(path, false)
}

/// The same; `make`: what is not there of it is made.
fn folder_of(path: &Path, make: bool) -> io::Result<(File, OsString)> {
    let mut above = PathBuf::from(path);
    let mut own = Vec::new();
    let names = own_names(path);
    while own.len() < names {
        match above.components().next_back() {
            Some(Component::Normal(name)) => own.push(name.to_owned()),
            Some(Component::ParentDir) => return Err(io::Error::other("its path contains `..`")),
            _ => break,
        }
        above.pop();
    }
    let mut own = own.into_iter().rev();
    let name = own.next_back().ok_or_else(|| io::Error::other("its path has no file name"))?;
    if above.as_os_str().is_empty() {
        above.push(".");
    }
    let private = Mode::S_IRWXU;
    if make {
        DirBuilder::new().recursive(true).mode(private.bits()).create(&above)?;
    }
    let folder = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut opened = File::from(nix::fcntl::open(&above, folder, Mode::empty())?);
    for part in own {
        above.push(&part);
        let open = || openat(&opened, part.as_os_str(), folder | OFlag::O_NOFOLLOW, Mode::empty());
        let found = match open() {
            Err(Errno::ENOENT) if make => {
                match mkdirat(&opened, part.as_os_str(), private) {
                    // Another file of the folder made it meanwhile.
                    Ok(()) | Err(Errno::EEXIST) => open(),
                    Err(error) => Err(error),
                }
            }
            found => found,
        };
        opened = match found {
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                return Err(io::Error::other(format!("`{}` is a link or not a folder", above.display())));
            }
            found => File::from(found?),
        };
        let owner = fstat(&opened)?.st_uid;
        if owner != 0 && owner != geteuid().as_raw() {
            let above = above.display();
            return Err(io::Error::other(format!("the folder `{above}` belongs to user {owner}")));
        }
    }
    Ok((opened, name))
}

/// How many of the last names of a path are the run's own.
pub(super) fn own_names(path: &Path) -> usize {
    match folder_name(path) {
        _ if is_of_analysis(path) => 2,
        folder => {
            // So do the folders of a supervisor.
            let is_state = [files::SUPERVISOR, files::OLDER_SUPERVISOR]
                .iter()
                .any(|script| folder.starts_with(script.trim_end_matches("sh")));
            OWN_NAMES + usize::from(is_state || folder.ends_with(TABLES))
        }
    }
}

fn is_of_analysis(path: &Path) -> bool {
    folder_name(path).starts_with(ANALYSIS)
}

fn folder_name(path: &Path) -> Cow<'_, str> {
    path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy()
}

/// A path of a file where links may stand, and its own names behind that.
pub(super) fn split(path: &str) -> (&str, &str) {
    let mut ends = path.rmatch_indices('/').map(|(at, _)| at);
    match ends.nth(own_names(Path::new(path)) - 1) {
        Some(at) if at > 0 => (&path[..at], &path[at + 1..]),
        _ => ("/", path.trim_start_matches('/')),
    }
}

/// The same of the folder of a job, or of an analysis.
pub(super) fn split_folder(folder: &str) -> (&str, &str) {
    let names = if is_of_analysis(&Path::new(folder).join("x")) { 1 } else { OWN_NAMES - 1 };
    let mut ends = folder.rmatch_indices('/').map(|(at, _)| at);
    match ends.nth(names - 1) {
        Some(at) if at > 0 => (&folder[..at], &folder[at + 1..]),
        _ => ("/", folder.trim_start_matches('/')),
    }
}

fn check(facts: &FileStat) -> io::Result<()> {
    let user = geteuid().as_raw();
    let why = match facts {
        _ if facts.st_mode & S_IFMT != S_IFREG => {
            "it is not a regular file, but a folder, a link, a pipe or a device".to_owned()
        }
        _ if facts.st_uid != 0 && facts.st_uid != user => {
            format!("it belongs to user {}, not to {user}", facts.st_uid)
        }
        _ if facts.st_nlink != 1 => {
            format!("it has {} hard links, so it may be a file from elsewhere", facts.st_nlink)
        }
        _ => return Ok(()),
    };
    Err(io::Error::other(why))
}
