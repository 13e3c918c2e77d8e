//! `history.csv`: every verdict about the hardware, over all runs that it was in.

use super::return_case::ReturnCase;
use super::run_evidence::scope_name;
use recipes::result_table::csv_text;
use std::borrow::Cow;
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
                text.push_str(&cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(","));
                text.push('\n');
            }
        }
    }
    text
}

/// As `csv_text`; a range of nodes may become a list with commas when its names are replaced, and is quoted before.
fn quoted(cell: &str) -> Cow<'_, str> {
    if cell.parse::<f64>().is_ok() {
        return cell.into();
    }
    let text = csv_text(cell);
    match text.contains(['[', '{']) && !text.starts_with('"') {
        true => Cow::Owned(format!("\"{text}\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_cell_that_may_get_a_comma_is_quoted_before() {
        for (cell, shown) in [
            ("nccl.busbw@p5-[001-002]", "\"nccl.busbw@p5-[001-002]\""),
            ("a [1], \"b\"", "\"a [1], \"\"b\"\"\""),
            ("-1.5", "-1.5"),
            ("own", "own"),
        ] {
            assert_eq!(quoted(cell), shown);
        }
    }
}
