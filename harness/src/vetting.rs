//! Which runs are read at all: a folder of runs may be somebody else's, with links, pipes or endless files in the place
//! of artefacts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// No artefact of the largest run comes near.
const MOST: u64 = 512 << 20;
const MOST_CASES: usize = 10_000;

/// Why a run's folder is not read.
pub(crate) fn refused(folder: &Path) -> Option<String> {
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

/// The file of a case by its path there, none of whose folders is a link.
pub(crate) fn file_of_case(case: &Path, path: &str) -> Result<PathBuf, String> {
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
    use std::os::unix::fs::symlink;

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
}
