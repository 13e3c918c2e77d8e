//! Values for the charts that put Nsight Systems into pods of other jobs: with the switches of a case's own profile, for
//! its program.

use super::slots::jobs;
use super::{ManifestKind, SlotPlan, yaml};
use job::script::{self, Profile, Run, Step, files};
use serde_json::{Value, json};

/// Names of reports, in the older injector's own placeholders.
const REPORT: &str = "auto_{PROCESS_NAME}_%{POD_FULLNAME}_%{CONTAINER_NAME}_{TIMESTAMP}_{UID}.nsys-rep";

pub(super) fn render(planned: &SlotPlan, kind: ManifestKind) -> Result<String, String> {
    let case = planned.case();
    let (run, profile) = profiled(planned)?
        .ok_or_else(|| format!("case `{}` has no profiler; add `[case.profile]` to it", case.name))?;
    if profile.window.is_some() {
        return Err(format!(
            "the window of case `{}` is opened by a script of the harness, which no chart has; \
             give it `delay_s` and `duration_s`, or a capture range",
            case.name
        ));
    }
    let switches = profile.words.every.join(" ");
    if let Some(odd) = profile.words.every.iter().find(|switch| switch.contains(char::is_whitespace)) {
        return Err(format!("a chart takes no switch with a blank: `{}`", base::text::show(odd)));
    }
    let program = run.argv.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let pattern = format!(".*{}.*", regex::escape(program));
    let values = match kind {
        ManifestKind::InjectorValues => injector(planned, &switches, &pattern),
        _ => operator(&switches, &pattern),
    };
    let (label, chart) = match kind {
        ManifestKind::InjectorValues => {
            ("nvidia-devtools-sidecar-injector", "devtools-sidecar-injector 1.0.0")
        }
        _ => ("nvidia-nsight-profile", "nsight-operator 26.2"),
    };
    let mut head = format!(
        "# Values for {chart}: the profiler of case {} of {}, for pods with the label `{label}: enabled`.\n\
         # Jobs of `harness manifest` have their profiler in their own script: do not label these.\n",
        case.name, case.suite
    );
    if !profile.words.once_per_node.is_empty() {
        let left_out = profile.words.once_per_node.join(" ");
        head.push_str(&format!(
            "# Left out, since a chart cannot have it on one process of a node alone: {}\n",
            base::text::show(&left_out)
        ));
    }
    Ok(head + &yaml::render(&values))
}

/// The first run of the case with a profiler.
fn profiled(planned: &SlotPlan) -> Result<Option<(Run, Profile)>, String> {
    for job in jobs(planned.case()).filter(|job| job.profile.is_some()) {
        let file = job.files.iter().find(|file| file.name == files::JOB);
        let text = file.and_then(|file| file.text.as_deref()).unwrap_or_default();
        let script = script::read(text).map_err(|error| format!("the script of {}: {error}", job.name))?;
        let found = script.steps.into_iter().find_map(|step| match step {
            Step::Run(mut run) => run.profile.take().map(|profile| (run, profile)),
            _ => None,
        });
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn injector(planned: &SlotPlan, switches: &str, pattern: &str) -> Value {
    let shared = planned.inventory.paths.shared.trim_end_matches('/');
    json!({
        "profile": {
            "devtoolArgs": format!("profile {switches} -o {shared}/{REPORT}"),
            "injectionMatch": format!("^{pattern}$"),
            "volumes": [{ "name": "shared", "persistentVolumeClaim": { "claimName": planned.reach.shared } }],
            "volumeMounts": [{ "name": "shared", "mountPath": shared }],
        },
    })
}

/// Its coordinator opens and closes windows, and stores the reports.
fn operator(switches: &str, pattern: &str) -> Value {
    json!({
        "nsight-injector": {
            "nsightToolConfig": { "nsightToolArgs": switches, "injectionIncludePatterns": [pattern] },
        },
    })
}
