//! A run as one file, to be opened on another machine: what goes in, and what must hold of it before it is taken for a
//! run. The same run gives the same bytes.

use crate::artefact::CollectedFile;
use crate::digest::sha256;
use crate::redact::Redactor;
use crate::store::{self, Home, StoreError, Stored, is_inside};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use tar::{Archive, Builder, EntryType, Header};

/// Logs and tables shrink to a tenth or a twentieth. What grows far beyond that was made to fill a disk.
const MOST_GROWTH: u64 = 200;
const ALWAYS_ALLOWED: u64 = 1 << 30;

/// Writes the whole run to `out`; gives the number of its files.
pub fn pack(run: &Stored, out: &Path) -> Result<usize, StoreError> {
    intact(run)?;
    let files = store::files(run.folder())?;
    let redactor = Redactor::default();
    store::write_private_by(out, &mut |file| {
        let mut builder = Builder::new(GzEncoder::new(file, Compression::default()));
        for name in &files {
            let bytes = fs::read(run.folder().join(name))?;
            if let Some((line, what)) = redactor.first(&bytes) {
                return Err(io::Error::other(format!(
                    "nothing is bundled: {}: line {line} looks like a secret, `{what}`; take it out of what lies in `raw`, accept that with \
                     `--from collect`, and bundle the run that this makes",
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
        return Err(bad(&format!(
            "its folder is called `{id}`, its plan is of the run: `{}`",
            run.plan.run_id
        )));
    }
    intact(&run).map_err(|error| bad(&inside(&error, place.path())))?;
    let target = runs.join(&id);
    if !target.exists() {
        fs::rename(&opened, &target).map_err(|error| bad(&error))?;
        return Ok(target);
    }
    match differing(&opened, &target)? {
        None => Ok(target),
        Some(name) => Err(bad(&format!(
            "a run of this id is in `runs` already and is another, move one of them away; they differ in: {}",
            name.display()
        ))),
    }
}

/// A message about a file of the archive, by its path there.
fn inside(error: &StoreError, place: &Path) -> String {
    error.to_string().replace(&format!("{}/", place.display()), "")
}

/// Every file that came home lies there as it came.
fn intact(run: &Stored) -> Result<(), StoreError> {
    for case in &run.plan.cases {
        let collected = run.collected(&case.name)?.map(|found| found.files).unwrap_or_default();
        let kept = run.kept(&case.name)?.map(|found| found.files).unwrap_or_default();
        for file in collected.iter().chain(&kept) {
            if let Some(why) = broken(file, &run.case(&case.name)) {
                let path = run.case(&case.name).join(&file.path);
                return Err(StoreError::other(
                    &path,
                    &format!("{why}; `--from collect` accepts what lies there now"),
                ));
            }
        }
    }
    Ok(())
}

fn broken(file: &CollectedFile, folder: &Path) -> Option<String> {
    if !is_inside(&file.path) {
        return Some("no file inside the case".to_owned());
    }
    match fs::read(folder.join(&file.path)) {
        Ok(bytes) if sha256(&bytes) == file.sha256 => None,
        Ok(_) => Some("its digest is not the one in `collected.json`".to_owned()),
        Err(error) => Some(format!("it stands in `collected.json`, and cannot be read: {error}")),
    }
}

/// Unpacks into `place`, and gives the one folder that all of it lies in.
fn unpack(file: &Path, place: &Path) -> Result<String, String> {
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let size = opened.metadata().map_err(|error| error.to_string())?.len();
    let most = size.saturating_mul(MOST_GROWTH).max(ALWAYS_ALLOWED);
    let cut = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput => format!("not a bundle, or a damaged one: {error}"),
        _ => format!("cut short or damaged, fetch it again: {error}"),
    };
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(opened)));
    let mut id: Option<String> = None;
    let mut unpacked = 0u64;
    for entry in archive.entries().map_err(cut)? {
        let mut entry = entry.map_err(cut)?;
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8(name).map_err(|_| "a name in it is no UTF-8".to_owned())?;
        let name = name.trim_start_matches("./");
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Directory if name.is_empty() || is_inside(name.trim_end_matches('/')) => continue,
            EntryType::Directory => return Err(format!("it leads out of its folder: {name:?}")),
            _ => return Err(format!("it holds what is neither file nor folder: {name:?}")),
        }
        let Some((top, inner)) = name.split_once('/').filter(|_| is_inside(name)) else {
            return Err(format!("no path of a file below one folder: {name:?}"));
        };
        if top.starts_with('.') || top == "latest" || !is_inside(inner) {
            return Err(format!("no name of a run: {name:?}"));
        }
        match &id {
            None => id = Some(top.to_owned()),
            Some(id) if id == top => {}
            Some(id) => return Err(format!("it holds more than one run: `{id}`, `{top}`")),
        }
        unpacked = unpacked.saturating_add(entry.header().size().map_err(cut)?);
        if unpacked > most {
            return Err(format!("{size} bytes would become more than {most}: no run is like that"));
        }
        let target = place.join(name);
        if target.exists() {
            return Err(format!("a file stands twice in it: {name:?}"));
        }
        let written = store::write_private_by(&target, &mut |file| io::copy(&mut entry, file).map(|_| ()));
        written.map_err(|error| format!("cut short or damaged, or there is no room: {error}"))?;
    }
    // The digest of the whole stands at its very end.
    let rest = io::copy(&mut archive.into_inner().take(ALWAYS_ALLOWED), &mut io::sink());
    rest.map_err(cut)?;
    id.ok_or_else(|| "there is nothing in it".to_owned())
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
        for (entries, told) in [
            (&[("../x", file, b"1".as_slice())][..], "no path of a file"),
            (&[("run/../../x", file, b"1")], "no path of a file"),
            (&[("/tmp/x", file, b"1")], "no path of a file"),
            (&[("x", file, b"1")], "no path of a file"),
            (&[("../", EntryType::Directory, b"")], "leads out"),
            (&[("run/l", EntryType::Symlink, b"")], "neither file nor folder"),
            (&[("run/l", EntryType::Link, b"")], "neither file nor folder"),
            (&[("run/l", EntryType::Char, b"")], "neither file nor folder"),
            (&[(".hidden/x", file, b"1")], "no name of a run"),
            (&[("latest/x", file, b"1")], "no name of a run"),
            (&[("a/x", file, b"1"), ("b/x", file, b"1")], "more than one run"),
            (&[("a/x", file, b"1"), ("a/x", file, b"2")], "twice"),
            (&[], "nothing in it"),
        ] {
            let why = unpacked(&archive(entries)).expect_err(told);
            assert!(why.contains(told), "{why}, not: {told}");
        }
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
        for (name, told) in [
            (b"run/\xff\xfe".to_vec(), "no UTF-8"),
            (b"run/a\x1b[2Jb".to_vec(), "no path of a file below one folder: \"run/a\\u{1b}[2Jb\""),
            (b"run/a\nb".to_vec(), "\"run/a\\nb\""),
            (format!("run/{}", "a".repeat(300)).into_bytes(), "no path of a file"),
            (format!("run/{}", "a/".repeat(3000) + "a").into_bytes(), "no path of a file"),
        ] {
            let why = named(&name).expect_err(told);
            assert!(why.contains(told) && !why.contains('\u{1b}'), "{why}, not: {told}");
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
        assert!(why.contains("would become more than"), "{why}");
    }
}
