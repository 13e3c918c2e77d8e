//! Packs a run into one file and opens such a file on another machine, with the checks that it is a run. The same run
//! gives the same bytes. Files of any size go through in little memory.

#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod tests;

use crate::outgoing::{Outgoing, open_regular};
use base::digest::sha256_of_file;
use base::redact::Redactor;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use model::artefact::CollectedFile;
use nsys::regular_file;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use store::{self, Home, Opening, StoreError, Stored, is_inside};
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
    check_files(run, &files)?;
    let redactor = Redactor::default();
    let outgoing = Outgoing::from_files(run.folder(), &files)
        .map_err(|error| StoreError::other(run.folder(), &error))?;
    store::write_private_output_by(out, &mut |file| {
        let mut builder = Builder::new(GzEncoder::new(file, Compression::default()));
        for name in &files {
            let inside = Path::new(&run.plan.run_id).join(name);
            add(&mut builder, &redactor, &outgoing, &run.folder().join(name), name, &inside)?;
        }
        builder.into_inner()?.finish().map(|_| ())
    })?;
    Ok(files.len())
}

/// Adds one file as it leaves the site, which has no secret in it.
fn add(
    builder: &mut Builder<impl Write>,
    redactor: &Redactor,
    outgoing: &Outgoing,
    path: &Path,
    name: &Path,
    inside: &Path,
) -> io::Result<()> {
    let mut file = open_regular(path)?;
    let bytes = file.metadata()?.len();
    if let Some((line, what)) = redactor.first_in(&mut file)? {
        return Err(io::Error::other(format!(
            "no bundle was written: {}: line {line} looks like a secret, `{what}`; remove it from `raw`, replay the run with \
             `--from collect`, and bundle the new run",
            name.display()
        )));
    }
    file.rewind()?;
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    builder.append_data(&mut header, inside, outgoing.reader(name, &file)?.take(bytes))?;
    match file.stream_position()? >= bytes {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} became shorter while it was read", name.display()))),
    }
}

/// Checks that what leaves the machine with a run is the run's own: it has no links to anything, its files belong to whom
/// its folder belongs to, and one with another name elsewhere is an artefact or was collected.
pub(crate) fn check_files(run: &Stored, files: &[PathBuf]) -> Result<(), StoreError> {
    let folder = run.folder();
    let refuse = |name: &Path, why: &str| Err(StoreError::other(&folder.join(name), &why));
    if let Some(link) = store::left_out(folder)?.first() {
        return refuse(link, "a link or special file, which no run has; remove it");
    }
    let owner = |path: &Path| fs::symlink_metadata(path).map_err(|error| StoreError::other(path, &error));
    let owners = [0, nix::unistd::geteuid().as_raw(), owner(folder)?.uid()];
    let mut named: Option<BTreeSet<PathBuf>> = None;
    for name in files {
        let facts = owner(&folder.join(name))?;
        if !owners.contains(&facts.uid()) {
            return refuse(name, &format!("belongs to user {}, not to the run's", facts.uid()));
        }
        if facts.nlink() < 2 {
            continue;
        }
        if named.is_none() {
            named = Some(shared(run)?);
        }
        if !named.as_ref().is_some_and(|named| named.contains(name)) {
            return refuse(
                name,
                "has another name elsewhere (a hard link), and no artefact of the run names it; remove it",
            );
        }
    }
    Ok(())
}

/// The files that a run may share with the one that it was replayed from.
fn shared(run: &Stored) -> Result<BTreeSet<PathBuf>, StoreError> {
    let mut named = BTreeSet::from(["probe.json", "cluster.json"].map(PathBuf::from));
    for case in &run.plan.cases {
        let folder = Path::new("cases").join(&case.name);
        let collected = run.collected(&case.name)?.map(|found| found.files).unwrap_or_default();
        let kept = run.kept(&case.name)?.map(|found| found.files).unwrap_or_default();
        named.extend(collected.iter().chain(&kept).map(|file| folder.join(&file.path)));
        named.extend(CARRIED.map(|name| folder.join(name)));
    }
    Ok(named)
}

/// Artefacts of a case that a replay takes over as they are.
const CARRIED: [&str; 6] =
    ["metrics.parquet", "analysis.json", "verdict.json", "outcomes.json", "reports.json", "trace.json"];

/// Opens a bundle into `runs/`, under the run's own id; gives its folder. A run that is there already is used if it is
/// the same.
pub fn open(home: &Home, file: &Path) -> Result<PathBuf, StoreError> {
    let bad = |why: &dyn std::fmt::Display| StoreError::other(file, why);
    let runs = home.path().join("runs");
    fs::create_dir_all(&runs).map_err(|error| bad(&error))?;
    let place = Opening::begin(&runs).map_err(|error| bad(&error))?;
    let id = unpack(file, place.path()).map_err(|why| bad(&why))?;
    let opened = place.path().join(&id);
    admit(&opened, &id).map_err(|error| bad(&inside(&error, place.path())))?;
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

/// Checks that a folder from elsewhere is the run of that id and unchanged, and marks it before it appears in `runs`.
pub(crate) fn admit(opened: &Path, id: &str) -> Result<(), StoreError> {
    intact(&with_id(opened, id)?)?;
    store::mark_foreign(opened)
}

/// The same of a run without what its jobs left.
pub(crate) fn admit_results(opened: &Path, id: &str) -> Result<(), StoreError> {
    check_id(opened, id)?;
    store::mark_foreign(opened)
}

/// Checks that a folder has the plan of the run of that id.
pub(crate) fn check_id(opened: &Path, id: &str) -> Result<(), StoreError> {
    with_id(opened, id).map(drop)
}

fn with_id(opened: &Path, id: &str) -> Result<Stored, StoreError> {
    let run = Stored::open(opened)?;
    match run.plan.run_id == id {
        true => Ok(run),
        false => {
            let why = format!("its folder is `{id}`, but its plan is of run `{}`", run.plan.run_id);
            Err(StoreError::other(&opened.join("plan.json"), &why))
        }
    }
}

/// A message about a file of the archive, by its path there.
fn inside(error: &StoreError, place: &Path) -> String {
    error.to_string().replace(&format!("{}/", place.display()), "")
}

/// Checks that every collected file is unchanged.
pub(crate) fn intact(run: &Stored) -> Result<(), StoreError> {
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
    match sha256_of_file(&folder.join(&file.path)) {
        Ok(digest) if digest == file.sha256 => None,
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
    // Opened once: in a shared folder, another archive may have the name by the time that the survey is done.
    let file = regular_file::open(file).map_err(|error| error.to_string())?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let most = size.saturating_mul(MOST_GROWTH).max(ALWAYS_ALLOWED);
    let is_over = Rc::new(Cell::new(false));
    let too_large = || format!("{size} bytes would unpack to more than {most} bytes");
    let cut = |error: io::Error| match error.kind() {
        _ if is_over.get() => too_large(),
        io::ErrorKind::InvalidInput => format!("not a bundle, or a damaged one: {error}"),
        _ => format!("truncated or damaged; copy it again: {error}"),
    };
    let open = || -> Result<_, String> {
        (&file).rewind().map_err(|error| error.to_string())?;
        let inner = GzDecoder::new(BufReader::new(&file));
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
    // A run and a bundle of it are the same.
    let outgoing = |folder: &Path, files: &[PathBuf]| {
        Outgoing::from_files(folder, files).map_err(|error| StoreError::other(folder, &error))
    };
    let (left, right) = (outgoing(one, &mine)?, outgoing(other, &theirs)?);
    let differs = |name: &&PathBuf| {
        let are_same = || -> io::Result<bool> {
            let (mine, theirs) = (open_regular(&one.join(name))?, open_regular(&other.join(name))?);
            same(left.reader(name, &mine)?, right.reader(name, &theirs)?)
        };
        !are_same().unwrap_or(false)
    };
    Ok(mine.iter().find(differs).cloned())
}

/// Whether two readers give the same bytes.
fn same(mut one: impl Read, mut other: impl Read) -> io::Result<bool> {
    const CHUNK: u64 = 64 << 10;
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    loop {
        mine.clear();
        theirs.clear();
        one.by_ref().take(CHUNK).read_to_end(&mut mine)?;
        other.by_ref().take(CHUNK).read_to_end(&mut theirs)?;
        if mine != theirs || mine.is_empty() {
            return Ok(mine == theirs);
        }
    }
}
