//! The verdicts of two runs, by the names of their assertions.

use crate::history::past::Run;
use model::artefact::{Status, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;

/// The assertions of both runs, by name.
#[derive(Debug, Default, Serialize)]
pub struct Verdicts {
    /// Those that changed, the worse ones first.
    pub changed: Vec<Changed>,
    /// Assertions of equal status in both runs.
    pub same: usize,
    /// Measured, and judged or not, in both.
    #[serde(rename = "told_in_both")]
    pub known_in_both: usize,
    /// Without a result in both runs.
    #[serde(rename = "untold_in_both")]
    pub unknown_in_both: Vec<String>,
    /// Names of assertions that only the first run has.
    pub only_a: Vec<String>,
    /// Names of assertions that only the second run has.
    pub only_b: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    pub name: String,
    pub from: Status,
    pub to: Status,
    pub turned: Turned,
    /// Its message in the second run.
    pub message: String,
}

/// How a verdict changed. The order is that of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turned {
    /// Passed before; now failed, or without anything to compare with.
    Worse,
    /// No result in the second run.
    #[serde(rename = "untold")]
    Unknown,
    /// Red now, without a result before.
    Red,
    /// Red before; now passed, or without anything to compare with.
    Better,
    /// No result before, and no failure now.
    Known,
}

impl Turned {
    /// As `harness compare` prints it.
    pub fn word(self) -> &'static str {
        match self {
            Turned::Worse => "worse",
            Turned::Unknown => "unknown",
            Turned::Red => "red",
            Turned::Better => "better",
            Turned::Known => "known",
        }
    }
}

pub(super) fn compare(a: &Run, b: &Run) -> Verdicts {
    let (of_a, of_b) = (by_name(a), by_name(b));
    let mut verdicts = Verdicts {
        only_a: of_a.keys().filter(|name| !of_b.contains_key(*name)).map(|name| (*name).to_owned()).collect(),
        only_b: of_b.keys().filter(|name| !of_a.contains_key(*name)).map(|name| (*name).to_owned()).collect(),
        ..Verdicts::default()
    };
    for (name, was) in &of_a {
        let Some(is) = of_b.get(name) else { continue };
        if finding(was) != Finding::Nothing && finding(is) != Finding::Nothing {
            verdicts.known_in_both += 1;
        }
        if was.status == is.status {
            verdicts.same += 1;
            if finding(is) == Finding::Nothing && is.status != Status::Skipped {
                verdicts.unknown_in_both.push((*name).to_owned());
            }
            continue;
        }
        verdicts.changed.push(Changed {
            name: (*name).to_owned(),
            from: was.status,
            to: is.status,
            turned: turned(was, is),
            message: is.message.clone(),
        });
    }
    verdicts.changed.sort_by(|x, y| (x.turned, &x.name).cmp(&(y.turned, &y.name)));
    verdicts
}

fn by_name(run: &Run) -> BTreeMap<&str, &Verdict> {
    let all = run.cases.iter().flat_map(|case| &case.verdicts);
    all.map(|verdict| (verdict.name.as_str(), verdict)).collect()
}

#[derive(PartialEq, Eq)]
enum Finding {
    Good,
    Bad,
    /// Measured, with nothing to compare with.
    Open,
    Nothing,
}

fn finding(verdict: &Verdict) -> Finding {
    match verdict.status {
        Status::Pass => Finding::Good,
        Status::Fail | Status::UnexpectedPass | Status::ExpectedFailure => Finding::Bad,
        Status::Unjudged => Finding::Open,
        Status::Inconclusive if verdict.cause.is_none() && verdict.observed.is_some() => Finding::Open,
        Status::Inconclusive | Status::Error | Status::Skipped => Finding::Nothing,
    }
}

pub(super) fn turned(was: &Verdict, is: &Verdict) -> Turned {
    match (finding(was), finding(is)) {
        (_, Finding::Nothing) => Turned::Unknown,
        (Finding::Good, Finding::Bad | Finding::Open) => Turned::Worse,
        (_, Finding::Bad) => Turned::Red,
        (Finding::Bad, _) => Turned::Better,
        _ => Turned::Known,
    }
}

impl Verdicts {
    fn count(&self, turned: Turned) -> usize {
        self.changed.iter().filter(|one| one.turned == turned).count()
    }

    /// How many passed before, and are now red or without anything to compare with.
    pub(crate) fn worse(&self) -> usize {
        self.count(Turned::Worse)
    }

    /// Those without a result in the second run, or red without a result in the first.
    pub(crate) fn unknown(&self) -> usize {
        self.count(Turned::Unknown) + self.count(Turned::Red) + self.unknown_in_both.len()
    }
}
