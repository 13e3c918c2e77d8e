//! Sends a survey to a prefix: the claim first, then the objects, the manifest last. Each step is written down when the
//! store has answered for it, and nothing that is there is written over.

use super::failure::{Answer, Failure};
use super::manifest::{Claim, MOST_BYTES, Manifest};
use super::object_name::{CLAIM, MANIFEST};
use super::prefix::{Prefix, Put};
use super::record::{Entry, Record};
use super::survey::{Survey, SurveyedFile};
use base::digest::sha256;
use base::text::show;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use std::collections::BTreeMap;

/// Objects, and parts of one, that are on their way at the same time: as many times 16 MiB of memory.
const AT_ONCE: usize = 8;
/// A claim is a few hundred bytes.
const LONGEST_CLAIM: u64 = 64 << 10;

pub(super) struct Sender<'a> {
    pub(super) prefix: &'a Prefix,
    pub(super) survey: &'a Survey,
    pub(super) claim: Claim,
    pub(super) bar: ProgressBar,
}

impl Sender<'_> {
    /// All of it, from wherever the record says that it stands.
    pub(super) async fn publish(&self, record: &mut Record) -> Result<(), Failure> {
        self.take_claim(record).await?;
        self.send_small(record).await?;
        for file in self.survey.files.iter().filter(|file| file.is_large()) {
            self.send_large(file, record).await?;
        }
        self.survey.has_the_same_files()?;
        self.check_claim().await?;
        let keys = self.survey.files.iter().map(|file| file.entry.key.as_str());
        self.prefix.remove_leftovers(&keys.chain([CLAIM, MANIFEST]).collect())?;
        let bytes = Bytes::from(self.manifest().to_bytes()?);
        if let Put::Exists = self.prefix.put_new(MANIFEST, &bytes).await? {
            self.check_manifest(&bytes).await?;
        }
        record.append(Entry::Published)
    }

    /// Of what is published.
    pub(super) fn manifest(&self) -> Manifest {
        let files = self.survey.files.iter().map(|file| file.entry.clone()).collect();
        Manifest {
            format: Default::default(),
            token: self.claim.token.clone(),
            name: self.claim.name.clone(),
            files,
        }
    }

    /// Fails where another manifest than ours is there, or none.
    pub(super) async fn check_manifest(&self, bytes: &Bytes) -> Result<(), Failure> {
        let url = self.prefix.url();
        match self.prefix.read(MANIFEST, MOST_BYTES).await? {
            Some(there) if there == bytes[..] => Ok(()),
            Some(_) => {
                Err(Failure::refused(format!("{url}/{MANIFEST} is another's; nothing was written over")))
            }
            None => Err(Failure::interrupted(format!("{url}/{MANIFEST} is not there any more"))),
        }
    }

    async fn take_claim(&self, record: &mut Record) -> Result<(), Failure> {
        if record.is_claimed {
            return self.check_claim().await;
        }
        let url = self.prefix.url();
        let mut bytes = serde_json::to_vec_pretty(&self.claim).map_err(Failure::refused)?;
        bytes.push(b'\n');
        let bytes = Bytes::from(bytes);
        if self.prefix.read(CLAIM, LONGEST_CLAIM).await?.is_none() {
            match self.prefix.first_object().await? {
                None => drop(self.prefix.put_new(CLAIM, &bytes).await?),
                // Another publication claimed the prefix since the look above.
                Some(object) if object == CLAIM => {}
                Some(object) => {
                    return Err(Failure::refused(format!(
                        "{url} is not empty: it holds `{object}`; nothing was sent; publish to a prefix of its own"
                    )));
                }
            }
        }
        self.check_claim().await?;
        // Some servers ignore the condition. Ours is repeated with the same bytes, which changes nothing.
        if let Put::Written(_) = self.prefix.put_new(CLAIM, &bytes).await? {
            let left = match self.prefix.remove_claim().await {
                Ok(()) => String::new(),
                Err(why) => format!("; remove it: {why}"),
            };
            return Err(Failure::refused(format!(
                "{url}: the store ignores conditions (If-None-Match), so two publications could overwrite one another; \
                 nothing was sent; choose another store, or copy the file of `harness bundle`{left}"
            )));
        }
        record.append(Entry::Claimed)
    }

    /// Fails where the prefix is not ours.
    async fn check_claim(&self) -> Result<(), Failure> {
        let url = self.prefix.url();
        let Some(bytes) = self.prefix.read(CLAIM, LONGEST_CLAIM).await? else {
            return Err(Failure::refused(format!(
                "{url}/{CLAIM} is not there any more: somebody removed it; publish to another prefix"
            )));
        };
        let advice = "publish to another prefix; if that publication was given up, remove its objects first";
        match serde_json::from_slice::<Claim>(&bytes) {
            Ok(claim) if claim == self.claim => Ok(()),
            Ok(claim) => Err(Failure::refused(format!("{url} was claimed by {}; {advice}", claim.owner()))),
            Err(error) => Err(Failure::refused(format!(
                "{url}/{CLAIM} is no claim: {}; {advice}",
                show(&error.to_string())
            ))),
        }
    }

    async fn send_small(&self, record: &mut Record) -> Result<(), Failure> {
        let small: Vec<(&SurveyedFile, Option<Sent>)> = self
            .survey
            .files
            .iter()
            .filter(|file| !file.is_large())
            .map(|file| (file, record.sent(&file.entry.key).cloned()))
            .collect();
        let mut sending =
            stream::iter(small).map(|(file, sent)| self.send_one(file, sent)).buffer_unordered(AT_ONCE);
        while let Some((file, etag)) = sending.try_next().await? {
            self.bar.inc(file.entry.bytes);
            if let Some(etag) = etag {
                let (key, bytes) = (file.entry.key.clone(), file.entry.bytes);
                record.append(Entry::Sent { key, bytes, etag })?;
            }
        }
        Ok(())
    }

    /// The file, with the tag of its object where it was sent now.
    async fn send_one<'a>(
        &self,
        file: &'a SurveyedFile,
        sent: Option<Sent>,
    ) -> Result<(&'a SurveyedFile, Option<Option<String>>), Failure> {
        if self.is_still_there(file, sent).await? {
            return Ok((file, None));
        }
        let bytes = self.survey.read(file, 0)?;
        let etag = match self.prefix.put_new(&file.entry.key, &bytes).await? {
            Put::Written(etag) => etag,
            Put::Exists => self.same_object(file).await?,
        };
        Ok((file, Some(etag)))
    }

    /// Whether what the record calls sent is there as it was: its size and its tag.
    async fn is_still_there(&self, file: &SurveyedFile, sent: Option<Sent>) -> Result<bool, Failure> {
        let Some((bytes, etag)) = sent else { return Ok(false) };
        match self.prefix.head(&file.entry.key).await? {
            Some(meta) if meta.size == bytes && (etag.is_none() || meta.e_tag == etag) => Ok(true),
            Some(_) => Err(self.another(file)),
            // It is sent again: the claim keeps all others out.
            None => Ok(false),
        }
    }

    /// The tag of the object that is there already, where it is the same.
    async fn same_object(&self, file: &SurveyedFile) -> Result<Option<String>, Failure> {
        let entry = &file.entry;
        let meta = self.prefix.head(&entry.key).await?.filter(|meta| meta.size == entry.bytes);
        let Some(meta) = meta else { return Err(self.another(file)) };
        match self.prefix.digest(&entry.key, entry.bytes).await? == entry.sha256 {
            true => Ok(meta.e_tag),
            false => Err(self.another(file)),
        }
    }

    fn another(&self, file: &SurveyedFile) -> Failure {
        Failure::refused(format!(
            "{}/{}: another object is there; nothing was written over; publish to another prefix",
            self.prefix.url(),
            file.entry.key
        ))
    }

    /// Completing an upload is not conditional everywhere: it begins only where nothing is.
    async fn send_large(&self, file: &SurveyedFile, record: &mut Record) -> Result<(), Failure> {
        let entry = &file.entry;
        let sent = record.sent(&entry.key).cloned();
        if self.is_still_there(file, sent).await? {
            self.bar.inc(entry.bytes);
            return Ok(());
        }
        if self.prefix.head(&entry.key).await?.is_some() {
            let etag = self.same_object(file).await?;
            self.bar.inc(entry.bytes);
            return record.append(Entry::Sent { key: entry.key.clone(), bytes: entry.bytes, etag });
        }
        match self.prefix.has_lasting_uploads() {
            true => self.upload(file, record).await?,
            false => {
                let mut read = |part| {
                    let bytes = self.survey.read(file, part)?;
                    self.bar.inc(bytes.len() as u64);
                    Ok(bytes)
                };
                self.prefix.write_parts(&entry.key, file.part_count(), &mut read).await?;
            }
        }
        match self.prefix.head(&entry.key).await? {
            Some(meta) if meta.size == entry.bytes => {
                record.append(Entry::Sent { key: entry.key.clone(), bytes: entry.bytes, etag: meta.e_tag })
            }
            _ => Err(Failure::interrupted(format!(
                "{}/{}: the store completed it, and has not its {} bytes",
                self.prefix.url(),
                entry.key,
                entry.bytes
            ))),
        }
    }

    /// Goes on with the upload of the record, where the store still has it, else begins one.
    async fn upload(&self, file: &SurveyedFile, record: &mut Record) -> Result<(), Failure> {
        let key = &file.entry.key;
        let failed = |error: object_store::Error| self.prefix.failure(key, &error);
        if let Some(open) = record.upload(key) {
            match self.fill(file, &open.id, open.parts, record).await {
                Ok(()) => return Ok(()),
                Err(Filling::Gone) if self.was_completed(file).await? => return Ok(()),
                Err(Filling::Gone) => {}
                Err(Filling::Failed(failure)) => return Err(failure),
            }
        }
        let id = self.prefix.begin_upload(key).await.map_err(failed)?;
        record.append(Entry::Upload { key: key.clone(), id: id.clone() })?;
        match self.fill(file, &id, BTreeMap::new(), record).await {
            Ok(()) => Ok(()),
            Err(Filling::Failed(failure)) => Err(failure),
            Err(Filling::Gone) if self.was_completed(file).await? => Ok(()),
            Err(Filling::Gone) => {
                let url = self.prefix.url();
                Err(Failure::interrupted(format!(
                    "{url}/{key}: the store gave the upload up while it went on"
                )))
            }
        }
    }

    /// Whether an upload that is gone has become the object: its last answer was lost.
    async fn was_completed(&self, file: &SurveyedFile) -> Result<bool, Failure> {
        match self.prefix.head(&file.entry.key).await? {
            Some(_) => self.same_object(file).await.map(|_| true),
            None => Ok(false),
        }
    }

    /// Sends the parts that are missing, and completes the upload.
    async fn fill(
        &self,
        file: &SurveyedFile,
        id: &str,
        mut there: BTreeMap<usize, String>,
        record: &mut Record,
    ) -> Result<(), Filling> {
        let key = &file.entry.key;
        let failed = |error: object_store::Error| match Answer::new(&error).is_gone() {
            true => Filling::Gone,
            false => Filling::Failed(self.prefix.failure(key, &error)),
        };
        let missing: Vec<usize> = (0..file.part_count()).filter(|part| !there.contains_key(part)).collect();
        let send = |part: usize| async move {
            let bytes = self.survey.read(file, part).map_err(Filling::Failed)?;
            let length = bytes.len() as u64;
            let content_id = self.prefix.put_part(key, id, part, bytes).await.map_err(failed)?;
            Ok::<_, Filling>((part, content_id, length))
        };
        let mut sending = stream::iter(missing).map(send).buffer_unordered(AT_ONCE);
        while let Some((index, content_id, length)) = sending.try_next().await? {
            self.bar.inc(length);
            let part =
                Entry::Part { key: key.clone(), id: id.to_owned(), index, content_id: content_id.clone() };
            record.append(part).map_err(Filling::Failed)?;
            there.insert(index, content_id);
        }
        self.prefix.complete(key, id, there.into_values().collect()).await.map_err(failed)
    }
}

/// The size and the tag that the record has of an object.
type Sent = (u64, Option<String>);

/// Why an upload was not completed.
enum Filling {
    /// The store has given it up, or has completed it and not said so.
    Gone,
    Failed(Failure),
}

/// By which it is seen that the same files are published as before.
pub(super) fn content(survey: &Survey) -> String {
    let mut list = String::new();
    for file in &survey.files {
        list.push_str(&format!("{} {} {}\n", file.entry.sha256, file.entry.bytes, file.entry.path));
    }
    sha256(list.as_bytes())
}
