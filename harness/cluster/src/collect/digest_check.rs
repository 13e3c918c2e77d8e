//! Whether the files of a stored run are still those that were collected: by the digests of `collected.json`. Changed
//! files must not be read as if the run had measured them.

use base::digest::sha256_of_file;
use base::text::count;
use metric::lacks::NotComparable;
use model::artefact::Collected;
use model::artefact::Unfit;
use std::collections::BTreeMap;
use std::path::Path;

/// The jobs that cannot be judged by what lies in `folder`, the case's folder, and why.
pub fn unfit(collected: &Collected, folder: &Path) -> Unfit {
    let mut odd: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for file in &collected.files {
        let path = folder.join(&file.path);
        let found = match sha256_of_file(&path) {
            Ok(digest) if digest == file.sha256 => continue,
            Ok(_) => {
                let bytes = std::fs::metadata(&path).map_or(0, |found| found.len());
                let [then, now] = [file.bytes, bytes].map(|bytes| count(bytes, "byte"));
                ("raw-edited", format!("its contents changed: {then} when collected, {now} now"))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                ("raw-gone", "it was collected, and is missing now".to_owned())
            }
            Err(error) => ("raw-gone", format!("it was collected, and cannot be read now: {error}")),
        };
        odd.entry(&file.job).or_default().push((found.0, format!("{}: {}", file.path, found.1)));
    }
    odd.into_iter()
        .filter_map(|(job, files)| {
            let (cause, first) = files.first()?;
            let more = match files.len() {
                1 => String::new(),
                n => format!(", and {} more", n - 1),
            };
            let why = format!("files in `raw` changed after the run collected them: {first}{more}");
            Some((job.to_owned(), NotComparable { cause: (*cause).to_owned(), why }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{CollectedFile, FileKind, Format};

    #[test]
    fn messages() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("raw/folder")).expect("made");
        std::fs::write(folder.path().join("raw/edited"), "edited").expect("written");
        let file = |(job, name): (&str, &str)| CollectedFile {
            job: job.into(),
            path: format!("raw/{name}"),
            kind: FileKind::Stdout,
            node: None,
            part: None,
            rank: None,
            bytes: 1,
            sha256: "1".into(),
            redacted: 0,
        };
        let files = [
            ("edited", "edited"),
            ("gone", "gone"),
            ("unreadable", "folder"),
            ("several", "gone"),
            ("several", "edited"),
        ];
        let (missing, changed, simulated) = (Vec::new(), Vec::new(), Vec::new());
        let files = files.map(file).to_vec();
        let collected = Collected { format: Format, files, missing, changed, simulated };
        let unfit = unfit(&collected, folder.path()).into_iter();
        let lines = unfit.map(|(job, why)| format!("{job}: {}: {}", why.cause, why.why));
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    }
}
