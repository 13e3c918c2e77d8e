//! Which runs are read at all: a folder of runs may be somebody else's, with links, pipes or endless files in the place
//! of artefacts.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// No artefact of the largest run comes near.
pub(crate) const MOST: u64 = 512 << 20;
const MOST_CASES: usize = 10_000;

/// Why a run's folder is not read.
pub fn refused(folder: &Path) -> Option<String> {
    check(folder).err()
}

fn check(folder: &Path) -> Result<(), String> {
    artefacts(folder, folder)?;
    let cases = folder.join("cases");
    let Some(kind) = kind(&cases).map_err(|error| at(folder, &cases, &error))? else { return Ok(()) };
    if !kind.is_dir() {
        return Err(at(folder, &cases, &"a link or no folder"));
    }
    for (count, case) in entries(folder, &cases)?.into_iter().enumerate() {
        if count == MOST_CASES {
            return Err(format!("more than {MOST_CASES} cases"));
        }
        match kind_of(folder, &case)? {
            Some(kind) if kind.is_dir() => artefacts(folder, &case)?,
            Some(kind) if kind.is_symlink() => return Err(at(folder, &case, &"a link")),
            _ => {}
        }
    }
    Ok(())
}

/// The files of this folder that readers of runs open by their name.
fn artefacts(run: &Path, folder: &Path) -> Result<(), String> {
    for path in entries(run, folder)? {
        let is_artefact =
            path.extension().is_some_and(|end| end == "json" || end == "parquet" || end == "jsonl");
        if !is_artefact {
            continue;
        }
        let facts = fs::symlink_metadata(&path).map_err(|error| at(run, &path, &error))?;
        if !facts.is_file() {
            return Err(at(run, &path, &"a link or no regular file"));
        }
        if facts.len() > MOST {
            return Err(at(run, &path, &format!("{} bytes, limit {MOST}", facts.len())));
        }
    }
    Ok(())
}

fn entries(run: &Path, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let mut all: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        all.sort();
        Ok(all)
    };
    read().map_err(|error| at(run, folder, &error))
}

fn kind(path: &Path) -> io::Result<Option<fs::FileType>> {
    match fs::symlink_metadata(path) {
        Ok(facts) => Ok(Some(facts.file_type())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn kind_of(run: &Path, path: &Path) -> Result<Option<fs::FileType>, String> {
    kind(path).map_err(|error| at(run, path, &error))
}

fn at(run: &Path, path: &Path, why: &dyn std::fmt::Display) -> String {
    format!("{}: {why}", path.strip_prefix(run).unwrap_or(path).display())
}

/// The bytes of an artefact; nothing where there is none. No link is followed, no pipe waited for, and no endless file read.
pub(crate) fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let Some((file, _)) = open(path, most)? else { return Ok(None) };
    bytes(file, most).map(Some)
}

/// The same of a file that this user or root wrote, and no other user can write.
pub fn read_own(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let Some((file, facts)) = open(path, most)? else { return Ok(None) };
    if ![0, nix::unistd::geteuid().as_raw()].contains(&facts.uid()) {
        return Err("written by another user".to_owned());
    }
    if facts.mode() & 0o022 != 0 {
        return Err("other users can write it".to_owned());
    }
    bytes(file, most).map(Some)
}

fn open(path: &Path, most: u64) -> Result<Option<(File, fs::Metadata)>, String> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => {
            return Err("a link, which is not followed".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    let facts = file.metadata().map_err(|error| error.to_string())?;
    match (facts.is_file(), facts.len() > most) {
        (false, _) => Err("no regular file".to_owned()),
        (true, true) => Err(format!("{} bytes, limit {most}", facts.len())),
        (true, false) => Ok(Some((file, facts))),
    }
}

fn bytes(file: File, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    // It grew since it was looked at, or is one whose size the kernel does not know, as in /proc.
    match bytes.len() as u64 > most {
        true => Err(format!("more than {most} bytes, the limit; it grows while it is read")),
        false => Ok(bytes),
    }
}

/// The file of a case by its path there, none of whose folders is a link.
pub fn file_of_case(case: &Path, path: &str) -> Result<PathBuf, String> {
    let mut whole = case.to_owned();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
        whole.push(folder);
        match kind(&whole) {
            Ok(Some(kind)) if kind.is_dir() => {}
            Ok(Some(_)) => return Err("its folder is a link, which is not followed".to_owned()),
            Ok(None) => return Err("it is not there any more".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(whole.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn links_pipes_and_endless_artefacts_keep_a_run_from_being_read() {
        let place = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let run = place.path().join(name);
            fs::create_dir_all(run.join("cases/c/raw/j")).expect("made");
            for file in ["plan.json", "cases/c/verdict.json", "cases/c/raw/j/stdout"] {
                fs::write(run.join(file), "{}").expect("written");
            }
            run
        };
        let why = |run: &Path| refused(run).unwrap_or_default();
        let good = make("good");
        assert_eq!(refused(&good), None);
        // What jobs left is looked at when it is read.
        symlink("/etc/passwd", good.join("cases/c/raw/j/link")).expect("linked");
        symlink("j", good.join("cases/c/raw/other")).expect("linked");
        assert_eq!(refused(&good), None);
        let case = good.join("cases/c");
        assert_eq!(file_of_case(&case, "raw/j/stdout"), Ok(case.join("raw/j/stdout")));
        assert!(file_of_case(&case, "raw/other/stdout").expect_err("refused").contains("a link"));

        let linked = make("linked");
        fs::remove_file(linked.join("cases/c/verdict.json")).expect("removed");
        symlink("/dev/zero", linked.join("cases/c/verdict.json")).expect("linked");
        assert_eq!(why(&linked), "cases/c/verdict.json: a link or no regular file");
        let folder = make("folder");
        symlink(&good, folder.join("cases/d")).expect("linked");
        assert_eq!(why(&folder), "cases/d: a link");
        let pipe = make("pipe");
        nix::unistd::mkfifo(&pipe.join("probe.json"), nix::sys::stat::Mode::S_IRWXU).expect("made");
        assert_eq!(why(&pipe), "probe.json: a link or no regular file");
        let large = make("large");
        let file = fs::File::create(large.join("summary.json")).expect("made");
        file.set_len(MOST + 1).expect("sparse");
        assert_eq!(why(&large), "summary.json: 536870913 bytes, limit 536870912");
    }

    #[test]
    fn only_a_small_regular_file_is_read_and_absence_is_no_error() {
        let place = tempfile::tempdir().expect("a folder");
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "abc").expect("written");
        fs::set_permissions(path("file"), fs::Permissions::from_mode(0o600)).expect("set");
        assert_eq!(read_own(&path("file"), 3), Ok(Some(b"abc".to_vec())));
        assert_eq!(read_own(&path("absent"), 3), Ok(None));
        assert_eq!(read_own(&path("file"), 2), Err("3 bytes, limit 2".to_owned()));
        // Its size is 0, as is that of a file that has only begun to grow.
        let grown = read(Path::new("/proc/self/status"), 3).expect_err("not cut to what was looked at");
        assert!(grown.starts_with("more than 3 bytes"), "{grown}");
        fs::set_permissions(path("file"), fs::Permissions::from_mode(0o666)).expect("set");
        assert_eq!(read_own(&path("file"), 3), Err("other users can write it".to_owned()));
        symlink("file", path("link")).expect("linked");
        assert_eq!(read_own(&path("link"), 3), Err("a link, which is not followed".to_owned()));
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
        assert_eq!(read_own(&path("pipe"), 3), Err("no regular file".to_owned()));
        assert_eq!(read_own(place.path(), 3), Err("no regular file".to_owned()));
    }
}
