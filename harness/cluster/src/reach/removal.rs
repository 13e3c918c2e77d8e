//! The removal of files on a host that is reached by commands: by a script that goes behind no link.

use super::{Command, Host, Reach, ReachError, left_file};
use std::time::Duration;

const REMOVE_SH: &str = include_str!("remove.sh");
/// How long the removal of some files may take.
const LIMIT: Duration = Duration::from_secs(120);
/// An argument list has its limits; a job of thousands of ranks has more files than one takes.
const AT_ONCE: usize = 500;

pub(super) async fn by_command<R: Reach + ?Sized>(
    reach: &R,
    host: &Host,
    folder: &str,
    names: &[String],
) -> Result<(), ReachError> {
    for some in names.chunks(AT_ONCE) {
        let answer = reach.exec(host, &Command::new(arguments(folder, some), LIMIT)).await?;
        if !answer.succeeded() {
            let what = format!("cannot remove files of `{folder}` on {host}");
            return Err(ReachError::Failed { what, why: answer.complaint() });
        }
    }
    Ok(())
}

fn arguments(folder: &str, names: &[String]) -> Vec<String> {
    let (above, own) = left_file::split_folder(folder);
    let words = ["sh", "-c", REMOVE_SH, "remove", folder, above, own];
    words.into_iter().map(str::to_owned).chain(names.iter().cloned()).collect()
}

/// The files that a command removes, where it is that script.
pub fn removed(argv: &[String]) -> Option<Vec<String>> {
    match argv {
        [sh, c, text, _, folder, _, _, names @ ..] if sh == "sh" && c == "-c" && text == REMOVE_SH => {
            Some(names.iter().map(|name| format!("{folder}/{name}")).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::path::Path;

    /// What the script says, run here.
    fn remove(folder: &Path, names: &[&str]) -> Result<(), String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let argv = arguments(&folder.display().to_string(), &names);
        let output = std::process::Command::new(&argv[0]).args(&argv[1..]).output().expect("sh");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    #[test]
    fn files_are_removed_in_a_folder_of_the_users_own_and_behind_no_link() {
        let there = tempfile::tempdir().expect("a folder");
        let path = |name: &str| there.path().join(name);
        let write = |name: &str| {
            fs::create_dir_all(path(name).parent().expect("a folder")).expect("made");
            fs::write(path(name), "x").expect("written");
        };
        // An administrator may link what is above.
        fs::create_dir(path("disk")).expect("made");
        symlink(path("disk"), path("fsx")).expect("linked");
        let job = path("fsx/run/case/job");
        let fill =
            || ["secrets", "-f", "a b", "x_pqtdir/t"].map(|name| write(&format!("disk/run/case/job/{name}")));
        fill();
        let all = ["secrets", "-f", "a b", "x_pqtdir/t", "absent", "absent/x"];
        assert_eq!(remove(&job, &all), Ok(()));
        for name in &all {
            assert!(!job.join(name).exists(), "{name}");
        }
        assert_eq!(remove(&path("fsx/run/case/absent"), &["x"]), Ok(()));

        for level in ["run", "run/case", "run/case/job", "run/case/job/x_pqtdir"] {
            fill();
            for name in
                ["secrets", "x_pqtdir/t", "case/job/secrets", "job/secrets", "case/job/x_pqtdir/t", "t"]
            {
                write(&format!("victim/{name}"));
            }
            write("victim/job/x_pqtdir/t");
            fs::rename(path("disk").join(level), path("away")).expect("moved");
            symlink(path("victim"), path("disk").join(level)).expect("linked");
            let name = if level.ends_with("_pqtdir") { "x_pqtdir/t" } else { "secrets" };
            let why = remove(&job, &[name]).expect_err("a link");
            assert!(why.contains("a symbolic link stands in the path"), "{level}: {why}");
            for name in ["secrets", "case/job/secrets", "job/secrets", "t"] {
                assert!(path("victim").join(name).exists(), "{level} {name}");
            }
            fs::remove_file(path("disk").join(level)).expect("a link");
            fs::rename(path("away"), path("disk").join(level)).expect("moved back");
        }
        symlink(path("victim/secrets"), job.join("link")).expect("linked");
        for (names, why) in [
            (["link", "a b"], "`link` is a symbolic link"),
            (["../job/secrets", "a b"], "is not a name"),
            (["../secrets", "a b"], "a symbolic link stands"),
            (["x_pqtdir", "a b"], "is not a regular file"),
        ] {
            write("disk/run/case/job/a b");
            write("disk/run/case/secrets");
            let said = remove(&job, &names).expect_err("refused");
            assert!(said.contains(why), "{said}");
            // The others go all the same.
            assert!(!job.join("a b").exists(), "{names:?}");
            assert!(path("disk/run/case/secrets").exists() && path("victim/secrets").exists());
        }
        // Only root can give a folder away.
        for level in ["run", "run/case", "run/case/job"] {
            if chown(path("disk").join(level), Some(65534), None).is_ok() {
                let why = remove(&job, &["secrets"]).expect_err("another user's");
                assert!(why.contains("belongs to another user"), "{level}: {why}");
                assert!(job.join("secrets").exists());
                chown(path("disk").join(level), Some(0), None).expect("given back");
            }
        }
    }
}
