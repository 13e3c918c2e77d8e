//! Which stored run is meant by a word that a person typed. What lies in it is read elsewhere (`stored.rs`).

use super::Home;
use base::suggest;
use std::fs;
use std::path::{Path, PathBuf};

/// A run that is there.
#[derive(Debug, PartialEq, Eq)]
pub enum Named {
    /// It has a `plan.json`.
    Folder(PathBuf),
    /// A bundle, to be opened first.
    Archive(PathBuf),
}

impl Home {
    /// `latest`, a run's id or the beginning of one, or the path of a run's folder or bundle.
    pub fn find_run(&self, word: &str) -> Result<Named, String> {
        let runs = self.path().join("runs");
        let path = Path::new(word);
        if !word.contains('/') && word != "." && word != ".." {
            if word == "latest" {
                return latest(&runs).map_err(|why| why + &self.run_of_delivery(word));
            }
            if runs.join(word).join("plan.json").is_file() {
                return Ok(Named::Folder(runs.join(word)));
            }
            if !path.exists() {
                return by_beginning(&runs, word).map_err(|why| why + &self.run_of_delivery(word));
            }
        }
        if path.is_file() {
            return Ok(Named::Archive(path.to_owned()));
        }
        let folder = path.canonicalize().map_err(|error| format!("no run at `{word}`: {error}"))?;
        match folder.join("plan.json").is_file() {
            true => Ok(Named::Folder(folder)),
            false => Err(format!("`{word}` is not the folder of a run: no `plan.json`")),
        }
    }
}

impl Home {
    /// The folder of every run that is here, the oldest first.
    pub fn runs(&self) -> Vec<PathBuf> {
        runs_in(&self.path().join("runs"))
    }

    /// How the newest run of a delivery with such an id is named: those lie apart, and are found by their path alone.
    fn run_of_delivery(&self, word: &str) -> String {
        let entries = fs::read_dir(self.path().join("deliveries")).into_iter().flatten().flatten();
        let runs = entries.filter(|entry| !entry.path().is_symlink()).flat_map(|entry| {
            let is_meant = |id: &String| word == "latest" || !word.is_empty() && id.starts_with(word);
            let folder = entry.path().join("runs");
            ids(&folder).into_iter().filter(is_meant).map(move |id| (id.clone(), folder.join(id)))
        });
        let Some((_, newest)) = runs.max() else { return String::new() };
        format!("; of a delivery: `{}`", self.display_path(&newest).escape_debug())
    }
}

/// The folder of every run in a folder of runs, the oldest first.
pub fn runs_in(runs: &Path) -> Vec<PathBuf> {
    ids(runs).iter().map(|id| runs.join(id)).collect()
}

fn latest(runs: &Path) -> Result<Named, String> {
    let none = || "no runs here yet; make one with `harness run --suite NAME`".to_owned();
    let target = fs::read_link(runs.join("latest")).map_err(|_| none())?;
    let folder = runs.join(&target);
    match folder.join("plan.json").is_file() {
        true => Ok(Named::Folder(folder)),
        false => Err(format!(
            "`runs/latest` points to `{}`, which is not a run; give an id",
            target.display().to_string().escape_debug()
        )),
    }
}

fn by_beginning(runs: &Path, word: &str) -> Result<Named, String> {
    let ids = ids(runs);
    let found: Vec<&String> = ids.iter().filter(|id| !word.is_empty() && id.starts_with(word)).collect();
    let shown = |ids: &[&String]| {
        let newest = ids.iter().rev().take(4).map(|id| format!("`{id}`")).collect::<Vec<_>>();
        newest.join(", ")
    };
    match found.as_slice() {
        [one] => Ok(Named::Folder(runs.join(one))),
        [] if ids.is_empty() => Err(format!("no runs in `runs` yet, looked for `{word}`")),
        [] => {
            let near = suggest::nearest(word, ids.iter().map(String::as_str));
            let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let newest = shown(&ids.iter().collect::<Vec<_>>());
            Err(format!("no run `{word}` in `runs`; {hint}the newest are {newest}"))
        }
        many => Err(format!("`{word}` matches {} runs: {}", many.len(), shown(many))),
    }
}

fn ids(runs: &Path) -> Vec<String> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let mut ids: Vec<String> = entries
        .filter(|entry| !entry.path().is_symlink() && entry.path().join("plan.json").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    ids.sort();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_its_id_by_the_beginning_of_it_as_the_latest_and_by_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["suites", "inventory", "elsewhere"] {
            fs::create_dir_all(folder.path().join(name)).expect("made");
        }
        let home = Home::find(folder.path()).expect("home");
        assert!(home.find_run("latest").expect_err("none").contains("no runs here yet"));
        assert!(home.find_run("2026").expect_err("none").contains("no runs in `runs` yet"));
        let apart = "deliveries/d/runs/20260101T000000Z-accept-0009";
        fs::create_dir_all(folder.path().join(apart)).expect("made");
        fs::write(folder.path().join(apart).join("plan.json"), "{}").expect("written");
        for word in ["latest", "20260101T000000Z-accept"] {
            let why = home.find_run(word).expect_err("it lies apart");
            assert!(why.ends_with(&format!("; of a delivery: `{apart}`")), "{why}");
        }
        assert!(!home.find_run("2025").expect_err("none").contains("delivery"));
        for id in ["20260101T000000Z-a-0001", "20260101T000000Z-a-0002", "20260202T000000Z-b-0003"] {
            let run = folder.path().join("runs").join(id);
            fs::create_dir_all(&run).expect("made");
            fs::write(run.join("plan.json"), "{}").expect("written");
        }
        let named = |word: &str| match home.find_run(word) {
            Ok(Named::Folder(path)) => path.file_name().expect("a name").to_string_lossy().into_owned(),
            Ok(Named::Archive(path)) => format!("archive {}", path.display()),
            Err(why) => why,
        };
        assert_eq!(named("202602"), "20260202T000000Z-b-0003");
        assert_eq!(named("20260101T000000Z-a-0002"), "20260101T000000Z-a-0002");
        assert!(
            named("20260101").starts_with("`20260101` matches 2 runs: `20260101T000000Z-a-0002`"),
            "{}",
            named("2026")
        );
        assert!(
            named("20260303").contains("the newest are `20260202T000000Z-b-0003`"),
            "{}",
            named("20260303")
        );
        assert!(named("").contains("no run `` in `runs`"), "{}", named(""));
        std::os::unix::fs::symlink("20260101T000000Z-a-0001", folder.path().join("runs/latest"))
            .expect("linked");
        assert_eq!(named("latest"), "20260101T000000Z-a-0001");
        fs::remove_dir_all(folder.path().join("runs/20260101T000000Z-a-0001")).expect("removed");
        assert!(named("latest").contains("which is not a run"), "{}", named("latest"));
        let path = |name: &str| folder.path().join(name).display().to_string();
        assert_eq!(named(&path("runs/20260202T000000Z-b-0003")), "20260202T000000Z-b-0003");
        assert!(named(&path("elsewhere")).contains("no `plan.json`"));
        assert!(named(&path("nowhere")).contains("no run at"));
        fs::write(folder.path().join("x.tar.gz"), "").expect("written");
        assert_eq!(named(&path("x.tar.gz")), format!("archive {}", path("x.tar.gz")));
    }
}
