//! Which program nodes run: this very one. Another version may count otherwise, so that it is refused, here and there.

use super::order::Program;
use base::digest::sha256_of_file;
use config::inventory::Paths;
use std::path::{Path, PathBuf};

/// This program.
pub(super) fn own() -> Result<(PathBuf, Program), String> {
    let path = std::env::current_exe()
        .map_err(|error| format!("cannot determine the path of this program: {error}"))?;
    let sha256 = sha256_of_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((path, Program { version: env!("CARGO_PKG_VERSION").to_owned(), sha256 }))
}

/// Where nodes find it: where the inventory says, or where it lies, if that is in the folder that all nodes see.
pub(super) fn on_nodes(paths: &Paths, own: &(PathBuf, Program), inventory: &str) -> Result<String, String> {
    let (here, program) = own;
    let to_do = |there: &str| format!("copy this program: `cp {} {there}`", here.display());
    let Some(there) = &paths.harness else {
        let shared = Path::new(&paths.shared);
        let shared = shared.canonicalize().unwrap_or_else(|_| shared.to_owned());
        if !here.starts_with(&shared) {
            let there = format!("{}/harness", paths.shared);
            return Err(format!(
                "nodes may not see this program, which is outside of `paths.shared`: {}; {}, and set \
                 `paths.harness = \"{there}\"` in {inventory}",
                here.display(),
                to_do(&there)
            ));
        }
        return here
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| "the path of this program is not UTF-8".to_owned());
    };
    match sha256_of_file(Path::new(there)) {
        Ok(sha256) if sha256 == program.sha256 => Ok(there.clone()),
        Ok(_) => Err(format!(
            "`paths.harness` of {inventory} is another program, not this one: {there}; {}",
            to_do(there)
        )),
        Err(error) => Err(format!("`paths.harness` of {inventory}: {there}: {error}; {}", to_do(there))),
    }
}

/// Puts this program where nodes find it. What lies there then is this one to the last byte.
pub(super) fn put(own: &(PathBuf, Program), there: &Path) -> Result<(), String> {
    let (here, program) = own;
    let failed = |why: String| {
        format!(
            "cannot put this program where nodes see it: {} to {}: {why}",
            here.display(),
            there.display()
        )
    };
    std::fs::copy(here, there).map_err(|error| failed(error.to_string()))?;
    match sha256_of_file(there) {
        Ok(sha256) if sha256 == program.sha256 => Ok(()),
        Ok(_) => {
            Err(failed("the copy differs; the program was replaced meanwhile, so run this again".to_owned()))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Said by a task, of the program that it is.
pub(super) fn check(ordered: &Program) -> Result<(), String> {
    let (path, program) = own()?;
    if program == *ordered {
        return Ok(());
    }
    Err(format!(
        "this node has another harness program: {}: version {}, sha256 {}; expected version {}, sha256 {}",
        path.display(),
        program.version,
        program.sha256,
        ordered.version,
        ordered.sha256
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(shared: &Path, harness: Option<&Path>) -> Paths {
        let text = |path: &Path| path.display().to_string();
        Paths {
            shared: text(shared),
            nccl_tests: String::new(),
            mpirun: None,
            nccl_inspector: None,
            nsys: None,
            slurm: None,
            harness: harness.map(text),
            counters: String::new(),
            samples: config::inventory::SamplePaths::default(),
        }
    }

    #[test]
    fn the_program_of_the_nodes_is_this_one_or_it_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let (same, other) = (folder.path().join("same"), folder.path().join("other"));
        std::fs::write(&same, "program").expect("written");
        std::fs::write(&other, "another").expect("written");
        let sha256 = sha256_of_file(&same).expect("read");
        let own = (same.clone(), Program { version: "1".to_owned(), sha256 });
        let on = |paths: &Paths| on_nodes(paths, &own, "`live`");
        assert_eq!(
            on(&paths(folder.path(), None)),
            Ok(same.display().to_string()),
            "it lies in the shared folder"
        );
        assert_eq!(on(&paths(Path::new("/fsx"), Some(&same))), Ok(same.display().to_string()));
        let why = on(&paths(Path::new("/fsx"), None)).expect_err("outside");
        assert!(why.contains("cp ") && why.contains("paths.harness = \"/fsx/harness\""), "{why}");
        let why = on(&paths(Path::new("/fsx"), Some(&other))).expect_err("another");
        assert!(why.contains("another program") && why.contains("cp "), "{why}");
        assert!(on(&paths(Path::new("/fsx"), Some(&folder.path().join("gone")))).is_err());
    }

    #[test]
    fn a_copy_that_is_not_this_program_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        std::fs::write(&here, "program").expect("written");
        let sha256 = sha256_of_file(&here).expect("read");
        let own = (here.clone(), Program { version: "1".to_owned(), sha256 });
        assert_eq!(put(&own, &there), Ok(()));
        std::fs::write(&here, "another").expect("written");
        assert!(put(&own, &there).is_err_and(|why| why.contains("the copy differs")));
        assert!(put(&own, &folder.path().join("no/folder")).is_err_and(|why| why.contains("no/folder")));
    }

    #[test]
    fn a_task_says_which_program_it_is_where_another_is_wanted() {
        let (_, program) = own().expect("read");
        assert_eq!(check(&program), Ok(()));
        let newer = Program { version: "99".to_owned(), ..program };
        assert!(check(&newer).is_err_and(|why| why.contains("expected version 99")));
    }
}
