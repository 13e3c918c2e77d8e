//! The verb `harness lint`: errors in files that people write for programs of others: scripts that launch jobs, manifests
//! of Kubernetes, and lists of functions to trace. `harness check` lints the harness's own files.

mod function_trace;
mod json;
mod manifest;
#[cfg(test)]
mod message_tests;
mod script;

pub(crate) use function_trace::function_trace;
pub use manifest::{RULES, Rule, Weight, manifests};
pub use script::{Source, scripts};

use crate::diagnostic_lines::{LEVELS, line};
use base::redact::Redactor;
use base::text::count;
use clap::{Args, Subcommand};
use config::diagnostic::Diagnostic;
use config::envlint::Linted;
use config::toml_reader::file;
use model::exit_code;
use std::io::Write;
use std::path::PathBuf;

const CODES: &str =
    "Exit codes: 0 neither errors nor warnings; 1 errors or warnings; 2 a file cannot be read or is empty.";

/// `harness lint`: which kind of files is checked.
#[derive(Debug, Subcommand)]
#[command(about = "Errors in files for other programs, with their places.")]
pub(crate) enum LintCommand {
    /// Check scripts and manifests that launch jobs: environment, tasks, variables, step windows, secrets. Give files that start
    /// each other together
    #[command(after_help = CODES)]
    Script(Files),
    /// Check manifests of Kubernetes and Helm values: structure by Kubernetes 1.29 to 1.37, and rules on GPUs, EFA, retries,
    /// profilers and secrets. Give files that refer to each other together
    #[command(
        after_help = "Exit codes: 0 no error, with or without warnings; 2 an error, or a file cannot be read or is empty."
    )]
    Manifest(Files),
    /// Check lists of functions for `nsys profile --python-functions-trace`
    #[command(after_help = CODES)]
    FunctionTrace(Files),
}

/// The files of one command line.
#[derive(Debug, Args)]
pub(crate) struct Files {
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// text, or json: one object a line for each error, warning and note
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

/// Prints every error, warning and note. The exit code is 2 where a file cannot be read or is empty, then 1 where there is an error
/// or a warning; of manifests it is that of `check`: 2 where there is an error.
pub(crate) fn run(command: &LintCommand, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let (LintCommand::Script(Files { files, format })
    | LintCommand::Manifest(Files { files, format })
    | LintCommand::FunctionTrace(Files { files, format })) = command;
    let mut sources: Vec<Source> = Vec::new();
    for path in files {
        let name = path.display().to_string();
        match file::bytes(path) {
            Ok(bytes) if bytes.trim_ascii().is_empty() => {
                let _ = writeln!(err, "{name}: empty: nothing to check");
            }
            Ok(bytes) => sources.push(Source { name, text: String::from_utf8_lossy(&bytes).into_owned() }),
            // A reader that has gone away is no error of the linter.
            Err(error) => {
                let _ = writeln!(err, "{name}: cannot be read: {error}");
            }
        }
    }
    let linted = match command {
        LintCommand::Script(_) => scripts(&sources),
        LintCommand::Manifest(_) => manifests(&sources),
        LintCommand::FunctionTrace(_) => {
            let mut all = Linted::default();
            sources.iter().for_each(|source| append(&mut all, function_trace(&source.text, &source.name)));
            all
        }
    };
    let as_json = format == "json";
    let groups = [&linted.diagnostics, &linted.warnings, &linted.notes];
    for ((level, prefix), all) in LEVELS.into_iter().zip(groups) {
        for diagnostic in all.iter().map(without_secrets) {
            let _ = match as_json {
                true => writeln!(out, "{}", line(level, &diagnostic)),
                false => writeln!(out, "{prefix}{}", visible(&diagnostic)),
            };
        }
    }
    if !as_json && !sources.is_empty() {
        let _ = writeln!(
            out,
            "{}: {}, {}, {}",
            count(sources.len(), "file"),
            count(linted.diagnostics.len(), "error"),
            count(linted.warnings.len(), "warning"),
            count(linted.notes.len(), "note")
        );
    }
    match () {
        () if sources.len() < files.len() => exit_code::USAGE,
        () if matches!(command, LintCommand::Manifest(_)) => match linted.diagnostics.is_empty() {
            true => exit_code::PASSED,
            false => exit_code::USAGE,
        },
        () if !linted.diagnostics.is_empty() || !linted.warnings.is_empty() => exit_code::FAILED,
        () => exit_code::PASSED,
    }
}

/// A file may be named `secret.yaml`: its name and the place stay as they are.
fn without_secrets(diagnostic: &Diagnostic) -> Diagnostic {
    let redactor = Redactor::default();
    let mut shown = diagnostic.clone();
    shown.message = redactor.text(&diagnostic.message);
    shown.suggestion = diagnostic.suggestion.as_deref().map(|suggestion| redactor.text(suggestion));
    shown
}

/// With control characters escaped: they come from the file and must not reach the terminal.
fn visible(shown: &Diagnostic) -> String {
    let escape = |c: char| match c.is_control() {
        true => format!("\\x{:02x}", u32::from(c)),
        false => c.to_string(),
    };
    shown.to_string().chars().map(escape).collect()
}

fn append(all: &mut Linted, more: Linted) {
    all.diagnostics.extend(more.diagnostics);
    all.warnings.extend(more.warnings);
    all.notes.extend(more.notes);
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn show(texts: &[(&str, &str)], ask: impl Fn(Files) -> LintCommand) -> (i32, String, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let files = texts.iter().map(|(name, text)| {
            let path = folder.path().join(name);
            if !text.is_empty() {
                std::fs::write(&path, text).expect("a file");
            }
            path
        });
        let command = ask(Files { files: files.collect(), format: "text".to_owned() });
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(&command, &mut out, &mut err);
        let here = format!("{}/", folder.path().display());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").replace(&here, "");
        (code, text(out), text(err))
    }

    #[test]
    fn diagnostics_have_a_place_and_fail_the_run() {
        let script = "#!/bin/bash\nexport RDMAV_FORM_SAFE=1\nhostname\n";
        let (code, out, err) = show(&[("a.sh", script)], LintCommand::Script);
        assert_eq!((code, err.as_str()), (1, ""));
        assert!(out.starts_with("warning: a.sh:2:8: `RDMAV_FORM_SAFE` is misspelt"), "{out}");
        assert!(out.ends_with("1 file: 0 errors, 1 warning, 0 notes\n"), "{out}");
        assert_eq!(show(&[("a.sh", "hostname\n")], LintCommand::Script).0, 0);
        let (code, out, _) = show(&[("a.json", "{}")], LintCommand::FunctionTrace);
        assert!(code == 1 && out.starts_with("a.json:1:1: "), "{out}");
    }

    #[test]
    fn manifests_have_the_exit_codes_of_check() {
        let pod =
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: app:1}]}\n";
        let code = |text: &str| show(&[("a.yaml", text)], LintCommand::Manifest).0;
        assert_eq!(
            [code(pod), code(&pod.replace("app:1", "app")), code(&pod.replace("spec", "spek"))],
            [0, 0, 2]
        );
        assert_eq!(show(&[("gone.yaml", "")], LintCommand::Manifest).0, 2);
    }

    #[test]
    fn an_unreadable_file_is_named_and_the_others_are_checked() {
        let (code, out, err) = show(&[("a.sh", "hostname\n"), ("gone.sh", "")], LintCommand::Script);
        assert_eq!(code, 2);
        assert!(
            err.starts_with("gone.sh: cannot be read: ") && out.starts_with("1 file: 0 errors"),
            "{err}{out}"
        );
    }

    #[test]
    fn a_file_with_nothing_to_check_is_no_success() {
        let (code, _, err) = show(&[("a.sh", "hostname\n"), ("b.sh", " \n")], LintCommand::Script);
        assert_eq!((code, err.as_str()), (2, "b.sh: empty: nothing to check\n"));
        let (code, out, _) = show(&[("a.yaml", "# rendered from a chart\n---\n")], LintCommand::Manifest);
        assert_eq!(code, 2);
        assert!(out.starts_with("a.yaml: no object of Kubernetes and no Helm values in it\n"), "{out}");
    }

    #[test]
    fn a_file_that_is_named_secret_keeps_its_place() {
        let (_, out, _) = show(&[("secret.yaml", "kind: Pods\n")], LintCommand::Manifest);
        assert!(out.contains("secret.yaml:1:7: unknown kind: `Pods`"), "{out}");
    }

    #[test]
    fn control_characters_of_a_file_are_escaped() {
        let (_, out, _) = show(&[("a.json", "[{\"\\u001b[31m\": 1}]")], LintCommand::FunctionTrace);
        assert!(!out.contains('\x1b'), "{out:?}");
    }
}
