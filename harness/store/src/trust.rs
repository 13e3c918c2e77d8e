//! Whether others can put files into a folder, or replace it: what lies in it is then not its user's.

use nix::unistd::{Gid, Group, Uid, User, geteuid};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub(crate) const STICKY: u32 = 0o1000;
const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_ALL: u32 = 0o002;
pub(crate) const WRITABLE_BY_OTHERS: u32 = WRITABLE_BY_GROUP | WRITABLE_BY_ALL;
/// Whom a server of NFS takes root for, where it squashes root.
const SQUASHED: [u32; 2] = [65534, 4_294_967_294];

/// Whether the folder belongs to this user.
pub fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir() && facts.uid() == geteuid().as_raw())
}

/// Why a file or folder must not be used without being named: it is another user's, others can write it, or any user
/// can replace a folder above it.
pub fn distrusted(path: &Path) -> Option<String> {
    let facts = match fs::metadata(path) {
        Ok(facts) => facts,
        Err(error) => return Some(format!("cannot read `{}`: {error}", path.display())),
    };
    let (owner, user) = (facts.uid(), geteuid());
    if owner != 0 && owner != user.as_raw() {
        return Some(format!("`{}` belongs to user {owner}", path.display()));
    }
    let by_group = facts.mode() & WRITABLE_BY_GROUP != 0 && !is_private(facts.gid(), user);
    if by_group && facts.mode() & WRITABLE_BY_ALL == 0 {
        let path = path.display();
        return Some(format!("group {} can write `{path}`; run `chmod g-w {path}`", facts.gid()));
    }
    open_to_all(path)
}

/// Whether other users can write a file; its folders are not looked at, nor is whoever owns it.
pub fn is_writable_by_others(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|facts| {
        facts.mode() & WRITABLE_BY_ALL != 0
            || facts.mode() & WRITABLE_BY_GROUP != 0 && !is_private(facts.gid(), geteuid())
    })
}

/// Why a file or folder that was named must not be used, whoever it belongs to: every user can write it, or replace a
/// folder above it.
pub fn open_to_all(path: &Path) -> Option<String> {
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) => return Some(format!("cannot read `{}`: {error}", path.display())),
    };
    let open = |folder: &Path, spared: &dyn Fn(&Metadata) -> bool| {
        let facts = fs::symlink_metadata(folder).ok()?;
        let is_open = facts.mode() & WRITABLE_BY_ALL != 0 && !spared(&facts);
        is_open.then(|| format!("every user can write `{0}`; run `chmod o-w {0}`", folder.display()))
    };
    // In a sticky folder only owners rename. The folder itself is not spared: files of others can be added.
    let mut above = real.ancestors().skip(1);
    open(&real, &|_| false)
        .or_else(|| above.find_map(|folder| open(folder, &|facts| facts.mode() & STICKY != 0)))
}

/// What another user has put into a folder that every user can write: a file or folder of these names, or a file in one
/// of them. Where all is this user's or root's, as in the containers of a CI server, the folder's mode does no harm.
pub fn put_by_others(folder: &Path, names: &[&str]) -> Option<String> {
    let user = geteuid().as_raw();
    let is_open = |path: &Path| fs::metadata(path).is_ok_and(|facts| facts.mode() & WRITABLE_BY_ALL != 0);
    let other = |path: &Path| {
        let owner = fs::symlink_metadata(path).ok()?.uid();
        (owner != 0 && owner != user).then(|| {
            format!("`{}` belongs to user {owner}, and every user can write its folder", path.display())
        })
    };
    names.iter().map(|name| folder.join(name)).find_map(|path| {
        let inside = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
        let own = is_open(folder).then(|| other(&path)).flatten();
        own.or_else(|| inside.filter(|_| is_open(&path)).find_map(|file| other(&file)))
    })
}

/// Why others can replace what lies in a folder of this owner and mode; `user` is who works there. In a sticky folder only
/// owners rename, so what is made there exclusively stays.
pub fn why_replaceable(folder: &str, owner: u32, mode: u32, user: u32) -> Option<String> {
    if owner != 0 && owner != user {
        let hint = match user == 0 && SQUASHED.contains(&owner) {
            true => "root is mapped to it there (root squash): work as another user",
            false => "choose a folder of your own",
        };
        return Some(format!("`{folder}` belongs to user {owner}; {hint}"));
    }
    let open = mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0;
    open.then(|| {
        format!(
            "`{folder}` has mode {:04o}, so other users can replace files in it; run `chmod go-w {folder}` or \
             `chmod +t {folder}`, or choose another folder",
            mode & 0o7777
        )
    })
}

/// The same of a folder on this machine and of all folders above it.
pub fn why_folder_replaceable(folder: &Path) -> io::Result<Option<String>> {
    let user = geteuid().as_raw();
    for folder in fs::canonicalize(folder)?.ancestors() {
        let facts = fs::symlink_metadata(folder)?;
        let why = why_replaceable(&folder.display().to_string(), facts.uid(), facts.mode(), user);
        if why.is_some() {
            return Ok(why);
        }
    }
    Ok(None)
}

/// Refuses a folder for temporary files in which others can replace what is made there.
pub fn check_temporary(folder: &Path) -> io::Result<()> {
    let shown = folder.display();
    let why = match why_folder_replaceable(folder) {
        Ok(None) => return Ok(()),
        Ok(Some(why)) => why,
        Err(error) => error.to_string(),
    };
    Err(io::Error::other(format!("the temporary folder `{shown}` (`TMPDIR`) is not safe: {why}")))
}

/// A group of this user alone, as most distributions give one to each user: its members are no others.
fn is_private(group: u32, user: Uid) -> bool {
    let (Ok(Some(user)), Ok(Some(group))) = (User::from_uid(user), Group::from_gid(Gid::from_raw(group)))
    else {
        return false;
    };
    group.gid == user.gid && group.name == user.name && group.mem.iter().all(|member| *member == user.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn a_folder_is_trusted_where_no_other_user_can_write_or_replace_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("above/inner");
        fs::create_dir_all(&inner).expect("made");
        let set =
            |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        set(&inner, 0o755);
        for (mode, safe) in [(0o755, true), (0o1777, true), (0o777, false), (0o773, false)] {
            set(&folder.path().join("above"), mode);
            assert_eq!(distrusted(&inner).is_none(), safe, "{mode:o} above");
            assert_eq!(open_to_all(&inner).is_none(), safe, "{mode:o} above");
        }
        set(&folder.path().join("above"), 0o755);
        for (mode, safe) in [(0o700, true), (0o777, false), (0o1777, false), (0o757, false)] {
            set(&inner, mode);
            let why = distrusted(&inner);
            assert_eq!(why.is_none(), safe, "{mode:o}: {why:?}");
            assert!(why.is_none_or(|why| why.contains("every user can write") && why.contains("chmod o-w")));
        }
        assert!(distrusted(&folder.path().join("absent")).is_some_and(|why| why.contains("cannot read")));
    }

    #[test]
    fn a_temporary_folder_that_others_can_replace_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("above/inner");
        fs::create_dir_all(&inner).expect("made");
        for changed in ["above", "above/inner"].map(|name| folder.path().join(name)) {
            for (mode, safe) in [(0o755, true), (0o777, false), (0o775, false), (0o1777, true), (0o700, true)]
            {
                fs::set_permissions(&changed, Permissions::from_mode(mode)).expect("set");
                let result = check_temporary(&inner);
                assert_eq!(result.is_ok(), safe, "{mode:o} {}: {result:?}", changed.display());
            }
        }
        // Only root can give a folder away.
        if chown(folder.path().join("above"), Some(54_321), None).is_ok() {
            let why = check_temporary(&inner).expect_err("another user's").to_string();
            assert!(why.contains("belongs to user 54321") && why.contains("`TMPDIR`"), "{why}");
        }
        assert!(check_temporary(&folder.path().join("absent")).is_err());
    }

    #[test]
    fn a_group_may_write_only_if_it_is_the_users_own() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o775)).expect("set");
        let user = User::from_uid(geteuid()).expect("asked").expect("this user");
        let own = is_private(user.gid.as_raw(), user.uid);
        if chown(folder.path(), None, Some(user.gid.as_raw())).is_ok() {
            assert_eq!(distrusted(folder.path()).is_none(), own);
        }
        // Only root can give a folder to a group that it is not in; a group without a name is no user's own.
        if chown(folder.path(), None, Some(54_321)).is_ok() {
            let why = distrusted(folder.path()).expect("distrusted");
            assert!(why.contains("group 54321 can write") && why.contains("chmod g-w"), "{why}");
            assert_eq!(open_to_all(folder.path()), None);
        }
        if chown(folder.path(), Some(54_321), None).is_ok() {
            let why = distrusted(folder.path()).expect("distrusted");
            assert!(why.contains("belongs to user 54321"), "{why}");
        }
    }

    #[test]
    fn what_another_user_put_into_a_folder_that_all_can_write_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let suites = folder.path().join("suites");
        fs::create_dir(&suites).expect("made");
        fs::write(suites.join("a.toml"), "").expect("written");
        let set =
            |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        let names = ["suites", "inventory"];
        set(folder.path(), 0o1777);
        assert_eq!(put_by_others(folder.path(), &names), None, "all is this user's");
        // Only root can give a file away.
        if chown(suites.join("a.toml"), Some(54_321), None).is_ok() {
            assert_eq!(
                put_by_others(folder.path(), &names),
                None,
                "a colleague's, in a folder that not all can write"
            );
            set(&suites, 0o777);
            let why = put_by_others(folder.path(), &names).expect("found");
            assert!(why.contains("a.toml` belongs to user 54321"), "{why}");
            set(&suites, 0o755);
            chown(&suites, Some(54_321), None).expect("given");
            assert!(put_by_others(folder.path(), &names).is_some_and(|why| why.contains("suites` belongs")));
            set(folder.path(), 0o755);
            assert_eq!(put_by_others(folder.path(), &names), None);
        }
    }
}
