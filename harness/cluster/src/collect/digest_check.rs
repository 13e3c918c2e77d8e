//! Whether the files of a stored run are still those that were collected: by the digests of `collected.json`. Changed
//! files must not be read as if the run had measured them.

use base::digest::sha256_of_file;
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
                (
                    "raw-edited",
                    format!("{} bytes were collected, {bytes} other bytes are there now", file.bytes),
                )
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
