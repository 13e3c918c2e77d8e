//! `scontrol show topology`, of the plugins `topology/tree`, `topology/block`, `topology/ring` and `topology/torus3d`.

use base::nodeset;
use std::collections::{BTreeMap, BTreeSet};

/// All names of all switches together, as each level names every node again.
const MOST_NAMES: usize = 1_000_000;

/// By node its switches or blocks, from the top down. Lines of other nodes are read, too.
pub(super) fn switches(text: &str, nodes: &[String]) -> Result<BTreeMap<String, Vec<String>>, String> {
    let wanted: BTreeSet<&str> = nodes.iter().map(String::as_str).collect();
    let mut levels: BTreeMap<u64, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    let mut names = 0;
    for (line, number) in text.lines().zip(1..) {
        if line.contains("No topology information available") {
            return Err("Slurm has no topology".to_owned());
        }
        if line.trim().is_empty() {
            continue;
        }
        let switch =
            switch(line).ok_or_else(|| format!("line {number} is none of `scontrol show topology`"))?;
        let Some(set) = switch.nodes else { continue };
        let members = nodeset::expand(set).map_err(|why| format!("line {number}: {why}"))?;
        names += members.len();
        if names > MOST_NAMES {
            return Err(format!("line {number}: more than {MOST_NAMES} names of nodes"));
        }
        let level = levels.entry(switch.level).or_default();
        for node in members {
            if wanted.contains(node.as_str()) {
                level.entry(node).or_default().push(switch.name.to_owned());
            }
        }
    }
    // From the leaves up. A level at which a node has two switches separates no nodes.
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (at, level) in levels.values().enumerate() {
        let is_ambiguous = level.values().any(|above| above.len() > 1);
        if let Some((node, above)) = level.iter().find(|(_, above)| above.len() > 1)
            && at == 0
        {
            return Err(format!("{node} is in {}", above.join(" and in ")));
        }
        for (node, above) in level.iter().filter(|_| !is_ambiguous) {
            paths.entry(node.clone()).or_default().extend(above.iter().cloned());
        }
    }
    paths.values_mut().for_each(|path| path.reverse());
    Ok(paths)
}

struct Switch<'a> {
    name: &'a str,
    /// 0 for leaves; more for what stands above them.
    level: u64,
    nodes: Option<&'a str>,
}

/// What a line may name; the last two from 26.05 on.
const KINDS: [&str; 5] = ["SwitchName", "BlockName", "AggregatedBlock", "RingName", "TorusName"];

/// `SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1,3]`, or a block and what aggregates blocks, a ring or a torus.
fn switch(line: &str) -> Option<Switch<'_>> {
    let values: BTreeMap<&str, &str> =
        line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
    let number = |key: &str| values.get(key)?.parse::<u64>().ok();
    let mut named = KINDS.into_iter().filter_map(|kind| Some((kind, *values.get(kind)?)));
    let (kind, name) = named.next()?;
    if named.next().is_some() {
        return None;
    }
    let level = match kind {
        "SwitchName" => number("Level")?,
        "AggregatedBlock" => number("BlockSize").filter(|size| *size > 0)?,
        _ => 0,
    };
    let nodes = values.get("Nodes").copied().filter(|set| !set.is_empty() && *set != "(null)");
    Some(Switch { name, level, nodes })
}
