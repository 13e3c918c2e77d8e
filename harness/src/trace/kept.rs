//! The excerpt that a run keeps of a failed case with reports, beside its verdict: `trace.json`. A process with limits of
//! its own makes it, as reports are read everywhere.

use super::of_run::{CaseArtefacts, TracedJob};
use crate::limited::{self, Failed, Limits};
use crate::outgoing::open_regular;
use crate::panics;
use base::text::show;
use model::artefact::{CaseVerdict, Plan};
use recipes::excerpt::{self, ExcerptInput, ExcerptRequest, MOST_BYTES, ReadTrace, WindowRequest, excerpt};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use store::{Store, StoreError};

/// The verb by which the program starts itself; no person types it.
pub(crate) const VERB: &str = "cut-excerpt";
/// In the folder of the case.
const NAME: &str = "trace.json";
/// Slices of all ranks: the file has less than a megabyte.
const MOST_SLICES: usize = 4_000;
const SECONDS: u64 = 900;
const MEMORY: u64 = 8 << 30;

#[derive(Serialize, Deserialize)]
struct Question {
    inputs: Vec<ExcerptInput>,
    first: Vec<String>,
}

/// Excerpts as a page shows them, by case; an excerpt that cannot be read is the reason.
pub(crate) type CaseTraces = [(String, Result<ReadTrace, String>)];

/// Writes the excerpt of a case that failed and has reports. One that cannot be made changes no verdict: it is noted.
pub(crate) async fn keep(artefacts: &CaseArtefacts<'_>, store: &Store) -> Result<(), StoreError> {
    if !artefacts.is_red() {
        return Ok(());
    }
    let Some(TracedJob { case, inputs, first, .. }) = artefacts.traced() else { return Ok(()) };
    let path = store.case(&case).join(NAME);
    let question = Question { inputs, first };
    let cut = tokio::task::spawn_blocking(move || ask(&question)).await;
    match cut.map_err(|error| StoreError::other(&path, &error))? {
        Ok(bytes) => store.write_text(&path, &bytes).map(drop),
        Err(why) => {
            eprintln!("note: no excerpt of {}: {}", show(&case), show(&why));
            Ok(())
        }
    }
}

fn ask(question: &Question) -> Result<Vec<u8>, String> {
    let bytes = serde_json::to_vec(question).map_err(|error| error.to_string())?;
    let limits = Limits { memory: MEMORY, seconds: SECONDS, threads: 1, answer: MOST_BYTES };
    limited::ask(VERB, bytes, &limits).map_err(|failed| match failed {
        Failed::NotStarted(error) => format!("cannot start a process: {error}"),
        Failed::Timeout => format!("its reports were not read within {} min", SECONDS / 60),
        Failed::Memory => format!("its reports need more than {} GiB of memory", MEMORY >> 30),
        Failed::Answer => format!("it is larger than {} MiB", MOST_BYTES >> 20),
        Failed::Message(line) => line,
        Failed::Silent(status) => format!("the process that made it ended: {status}"),
    })
}

/// Entry of the process that makes an excerpt for another.
pub(crate) fn serve(words: &[String]) -> i32 {
    limited::serve(VERB, words, |question| {
        let cut = panics::caught(VERB, || cut(question));
        cut.unwrap_or_else(|why| Err(format!("internal error: {}", why.escape_debug())))
    })
}

fn cut(question: &[u8]) -> Result<Vec<u8>, String> {
    let Question { inputs, first } = serde_json::from_slice(question).map_err(|error| error.to_string())?;
    let request = ExcerptRequest {
        inputs: &inputs,
        window: &WindowRequest::Auto,
        most_slices: MOST_SLICES,
        first: &first,
    };
    let mut bytes = Vec::new();
    excerpt::write(&excerpt(&request)?, &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// The excerpts of failed cases that a page shows.
pub(crate) fn read_all(
    plan: &Plan,
    cases: &[CaseVerdict],
    folder: &dyn Fn(&str) -> PathBuf,
) -> Vec<(String, Result<ReadTrace, String>)> {
    let is_red = |case: &CaseVerdict| case.verdicts.iter().any(|one| one.status.is_red());
    let red = plan
        .cases
        .iter()
        .filter(|planned| cases.iter().any(|case| case.case == planned.name && is_red(case)));
    let read = |name: &String| Some((name.clone(), read(&folder(name).join(NAME))?));
    red.filter_map(|case| read(&case.name)).collect()
}

/// `None` where there is none.
fn read(path: &Path) -> Option<Result<ReadTrace, String>> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(error.to_string())),
    };
    let mut bytes = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string());
    Some(read.and_then(|_| excerpt::read(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_that_cannot_be_read_is_reported_and_a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        std::os::unix::fs::symlink("/dev/zero", path("link")).expect("linked");
        assert!(read(&path("absent")).is_none());
        let why = |path: &Path| read(path).and_then(Result::err).unwrap_or_default();
        assert_eq!(why(&path("pipe")), "not a regular file");
        assert!(why(&path("link")).contains("os error 40"), "{}", why(&path("link")));
        assert!(
            why(Path::new("/proc/self/mem")).contains("os error 5"),
            "{}",
            why(Path::new("/proc/self/mem"))
        );
    }
}
