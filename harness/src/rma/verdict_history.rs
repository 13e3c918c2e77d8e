//! `history.csv`: every verdict about the hardware, over all runs that it was in.

use super::return_case::ReturnCase;
use super::run_evidence::scope_name;
use recipes::result_table::csv_text;
use verdict::history::hardware_record::verdicts;

const HEAD: &str = "run,made,node,part,identified_by,suite,case,scope,metric,assertion,value,unit,lower,upper,n,n_expected,verdict,\
                    blamed,counted,simulated";

pub(super) fn csv(case: &ReturnCase<'_>) -> String {
    let mut text = format!("{HEAD}\n");
    for sighting in &case.record.seen {
        let run = case.run(sighting);
        let is_counted = !case.record.uncounted.iter().any(|(at, _)| *at == sighting.run);
        for judged in &run.cases {
            for (scope, verdict) in verdicts(judged, sighting) {
                let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
                let part = verdict.part.as_ref().or(sighting.part.as_ref());
                let of_case = (judged.suite.clone(), judged.case.clone());
                let is_blamed = case.record.blames.iter().any(|blame| {
                    let is_part =
                        blame.part == "node" || verdict.part.as_ref().is_none_or(|own| *own == blame.part);
                    blame.run == sighting.run && blame.cases.contains(&of_case) && is_part
                });
                let cells = [
                    run.id().to_owned(),
                    run.made.clone(),
                    sighting.node.clone(),
                    part.cloned().unwrap_or_default(),
                    if sighting.is_probed { "probe" } else { "name" }.to_owned(),
                    judged.suite.clone(),
                    judged.case.clone(),
                    scope_name(scope),
                    verdict.metric.clone(),
                    verdict.name.clone(),
                    number(verdict.observed),
                    verdict.unit.name().to_owned(),
                    number(verdict.lower),
                    number(verdict.upper),
                    verdict.n.to_string(),
                    verdict.n_expected.to_string(),
                    verdict.status.name().to_owned(),
                    is_blamed.to_string(),
                    is_counted.to_string(),
                    run.is_simulated().to_string(),
                ];
                let cells = cells.iter().map(|cell| match cell.parse::<f64>() {
                    Ok(_) => cell.into(),
                    Err(_) => csv_text(cell),
                });
                text.push_str(&cells.collect::<Vec<_>>().join(","));
                text.push('\n');
            }
        }
    }
    text
}
