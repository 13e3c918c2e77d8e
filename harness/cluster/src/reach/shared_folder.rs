//! The shared folder of an inventory, where it lies on this machine: scripts that run as the user are put there, so
//! no other user may be able to replace them. `node_folder.rs` has it where nodes see it.

use nix::unistd::geteuid;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use store::trust::{why_folder_replaceable, why_replaceable};

/// Makes the folder of a new run in the shared folder. Whoever made one of that name before keeps it.
pub fn make_run(shared: &str, run: &str) -> Result<(), String> {
    let failed = |what: &str, error: io::Error| format!("cannot create {what}: {error}");
    let mut private = DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(shared).map_err(|error| failed(&format!("`paths.shared`: `{shared}`"), error))?;
    check(shared)?;
    let run = Path::new(shared).join(run);
    let made = private.recursive(false).create(&run);
    made.map_err(|error| failed(&format!("the run's folder `{}`", run.display()), error))
}

/// The folder of a run that goes on.
pub fn check_run(shared: &str, run: &str) -> Result<(), String> {
    check(shared)?;
    let run = Path::new(shared).join(run);
    match fs::symlink_metadata(&run) {
        Ok(facts) if facts.is_symlink() => {
            Err(format!("the run's folder `{}` is a symbolic link", run.display()))
        }
        Ok(facts) => distrusted(&run, &facts).map_or(Ok(()), Err),
        // Nothing was launched yet.
        Err(_) => Ok(()),
    }
}

/// Only the user and root can rename or replace the folder or one above it. In a sticky folder only owners rename.
fn check(shared: &str) -> Result<(), String> {
    match why_folder_replaceable(Path::new(shared)) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(format!("`paths.shared` is not safe: `{shared}`: {why}")),
        Err(error) => Err(format!("cannot read `paths.shared`: `{shared}`: {error}")),
    }
}

fn distrusted(folder: &Path, facts: &Metadata) -> Option<String> {
    why_replaceable(&folder.display().to_string(), facts.uid(), facts.mode(), geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn a_shared_folder_in_which_others_can_replace_files_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let shared = path("above/shared");
        let set = |name: &str, mode: u32| {
            fs::set_permissions(path(name), Permissions::from_mode(mode)).expect("set");
        };
        assert_eq!(make_run(&shared, "run1"), Ok(()));
        let mode = fs::metadata(path("above/shared/run1")).expect("made").mode() & 0o777;
        assert_eq!(mode, 0o700);
        let again = make_run(&shared, "run1").expect_err("it is there");
        assert!(again.contains("run1") && again.contains("exists"), "{again}");
        for open in ["above", "above/shared"] {
            for (mode, safe) in [(0o777, false), (0o775, false), (0o1777, true), (0o755, true)] {
                set(open, mode);
                let result = check_run(&shared, "run1");
                assert_eq!(result.is_ok(), safe, "{mode:o} {open}: {result:?}");
                assert!(result.is_ok() || result.expect_err("refused").contains("chmod go-w"));
            }
        }
        symlink(path("above/shared/run1"), path("above/shared/run2")).expect("linked");
        assert!(check_run(&shared, "run2").is_err_and(|why| why.contains("link")));
        assert!(make_run(&shared, "run2").is_err(), "what is there is never taken");
        set("above/shared/run1", 0o777);
        assert!(check_run(&shared, "run1").is_err());
        set("above/shared/run1", 0o700);
        assert_eq!(check_run(&shared, "never-launched"), Ok(()));
        // Only root can give a folder away.
        if chown(path("above"), Some(65534), None).is_ok() {
            let why = check_run(&shared, "run1").expect_err("another user's");
            assert!(why.contains("belongs to user 65534"), "{why}");
        }
    }

    #[test]
    fn messages() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir(path("shared")).expect("made");
        fs::create_dir(path("open")).expect("made");
        fs::set_permissions(path("open"), Permissions::from_mode(0o777)).expect("set");
        fs::write(path("file"), "").expect("written");
        symlink(path("open"), path("shared/link")).expect("linked");
        let all = [
            make_run(&path("file/below"), "run1"),
            make_run(&path("open"), "run1"),
            make_run(&path("shared"), "link"),
            check_run(&path("absent"), "run1"),
            check_run(&path("shared"), "link"),
        ];
        let text = all.map(|result| format!("{result:?}")).join("\n");
        insta::assert_snapshot!(text.replace(&folder.path().display().to_string(), "/t"));
    }
}
