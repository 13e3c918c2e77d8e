//! Where the state lies: in the project, and in no place that a link leads to.

use std::path::{Path, PathBuf};

/// A state is read at once; that of a node with 100 numbers takes about 10 kB.
const MOST_BYTES: u64 = 256 << 20;

/// The folder of an inventory's state; an error where it, or a file in it, is a link, or where the state is too large.
pub(super) fn folder(runs: &Path, inventory: &str) -> Result<PathBuf, String> {
    let all = runs.join("fleet");
    let folder = all.join(inventory);
    let files = ["state.json", "events.jsonl"].map(|name| folder.join(name));
    for path in [&all, &folder].into_iter().chain(&files) {
        let shown = path.display();
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{shown}: {error}")),
            Ok(found) if found.is_symlink() => {
                return Err(format!(
                    "{shown}: is a link, which is not followed; put the folder itself there"
                ));
            }
            Ok(found) if found.is_file() && path.ends_with("state.json") && found.len() > MOST_BYTES => {
                return Err(format!(
                    "{shown}: {} MiB, more than any state takes, {} MiB; to start without a past, move it away",
                    found.len() >> 20,
                    MOST_BYTES >> 20
                ));
            }
            Ok(_) => {}
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_state_behind_a_link_is_refused_and_so_is_a_huge_one() {
        let home = tempfile::tempdir().expect("a folder");
        let (runs, other) = (home.path().join("runs"), home.path().join("other"));
        fs::create_dir_all(&runs).expect("made");
        fs::create_dir_all(&other).expect("made");
        assert!(folder(&runs, "low").is_ok(), "nothing is there yet");
        symlink(&other, runs.join("fleet")).expect("made");
        assert!(folder(&runs, "low").is_err_and(|why| why.contains("is a link")));
        fs::remove_file(runs.join("fleet")).expect("removed");
        fs::create_dir(runs.join("fleet")).expect("made");
        symlink(&other, runs.join("fleet/low")).expect("made");
        assert!(folder(&runs, "low").is_err());
        fs::remove_file(runs.join("fleet/low")).expect("removed");
        fs::create_dir(runs.join("fleet/low")).expect("made");
        for name in ["state.json", "events.jsonl"] {
            let path = runs.join("fleet/low").join(name);
            symlink(other.join("x"), &path).expect("made");
            assert!(folder(&runs, "low").is_err(), "{name}");
            fs::remove_file(&path).expect("removed");
            fs::write(&path, "{}").expect("written");
            assert!(folder(&runs, "low").is_ok(), "{name}");
        }
        let state = fs::File::create(runs.join("fleet/low/state.json")).expect("made");
        state.set_len(MOST_BYTES + 1).expect("sparse");
        assert!(folder(&runs, "low").is_err_and(|why| why.contains("256 MiB")));
    }
}
