//! `harness page`: stored runs as pages, made from their artefacts alone.

use super::home;
use crate::error::Error;
use crate::session::stored;
use crate::stored_page::PageArtefacts;
use base::text::show;
use clap::Args;
use model::exit_code;
use std::fs;
use std::path::{Component, Path, PathBuf};
use store::Stored;

/// `harness page`
#[derive(Debug, Args)]
#[command(
    about = "Write a stored run as one page of HTML: verdict, culprits, nodes by cases, every NIC and GPU, every number.",
    after_help = "Exit codes: 0 written, whatever the run ended with; 2 wrong usage, no such run, or a file cannot be written."
)]
pub(super) struct PageArgs {
    /// The runs: an id, the beginning of one, `latest`, a folder or a bundle
    #[arg(value_name = "RUN", default_value = "latest")]
    runs: Vec<String>,
    /// The file to write, which ends in `.html`, or a folder for `<run id>.html` of each run
    #[arg(long, value_name = "FILE|DIR", default_value = ".")]
    output: PathBuf,
}

pub(super) fn run(args: &PageArgs) -> Result<i32, Error> {
    let home = home()?;
    let is_file = args.output.extension().is_some_and(|extension| extension == "html");
    if is_file && args.runs.len() > 1 {
        return Err(Error::Usage(format!(
            "--output {}: one file cannot hold the pages of {} runs; name a folder",
            show(&args.output.display().to_string()),
            args.runs.len()
        )));
    }
    for name in &args.runs {
        let run = stored::open_results(&home, name).map_err(Error::Usage)?;
        let path = match is_file {
            true => args.output.clone(),
            false => args.output.join(format!("{}.html", run.plan.run_id)),
        };
        write(&run, &path).map_err(Error::Usage)?;
        println!("page of {}: {}", show(&run.plan.run_id), show(&path.display().to_string()));
    }
    Ok(exit_code::PASSED)
}

fn write(run: &Stored, path: &Path) -> Result<(), String> {
    let artefacts = PageArtefacts::read(run)?.with_past();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| format!("{}: {error}", show(&path.display().to_string()));
    fs::create_dir_all(folder).map_err(failed)?;
    let (from, to) = (folder.canonicalize().map_err(failed)?, run.folder().canonicalize().map_err(failed)?);
    let to_run = relative(&from, &to);
    // Nothing leads to what is removed in a moment.
    let page = artefacts.render((!run.is_temporary()).then_some(to_run.as_path()))?;
    store::write_output(path, &page).map_err(|error| error.to_string())
}

/// The path from a folder to another, both without links.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_where_the_page_lies_to_the_run() {
        for (from, expected) in [
            ("/p", "runs/r"),
            ("/p/out", "../runs/r"),
            ("/p/runs/r", ""),
            ("/elsewhere/deep", "../../p/runs/r"),
        ] {
            assert_eq!(relative(Path::new(from), Path::new("/p/runs/r")), Path::new(expected), "{from}");
        }
    }
}
