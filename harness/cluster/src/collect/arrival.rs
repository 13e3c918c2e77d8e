//! A file that is collected: it lies in the run's folder from here on, without its secrets, which are removed as it arrives.
//! `redacted` counts them, and the digest is that of what lies there.

use crate::reach::sink::{CHUNK, Sink};
use base::digest::Sum;
use base::redact::{HEAD, How, Redacted, Stream};
use model::artefact::{CollectedFile, ExpectedFile, PlannedCase, PlannedJob};
use nsys::export;
use nsys::safe_parquet::Refused;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use store::{Part, Store, StoreError};

/// How tables of exports begin.
const TABLE: &[u8] = b"PAR1";
/// How much of a file is looked at to see whether something simulated made it.
const SIGN_WITHIN: usize = 64 << 10;

/// Takes one file of a job, and puts it under its name with `keep`. Until then it has none, and nothing of it stays.
pub(super) struct Arrival<'a> {
    store: &'a Store,
    path: PathBuf,
    content: Content<'a>,
}

enum Content<'a> {
    /// Fewer bytes than say what it is.
    Head(Vec<u8>),
    Stream(Box<Streamed<'a>>),
    /// The texts of a table are packed: it is read once it is complete.
    Table(File, How),
}

/// A file at home, and how it begins there.
pub(super) struct Arrived {
    pub file: CollectedFile,
    pub head: Vec<u8>,
}

impl<'a> Arrival<'a> {
    pub(super) fn new(case: &PlannedCase, planned: &PlannedJob, name: &str, store: &'a Store) -> Arrival<'a> {
        let path = store.raw(&case.name, &planned.name).join(name);
        Arrival { store, path, content: Content::Head(Vec::new()) }
    }

    pub(super) fn failed(&self, why: &str) -> StoreError {
        StoreError::other(&self.path, &why)
    }

    /// Puts it under its name; or says why it is not kept.
    pub(super) fn keep(
        self,
        planned: &PlannedJob,
        expected: &ExpectedFile,
    ) -> Result<Result<Arrived, String>, StoreError> {
        let (path, store) = (self.path.clone(), self.store);
        let kept = match self.written() {
            Ok(Ok(Written { part, of })) => store.keep_part(part).map(|()| of),
            Ok(Err(why)) => return Ok(Err(why)),
            Err(error) => Err(error),
        };
        let home = kept.map_err(|error| StoreError::other(&path, &error))?;
        let file = CollectedFile {
            job: planned.name.clone(),
            path: format!("raw/{}/{}", planned.name, expected.name),
            kind: expected.kind,
            node: expected.node.clone(),
            part: expected.part.clone(),
            rank: expected.rank,
            bytes: home.bytes,
            sha256: home.digest.to_hex(),
            redacted: home.redacted,
        };
        Ok(Ok(Arrived { file, head: home.head }))
    }

    fn written(mut self) -> io::Result<Result<Written, String>> {
        if matches!(self.content, Content::Head(_)) {
            self.begin()?;
        }
        let (mut raw, how) = match self.content {
            Content::Head(_) => return Written::begin(&self.path, self.store).map(Ok),
            Content::Stream(streamed) => return streamed.finish().map(Ok),
            Content::Table(raw, how) => (raw, how),
        };
        let mut home = Written::begin(&self.path, self.store)?;
        match cleaned(&raw, self.store) {
            Ok(Some(Redacted { bytes, count })) => {
                home.write(&bytes)?;
                home.of.redacted = count;
            }
            Ok(None) => by_chunk(&mut raw, &mut |chunk| home.write(chunk))?,
            // Readers may get further than this one did, and it may hold secrets.
            Err(refused) if refused.is_too_large => {
                return Ok(Err(format!(
                    "not kept, since its texts were not searched for secrets: {}",
                    refused.why
                )));
            }
            // No reader will get further than this one did, and what stands in it as it is can be seen.
            Err(_) => {
                let mut streamed = Streamed::new(self.store, how, home);
                by_chunk(&mut raw, &mut |chunk| streamed.push(chunk))?;
                return streamed.finish().map(Ok);
            }
        }
        Ok(Ok(home))
    }

    /// Goes on with what has come by what it is.
    fn begin(&mut self) -> io::Result<()> {
        let Content::Head(head) = &mut self.content else { return Ok(()) };
        let head = std::mem::take(head);
        let how = How::detect(&head);
        if head.starts_with(TABLE) {
            let mut raw = self.store.unnamed()?;
            raw.write_all(&head)?;
            self.content = Content::Table(raw, how);
        } else {
            let home = Written::begin(&self.path, self.store)?;
            let mut streamed = Streamed::new(self.store, how, home);
            streamed.push(&head)?;
            self.content = Content::Stream(Box::new(streamed));
        }
        Ok(())
    }
}

impl Sink for Arrival<'_> {
    fn restart(&mut self) -> io::Result<()> {
        self.content = Content::Head(Vec::new());
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.content {
            Content::Head(head) => {
                head.extend_from_slice(bytes);
                if head.len() >= HEAD { self.begin() } else { Ok(()) }
            }
            Content::Stream(streamed) => streamed.push(bytes),
            Content::Table(raw, _) => raw.write_all(bytes),
        }
    }
}

/// Bytes that are written without their secrets as they come.
struct Streamed<'a> {
    stream: Stream<'a>,
    out: Vec<u8>,
    home: Written,
}

impl<'a> Streamed<'a> {
    fn new(store: &'a Store, how: How, home: Written) -> Streamed<'a> {
        Streamed { stream: store.redactor().stream(how), out: Vec::new(), home }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.chunks(CHUNK) {
            self.stream.push(chunk, &mut self.out);
            self.home.write(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Written> {
        self.stream.finish(&mut self.out);
        self.home.write(&self.out)?;
        self.home.of.redacted = self.stream.count();
        Ok(self.home)
    }
}

/// A file that is written.
struct Written {
    part: Part,
    of: Facts,
}

#[derive(Default)]
struct Facts {
    digest: Sum,
    bytes: u64,
    head: Vec<u8>,
    redacted: u64,
}

impl Written {
    fn begin(path: &Path, store: &Store) -> io::Result<Written> {
        Ok(Written { part: store.begin_part(path)?, of: Facts::default() })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.part.write_all(bytes)?;
        let Facts { digest, bytes: length, head, .. } = &mut self.of;
        digest.update(bytes);
        *length += bytes.len() as u64;
        let more = SIGN_WITHIN.saturating_sub(head.len()).min(bytes.len());
        head.extend_from_slice(&bytes[..more]);
        Ok(())
    }
}

/// A rewritten table, where there is a secret among its texts.
fn cleaned(raw: &File, store: &Store) -> Result<Option<Redacted>, Refused> {
    let clean = |text: &[u8]| {
        let Redacted { bytes, count } = store.redactor().bytes(text);
        (count > 0).then_some(bytes)
    };
    let cleaned = export::cleaned(raw, &clean)?;
    Ok(cleaned.map(|(bytes, count)| Redacted { bytes, count }))
}

fn by_chunk(raw: &mut File, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    raw.rewind()?;
    loop {
        match raw.read(&mut chunk)? {
            0 => return Ok(()),
            read => each(&chunk[..read])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_begins_like_a_table_has_its_secrets_masked() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::create_in(folder.path(), "run").expect("a store");
        let path = store.raw("c", "j").join("file");
        let mut arrival = Arrival { store: &store, path: path.clone(), content: Content::Head(Vec::new()) };
        arrival.append(b"PAR1\0HF_TOKEN=abc\0").expect("taken");
        let Written { part, of } = arrival.written().expect("written").expect("kept");
        part.keep().expect("kept");
        assert_eq!(std::fs::read(path).expect("there"), b"PAR1\0HF_TOKEN=***\0");
        assert_eq!((of.bytes, of.redacted, of.head.len()), (18, 1, 18));
    }

    #[test]
    fn nothing_is_collected_into_what_took_the_place_of_the_folder_of_the_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let (elsewhere, away) = (folder.path().join("elsewhere"), folder.path().join("away"));
        std::fs::create_dir(&elsewhere).expect("made");
        let store = Store::create_in(&folder.path().join("runs"), "run").expect("a store");
        let path = store.raw("c", "j").join("file");
        let arrival = || Arrival { store: &store, path: path.clone(), content: Content::Head(Vec::new()) };
        let mut begun = arrival();
        begun.append(&[b'a'; HEAD]).expect("taken");
        std::fs::rename(store.folder(), &away).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, store.folder()).expect("linked");
        let refused = |why: io::Error| {
            assert!(why.to_string().contains("not the folder in which this run began"), "{why}");
        };
        let Written { part, .. } = begun.written().expect("written").expect("complete");
        refused(store.keep_part(part).expect_err("not kept there"));
        let mut fresh = arrival();
        refused(fresh.append(&[b'a'; HEAD]).expect_err("not begun there"));
        refused(arrival().written().err().expect("an empty file is not begun there"));
        let mut table = arrival();
        let mut bytes = TABLE.to_vec();
        bytes.resize(HEAD, 0);
        refused(table.append(&bytes).expect_err("not begun there"));
        assert_eq!(std::fs::read_dir(&elsewhere).expect("read").count(), 0);
    }

    /// 20,000 rows with the same text of 1 MiB each.
    #[test]
    fn a_table_whose_texts_are_too_many_to_be_searched_is_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::create_in(folder.path(), "run").expect("a store");
        let path = store.raw("c", "j").join("table");
        let bytes = include_bytes!("../../../../tests/planted/dictionary-of-20-gb.parquet");
        let mut arrival = Arrival { store: &store, path: path.clone(), content: Content::Head(Vec::new()) };
        arrival.append(bytes).expect("taken");
        let why = arrival.written().expect("written").err().expect("refused");
        assert!(why.starts_with("not kept") && why.contains("more than 256 MiB"), "{why}");
        assert!(!path.exists());
    }

    #[test]
    fn a_table_is_written_without_its_secrets_and_kept_as_it_is_where_it_has_none() {
        use nsys::tables::write::strings;
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::create_in(folder.path(), "run").expect("a store");
        let file = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(bytes).expect("written");
            file
        };
        let table =
            |text: &str| file(&strings(&[(1, text.to_owned()), (2, "b".to_owned())]).expect("a table"));
        let found = cleaned(&table("HF_TOKEN=abc"), &store).expect("read").expect("a secret");
        assert_eq!(found.count, 1);
        let whole = file(&found.bytes);
        let finds = |text: &[u8]| export::cleaned(&whole, &|seen| (seen == text).then(Vec::new));
        assert_eq!(finds(b"HF_TOKEN=abc"), Ok(None));
        assert!(finds(b"HF_TOKEN=[redacted]").is_ok_and(|found| found.is_some()));
        assert_eq!(cleaned(&table("a"), &store), Ok(None));
    }
}
