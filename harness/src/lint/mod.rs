//! The verb `harness lint`: errors in files that people write for programs of others: scripts that launch jobs, and lists of
//! functions to trace. Files of our own are `harness check`'s business.

mod function_trace;
mod json;
mod script;

pub use function_trace::function_trace;
pub use script::{Source, scripts};

use clap::{Args, Subcommand};
use config::diagnostic::Diagnostic;
use config::envlint::Linted;
use model::exit_code;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Asked {
    /// Scripts and manifests that launch jobs: environment, tasks, variables, windows of steps. Files that start each other
    /// are given together
    Script(Files),
    /// Lists of functions for `nsys profile --python-functions-trace`
    FunctionTrace(Files),
}

#[derive(Debug, Args)]
pub struct Files {
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Prints every error, warning and note. The exit code is 2 where a file cannot be read, then 1 where there is an error or a
/// warning.
pub fn run(asked: &Asked, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let (Asked::Script(Files { files }) | Asked::FunctionTrace(Files { files })) = asked;
    let mut sources: Vec<Source> = Vec::new();
    for path in files {
        let name = path.display().to_string();
        match std::fs::read(path) {
            Ok(bytes) => sources.push(Source { name, text: String::from_utf8_lossy(&bytes).into_owned() }),
            // When nobody listens any more, there is nobody to tell.
            Err(error) => {
                let _ = writeln!(err, "{name}: cannot be read: {error}");
            }
        }
    }
    let linted = match asked {
        Asked::Script(_) => scripts(&sources),
        Asked::FunctionTrace(_) => {
            let mut all = Linted::default();
            sources.iter().for_each(|source| join(&mut all, function_trace(&source.text, &source.name)));
            all
        }
    };
    let told = [("", &linted.diagnostics), ("warning: ", &linted.warnings), ("note: ", &linted.notes)];
    for (word, all) in told {
        for diagnostic in all {
            let _ = writeln!(out, "{word}{}", visible(diagnostic));
        }
    }
    let count = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let _ = writeln!(
        out,
        "{}: {}, {}, {}",
        count(sources.len(), "file"),
        count(linted.diagnostics.len(), "error"),
        count(linted.warnings.len(), "warning"),
        count(linted.notes.len(), "note")
    );
    match () {
        () if sources.len() < files.len() => exit_code::USAGE,
        () if !linted.diagnostics.is_empty() || !linted.warnings.is_empty() => exit_code::FAILED,
        () => exit_code::PASSED,
    }
}

/// Without what a terminal would obey: the words are those of a file.
fn visible(diagnostic: &Diagnostic) -> String {
    let shown = |c: char| match c.is_control() {
        true => format!("\\x{:02x}", u32::from(c)),
        false => c.to_string(),
    };
    diagnostic.to_string().chars().map(shown).collect()
}

fn join(all: &mut Linted, more: Linted) {
    all.diagnostics.extend(more.diagnostics);
    all.warnings.extend(more.warnings);
    all.notes.extend(more.notes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(texts: &[(&str, &str)], ask: impl Fn(Files) -> Asked) -> (i32, String, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let files = texts.iter().map(|(name, text)| {
            let path = folder.path().join(name);
            if !text.is_empty() {
                std::fs::write(&path, text).expect("a file");
            }
            path
        });
        let asked = ask(Files { files: files.collect() });
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(&asked, &mut out, &mut err);
        let here = format!("{}/", folder.path().display());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").replace(&here, "");
        (code, text(out), text(err))
    }

    #[test]
    fn what_there_is_to_change_is_told_with_its_place_and_fails() {
        let script = "#!/bin/bash\nexport RDMAV_FORM_SAFE=1\nhostname\n";
        let (code, out, err) = show(&[("a.sh", script)], Asked::Script);
        assert_eq!((code, err.as_str()), (1, ""));
        assert!(out.starts_with("warning: a.sh:2:8: `RDMAV_FORM_SAFE` is misspelt"), "{out}");
        assert!(out.ends_with("1 file: 0 errors, 1 warning, 0 notes\n"), "{out}");
        assert_eq!(show(&[("a.sh", "hostname\n")], Asked::Script).0, 0);
        let (code, out, _) = show(&[("a.json", "{}")], Asked::FunctionTrace);
        assert!(code == 1 && out.starts_with("a.json:1:1: "), "{out}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_and_the_others_are_told_of() {
        let (code, out, err) = show(&[("a.sh", "hostname\n"), ("gone.sh", "")], Asked::Script);
        assert_eq!(code, 2);
        assert!(
            err.starts_with("gone.sh: cannot be read: ") && out.starts_with("1 file: 0 errors"),
            "{err}{out}"
        );
    }

    #[test]
    fn words_of_a_file_reach_no_terminal_as_they_stand() {
        let (_, out, _) = show(&[("a.json", "[{\"\\u001b[31m\": 1}]")], Asked::FunctionTrace);
        assert!(!out.contains('\x1b'), "{out:?}");
    }
}
