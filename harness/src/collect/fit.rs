//! Whether the files of a stored run are still those that came home: by the digests of `collected.json`. What is not as
//! it was must not be read as if the run had measured it.

use crate::analyze::Unfit;
use crate::artefact::Collected;
use crate::digest::sha256;
use recipes::recipe::NotComparable;
use std::collections::BTreeMap;
use std::path::Path;

/// The jobs that cannot be judged by what lies in `folder`, the case's folder, and why.
pub fn unfit(collected: &Collected, folder: &Path) -> Unfit {
    let mut odd: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for file in &collected.files {
        let found = match std::fs::read(folder.join(&file.path)) {
            Ok(bytes) if sha256(&bytes) == file.sha256 => continue,
            Ok(bytes) => {
                ("raw-edited", format!("{} bytes came home, other {} lie there", file.bytes, bytes.len()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                ("raw-gone", "it came home, and is gone from there".to_owned())
            }
            Err(error) => ("raw-gone", format!("it came home, and cannot be read: {error}")),
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
            let why = format!("what lies in `raw` is not what the run brought home: {first}{more}");
            Some((job.to_owned(), NotComparable { cause: (*cause).to_owned(), why }))
        })
        .collect()
}
