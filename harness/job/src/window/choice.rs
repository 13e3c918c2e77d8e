//! In which way a window is opened: the first that the workload allows, or the one that its suite names. Every way that is
//! passed over has its reason, and where none is left all are told.

use super::program::{self, Own, Reaches};
use super::{StepWindow, Way};

/// What is known of the workload.
pub struct Facts<'a> {
    pub argv: &'a [String],
    /// The program's own options, where the kind of workload has some.
    pub own: Option<Own>,
    /// How the kind's log shows a step, and the number of its first; where the kind has one.
    pub line: Option<(&'a str, u32)>,
    /// The lowest rank of each session of nsys, among all processes of the job.
    pub lowest: &'a [u32],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub way: Way,
    pub why: String,
    /// What is put behind the program's own words.
    pub words: Vec<String>,
}

pub fn choose(asked: &StepWindow, facts: &Facts) -> Result<Chosen, String> {
    let named = asked.way;
    let mut passed = Vec::new();
    for way in Way::ALL.into_iter().filter(|way| named.is_none_or(|named| named == *way)) {
        match allowed(way, asked, facts) {
            Ok(why) => {
                let words = match (way, own(asked, facts)) {
                    (Way::Options, Some(own)) => own.words(asked.steps, facts.lowest),
                    _ => Vec::new(),
                };
                let why =
                    if words.is_empty() { why } else { format!("{why}, told by `{}`", words.join(" ")) };
                let why = match named {
                    Some(_) => format!("{why}; the suite names it"),
                    None => passed.into_iter().rev().fold(why, |all, why| format!("{all}; {why}")),
                };
                return Ok(Chosen { way, why, words });
            }
            Err(why) => passed.push(format!("not by `{}`: {why}", way.name())),
        }
    }
    Err(format!("no way to watch steps {} of it: {}", asked.steps, passed.join("; ")))
}

/// The suite's own words come before what is known of the kind.
fn own(asked: &StepWindow, facts: &Facts) -> Option<Own> {
    match asked.options.is_empty() {
        true => facts.own.clone(),
        false => Some(Own { words: asked.options.clone(), reaches: Reaches::EachSession, unfit: None }),
    }
}

/// Why a way can be gone, or why not.
fn allowed(way: Way, asked: &StepWindow, facts: &Facts) -> Result<String, String> {
    match way {
        Way::Options => {
            let own = own(asked, facts).ok_or("no options of the program are known that open a window")?;
            if let Some(why) = own.unfit {
                return Err(why);
            }
            match own.reaches {
                Reaches::RankZero if facts.lowest != [0] => Err(format!(
                    "its options call the profiler on rank 0 alone, and profiled are sessions that begin with ranks: {}",
                    shown(facts.lowest)
                )),
                _ => Ok("the program's own options open it".to_owned()),
            }
        }
        Way::Hook => program::takes_hook(facts.argv)
            .map(|program| format!("a python module counts the steps of optimizers in `{program}`")),
        Way::Watch => match asked.line.as_deref().or(facts.line.map(|(line, _)| line)) {
            Some(_) => Ok("a watcher of the log starts and stops nsys, a line behind each step".to_owned()),
            None => Err("nothing says how a line of its log shows a step, `step_line` would".to_owned()),
        },
        Way::Delay => match (asked.delay_s, asked.duration_s) {
            (Some(delay), Some(duration)) => {
                Ok(format!("seconds are guessed: from {delay} s on, for {duration} s"))
            }
            _ => Err("`delay_s` and `duration_s` are not both there".to_owned()),
        },
    }
}

fn shown(ranks: &[u32]) -> String {
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

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn chosen(asked: &StepWindow, argv: &str, own: Option<Own>, lowest: &[u32]) -> Result<Chosen, String> {
        choose(asked, &Facts { argv: &words(argv), own, line: None, lowest })
    }

    fn fsdp() -> Own {
        let words = words("--nsys_start_step={first} --nsys_end_step={last}");
        Own { words, reaches: Reaches::RankZero, unfit: None }
    }

    #[test]
    fn options_that_would_not_do_are_passed_over_with_the_reason() {
        let unfit = Some("its stop lies behind its break".to_owned());
        let found =
            chosen(&asked(), "torchrun train.py", Some(Own { unfit, ..fsdp() }), &[0]).expect("a way");
        assert_eq!(found.way, Way::Hook);
        assert!(found.why.ends_with("not by `options`: its stop lies behind its break"), "{}", found.why);
        let each =
            Own { words: words("--ranks {ranks...} --rest"), reaches: Reaches::EachSession, unfit: None };
        let found = chosen(&asked(), "torchrun train.py", Some(each), &[0, 8]).expect("a way");
        assert_eq!(found.words, words("--ranks 0 8 --rest"));
    }

    #[test]
    fn the_program_s_own_options_come_first() {
        let found = chosen(&asked(), "torchrun train.py", Some(fsdp()), &[0]).expect("a way");
        assert_eq!(found.way, Way::Options);
        assert_eq!(found.words, words("--nsys_start_step=70 --nsys_end_step=75"));
        let why = "the program's own options open it, told by `--nsys_start_step=70 --nsys_end_step=75`";
        assert_eq!(found.why, why);
        let mut own = asked();
        own.options = words("--start {first} --before {end} --ranks {ranks}");
        let found = chosen(&own, "./train", None, &[0, 8]).expect("a way");
        assert_eq!(found.words, words("--start 70 --before 76 --ranks 0,8"));
    }

    #[test]
    fn options_that_reach_rank_0_alone_are_passed_over_where_another_session_is_watched() {
        let found = chosen(&asked(), "torchrun train.py", Some(fsdp()), &[0, 8]).expect("a way");
        assert_eq!((found.way, found.words.len()), (Way::Hook, 0));
        assert!(found.why.contains("rank 0 alone") && found.why.contains("0, 8"), "{}", found.why);
    }

    #[test]
    fn a_program_that_is_no_python_is_watched_by_its_log_and_else_by_seconds() {
        let mut watched = asked();
        watched.line = Some("step ([0-9]+)".to_owned());
        (watched.delay_s, watched.duration_s) = (Some(330), Some(50));
        let found = chosen(&watched, "./train", None, &[0]).expect("a way");
        assert_eq!(found.way, Way::Watch);
        assert!(found.why.contains("not by `hook`: "), "{}", found.why);
        watched.line = None;
        assert_eq!(chosen(&watched, "./train", None, &[0]).expect("a way").way, Way::Delay);
        watched.way = Some(Way::Hook);
        let why = chosen(&watched, "./train", None, &[0]).expect_err("no python");
        assert!(why.starts_with("no way to watch steps 70..75 of it: not by `hook`: "), "{why}");
        let why = chosen(&asked(), "./train", None, &[0]).expect_err("none");
        assert_eq!(why.matches("not by `").count(), 4, "{why}");
    }

    #[test]
    fn a_way_that_the_suite_names_is_gone_though_another_would_come_first() {
        let mut named = asked();
        named.way = Some(Way::Hook);
        let found = chosen(&named, "torchrun train.py", Some(fsdp()), &[0]).expect("a way");
        assert_eq!((found.way, found.words.len()), (Way::Hook, 0));
    }
}
