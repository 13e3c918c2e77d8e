//! The folder for the vendor: it appears under its name once all of it is written and looked through for names and
//! secrets, and holds a manifest of every file with its digest.

use super::sanitiser::Sanitiser;
use base::digest::{sha256, sha256_of_file};
use cluster::interrupt;
use model::artefact::Format;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use store::{CHECKSUMS, checksums};
use tempfile::TempDir;

pub(super) const MANIFEST: &str = "manifest.json";
/// All files together, in bytes.
const MOST: u64 = 256 << 20;

/// A file of the folder.
#[derive(Debug, Serialize)]
struct Entry {
    path: String,
    bytes: u64,
    sha256: String,
    /// Bytes of its middle that were left out.
    #[serde(skip_serializing_if = "is_zero")]
    cut: u64,
    /// Secrets that were taken out.
    #[serde(skip_serializing_if = "is_zero")]
    secrets: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, Serialize)]
struct NotWritten {
    path: String,
    why: String,
}

#[derive(Serialize)]
struct Manifest<'a> {
    format: Format<1>,
    harness: &'a str,
    simulated: bool,
    keeps_names: bool,
    /// Other nodes that stand in it by a pseudonym.
    peers: usize,
    files: &'a [Entry],
    left_out: &'a [NotWritten],
}

/// What is known of the folder as a whole.
pub(super) struct Sealing {
    pub simulated: bool,
    pub keeps_names: bool,
}

pub(super) struct Folder {
    target: PathBuf,
    part: TempDir,
    entries: Vec<Entry>,
    left_out: Vec<NotWritten>,
    taken: BTreeSet<String>,
    /// Folders of files that were written.
    folders: BTreeSet<String>,
    bytes: u64,
    most: u64,
    /// Whether a signal asked for the end: then the folder is removed, and never gets its name.
    is_stopped: fn() -> bool,
    pub sanitiser: Sanitiser,
}

impl Folder {
    /// Beside its target, which must not be there.
    pub(super) fn begin(target: &Path, sanitiser: Sanitiser) -> Result<Folder, String> {
        let above = target.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let bad = |error: std::io::Error| format!("{}: {error}", above.display());
        let part = tempfile::Builder::new()
            .prefix(".rma-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(above)
            .map_err(bad)?;
        Ok(Folder {
            target: target.to_owned(),
            part,
            entries: Vec::new(),
            left_out: Vec::new(),
            taken: BTreeSet::new(),
            folders: BTreeSet::new(),
            bytes: 0,
            most: MOST,
            is_stopped: || interrupt::asked().is_some(),
            sanitiser,
        })
    }

    /// A text that the harness made; its names and secrets are taken out here.
    pub(super) fn write(&mut self, path: &[&str], text: &str) -> Result<(), String> {
        let before = self.sanitiser.secrets;
        let text = self.sanitiser.text(text);
        let secrets = self.sanitiser.secrets - before;
        self.put(path, &text, 0, secrets)
    }

    /// The same of what holds keys and values: what is secret by its key is taken out, too.
    pub(super) fn write_json<T: Serialize>(&mut self, path: &[&str], value: &T) -> Result<(), String> {
        let mut value: Value = serde_json::to_value(value).map_err(|error| error.to_string())?;
        self.sanitiser.redactor().value(&mut value);
        self.write(path, &format!("{value:#}\n"))
    }

    /// A text whose secrets were taken out while it was read.
    pub(super) fn write_redacted(
        &mut self,
        path: &[&str],
        text: &str,
        cut: u64,
        secrets: u64,
    ) -> Result<(), String> {
        let before = self.sanitiser.secrets;
        let text = self.sanitiser.names(text);
        // Some were found only without colours.
        let secrets = secrets + self.sanitiser.secrets - before;
        self.put(path, &text, cut, secrets)
    }

    /// A file that is not written, and why.
    pub(super) fn leave_out(&mut self, path: &[&str], why: &str) {
        let path = self.path(path);
        self.left_out.push(NotWritten { path, why: why.to_owned() });
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.left_out.len())
    }

    fn path(&mut self, path: &[&str]) -> String {
        path.iter().map(|name| self.sanitiser.file_name(name)).collect::<Vec<_>>().join("/")
    }

    fn put(&mut self, path: &[&str], text: &str, cut: u64, secrets: u64) -> Result<(), String> {
        self.go_on()?;
        let mut name = self.path(path);
        let bytes = text.len() as u64;
        if self.bytes + bytes > self.most {
            let why = format!("the files together would exceed {} MiB", self.most >> 20);
            self.left_out.push(NotWritten { path: name, why });
            return Ok(());
        }
        if above(&name).any(|folder| self.taken.contains(&folder))
            || self.folders.contains(&name.to_ascii_lowercase())
        {
            self.left_out
                .push(NotWritten { path: name, why: "its name is that of a folder, too".to_owned() });
            return Ok(());
        }
        // Two names may have become one.
        let first = name.clone();
        for number in 2.. {
            if self.taken.insert(name.to_ascii_lowercase()) {
                break;
            }
            name = format!("{first}-{number}");
        }
        store::write_private_by(&self.part.path().join(&name), &mut |file| file.write_all(text.as_bytes()))
            .map_err(|error| self.without_place(&error.to_string()))?;
        self.folders.extend(above(&name));
        self.bytes += bytes;
        self.entries.push(Entry { path: name, bytes, sha256: sha256(text.as_bytes()), cut, secrets });
        Ok(())
    }

    /// Writes the manifest, looks through everything, and gives the folder its name.
    pub(super) fn seal(mut self, sealing: &Sealing) -> Result<(), String> {
        let mut peers: BTreeSet<String> = BTreeSet::new();
        for entry in &self.entries {
            let text = self.read(&entry.path)?;
            peers.extend(self.sanitiser.peers_in(&text).map(str::to_owned));
        }
        for one in &mut self.left_out {
            one.why = self.sanitiser.text(&one.why);
        }
        self.entries.sort_by(|a, b| a.path.cmp(&b.path));
        self.left_out.sort_by(|a, b| a.path.cmp(&b.path));
        let manifest = Manifest {
            format: Format,
            harness: env!("CARGO_PKG_VERSION"),
            simulated: sealing.simulated,
            keeps_names: sealing.keeps_names,
            peers: peers.len(),
            files: &self.entries,
            left_out: &self.left_out,
        };
        let text = serde_json::to_string_pretty(&manifest).map_err(|error| error.to_string())? + "\n";
        self.add(MANIFEST, &text)?;
        let sums =
            checksums(self.part.path(), &[]).map_err(|error| self.without_place(&error.to_string()))?;
        self.add(CHECKSUMS, &sums)?;
        self.check()?;
        self.go_on()?;
        // Made first, and only if it is not there: a folder is renamed onto an empty one, and never onto another.
        fs::DirBuilder::new()
            .create(&self.target)
            .map_err(|error| format!("{}: {error}", self.target.display()))?;
        fs::rename(self.part.path(), &self.target).map_err(|error| {
            // Empty, or it stays.
            let _ = fs::remove_dir(&self.target);
            format!("{}: {error}", self.target.display())
        })
    }

    fn add(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.part.path().join(name);
        store::write_private_by(&path, &mut |file| file.write_all(text.as_bytes()))
            .map_err(|error| self.without_place(&error.to_string()))
    }

    /// Reads every file again, as it lies there.
    fn check(&self) -> Result<(), String> {
        let files = store::files(self.part.path()).map_err(|error| error.to_string())?;
        for file in &files {
            self.go_on()?;
            let name = file.to_string_lossy();
            let text = self.read(&name)?;
            let left = self.sanitiser.first_left(&text).or_else(|| self.sanitiser.first_left(&name));
            if let Some(left) = left {
                return Err(format!("nothing was written: {name} would hold {left}"));
            }
            let listed = self.entries.iter().find(|entry| entry.path == name);
            let digest = sha256_of_file(&self.part.path().join(file)).map_err(|error| error.to_string())?;
            if listed.is_some_and(|entry| entry.sha256 != digest) {
                return Err(format!("nothing was written: {name} changed while the folder was made"));
            }
        }
        match files.len() == self.entries.len() + 2 {
            true => Ok(()),
            false => Err("nothing was written: the folder changed while it was made".to_owned()),
        }
    }

    fn go_on(&self) -> Result<(), String> {
        if (self.is_stopped)() { Err("stopped: nothing was written".to_owned()) } else { Ok(()) }
    }

    fn read(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.part.path().join(name)).map_err(|error| format!("{name}: {error}"))
    }

    /// A message without the temporary folder's name.
    fn without_place(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.part.path().display()), "")
    }
}

/// The folders of a file, in lower case.
fn above(name: &str) -> impl Iterator<Item = String> {
    name.match_indices('/').map(|(at, _)| name[..at].to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::super::sanitiser::SiteNames;
    use super::*;
    use base::redact::Redactor;

    const SEALING: Sealing = Sealing { simulated: false, keeps_names: false };

    fn begin(target: &Path) -> Folder {
        let peers = vec![("gpu-1".to_owned(), "peer-1".to_owned())];
        let site = SiteNames { own: vec!["gpu-11".into()], peers, ..SiteNames::default() };
        let sanitiser = Sanitiser::new(site, Redactor::default()).expect("few names");
        Folder::begin(target, sanitiser).expect("a folder")
    }

    #[test]
    fn a_folder_appears_whole_with_each_digest_and_is_never_written_over() {
        let place = tempfile::tempdir().expect("a folder");
        let target = place.path().join("out");
        let mut folder = begin(&target);
        folder.most = 70;
        folder
            .write(&["runs", "gpu-1", "../x"], "gpu-1 and gpu-11, peer-to-peer, peer- and peer-77\n")
            .expect("written");
        folder.write(&["runs", "gpu-1", "..|x"], "second\n").expect("written");
        folder.write(&["large"], &"x".repeat(71)).expect("left out");
        folder.write(&["runs", "gpu-1"], "").expect("left out");
        folder.write(&["runs", "gpu-1", "../x", "y"], "").expect("left out");
        folder.leave_out(&["report.nsys-rep"], "of gpu-1: no text");
        folder.seal(&SEALING).expect("sealed");
        let text = |name: &str| fs::read_to_string(target.join(name)).expect("there");
        assert_eq!(text("runs/peer-1/_._x"), "peer-1 and gpu-11, peer-to-peer, peer- and peer-77\n");
        assert_eq!(text("runs/peer-1/_._x-2"), "second\n");
        let manifest: Value = serde_json::from_str(&text(MANIFEST)).expect("JSON");
        assert_eq!(
            manifest["files"][0]["sha256"],
            sha256(b"peer-1 and gpu-11, peer-to-peer, peer- and peer-77\n")
        );
        assert_eq!(
            (&manifest["peers"], &manifest["left_out"][1]["why"]),
            (&1.into(), &"of peer-1: no text".into())
        );
        let left_out = manifest["left_out"].as_array().expect("a list");
        let paths: Vec<&str> = left_out.iter().filter_map(|one| one["path"].as_str()).collect();
        assert_eq!(paths, ["large", "report.nsys-rep", "runs/peer-1", "runs/peer-1/_._x/y"]);
        assert_eq!(text(CHECKSUMS).lines().count(), 3);
        let why = begin(&target).seal(&SEALING).expect_err("taken");
        assert!(why.contains("exists"), "{why}");
        assert_eq!(fs::read_dir(place.path()).expect("read").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_signal_leaves_nothing() {
        let place = tempfile::tempdir().expect("a folder");
        let target = place.path().join("out");
        let mut folder = begin(&target);
        folder.write(&["summary.md"], "fine\n").expect("written");
        folder.is_stopped = || true;
        assert!(folder.write(&["log"], "more\n").is_err());
        assert!(folder.seal(&SEALING).expect_err("stopped").starts_with("stopped"));
        assert_eq!(fs::read_dir(place.path()).expect("read").count(), 0);
    }

    #[test]
    fn a_file_that_would_hold_a_name_or_a_secret_stops_the_whole_folder() {
        for left in ["ssh gpu-1\n", "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz01234567\n"] {
            let place = tempfile::tempdir().expect("a folder");
            let target = place.path().join("out");
            let mut folder = begin(&target);
            folder.write(&["summary.md"], "fine\n").expect("written");
            // As if what replaces names had missed one.
            folder.put(&["log"], left, 0, 0).expect("written");
            let why = folder.seal(&SEALING).expect_err("refused");
            assert!(why.starts_with("nothing was written: log would hold "), "{why}");
            assert_eq!(fs::read_dir(place.path()).expect("read").count(), 0);
        }
    }
}
