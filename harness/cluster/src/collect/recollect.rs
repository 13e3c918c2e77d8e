//! Re-collects what lies in the `raw/` of a stored run, by the code that collected it at first; and reports what has
//! changed there since.

use crate::launch::folder::Folders;
use crate::reach::sink::{Sink, pour};
use crate::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use model::artefact::{CaseJobs, Change, ChangedFile, Collected, Plan, PlannedCase};
use std::fs::File;
use std::path::Path;
use store::{Store, StoreError, is_inside, vetting};

/// Missing files are fetched from `beyond`, if it is given. `folder` is the case's folder in the stored run.
pub async fn collect_again(
    plan: &Plan,
    case: &PlannedCase,
    jobs: &CaseJobs,
    before: Option<&Collected>,
    folder: &Path,
    beyond: Option<&dyn Reach>,
    store: &Store,
) -> Result<Collected, StoreError> {
    let raw = |name: &str| format!("raw/{name}");
    let folders = case.jobs.iter().map(|job| (format!("{}/", job.folder), raw(&job.name))).collect();
    let at_home = AtHome { case: folder, folders, beyond };
    let nodes = Folders { reach: &at_home, launcher: plan.launcher, nodes: &plan.nodes };
    let mut collected = super::collect(case, jobs, nodes, before, store).await?;
    if let Some(before) = before {
        let lies_there = |path: &str| folder.join(path).is_file();
        compare(&mut collected, before, beyond.is_some(), &lies_there);
    }
    Ok(collected)
}

/// A stored run as the world: the folder of each job holds its collected files. It runs nothing.
struct AtHome<'a> {
    /// The folder of the case.
    case: &'a Path,
    /// Of each job: its folder on the nodes, and where its files lie now, by the path in the case.
    folders: Vec<(String, String)>,
    beyond: Option<&'a dyn Reach>,
}

impl Reach for AtHome<'_> {
    fn exec<'a>(&'a self, _: &'a Host, _: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async { Err(nothing_to_do()) })
    }

    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async { Err(nothing_to_do()) })
    }

    fn get<'a>(&'a self, _: &'a Host, _: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async { Err(nothing_to_do()) })
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        Box::pin(async move {
            let inside =
                |(folder, raw): &(String, String)| Some(format!("{raw}/{}", path.strip_prefix(folder)?));
            let here = self.folders.iter().find_map(inside).filter(|inside| is_inside(inside));
            // A folder in a run of another's making may be a link to files of this user.
            let here = here.and_then(|inside| vetting::file_of_case(self.case, &inside).ok());
            match (here, self.beyond) {
                (Some(here), _) if here.symlink_metadata().is_ok_and(|found| found.is_file()) => {
                    let failed = |why: std::io::Error| ReachError::Failed {
                        what: "a collected file cannot be read".to_owned(),
                        why: why.to_string(),
                    };
                    pour(&mut File::open(here).map_err(failed)?, sink, failed)
                }
                (_, Some(beyond)) => beyond.fetch(host, path, sink).await,
                (_, None) => Err(ReachError::NotFound { path: path.to_owned() }),
            }
        })
    }
}

fn nothing_to_do() -> ReachError {
    ReachError::Failed { what: "a stored run".to_owned(), why: "it runs no commands".to_owned() }
}

/// Reports differences in `changed`; and keeps the reason why a file is missing from when it was fetched.
fn compare(
    collected: &mut Collected,
    before: &Collected,
    asked_again: bool,
    lies_there: &dyn Fn(&str) -> bool,
) {
    let mut changed = Vec::new();
    let mut report = |job: &str, path: &str, how: Change| {
        changed.push(ChangedFile { job: job.to_owned(), path: path.to_owned(), how });
    };
    for file in &collected.files {
        match before.files.iter().find(|was| was.path == file.path) {
            Some(was) if was.sha256 != file.sha256 => report(&file.job, &file.path, Change::Edited),
            Some(_) => {}
            None if lies_there(&file.path) => report(&file.job, &file.path, Change::Added),
            None => {}
        }
    }
    for was in &before.files {
        if !collected.files.iter().any(|file| file.path == was.path) {
            report(&was.job, &was.path, Change::Gone);
        }
    }
    for missing in &mut collected.missing {
        let path = format!("raw/{}/{}", missing.job, missing.name);
        let was = before.missing.iter().find(|was| was.job == missing.job && was.name == missing.name);
        match was {
            Some(was) if !asked_again && !lies_there(&path) => missing.why = was.why.clone(),
            None if !lies_there(&path) && before.files.iter().any(|was| was.path == path) => {
                missing.why = "it was collected, and is missing now".to_owned();
            }
            _ => {}
        }
    }
    // Changes that were reported earlier stay, unless this comparison reports the same file.
    let of_before =
        before.changed.iter().filter(|was| !changed.iter().any(|now: &ChangedFile| now.path == was.path));
    // An edit does not make simulated output real.
    let said = before.simulated.iter().filter(|was| !collected.simulated.contains(was)).cloned();
    let said: Vec<String> = said.collect();
    collected.simulated.extend(said);
    collected.changed = of_before.cloned().chain(changed.iter().cloned()).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{CollectedFile, FileKind, MissingFile};

    fn file(name: &str, sha256: &str) -> CollectedFile {
        CollectedFile {
            job: "j".into(),
            path: format!("raw/j/{name}"),
            kind: FileKind::Stdout,
            node: None,
            part: None,
            rank: None,
            bytes: 1,
            sha256: sha256.into(),
            redacted: 0,
        }
    }

    fn missing(job: &str, name: &str, why: &str) -> MissingFile {
        MissingFile {
            job: job.into(),
            name: name.into(),
            kind: FileKind::Stdout,
            node: None,
            part: None,
            rank: None,
            why: why.into(),
            refused: false,
        }
    }

    fn collected(files: &[CollectedFile], missing: &[MissingFile]) -> Collected {
        Collected {
            format: model::artefact::Format,
            files: files.to_vec(),
            missing: missing.to_vec(),
            changed: Vec::new(),
            simulated: Vec::new(),
        }
    }

    fn changes(of: &Collected) -> Vec<(&str, Change)> {
        of.changed.iter().map(|file| (file.path.as_str(), file.how)).collect()
    }

    #[test]
    fn what_was_edited_added_or_taken_away_is_reported_and_what_is_as_it_was_is_not() {
        let before = collected(&[file("same", "1"), file("edited", "1"), file("gone", "1")], &[]);
        let mut now = collected(
            &[file("same", "1"), file("edited", "2"), file("added", "1"), file("fetched", "1")],
            &[],
        );
        compare(&mut now, &before, false, &|path| path == "raw/j/added");
        let expected =
            [("raw/j/edited", Change::Edited), ("raw/j/added", Change::Added), ("raw/j/gone", Change::Gone)];
        assert_eq!(changes(&now), expected);
    }

    #[test]
    fn what_an_earlier_look_reported_is_reported_once() {
        let mut before = collected(&[file("a", "1"), file("b", "1")], &[]);
        let change = |path: &str, how| ChangedFile { job: "j".into(), path: path.into(), how };
        before.changed = vec![change("raw/j/a", Change::Added), change("raw/j/c", Change::Gone)];
        let mut now = collected(&[file("a", "2"), file("b", "1")], &[]);
        compare(&mut now, &before, false, &|_| true);
        assert_eq!(changes(&now), [("raw/j/c", Change::Gone), ("raw/j/a", Change::Edited)]);
    }

    #[test]
    fn why_a_file_is_missing_is_said_as_it_was_known_best() {
        let before = collected(
            &[file("was-there", "1"), file("other", "1")],
            &[missing("j", "never", "node down"), missing("k", "of-another", "node down")],
        );
        let look = |name: &str, asked_again: bool, lies_there: bool| {
            let mut now = collected(&[], &[missing("j", name, "not found")]);
            compare(&mut now, &before, asked_again, &|_| lies_there);
            now.missing[0].why.clone()
        };
        assert_eq!(look("never", false, false), "node down");
        assert_eq!(look("never", true, false), "not found", "it was asked for just now");
        assert_eq!(
            look("never", false, true),
            "not found",
            "what lies there and is not taken has its own reason"
        );
        assert_eq!(look("of-another", false, false), "not found", "of another job");
        assert_eq!(look("was-there", false, false), "it was collected, and is missing now");
        assert_eq!(look("was-there", false, true), "not found");
        assert_eq!(look("unheard-of", false, false), "not found");
    }

    #[tokio::test]
    async fn only_files_that_lie_there_are_given_and_the_rest_is_asked_for_beyond() {
        let home = tempfile::tempdir().expect("a folder");
        let raw = home.path().join("raw");
        std::fs::create_dir_all(raw.join("folder")).expect("made");
        std::fs::write(raw.join("file"), "text").expect("written");
        std::os::unix::fs::symlink(raw.join("file"), raw.join("link")).expect("linked");
        std::os::unix::fs::symlink(&raw, raw.join("away")).expect("linked");
        let at = |folder: &str| vec![(folder.to_owned(), "raw".to_owned())];
        let reach = AtHome { case: home.path(), folders: at("/f/"), beyond: None };
        async fn fetched(reach: &AtHome<'_>, path: &str) -> Result<Vec<u8>, ReachError> {
            let mut bytes = Vec::new();
            reach.fetch(&Host::Here, path, &mut bytes).await.map(|_| bytes)
        }
        assert_eq!(fetched(&reach, "/f/file").await.expect("there"), b"text");
        for path in
            ["/f/nothing", "/f/folder", "/f/link", "/f/away/file", "/f/../raw/file", "/elsewhere/file"]
        {
            let error = fetched(&reach, path).await.expect_err(path);
            assert!(matches!(error, ReachError::NotFound { .. }), "{path}: {error}");
        }
        let beyond = AtHome { case: home.path(), folders: at("/elsewhere/"), beyond: None };
        let reach = AtHome { case: home.path(), folders: at("/f/"), beyond: Some(&beyond) };
        assert_eq!(fetched(&reach, "/elsewhere/file").await.expect("beyond"), b"text");
    }
}
