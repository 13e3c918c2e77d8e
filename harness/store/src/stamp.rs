//! What shows that the files of a run have not changed since they were read: size, times and number of each.

use crate::vetting::MOST;
use base::digest::Sum;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileFacts {
    bytes: u64,
    inode: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// Those of the files of one run, by their paths in its folder, in the order in which they were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts(Vec<(String, Option<FileFacts>)>);

impl RunFacts {
    /// Of these paths; nothing where one of them is no regular file, too large, or cannot be asked. An absent file is a
    /// fact as well.
    pub fn read(folder: &Path, paths: impl IntoIterator<Item = String>) -> Option<RunFacts> {
        let one = |path: String| match fs::symlink_metadata(folder.join(&path)) {
            Ok(data) if data.is_file() && data.len() <= MOST => {
                let facts = FileFacts {
                    bytes: data.len(),
                    inode: data.ino(),
                    written: (data.mtime(), data.mtime_nsec()),
                    changed: (data.ctime(), data.ctime_nsec()),
                };
                Some((path, Some(facts)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some((path, None)),
            _ => None,
        };
        paths.into_iter().map(one).collect::<Option<Vec<_>>>().map(RunFacts)
    }

    /// Whether all these files were as they are when `before` was read: what it does not name was absent.
    pub fn are_unchanged_since(&self, before: &RunFacts) -> bool {
        let then =
            |path: &String| before.0.iter().find(|(other, _)| other == path).and_then(|(_, facts)| *facts);
        self.0.iter().all(|(path, facts)| then(path) == *facts)
    }

    /// When a file was written last; nothing where it is absent.
    pub fn written(&self, path: &str) -> Option<SystemTime> {
        let (seconds, nanoseconds) = self.0.iter().find(|(other, _)| other == path)?.1?.written;
        let since = std::time::Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(since)
    }

    /// Whether there is such a file.
    pub fn has(&self, path: &str) -> bool {
        self.0.iter().any(|(other, facts)| other == path && facts.is_some())
    }

    /// Differs where any of them does.
    pub fn digest(&self) -> String {
        let mut sum = Sum::default();
        for (path, facts) in &self.0 {
            sum.update(path.as_bytes());
            sum.update(&[0, u8::from(facts.is_some())]);
            let Some(FileFacts { bytes, inode, written, changed }) = facts else { continue };
            for number in [*bytes, *inode] {
                sum.update(&number.to_le_bytes());
            }
            for (seconds, nanoseconds) in [written, changed] {
                sum.update(&seconds.to_le_bytes());
                sum.update(&nanoseconds.to_le_bytes());
            }
        }
        sum.to_hex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_whole;
    use std::os::unix::fs::symlink;

    #[test]
    fn facts_differ_where_a_file_is_replaced_removed_or_comes_and_a_link_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let names = || ["plan.json", "cases/c/verdict.json"].map(str::to_owned);
        let read = || RunFacts::read(folder.path(), names()).expect("facts");
        write_whole(&path("plan.json"), b"{}").expect("written");
        let first = read();
        assert_eq!((first.has("plan.json"), first.has("cases/c/verdict.json")), (true, false));
        assert!(first.written("plan.json").is_some() && read().are_unchanged_since(&first));
        assert_eq!(read().digest(), first.digest());
        // The same bytes, as a resumed run writes them.
        write_whole(&path("plan.json"), b"{}").expect("written");
        let second = read();
        assert!(second != first && second.digest() != first.digest());
        assert!(!second.are_unchanged_since(&first));
        write_whole(&path("cases/c/verdict.json"), b"{}").expect("written");
        let third = read();
        assert!(third.digest() != second.digest() && !third.are_unchanged_since(&second));
        let only_plan = RunFacts::read(folder.path(), ["plan.json".to_owned()]).expect("facts");
        assert!(only_plan.are_unchanged_since(&third));
        assert!(!third.are_unchanged_since(&only_plan), "what was not looked at counts as absent");
        fs::remove_file(path("plan.json")).expect("removed");
        assert!(read().digest() != third.digest());
        symlink("/dev/zero", path("plan.json")).expect("linked");
        assert_eq!(RunFacts::read(folder.path(), names()), None);
    }
}
