//! Annotations of a workflow of GitHub Actions: a line of stdout for each culprit, or for the run where none is named. GitHub
//! shows them above the job's log and at the pull request.

use super::Report;
use super::culprit_line::{evidence, next_command, subject};
use super::last_line::{is_in_part, last_line};
use base::redact::mask_accounts;
use base::text::{cap, count, show};
use model::exit_code;
use std::fmt::Write;
use verdict::isolate::code::Code;

/// GitHub shows as many errors of a step.
const MOST: usize = 10;
/// Of a message, in bytes; GitHub cuts longer ones.
const MOST_BYTES: usize = 4000;

/// The lines, each with its line end; none of a run that passed as a whole.
pub(crate) fn annotations(report: &Report) -> String {
    let summary = report.summary;
    if summary.exit_code == exit_code::PASSED && !is_in_part(report) {
        return String::new();
    }
    let mut text = String::new();
    let simulated = if summary.simulated { "SIMULATED: " } else { "" };
    let shown = match summary.culprits.len() {
        all @ 0..=MOST => all,
        _ => MOST - 1,
    };
    for culprit in &summary.culprits[..shown] {
        let code = Code::for_culprit(culprit).map(|code| format!(" ({})", code.name)).unwrap_or_default();
        let next = next_command(culprit, report.plan, &summary.run_id);
        let next = next.map(|next| format!("; next: {next}")).unwrap_or_default();
        let title = format!("{simulated}{}{code}", subject(culprit));
        line(&mut text, "error", &title, &format!("{}{next}", show(evidence(culprit))));
    }
    if let more @ 1.. = summary.culprits.len() - shown {
        line(
            &mut text,
            "error",
            &format!("{simulated}{}", count(more, "more culprit")),
            "see `summary.json` of the run",
        );
    }
    if shown == 0 {
        let level = if summary.exit_code == exit_code::FAILED { "error" } else { "warning" };
        line(&mut text, level, &format!("{simulated}harness"), &last_line(report));
    }
    mask_accounts(&text)
}

/// By GitHub's rules: a message keeps all but `%` and line ends, and a title loses `:` and `,` too.
fn line(text: &mut String, level: &str, title: &str, message: &str) {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = data(&show(title)).replace(':', "%3A").replace(',', "%2C");
    // Infallible: writing to a string.
    let _ = writeln!(text, "::{level} title={title}::{}", data(&cap(&show(message), MOST_BYTES)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Made, Reported as _};
    use model::artefact::{Culprit, Status};

    #[test]
    fn each_culprit_is_an_error_and_a_run_without_one_is_a_line() {
        let green = fixture::green();
        assert_eq!(annotations(&green.report()), "");
        let mut case = fixture::case("c");
        case.verdicts = vec![fixture::verdict("c", "rate", "n", "p", Status::Inconclusive)];
        let open = Made::from_cases(vec![case]);
        let text = annotations(&fixture::red().report()) + &annotations(&open.report());
        insta::assert_snapshot!(text);
    }

    #[test]
    fn no_text_of_a_node_begins_another_command_or_property() {
        let mut made = fixture::red();
        let hostile = "a%0A::set-output name=x,y::z\n::stop-commands::x\r";
        made.summary.culprits =
            vec![Culprit::Suspects { nodes: vec![hostile.into()], evidence: hostile.into() }];
        let text = annotations(&made.report());
        let body = text.strip_prefix("::error title=").unwrap().strip_suffix('\n').unwrap();
        let (title, message) = body.split_once("::").unwrap();
        assert!(!body.contains(['\n', '\r']) && !title.contains([',', ':']), "{text}");
        assert!(!body.replace("%25", "").contains("%0A") && message.contains("%250A"), "{text}");
    }

    #[test]
    fn more_culprits_than_github_shows_are_counted() {
        let mut made = fixture::red();
        for (culprits, lines) in [(10, 10), (11, 10), (500, 10)] {
            made.summary.culprits = vec![Culprit::Fleet { evidence: "e".into() }; culprits];
            let text = annotations(&made.report());
            assert_eq!(text.lines().count(), lines);
            assert_eq!(
                text.contains(&format!("title=SIMULATED%3A {} more culprits::", culprits - 9)),
                culprits > 10,
                "{text}"
            );
        }
    }
}
