//! Leftovers of analyses that tasks made for a run: arrays of Slurm, or pods, and their folders, found by the names and
//! labels that carry the run's id, where they are the user's own. Only then are tasks ended, and folders removed once
//! nothing writes into them any more.

use super::pods::{leftover, what_may_run};
use super::{Cleaned, Leftover, LeftoverKind, QUEUE, SHARED, queue};
use crate::launch::QUERY_LIMIT;
use crate::reach::pods::AnalysisPods;
use crate::reach::{Answer, Command, Host, Reach};
use model::analysis_names;
use std::collections::{BTreeMap, BTreeSet};

/// What stands for the job of such things.
const ANALYSIS: &str = "analysis";
const API_SERVER: &str = "API server";

/// Looks for leftovers of a run's analyses in this folder, and ends them, if that is wanted.
pub async fn clean(run: &str, shared: &str, reach: &dyn Reach, ends: bool) -> Cleaned {
    let mut cleaned = Cleaned::default();
    cleaned.found = look(run, shared, reach, &mut cleaned.unasked).await;
    cleaned.left = cleaned.found.clone();
    if ends && !cleaned.found.is_empty() {
        let of = |what: LeftoverKind| cleaned.found.iter().filter(move |left| left.what == what);
        let arrays: Vec<String> = of(LeftoverKind::Queued).map(|left| left.which.clone()).collect();
        queue::end(arrays, &queue::OWN_ARRAYS, reach).await;
        // Tasks that are there, or may be there, write into their folder.
        let writes = !matches!(in_queue(run, shared, reach).await, Ok(queued) if queued.is_empty());
        remove(of(LeftoverKind::Folder).filter(|_| !writes), shared, reach).await;
        cleaned.left = look(run, shared, reach, &mut cleaned.unasked).await;
    }
    cleaned
}

/// The same where its tasks are pods: these are deleted, and then their folders.
pub async fn clean_pods(
    run: &str,
    shared: &str,
    pods: &AnalysisPods,
    reach: &dyn Reach,
    ends: bool,
) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let found = match pods.left().await {
        Ok(found) => found,
        Err(error) => {
            cleaned.unasked.insert(API_SERVER.to_owned(), error.to_string());
            return cleaned;
        }
    };
    cleaned.found.extend(found.iter().map(|pod| Leftover { job: ANALYSIS.to_owned(), ..leftover(pod) }));
    cleaned.found.extend(own_folders(run, shared, reach, &mut cleaned.unasked).await);
    if !ends || cleaned.found.is_empty() {
        cleaned.left = cleaned.found.clone();
        return cleaned;
    }
    cleaned.unclear.extend(found.iter().filter_map(what_may_run));
    match pods.delete(&found).await {
        // None writes into a folder any more.
        Ok(left) if left.is_empty() => {
            let folders = cleaned.found.iter().filter(|left| left.what == LeftoverKind::Folder);
            remove(folders, shared, reach).await;
        }
        Ok(left) => {
            let left = left.iter().map(|(pod, _)| Leftover { job: ANALYSIS.to_owned(), ..leftover(pod) });
            cleaned.left.extend(left);
        }
        Err(error) => {
            let found = found.iter().map(|pod| Leftover { job: ANALYSIS.to_owned(), ..leftover(pod) });
            cleaned.left.extend(found);
            cleaned.unasked.insert(API_SERVER.to_owned(), error.to_string());
        }
    }
    cleaned.left.extend(own_folders(run, shared, reach, &mut cleaned.unasked).await);
    cleaned
}

async fn remove<'a>(folders: impl Iterator<Item = &'a Leftover>, shared: &str, reach: &dyn Reach) {
    for folder in folders {
        let path = format!("{shared}/{}", folder.which);
        // Whether it worked is seen by looking again.
        let _ = reach.exec(&Host::Here, &Command::new(["rm", "-r", "-f", "--", &path], QUERY_LIMIT)).await;
    }
}

async fn look(
    run: &str,
    shared: &str,
    reach: &dyn Reach,
    unasked: &mut BTreeMap<String, String>,
) -> BTreeSet<Leftover> {
    let mut found = BTreeSet::new();
    match in_queue(run, shared, reach).await {
        Ok(ids) => found.extend(ids.into_iter().map(|id| analysis_leftover(QUEUE, LeftoverKind::Queued, id))),
        Err(why) => {
            unasked.insert(QUEUE.to_owned(), why);
        }
    }
    found.extend(own_folders(run, shared, reach, unasked).await);
    found
}

fn analysis_leftover(at: &str, what: LeftoverKind, which: String) -> Leftover {
    Leftover { at: at.to_owned(), what, which, job: ANALYSIS.to_owned() }
}

async fn own_folders(
    run: &str,
    shared: &str,
    reach: &dyn Reach,
    unasked: &mut BTreeMap<String, String>,
) -> Vec<Leftover> {
    let listed = folders(run, shared, reach).await.map_err(|why| {
        unasked.insert(format!("{SHARED} {shared}"), why);
    });
    let folders = listed.unwrap_or_default().into_iter();
    folders.map(|folder| analysis_leftover(SHARED, LeftoverKind::Folder, folder)).collect()
}

/// The ids of the run's arrays; each task of one has a line of its own in the queue.
async fn in_queue(run: &str, shared: &str, reach: &dyn Reach) -> Result<BTreeSet<String>, String> {
    let listed = queue::listed(&queue::OWN_ARRAYS, reach).await?;
    Ok(listed.into_iter().filter(|queued| is_of(run, shared, &queued.name)).map(|queued| queued.id).collect())
}

/// Whether name or script, as the queue lists them, is that of an array of the run: a submit plugin may rename it.
fn is_of(run: &str, shared: &str, listed: &str) -> bool {
    let name = listed.split('|').next().unwrap_or_default();
    let script = listed.rsplit('|').next().unwrap_or_default();
    let folder = script.strip_prefix(shared.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    let folder = folder.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    analysis_names::is_array_of(run, name) || analysis_names::is_folder_of(run, folder)
}

/// Those of the user alone: another's may have any name.
async fn folders(run: &str, shared: &str, reach: &dyn Reach) -> Result<Vec<String>, String> {
    let me = ask(&["id", "-u"], reach).await?.stdout_text();
    let find = ["find", shared, "-mindepth", "1", "-maxdepth", "1", "-type", "d", "-uid", me.trim()];
    let listed = ask(&[&find[..], &["-printf", "%f\\0"]].concat(), reach).await?.stdout_text();
    let names = listed.split('\0').filter(|name| analysis_names::is_folder_of(run, name));
    Ok(names.map(str::to_owned).collect())
}

async fn ask(argv: &[&str], reach: &dyn Reach) -> Result<Answer, String> {
    let command = Command::new(argv.iter().copied(), QUERY_LIMIT);
    let answer = reach.exec(&Host::Here, &command).await.map_err(|error| error.to_string())?;
    match answer.succeeded() {
        true => Ok(answer),
        false => Err(format!("`{}` ended with {}: {}", argv[0], answer.status, answer.complaint())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::{ReachError, Wait};
    use std::cell::RefCell;

    const RUN: &str = "20261121T031000Z-a-0001";

    /// A queue and a shared folder, whose jobs and folders end on request.
    struct There {
        lines: RefCell<Vec<String>>,
        folders: RefCell<Vec<String>>,
        queue_answers: bool,
        heeds: bool,
        commands: RefCell<Vec<String>>,
    }

    impl Reach for There {
        fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
            Box::pin(async move {
                let words: Vec<&str> = command.argv.iter().map(String::as_str).collect();
                Ok(match words.as_slice() {
                    ["squeue", ..] if !self.queue_answers => Answer::failed(1, "Socket timed out"),
                    ["squeue", "--noheader", "--all", "--me", ..] => Answer::ok(self.lines.borrow().concat()),
                    ["id", "-u"] => Answer::ok("1000\n"),
                    ["find", "/fsx/a b", .., "-uid", "1000", "-printf", _] => Answer::ok(
                        self.folders.borrow().iter().map(|name| format!("{name}\0")).collect::<String>(),
                    ),
                    ["find", shared, ..] => Answer::failed(1, format!("{shared}: No such file or directory")),
                    ["scancel", ..] | ["rm", "-r", "-f", "--", _] => {
                        self.commands.borrow_mut().push(words.join(" "));
                        for gone in words.iter().filter(|_| self.heeds) {
                            self.lines.borrow_mut().retain(|line| !line.starts_with(&format!("{gone}|")));
                            self.folders.borrow_mut().retain(|name| !gone.ends_with(name.as_str()));
                        }
                        Answer::ok("")
                    }
                    _ => {
                        return Err(ReachError::NoProgram { host: "here".into(), program: words.join(" ") });
                    }
                })
            })
        }
        fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
            Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
        }
        fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
            Box::pin(async move { Err(ReachError::NotFound { path: path.into() }) })
        }
    }

    fn there() -> There {
        let mine = format!("analysis-{RUN}.aaaaAAAA");
        There {
            lines: RefCell::new(vec![
                format!("7|RUNNING|n1|{mine}.1|/home/u|/fsx/a b/{mine}/task.sh\n"),
                format!("7|PENDING||{mine}.1|/home/u|/fsx/a b/{mine}/task.sh\n"),
                // A submit plugin has renamed it.
                format!("6|RUNNING|n3|mine|/home/u|/fsx/a b/{mine}/task.sh\n"),
                format!("8|RUNNING|n2|analysis-{RUN}0.aaaaAAAA.1|/home/u|/fsx/a b/x.sh\n"),
                "9|RUNNING|n2|analysis-aaaaAAAA.1|/home/u|(null)\n".to_owned(),
            ]),
            folders: RefCell::new(vec![mine, format!("analysis-{RUN}0.aaaaAAAA"), RUN.to_owned()]),
            queue_answers: true,
            heeds: true,
            commands: RefCell::default(),
        }
    }

    fn cleaned(there: &There, shared: &str, ends: bool) -> Cleaned {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(clean(RUN, shared, there, ends))
    }

    #[test]
    fn the_array_is_ended_before_its_folder_goes_and_nothing_of_others_is_touched() {
        let there = there();
        let first = cleaned(&there, "/fsx/a b", true);
        assert_eq!((first.found.len(), first.left.len(), first.unasked.len()), (3, 0, 0), "{first:?}");
        let folder = format!("rm -r -f -- /fsx/a b/analysis-{RUN}.aaaaAAAA");
        assert_eq!(there.commands.take(), ["scancel 6 7".to_owned(), folder]);
        let again = cleaned(&there, "/fsx/a b", true);
        assert_eq!(again, Cleaned::default());
        assert!(there.commands.take().is_empty());
        assert_eq!((there.lines.take().len(), there.folders.take().len()), (2, 2));
    }

    #[test]
    fn a_look_ends_nothing_and_stubborn_jobs_are_leftovers() {
        let seen = cleaned(&there(), "/fsx/a b", false);
        assert_eq!(seen.left.len(), 3);
        let heedless = There { heeds: false, ..there() };
        assert_eq!(cleaned(&heedless, "/fsx/a b", true).left.len(), 3);
        assert_eq!(heedless.commands.take(), ["scancel 6 7"], "its tasks write into the folder");
    }

    #[test]
    fn a_queue_or_a_folder_that_cannot_be_asked_is_not_an_empty_one() {
        let away = There { queue_answers: false, ..there() };
        let seen = cleaned(&away, "/fsx/a b", true);
        assert!(seen.unasked["queue"].contains("Socket timed out"), "{seen:?}");
        assert!(away.commands.take().is_empty(), "a task may write into the folder");
        let seen = cleaned(&there(), "/elsewhere", true);
        assert!(seen.unasked["shared folder /elsewhere"].contains("No such file"), "{seen:?}");
    }

    #[test]
    fn messages() {
        let mut lines = Vec::new();
        let mut add = |what: &str, cleaned: Cleaned| {
            let left = cleaned.left.into_iter();
            let left = left
                .map(|left| format!("  {}: {}: {} of {}", left.at, left.what.name(), left.which, left.job));
            let unasked =
                cleaned.unasked.into_iter().map(|(host, why)| format!("  not asked: {host}: {why}"));
            lines.push(format!("{what}:"));
            lines.extend(left.chain(unasked));
        };
        add("arrays and folders", cleaned(&there(), "/fsx/a b", false));
        let away = There { queue_answers: false, ..there() };
        add("no controller", cleaned(&away, "/fsx/a b", false));
        add("no shared folder", cleaned(&there(), "/elsewhere", false));
        let odd = There { lines: RefCell::new(vec!["7|RUNNING\n".to_owned()]), ..there() };
        add("a broken line", cleaned(&odd, "/fsx/a b", false));
        insta::assert_snapshot!(lines.join("\n"));
    }
}
