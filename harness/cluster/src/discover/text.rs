//! Nodes as `sinfo` prints them in a format of our own, which every release since 21.08 knows. Reasons are what people
//! wrote: they stand last, and may hold bars and line breaks.

use super::{Node, Reason};
use crate::reach::slurm_gres::{gpus, mig};
use crate::reach::slurm_state::StateSet;
use std::collections::BTreeMap;

/// Name, state, active features, GRES, since when and by whom the reason, the reason.
pub(super) const FORMAT: &str = "%N|%T|%b|%G|%H|%u|%E";
const FIELDS: usize = 7;

pub(super) fn read(answer: &str) -> Result<Vec<Node>, String> {
    let mut records: Vec<String> = Vec::new();
    for line in answer.lines() {
        // A line that begins no node goes on with the reason of the one before.
        let begins = line.split('|').count() >= FIELDS && is_name(line.split('|').next().unwrap_or_default());
        match records.last_mut() {
            Some(last) if !begins => {
                last.push(' ');
                last.push_str(line.trim());
            }
            None if line.trim().is_empty() => {}
            None if !begins => return Err(format!("the first line names no node: {line:?}")),
            _ => records.push(line.to_owned()),
        }
    }
    // A node that is listed more than once has every state it is listed with.
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    for record in records {
        let fields: Vec<&str> = record.splitn(FIELDS, '|').map(str::trim).collect();
        let [name, state, features, gres, since, by, reason] = fields[..] else {
            return Err(format!("a line has too few fields: {record:?}"));
        };
        let node = Node {
            name: name.to_owned(),
            state: StateSet::parse(state),
            features: comma_list(features),
            gpus: gpus(gres),
            mig: mig(gres),
            gpus_drained: None,
            instance_type: None,
            reason: reason_of(reason, by, since),
        };
        match nodes.get_mut(name) {
            Some(known) => {
                known.state.words.extend(node.state.words);
                known.state.unknown.extend(node.state.unknown);
            }
            None => {
                nodes.insert(name.to_owned(), node);
            }
        }
    }
    Ok(nodes.into_values().collect())
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && !text.trim().contains(char::is_whitespace)
}

/// Features by comma; Slurm writes `(null)` for none.
pub(super) fn comma_list(text: &str) -> std::collections::BTreeSet<String> {
    let known = |word: &&str| !word.is_empty() && *word != "(null)";
    text.split(',').map(str::trim).filter(known).map(str::to_owned).collect()
}

pub(super) fn reason_of(text: &str, by: &str, since: &str) -> Option<Reason> {
    let known = |text: &str| {
        let text = text.trim();
        let is_none =
            text.is_empty() || ["none", "unknown", "n/a", "(null)"].contains(&text.to_lowercase().as_str());
        (!is_none).then(|| text.to_owned())
    };
    Some(Reason { text: known(text)?, by: known(by), since: known(since) })
}
