//! What is told of a window where it was opened: the mark that the hook and the watcher leave, and why a rank of which there
//! is no report had none.

use super::{PlannedWindow, Way};
pub use logs::window_mark::Mark;

/// Reads a mark: one line of JSON.
pub fn read(text: &str) -> Result<Mark, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A window that never opened, by its cause: something failed on the node, or the program did not come to its first step, which
/// is no node's fault.
pub const NEVER_OPENED: &str = "window-never-opened";
pub const MISSED: &str = "window-missed";

/// Why a window never opened, by what is known of a session that left no report; nothing where it did open, as far as
/// anybody says.
pub fn never_opened(planned: &PlannedWindow, mark: Option<&Mark>) -> Option<(&'static str, String)> {
    let steps = planned.steps;
    let asked = format!("steps {steps} were to be watched, by `{}`", planned.way.name());
    let failed = |why: &str| Some((NEVER_OPENED, format!("{asked}, and {why}")));
    let missed = |why: &str| Some((MISSED, format!("{asked}, and {why}")));
    let Some(mark) = mark else {
        return match (planned.way, planned.ends_after) {
            (_, Some(last)) if last < steps.first => {
                missed(&format!("the program's command line ends it after step {last}"))
            }
            (Way::Options, _) => failed(&format!(
                "nothing called the profiler: the program ended before step {}, or does not know the options",
                steps.first
            )),
            (Way::Hook, _) => failed(
                "the hook saw no step: python did not import it (`-I`, `-E`, `-S`, or an environment of its own), or no \
                 optimizer of torch stepped",
            ),
            (Way::Watch, _) => failed("the watcher was ended before it told anything"),
            (Way::Delay, _) => None,
        };
    };
    if mark.opened.is_some() {
        return None;
    }
    if let Some(error) = &mark.error {
        return failed(&format!("it could not be opened: {error}"));
    }
    match mark.steps {
        Some(0) => failed("no step was seen"),
        Some(seen) if seen <= steps.first => missed(&format!(
            "the last step that the program went through was: {}; a window must begin before that",
            seen - 1
        )),
        Some(seen) => failed(&format!("it did not open, though so many steps were seen: {seen}")),
        None => failed("the program was ended before it told how many steps it went through"),
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
    fn a_mark_is_read_and_what_is_none_is_refused() {
        let read_mark = mark(r#"{"way": "hook", "opened": 3, "closed": 5, "steps": 9, "error": null}"#);
        assert_eq!((read_mark.opened, read_mark.closed, read_mark.steps), (Some(3), Some(5), Some(9)));
        for text in ["", "{", "[]", r#"{"way": "hook", "opened": -1}"#, r#"{"opened": 3}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_reason_for_a_window_that_never_opened_is_told() {
        let hook = planned(Way::Hook, None);
        for (text, told) in [
            (r#"{"way": "hook", "steps": 30}"#, "the last step that the program went through was: 29"),
            (r#"{"way": "hook", "steps": 70}"#, "was: 69"),
            (r#"{"way": "hook", "steps": 0}"#, "no step was seen"),
            (r#"{"way": "hook", "steps": 80}"#, "though so many steps were seen: 80"),
            (r#"{"way": "hook"}"#, "was ended before it told"),
            (
                r#"{"way": "hook", "steps": 80, "error": "torch sees no GPU"}"#,
                "could not be opened: torch sees no GPU",
            ),
        ] {
            let (cause, why) = never_opened(&hook, Some(&mark(text))).expect(text);
            assert!(why.contains(told), "{why}");
            assert_eq!(cause == MISSED, told.contains("was: "), "{why}");
        }
        assert_eq!(never_opened(&hook, Some(&mark(r#"{"way": "hook", "opened": 70, "steps": 80}"#))), None);
        for (way, ends_after, told) in [
            (Way::Hook, None, "the hook saw no step"),
            (Way::Hook, Some(29), "ends it after step 29"),
            (Way::Options, None, "nothing called the profiler"),
            (Way::Options, Some(69), "ends it after step 69"),
            (Way::Watch, Some(79), "the watcher was ended"),
        ] {
            let (cause, why) = never_opened(&planned(way, ends_after), None).expect("a reason");
            assert!(why.contains(told), "{why}");
            assert_eq!(cause == MISSED, told.contains("after step"), "{why}");
        }
        assert_eq!(never_opened(&planned(Way::Delay, None), None), None);
    }
}
