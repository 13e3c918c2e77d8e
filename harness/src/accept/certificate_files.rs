//! The certificates of a folder of deliveries, which may be somebody else's: links, pipes and endless files are not read.

use super::certificate::JSON;
use base::digest::sha256;
use model::artefact::acceptance::Acceptance;
use std::fs;
use std::path::Path;
use store::CHECKSUMS;

/// A certificate that is larger is not read, and neither is a list of digests.
const MOST: u64 = 256 << 20;

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
    let mut places: Vec<_> =
        fs::read_dir(deliveries).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    places.sort();
    for place in places.iter().filter(|place| place.is_dir() && !place.is_symlink()) {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = place.join(JSON);
        match fs::symlink_metadata(&path) {
            Err(_) => continue,
            Ok(facts) if !facts.is_file() || facts.len() > MOST => {
                unread.push(format!("{name}: {JSON}: a link, no regular file or too large"));
            }
            Ok(_) => match store::read_json(&path) {
                Ok(acceptance) => {
                    let altered = altered(place).err();
                    found.push(StoredCertificate { name, acceptance, altered });
                }
                Err(error) => {
                    let why = error.to_string();
                    let why = why.rsplit_once(JSON).map_or(why.as_str(), |(_, why)| why);
                    unread.push(format!("{name}: {JSON}{why}"));
                }
            },
        }
    }
    (found, unread)
}

/// Whether the list of digests has the certificate as it is.
fn altered(place: &Path) -> Result<(), String> {
    let list = place.join(CHECKSUMS);
    let is_plain = fs::symlink_metadata(&list).is_ok_and(|facts| facts.is_file() && facts.len() <= MOST);
    let read = |path: &Path| fs::read(path).map_err(|error| error.to_string());
    if !is_plain {
        return Err(format!("no `{CHECKSUMS}` beside it"));
    }
    let list = String::from_utf8_lossy(&read(&list)?).into_owned();
    let digest = sha256(&read(&place.join(JSON))?);
    let named = list.lines().find_map(|line| line.strip_suffix(JSON)?.strip_suffix("  "));
    match named {
        Some(named) if named == digest => Ok(()),
        Some(_) => Err(format!("`{CHECKSUMS}` has another digest: it was changed since it was written")),
        None => Err(format!("`{CHECKSUMS}` does not list it")),
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
        let (found, unread) = read_all(folder.path());
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
