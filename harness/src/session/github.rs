//! What a job of GitHub Actions is given: the summary on its page, and annotations. Neither changes an exit code, since no one
//! asked for them.

use super::RunOptions;
use super::output::print_quietly;
use crate::report::{self, Report};
use base::redact::Redactor;
use libtest_mimic::FormatSetting;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// GitHub takes no more of a step.
const MOST_BYTES: u64 = 1024 * 1024;

/// Annotates the job. Where stdout holds JSON alone they go to stderr, which GitHub reads too.
pub(super) fn annotate(report: &Report, redactor: &Redactor, options: &RunOptions) {
    if std::env::var_os("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
        return;
    }
    let text = redactor.text(&report::annotations(report));
    match options.libtest.format {
        Some(FormatSetting::Json) => eprint!("{text}"),
        _ => print_quietly(&text),
    }
}

/// Adds the summary to the page of the job, behind what other commands of the step have written there.
pub(super) fn add_summary(report: &Report, redactor: &Redactor) {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return };
    let path = PathBuf::from(path);
    let text = redactor.text(&report::markdown(report));
    if let Err(error) = append(&path, &text) {
        eprintln!("warning: no summary for GitHub in `{}`: {error}", path.display());
    }
}

fn append(path: &PathBuf, text: &str) -> io::Result<()> {
    // A pipe without a reader is refused at once and not waited for.
    let mut file =
        OpenOptions::new().create(true).append(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let room = MOST_BYTES.saturating_sub(file.metadata()?.len());
    // Its first line is a line of its own, whatever stands before it.
    let cut = report::cut(&format!("\n{text}"), room as usize);
    if cut.is_empty() {
        return Err(io::Error::other("it holds 1 MiB already, which is all that GitHub shows"));
    }
    file.write_all(cut.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_added_to_a_file_and_never_waits_for_a_pipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("summary");
        for text in ["one", "two"] {
            append(&path, text).expect("written");
        }
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "\none\ntwo");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
        assert!(append(&pipe, "one").is_err());
        // Also where somebody reads it.
        let _reader = OpenOptions::new().read(true).write(true).open(&pipe).expect("opened");
        assert_eq!(append(&pipe, "one").expect_err("refused").to_string(), "not a regular file");
    }
}
