//! Brings a publication here: whole or not at all, into a folder that is not there yet, and believing nothing of what
//! the store says.

use super::failure::Failure;
use super::manifest::{Claim, MOST_BYTES, Manifest, ManifestFile};
use super::object_name::{CLAIM, MANIFEST};
use super::prefix::Prefix;
use crate::bundle;
use base::digest::{Sum, sha256};
use base::text::show;
use cluster::interrupt;
use futures::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, OFlag, RenameFlags, renameat2};
use nix::sys::statvfs::statvfs;
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
    let prefix_of_part = part_prefix(target);
    sweep(&above, &prefix_of_part);
    // Removed with this value, whatever happens but a kill.
    let part =
        tempfile::Builder::new().prefix(&prefix_of_part).tempdir_in(&above).map_err(|error| at(&error))?;
    let _held = File::open(part.path()).ok().map(hold);
    let folder = part.path().join(&manifest.name);
    fs::create_dir(&folder).map_err(|error| at(&error))?;
    let files: Vec<&ManifestFile> = manifest.files.iter().collect();
    bring(prefix, &files, &folder, bar).await?;
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

/// Removes what processes that were killed left of the same target: folders of this user that no process holds. What
/// cannot be removed stays.
fn sweep(above: &Path, prefix: &str) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let flags = OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(entry.path());
        let Ok(folder) = opened else { continue };
        let is_own = folder.metadata().is_ok_and(|facts| facts.uid() == nix::unistd::geteuid().as_raw());
        if !is_own {
            continue;
        }
        if let Some(_held) = hold(folder) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
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

    #[test]
    fn only_what_no_process_holds_of_the_same_target_is_swept() {
        let above = tempfile::tempdir().expect("a folder");
        let prefix = part_prefix(Path::new("runs/one"));
        let made = |name: String| {
            let path = above.path().join(name);
            fs::create_dir_all(path.join("one/deep")).expect("made");
            path
        };
        let (left, held) = (made(format!("{prefix}aaaaaa")), made(format!("{prefix}bbbbbb")));
        let other = made(format!("{}aaaaaa", part_prefix(Path::new("runs/two"))));
        let link = above.path().join(format!("{prefix}cccccc"));
        std::os::unix::fs::symlink(&other, &link).expect("linked");
        let lock = hold(File::open(&held).expect("opened")).expect("held");
        sweep(above.path(), &prefix);
        assert!(!left.exists() && held.exists() && other.join("one").exists() && link.is_symlink());
        drop(lock);
        sweep(above.path(), &prefix);
        assert!(!held.exists() && other.join("one").exists());
    }
}
