//! The folder of a site: only files that the harness wrote into it are written over or removed, each appears whole, and
//! no link in it is followed.

use base::digest::sha256;
use base::text::show;
use model::artefact::Format;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, FileType};
use std::io;
use std::path::{Component, Path, PathBuf};
use verdict::history::past::RunKind;

/// Lists the files of the site; a folder without it is written into only where it is empty.
pub(super) const MANIFEST: &str = "site.json";
/// The folder of the pages of runs.
pub(super) const RUNS: &str = "runs";
/// A list that is larger is not one of ours.
const MOST: u64 = 64 << 20;
/// Files that a process was ended over.
const UNFINISHED: &str = ".part-";

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: Format<1>,
    /// Nothing else writes these words.
    made_by: String,
    /// Each file by its path, with what it was made from; nothing where it is made each time.
    files: BTreeMap<String, String>,
}

const MADE_BY: &str = "harness site";

pub(super) struct SiteFolder {
    path: PathBuf,
    before: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
    /// Removed at the end: whoever is refused has lost nothing.
    unfinished: Vec<PathBuf>,
}

impl SiteFolder {
    /// An empty folder, or that of a site. Neither `runs` nor `deliveries` may hold it: it would be taken for one of them.
    pub(super) fn open(path: &Path, runs: &Path, deliveries: &Path) -> Result<SiteFolder, String> {
        // Without a slash at its end, which would lead through a link.
        let path: &Path = &path.components().collect::<PathBuf>();
        let name = show(&path.display().to_string());
        let refuse = |why: &str| format!("--output: `{name}` {why}; give another folder");
        match kind(path).map_err(|error| format!("--output: `{name}`: {error}"))? {
            Some(kind) if kind.is_symlink() => return Err(refuse("is a link, which is not followed")),
            Some(kind) if !kind.is_dir() => return Err(refuse("is no folder")),
            _ => {}
        }
        // It may not be there yet: what of it is there counts.
        let above = path.ancestors().find_map(|above| {
            let place = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            Some((above, place.canonicalize().ok()?))
        });
        let Some((above, place)) = above else { return Err(refuse("leads nowhere")) };
        // Where `..` behind a folder leads is known once that folder is there.
        let rest = path.strip_prefix(above).unwrap_or(path);
        if rest.components().any(|part| part == Component::ParentDir) {
            return Err(refuse("has `..` behind a folder that does not exist"));
        }
        for (others, what) in [(runs, "runs"), (deliveries, "deliveries")] {
            if others.canonicalize().is_ok_and(|others| place.starts_with(others)) {
                return Err(refuse(&format!("lies among the {what}")));
            }
        }
        let before = manifest(path).map_err(|why| refuse(&why))?;
        let is_site = before.is_some();
        let mut folder = SiteFolder {
            path: path.to_owned(),
            before: before.unwrap_or_default(),
            files: BTreeMap::new(),
            unfinished: Vec::new(),
        };
        folder.unfinished = folder.check(is_site).map_err(|why| refuse(&why))?;
        Ok(folder)
    }

    /// Everything in the folder is of the site; gives the files that an ended process left.
    fn check(&self, is_site: bool) -> Result<Vec<PathBuf>, String> {
        let known: BTreeSet<&str> = self.before.keys().map(String::as_str).collect();
        let mut unfinished = Vec::new();
        for below in ["", RUNS] {
            let folder = self.path.join(below);
            if kind(&folder).map_err(|error| format!("{RUNS}: {error}"))?.is_none() {
                continue;
            }
            let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            for entry in entries.map_err(|error| format!("cannot be read: {error}"))? {
                let file = entry.file_name().to_string_lossy().into_owned();
                let inside = if below.is_empty() { file.clone() } else { format!("{below}/{file}") };
                let kind = entry.file_type().map_err(|error| format!("{}: {error}", show(&inside)))?;
                match () {
                    () if kind.is_dir() && inside == RUNS => {}
                    () if is_site && kind.is_file() && file.starts_with(UNFINISHED) => {
                        unfinished.push(entry.path())
                    }
                    () if kind.is_file() && (known.contains(inside.as_str()) || inside == MANIFEST) => {}
                    () => return Err(format!("holds `{}`, which is not of a site", show(&inside))),
                }
            }
        }
        Ok(unfinished)
    }

    /// Keeps a file that was made from the same and is as it was written; false where it must be made.
    pub(super) fn keep(&mut self, name: &str, made_from: &str) -> bool {
        let Some(before) = self.before.get(name).filter(|_| !made_from.is_empty()) else { return false };
        let path = self.path.join(name);
        let is_plain = kind(&path).is_ok_and(|kind| kind.is_some_and(|kind| kind.is_file()));
        let is_same = is_plain && fs::read(&path).is_ok_and(|bytes| *before == origin(made_from, &bytes));
        if is_same {
            self.files.insert(name.to_owned(), before.clone());
        }
        is_same
    }

    /// A page that is made each time.
    pub(super) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.write_from(name, bytes, "")
    }

    /// A page, and what it was made from.
    pub(super) fn write_from(&mut self, name: &str, bytes: &[u8], made_from: &str) -> Result<(), String> {
        self.files.insert(name.to_owned(), origin(made_from, bytes));
        // Listed before it is there, so that a site whose making was ended is still one. What it was made from is listed
        // once it is written.
        if self.before.insert(name.to_owned(), String::new()).is_none() {
            self.write_manifest(&self.before)?;
        }
        store::write_whole(&self.path.join(name), bytes).map_err(|error| error.to_string())
    }

    /// Removes the pages that are no longer made, and what an ended process left.
    pub(super) fn close(self) -> Result<(), String> {
        let old = self.before.keys().filter(|name| !self.files.contains_key(*name));
        for path in old.map(|name| self.path.join(name)).chain(self.unfinished.iter().cloned()) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(format!("{}: {error}", show(&path.display().to_string())));
                }
                _ => {}
            }
        }
        self.write_manifest(&self.files)
    }

    fn write_manifest(&self, files: &BTreeMap<String, String>) -> Result<(), String> {
        let manifest = Manifest { format: Format, made_by: MADE_BY.to_owned(), files: files.clone() };
        let mut text = serde_json::to_vec_pretty(&manifest).map_err(|error| error.to_string())?;
        text.push(b'\n');
        store::write_whole(&self.path.join(MANIFEST), &text).map_err(|error| error.to_string())
    }
}

/// What a file was made from, with its own digest: a page that was cut is made again.
fn origin(made_from: &str, bytes: &[u8]) -> String {
    match made_from {
        "" => String::new(),
        _ => format!("{made_from} {}", sha256(bytes)),
    }
}

/// The files of the site that is there; nothing where there is none.
fn manifest(folder: &Path) -> Result<Option<BTreeMap<String, String>>, String> {
    let path = folder.join(MANIFEST);
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("has a {MANIFEST} that cannot be read: {error}")),
        Ok(facts) if !facts.is_file() || facts.len() > MOST => {
            return Err(format!("has a {MANIFEST} that is not of a site"));
        }
        Ok(_) => {}
    }
    let read: Manifest =
        store::read_json(&path).map_err(|_| format!("has a {MANIFEST} that is not of a site"))?;
    match read.made_by == MADE_BY && read.files.keys().all(|name| is_page(name)) {
        true => Ok(Some(read.files)),
        false => Err(format!("has a {MANIFEST} that is not of a site")),
    }
}

/// Whether a site can have a page of this name: no other file is written over or removed, whatever the list says.
fn is_page(name: &str) -> bool {
    let is_html = |name: &str| name.ends_with(".html") && !name.contains('/') && store::is_inside(name);
    match name.strip_prefix(RUNS).and_then(|rest| rest.strip_prefix('/')) {
        Some(of_run) => is_html(of_run),
        None => {
            name == "index.html"
                || RunKind::ALL.iter().any(|kind| name.strip_suffix(".html") == Some(kind.name()))
        }
    }
}

fn kind(path: &Path) -> io::Result<Option<FileType>> {
    match fs::symlink_metadata(path) {
        Ok(facts) => Ok(Some(facts.file_type())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn open(path: &Path) -> Result<SiteFolder, String> {
        SiteFolder::open(path, Path::new("/nonexistent"), Path::new("/nonexistent"))
    }

    #[test]
    fn a_site_is_brought_up_to_date_and_its_old_pages_go() {
        let place = tempfile::tempdir().expect("a folder");
        let site = place.path().join("deep/site");
        let mut folder = open(&site).expect("new");
        folder.write("index.html", b"one").expect("written");
        folder.write_from("runs/a.html", b"a", "digest").expect("written");
        folder.close().expect("closed");
        fs::write(site.join("runs/.part-x"), "ended").expect("written");
        let mut folder = open(&site).expect("ours");
        assert!(!folder.keep("runs/a.html", "other") && !folder.keep("index.html", ""), "made each time");
        assert!(folder.keep("runs/a.html", "digest"));
        fs::write(site.join("runs/a.html"), "").expect("cut");
        assert!(
            !open(&site).expect("ours").keep("runs/a.html", "digest"),
            "a page that was cut is made again"
        );
        let mut folder = open(&site).expect("ours");
        assert!(site.join("runs/.part-x").exists(), "nothing is removed before all is accepted");
        folder.write("index.html", b"two").expect("written");
        folder.write_from("runs/b.html", b"b", "other").expect("written");
        // Ended before it was closed, it is still a site.
        drop(folder);
        let mut folder = open(&site).expect("ours");
        assert!(!folder.keep("runs/b.html", "other"), "it may not have been written to its end");
        folder.write_from("runs/b.html", b"b", "other").expect("written");
        folder.close().expect("closed");
        let left: Vec<String> =
            store::files(&site).expect("read").iter().map(|file| file.display().to_string()).collect();
        assert_eq!(left, ["runs/b.html", "site.json"]);
    }

    #[test]
    fn a_folder_that_holds_anything_else_is_refused_and_nothing_of_it_is_touched() {
        let place = tempfile::tempdir().expect("a folder");
        let why = |path: &Path| open(path).err().unwrap_or_default();
        let make = |name: &str| {
            let site = place.path().join(name);
            let mut folder = open(&site).expect("new");
            folder.write("runs/a.html", b"a").expect("written");
            folder.close().expect("closed");
            site
        };
        for file in ["notes.txt", "index.html", "runs/other.html"] {
            let site = make(&file.replace('/', "-"));
            fs::write(site.join(file), "mine").expect("written");
            assert!(
                why(&site).contains(&format!("holds `{file}`, which is not of a site")),
                "{}",
                why(&site)
            );
            assert_eq!(fs::read_to_string(site.join(file)).expect("there"), "mine");
        }
        let linked = make("linked");
        fs::remove_file(linked.join("runs/a.html")).expect("removed");
        symlink("/etc/passwd", linked.join("runs/a.html")).expect("linked");
        assert!(why(&linked).contains("holds `runs/a.html`"), "{}", why(&linked));
        let below = place.path().join("below");
        fs::create_dir(&below).expect("made");
        symlink(&linked, below.join(RUNS)).expect("linked");
        assert!(why(&below).contains("holds `runs`"), "{}", why(&below));
        symlink(&linked, place.path().join("link")).expect("linked");
        assert!(why(&place.path().join("link")).contains("is a link"));
        let slash = place.path().join("link/");
        assert!(why(&slash).contains("is a link") && why(&slash.join(".")).contains("is a link"));
        let notes = place.path().join("notes");
        fs::create_dir(&notes).expect("made");
        fs::write(notes.join(".part-notes"), "precious").expect("written");
        assert!(why(&notes).contains("holds `.part-notes`"), "{}", why(&notes));
        assert_eq!(fs::read_to_string(notes.join(".part-notes")).expect("there"), "precious");
        fs::write(place.path().join("file"), "").expect("written");
        assert!(why(&place.path().join("file")).contains("is no folder"));
        for text in ["{}", "{\"format\": 1, \"made_by\": \"x\", \"files\": {}}", "["] {
            let foreign = make("foreign");
            fs::write(foreign.join(MANIFEST), text).expect("written");
            assert!(why(&foreign).contains("a site.json that is not of a site"), "{}", why(&foreign));
            fs::remove_dir_all(&foreign).expect("removed");
        }
        // A list does not lead out of the folder, nor to files that a site never has.
        let hostile = make("hostile");
        for name in ["../x.html", "/etc/x.html", "runs/../../x.html", "runs/a/b.html", "notes.txt", "runs/x"]
        {
            let text =
                format!("{{\"format\": 1, \"made_by\": \"{MADE_BY}\", \"files\": {{\"{name}\": \"\"}}}}");
            fs::write(hostile.join(MANIFEST), text).expect("written");
            assert!(why(&hostile).contains("not of a site"), "{name}: {}", why(&hostile));
        }
        let runs = place.path().join("all");
        fs::create_dir(&runs).expect("made");
        let other = Path::new("/nonexistent");
        let among = |path: &Path| SiteFolder::open(path, &runs, other).err().unwrap_or_default();
        assert!(among(&runs.join("site")).contains("lies among the runs"), "{}", among(&runs.join("site")));
        let around = place.path().join("new/../all/site");
        assert!(
            among(&around).contains("has `..` behind a folder that does not exist"),
            "{}",
            among(&around)
        );
        let certified = SiteFolder::open(&runs.join("site"), other, &runs).err().unwrap_or_default();
        assert!(certified.contains("lies among the deliveries"), "{certified}");
    }
}
