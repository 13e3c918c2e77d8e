//! What this machine knows of a publication: its claim, and what of it the store has answered for. A process that is
//! ended leaves it, and the next one goes on from it.

use super::failure::Failure;
use super::manifest::Claim;
use base::digest::sha256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use store::{Home, Lines};

/// A line of the record, written before what follows it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// Before anything is sent; what stands before it no longer counts. `content` is the digest of the list of files.
    Begun { claim: Claim, content: String },
    /// The prefix is ours, and the store was seen to refuse a second claim.
    Claimed,
    /// An object is there.
    Sent { key: String, bytes: u64, etag: Option<String> },
    /// An upload in parts is open.
    Upload { key: String, id: String },
    /// A part of it is there.
    Part { key: String, id: String, index: usize, content_id: String },
    /// The manifest is there.
    Published,
}

/// The lines of one publication, read and appended to.
pub(super) struct Record {
    lines: Lines,
    begun: Option<(Claim, String)>,
    pub(super) is_claimed: bool,
    pub(super) is_published: bool,
    sent: BTreeMap<String, (u64, Option<String>)>,
    uploads: BTreeMap<String, OpenUpload>,
}

/// An upload in parts that was begun, and those of its parts that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenUpload {
    pub(super) id: String,
    pub(super) parts: BTreeMap<usize, String>,
}

impl Record {
    /// Of what is published to where; `what` is a run's id or a folder's path. It lies in `runs`.
    pub(super) fn open(home: &Home, what: &str, to: &str) -> Result<Record, Failure> {
        let runs = home.path().join("runs");
        fs::create_dir_all(&runs)
            .map_err(|error| Failure::refused(format!("{}: {error}", runs.display())))?;
        let name = sha256(format!("{what}\n{to}").as_bytes());
        let path = runs.join(format!(".publish-{}.jsonl", &name[..16]));
        let lines = Lines::open(&path).map_err(Failure::refused)?;
        let entries: Vec<Entry> = lines.read().map_err(Failure::refused)?;
        let mut record = Record {
            lines,
            begun: None,
            is_claimed: false,
            is_published: false,
            sent: BTreeMap::new(),
            uploads: BTreeMap::new(),
        };
        entries.into_iter().for_each(|entry| record.take(entry));
        Ok(record)
    }

    /// On the disk when this returns.
    pub(super) fn append(&mut self, entry: Entry) -> Result<(), Failure> {
        self.lines.append(&entry).map_err(Failure::interrupted)?;
        self.take(entry);
        Ok(())
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Begun { claim, content } => {
                self.begun = Some((claim, content));
                (self.is_claimed, self.is_published) = (false, false);
                self.sent.clear();
                self.uploads.clear();
            }
            Entry::Claimed => self.is_claimed = true,
            Entry::Sent { key, bytes, etag } => drop(self.sent.insert(key, (bytes, etag))),
            Entry::Upload { key, id } => {
                self.uploads.insert(key, OpenUpload { id, parts: BTreeMap::new() });
            }
            Entry::Part { key, id, index, content_id } => {
                if let Some(upload) = self.uploads.get_mut(&key).filter(|upload| upload.id == id) {
                    upload.parts.insert(index, content_id);
                }
            }
            Entry::Published => self.is_published = true,
        }
    }

    /// The claim and the digest of the list of files, where the publication has begun.
    pub(super) fn begun(&self) -> Option<&(Claim, String)> {
        self.begun.as_ref()
    }

    /// The claim alone.
    pub(super) fn claim(&self) -> Option<Claim> {
        self.begun.as_ref().map(|(claim, _)| claim.clone())
    }

    /// The size and the tag of an object that was sent.
    pub(super) fn sent(&self, key: &str) -> Option<&(u64, Option<String>)> {
        self.sent.get(key)
    }

    /// How many objects were sent.
    pub(super) fn count(&self) -> usize {
        self.sent.len()
    }

    /// The open upload of an object.
    pub(super) fn upload(&self, key: &str) -> Option<OpenUpload> {
        self.uploads.get(key).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::Format;

    fn entries() -> Vec<Entry> {
        let text = str::to_owned;
        let part =
            |id: &str, index| Entry::Part { key: text("k"), id: text(id), index, content_id: text("e") };
        let claim = Claim { format: Format, token: text("t"), name: text("n"), by: text("b"), at: text("a") };
        vec![
            Entry::Begun { claim, content: text("c") },
            Entry::Claimed,
            Entry::Sent { key: text("s"), bytes: 3, etag: None },
            Entry::Upload { key: text("k"), id: text("first") },
            part("first", 0),
            Entry::Upload { key: text("k"), id: text("second") },
            part("second", 1),
            part("first", 2),
        ]
    }

    #[test]
    fn the_next_process_finds_what_the_last_one_wrote_down() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::bare(folder.path());
        let mut record = Record::open(&home, "run", "s3://b/p").expect("made");
        assert!(record.begun().is_none() && !record.is_claimed);
        for entry in entries() {
            record.append(entry).expect("written");
        }
        drop(record);
        let record = Record::open(&home, "run", "s3://b/p").expect("read");
        assert_eq!(
            record.begun().map(|(claim, content)| (claim.token.as_str(), content.as_str())),
            Some(("t", "c"))
        );
        assert!(record.is_claimed && !record.is_published);
        assert_eq!((record.sent("s"), record.sent("k"), record.count()), (Some(&(3, None)), None, 1));
        // Only parts of the upload that was begun last.
        let upload = record.upload("k").expect("open");
        assert_eq!(
            (upload.id.as_str(), upload.parts.keys().copied().collect::<Vec<_>>()),
            ("second", vec![1])
        );
        let other = Record::open(&home, "run", "s3://b/other").expect("made");
        assert!(other.begun().is_none());
    }
}
