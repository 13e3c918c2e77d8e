//! The certificates of a folder of deliveries, which may be somebody else's: links, pipes and endless files are not read.

use super::certificate::JSON;
use base::digest::sha256;
use model::artefact::acceptance::Acceptance;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use store::CHECKSUMS;

/// A certificate that is larger is not read, and neither is a list of digests.
const MOST: u64 = 256 << 20;

/// Deliveries without one that are named.
const MOST_NAMED: usize = 5;

/// The certificate of one delivery.
pub(crate) struct StoredCertificate {
    /// Of the delivery's folder.
    pub name: String,
    pub acceptance: Acceptance,
    /// Why it may be another than was written: the digests that were written with it do not have it.
    pub altered: Option<String>,
}

/// Those of a folder, by the names of their folders, and a line for each that cannot be read. A folder that is absent
/// has none.
pub(crate) fn read_all(deliveries: &Path) -> (Vec<StoredCertificate>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let places = match places(deliveries) {
        Ok(places) => places,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (found, unread),
        Err(error) => return (found, vec![format!("deliveries: {error}")]),
    };
    for place in places.iter().filter(|place| place.is_dir() && !place.is_symlink()) {
        match read(place) {
            None => {}
            Some(Ok(certificate)) => found.push(certificate),
            Some(Err(why)) => unread.push(why),
        }
    }
    (found, unread)
}

/// That of one delivery by its folder; nothing where there is none.
pub(crate) fn read(place: &Path) -> Option<Result<StoredCertificate, String>> {
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let path = place.join(JSON);
    let facts = fs::symlink_metadata(&path).ok()?;
    if !facts.is_file() || facts.len() > MOST {
        return Some(Err(format!("{name}: {JSON}: a link, no regular file or too large")));
    }
    Some(match store::read_json(&path) {
        Ok(acceptance) => Ok(StoredCertificate { name, acceptance, altered: altered(place).err() }),
        Err(error) => {
            let why = error.to_string();
            let why = why.rsplit_once(JSON).map_or(why.as_str(), |(_, why)| why);
            Err(format!("{name}: {JSON}{why}"))
        }
    })
}

/// What of a folder of deliveries has no certificate, a line for each reason: links, and deliveries that have not ended.
pub(crate) fn uncertified(deliveries: &Path) -> Vec<String> {
    let (mut links, mut open) = (Vec::new(), Vec::new());
    // A folder that cannot be read is named where its certificates are read.
    for place in places(deliveries).unwrap_or_default() {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match () {
            () if name.starts_with('.') => {}
            () if place.is_symlink() => links.push(name),
            () if place.is_dir() && fs::symlink_metadata(place.join(JSON)).is_err() => open.push(name),
            () => {}
        }
    }
    let lines =
        [(links, "a link, which is not followed"), (open, "no certificate: no delivery, or not ended")];
    lines.into_iter().filter(|(names, _)| !names.is_empty()).map(|(names, why)| named(&names, why)).collect()
}

fn named(names: &[String], why: &str) -> String {
    let first = names.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => format!("{first}: {why}"),
        more => format!("{first} and {more} more: {why}"),
    }
}

/// The folders of runs of deliveries: acceptances leave their runs there. Links are not followed.
pub(crate) fn folders_of_runs(deliveries: &Path) -> Vec<PathBuf> {
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir());
    let places = places(deliveries).unwrap_or_default().into_iter().filter(is_folder);
    places.map(|place| place.join(RUNS)).filter(is_folder).collect()
}

/// Of a delivery, beside its certificate.
const RUNS: &str = "runs";

/// How the runs of the newest delivery are read, where there is one.
pub(crate) fn hint_at_runs(deliveries: &Path) -> Option<String> {
    let newest = folders_of_runs(deliveries).pop()?;
    Some(format!("; those of a delivery: --runs {}", newest.display()))
}

/// A line that runs of deliveries are apart from those of the project.
pub(crate) fn runs_apart(deliveries: &Path) -> Option<String> {
    let (n, hint) = (folders_of_runs(deliveries).len(), hint_at_runs(deliveries)?);
    Some(format!(
        "runs of {}{hint}",
        if n == 1 { "1 delivery".to_owned() } else { format!("{n} deliveries") }
    ))
}

fn places(deliveries: &Path) -> io::Result<Vec<PathBuf>> {
    let mut places: Vec<PathBuf> =
        fs::read_dir(deliveries)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    places.sort();
    Ok(places)
}

/// Whether the list of digests has the certificate as it is.
fn altered(place: &Path) -> Result<(), String> {
    let list = place.join(CHECKSUMS);
    let is_plain = fs::symlink_metadata(&list).is_ok_and(|facts| facts.is_file() && facts.len() <= MOST);
    let read = |path: &Path| fs::read(path).map_err(|error| error.to_string());
    if !is_plain {
        return Err(format!("no `{CHECKSUMS}` beside it; copy the whole folder of the delivery again"));
    }
    let list = String::from_utf8_lossy(&read(&list)?).into_owned();
    let digest = sha256(&read(&place.join(JSON))?);
    let named = list.lines().find_map(|line| line.strip_suffix(JSON)?.strip_suffix("  "));
    match named {
        Some(named) if named == digest => Ok(()),
        Some(_) => Err(format!(
            "`{CHECKSUMS}` has another digest: it was changed since it was written; `sha256sum -c {CHECKSUMS}` in its folder lists what differs"
        )),
        None => Err(format!("`{CHECKSUMS}` does not list it; copy the whole folder of the delivery again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_certificate_that_was_changed_says_so_and_one_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = &serde_json::to_string(&super::super::message_tests::acceptance()).expect("JSON");
        let make = |name: &str, text: &str, sums: Option<&str>| {
            let place = folder.path().join(name);
            fs::create_dir_all(&place).expect("made");
            fs::write(place.join(JSON), text).expect("written");
            if let Some(sums) = sums {
                fs::write(place.join(CHECKSUMS), sums).expect("written");
            }
        };
        let line = format!("{}  {JSON}\n", sha256(text.as_bytes()));
        make("a-good", text, Some(&line));
        make("b-changed", &(text.to_owned() + " "), Some(&line));
        make("c-unlisted", text, Some("x  acceptance.md\n"));
        make("d-alone", text, None);
        make("e-broken", "{", None);
        fs::create_dir_all(folder.path().join("f-link")).expect("made");
        symlink("../a-good/acceptance.json", folder.path().join("f-link").join(JSON)).expect("linked");
        symlink("a-good", folder.path().join("g-folder-link")).expect("linked");
        fs::create_dir_all(folder.path().join("h-open")).expect("made");
        assert_eq!(
            uncertified(folder.path()),
            [
                "g-folder-link: a link, which is not followed",
                "h-open: no certificate: no delivery, or not ended"
            ]
        );
        let (found, unread) = read_all(folder.path());
        let why = |at: usize| found[at].altered.clone().unwrap_or_default();
        assert!(
            why(1).contains("`sha256sum -c SHA256SUMS`") && !why(3).contains("sha256sum -c"),
            "{}",
            why(3)
        );
        let not_a_folder = read_all(&folder.path().join("a-good").join(JSON));
        assert!(not_a_folder.0.is_empty() && not_a_folder.1.len() == 1, "{:?}", not_a_folder.1);
        let altered: Vec<(&str, bool)> =
            found.iter().map(|one| (one.name.as_str(), one.altered.is_some())).collect();
        assert_eq!(
            altered,
            [("a-good", false), ("b-changed", true), ("c-unlisted", true), ("d-alone", true)]
        );
        assert!(unread[0].starts_with("e-broken: acceptance.json: "), "{unread:?}");
        assert_eq!(unread[1], "f-link: acceptance.json: a link, no regular file or too large");
        assert_eq!(unread.len(), 2);
        assert!(read_all(&folder.path().join("absent")).0.is_empty());
    }
}
