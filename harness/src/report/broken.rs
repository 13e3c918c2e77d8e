//! The few lines of a run that was ended because its launcher, image or tool is broken: the tool's last lines, and what
//! to check. One line per assertion would repeat the same message hundreds of times.

use super::Report;
use base::text::SIMULATED;
use base::text::{count, show};
use model::artefact::{CommonFailure, Summary};
use model::exit_code;
use std::fmt::Write;

/// Lines of the tool's output that are shown.
const LAST_LINES: usize = 3;

/// `None` where the run has no common failure. `junit` is where the JUnit report was written, where that is another place
/// than the run's folder.
pub fn broken(report: &Report, junit: Option<&str>) -> Option<String> {
    let summary = report.summary;
    let failure = summary.common_failure.as_ref()?;
    let mut text = String::new();
    // Infallible: writing to a string.
    let _ = writeln!(text, "error: {}; no node is blamed", show(&headline(failure)));
    text.push_str(&last_lines(&failure.words));
    let _ = writeln!(text, "check: {}", show(&failure.check));
    let not_run = not_run(summary, &failure.case);
    if not_run > 0 {
        let _ = writeln!(text, "not run: {} after it", count(not_run, "case"));
    }
    if summary.simulated {
        let _ = writeln!(text, "{SIMULATED}; seed: {}", summary.seed);
    }
    let folder = format!("runs/{}", show(&summary.run_id));
    let _ = writeln!(text, "run folder: {folder}/");
    let _ = writeln!(text, "JUnit: {}", junit.map_or(format!("{folder}/junit.xml"), show));
    let _ = writeln!(text, "page: {folder}/index.html");
    let outcome = if summary.exit_code == exit_code::INCONCLUSIVE { "INCONCLUSIVE: " } else { "" };
    let what = match failure.cause.as_str() {
        "launch-failed" => "jobs could not be launched",
        _ => "the launcher, the image or the tool is broken",
    };
    let _ = writeln!(text, "{outcome}{what} (exit {})", summary.exit_code);
    Some(text)
}

/// What failed, and where.
pub(crate) fn headline(failure: &CommonFailure) -> String {
    let CommonFailure { case, jobs, nodes, cause, .. } = failure;
    match jobs {
        1 => format!("the only job of `{case}` that was tried failed on {nodes}: {cause}"),
        jobs => format!("all {jobs} jobs of `{case}` failed in the same way on {nodes}: {cause}"),
    }
}

/// The last lines of a tool's output, indented.
pub fn last_lines(lines: &[String]) -> String {
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().map(|line| format!("  {}\n", show(line))).collect()
}

fn not_run(summary: &Summary, case: &str) -> usize {
    let after = summary.cases.iter().skip_while(|other| other.name != case).skip(1);
    after.filter(|other| other.counts.error == other.counts.total && other.seconds == 0.0).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use crate::report::fixture::Reported as _;

    #[test]
    fn a_broken_launcher_is_a_few_lines_with_the_tools_own() {
        let mut made = fixture::red();
        assert_eq!(broken(&made.report(), None), None);
        made.summary.common_failure = Some(CommonFailure {
            case: "gpu-each".into(),
            jobs: 4,
            nodes: "p5-[001-004]".into(),
            cause: "exit 1".into(),
            words: (0..9).map(|n| format!("line {n}\x1b[2J")).collect(),
            check: "`srun --mpi=list`".into(),
            expected: false,
        });
        let text = broken(&made.report(), None).expect("a common failure");
        assert!(
            text.starts_with(
                "error: all 4 jobs of `gpu-each` failed in the same way on p5-[001-004]: exit 1"
            ),
            "{text}"
        );
        assert!(text.contains("  line 8\\x1b[2J\n") && !text.contains("line 5"), "{text}");
        assert!(text.ends_with("\nthe launcher, the image or the tool is broken (exit 1)\n"), "{text}");
        assert!(text.lines().count() <= 12, "{text}");
        let folder = format!("runs/{}", made.summary.run_id);
        let files =
            format!("\nrun folder: {folder}/\nJUnit: {folder}/junit.xml\npage: {folder}/index.html\n");
        assert!(text.contains(&files), "{text}");
        made.summary.exit_code = exit_code::INCONCLUSIVE;
        made.summary.common_failure.as_mut().expect("a failure").cause = "launch-failed".into();
        let text = broken(&made.report(), Some("out/j.xml")).expect("a common failure");
        assert!(text.contains("\nJUnit: out/j.xml\n"), "{text}");
        assert!(text.ends_with("\nINCONCLUSIVE: jobs could not be launched (exit 3)\n"), "{text}");
    }
}
