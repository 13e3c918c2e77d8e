//! The pages of the newest runs, made from their artefacts; one that is there already is kept while its run is the same.

use super::folder::{RUNS, SiteFolder};
use crate::stored_page::PageArtefacts;
use base::digest::Sum;
use base::text::show;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use store::Stored;
use verdict::history::past::{Past, Run};

/// A longer name is no name of a file with an ending.
const LONGEST_NAME: usize = 240;

/// Writes them, and gives for each run the path of its page in the site, where it has one.
pub(super) fn write(
    past: &Past,
    most: usize,
    folder: &mut SiteFolder,
) -> Result<Vec<Option<String>>, String> {
    let first = past.runs.len().saturating_sub(most);
    let mut pages = vec![None; past.runs.len()];
    for (page, run) in pages.iter_mut().zip(&past.runs).skip(first) {
        let Some(name) = file_name(run) else { continue };
        let made_from = made_from(run);
        if folder.keep(&name, &made_from) {
            *page = Some(name);
            continue;
        }
        // The page shows more of the plan than is kept of many runs.
        let rendered = Stored::open(run.stored.folder())
            .map_err(|error| error.to_string())
            .and_then(|stored| PageArtefacts::read(&stored)?.render(None));
        match rendered {
            Ok(text) => {
                folder.write_from(&name, &text, &made_from)?;
                *page = Some(name);
            }
            // A run without a summary has none.
            Err(why) => eprintln!("no page: {}: {}", show(run.id()), show(&why)),
        }
    }
    Ok(pages)
}

/// By the run's folder: two folders may hold runs of one name.
fn file_name(run: &Run) -> Option<String> {
    let name = run.stored.folder().file_name()?.to_str()?;
    (name.len() <= LONGEST_NAME && store::is_inside(name)).then(|| format!("{RUNS}/{name}.html"))
}

/// Differs where a file of the run does that its page shows, and for another version of the harness. Nothing where that
/// is unknown.
fn made_from(run: &Run) -> String {
    let mut sum = Sum::default();
    sum.update(env!("CARGO_PKG_VERSION").as_bytes());
    let mut take = |path: &Path| -> io::Result<()> {
        let facts = match fs::symlink_metadata(path) {
            Ok(facts) => Some((facts.len(), facts.mtime(), facts.mtime_nsec(), facts.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        sum.update(format!("{facts:?}").as_bytes());
        Ok(())
    };
    let of_run =
        ["plan.json", "summary.json", "run.json", "probe.json"].map(|name| run.stored.folder().join(name));
    let of_cases = run.plan().cases.iter().flat_map(|case| {
        ["verdict.json", "outcomes.json", "job.json", "trace.json", "diagnosis.json"]
            .map(|name| run.stored.case(&case.name).join(name))
    });
    match of_run.into_iter().chain(of_cases).try_for_each(|path| take(&path)) {
        Ok(()) => sum.to_hex(),
        Err(_) => String::new(),
    }
}
