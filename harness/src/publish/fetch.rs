//! Brings a publication here: whole or not at all, into a folder that is not there yet, and believing nothing of what
//! the store says.

use super::failure::Failure;
use super::manifest::{Claim, MOST_BYTES, Manifest, ManifestFile};
use super::object_name::{CLAIM, MANIFEST};
use super::prefix::Prefix;
use crate::bundle;
use base::digest::{Sum, sha256, sha256_of_file};
use base::text::show;
use cluster::interrupt;
use futures::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, OFlag, RenameFlags, renameat2};
use nix::sys::statvfs::statvfs;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::Part;

const AT_ONCE: usize = 8;

/// What lies there, checked.
pub(super) async fn read_manifest(prefix: &Prefix) -> Result<Manifest, Failure> {
    let url = prefix.url();
    let Some(bytes) = prefix.read(MANIFEST, MOST_BYTES).await? else {
        let claim = prefix.read(CLAIM, MOST_BYTES).await?;
        let claim = claim.and_then(|bytes| serde_json::from_slice::<Claim>(&bytes).ok());
        return Err(Failure::refused(match claim {
            Some(claim) => format!(
                "{url} is incomplete: it was begun by {}, and has no {MANIFEST} yet; nothing was fetched",
                claim.owner()
            ),
            None => format!("{url}: nothing is published there: no {MANIFEST}"),
        }));
    };
    Manifest::from_bytes(&bytes).map_err(|why| Failure::refused(format!("{url}/{MANIFEST}: {why}")))
}

/// Fetches all files into `target`, which appears when all of them are there and right.
pub(super) async fn fetch(
    prefix: &Prefix,
    manifest: &Manifest,
    target: &Path,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    let at = |error: &dyn std::fmt::Display| Failure::refused(format!("{}: {error}", target.display()));
    if target.symlink_metadata().is_ok() {
        return Err(at(&"it is there already; nothing was fetched; move it away, or name another folder"));
    }
    let above = match target.parent() {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        _ => PathBuf::from("."),
    };
    check_room(&above, manifest.bytes()).map_err(|why| at(&why))?;
    let mut part = PartFolder::begin(&above, target, manifest).map_err(|error| at(&error))?;
    let folder = part.path.join(&manifest.name);
    let files: Vec<&ManifestFile> = manifest.files.iter().collect();
    bring(prefix, &files, &folder, bar).await.map_err(|failure| match failure {
        Failure::Interrupted(why) => {
            part.is_kept = true;
            let here = manifest.files.iter().filter(|file| folder.join(&file.path).is_file()).count();
            Failure::Interrupted(format!(
                "{why}; {here} of {} files are here; go on with the same command",
                files.len()
            ))
        }
        other => other,
    })?;
    if manifest.is_run() {
        bundle::admit(&folder, &manifest.name).map_err(|error| {
            Failure::refused(format!(
                "{}: {}",
                prefix.url(),
                error.to_string().replace(&folder.display().to_string(), "")
            ))
        })?;
    }
    appear(&folder, target).map_err(|error| at(&error))
}

/// Whether so many bytes find room below a folder.
pub(super) fn check_room(above: &Path, bytes: u64) -> Result<(), String> {
    let room = statvfs(above).map_err(|error| format!("{}: {error}", above.display()))?;
    let free = room.blocks_available().saturating_mul(room.fragment_size());
    match bytes > free {
        true => Err(format!("{bytes} bytes are to be fetched, and {free} are free")),
        false => Ok(()),
    }
}

/// Fetches files into a folder of this process, each with the digest of its entry.
pub(super) async fn bring(
    prefix: &Prefix,
    files: &[&ManifestFile],
    folder: &Path,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    let mut fetching = stream::iter(files.iter().copied())
        .map(|file| fetch_file(prefix, file, folder))
        .buffer_unordered(AT_ONCE);
    let all = async {
        while let Some(bytes) = fetching.try_next().await? {
            bar.inc(bytes);
        }
        Ok(())
    };
    tokio::select! {
        done = all => done,
        code = stopped() => {
            Err(Failure::Stopped(code, "it was stopped; nothing was kept; fetch it again".to_owned()))
        }
    }
}

/// By which what a killed process left is known as that of the same target.
fn part_prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or(target.as_os_str());
    format!(".fetching-{}-", &sha256(name.as_bytes())[..16])
}

/// Held as long as the value is there, where the file system knows of such things.
fn hold(folder: File) -> Option<Flock<File>> {
    Flock::lock(folder, FlockArg::LockExclusiveNonblock).ok()
}

/// Which publication the files beside it are of.
const PUBLICATION: &str = "publication";

/// The folder in which files lie until all of them are there: removed with this value, unless it is to be gone on with.
struct PartFolder {
    path: PathBuf,
    is_kept: bool,
    _held: Option<Flock<File>>,
}

impl Drop for PartFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed is found by the next fetch.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl PartFolder {
    /// What an earlier process left of the same publication, else a new one.
    fn begin(above: &Path, target: &Path, manifest: &Manifest) -> std::io::Result<PartFolder> {
        let prefix = part_prefix(target);
        let left = left_over(above, &prefix, &manifest.token);
        if let Some(part) =
            left.filter(|part| remove_others(&part.path.join(&manifest.name), manifest).is_ok())
        {
            return Ok(part);
        }
        let path = tempfile::Builder::new().prefix(&prefix).tempdir_in(above)?.keep();
        let _held = File::open(&path).ok().and_then(hold);
        let part = PartFolder { path, is_kept: false, _held };
        fs::write(part.path.join(PUBLICATION), &manifest.token)?;
        fs::create_dir(part.path.join(&manifest.name))?;
        Ok(part)
    }
}

/// What a process left of the same target and publication. What others left of the target is removed: folders of this
/// user that no process holds. What cannot be removed stays.
fn left_over(above: &Path, prefix: &str, token: &str) -> Option<PartFolder> {
    let mut found = None;
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let flags = OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(entry.path());
        let Ok(folder) = opened else { continue };
        let is_own = folder.metadata().is_ok_and(|facts| facts.uid() == nix::unistd::geteuid().as_raw());
        let Some(held) = is_own.then(|| hold(folder)).flatten() else { continue };
        let part = PartFolder { path: entry.path(), is_kept: false, _held: Some(held) };
        if found.is_none() && is_of(&part.path.join(PUBLICATION), token) {
            found = Some(part);
        }
    }
    found
}

/// Whether a small file holds exactly this.
fn is_of(path: &Path, token: &str) -> bool {
    let is_small = |facts: fs::Metadata| facts.is_file() && facts.len() == token.len() as u64;
    path.symlink_metadata().is_ok_and(is_small) && fs::read(path).is_ok_and(|bytes| bytes == token.as_bytes())
}

/// Removes what is in the folder beside files of the manifest, such as one that was being written.
fn remove_others(folder: &Path, manifest: &Manifest) -> std::io::Result<()> {
    let is_folder = folder.symlink_metadata()?.is_dir();
    if !is_folder || !store::no_files(folder).map_err(std::io::Error::other)?.is_empty() {
        return Err(std::io::Error::other("no folder of files alone"));
    }
    let known: BTreeSet<&Path> = manifest.files.iter().map(|file| Path::new(&file.path)).collect();
    for path in store::every_file(folder).map_err(std::io::Error::other)? {
        if !known.contains(path.as_path()) {
            fs::remove_file(folder.join(&path))?;
        }
    }
    Ok(())
}

/// Ends with the exit code of the signal, when one came.
async fn stopped() -> i32 {
    loop {
        if let Some(code) = interrupt::asked() {
            return code;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn fetch_file(prefix: &Prefix, file: &ManifestFile, folder: &Path) -> Result<u64, Failure> {
    let target = folder.join(&file.path);
    let at = |error: std::io::Error| Failure::interrupted(format!("{}: {error}", target.display()));
    // An earlier process brought it: it counts where it is the same.
    let is_here = target.symlink_metadata().is_ok_and(|facts| facts.is_file() && facts.len() == file.bytes);
    if is_here && sha256_of_file(&target).is_ok_and(|digest| digest == file.sha256.to_ascii_lowercase()) {
        return Ok(file.bytes);
    }
    let mut part = Part::begin(&target).map_err(at)?;
    let mut sum = Sum::default();
    let mut give = |chunk: &[u8]| {
        sum.update(chunk);
        part.write_all(chunk)
    };
    prefix.read_by(&file.key, file.bytes, &mut give).await?;
    if sum.to_hex() != file.sha256.to_ascii_lowercase() {
        let url = prefix.url();
        return Err(Failure::refused(format!(
            "{url}/{}: its digest differs from {MANIFEST}",
            show(&file.key)
        )));
    }
    part.keep().map_err(at)?;
    Ok(file.bytes)
}

/// Gives the folder its name, where nothing has it.
fn appear(folder: &Path, target: &Path) -> Result<(), String> {
    match renameat2(AT_FDCWD, folder, AT_FDCWD, target, RenameFlags::RENAME_NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EEXIST) => Err("it appeared meanwhile; nothing was written over".to_owned()),
        // Not every file system knows the flag.
        Err(Errno::EINVAL) if target.symlink_metadata().is_err() => {
            fs::rename(folder, target).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(token: &str) -> Manifest {
        let file =
            |path: &str| ManifestFile { path: path.into(), key: path.into(), bytes: 1, sha256: sha256(b"x") };
        let files = vec![file("a"), file("deep/b")];
        Manifest { format: Default::default(), token: token.into(), name: "one".into(), files }
    }

    #[test]
    fn what_a_process_left_of_the_same_publication_is_gone_on_with_and_all_else_of_the_target_is_removed() {
        let above = tempfile::tempdir().expect("a folder");
        let target = above.path().join("one");
        let prefix = part_prefix(&target);
        let made = |name: String, token: &str| {
            let path = above.path().join(name);
            fs::create_dir_all(path.join("one/deep")).expect("made");
            fs::write(path.join(PUBLICATION), token).expect("written");
            for file in ["one/a", "one/deep/.part-1", "one/not-of-it"] {
                fs::write(path.join(file), "x").expect("written");
            }
            path
        };
        let (other, held) = (made(format!("{prefix}aaaaaa"), "t2"), made(format!("{prefix}bbbbbb"), "t1"));
        let same = made(format!("{prefix}cccccc"), "t1");
        let far = made(format!("{}aaaaaa", part_prefix(Path::new("two"))), "t1");
        let link = above.path().join(format!("{prefix}dddddd"));
        std::os::unix::fs::symlink(&far, &link).expect("linked");
        let lock = hold(File::open(&held).expect("opened")).expect("held");
        let part = PartFolder::begin(above.path(), &target, &manifest("t1")).expect("begun");
        assert_eq!(part.path, same);
        assert!(!other.exists() && held.exists() && far.join("one").exists() && link.is_symlink());
        let left = store::every_file(&same.join("one")).expect("read");
        assert_eq!(left, [PathBuf::from("a")], "only files of the manifest stay");
        // It is held, and another publication begins beside it.
        let second = PartFolder::begin(above.path(), &target, &manifest("t3")).expect("begun");
        assert!(second.path != same && second.path.join("one").is_dir());
        drop((part, second, lock));
        assert!(!same.exists());
        let part = PartFolder::begin(above.path(), &target, &manifest("t1")).expect("begun");
        assert_eq!(part.path, held, "nothing holds it any more");
    }
}
