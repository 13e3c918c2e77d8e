//! The folder of ssh's control sockets: for this user alone, and locked as long as its harness lives. An unlocked
//! folder was left by a harness that was killed.

use super::master;
use futures::stream::{self, StreamExt};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::trust::check_temporary;
use tempfile::TempDir;
use tokio::time::timeout;

const PREFIX: &str = "harness-ssh-";
const LOCK: &str = "lock";
/// A socket's path has a little over 100 bytes; the folder's name, the socket's and what ssh adds to it while it makes
/// one need half of them.
const LONGEST_PARENT: usize = 50;
/// How often a folder is made that another harness took for an abandoned one before it was locked.
const TRIES: usize = 5;
/// How long all abandoned sockets together may take to end their connections. One that does not answer ends when idle.
const LIMIT: Duration = Duration::from_secs(5);
const AT_ONCE: usize = 64;

pub(super) struct SocketFolder {
    folder: TempDir,
    parent: PathBuf,
    /// Let go after the folder is gone.
    _lock: Flock<File>,
}

impl SocketFolder {
    pub(super) fn new() -> io::Result<SocketFolder> {
        let mut last = io::Error::other("no folder for control sockets");
        for parent in parents() {
            match SocketFolder::new_in(&parent) {
                Ok(folder) => return Ok(folder),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn new_in(parent: &Path) -> io::Result<SocketFolder> {
        check_temporary(parent)?;
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new()
                .prefix(&format!("{PREFIX}{}-{}-", std::process::id(), boot()))
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(parent)?;
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600).open(folder.path().join(LOCK))?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) if lock.metadata()?.nlink() == 1 => {
                    return Ok(SocketFolder { folder, parent: parent.to_owned(), _lock: lock });
                }
                Ok(_) | Err((_, Errno::EWOULDBLOCK)) => {}
                Err((_, errno)) => return Err(errno.into()),
            }
        }
        Err(io::Error::other(format!("another harness removes each new folder in {}", parent.display())))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Ends what harnesses that were killed have left of their connections. They end by themselves when they are idle,
    /// but their folders do not.
    pub(super) async fn end_abandoned(&self) {
        end_abandoned(&self.parent).await;
    }
}

/// Where the folder may lie, the best first: only this user can write there, or, as is checked before it is made, no other
/// user can rename it.
fn parents() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| is_private(path));
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_dir());
    let private = [runtime.map(|path| path.join("harness")), home.map(|path| path.join(".cache/harness"))];
    let made = private.into_iter().flatten().filter(|path| is_short(path)).filter(|path| {
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(path);
        is_private(path)
    });
    let open = [std::env::temp_dir(), PathBuf::from("/tmp")].into_iter().filter(|path| is_short(path));
    made.chain(open).collect()
}

fn is_short(path: &Path) -> bool {
    path.as_os_str().len() <= LONGEST_PARENT
}

fn is_private(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|facts| is_own(&facts))
}

fn is_own(facts: &std::fs::Metadata) -> bool {
    facts.is_dir() && facts.uid() == geteuid().as_raw() && facts.mode() & 0o777 == 0o700
}

/// Of the machine's last start: a home may be shared, and locks of other machines need not be seen here.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

/// A folder that no harness locks; locked by us.
struct Abandoned {
    name: OsString,
    path: PathBuf,
    folder: File,
    _lock: Flock<File>,
}

async fn end_abandoned(parent: &Path) {
    let Ok(above) = File::open(parent) else { return };
    let abandoned = abandoned(parent, &above);
    let sockets = abandoned.iter().flat_map(|left| entries(&left.path, |kind| kind.is_socket()));
    let asked = sockets.map(|socket| async move { master::ask_to_end(&socket).await });
    let _ = timeout(LIMIT, stream::iter(asked).buffer_unordered(AT_ONCE).collect::<Vec<()>>()).await;
    for left in &abandoned {
        // Beneath what was opened and looked at: whatever its path means by now.
        for entry in entries(&left.path, |kind| !kind.is_dir()) {
            if let Some(name) = entry.file_name() {
                let _ = unlinkat(&left.folder, name, UnlinkatFlags::NoRemoveDir);
            }
        }
        let _ = unlinkat(&above, left.name.as_os_str(), UnlinkatFlags::RemoveDir);
    }
}

fn abandoned(parent: &Path, above: &File) -> Vec<Abandoned> {
    let of_this_boot = format!("-{}-", boot());
    let mut paths = entries(parent, |kind| kind.is_dir());
    paths.sort();
    let named = paths.into_iter().filter_map(|path| {
        let name = path.file_name()?.to_owned();
        let text = name.to_str()?;
        (text.starts_with(PREFIX) && text.contains(&of_this_boot)).then_some((name, path))
    });
    named.filter_map(|(name, path)| take(above, name, path)).collect()
}

fn take(above: &File, name: OsString, path: PathBuf) -> Option<Abandoned> {
    let never_links = OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let flags = never_links | OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let folder = File::from(openat(above, name.as_os_str(), flags, Mode::empty()).ok()?);
    if !is_own(&folder.metadata().ok()?) {
        return None;
    }
    let file = File::from(openat(&folder, LOCK, never_links | OFlag::O_RDWR, Mode::empty()).ok()?);
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?;
    Some(Abandoned { name, path, folder, _lock: lock })
}

fn entries(folder: &Path, wanted: impl Fn(&std::fs::FileType) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let wanted = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| wanted(&kind)));
    wanted.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    /// A folder as a harness that was killed leaves it.
    fn killed(parent: &Path) -> PathBuf {
        let SocketFolder { folder, .. } = SocketFolder::new_in(parent).expect("a folder");
        folder.keep()
    }

    #[test]
    fn sockets_lie_in_no_folder_that_others_can_replace() {
        let above = TempDir::new().expect("a folder");
        let parent = above.path().join("parent");
        std::fs::create_dir(&parent).expect("made");
        for open in [above.path(), &parent] {
            for (mode, safe) in [(0o777, false), (0o770, false), (0o1777, true), (0o700, true)] {
                std::fs::set_permissions(open, Permissions::from_mode(mode)).expect("set");
                assert_eq!(SocketFolder::new_in(&parent).is_ok(), safe, "{mode:o} {}", open.display());
            }
        }
    }

    #[tokio::test]
    async fn only_own_private_unlocked_folders_are_removed() {
        let parent = TempDir::new().expect("a folder");
        let path = |name: &str| parent.path().join(name);
        let alive = SocketFolder::new_in(parent.path()).expect("a folder");
        let abandoned = killed(parent.path());
        std::fs::write(abandoned.join("0.log"), "").expect("written");
        symlink(alive.path().join(LOCK), abandoned.join("link")).expect("linked");
        let open = killed(parent.path());
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).expect("opened");
        let unlocked = killed(parent.path());
        std::fs::remove_file(unlocked.join(LOCK)).expect("there");
        let of_other_boot = path(&format!("{PREFIX}1-01234567-abc"));
        std::fs::rename(killed(parent.path()), &of_other_boot).expect("renamed");
        let other = path("other");
        std::fs::rename(killed(parent.path()), &other).expect("renamed");
        let link = path(&format!("{PREFIX}1-{}-abc", boot()));
        symlink(&other, &link).expect("linked");
        alive.end_abandoned().await;
        assert!(!abandoned.exists());
        for left in [alive.path(), &open, &of_other_boot, &other] {
            assert!(left.join(LOCK).is_file(), "{}", left.display());
        }
        assert!(unlocked.is_dir() && link.is_symlink());
        let path = alive.path().to_owned();
        drop(alive);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn sockets_that_do_not_answer_are_waited_for_together() {
        let parent = TempDir::new().expect("a folder");
        let abandoned = killed(parent.path());
        let silent = |number: usize| UnixListener::bind(abandoned.join(number.to_string())).expect("bound");
        let listeners: Vec<UnixListener> = (0..4).map(silent).collect();
        let begin = tokio::time::Instant::now();
        end_abandoned(parent.path()).await;
        assert!(begin.elapsed() < LIMIT * 2, "{:?}", begin.elapsed());
        assert!(!abandoned.exists());
        drop(listeners);
    }
}
