//! The verdicts of two runs, by the names of their assertions.

use crate::history::past::Run;
use model::artefact::{Status, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Default, Serialize)]
pub struct Verdicts {
    /// Those that are others now, the worse ones first.
    pub changed: Vec<Changed>,
    pub same: usize,
    /// Measured, and judged or not, in both.
    pub told_in_both: usize,
    /// Those that tell nothing in the second run, though they are no others than in the first.
    pub untold_in_both: Vec<String>,
    pub only_a: Vec<String>,
    pub only_b: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    pub name: String,
    pub from: Status,
    pub to: Status,
    pub turned: Turned,
    /// What the second run says of it.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turned {
    Worse,
    /// The second run tells nothing of it.
    Untold,
    /// Red now, and nobody knows what it was.
    Red,
    Better,
    /// What was not known is, and is no failure.
    Known,
}

impl Turned {
    pub fn word(self) -> &'static str {
        match self {
            Turned::Worse => "worse",
            Turned::Untold => "untold",
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
        if says(was) != Says::Nothing && says(is) != Says::Nothing {
            verdicts.told_in_both += 1;
        }
        if was.status == is.status {
            verdicts.same += 1;
            if says(is) == Says::Nothing && is.status != Status::Skipped {
                verdicts.untold_in_both.push((*name).to_owned());
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
enum Says {
    Good,
    Bad,
    /// Measured, with nothing to tell by.
    Open,
    Nothing,
}

fn says(verdict: &Verdict) -> Says {
    match verdict.status {
        Status::Pass => Says::Good,
        Status::Fail | Status::UnexpectedPass | Status::ExpectedFailure => Says::Bad,
        Status::Unjudged => Says::Open,
        Status::Inconclusive if verdict.cause.is_none() && verdict.observed.is_some() => Says::Open,
        Status::Inconclusive | Status::Error | Status::Skipped => Says::Nothing,
    }
}

pub(super) fn turned(was: &Verdict, is: &Verdict) -> Turned {
    match (says(was), says(is)) {
        (_, Says::Nothing) => Turned::Untold,
        (Says::Good, Says::Bad | Says::Open) => Turned::Worse,
        (_, Says::Bad) => Turned::Red,
        (Says::Bad, _) => Turned::Better,
        _ => Turned::Known,
    }
}

impl Verdicts {
    fn count(&self, turned: Turned) -> usize {
        self.changed.iter().filter(|one| one.turned == turned).count()
    }

    pub fn worse(&self) -> usize {
        self.count(Turned::Worse)
    }

    /// Those from which nothing can be said of the second run, or of what it was before.
    pub fn untold(&self) -> usize {
        self.count(Turned::Untold) + self.count(Turned::Red) + self.untold_in_both.len()
    }
}
