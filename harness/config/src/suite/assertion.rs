//! Reads the assertions of a case, checked against the metrics of its recipes and the sizes of its sweep.

use super::{Assertion, Bound, Case, EvidenceSource, NcclTests, Per, Place, Placement, form};
use crate::toml_reader::quantity::{quantity_of, share_of, size_of};
use crate::toml_reader::{Table, Value};
use base::size;
use base::suggest::nearest;
use metric::{Dim, MetricSpec, Names, Role};
use recipes::catalogue::Catalogue;
use recipes::kernel_class::CLASSES;
use recipes::recipe::{inspector, nccl_tests};
use std::collections::BTreeMap;

pub(super) const PLACES: [(&str, Place); 3] =
    [("out", Place::OutOfPlace), ("in", Place::InPlace), ("both", Place::Both)];
pub(super) const PERS: [(&str, Per); 4] =
    [("job", Per::Job), ("node", Per::Node), ("nic", Per::Nic), ("gpu", Per::Gpu)];
pub(super) const SEVERITIES: [(&str, bool); 2] = [("fail", false), ("warn", true)];
pub(super) const AGAINST: [(&str, ()); 1] = [("baseline", ())];

/// `known`: workload and placement could be read; without them only the rest is checked.
pub(super) fn read_all<'a>(
    tables: impl Iterator<Item = Table<'a>>,
    case: &Case,
    known: bool,
    catalogue: &Catalogue,
) -> Vec<Assertion> {
    let mut assertions = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for table in tables {
        let Some(assertion) = read(&table, case, known, catalogue) else { continue };
        for key in keys(&assertion) {
            match seen.get(&key) {
                Some(line) => table.diagnostic_with(
                    format!("duplicate of the assertion in line {line}: {key}"),
                    "merge both bounds into one, or give each a name",
                ),
                None => {
                    seen.insert(key, assertion.line);
                }
            }
        }
        assertions.push(assertion);
    }
    assertions
}

fn read(table: &Table<'_>, case: &Case, known: bool, catalogue: &Catalogue) -> Option<Assertion> {
    let name = table.get("name").and_then(|value| label(&value));
    let metric_value = table.need("metric");
    let metric = metric_value.as_ref().and_then(|value| metric_of(value, case, catalogue));
    let size_value = table.get("size");
    let place_value = table.get("place");
    let place = read_place(place_value.as_ref(), case, known);
    let per_value = table.get("per");
    let per = per_value.as_ref().map_or(Some(Per::Job), |value| value.one_of(&PERS));
    let subjects = [("kernel", Dim::Kernel), ("class", Dim::Class)].map(|(key, dim)| (dim, table.get(key)));
    let bound = read_bound(table, metric, case);
    table.close(form::assertion);
    let metric = metric?;
    let of = subject(&subjects, metric_value.as_ref()?, metric);
    check_profile(metric_value.as_ref()?, metric, case, catalogue);
    let sizes = sizes_of(size_value.as_ref(), metric, case, known);
    if let Some(value) = place_value.filter(|_| !metric.dims.contains(&Dim::Place)) {
        value.diagnostic(format!("metric `{}` has no `place`", metric.name));
    }
    if let (Some(per), Some(value), true) = (per, &per_value, known) {
        check_per(per, value, metric, case);
    }
    Some(Assertion {
        name,
        metric: metric.name.to_string(),
        sizes: sizes?,
        place: place?,
        per: per?,
        of: of?,
        bound: bound?,
        line: table.line(),
    })
}

/// A placement that the workload has.
fn read_place(value: Option<&Value<'_>>, case: &Case, known: bool) -> Option<Place> {
    let tests = case.workload.collective().filter(|_| known);
    let usual = tests.map_or(Place::OutOfPlace, NcclTests::usual_place);
    let Some(value) = value else { return Some(usual) };
    let place = value.one_of(&PLACES)?;
    if let Some(tests) = tests
        && place != Place::Both
        && ![Place::Both, place].contains(&tests.places())
    {
        let name =
            |place: Place| PLACES.iter().find(|(_, known)| *known == place).map_or("", |(name, _)| *name);
        let message = format!("PyTorch's {} has no placement `{}`", tests.op.name(), name(place));
        value.diagnostic_with(message, format!("write `place = \"{}\"`, or remove `place`", name(usual)));
        return None;
    }
    Some(place)
}

fn label(value: &Value<'_>) -> Option<String> {
    let text = value.non_empty_text()?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    if !text.chars().all(allowed) {
        value.diagnostic(format!(
            "an assertion name may contain letters, digits, blanks, `-`, `_` and `.`: {text:?}"
        ));
        return None;
    }
    Some(text)
}

fn metric_of<'a>(value: &Value<'_>, case: &Case, catalogue: &'a Catalogue) -> Option<&'a MetricSpec> {
    let name = value.non_empty_text()?;
    let own = || {
        let given =
            catalogue.job_recipes().filter(|spec| case.recipes.iter().any(|recipe| recipe == spec.name));
        given.flat_map(|spec| spec.metrics)
    };
    if let Some(metric) = own().find(|metric| metric.name == name) {
        if metric.name == inspector::OVERHEAD.name && !has_control_run(case) {
            let instead = match case.evidence.order.is_empty() {
                true => "add `control_run = true` to `evidence`",
                false => "list `nsys` and `inspector`, and add `unprofiled_control_run = true` to `profile`",
            };
            value.diagnostic_with(
                format!("`{name}` compares with a run without Inspector, and this case has none"),
                instead,
            );
            return None;
        }
        return Some(metric);
    }
    let lower = name.to_lowercase();
    let shown = name.escape_debug();
    if lower.starts_with("nccl")
        && (lower.contains("avg") || lower.contains("average") || lower.contains("mean"))
    {
        value.diagnostic_with(
            format!(
                "the average of nccl-tests cannot be asserted, the smallest sizes dominate it: `{shown}`"
            ),
            format!("assert `{}` at named sizes", nccl_tests::BUSBW.name),
        );
        return None;
    }
    let giver = catalogue.job_recipes().find(|spec| spec.metrics.iter().any(|metric| metric.name == name));
    if let Some(giver) = giver {
        value.diagnostic_with(
            format!("no recipe of the case gives `{name}`"),
            format!("add `{}` to `recipes`", giver.name),
        );
        return None;
    }
    let own: Vec<&str> = own().map(|metric| &*metric.name).collect();
    let all = catalogue.metrics().map(|metric| &*metric.name);
    // `busbw` for `nccl.busbw`.
    let by_last = own.iter().copied().find(|own| own.rsplit('.').next() == Some(name.as_str()));
    match by_last.or_else(|| nearest(&name, own.iter().copied())).or_else(|| nearest(&name, all)) {
        Some(near) => {
            value.diagnostic_with(format!("unknown metric: `{shown}`"), format!("did you mean `{near}`?"))
        }
        None => {
            let there = format!("the case's recipes give `{}`", own.join("`, `"));
            value.diagnostic_with(format!("unknown metric: `{shown}`"), there);
        }
    }
    None
}

/// `None` where the sizes named are themselves errors.
fn sizes_of(value: Option<&Value<'_>>, metric: &MetricSpec, case: &Case, known: bool) -> Option<Vec<u64>> {
    if !metric.dims.contains(&Dim::SizeBytes) {
        if let Some(value) = value {
            value.diagnostic(format!("metric `{}` has no `size`", metric.name));
        }
        return Some(Vec::new());
    }
    let (Some(tests), true) = (case.workload.collective(), known) else {
        if let Some(value) = value.filter(|_| known) {
            value.diagnostic("this workload has no sizes");
        }
        return None;
    };
    let sweep = tests.sizes();
    let Some(value) = value.filter(|value| !value.is_text("all")) else { return Some(Vec::new()) };
    let values = match value.raw().get_ref() {
        toml::de::DeValue::Array(_) => value.list().unwrap_or_default(),
        _ => vec![value.clone()],
    };
    if values.is_empty() {
        value.diagnostic_with("`size` is an empty list", "remove it to assert every size of the sweep");
    }
    let mut sizes = Vec::new();
    for value in &values {
        let Some(size) = size_of(value) else { continue };
        if sizes.contains(&size) {
            value.diagnostic(format!("duplicate size: {}", size::show(size)));
        } else if !sweep.contains(&size) {
            not_swept(value, size, &sweep);
        } else {
            sizes.push(size);
        }
    }
    (!sizes.is_empty()).then_some(sizes)
}

fn not_swept(value: &Value<'_>, size: u64, sweep: &[u64]) {
    let (first, last) = (sweep.first().copied().unwrap_or(0), sweep.last().copied().unwrap_or(0));
    let shown = size::show(size);
    if size < first || size > last {
        let range = format!("it goes from {} to {}", size::show(first), size::show(last));
        value.diagnostic_with(format!("{shown} is outside the sweep"), range);
        return;
    }
    let near = sweep.iter().min_by_key(|swept| swept.abs_diff(size)).copied().unwrap_or(first);
    let suggestion = format!("the nearest is {}", size::show(near));
    value.diagnostic_with(format!("{shown} is not a size of the sweep"), suggestion);
}

fn check_per(per: Per, value: &Value<'_>, metric: &MetricSpec, case: &Case) {
    // Every GPU by itself: the output of nccl-tests is then that of one node and GPU.
    let each_gpu = case.placement == Placement::EachGpu && metric.names == Names::GpuAlone;
    let has = |dim: Dim| metric.dims.contains(&dim) || (each_gpu && matches!(dim, Dim::Node | Dim::Gpu));
    let wanted = match per {
        Per::Job => return,
        Per::Node => Dim::Node,
        Per::Nic => Dim::Nic,
        Per::Gpu => Dim::Gpu,
    };
    if has(wanted) {
        return;
    }
    let message = format!("`{}` is not measured per {}", metric.name, per.name());
    let may: Vec<&str> = [(Per::Node, Dim::Node), (Per::Nic, Dim::Nic), (Per::Gpu, Dim::Gpu)]
        .into_iter()
        .filter(|(_, dim)| has(*dim))
        .map(|(per, _)| per.name())
        .collect();
    match (per, may.as_slice()) {
        (Per::Node, []) if case.placement == Placement::Each => {
            value.diagnostic_with(message, "each job is one node here, remove `per`");
        }
        (_, []) => value.diagnostic_with(message, "remove `per`"),
        (_, may) => value.diagnostic_with(message, format!("it is per `{}`", may.join("` and `"))),
    }
}

/// The kernel or class that a metric of kernels is asked of: one that has such a dimension needs it, and no other may.
fn subject(
    subjects: &[(Dim, Option<Value<'_>>); 2],
    metric_value: &Value<'_>,
    metric: &MetricSpec,
) -> Option<Option<(Dim, String)>> {
    let mut of = None;
    let mut sound = true;
    for (dim, value) in subjects {
        match (metric.dims.contains(dim), value) {
            (true, Some(value)) => match value.non_empty_text() {
                Some(word) if *dim == Dim::Class && !CLASSES.contains(&word.as_str()) => {
                    value.unknown(&word, CLASSES.iter().copied());
                    sound = false;
                }
                Some(word) => of = Some((*dim, word)),
                None => sound = false,
            },
            (true, None) => {
                let key = dim.name();
                let message = format!("`{}` needs a {key}", metric.name);
                metric_value.diagnostic_with(message, format!("write `{key} = \"...\"`"));
                sound = false;
            }
            (false, Some(value)) => {
                value.diagnostic(format!("metric `{}` has no `{}`", metric.name, dim.name()));
                sound = false;
            }
            (false, None) => {}
        }
    }
    sound.then_some(of)
}

/// Whether each job that Inspector records runs without it as well.
fn has_control_run(case: &Case) -> bool {
    let of_profile = || case.profile.as_ref().and_then(|profile| profile.unprofiled_control_run);
    let is_listed = case.evidence.order.contains(&EvidenceSource::Inspector);
    case.evidence.control_run.is_some() || (is_listed && of_profile().is_some())
}

/// A number that is read from reports needs a profiler that traces what it is read from.
fn check_profile(value: &Value<'_>, metric: &MetricSpec, case: &Case, catalogue: &Catalogue) {
    let Some((recipe, _)) = catalogue.metric(&metric.name).filter(|(recipe, _)| !recipe.tables.is_empty())
    else {
        return;
    };
    let Some(profile) = &case.profile else {
        if case.evidence.inspector && recipe.reads_inspector {
            return;
        }
        value.diagnostic_with(
            format!("`{}` is read from profiler reports, but the case has no `profile`", metric.name),
            "add `[case.profile]`",
        );
        return;
    };
    let needs = |table: &str| match table {
        "CUPTI_ACTIVITY_KIND_KERNEL" => Some("cuda"),
        "NVTX_EVENTS" => Some("nvtx"),
        "OSRT_API" => Some("osrt"),
        _ => None,
    };
    for trace in recipe.tables.iter().filter_map(|table| needs(table.name)) {
        if !profile.trace.iter().any(|traced| traced == trace) {
            value.diagnostic_with(
                format!("`{}` needs trace `{trace}`, which the profile does not have", metric.name),
                format!("add \"{trace}\" to `trace`"),
            );
        }
    }
}

fn read_bound(table: &Table<'_>, metric: Option<&MetricSpec>, case: &Case) -> Option<Bound> {
    let values = ["at_least", "at_most", "equals"].map(|key| table.get(key));
    let against = table.get("against");
    let peers = table.get("within_peers");
    let spread_value = table.get("spread");
    let severity = table.get("severity");
    let warn = severity.is_some_and(|value| value.one_of(&SEVERITIES) == Some(true));
    let count =
        values.iter().flatten().count() + usize::from(against.is_some()) + usize::from(peers.is_some());
    if let (0, Some(value), true) = (count, &spread_value, case.repeats < 2) {
        value.diagnostic_with(
            "`spread` without a bound needs repeats, and this case has none",
            "set `repeats = 3` in the case, or add a bound to the assertion",
        );
    }
    if count == 0 && spread_value.is_none() && !table.source().is_broken() {
        table.diagnostic_with(
            "an assertion needs a bound",
            "add `at_least`, `at_most`, `equals`, `against` or `within_peers`",
        );
    }
    let baseline = against.is_some_and(|value| value.one_of(&AGAINST).is_some());
    let within_peers = peers.as_ref().and_then(share_of);
    let spread = spread_value.as_ref().and_then(share_of);
    let metric = metric?;
    if let (Some(value), false) = (&spread_value, is_measured(metric)) {
        value.diagnostic_with(
            format!("`{}` is a count and has no spread", metric.name),
            "remove `spread`: each run is compared with the bound separately",
        );
    }
    let [at_least, at_most, equals] =
        values.each_ref().map(|value| value.as_ref().and_then(|value| quantity_of(value, metric.unit)));
    if let (Some(low), Some(high), [_, Some(value), _]) = (at_least, at_most, &values)
        && low > high
    {
        let [low, high] = [low, high].map(|bound| metric.unit.show(bound));
        value.diagnostic(format!("`at_most` is below `at_least`: {high} < {low}"));
    }
    if let ([_, _, Some(value)], true) = (&values, count > 1) {
        value.diagnostic("`equals` excludes other bounds");
    }
    Some(Bound { at_least, at_most, equals, baseline, within_peers, spread, warn })
}

/// Whether runs of the same differ in it a little; what is counted must hold in every run, and the rate of a NIC is
/// judged over its rounds.
fn is_measured(metric: &MetricSpec) -> bool {
    metric.unit.varies() && !metric.is(Role::OverRounds)
}

/// The identity of an assertion within its case, once for each size and place.
fn keys(assertion: &Assertion) -> Vec<String> {
    if let Some(name) = &assertion.name {
        return vec![format!("named `{name}`")];
    }
    let sizes: Vec<String> = match assertion.sizes.as_slice() {
        [] => vec![String::new()],
        sizes => sizes.iter().map(|size| format!(" at {}", size::show(*size))).collect(),
    };
    let places: &[&str] = match assertion.place {
        Place::OutOfPlace => &["out of place"],
        Place::InPlace => &["in place"],
        Place::Both => &["out of place", "in place"],
    };
    let per = assertion.per.name();
    let of =
        assertion.of.as_ref().map(|(dim, name)| format!(" of {} `{name}`", dim.name())).unwrap_or_default();
    let key = |size: &String| {
        places
            .iter()
            .map(|place| format!("`{}`{of}{size} per {per}, {place}", assertion.metric))
            .collect::<Vec<_>>()
    };
    sizes.iter().flat_map(key).collect()
}
