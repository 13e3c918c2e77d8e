//! The summary of many recipes: a table for a person, and the same with names and notes for a program.

use super::request::RecipeWithArguments;
use recipes::recipe::of_reports::{Input, Outcome};
use recipes::result_table::{Column, Quantity, ResultTable};
use serde_json::{Value, json};

/// A run: the requested recipes and their outcomes, in the same order.
pub(super) struct SurveyRun<'a> {
    pub asked: &'a [RecipeWithArguments<'a>],
    /// How each is called, and its folder.
    pub labels: &'a [String],
    pub outcomes: &'a [Outcome],
    pub inputs: &'a [Input],
    pub left_out: &'a [(&'a str, String)],
    pub is_filtered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecipeOutcome {
    /// There are tables with rows.
    Ok,
    /// Rows were looked at, and none is of what is looked for.
    FoundNone,
    /// No report has what it needs.
    NoData,
    /// No report could be read, or nothing be made of what was read.
    Failed,
}

impl RecipeOutcome {
    pub(super) fn from_outcome(outcome: &Outcome) -> RecipeOutcome {
        let seen = &outcome.seen;
        match () {
            () if outcome
                .tables
                .iter()
                .any(|(name, result_table)| *name != FILES && result_table.height() > 0) =>
            {
                RecipeOutcome::Ok
            }
            () if seen.with_data > 0 && !outcome.unreadable.is_empty() => RecipeOutcome::Failed,
            () if seen.with_data > 0 || seen.found_none > 0 => RecipeOutcome::FoundNone,
            () if seen.without > 0 => RecipeOutcome::NoData,
            () => RecipeOutcome::Failed,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            RecipeOutcome::Ok => "ok",
            RecipeOutcome::FoundNone => "found none",
            RecipeOutcome::NoData => "no data",
            RecipeOutcome::Failed => "failed",
        }
    }
}

/// The table that says which report is which rank, beside every other table.
const FILES: &str = "files";

/// One row per recipe; those that were left out come last.
pub(super) fn result_table(run: &SurveyRun) -> ResultTable {
    let left_out = || run.left_out.iter();
    let counts = |of: fn(&Outcome) -> u64| {
        let of = run.outcomes.iter().map(move |outcome| i64::try_from(of(outcome)).ok());
        of.chain(left_out().map(|_| None)).collect::<Vec<_>>()
    };
    let plain = Quantity::Plain;
    let words = run.outcomes.iter().map(|outcome| RecipeOutcome::from_outcome(outcome).word());
    let remarks = run.outcomes.iter().map(|outcome| remark(run, outcome));
    ResultTable {
        name: "summary".into(),
        title: "What Each Recipe Gave".into(),
        columns: vec![
            Column::texts(
                "Recipe",
                run.labels.iter().map(String::as_str).chain(left_out().map(|(name, _)| *name)),
            ),
            Column::texts("Outcome", words.chain(left_out().map(|_| "left out"))),
            Column::maybe_integers("Reports", plain, counts(|outcome| outcome.seen.with_data as u64)),
            Column::maybe_integers("Rows", plain, counts(|outcome| outcome.seen.rows)),
            Column::maybe_integers("Tables", plain, counts(|outcome| outcome.tables.len() as u64)),
            Column::maybe_integers("Charts", plain, counts(|outcome| outcome.charts.len() as u64)),
            Column::texts("Remark", remarks.chain(left_out().map(|(_, why)| why.clone()))),
        ],
    }
}

/// Why there is nothing, or what of it is missing; empty where all is there.
fn remark(run: &SurveyRun, outcome: &Outcome) -> String {
    let (seen, ended) = (&outcome.seen, RecipeOutcome::from_outcome(outcome));
    let mut remarks = Vec::new();
    if ended == RecipeOutcome::FoundNone {
        match seen.looked_at {
            // It says itself why it gives nothing of what there is.
            0 => remarks.extend(last_note(run, outcome)),
            rows => remarks.push(format!("looked at {rows} rows")),
        }
    }
    if !seen.absent.is_empty() && ended != RecipeOutcome::Ok {
        let absent: Vec<&str> = seen.absent.iter().map(String::as_str).collect();
        remarks.push(format!("absent or empty: {}", absent.join(", ")));
    }
    if ended == RecipeOutcome::NoData && run.is_filtered {
        remarks.push("within the filter".to_owned());
    }
    if ended == RecipeOutcome::Ok && seen.without > 0 {
        remarks.push(format!("reports without data for it: {}", seen.without));
    }
    match outcome.unreadable.as_slice() {
        [] => {}
        [(report, why)] => remarks.push(format!("{report}: {why}")),
        [(report, why), ..] => {
            remarks.push(format!("{} unreadable, first {report}: {why}", outcome.unreadable.len()));
        }
    }
    remarks.join("; ")
}

/// Without the names of what it is about, which stand beside it.
fn last_note(run: &SurveyRun, outcome: &Outcome) -> Option<String> {
    let mut note = outcome.notes.last()?.as_str();
    for name in run.inputs.iter().map(|input| input.shown.as_str()).chain([outcome.recipe.as_str()]) {
        note = note.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(note);
    }
    Some(note.to_owned())
}

/// The same, with the names of the tables and all notes.
pub(super) fn json(run: &SurveyRun) -> Value {
    let recipes =
        run.outcomes.iter().zip(run.labels).zip(run.asked).map(|((outcome, label), (recipe, arguments))| {
            let ended = RecipeOutcome::from_outcome(outcome);
            json!({
                "recipe": outcome.recipe,
                "title": recipe.title,
                "arguments": arguments.to_strings(),
                "folder": (!outcome.tables.is_empty()).then_some(label),
                "outcome": ended.word(),
                "reports": outcome.seen.with_data,
                "rows": outcome.seen.rows,
                "looked_at": outcome.seen.looked_at,
                "tables": outcome.tables.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
                "charts": outcome.charts.iter().map(|chart| &*chart.name).collect::<Vec<_>>(),
                "absent": outcome.seen.absent,
                "unreadable": outcome.unreadable.iter()
                    .map(|(report, why)| json!({"report": report, "why": why})).collect::<Vec<_>>(),
                "notes": outcome.notes,
            })
        });
    json!({
        "reports": run.inputs.iter().map(|input| input.shown.as_str()).collect::<Vec<_>>(),
        "recipes": recipes.collect::<Vec<_>>(),
        "left_out": run.left_out.iter()
            .map(|(recipe, why)| json!({"recipe": recipe, "why": why})).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recipes::recipe::of_reports::{ReportCounts, find};
    use recipes::report::Arguments;

    fn outcome(seen: ReportCounts, heights: &[usize]) -> Outcome {
        let table = |rows: usize| ResultTable {
            name: "t".into(),
            title: "T".into(),
            columns: vec![Column::integers("N", Quantity::Plain, (0..rows).map(|row| row as i64))],
        };
        let mut tables: Vec<(&'static str, ResultTable)> =
            heights.iter().map(|rows| ("rows", table(*rows))).collect();
        if !tables.is_empty() {
            tables.push((FILES, table(1)));
        }
        Outcome { recipe: "gpu_gaps".to_owned(), tables, seen, ..Outcome::default() }
    }

    fn summary_of(outcome: Outcome, is_filtered: bool) -> (String, String) {
        let recipe = find("gpu_gaps").expect("there");
        let run = SurveyRun {
            asked: &[(recipe, Arguments::default())],
            labels: &["gpu_gaps".to_owned()],
            outcomes: &[outcome],
            inputs: &[Input { path: "r".into(), shown: "r".into(), side: 0 }],
            left_out: &[("diff", "it compares".to_owned())],
            is_filtered,
        };
        let shown = recipes::result_table::find_form("csv").expect("there").plain();
        let mut text = Vec::new();
        shown
            .write(&result_table(&run).render(recipes::result_table::Look::default()), &mut text)
            .expect("written");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text.lines().nth(2), Some("diff,left out,,,,,it compares"), "{text}");
        assert_eq!(json(&run)["left_out"][0]["recipe"], "diff");
        (text.lines().nth(1).unwrap_or_default().to_owned(), json(&run)["recipes"][0].to_string())
    }

    #[test]
    fn every_outcome_has_a_word_and_a_reason() {
        let with = ReportCounts { with_data: 2, rows: 7, ..ReportCounts::default() };
        let none = ReportCounts { found_none: 1, looked_at: 9, ..ReportCounts::default() };
        let without = ReportCounts {
            without: 1,
            absent: ["B".to_owned(), "A".to_owned()].into(),
            ..ReportCounts::default()
        };
        let unreadable = Outcome {
            unreadable: vec![("r".to_owned(), "cut off".to_owned())],
            ..outcome(ReportCounts { unreadable: 1, ..ReportCounts::default() }, &[])
        };
        let failed = Outcome {
            unreadable: vec![("gpu_gaps".to_owned(), "too large".to_owned())],
            ..outcome(with.clone(), &[])
        };
        let notes = vec!["r: gpu_gaps: nothing repeats".to_owned()];
        let says_why = Outcome { notes, ..outcome(with.clone(), &[]) };
        for (outcome, expected) in [
            (outcome(with, &[3]), "gpu_gaps,ok,2,7,2,0,"),
            (outcome(none, &[0]), "gpu_gaps,found none,0,0,2,0,looked at 9 rows"),
            (outcome(without.clone(), &[]), "gpu_gaps,no data,0,0,0,0,\"absent or empty: A, B\""),
            (unreadable, "gpu_gaps,failed,0,0,0,0,r: cut off"),
            (failed, "gpu_gaps,failed,2,7,0,0,gpu_gaps: too large"),
            (says_why, "gpu_gaps,found none,2,7,0,0,nothing repeats"),
        ] {
            assert_eq!(summary_of(outcome, false).0, expected);
        }
        assert!(summary_of(outcome(without.clone(), &[]), true).0.contains("within the filter"));
        assert!(summary_of(outcome(without, &[]), false).1.contains(r#""absent":["A","B"]"#));
    }
}
