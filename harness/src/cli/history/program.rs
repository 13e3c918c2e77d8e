//! A history for programs: JSON with everything in it, and CSV with one line per run and series.

use crate::cli::columns::comma_separated;
use model::artefact::Format;
use serde_json::{Value, json};
use verdict::history::change::{FALSE_ALARMS, Shape};
use verdict::history::hardware::OtherMachines;
use verdict::history::past::{Past, Run};
use verdict::history::series::{Found, Point, Series};

pub(super) fn json(past: &Past, metric: &str, older: usize, found: &Found) -> String {
    let ids = |places: &[usize]| -> Vec<&str> {
        places.iter().filter_map(|at| past.runs.get(*at)).map(Run::id).collect()
    };
    let series: Vec<Value> = found.series.iter().map(|series| one(past, series)).collect();
    let unread = found.unread.iter().map(|(at, why)| json!({ "run": ids(&[*at]).first(), "why": why }));
    let passed = past.passed.iter().map(|passed| json!({ "run": passed.name, "why": passed.why }));
    let document = json!({
        "format": Format::<1>,
        "metric": metric,
        "false_alarms": FALSE_ALARMS,
        "simulated": past.runs.iter().any(Run::is_simulated),
        "series": series,
        "not_counted": unread.chain(passed).collect::<Vec<_>>(),
        "without": ids(&found.without),
        "older_runs_not_read": older,
    });
    format!("{document:#}\n")
}

fn one(past: &Past, series: &Series) -> Value {
    let key = &series.key;
    let points: Vec<Value> = series.points.iter().filter_map(|point| row(past, point)).collect();
    let changed = series.changed(past);
    let changes: Vec<Value> = match &series.shape {
        Shape::Level => Vec::new(),
        Shape::Drift(drift) => vec![json!({ "kind": "drift", "from": drift.from, "to": drift.to })],
        Shape::Steps(steps) => steps
            .iter()
            .map(|step| json!({ "kind": "step", "from": step.before, "to": step.after }))
            .collect(),
    };
    let id = |at: usize| past.runs.get(at).map(Run::id);
    let changes: Vec<Value> = changes
        .into_iter()
        .zip(&changed)
        .map(|(mut change, changed)| {
            change["before"] = json!(id(changed.before));
            change["after"] = json!(id(changed.after));
            change["software"] = json!(changed.software);
            let other = |one: &OtherMachines| json!({ "nodes": one.nodes, "since": id(one.since) });
            change["hardware"] = changed.hardware.iter().map(other).collect();
            change
        })
        .collect();
    json!({
        "instance": key.instance, "suite": key.suite, "case": key.case, "nodes": key.nodes, "ranks": key.ranks,
        "dims": key.dims, "unit": series.unit, "better": series.better, "points": points, "changes": changes,
        "newest_off": series.newest_off.map(|bounds| json!({ "lower": bounds.lower, "upper": bounds.upper })),
    })
}

fn row(past: &Past, point: &Point) -> Option<Value> {
    let run = past.runs.get(point.run)?;
    Some(json!({
        "run": run.id(), "made": run.made, "value": point.value, "spread": point.spread, "n": point.n,
        "verdict": point.verdict, "baseline": point.baseline, "counted": point.counted().is_some(),
        "not_counted": point.uncounted, "state": run.state(), "simulated": run.is_simulated(),
    }))
}

const HEAD: &str = "metric,instance,suite,case,nodes,ranks,dims,unit,run,made,value,spread,n,verdict,baseline,counted,state,changed";

pub(super) fn csv(past: &Past, metric: &str, found: &Found) -> String {
    let mut text = format!("{HEAD}\n");
    for series in &found.series {
        let key = &series.key;
        let dims: Vec<String> =
            key.dims.iter().map(|(dim, value)| format!("{}={value}", dim.name())).collect();
        let after: Vec<usize> = match &series.shape {
            Shape::Steps(_) => series.changed(past).iter().map(|changed| changed.after).collect(),
            _ => Vec::new(),
        };
        for point in &series.points {
            let Some(run) = past.runs.get(point.run) else { continue };
            let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let count = |count: Option<u32>| count.map(|count| count.to_string()).unwrap_or_default();
            let cells = [
                metric.to_owned(),
                key.instance.clone(),
                key.suite.clone(),
                key.case.clone(),
                count(key.nodes),
                count(key.ranks),
                dims.join(" "),
                series.unit.name().to_owned(),
                run.id().to_owned(),
                run.made.clone(),
                number(point.value),
                number(point.spread),
                point.n.to_string(),
                point.verdict.map(|status| status.name().to_owned()).unwrap_or_default(),
                point.baseline.unwrap_or_default().to_owned(),
                point.counted().is_some().to_string(),
                run.state(),
                after.contains(&point.run).to_string(),
            ];
            text.push_str(&comma_separated(cells.iter().map(String::as_str)));
            text.push('\n');
        }
    }
    text
}
