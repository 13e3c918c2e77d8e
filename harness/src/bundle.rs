//! Packs a run into one file and opens such a file on another machine, with the checks that it is a run. The same run
//! gives the same bytes.

use base::digest::sha256;
use base::redact::Redactor;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use model::artefact::CollectedFile;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use store::{self, Home, StoreError, Stored, is_inside};
use tar::{Archive, Builder, EntryType, Header};

/// Logs and tables shrink to a tenth or a twentieth. What grows far beyond that was made to fill a disk.
const MOST_GROWTH: u64 = 200;
const ALWAYS_ALLOWED: u64 = 1 << 30;
/// More files than the largest run has.
const MOST_ENTRIES: usize = 200_000;
/// Headers that hold a long name or other properties of the next file are read into memory.
const LONGEST_HEADER: u64 = 8 << 10;

/// Writes the whole run to `out`; gives the number of its files.
pub(crate) fn pack(run: &Stored, out: &Path) -> Result<usize, StoreError> {
    intact(run)?;
    let files = store::files(run.folder())?;
    let redactor = Redactor::default();
    store::write_private_by(out, &mut |file| {
        let mut builder = Builder::new(GzEncoder::new(file, Compression::default()));
        for name in &files {
            let bytes = fs::read(run.folder().join(name))?;
            if let Some((line, what)) = redactor.first(&bytes) {
                return Err(io::Error::other(format!(
                    "no bundle was written: {}: line {line} looks like a secret, `{what}`; remove it from `raw`, replay the run with \
                     `--from collect`, and bundle the new run",
                    name.display()
                )));
            }
            let mut header = Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            builder.append_data(&mut header, Path::new(&run.plan.run_id).join(name), bytes.as_slice())?;
        }
        builder.into_inner()?.finish().map(|_| ())
    })?;
    Ok(files.len())
}

/// Opens a bundle into `runs/`, under the run's own id; gives its folder. A run that is there already is used if it is
/// the same.
pub fn open(home: &Home, file: &Path) -> Result<PathBuf, StoreError> {
    let bad = |why: &dyn std::fmt::Display| StoreError::other(file, why);
    let runs = home.path().join("runs");
    fs::create_dir_all(&runs).map_err(|error| bad(&error))?;
    let place =
        tempfile::Builder::new().prefix(".opening-").tempdir_in(&runs).map_err(|error| bad(&error))?;
    let id = unpack(file, place.path()).map_err(|why| bad(&why))?;
    let opened = place.path().join(&id);
    let run = Stored::open(&opened).map_err(|error| bad(&inside(&error, place.path())))?;
    if run.plan.run_id != id {
        return Err(bad(&format!("its folder is `{id}`, but its plan is of run `{}`", run.plan.run_id)));
    }
    intact(&run).map_err(|error| bad(&inside(&error, place.path())))?;
    // Marked before it appears in `runs`.
    store::mark_foreign(&opened)?;
    let target = runs.join(&id);
    if !target.exists() {
        fs::rename(&opened, &target).map_err(|error| bad(&error))?;
        return Ok(target);
    }
    match differing(&opened, &target)? {
        None => Ok(target),
        Some(name) => Err(bad(&format!(
            "`runs` already has a different run with this id; move one of them away; they differ in {}",
            name.display()
        ))),
    }
}

/// A message about a file of the archive, by its path there.
fn inside(error: &StoreError, place: &Path) -> String {
    error.to_string().replace(&format!("{}/", place.display()), "")
}

/// Checks that every collected file is unchanged.
fn intact(run: &Stored) -> Result<(), StoreError> {
    for case in &run.plan.cases {
        let collected = run.collected(&case.name)?.map(|found| found.files).unwrap_or_default();
        let kept = run.kept(&case.name)?.map(|found| found.files).unwrap_or_default();
        for file in collected.iter().chain(&kept) {
            if let Some(why) = broken(file, &run.case(&case.name)) {
                let path = run.case(&case.name).join(&file.path);
                return Err(StoreError::other(
                    &path,
                    &format!("{why}; `--from collect` accepts the current file"),
                ));
            }
        }
    }
    Ok(())
}

fn broken(file: &CollectedFile, folder: &Path) -> Option<String> {
    if !is_inside(&file.path) {
        return Some("its path is not inside the case's folder".to_owned());
    }
    match fs::read(folder.join(&file.path)) {
        Ok(bytes) if sha256(&bytes) == file.sha256 => None,
        Ok(_) => Some("its digest differs from `collected.json`".to_owned()),
        Err(error) => Some(format!("listed in `collected.json`, but cannot be read: {error}")),
    }
}

/// Fails where more bytes come than allowed: what an archive says of its own size is not believed.
struct Bounded<R> {
    inner: R,
    left: u64,
    /// Shared with the caller, which otherwise could not distinguish it from a damaged archive: `tar` wraps errors in
    /// its own.
    is_over: Rc<Cell<bool>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => {
                self.left = left;
                Ok(count)
            }
            None => {
                self.is_over.set(true);
                Err(io::Error::other("the limit of unpacked bytes is exceeded"))
            }
        }
    }
}

/// Goes through all headers before any is obeyed, and refuses what would fill memory or disk.
fn survey(archive: &mut Archive<impl Read>, most: u64, entries: usize) -> Result<(), Refused> {
    let mut unpacked = 0u64;
    let mut count = 0;
    // Raw: otherwise long names are in memory before their length is checked.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        count += 1;
        if count > entries {
            return Err(Refused::Why(format!("it has more than {entries} entries, which no run has")));
        }
        let size = entry.size();
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions()
        {
            if size > LONGEST_HEADER {
                return Err(Refused::Why(format!("a header of {size} bytes, limit {LONGEST_HEADER} bytes")));
            }
            let mut text = Vec::new();
            entry.read_to_end(&mut text)?;
            // The second size of a file would let it, or what follows it, pass unseen here.
            if !kind.is_gnu_longname() && text.windows(6).any(|window| window == b" size=") {
                return Err(Refused::Why("a file in it has two sizes".to_owned()));
            }
        }
        if kind.is_gnu_sparse() {
            return Err(Refused::Why("an entry is neither file nor folder: a sparse file".to_owned()));
        }
        unpacked = unpacked.saturating_add(size);
        if unpacked > most {
            return Err(Refused::TooLarge);
        }
    }
    Ok(())
}

enum Refused {
    Why(String),
    TooLarge,
    Read(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Read(error)
    }
}

/// Unpacks into `place`, and gives the one folder that all of it lies in.
fn unpack(file: &Path, place: &Path) -> Result<String, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
    let most = size.saturating_mul(MOST_GROWTH).max(ALWAYS_ALLOWED);
    let is_over = Rc::new(Cell::new(false));
    let too_large = || format!("{size} bytes would unpack to more than {most} bytes");
    let cut = |error: io::Error| match error.kind() {
        _ if is_over.get() => too_large(),
        io::ErrorKind::InvalidInput => format!("not a bundle, or a damaged one: {error}"),
        _ => format!("truncated or damaged; copy it again: {error}"),
    };
    let open = || -> Result<_, String> {
        let inner = GzDecoder::new(BufReader::new(File::open(file).map_err(|error| error.to_string())?));
        Ok(Archive::new(Bounded { inner, left: most, is_over: Rc::clone(&is_over) }))
    };
    survey(&mut open()?, most, MOST_ENTRIES).map_err(|refused| match refused {
        Refused::Why(why) => why,
        Refused::TooLarge => too_large(),
        Refused::Read(error) => cut(error),
    })?;
    let mut archive = open()?;
    let mut id: Option<String> = None;
    let mut unpacked = 0u64;
    for entry in archive.entries().map_err(cut)? {
        let mut entry = entry.map_err(cut)?;
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8(name).map_err(|_| "a name in it is not UTF-8".to_owned())?;
        let name = name.trim_start_matches("./");
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Directory if name.is_empty() || is_inside(name.trim_end_matches('/')) => continue,
            EntryType::Directory => return Err(format!("an entry leads out of its folder: {name:?}")),
            _ => return Err(format!("an entry is neither file nor folder: {name:?}")),
        }
        let Some((top, inner)) = name.split_once('/').filter(|_| is_inside(name)) else {
            return Err(format!("an entry is not a file below one folder: {name:?}"));
        };
        if top.starts_with('.') || top == "latest" || !is_inside(inner) {
            return Err(format!("not the name of a run: {name:?}"));
        }
        match &id {
            None => id = Some(top.to_owned()),
            Some(id) if id == top => {}
            Some(id) => return Err(format!("it has more than one run: `{id}`, `{top}`")),
        }
        unpacked = unpacked.saturating_add(entry.size());
        if unpacked > most {
            return Err(too_large());
        }
        let target = place.join(name);
        if target.exists() {
            return Err(format!("duplicate file in it: {name:?}"));
        }
        let written = store::write_private_by(&target, &mut |file| io::copy(&mut entry, file).map(|_| ()));
        written.map_err(|error| format!("truncated or damaged, or the disk is full: {error}"))?;
    }
    // The digest of the whole stands at its very end.
    let rest = io::copy(&mut archive.into_inner().take(ALWAYS_ALLOWED), &mut io::sink());
    rest.map_err(cut)?;
    id.ok_or_else(|| "it is empty".to_owned())
}

/// The first file in which two folders differ.
fn differing(one: &Path, other: &Path) -> Result<Option<PathBuf>, StoreError> {
    let (mine, theirs) = (store::files(one)?, store::files(other)?);
    let lone =
        mine.iter().find(|name| !theirs.contains(name)).or(theirs.iter().find(|name| !mine.contains(name)));
    if let Some(name) = lone {
        return Ok(Some(name.clone()));
    }
    let differs = |name: &&PathBuf| match (fs::read(one.join(name)), fs::read(other.join(name))) {
        (Ok(mine), Ok(theirs)) => mine != theirs,
        _ => true,
    };
    Ok(mine.iter().find(differs).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for (name, kind, bytes) in entries {
            let mut header = Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_entry_type(*kind);
            if *kind == EntryType::Symlink {
                header.set_link_name("/etc/passwd").expect("a link");
            }
            // The builder itself refuses `..`: a hostile archive is written by hand.
            let field = &mut header.as_old_mut().name;
            field[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, *bytes).expect("appended");
        }
        builder.into_inner().expect("built").finish().expect("finished")
    }

    /// An entry as bytes, whatever it says of itself.
    fn raw(kind: EntryType, size: u64, body: &[u8]) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.set_path("run/a").expect("a path");
        header.set_size(size);
        header.set_mode(0o644);
        header.set_entry_type(kind);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }

    fn packed(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&entries.concat()).expect("written");
        encoder.write_all(&[0; 1024]).expect("written");
        encoder.finish().expect("finished")
    }

    #[test]
    fn long_name_and_pax_headers_of_more_than_8_kib_are_refused_unread() {
        let long = vec![b'a'; 1 << 20];
        for kind in [b'L', b'K', b'x', b'g'].map(EntryType::new) {
            let bomb = packed(&[raw(kind, 1 << 20, &long), raw(EntryType::Regular, 1, b"1")]);
            let why = unpacked(&bomb).expect_err("refused");
            assert!(why.contains("a header of 1048576 bytes, limit 8192"), "{kind:?}: {why}");
        }
    }

    #[test]
    fn a_pax_record_cannot_give_a_file_another_size_than_its_header() {
        let record = b"13 size=4096\n";
        let bytes = vec![b'1'; 4096];
        let pax = raw(EntryType::XHeader, record.len() as u64, record);
        let why = unpacked(&packed(&[pax, raw(EntryType::Regular, 0, &bytes)])).expect_err("refused");
        assert!(why.contains("two sizes"), "{why}");
    }

    #[test]
    fn a_bundle_of_more_entries_than_a_run_has_is_refused() {
        let archive =
            |count| Archive::new(io::Cursor::new(vec![raw(EntryType::Regular, 0, b""); count].concat()));
        assert!(survey(&mut archive(10), 1 << 20, 10).is_ok());
        let refused = survey(&mut archive(11), 1 << 20, 10);
        assert!(matches!(refused, Err(Refused::Why(why)) if why.contains("more than 10 entries")));
    }

    #[test]
    fn reading_fails_where_the_limit_of_unpacked_bytes_is_passed() {
        let read = |bytes: u64| {
            let is_over = Rc::new(Cell::new(false));
            let mut bounded =
                Bounded { inner: io::repeat(0).take(bytes), left: 1000, is_over: Rc::clone(&is_over) };
            (io::copy(&mut bounded, &mut io::sink()).is_ok(), is_over.get())
        };
        assert_eq!(read(1000), (true, false));
        assert_eq!(read(1001), (false, true));
    }

    fn unpacked(bytes: &[u8]) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.tar.gz");
        fs::write(&file, bytes).expect("written");
        let place = folder.path().join("place");
        let result = unpack(&file, &place);
        let beside: Vec<_> = fs::read_dir(folder.path()).expect("read").flatten().collect();
        assert!(beside.len() <= 2, "something was written beside the place: {beside:?}");
        result
    }

    #[test]
    fn what_leads_out_links_or_stands_twice_is_refused_and_nothing_is_written_elsewhere() {
        let file = EntryType::Regular;
        assert_eq!(unpacked(&archive(&[("run/plan.json", file, b"{}")])), Ok("run".to_owned()));
        assert_eq!(
            unpacked(&archive(&[("./run/", EntryType::Directory, b""), ("./run/a", file, b"1")])),
            Ok("run".to_owned())
        );
        let mut messages = String::new();
        for (entries, expected) in [
            (&[("../x", file, b"1".as_slice())][..], "not a file below one folder"),
            (&[("run/../../x", file, b"1")], "not a file below one folder"),
            (&[("/tmp/x", file, b"1")], "not a file below one folder"),
            (&[("x", file, b"1")], "not a file below one folder"),
            (&[("../", EntryType::Directory, b"")], "leads out"),
            (&[("run/l", EntryType::Symlink, b"")], "neither file nor folder"),
            (&[("run/l", EntryType::Link, b"")], "neither file nor folder"),
            (&[("run/l", EntryType::Char, b"")], "neither file nor folder"),
            (&[(".hidden/x", file, b"1")], "not the name of a run"),
            (&[("latest/x", file, b"1")], "not the name of a run"),
            (&[("a/x", file, b"1"), ("b/x", file, b"1")], "more than one run"),
            (&[("a/x", file, b"1"), ("a/x", file, b"2")], "duplicate"),
            (&[], "it is empty"),
        ] {
            let why = unpacked(&archive(entries)).expect_err(expected);
            assert!(why.contains(expected), "{why}, not: {expected}");
            messages += &format!("{why}\n");
        }
        insta::assert_snapshot!("messages", messages);
    }

    #[test]
    fn names_that_no_file_of_a_run_has_are_refused_and_shown_as_they_are() {
        let named = |name: &[u8]| {
            let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
            let mut header = Header::new_gnu();
            let field = &mut header.as_old_mut().name;
            let short = name.get(..field.len()).unwrap_or(name);
            field[..short.len()].copy_from_slice(short);
            header.set_size(1);
            header.set_mode(0o644);
            header.set_cksum();
            if name.len() > 100 {
                let path = String::from_utf8_lossy(name).into_owned();
                builder.append_data(&mut header, path, b"1".as_slice()).expect("appended");
            } else {
                builder.append(&header, b"1".as_slice()).expect("appended");
            }
            unpacked(&builder.into_inner().expect("built").finish().expect("finished"))
        };
        assert_eq!(named(b"run/a"), Ok("run".to_owned()));
        assert_eq!(named(format!("run/{}", "a".repeat(200)).as_bytes()), Ok("run".to_owned()));
        for (name, expected) in [
            (b"run/\xff\xfe".to_vec(), "not UTF-8"),
            (b"run/a\x1b[2Jb".to_vec(), "not a file below one folder: \"run/a\\u{1b}[2Jb\""),
            (b"run/a\nb".to_vec(), "\"run/a\\nb\""),
            (format!("run/{}", "a".repeat(300)).into_bytes(), "not a file below one folder"),
            (format!("run/{}", "a/".repeat(3000) + "a").into_bytes(), "not a file below one folder"),
        ] {
            let why = named(&name).expect_err(expected);
            assert!(why.contains(expected) && !why.contains('\u{1b}'), "{why}, not: {expected}");
        }
    }

    #[test]
    fn a_cut_or_damaged_archive_is_refused_wherever_it_is_cut() {
        let noise: Vec<u8> = (0..5000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let whole =
            archive(&[("run/plan.json", EntryType::Regular, b"{}"), ("run/a", EntryType::Regular, &noise)]);
        assert!(unpacked(&whole).is_ok());
        for at in [0, 5, 20, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
            assert!(unpacked(&whole[..at]).is_err(), "cut at {at} of {}", whole.len());
        }
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        assert!(unpacked(&damaged).is_err());
        assert!(unpacked(b"no archive at all").expect_err("no gzip").contains("not a bundle"));
    }

    #[test]
    fn an_archive_that_would_fill_the_disk_is_refused_by_what_it_declares() {
        let mut header = Header::new_gnu();
        header.set_path("run/a").expect("a path");
        header.set_size(1 << 40);
        header.set_cksum();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(header.as_bytes()).expect("written");
        let why = unpacked(&encoder.finish().expect("finished")).expect_err("too large");
        assert!(why.contains("would unpack to more than"), "{why}");
    }
}
