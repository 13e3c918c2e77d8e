//! Which of a plan's assertions are wanted, by name; and with them only the jobs that they read.

use model::artefact::{ControlRun, Plan, PlannedJob};
use std::collections::BTreeSet;

/// libtest's vocabulary: a filter, `--exact`, `--skip`; all of it among the names of `only`, where there are some.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// What a rerun has pending; all where absent.
    pub only: Option<BTreeSet<String>>,
    /// A part of the name, or all of it with `exact`.
    pub filter: Option<String>,
    /// `--exact`: filter and skip are whole names, not parts.
    pub exact: bool,
    /// `--skip`: of those selected, these are not.
    pub skip: Vec<String>,
}

impl Selection {
    /// Whether an assertion of this name is selected.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let matches = |pattern: &str| if self.exact { name == pattern } else { name.contains(pattern) };
        self.only.as_ref().is_none_or(|only| only.contains(name))
            && self.filter.as_deref().is_none_or(matches)
            && !self.skip.iter().any(|pattern| matches(pattern))
    }

    fn is_all(&self) -> bool {
        self.only.is_none() && self.filter.is_none() && self.skip.is_empty()
    }
}

/// The plan with what is selected, the jobs that it reads, and the cases that it comes after.
pub fn select(mut plan: Plan, selection: &Selection) -> Plan {
    if selection.is_all() {
        return plan;
    }
    let mut needed: BTreeSet<(String, String)> = BTreeSet::new();
    for case in plan.cases.iter().rev() {
        let wanted = case.assertions.iter().any(|assertion| selection.wants(&assertion.name));
        if wanted || needed.contains(&(case.suite.clone(), case.name.clone())) {
            needed.insert((case.suite.clone(), case.name.clone()));
            needed.extend(case.after.iter().map(|name| (case.suite.clone(), name.clone())));
        }
    }
    // Cases may come after cases that stand later in the file; so repeat until nothing is added.
    loop {
        let before = needed.len();
        for case in &plan.cases {
            if needed.contains(&(case.suite.clone(), case.name.clone())) {
                needed.extend(case.after.iter().map(|name| (case.suite.clone(), name.clone())));
            }
        }
        if needed.len() == before {
            break;
        }
    }
    plan.cases.retain(|case| needed.contains(&(case.suite.clone(), case.name.clone())));
    for case in &mut plan.cases {
        let wanted = case.assertions.iter().any(|assertion| selection.wants(&assertion.name));
        // A case that others come after is judged whole: its verdict opens or shuts their way.
        if wanted {
            case.assertions.retain(|assertion| selection.wants(&assertion.name));
            let read: BTreeSet<&str> =
                case.assertions.iter().flat_map(|assertion| &assertion.jobs).map(String::as_str).collect();
            let read = with_control_run(&case.jobs, read);
            case.jobs.retain(|job| read.contains(&job.name));
        }
    }
    plan
}

/// The jobs that are read, and those that take their place: without the profiler, and as second attempts.
fn with_control_run<'a>(jobs: &'a [PlannedJob], mut read: BTreeSet<&'a str>) -> BTreeSet<String> {
    for job in jobs {
        if let Some(ControlRun::Bare { of, .. }) = &job.control_run
            && read.contains(of.as_str())
        {
            read.insert(&job.name);
        }
    }
    let again = jobs.iter().filter(|job| job.again_of.as_deref().is_some_and(|first| read.contains(first)));
    again.map(|job| job.name.clone()).chain(read.iter().map(|name| (*name).to_owned())).collect()
}
