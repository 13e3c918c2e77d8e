//! What lies below a URL that reports can be read from: the files of a publication, by its manifest, or plain objects, as
//! an operator or `aws s3 cp` leaves them.

use super::super::failure::Failure;
use super::super::fetch::read_manifest;
use super::super::object_name::{CLAIM, MANIFEST};
use super::super::prefix::Prefix;
use base::text::{count, show};
use logs::efa_counters::is_called_so;
use std::path::Path;

/// Objects that are looked at.
const MOST_OBJECTS: usize = 100_000;
/// Of them those that are read: tables of a thousand reports.
const MOST_FILES: usize = 50_000;
/// What is below the folders of exports is none of theirs.
const DEEPEST: usize = 2;

/// Something that reports can be read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteFile {
    /// Below what was named.
    pub(super) path: String,
    /// Below the prefix.
    pub(super) key: String,
    pub(super) bytes: u64,
    /// Where the store has one that can be checked.
    pub(super) sha256: Option<String>,
}

impl RemoteFile {
    /// Whether it is read in parts.
    pub(super) fn is_parquet(&self) -> bool {
        self.path.ends_with(".parquet")
    }
}

/// What was found, below a name of its own.
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) files: Vec<RemoteFile>,
    /// What is not read of it, for a person.
    pub(super) left_out: Vec<String>,
}

/// Looks at the prefix.
pub(super) async fn listing(prefix: &Prefix) -> Result<Listed, Failure> {
    let url = prefix.url().to_owned();
    let objects = prefix.list(MOST_OBJECTS).await?;
    let is_publication = objects.iter().any(|(key, _)| key == MANIFEST);
    let all: Vec<RemoteFile> = if is_publication {
        let manifest = read_manifest(prefix).await?;
        let files = manifest.files.into_iter().map(|file| RemoteFile {
            path: file.path,
            key: file.key,
            bytes: file.bytes,
            sha256: Some(file.sha256.to_ascii_lowercase()),
        });
        files.collect()
    } else {
        plain(objects)
    };
    let name = url.rsplit('/').next().unwrap_or_default().to_owned();
    chosen(name, all).map_err(|why| Failure::refused(format!("{}: {why}", show(&url))))
}

/// Objects that are no publication.
fn plain(objects: Vec<(String, u64)>) -> Vec<RemoteFile> {
    let files = objects.into_iter().filter(|(key, _)| key != CLAIM);
    files.map(|(key, bytes)| RemoteFile { path: key.clone(), key, bytes, sha256: None }).collect()
}

/// The files that are made, below a folder of the name, of objects with these keys and sizes; or why none is.
pub fn readable_paths(name: &str, objects: Vec<(String, u64)>) -> Result<Vec<String>, String> {
    let listed = chosen(name.to_owned(), plain(objects))?;
    Ok(listed.files.into_iter().map(|file| format!("{}/{}", listed.name, file.path)).collect())
}

fn chosen(name: String, all: Vec<RemoteFile>) -> Result<Listed, String> {
    if all.is_empty() {
        return Err("nothing lies there".to_owned());
    }
    if !store::is_inside(&name) {
        return Err("its last name is no name of a folder".to_owned());
    }
    let is_report = |path: &str| path.ends_with(".nsys-rep") || path.ends_with(".qdrep");
    let near = |file: &&RemoteFile| file.path.split('/').count() <= DEEPEST;
    let is_run = all.iter().any(|file| file.path == "plan.json");
    let reports = all.iter().filter(near).filter(|file| is_report(&file.path)).count();
    let mut files: Vec<RemoteFile> =
        all.into_iter().filter(|file| near(&file) && is_readable(&file.path)).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    if let Some(odd) = files.iter().find(|file| !store::is_inside(&file.path)) {
        return Err(format!("a name leads out of its folder: {:?}", odd.path));
    }
    let above = |one: &RemoteFile, other: &RemoteFile| Path::new(&other.path).starts_with(&one.path);
    if let Some(pair) = files.windows(2).find(|pair| above(&pair[0], &pair[1])) {
        return Err(format!("{:?} lies below a file, or twice", pair[1].path));
    }
    if files.is_empty() {
        return Err(match reports {
            _ if is_run => {
                "a run is published there: its reports lie below it, at `/files/cases/CASE/raw/JOB`; `harness fetch` \
                 brings all of it"
                    .to_owned()
            }
            0 => "no export lies there: neither Parquet, Arrow nor SQLite".to_owned(),
            n => format!(
                "{} without an export: export them with `nsys export --type=parquetdir`, or fetch them",
                count(n, "report")
            ),
        });
    }
    if files.len() > MOST_FILES {
        return Err(format!("{} files of exports, limit {MOST_FILES}; name a folder below it", files.len()));
    }
    let left_out = match reports {
        0 => Vec::new(),
        n => vec![format!("{} left out: only exports are read in a store", count(n, "report"))],
    };
    Ok(Listed { name, files, left_out })
}

/// By its name: a table, or an export in one file.
fn is_readable(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let endings = [".parquet", ".arrow", ".arrows", ".sqlite"];
    endings.iter().any(|ending| name.ends_with(ending)) || is_called_so(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(paths: &[&str]) -> Result<Listed, String> {
        let file = |path: &&str| RemoteFile {
            path: (*path).to_owned(),
            key: (*path).to_owned(),
            bytes: 1,
            sha256: None,
        };
        chosen("reports".to_owned(), paths.iter().map(file).collect())
    }

    #[test]
    fn exports_near_the_prefix_are_read_and_reports_without_one_are_named() {
        let found = listed(&["b_pqtdir/K.parquet", "a.sqlite", "a.nsys-rep", "x/y/Z.parquet", "notes.txt"]);
        let found = found.unwrap_or_else(|why| panic!("{why}"));
        let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.sqlite", "b_pqtdir/K.parquet"]);
        assert_eq!(found.left_out, ["1 report left out: only exports are read in a store"]);
    }

    #[test]
    fn names_that_lead_out_lie_below_a_file_or_are_none_are_refused() {
        for (paths, why) in [
            (&[][..], "nothing lies there"),
            (&["notes.txt"], "no export lies there"),
            (&["a.nsys-rep", "b.nsys-rep"], "2 reports without an export"),
            (&["../a.sqlite"], "leads out of its folder"),
            (&["a\u{1b}.sqlite"], "leads out of its folder"),
            (&["a.sqlite", "a.sqlite/b.parquet"], "lies below a file"),
        ] {
            let error = listed(paths).err().unwrap_or_else(|| panic!("{paths:?} were taken"));
            assert!(error.contains(why), "{paths:?}: {error}");
        }
        let one = RemoteFile { path: "a.sqlite".into(), key: "a".into(), bytes: 1, sha256: None };
        assert!(chosen("..".to_owned(), vec![one]).is_err());
    }
}
