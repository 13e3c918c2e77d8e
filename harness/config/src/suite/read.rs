//! Reads the tables of a suite and its cases. Workloads, assertions and matrices have files of their own.

use super::{
    Case, CaseEnd, Counters, OnFailure, PROBED_PROGRAMS, PYTORCH, Placement, Requires, Suite, Workload,
    assertion, evidence, form, matrix, order, profile, soak, workload,
};
use crate::diagnostic::Diagnostics;
use crate::facts::{FACTS, Requirement, requirements};
use crate::toml_reader::file::stem;
use crate::toml_reader::{self, Table, Value};
use base::suggest::nearest;
use job::profile::{Profile, Window};
use model::artefact::{JOB_PROPERTIES, JobProperties};
use model::fault::NodeFault;
use recipes::catalogue::Catalogue;

pub(super) fn suite(text: &str, file: &str, catalogue: &Catalogue) -> Result<Suite, Diagnostics> {
    toml_reader::read(text, file, |table| {
        let instance = table.need("instance").and_then(|value| value.non_empty_text());
        let about = table.need("about").and_then(|value| value.non_empty_text());
        let tables = table.need("case").and_then(|value| match value.list() {
            Some(list) if list.is_empty() => value.wrong("at least one case"),
            list => list,
        });
        let on_failure = read_on_failure(table);
        let defaults = Defaults::read(table);
        let probe = read_probe(table);
        let alike = read_alike(table).unwrap_or_default();
        table.close(form::file);
        let mut cases = Vec::new();
        for case in tables.unwrap_or_default() {
            let Some(case) = case.table() else { continue };
            for combination in matrix::combinations(&case) {
                cases.push(read_case(&case, &combination, &defaults, catalogue));
            }
        }
        order::check(table.source(), &cases);
        Some(Suite {
            name: stem(file).to_owned(),
            about: about?,
            instance: instance?,
            on_failure,
            probe,
            alike,
            cases: cases.into_iter().map(|(case, _)| case).collect(),
            file: file.to_owned(),
        })
    })
}

/// Bounds on facts, as in `[probe]` of an inventory.
pub(super) fn read_probe(table: &Table<'_>) -> Vec<Requirement> {
    let bounds = table.get("probe").and_then(|value| value.table());
    bounds.map(|bounds| requirements(&bounds)).unwrap_or_default()
}

/// Facts that nodes can be compared by; none where the key is absent.
pub(super) fn read_alike(table: &Table<'_>) -> Option<Vec<String>> {
    let value = table.get("alike")?;
    let names = value.texts();
    let known = || FACTS.iter().filter(|fact| fact.is_alike).map(|fact| fact.name);
    for name in names.iter().filter(|name| !known().any(|known| known == *name)) {
        let message = format!("no fact that nodes can have alike: `{}`", name.escape_debug());
        match nearest(name, known()) {
            Some(near) => value.diagnostic_with(message, format!("did you mean `{near}`?")),
            None => value.diagnostic(message),
        }
    }
    Some(names)
}

pub(super) const ISOLATES: [(&str, bool); 2] = [("isolate", true), ("nothing", false)];

fn read_on_failure(table: &Table<'_>) -> OnFailure {
    let isolates = table.get("on_failure").and_then(|value| value.one_of(&ISOLATES));
    let budget = table.get("isolate_budget_node_h");
    match (isolates, budget) {
        (Some(true), budget) => OnFailure::Isolate {
            budget_node_h: budget.and_then(|value| {
                let hours = value.number()?;
                if hours.is_finite() && hours > 0.0 {
                    return Some(hours);
                }
                value.diagnostic(format!("`isolate_budget_node_h` must be above 0, not: {hours}"));
                None
            }),
        },
        (Some(false) | None, Some(budget)) => {
            budget.diagnostic_with(
                "`isolate_budget_node_h` needs `on_failure = \"isolate\"`",
                "add `on_failure = \"isolate\"`",
            );
            OnFailure::Nothing
        }
        (Some(false) | None, None) => OnFailure::Nothing,
    }
}

/// The places of the parts of a case that are checked against other cases.
pub(super) struct Places {
    pub name: std::ops::Range<usize>,
    pub after: std::ops::Range<usize>,
}

/// What every case of the suite has that says nothing else.
#[derive(Clone, Copy)]
struct Defaults {
    repeats: u32,
    retry_infrastructure: bool,
}

/// More is a day's work on few nodes, and is planned as such.
pub(super) const MOST_REPEATS: u32 = 100;

impl Defaults {
    fn read(table: &Table<'_>) -> Defaults {
        let none = Defaults { repeats: 1, retry_infrastructure: false };
        none.or_as_in(table)
    }

    /// As a table says it, or as it is.
    fn or_as_in(self, table: &Table<'_>) -> Defaults {
        let repeats = table.get("repeats").and_then(|value| value.small(1..=MOST_REPEATS));
        let retries = table.get("retry_infrastructure").and_then(|value| value.small(0..=1));
        Defaults {
            repeats: repeats.unwrap_or(self.repeats),
            retry_infrastructure: retries.map_or(self.retry_infrastructure, |retries| retries > 0),
        }
    }
}

fn read_case(
    table: &Table<'_>,
    combination: &matrix::Combination<'_>,
    defaults: &Defaults,
    catalogue: &Catalogue,
) -> (Case, Places) {
    let name_value = table.need("name");
    let name = name_value.as_ref().and_then(|value| case_name(value, combination));
    let about = table.get("about").and_then(|value| value.non_empty_text()).unwrap_or_default();
    let tags = table.get("tags").map(|value| value.texts()).unwrap_or_default();
    let workload = table.need("workload").and_then(|value| workload::read(&value, combination));
    let stall_s = table.get("workload").and_then(|value| workload::stall_s(&value, workload.as_ref()));
    let placement = read_placement(table, workload.as_ref());
    let (soak, workload) = soak::read(table, workload, placement);
    let recipes = read_recipes(table, catalogue);
    let counters = read_counters(table, workload.as_ref());
    let profile = table.get("profile").and_then(|value| profile::read(&value, workload.as_ref(), placement));
    let recipes = with_window(table, recipes, profile.as_ref());
    let (evidence, profile, recipes) = evidence::read(table, profile, recipes, workload.as_ref(), placement);
    let mut properties = JobProperties { stall_s, ..JobProperties::default() };
    for property in &JOB_PROPERTIES {
        let value = table.get(property.key).and_then(|value| value.whole(property.range.clone()));
        value.into_iter().for_each(|value| (property.set)(&mut properties, value));
    }
    if let Some(soak) = soak {
        soak::limit(table, &soak, &mut properties);
    }
    let requires = table.get("requires").and_then(|value| value.table()).map(|table| read_requires(&table));
    let where_installed = read_where_installed(table, workload.as_ref());
    let after_value = table.get("after");
    let after = after_value.as_ref().map(|value| value.texts()).unwrap_or_default();
    let after = after.iter().map(|name| combination.fill(name)).collect();
    let expected_failure = table.get("expected_failure").and_then(|value| read_reason(&value));
    let ends = CaseEnd::ALL.map(|end| (end.name(), end));
    let must_end = table.get("must_end").and_then(|value| value.one_of(&ends));
    let runs = defaults.or_as_in(table);
    let useless = workload.as_ref().and_then(|workload| workload.refuse_repeats());
    if let (Some((why, instead)), Some(value)) = (useless.filter(|_| runs.repeats > 1), table.get("repeats"))
    {
        value.diagnostic_with(why, instead);
    }
    let sim_faults = table.get("sim_faults").map(|value| read_faults(&value)).unwrap_or_default();
    // Read in `matrix`; asked for here so that it is a known key.
    table.get("matrix");
    let assertions = table.get("assert").and_then(|value| value.list()).unwrap_or_default();
    table.close(form::case);
    // What could not be read stands empty from here on: its error is reported, and the rest of the case is looked at.
    let known = workload.is_some() && placement.is_some();
    let requires = requires.unwrap_or_default();
    let mut case = Case {
        name: name.unwrap_or_default(),
        about: combination.fill(&about),
        tags,
        workload: workload.unwrap_or_else(workload::placeholder),
        placement: placement.unwrap_or(Placement::All),
        recipes: recipes.unwrap_or_default(),
        counters,
        profile,
        evidence,
        properties,
        requires,
        where_installed,
        after,
        expected_failure,
        must_end,
        sim_faults,
        repeats: if useless.is_some() { 1 } else { runs.repeats },
        retry_infrastructure: runs.retry_infrastructure,
        soak,
        assertions: Vec::new(),
        line: table.line(),
    };
    let tables = assertions.iter().filter_map(|value| value.table());
    case.assertions = assertion::read_all(tables, &case, known, catalogue);
    let span = |value: Option<&Value<'_>>| value.map(Value::span).unwrap_or_default();
    let places = Places { name: span(name_value.as_ref()), after: span(after_value.as_ref()) };
    (case, places)
}

/// Only of a program that a probe looks for: of another one nothing reports that it is absent.
fn read_where_installed(table: &Table<'_>, workload: Option<&Workload>) -> bool {
    let Some(value) = table.get("where_installed") else { return false };
    let is_wanted = value.boolean().unwrap_or_default();
    let is_probed = workload.is_none_or(|workload| !workload.probed_programs().is_empty());
    if is_wanted && !is_probed {
        value.diagnostic_with(
            format!(
                "`where_installed` needs a program that the probe looks for: {}",
                [&PROBED_PROGRAMS[..], &[PYTORCH]].concat().join(", ")
            ),
            "delete `where_installed`: a path in `program` is taken to be there",
        );
    }
    is_wanted && is_probed
}

fn case_name(value: &Value<'_>, combination: &matrix::Combination<'_>) -> Option<String> {
    let pattern = value.non_empty_text()?;
    for key in combination.keys() {
        if !pattern.contains(&format!("{{{key}}}")) {
            value.diagnostic_with(
                format!(
                    "the case name must contain every key of its matrix, `{key}` is missing: `{pattern}`"
                ),
                format!("write `{{{key}}}` in it"),
            );
            return None;
        }
    }
    let name = combination.fill(&pattern);
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(odd) = name.chars().find(|c| !allowed(*c)) {
        let message =
            format!("a case name may contain letters, digits, `-`, `_` and `.`, not {odd:?}: {name:?}");
        match odd {
            '{' | '}' => value.diagnostic_with(message, "a key in braces must be one of the case's matrix"),
            _ => value.diagnostic(message),
        }
        return None;
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || name.len() > 100 {
        value.diagnostic(format!(
            "a case name must begin with a letter or digit and have at most 100 characters: `{name}`"
        ));
        return None;
    }
    Some(name)
}

fn read_placement(table: &Table<'_>, workload: Option<&Workload>) -> Option<Placement> {
    let value = match workload.and_then(|workload| workload.usual_placement()) {
        Some(usual) => match table.get("placement") {
            Some(value) => value,
            None => return Some(usual),
        },
        None => table.need("placement")?,
    };
    let placement = match value.raw().get_ref() {
        toml::de::DeValue::Integer(_) => Placement::Nodes(value.small(1..=100_000)?),
        _ => placement_of(&value)?,
    };
    if let Some((why, instead)) = workload.and_then(|workload| workload.refuse_placement(placement)) {
        value.diagnostic_with(why, instead);
        return None;
    }
    Some(placement)
}

/// Those without a number of nodes.
pub(super) const NAMED_PLACEMENTS: [(&str, Placement); 4] = [
    ("all", Placement::All),
    ("each", Placement::Each),
    ("each gpu", Placement::EachGpu),
    ("pairs", Placement::Pairs),
];

fn placement_of(value: &Value<'_>) -> Option<Placement> {
    let text = value.text()?;
    if let Some(size) = text.strip_prefix("groups of ") {
        let size: Option<u32> = size.trim().parse().ok().filter(|size| *size >= 2);
        if size.is_none() {
            value.diagnostic(format!("groups need at least 2 nodes: `{}`", text.escape_debug()));
        }
        return size.map(Placement::Groups);
    }
    let found = NAMED_PLACEMENTS.iter().find(|(name, _)| *name == text).map(|(_, placement)| *placement);
    if found.is_none() {
        let forms = NAMED_PLACEMENTS.iter().map(|(name, _)| *name).chain(["groups of 4"]);
        value.unknown(&text, forms);
    }
    found
}

fn read_recipes(table: &Table<'_>, catalogue: &Catalogue) -> Option<Vec<String>> {
    let value = table.need("recipes")?;
    let known: Vec<&str> = catalogue.job_recipes().map(|recipe| recipe.name).collect();
    let known = known.into_iter();
    let names = value.texts();
    for name in &names {
        if !known.clone().any(|known| known == name) {
            let item = value.list().unwrap_or_default().into_iter().find(|item| item.is_text(name));
            item.as_ref().unwrap_or(&value).unknown(name, known.clone());
        }
    }
    Some(names)
}

/// A window of steps is verified whether the suite asks for it or not; where there is none, there is nothing to verify.
fn with_window(
    table: &Table<'_>,
    recipes: Option<Vec<String>>,
    profile: Option<&Profile>,
) -> Option<Vec<String>> {
    let mut recipes = recipes?;
    let name = recipes::recipe::window::SPEC.name;
    let has_steps = profile.is_some_and(|profile| matches!(profile.window, Window::Steps(_)));
    let is_named = recipes.iter().any(|recipe| recipe == name);
    match (has_steps, is_named, table.get("recipes")) {
        (true, false, _) => recipes.push(name.to_owned()),
        (false, true, Some(value)) if table.get("profile").is_none_or(|_| profile.is_some()) => value
            .diagnostic_with(
                "recipe `window` needs a step window, and this case has none",
                "write `steps = \"FIRST..LAST\"` in its `profile`",
            ),
        _ => {}
    }
    Some(recipes)
}

fn read_counters(table: &Table<'_>, workload: Option<&Workload>) -> Counters {
    let enabled = workload.is_none_or(|workload| workload.reads_counters());
    let mut counters = Counters { enabled, interval_s: 1.0, between: None };
    let Some(value) = table.get("counters") else { return counters };
    if let toml::de::DeValue::Boolean(enabled) = value.raw().get_ref() {
        counters.enabled = *enabled;
        return counters;
    }
    let Some(table) = value.table() else { return counters };
    let interval = table.get("interval_s");
    let between = table.get("between");
    table.close(form::counters);
    counters.enabled = true;
    if let (Some(_), Some(between)) = (&interval, &between) {
        between.diagnostic("`between` and `interval_s` exclude each other");
    }
    if let Some(seconds) = interval.and_then(|value| value.number().map(|seconds| (value, seconds))) {
        let (value, seconds) = seconds;
        if (0.2..=3600.0).contains(&seconds) {
            counters.interval_s = seconds;
        } else {
            value.diagnostic(format!("`interval_s` must lie between 0.2 and 3600, not: {seconds}"));
        }
    }
    counters.between = between.and_then(|value| value.small(1..=10_000));
    counters
}

fn read_requires(table: &Table<'_>) -> Requires {
    let min = table.get("min_nodes").and_then(|value| value.small(1..=100_000));
    let max = table.get("max_nodes").and_then(|value| value.small(1..=100_000));
    let power = table.get("ranks_power_of_two").and_then(|value| value.boolean());
    table.close(form::requires);
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        table.diagnostic(format!("`min_nodes` is above `max_nodes`: {min} > {max}"));
    }
    Requires { min_nodes: min, max_nodes: max, ranks_power_of_two: power.unwrap_or(false) }
}

fn read_reason(value: &Value<'_>) -> Option<String> {
    match value.raw().get_ref() {
        toml::de::DeValue::String(text) if !text.trim().is_empty() => Some(text.to_string()),
        _ => {
            value.diagnostic_with("an expected failure needs a reason", "write the reason as a text");
            None
        }
    }
}

fn read_faults(value: &Value<'_>) -> Vec<NodeFault> {
    let items = value.list().unwrap_or_default();
    items.iter().filter_map(|item| item.parsed(NodeFault::parse(&item.non_empty_text()?))).collect()
}
