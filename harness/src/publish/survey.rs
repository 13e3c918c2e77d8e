//! The files that are published: their sizes and digests, and that no secret stands in them. What is sent later must
//! have the same digests, so that a file that changes meanwhile is never published half old and half new.

use super::failure::Failure;
use super::manifest::{MOST_FILES, ManifestFile};
use super::object_name;
use crate::outgoing::Outgoing;
use base::digest::{Sum, sha256};
use base::redact::Redactor;
use base::text::show;
use bytes::Bytes;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use store::{every_file, files, is_inside, left_out, no_files, unfinished};

/// A larger file is sent in parts that have at least this size. Stores want 5 MiB at least.
pub(super) const PART: u64 = 16 << 20;
/// S3 and Google take no more.
const MOST_PARTS: u64 = 10_000;

/// The files of a folder.
pub(super) struct Survey {
    folder: PathBuf,
    outgoing: Outgoing,
    is_run: bool,
    pub(super) files: Vec<SurveyedFile>,
    /// What is not published, and why.
    pub(super) left_out: Vec<String>,
}

/// One file as it was when it was looked through.
pub(super) struct SurveyedFile {
    pub(super) entry: ManifestFile,
    part_bytes: u64,
    /// The digest of each part.
    parts: Vec<String>,
}

impl SurveyedFile {
    /// How many parts it has; a file without bytes has none.
    pub(super) fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Whether it is sent in parts.
    pub(super) fn is_large(&self) -> bool {
        self.parts.len() > 1
    }
}

impl Survey {
    /// Looks through all files of the folder. `advice` is what to do about a secret.
    pub(super) fn from_folder(
        folder: &Path,
        is_run: bool,
        redactor: &Redactor,
        advice: &str,
    ) -> Result<Survey, Failure> {
        let paths = listed(folder, is_run)?;
        if paths.is_empty() {
            return Err(Failure::refused(format!("{}: it has no files", folder.display())));
        }
        if paths.len() > MOST_FILES {
            return Err(Failure::refused(format!(
                "{}: {} files, limit {MOST_FILES}",
                folder.display(),
                paths.len()
            )));
        }
        let outgoing = Outgoing::from_files(folder, &paths)
            .map_err(|error| Failure::refused(format!("nothing was sent: {error}")))?;
        let surveyed = paths.iter().map(|path| survey(folder, path, &outgoing, redactor, advice));
        let surveyed: Vec<SurveyedFile> = surveyed.collect::<Result<_, _>>()?;
        let left_out = not_published(folder, is_run)?;
        Ok(Survey { folder: folder.to_owned(), outgoing, is_run, files: surveyed, left_out })
    }

    /// The bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.entry.bytes).sum()
    }

    /// One part of a file, or the whole of one that has none, as it was when it was looked through.
    pub(super) fn read(&self, file: &SurveyedFile, part: usize) -> Result<Bytes, Failure> {
        let changed = |why: &dyn std::fmt::Display| {
            Failure::refused(format!(
                "{}: {why}; publish it to another place when nothing writes to it",
                file.entry.path
            ))
        };
        let from = file.part_bytes * part as u64;
        let most = file.part_bytes.min(file.entry.bytes - from);
        let is_last = part + 1 >= file.parts.len();
        let read = || -> io::Result<Vec<u8>> {
            let mut opened = open(&self.folder.join(&file.entry.path))?;
            // One byte more shows that the file has grown.
            let most = most + u64::from(is_last);
            self.outgoing.part(Path::new(&file.entry.path), &mut opened, from, most)
        };
        let bytes = read().map_err(|error| changed(&error))?;
        let digest = file.parts.get(part).unwrap_or(&file.entry.sha256);
        match &sha256(&bytes) == digest {
            true => Ok(bytes.into()),
            false => Err(changed(&"it changed while it was published")),
        }
    }

    /// Fails where files came or went since.
    pub(super) fn has_the_same_files(&self) -> Result<(), Failure> {
        let now = listed(&self.folder, self.is_run)?;
        let before = || self.files.iter().map(|file| Path::new(&file.entry.path));
        if now.iter().map(PathBuf::as_path).eq(before()) {
            return Ok(());
        }
        let other = now.iter().map(PathBuf::as_path).find(|path| !before().any(|one| one == *path));
        let gone = before().find(|path| !now.iter().any(|one| one == path));
        let which = other.or(gone).unwrap_or(&self.folder);
        Err(Failure::refused(format!(
            "{}: it came or went while the others were published; no manifest was written; publish to another place when \
             nothing writes there",
            which.display()
        )))
    }
}

/// A run has files that are none of it: where it came from, and what was not written to its end.
fn listed(folder: &Path, is_run: bool) -> Result<Vec<PathBuf>, Failure> {
    if is_run { files(folder) } else { every_file(folder) }.map_err(Failure::refused)
}

fn not_published(folder: &Path, is_run: bool) -> Result<Vec<String>, Failure> {
    let others = if is_run { left_out(folder) } else { no_files(folder) }.map_err(Failure::refused)?;
    let line = |path: &Path, why: &str| format!("{}: {why}", show(&path.to_string_lossy()));
    let links =
        others.iter().map(|path| line(path, "it is neither file nor folder, and links are not followed"));
    let mut lines: Vec<String> = links.collect();
    if is_run {
        let unfinished = unfinished(folder).map_err(Failure::refused)?;
        lines.extend(unfinished.iter().map(|path| line(path, "it was not written to its end")));
        if store::is_foreign(folder) {
            lines.push(line(Path::new("origin"), "it says that the run was made elsewhere"));
        }
    }
    Ok(lines)
}

/// Not through a link, and without waiting for whoever writes into a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)
}

fn survey(
    folder: &Path,
    path: &Path,
    outgoing: &Outgoing,
    redactor: &Redactor,
    advice: &str,
) -> Result<SurveyedFile, Failure> {
    let shown = show(&path.to_string_lossy());
    let refuse = |why: &dyn std::fmt::Display| Failure::refused(format!("nothing was sent: {shown}: {why}"));
    let Some(name) = path.to_str().filter(|name| is_inside(name)) else {
        return Err(refuse(&"its name is not UTF-8, has control characters or is too long; rename it"));
    };
    if let Some((_, what)) = redactor.first(name.as_bytes()) {
        return Err(refuse(&format!("its name looks like a secret, `{what}`; rename it")));
    }
    let file = open(&folder.join(path)).map_err(|error| refuse(&error))?;
    let length = file.metadata().map_err(|error| refuse(&error))?.len();
    let part_bytes = PART.max(length.div_ceil(MOST_PARTS));
    let mut reader = DigestReader {
        file: outgoing.reader(path, &file).map_err(|error| refuse(&error))?,
        part_bytes,
        in_part: 0,
        bytes: 0,
        whole: Sum::default(),
        part: Sum::default(),
        parts: Vec::new(),
    };
    let secret = redactor.first_in(&mut reader).map_err(|error| refuse(&error))?;
    if let Some((line, what)) = secret {
        return Err(refuse(&format!("line {line} looks like a secret, `{what}`; {advice}")));
    }
    if reader.in_part > 0 {
        reader.end_part();
    }
    let entry = ManifestFile {
        path: name.to_owned(),
        key: object_name::from_path(name),
        bytes: reader.bytes,
        sha256: reader.whole.to_hex(),
    };
    Ok(SurveyedFile { entry, part_bytes, parts: reader.parts })
}

/// Makes the digests of a file and of its parts while somebody else reads it.
struct DigestReader<'a> {
    file: Box<dyn Read + 'a>,
    part_bytes: u64,
    in_part: u64,
    bytes: u64,
    whole: Sum,
    part: Sum,
    parts: Vec<String>,
}

impl DigestReader<'_> {
    fn end_part(&mut self) {
        self.parts.push(std::mem::take(&mut self.part).to_hex());
        self.in_part = 0;
    }
}

impl Read for DigestReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Never beyond the end of a part.
        let room = usize::try_from(self.part_bytes - self.in_part).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read(&mut buffer[..room])?;
        self.whole.update(&buffer[..read]);
        self.part.update(&buffer[..read]);
        self.bytes += read as u64;
        self.in_part += read as u64;
        if self.in_part == self.part_bytes {
            self.end_part();
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder_with(name: &str, bytes: &[u8]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(name), bytes).expect("written");
        folder
    }

    fn surveyed(folder: &Path) -> Result<Survey, Failure> {
        Survey::from_folder(folder, false, &Redactor::default(), "take it out")
    }

    #[test]
    fn large_files_have_parts_that_make_up_the_whole() {
        let bytes: Vec<u8> = (0..PART * 2 + 5).map(|at| (at % 251) as u8).collect();
        let folder = folder_with("large", &bytes);
        let survey = surveyed(folder.path()).expect("read");
        let file = &survey.files[0];
        assert_eq!((file.part_count(), file.is_large(), survey.bytes()), (3, true, bytes.len() as u64));
        let read: Vec<u8> = (0..3).flat_map(|part| survey.read(file, part).expect("unchanged")).collect();
        assert!(read == bytes && file.entry.sha256 == sha256(&bytes));
        fs::write(folder.path().join("large"), [&bytes[..], b"x"].concat()).expect("grown");
        survey.read(file, 0).expect("as before");
        let why = survey.read(file, 2).expect_err("grown").to_string();
        assert!(why.contains("large: it changed while it was published"), "{why}");
    }

    #[test]
    fn accounts_are_masked_in_what_is_sent() {
        let arn = b"image 123456789012.dkr.ecr.us-west-2.amazonaws.com/nccl:1\n";
        let folder = folder_with("log", arn);
        let list = format!("{{\"log\":\"{}\"}}", sha256(arn));
        fs::write(folder.path().join("list.json"), &list).expect("written");
        let survey = surveyed(folder.path()).expect("read");
        let read = |at: usize| survey.read(&survey.files[at], 0).expect("unchanged");
        let masked = b"image ************.dkr.ecr.us-west-2.amazonaws.com/nccl:1\n";
        assert_eq!(read(1), &masked[..]);
        assert_eq!(read(0), format!("{{\"log\":\"{}\"}}", sha256(masked)).into_bytes());
        assert_eq!(survey.files[1].entry.sha256, sha256(masked));
    }

    #[test]
    fn files_that_change_come_or_go_are_reported() {
        let folder = folder_with("a", b"one");
        fs::write(folder.path().join("empty"), b"").expect("written");
        let survey = surveyed(folder.path()).expect("read");
        assert_eq!(survey.read(&survey.files[1], 0).expect("read"), Bytes::new());
        survey.has_the_same_files().expect("the same");
        for change in [&b"two"[..], b"onetwo", b"o", b""] {
            fs::write(folder.path().join("a"), change).expect("written");
            assert!(survey.read(&survey.files[0], 0).is_err(), "{change:?}");
        }
        fs::write(folder.path().join("b"), b"new").expect("written");
        assert!(survey.has_the_same_files().expect_err("came").to_string().starts_with("b: "));
        fs::remove_file(folder.path().join("b")).expect("removed");
        fs::remove_file(folder.path().join("a")).expect("removed");
        assert!(survey.has_the_same_files().expect_err("went").to_string().starts_with("a: "));
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("a")).expect("linked");
        assert!(survey.read(&survey.files[0], 0).is_err());
    }

    #[test]
    fn secrets_odd_names_and_empty_folders_are_refused_and_links_are_named() {
        let folder = folder_with("notes", b"a note\nAWS_SECRET_ACCESS_KEY=hunter2\n");
        let why = surveyed(folder.path()).err().expect("refused").to_string();
        assert!(
            why.contains("notes: line 2 looks like a secret, `AWS_SECRET_ACCESS_KEY`; take it out"),
            "{why}"
        );
        let folder = folder_with("a\nb", b"x");
        assert!(surveyed(folder.path()).err().expect("refused").to_string().contains("a\\nb: its name"));
        let folder = tempfile::tempdir().expect("a folder");
        assert!(surveyed(folder.path()).err().expect("refused").to_string().contains("no files"));
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).expect("linked");
        fs::write(folder.path().join("a"), b"x").expect("written");
        let survey = surveyed(folder.path()).expect("read");
        assert_eq!(
            (survey.files.len(), survey.left_out.as_slice()),
            (1, &["link: it is neither file nor folder, and links are not followed".to_owned()][..])
        );
    }

    #[test]
    fn a_folder_has_all_its_files_and_what_a_run_leaves_out_is_named() {
        let folder = folder_with("origin", b"x");
        fs::create_dir(folder.path().join("deep")).expect("made");
        for name in ["deep/.part-1", "deep/origin"] {
            fs::write(folder.path().join(name), b"x").expect("written");
        }
        let published = |is_run| {
            let survey = Survey::from_folder(folder.path(), is_run, &Redactor::default(), "").expect("read");
            let files: Vec<String> = survey.files.iter().map(|file| file.entry.path.clone()).collect();
            survey.has_the_same_files().expect("the same");
            (files, survey.left_out.len())
        };
        let all = ["deep/.part-1", "deep/origin", "origin"].map(str::to_owned).to_vec();
        assert_eq!(published(false), (all, 0));
        assert_eq!(published(true), (vec!["deep/origin".to_owned()], 2));
        fs::remove_file(folder.path().join("origin")).expect("removed");
        fs::create_dir(folder.path().join("origin")).expect("made");
        fs::write(folder.path().join("origin/a"), b"x").expect("written");
        assert!(published(false).0.contains(&"origin/a".to_owned()));
    }
}
