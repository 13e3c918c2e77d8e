//! The verb `harness manifest`: a case of a suite as a file for `kubectl apply`, for clusters where operators start jobs.
//! The pods run the scripts of the plan, and leave on a claim what `harness run --attach` judges.

mod kinds;
mod objects;
mod slots;
mod values;
mod yaml;

pub(crate) use kinds::ManifestKind;
pub(crate) use slots::{SlotPlan, check_pods, jobs, slot};

use slots::SLOT;

use crate::session::RunOptions;
use config::inventory::is_object_name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Home;

/// What is to be rendered.
pub(crate) struct ManifestRequest {
    /// The suite, the case, the inventory and their settings, as for a run.
    pub options: RunOptions,
    pub kind: ManifestKind,
    /// Pods, one on each node; as many as the inventory has nodes, where absent.
    pub pods: Option<u32>,
    /// The job's name and its folder's on the claim.
    pub name: Option<String>,
    /// The claim, where it is not the inventory's.
    pub claim: Option<String>,
    /// Pods have the network, and so the host name, of their nodes.
    pub host_network: bool,
}

/// What a manifest was rendered from; the pods put it beside what they leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ManifestRecord {
    /// The version of the program that rendered it.
    pub harness: String,
    /// The job's name, which the plan has for a run's id.
    pub name: String,
    pub suite: String,
    pub case: String,
    pub pods: u32,
    /// Of what the pods run and leave.
    pub digest: String,
}

/// The file's text; or all that is wrong, in one go.
pub(crate) fn manifest(home: &Home, request: &ManifestRequest) -> Result<String, Vec<String>> {
    let planned = SlotPlan::new(home, request)?;
    if request.kind.is_values() {
        return values::render(&planned, request.kind).map_err(|why| vec![why]);
    }
    let documents = objects::all(&planned, request).map_err(|why| vec![why])?;
    let mut text = head(&planned);
    for document in &documents {
        text.push_str("---\n");
        text.push_str(&yaml::render(document));
    }
    Ok(text)
}

/// What it is, and what to do with it. Paths are of the user's own, and a comment ends with its line.
fn head(planned: &SlotPlan) -> String {
    let (record, options) = (&planned.record, &planned.options);
    let suite = options.suites.first().map_or(&record.suite, |suite| suite);
    let pods = base::text::count(record.pods as usize, "pod");
    let lines = [
        format!("Case {} of {} in {pods}, by harness {}.", record.case, record.suite, record.harness),
        "`kubectl create -f` this file; once its pods have ended, with the same --set if any:".to_owned(),
        format!(
            "harness run --suite {suite} --case {} --inventory {} --attach {}",
            record.case,
            options.inventory,
            planned.folder()
        ),
    ];
    lines.iter().map(|line| format!("# {}\n", base::text::show(line))).collect()
}

/// A text as the name of an object, which holds small letters, digits and `-`.
fn name_from(text: &str, longest: usize) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(allowed).collect();
    let name = name.trim_matches('-');
    // A name begins with a letter where a label of DNS is made from it.
    let is_label = name.starts_with(|c: char| c.is_ascii_lowercase());
    let name = if is_label { name.to_owned() } else { format!("case-{name}") };
    name.get(..longest).unwrap_or(&name).trim_end_matches('-').to_owned()
}

/// Operators put more behind the name of a job: of a pod's name, 63 letters are left.
pub(crate) const LONGEST_NAME: usize = 40;

/// Why a text is no name of a job.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.len() <= LONGEST_NAME
        && name.chars().all(allowed);
    match is_name {
        true if name.contains(SLOT) => {
            Err(format!("not a name of a job: `{name}`; `{SLOT}` stands for nodes"))
        }
        true => Ok(()),
        false => Err(format!(
            "not a name of a job: `{}`; expected at most {LONGEST_NAME} small letters, digits and `-`, a letter first",
            base::text::show(name)
        )),
    }
}

/// Why a text is no name of a claim.
fn check_claim(claim: &str) -> Result<(), String> {
    match is_object_name(claim) {
        true => Ok(()),
        false => Err(format!(
            "not a name of a claim: `{}`; expected small letters, digits, `-` and `.`",
            base::text::show(claim)
        )),
    }
}

/// Adds what a map lacks.
fn extend(map: &mut Value, more: Value) {
    if let (Value::Object(map), Value::Object(more)) = (map, more) {
        map.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_made_is_one_that_is_taken() {
        for text in
            ["", "_-_", "1-1", "ü-ß", &"9".repeat(90), &"a".repeat(90), &format!("{}-b", "a".repeat(39))]
        {
            let name = name_from(text, LONGEST_NAME);
            assert_eq!(check_name(&name), Ok(()), "{text}: {name}");
        }
        assert_eq!(name_from("nccl-p5-all-all_gather", LONGEST_NAME), "nccl-p5-all-all-gather");
        assert_eq!(name_from("2-nodes", LONGEST_NAME), "case-2-nodes");
    }

    #[test]
    fn a_name_holds_no_word_that_stands_for_a_node() {
        assert!(check_name(&slot(0)).is_err());
        assert!(check_name("a-harness-slot-b").is_err());
    }

    #[test]
    fn a_claim_has_a_name_of_kubernetes() {
        for odd in ["", "A/../b", "${x}", "a\nb", "-a", "a.", "a b", &"a".repeat(254)] {
            assert!(check_claim(odd).is_err(), "{odd}");
        }
        assert_eq!(check_claim("fsx-claim.1"), Ok(()));
    }
}
