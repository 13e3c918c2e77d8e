//! `harness history --suspects`: the record of every part that a run has blamed.

use crate::cli::columns::{columns, comma_separated};
use crate::report::not_counted as runs_not_counted;
use base::suggest;
use base::text::{count, show};
use model::artefact::Format;
use model::exit_code;
use serde_json::{Value, json};
use verdict::history::past::{Past, Run};
use verdict::history::suspects::{Blamed, LOOKED_BACK, Suspect, SuspectedPart, blamed, not_counted};

const KEYS: [&str; 3] = ["node", "part", "inventory"];

pub(super) fn render(past: &Past, only: &[(String, String)], format: &str) -> Result<(String, i32), String> {
    if let Some((odd, _)) = only.iter().find(|(key, _)| !KEYS.contains(&key.as_str())) {
        let hint = suggest::nearest(odd, KEYS).map(|near| format!("did you mean `{near}`? "));
        return Err(format!(
            "--where: no key `{odd}` with --suspects; {}known: `{}`",
            hint.unwrap_or_default(),
            KEYS.join("`, `")
        ));
    }
    let is_meant = |component: &SuspectedPart| {
        only.iter().all(|(key, value)| match key.as_str() {
            "node" => component.node == *value,
            "part" => component.part == *value,
            _ => component.inventory == *value,
        })
    };
    let mut all = blamed(past);
    all.suspects.retain(|suspect| is_meant(&suspect.component));
    all.gone.retain(|component, _| is_meant(component));
    let text = match format {
        "json" => json(past, &all),
        "csv" => csv(past, &all.suspects),
        _ => text(past, &all),
    };
    Ok((text, exit_code::PASSED))
}

const HEAD: [&str; 10] =
    ["node", "part", "named", "suspected", "lately", "cleared", "last seen", "now", "codes", "last evidence"];

fn cells(past: &Past, suspect: &Suspect) -> [String; 10] {
    let (of, times) = suspect.lately(LOOKED_BACK);
    let last = suspect.blamed().last().and_then(|at| past.runs.get(*at));
    [
        suspect.component.node.clone(),
        suspect.component.part.clone(),
        suspect.culprit.len().to_string(),
        suspect.suspect.len().to_string(),
        format!("{times} of {of}"),
        suspect.cleared.len().to_string(),
        last.map(|run| run.id().to_owned()).unwrap_or_default(),
        if suspect.is_open() { "open" } else { "cleared" }.to_owned(),
        suspect.codes.iter().copied().collect::<Vec<_>>().join(" "),
        suspect.evidence.clone(),
    ]
}

fn text(past: &Past, Blamed { suspects: all, gone }: &Blamed) -> String {
    let mut text = String::new();
    if all.is_empty() {
        text.push_str(&format!("no part was blamed in {}\n", count(past.runs.len(), "run")));
    } else {
        let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
        rows.extend(all.iter().map(|suspect| cells(past, suspect).map(|cell| show(&cell)).to_vec()));
        text.push_str(&columns(&rows));
    }
    for (component, replaced) in gone {
        text.push_str(&format!("replaced: {}\n", show(&not_counted(component, replaced))));
    }
    let partial = past.runs.iter().filter(|run| !run.partial.is_empty());
    for run in partial {
        text.push_str(&format!("incomplete: {}: {}\n", show(run.id()), show(&run.partial.join("; "))));
    }
    text.push_str(&runs_not_counted(past));
    if past.runs.iter().any(Run::is_simulated) {
        let (n, of) = (past.runs.iter().filter(|run| run.is_simulated()).count(), past.runs.len());
        text.push_str(&format!(
            "SIMULATED: nothing in {n} of these {of} runs was measured on real hardware\n"
        ));
    }
    text
}

fn json(past: &Past, Blamed { suspects: all, gone }: &Blamed) -> String {
    let ids = |places: &mut dyn Iterator<Item = &usize>| -> Vec<String> {
        places.filter_map(|at| past.runs.get(*at)).map(|run| run.id().to_owned()).collect()
    };
    let one = |suspect: &Suspect| -> Value {
        let (of, times) = suspect.lately(LOOKED_BACK);
        json!({
            "node": suspect.component.node, "part": suspect.component.part, "inventory": suspect.component.inventory,
            "simulated": suspect.component.simulated, "named_in": ids(&mut suspect.culprit.iter()),
            "suspected_in": ids(&mut suspect.suspect.iter()), "cleared_in": ids(&mut suspect.cleared.iter()),
            "runs_with_it": ids(&mut suspect.with.iter()), "lately": { "blamed": times, "of": of },
            "last_seen": ids(&mut suspect.blamed().iter().next_back().into_iter()).first(),
            "open": suspect.is_open(), "codes": suspect.codes, "evidence": suspect.evidence,
        })
    };
    let partial = past.runs.iter().filter(|run| !run.partial.is_empty());
    let document = json!({
        "format": Format::<1>,
        "simulated": past.runs.iter().any(Run::is_simulated),
        "suspects": all.iter().map(one).collect::<Vec<_>>(),
        "replaced": gone.iter().map(|(part, replaced)| json!({
            "node": part.node, "part": part.part, "inventory": part.inventory, "simulated": part.simulated,
            "blamed_in": ids(&mut replaced.runs.iter()), "why": replaced.why,
        })).collect::<Vec<_>>(),
        "not_whole": partial.map(|run| json!({ "run": run.id(), "why": run.partial })).collect::<Vec<_>>(),
        "not_counted": past.passed.iter().map(|passed| json!({ "run": passed.name, "why": passed.why })).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn csv(past: &Past, all: &[Suspect]) -> String {
    let mut text = format!("{}\n", comma_separated(HEAD.map(|word| word).into_iter().chain(["simulated"])));
    for suspect in all {
        let cells = cells(past, suspect);
        let simulated = suspect.component.simulated.to_string();
        text.push_str(&comma_separated(cells.iter().map(String::as_str).chain([simulated.as_str()])));
        text.push('\n');
    }
    text
}
