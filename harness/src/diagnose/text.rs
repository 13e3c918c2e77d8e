//! A diagnosis for a person: a line for each finding, and below it what shows it and what to change.

use base::text::{command_line, count, show};
use recipes::diagnosis::{Diagnosis, LimitFound};
use std::fmt::Write;
use std::path::PathBuf;

/// Infallible, as everywhere below: writing to a string.
pub(super) fn render(of: Option<&str>, reports: usize, diagnosis: &Diagnosis, named: &[PathBuf]) -> String {
    let mut text = String::new();
    let of = of.map(|name| format!("{}: ", show(name))).unwrap_or_default();
    let _ = writeln!(
        text,
        "{of}{}, {}, {} of GPU time",
        count(reports, "report"),
        count(diagnosis.gpus, "GPU"),
        seconds(diagnosis.window_ns)
    );
    for note in &diagnosis.notes {
        let _ = writeln!(text, "note: {}", show(note));
    }
    // Only what was read whole, and can be known, is good news.
    let is_whole = diagnosis.notes.is_empty() && diagnosis.unreadable.is_empty() && diagnosis.gpus > 0;
    if diagnosis.findings.is_empty() && is_whole {
        let _ = writeln!(
            text,
            "nothing limits them by more than 2 %: no exposed communication, idle time or copies"
        );
    }
    let input: Vec<String> = named.iter().map(|path| path.display().to_string()).collect();
    for (at, finding) in diagnosis.findings.iter().enumerate() {
        text.push_str(&card(at + 1, finding, &command_line(&input)));
    }
    text
}

fn card(number: usize, finding: &LimitFound, input: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{number}. {}: {}", finding.code, show(&finding.what));
    for line in &finding.evidence {
        let _ = writeln!(text, "     {}", show(line));
    }
    let _ = writeln!(text, "   change: {}", finding.change);
    let _ = writeln!(
        text,
        "   shown by: harness recipe {} --input {input} --table {}",
        finding.recipe, finding.table
    );
    text
}

/// With three digits.
fn seconds(ns: f64) -> String {
    match ns / 1e9 {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_command_of_a_finding_are_quoted_for_the_shell() {
        let finding = LimitFound {
            code: "idle",
            share: 0.5,
            what: "idle for 50 %".to_owned(),
            evidence: Vec::new(),
            change: "feed it",
            recipe: "gpu_gaps",
            table: "all",
        };
        let diagnosis = Diagnosis { findings: vec![finding], gpus: 1, ..Diagnosis::default() };
        let text = render(None, 1, &diagnosis, &["job 17/a.sqlite", "b.sqlite"].map(PathBuf::from));
        assert!(
            text.contains("harness recipe gpu_gaps --input 'job 17/a.sqlite' b.sqlite --table all\n"),
            "{text}"
        );
    }
}
