//! The capture marker that the hook and the watcher leave on the node, and why a rank without a report has none.

use super::{PlannedWindow, Way};
pub use logs::window_mark::Mark;

/// Reads a mark: one line of JSON.
pub fn read(text: &str) -> Result<Mark, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The cause of a window that never opened: something failed on the node.
pub const NEVER_OPENED: &str = "window-never-opened";
/// The same, where the program did not come to the window's first step: no node is at fault.
pub const MISSED: &str = "window-missed";

/// Why a window never opened, of a session that left no report; none where it opened, as far as is known.
pub fn never_opened(planned: &PlannedWindow, mark: Option<&Mark>) -> Option<(&'static str, String)> {
    let steps = planned.steps;
    let what = format!("steps {steps} were not captured by `{}`", planned.way.name());
    let failed = |why: &str| Some((NEVER_OPENED, format!("{what}: {why}")));
    let missed = |why: &str| Some((MISSED, format!("{what}: {why}")));
    let Some(mark) = mark else {
        return match (planned.way, planned.ends_after) {
            (_, Some(last)) if last < steps.first => {
                missed(&format!("the command line ends the program after step {last}"))
            }
            (Way::Options, _) => failed(&format!(
                "nothing called the profiler: the program ended before step {}, or does not know the options",
                steps.first
            )),
            (Way::Hook, _) => failed(
                "the hook saw no step: python did not import it (`-I`, `-E`, `-S`, or an environment of its own), or no \
                 torch optimizer stepped",
            ),
            (Way::Watch, _) => failed("the watcher ended before it reported a step"),
            (Way::Delay, _) => None,
        };
    };
    if mark.opened.is_some() {
        return None;
    }
    if let Some(error) = &mark.error {
        return failed(&format!("the profiler could not be started: {error}"));
    }
    match mark.steps {
        Some(0) => failed("no step was seen"),
        Some(seen) if seen <= steps.first => {
            missed(&format!("the last step was {}; the window must begin before it", seen - 1))
        }
        Some(seen) => failed(&format!("the window did not open; steps seen: {seen}")),
        None => failed("the program ended before it reported its number of steps"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Steps;
    use super::*;

    fn planned(way: Way, ends_after: Option<u64>) -> PlannedWindow {
        PlannedWindow { steps: Steps { first: 70, last: 75 }, way, why: String::new(), ends_after }
    }

    fn mark(text: &str) -> Mark {
        read(text).expect("a mark")
    }

    #[test]
    fn a_mark_is_read_and_other_text_is_refused() {
        let read_mark = mark(r#"{"way": "hook", "opened": 3, "closed": 5, "steps": 9, "error": null}"#);
        assert_eq!((read_mark.opened, read_mark.closed, read_mark.steps), (Some(3), Some(5), Some(9)));
        for text in ["", "{", "[]", r#"{"way": "hook", "opened": -1}"#, r#"{"opened": 3}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_reason_why_a_window_never_opened_is_reported() {
        let hook = planned(Way::Hook, None);
        for (text, expected) in [
            (r#"{"way": "hook", "steps": 30}"#, "the last step was 29"),
            (r#"{"way": "hook", "steps": 70}"#, "was 69"),
            (r#"{"way": "hook", "steps": 0}"#, "no step was seen"),
            (r#"{"way": "hook", "steps": 80}"#, "steps seen: 80"),
            (r#"{"way": "hook"}"#, "ended before it reported its number"),
            (
                r#"{"way": "hook", "steps": 80, "error": "torch sees no GPU"}"#,
                "could not be started: torch sees no GPU",
            ),
        ] {
            let (cause, why) = never_opened(&hook, Some(&mark(text))).expect(text);
            assert!(why.contains(expected), "{why}");
            assert_eq!(cause == MISSED, ["the last step was 29", "was 69"].contains(&expected), "{why}");
        }
        assert_eq!(never_opened(&hook, Some(&mark(r#"{"way": "hook", "opened": 70, "steps": 80}"#))), None);
        for (way, ends_after, expected) in [
            (Way::Hook, None, "the hook saw no step"),
            (Way::Hook, Some(29), "ends the program after step 29"),
            (Way::Options, None, "nothing called the profiler"),
            (Way::Options, Some(69), "ends the program after step 69"),
            (Way::Watch, Some(79), "the watcher ended"),
        ] {
            let (cause, why) = never_opened(&planned(way, ends_after), None).expect("a reason");
            assert!(why.contains(expected), "{why}");
            assert_eq!(cause == MISSED, expected.contains("after step"), "{why}");
        }
        assert_eq!(never_opened(&planned(Way::Delay, None), None), None);
    }

    #[test]
    fn messages() {
        let mut lines = Vec::new();
        for text in [
            r#"{"way": "hook", "steps": 30}"#,
            r#"{"way": "hook", "steps": 0}"#,
            r#"{"way": "hook", "steps": 80}"#,
            r#"{"way": "hook"}"#,
            r#"{"way": "hook", "error": "torch sees no GPU"}"#,
        ] {
            lines.extend(never_opened(&planned(Way::Hook, None), Some(&mark(text))));
        }
        for way in Way::ALL {
            lines.extend(never_opened(&planned(way, None), None));
        }
        lines.extend(never_opened(&planned(Way::Hook, Some(29)), None));
        let lines: Vec<String> = lines.iter().map(|(cause, why)| format!("{cause}: {why}")).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
