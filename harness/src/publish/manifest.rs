//! What a prefix holds: the claim that comes first, and the list of all files that comes last.

use super::failure::Failure;
use super::object_name;
use base::text::show;
use model::artefact::Format;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use store::is_inside;

/// More files than the largest run has; the bound of its manifest follows.
pub(super) const MOST_FILES: usize = 200_000;
pub(super) const MOST_BYTES: u64 = 128 << 20;

/// Whose the prefix is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) format: Format<1>,
    /// Of the publication, which keeps it in its local record. Not called a token, for it is no secret.
    #[serde(rename = "publication")]
    pub(super) token: String,
    /// The run's id, or the folder's name.
    pub(super) name: String,
    pub(super) by: String,
    pub(super) at: String,
}

impl Claim {
    /// Who took it and when, fit to be shown.
    pub(super) fn owner(&self) -> String {
        format!("{} at {}, for `{}`", show(&self.by), show(&self.at), show(&self.name))
    }
}

/// All files of a publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: Format<1>,
    #[serde(rename = "publication")]
    pub(super) token: String,
    pub(super) name: String,
    pub(super) files: Vec<ManifestFile>,
}

/// One file, and the object that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestFile {
    pub(super) path: String,
    pub(super) key: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Manifest {
    /// Reads what lies in a store, and believes none of it.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Manifest, String> {
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(|error| show(&error.to_string()))?;
        manifest.check().map(|()| manifest)
    }

    /// With a line's end, as all artefacts have.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(Failure::refused)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The bytes of all files. `check` has seen that the sum is a number.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Whether it is a run, by what makes a folder one.
    pub(super) fn is_run(&self) -> bool {
        self.files.iter().any(|file| file.path == "plan.json")
    }

    fn check(&self) -> Result<(), String> {
        let is_one_name = is_inside(&self.name) && !self.name.contains('/');
        if !is_one_name || self.name.starts_with('.') || self.name == "latest" {
            return Err(format!("{:?} is not the name of a run or a folder", self.name));
        }
        if self.files.is_empty() {
            return Err("it has no files".to_owned());
        }
        if self.files.len() > MOST_FILES {
            return Err(format!("{} files, limit {MOST_FILES}", self.files.len()));
        }
        let mut paths = BTreeSet::new();
        let mut sum = 0u64;
        for file in &self.files {
            if !is_inside(&file.path) {
                return Err(format!("a path leads out of its folder: {:?}", file.path));
            }
            if !paths.insert(file.path.as_str()) {
                return Err(format!("duplicate file: {:?}", file.path));
            }
            if file.key != object_name::from_path(&file.path) {
                return Err(format!("{:?} is not the key of {:?}", file.key, file.path));
            }
            if file.sha256.len() != 64 || !file.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(format!("the digest of {:?} is none", file.path));
            }
            sum = sum.checked_add(file.bytes).ok_or("the sizes exceed any disk")?;
        }
        let above = |path: &str| {
            Path::new(path).ancestors().skip(1).any(|one| paths.contains(one.to_str().unwrap_or("")))
        };
        match paths.iter().find(|path| above(path)) {
            Some(path) => Err(format!("{path:?} lies below a file")),
            None => Ok(()),
        }
    }
}

/// The files that `fetch` makes of what a store holds as a manifest, by their paths; or why it makes none.
pub fn manifest_paths(bytes: &[u8]) -> Result<Vec<String>, String> {
    let manifest = Manifest::from_bytes(bytes)?;
    Ok(manifest.files.iter().map(|file| format!("{}/{}", manifest.name, file.path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> ManifestFile {
        ManifestFile {
            path: path.to_owned(),
            key: object_name::from_path(path),
            bytes: 1,
            sha256: "a".repeat(64),
        }
    }

    fn manifest(files: Vec<ManifestFile>) -> Manifest {
        Manifest { format: Format, token: "t".to_owned(), name: "run".to_owned(), files }
    }

    fn refused(manifest: &Manifest) -> String {
        let bytes = manifest.to_bytes().expect("JSON");
        Manifest::from_bytes(&bytes).expect_err("refused")
    }

    #[test]
    fn a_manifest_that_was_written_is_read() {
        let written = manifest(vec![file("plan.json"), file("cases/c/a b")]);
        let read = Manifest::from_bytes(&written.to_bytes().expect("JSON")).expect("read");
        assert_eq!(read, written);
        assert!(read.is_run() && read.bytes() == 2);
    }

    #[test]
    fn hostile_manifests_are_refused_by_the_first_thing_that_is_wrong() {
        for (path, why) in [
            ("../x", "leads out"),
            ("/etc/passwd", "leads out"),
            ("a/../../x", "leads out"),
            ("", "leads out"),
            ("a\nb", "leads out"),
            ("a//b", "leads out"),
        ] {
            let why_refused = refused(&manifest(vec![file(path)]));
            assert!(why_refused.contains(why), "{path:?}: {why_refused}");
        }
        assert!(refused(&manifest(vec![file("a"), file("a")])).contains("duplicate"));
        assert!(refused(&manifest(vec![file("a"), file("a/b")])).contains("below a file"));
        let other_key = ManifestFile { key: "../other/key".to_owned(), ..file("a") };
        assert!(refused(&manifest(vec![other_key])).contains("is not the key of"));
        let huge = |path| ManifestFile { bytes: u64::MAX, ..file(path) };
        assert!(refused(&manifest(vec![huge("a"), huge("b")])).contains("exceed any disk"));
        let digest = ManifestFile { sha256: "x".to_owned(), ..file("a") };
        assert!(refused(&manifest(vec![digest])).contains("digest"));
        for name in ["", "..", ".hidden", "a/b", "latest", "/x"] {
            let named = Manifest { name: name.to_owned(), ..manifest(vec![file("a")]) };
            assert!(refused(&named).contains("is not the name"), "{name:?}");
        }
        assert!(refused(&manifest(Vec::new())).contains("no files"));
        let claimed = String::from_utf8(manifest(vec![file("a")]).to_bytes().expect("JSON")).expect("text");
        assert!(store::redactor().first(claimed.as_bytes()).is_none(), "{claimed}");
        let newer = String::from_utf8(manifest(Vec::new()).to_bytes().expect("JSON")).expect("text");
        let newer = newer.replacen("\"format\": 1", "\"format\": 9", 1);
        assert!(Manifest::from_bytes(newer.as_bytes()).expect_err("newer").contains("format 9"));
        assert!(Manifest::from_bytes(b"\x00").is_err());
    }
}
