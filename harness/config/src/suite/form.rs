//! The forms of suites: what stands in a file, a case, an assertion and a profile. Workloads have theirs beside their
//! readers.

use super::assertion::{AGAINST, PERS, PLACES, SEVERITIES};
use super::profile::{KEEPS, RANKS, TRACES};
use super::read::{ISOLATES, MOST_REPEATS, NAMED_PLACEMENTS};
use super::{CaseEnd, workload};
use crate::facts::{FACTS, requirement_keys};
use crate::form::{Condition, Form, Key, Type, names};
use job::window::Way;
use model::artefact::{EvidenceSource, JOB_PROPERTIES};
use recipes::catalogue::Catalogue;
use recipes::kernel_class::CLASSES;

/// A file of `suites`.
pub(crate) fn file() -> Form {
    let head = [
        Key::needed("instance", Type::Text, "the instance profile that it is for: `p5`, `p4d`"),
        Key::needed("about", Type::Text, "one sentence"),
    ];
    let extends = Key::optional(
        "extends",
        Type::Text,
        "the suite whose cases are taken; then only `[[change]]` may follow",
    );
    let change = Key::optional("change", Type::tables(change()), "another bound of the extended suite");
    let own = Form::new([
        Key::usual(
            "on_failure",
            "\"nothing\"",
            Type::OneOf(|_| names(&ISOLATES)),
            "`\"isolate\"`: further runs look for the faulty part where a case failed",
        ),
        Key::usual("isolate_budget_node_h", "the run's own cost", Type::Number, "node-hours for that"),
    ])
    .and(runs("1", "0"))
    .and([Key::needed("case", Type::tables(case()), "at least one")]);
    let variants = [(Condition::Present, Form::new([extends, change])), (Condition::Absent, own)];
    let alike = Type::list(Type::OneOf(|_| {
        FACTS.iter().filter(|fact| fact.is_alike).map(|fact| fact.name.to_owned()).collect()
    }));
    let accepted = [
        Key::optional(
            "probe",
            Type::keys(requirement_keys()),
            "what `harness accept` asks of each node, as `[probe]` of an inventory; what is unknown is reported, and refuses none",
        ),
        Key::optional("alike", alike, "facts that all nodes must have alike to be accepted"),
    ];
    Form::new(head).and(accepted).by("extends", variants)
}

/// How often the jobs of a case run; the defaults of a suite, and of its cases.
fn runs(repeats: &'static str, retries: &'static str) -> [Key; 2] {
    let most = u64::from(MOST_REPEATS);
    [
        Key::usual(
            "repeats",
            repeats,
            Type::Whole(1..=most),
            "independent runs of each job, judged together",
        ),
        Key::usual(
            "retry_infrastructure",
            retries,
            Type::Whole(0..=1),
            "1: a job that the cluster itself ended is retried once",
        ),
    ]
}

/// `[[change]]`.
pub(super) fn change() -> Form {
    Form::new([
        Key::needed("case", Type::Text, "a case of the extended suite"),
        Key::needed("metric", Type::OneOf(metrics), "the metric of the assertions"),
        Key::optional("at_least", Type::Quantity, "another bound"),
        Key::optional("at_most", Type::Quantity, "another bound"),
    ])
}

/// `[[case]]`.
pub(super) fn case() -> Form {
    let placement = Type::Either(vec![
        Type::OneOf(|_| names(&NAMED_PLACEMENTS)),
        Type::Pattern("^groups of +[0-9]+ *$"),
        Type::WHOLE,
    ]);
    let sources = Type::list(Type::OneOf(|_| names(&EvidenceSource::ALL)));
    let counters_type = Type::Either(vec![Type::Boolean, Type::table(counters())]);
    let properties = JOB_PROPERTIES.iter().map(|property| {
        Key::usual(property.key, property.default, Type::Whole(property.range.clone()), property.about)
    });
    let form = Form::new([
        Key::needed("name", Type::Text, "letters, digits, `-`, `_`, `.`; each key of its matrix in braces: `{op}`"),
        Key::usual("about", "\"\"", Type::Text, "one sentence"),
        Key::usual("tags", "[]", Type::texts(), "words; no option selects by them"),
        Key::needed("workload", Type::table(workload::form()), "what its jobs run"),
        Key::usual(
            "placement",
            "`\"pairs\"` of nic-pairs; else needed",
            placement,
            "the nodes of each job: a number, `\"all\"`, `\"each\"`, `\"each gpu\"`, `\"pairs\"`, `\"groups of 4\"`",
        ),
        Key::optional(
            "matrix",
            Type::map(Type::list(Type::Either(vec![Type::Text, Type::Number, Type::Boolean]))),
            "`{ op = [\"all_reduce\", \"all_gather\"] }`: one case for each combination of values of the workload",
        ),
        Key::needed(
            "recipes",
            Type::list(Type::OneOf(|catalogue| {
                catalogue.job_recipes().map(|recipe| recipe.name.to_owned()).collect()
            })),
            "what makes metrics of its files",
        ),
        Key::usual(
            "counters",
            "true; false of commands",
            counters_type,
            "whether and how EFA counters are read",
        ),
        Key::optional("profile", Type::table(profile()), "Nsight Systems around the workload"),
        Key::optional(
            "evidence",
            Type::Either(vec![sources, Type::table(evidence())]),
            "`[\"nsys\", \"inspector\", \"log\"]`: what records the calls of ranks, in order of preference; or what they write \
             of themselves beside a profiler",
        ),
    ])
    .and(properties)
    .and([
        Key::optional("requires", Type::table(requires()), "where it does not hold, the case is skipped"),
        Key::usual(
            "where_installed",
            "false",
            Type::Boolean,
            "a node that reports to the probe that the program is absent skips the case",
        ),
        Key::usual("after", "[]", Type::texts(), "cases that must have passed; else it is skipped"),
        Key::optional("expected_failure", Type::Text, "the reason; passing is then a failure"),
        Key::optional(
            "must_end",
            Type::OneOf(|_| CaseEnd::ALL.map(|end| end.name().to_owned()).to_vec()),
            "how the case is meant to end; changes no verdict, for suites that test the harness",
        ),
    ])
    .and(runs("the suite's", "the suite's"))
    .and([
        Key::optional(
            "soak",
            Type::Text,
            "`\"24h\"`: `harness accept` loads each node so long, window by window; for `gpu-burn`",
        ),
        Key::usual("checkpoint", "\"1h\"", Type::Text, "the length of a window of the soak"),
        Key::usual("sim_faults", "[]", Type::texts(), "faults of the simulated cluster for this case"),
        Key::usual("assert", "[]", Type::tables(assertion()), "what must hold of its metrics"),
    ]);
    let needed_unless = Some(("placement", ["workload", "kind", "nic-pairs"]));
    Form { matrix: Some(("matrix", "workload")), needed_unless, ..form }
}

/// `counters` of a case.
pub(super) fn counters() -> Form {
    Form::new([
        Key::usual("interval_s", "1", Type::Number, "seconds between two readings, from 0.2 to 3600"),
        Key::optional("between", Type::WHOLE, "instead of `interval_s`: so many readings during the job"),
    ])
}

/// `[case.evidence]`.
pub(super) fn evidence() -> Form {
    Form::new([
        Key::usual(
            "inspector",
            "false",
            Type::Boolean,
            "NCCL's Inspector (2.30 and later) records the calls of each rank; for collectives of nccl-tests",
        ),
        Key::usual(
            "control_run",
            "false",
            Type::Boolean,
            "each job runs again without Inspector: `inspector.overhead` is what it costs",
        ),
        Key::usual("costs_at_most", "\"3 %\"", Type::Quantity, "what Inspector may cost against that"),
    ])
}

/// `requires` of a case.
pub(super) fn requires() -> Form {
    Form::new([
        Key::optional("min_nodes", Type::WHOLE, "so many nodes are selected, or more"),
        Key::optional("max_nodes", Type::WHOLE, "so many nodes are selected, or fewer"),
        Key::usual("ranks_power_of_two", "false", Type::Boolean, "the ranks of a job are a power of two"),
    ])
}

fn metrics(catalogue: &Catalogue) -> Vec<String> {
    let mut names: Vec<String> = catalogue
        .job_recipes()
        .flat_map(|recipe| recipe.metrics.iter().map(|metric| metric.name.to_string()).collect::<Vec<_>>())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// `[[case.assert]]`.
pub(super) fn assertion() -> Form {
    let sizes =
        Type::Either(vec![Type::OneOf(|_| vec!["all".to_owned()]), Type::Size, Type::list(Type::Size)]);
    let bound = |name, about| Key::optional(name, Type::Quantity, about);
    Form::new([
        Key::needed("metric", Type::OneOf(metrics), "one that the case's recipes make"),
        Key::usual("name", "made from the others", Type::Text, "what it is called"),
        Key::usual("per", "\"job\"", Type::OneOf(|_| names(&PERS)), "what gets a verdict of its own"),
        Key::usual("size", "\"all\"", sizes, "sizes of the sweep: `\"1GiB\"`, or a list"),
        Key::usual("place", "\"out\"", Type::OneOf(|_| names(&PLACES)), "out of place, in place"),
        Key::optional("kernel", Type::Text, "which kernel; needed by metrics of kernels"),
        Key::optional(
            "class",
            Type::OneOf(|_| CLASSES.map(str::to_owned).to_vec()),
            "which class of kernels; needed by metrics of classes",
        ),
        bound("at_least", "a number, with its unit where the metric has one: `\"11 GB/s\"`, `\"10 %\"`"),
        bound("at_most", "as `at_least`"),
        bound("equals", "as `at_least`; excludes the other bounds"),
        Key::optional(
            "against",
            Type::OneOf(|_| names(&AGAINST)),
            "`\"baseline\"`: what was measured before",
        ),
        bound(
            "within_peers",
            "`\"10 %\"`: at most so far from the median of the other nodes; open where one of them in 16 is far better",
        ),
        bound("spread", "declared run-to-run noise, one standard deviation"),
        Key::usual(
            "severity",
            "\"fail\"",
            Type::OneOf(|_| names(&SEVERITIES)),
            "`\"warn\"` reports and never fails",
        ),
    ])
}

/// `[case.profile]`.
pub(super) fn profile() -> Form {
    let ranks = Type::Either(vec![
        Type::OneOf(|_| names(&RANKS)),
        Type::Pattern("^every +[0-9]+ *$"),
        Type::list(Type::WHOLE),
    ]);
    let keep = Type::Either(vec![Type::OneOf(|_| names(&KEEPS)), Type::WHOLE]);
    let trace = Type::list(Type::OneOf(|_| TRACES.map(str::to_owned).to_vec()));
    Form::new([
        Key::usual("ranks", "\"one-per-node\"", ranks, "`\"all\"`, `\"rank0\"`, `\"every 8\"`, a list"),
        Key::usual("trace", "[\"cuda\", \"nvtx\"]", trace, "what nsys traces"),
        Key::optional("delay_s", Type::WHOLE, "a span of time: seconds before it begins"),
        Key::optional("duration_s", Type::WHOLE, "a span of time: its seconds"),
        Key::optional("steps", Type::Text, "a window of steps: `\"FIRST..LAST\"`"),
        Key::usual("compat", "false", Type::Boolean, "the window ends where its last step begins"),
        Key::optional(
            "way",
            Type::OneOf(|_| Way::ALL.map(|way| way.name().to_owned()).to_vec()),
            "how the window is opened, where it is not to be chosen",
        ),
        Key::usual("options", "[]", Type::texts(), "options of the program that open the window"),
        Key::optional("step_line", Type::Text, "a regular expression whose first group is the step number"),
        Key::usual("first_step", "0", Type::WHOLE, "the number that the program gives its first step"),
        Key::optional(
            "capture",
            Type::Pattern("^(cudaProfilerApi|nvtx:.+)$"),
            "`\"cudaProfilerApi\"` or `\"nvtx:RANGE@DOMAIN\"`",
        ),
        Key::usual("efa", "true", Type::Boolean, "one rank of each node samples the EFA counters"),
        Key::usual("gpu_metrics", "false", Type::Boolean, "one rank of each node samples its GPUs' counters"),
        Key::optional("python_functions", Type::Text, "a list for `--python-functions-trace`"),
        Key::usual("extra", "[]", Type::texts(), "further switches of nsys, checked against the release"),
        Key::usual("unchecked", "[]", Type::texts(), "further switches of nsys, not checked"),
        Key::usual("keep", "\"on-failure\"", keep, "whole reports: or a number of each job"),
        Key::usual("unprofiled_control_run", "false", Type::Boolean, "each job runs again without nsys"),
        Key::usual("costs_at_most", "\"3 %\"", Type::Quantity, "what the profiler may cost against that"),
    ])
}
