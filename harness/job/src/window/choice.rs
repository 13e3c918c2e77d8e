//! By which method a window is opened: the first that the workload allows, or the one that its suite names. Every method
//! that is passed over has a reason; where none is left, all reasons are reported.

use super::program::{self, Own, Reaches};
use super::{StepWindow, Way};

/// What is known of the workload.
pub struct Facts<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// The program's own options, where the kind of workload has some.
    pub own: Option<Own>,
    /// How the kind's log shows a step, and the number of its first; where the kind has one.
    pub line: Option<(&'a str, u32)>,
    /// The lowest rank of each session of nsys, among all processes of the job.
    pub lowest: &'a [u32],
}

/// The method that opens a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// As the suite names it, or the first that is possible.
    pub way: Way,
    /// Why this method, and why none that is tried before it.
    pub why: String,
    /// Arguments to append to the program's own.
    pub arguments: Vec<String>,
}

/// An error says of each method why it is not possible.
pub fn choose(asked: &StepWindow, facts: &Facts) -> Result<Chosen, String> {
    let named = asked.way;
    let mut passed = Vec::new();
    for way in Way::ALL.into_iter().filter(|way| named.is_none_or(|named| named == *way)) {
        match allowed(way, asked, facts) {
            Ok(why) => {
                let arguments = match (way, own(asked, facts)) {
                    (Way::Options, Some(own)) => own.arguments(asked.steps, facts.lowest),
                    _ => Vec::new(),
                };
                let why =
                    if arguments.is_empty() { why } else { format!("{why}: `{}`", arguments.join(" ")) };
                let why = match named {
                    Some(_) => format!("{why}; the suite names it"),
                    None => passed.into_iter().rev().fold(why, |all, why| format!("{all}; {why}")),
                };
                return Ok(Chosen { way, why, arguments });
            }
            Err(why) => passed.push(format!("`{}` is not possible: {why}", way.name())),
        }
    }
    Err(format!("steps {} cannot be captured: {}", asked.steps, passed.join("; ")))
}

/// The suite's own options come before those of the kind of workload.
fn own(asked: &StepWindow, facts: &Facts) -> Option<Own> {
    match asked.options.is_empty() {
        true => facts.own.clone(),
        false => Some(Own { arguments: asked.options.clone(), reaches: Reaches::EachSession, unfit: None }),
    }
}

/// Why a way can be gone, or why not.
fn allowed(way: Way, asked: &StepWindow, facts: &Facts) -> Result<String, String> {
    match way {
        Way::Options => {
            let own = own(asked, facts).ok_or("the program has no known options that open a window")?;
            if let Some(why) = own.unfit {
                return Err(why);
            }
            match own.reaches {
                Reaches::RankZero if facts.lowest != [0] => Err(format!(
                    "its options call the profiler on rank 0 alone, but the profiled sessions begin with ranks {}",
                    listed(facts.lowest)
                )),
                _ => Ok("the program's own options open it".to_owned()),
            }
        }
        Way::Hook => program::takes_hook(facts.argv)
            .map(|program| format!("a python module counts the steps of optimizers in `{program}`")),
        Way::Watch => match asked.line.as_deref().or(facts.line.map(|(line, _)| line)) {
            Some(_) => Ok("a watcher of the log starts and stops nsys, one line after each step".to_owned()),
            None => Err("the pattern of its step lines is not known; set `step_line`".to_owned()),
        },
        Way::Delay => match (asked.delay_s, asked.duration_s) {
            (Some(delay), Some(duration)) => Ok(format!("by time: from {delay} s on, for {duration} s")),
            _ => Err("`delay_s` and `duration_s` are not both set".to_owned()),
        },
    }
}

fn listed(ranks: &[u32]) -> String {
    let few: Vec<String> = ranks.iter().take(8).map(u32::to_string).collect();
    let more = ranks.len().saturating_sub(few.len());
    few.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::super::Steps;
    use super::*;

    fn asked() -> StepWindow {
        StepWindow {
            steps: Steps { first: 70, last: 75 },
            way: None,
            options: Vec::new(),
            line: None,
            counts_from: 0,
            delay_s: None,
            duration_s: None,
        }
    }

    fn arguments(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn chosen(asked: &StepWindow, argv: &str, own: Option<Own>, lowest: &[u32]) -> Result<Chosen, String> {
        choose(asked, &Facts { argv: &arguments(argv), own, line: None, lowest })
    }

    fn fsdp() -> Own {
        let arguments = arguments("--nsys_start_step={first} --nsys_end_step={last}");
        Own { arguments, reaches: Reaches::RankZero, unfit: None }
    }

    #[test]
    fn unfit_options_are_passed_over_with_the_reason() {
        let unfit = Some("its stop lies behind its break".to_owned());
        let found =
            chosen(&asked(), "torchrun train.py", Some(Own { unfit, ..fsdp() }), &[0]).expect("a way");
        assert_eq!(found.way, Way::Hook);
        assert!(
            found.why.ends_with("`options` is not possible: its stop lies behind its break"),
            "{}",
            found.why
        );
        let each = Own {
            arguments: arguments("--ranks {ranks...} --rest"),
            reaches: Reaches::EachSession,
            unfit: None,
        };
        let found = chosen(&asked(), "torchrun train.py", Some(each), &[0, 8]).expect("a way");
        assert_eq!(found.arguments, arguments("--ranks 0 8 --rest"));
    }

    #[test]
    fn the_program_s_own_options_come_first() {
        let found = chosen(&asked(), "torchrun train.py", Some(fsdp()), &[0]).expect("a way");
        assert_eq!(found.way, Way::Options);
        assert_eq!(found.arguments, arguments("--nsys_start_step=70 --nsys_end_step=75"));
        let why = "the program's own options open it: `--nsys_start_step=70 --nsys_end_step=75`";
        assert_eq!(found.why, why);
        let mut own = asked();
        own.options = arguments("--start {first} --before {end} --ranks {ranks}");
        let found = chosen(&own, "./train", None, &[0, 8]).expect("a way");
        assert_eq!(found.arguments, arguments("--start 70 --before 76 --ranks 0,8"));
    }

    #[test]
    fn options_that_reach_rank_0_alone_are_passed_over_where_another_session_is_watched() {
        let found = chosen(&asked(), "torchrun train.py", Some(fsdp()), &[0, 8]).expect("a way");
        assert_eq!((found.way, found.arguments.len()), (Way::Hook, 0));
        assert!(found.why.contains("rank 0 alone") && found.why.contains("0, 8"), "{}", found.why);
    }

    #[test]
    fn a_program_that_is_no_python_is_watched_by_its_log_and_else_by_seconds() {
        let mut watched = asked();
        watched.line = Some("step ([0-9]+)".to_owned());
        (watched.delay_s, watched.duration_s) = (Some(330), Some(50));
        let found = chosen(&watched, "./train", None, &[0]).expect("a way");
        assert_eq!(found.way, Way::Watch);
        assert!(found.why.contains("`hook` is not possible: "), "{}", found.why);
        watched.line = None;
        assert_eq!(chosen(&watched, "./train", None, &[0]).expect("a way").way, Way::Delay);
        watched.way = Some(Way::Hook);
        let why = chosen(&watched, "./train", None, &[0]).expect_err("no python");
        assert!(why.starts_with("steps 70..75 cannot be captured: `hook` is not possible: "), "{why}");
        let why = chosen(&asked(), "./train", None, &[0]).expect_err("none");
        assert_eq!(why.matches(" is not possible: ").count(), 4, "{why}");
    }

    #[test]
    fn a_method_that_the_suite_names_is_used_although_another_comes_first() {
        let mut named = asked();
        named.way = Some(Way::Hook);
        let found = chosen(&named, "torchrun train.py", Some(fsdp()), &[0]).expect("a way");
        assert_eq!((found.way, found.arguments.len()), (Way::Hook, 0));
    }

    #[test]
    fn messages() {
        let mut lines = Vec::new();
        let mut add = |asked: &StepWindow, argv: &str, own: Option<Own>, lowest: &[u32]| {
            lines.push(match chosen(asked, argv, own, lowest) {
                Ok(chosen) => format!("ok: {}", chosen.why),
                Err(why) => format!("error: {why}"),
            });
        };
        let by = |way| StepWindow { way: Some(way), ..asked() };
        let nemo2 = super::super::own(&arguments("nemo llm pretrain"), asked().steps, None);
        add(&asked(), "./train", None, &[0]);
        add(&asked(), "python -S train.py", None, &[0]);
        add(&by(Way::Options), "torchrun train.py", Some(fsdp()), &[0]);
        add(&by(Way::Options), "torchrun train.py", Some(fsdp()), &[0, 8]);
        add(&by(Way::Options), "nemo llm pretrain", nemo2, &[0]);
        add(&by(Way::Hook), "torchrun train.py", None, &[0]);
        add(&StepWindow { line: Some("step ([0-9]+)".into()), ..by(Way::Watch) }, "./train", None, &[0]);
        let delay = StepWindow { delay_s: Some(330), duration_s: Some(50), ..by(Way::Delay) };
        add(&delay, "./train", None, &[0]);
        insta::assert_snapshot!(lines.join("\n"));
    }
}
