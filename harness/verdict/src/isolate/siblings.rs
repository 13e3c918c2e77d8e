//! Parts of one kind on one node: where nearly all of them are bad in the same way, something that they share is at
//! fault, and it is named once instead of each of them.

use metric::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// So large a share of a node's NICs, or of its GPUs, has one cause; and never fewer than two of them.
const SHARE: f64 = 0.9;
const FEWEST: usize = 2;

/// A part that is bad.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// The node's name.
    pub node: String,
    /// A device name, `gpuN`, `fabric` or `node`.
    pub part: String,
    /// `None` for a node that is only slow by elimination.
    pub code: Option<&'static str>,
    /// What was measured, for people.
    pub evidence: String,
    /// `None` where the fault is no matter of a rate.
    pub rate: Option<Rate>,
}

/// A rate and what it should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    /// What the bad part reached.
    pub value: f64,
    /// What good peers reach, or what is expected.
    pub healthy: Option<f64>,
    /// Of both values; only rates of one unit are put together.
    pub unit: Unit,
}

/// Of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Devices {
    /// NICs of a node; 0 where unknown.
    pub nics: usize,
    /// GPUs of a node; 0 where unknown.
    pub gpus: usize,
}

/// What a single part's code becomes where all of its siblings have it: the part, its code, and the evidence of them all.
struct Whole {
    of: &'static str,
    part: &'static str,
    code: &'static str,
    about: &'static str,
}

const WHOLES: [Whole; 13] = [
    Whole { of: "HRN-NIC-SLOW", part: "fabric", code: "HRN-PORT-SLOW", about: "slow" },
    Whole { of: "HRN-NIC-DEAD", part: "fabric", code: "HRN-NIC-DEAD", about: "listed, but moved no byte" },
    Whole { of: "HRN-NIC-MISSING", part: "fabric", code: "HRN-NIC-MISSING", about: "not listed" },
    Whole { of: "HRN-NIC-LOOPBACK", part: "fabric", code: "HRN-NIC-LOOPBACK", about: "slow to themselves" },
    Whole { of: "HRN-GPU-SLOW", part: "node", code: "HRN-NODE-SLOW", about: "slow" },
    Whole { of: "HRN-GPU-WRONG", part: "node", code: "HRN-NODE-BROKEN", about: "wrong results" },
    Whole {
        of: "HRN-GPU-DIAGNOSIS",
        part: "node",
        code: "HRN-GPU-DIAGNOSIS",
        about: "fail DCGM's diagnosis",
    },
    Whole { of: "HRN-GPU-DIED", part: "node", code: "HRN-GPU-DIED", about: "died under load" },
    Whole {
        of: "HRN-GPU-PCIE-SLOW",
        part: "node",
        code: "HRN-GPU-PCIE-SLOW",
        about: "slow to or from the host",
    },
    Whole { of: "HRN-GPU-THROTTLES", part: "node", code: "HRN-GPU-THROTTLES", about: "slow down under load" },
    Whole { of: "HRN-GPU-ECC", part: "node", code: "HRN-GPU-ECC", about: "memory errors" },
    Whole {
        of: "HRN-GPU-NVLINK",
        part: "node",
        code: "HRN-GPU-NVLINK",
        about: "NVLinks down or with errors",
    },
    Whole {
        of: "HRN-NVLINK-SLOW",
        part: "nvlink",
        code: "HRN-NVLINK-SLOW",
        about: "slow to or from each other",
    },
];

/// One part for all that have one cause, in the place of the first of them; all others as they were.
pub(crate) fn unite(parts: Vec<Part>, devices: Devices) -> Vec<Part> {
    let mut kinds: BTreeMap<(String, &'static str), Vec<Part>> = BTreeMap::new();
    for part in &parts {
        if let Some(code) = part.code.filter(|code| WHOLES.iter().any(|whole| whole.of == *code)) {
            kinds.entry((part.node.clone(), code)).or_default().push(part.clone());
        }
    }
    let mut united: BTreeMap<(String, &'static str), Part> = kinds
        .into_iter()
        .filter_map(|((node, code), of_kind)| {
            let whole = WHOLES.iter().find(|whole| whole.of == code)?;
            let part = merge_whole(&node, whole, &of_kind, devices)?;
            Some(((node, code), part))
        })
        .collect();
    let mut done: BTreeSet<(String, &'static str)> = BTreeSet::new();
    let mut all = Vec::new();
    for part in parts {
        let key = (part.node.clone(), part.code.unwrap_or_default());
        if done.contains(&key) {
            continue;
        }
        match united.remove(&key) {
            Some(whole) => {
                done.insert(key);
                all.push(whole);
            }
            None => all.push(part),
        }
    }
    absorb(all)
}

fn merge_whole(node: &str, whole: &Whole, of_kind: &[Part], devices: Devices) -> Option<Part> {
    let names: BTreeSet<&str> = of_kind.iter().map(|part| part.part.as_str()).collect();
    if names.contains(whole.part) {
        return None;
    }
    let (all, what) = match !whole.of.starts_with("HRN-NIC") {
        true => (devices.gpus, "GPUs"),
        false => (devices.nics, "NICs"),
    };
    if names.len() < FEWEST || (names.len() as f64) < SHARE * all as f64 || all == 0 {
        return None;
    }
    let count = match names.len() >= all {
        true => format!("all {all} {what}"),
        false => format!("{} of {all} {what}", names.len()),
    };
    let evidence = match rates(of_kind) {
        // DCGM's own message says what to do.
        _ if whole.of == "HRN-GPU-DIAGNOSIS" => {
            let first = of_kind.first()?;
            format!("{count}: {}, first {}: {}", whole.about, first.part, first.evidence)
        }
        _ if whole.about != "slow" => format!("{count}: {}", whole.about),
        Some(rates) => format!("{count} at {rates}"),
        None => {
            let first = of_kind.first()?;
            format!("{count}, first {}: {}", first.part, first.evidence)
        }
    };
    Some(Part {
        node: node.to_owned(),
        part: whole.part.to_owned(),
        code: Some(whole.code),
        evidence,
        rate: None,
    })
}

/// Their median, or from the least to the most where they are not alike; beside what good ones reach.
fn rates(parts: &[Part]) -> Option<String> {
    let first = parts.iter().find_map(|part| part.rate)?;
    let of_unit = || parts.iter().filter_map(|part| part.rate).filter(|rate| rate.unit == first.unit);
    let mut values: Vec<f64> = of_unit().map(|rate| rate.value).collect();
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let number = |value: f64| if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    let unit = first.unit.name();
    let shown = match most <= ALIKE * least {
        true => format!("{} {unit}", number(*values.get(values.len() / 2)?)),
        false => format!("{} to {} {unit}", number(least), number(most)),
    };
    let mut healthy: Vec<f64> = of_unit().filter_map(|rate| rate.healthy).collect();
    healthy.sort_by(f64::total_cmp);
    Some(match healthy.get(healthy.len() / 2) {
        Some(healthy) => format!("{shown}, healthy: {}", number(*healthy)),
        None => shown,
    })
}

const ALIKE: f64 = 1.25;

/// Leaves out what a whole of the same node has in it, as where several cases name parts; and a node whose GPUs are slow
/// alike and whose NICs are, too, is slow as a whole.
pub(crate) fn absorb(parts: Vec<Part>) -> Vec<Part> {
    // By node and code, with all evidence.
    let mut wholes: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for part in parts.iter().filter(|part| WHOLES.iter().any(|whole| part.part == whole.part)) {
        if let Some(code) = part.code {
            wholes.entry((&part.node, code)).or_default().push(&part.evidence);
        }
    }
    let in_a_whole = |part: &Part| {
        let whole = |code| wholes.get(&(part.node.as_str(), code));
        let kind = WHOLES.iter().find(|kind| Some(kind.of) == part.code && kind.part != part.part);
        // A node can be broken for other reasons, too: they are no evidence on this GPU.
        let is_of =
            |kind: &Whole, evidence: &str| kind.code != "HRN-NODE-BROKEN" || evidence.contains(kind.about);
        kind.is_some_and(|kind| {
            whole(kind.code).is_some_and(|all| all.iter().any(|evidence| is_of(kind, evidence)))
        }) || (part.code == Some("HRN-PORT-SLOW") && whole("HRN-NODE-SLOW").is_some())
            // Slow GPUs copy slowly.
            || (part.part == "nvlink" && whole("HRN-NODE-SLOW").is_some())
    };
    let (left_out, mut kept): (Vec<Part>, Vec<Part>) = parts.iter().cloned().partition(in_a_whole);
    for part in kept.iter_mut().filter(|part| part.code == Some("HRN-NODE-SLOW")) {
        let fabric = left_out.iter().find(|of| of.node == part.node && of.code == Some("HRN-PORT-SLOW"));
        if let Some(fabric) = fabric {
            part.evidence = format!("{}; {}", part.evidence, fabric.evidence);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const P5: Devices = Devices { nics: 32, gpus: 8 };

    fn parts(code: &'static str, name: &str, count: usize, value: f64) -> Vec<Part> {
        let part = |at: usize| Part {
            node: "n2".into(),
            part: format!("{name}{at}"),
            code: Some(code),
            evidence: "slow".into(),
            rate: Some(Rate {
                value: value + at as f64 / 100.0,
                healthy: Some(2.0 * value),
                unit: Unit::GigabytesPerSecond,
            }),
        };
        (0..count).map(part).collect()
    }

    fn united(parts: Vec<Part>) -> Vec<String> {
        unite(parts, P5)
            .into_iter()
            .map(|part| format!("{} {}: {}", part.code.unwrap_or_default(), part.part, part.evidence))
            .collect()
    }

    #[test]
    fn all_or_nearly_all_siblings_are_one_culprit_and_fewer_are_their_own() {
        let nics = |count| parts("HRN-NIC-SLOW", "rdmap", count, 6.0);
        assert_eq!(united(nics(32)), ["HRN-PORT-SLOW fabric: all 32 NICs at 6.2 GB/s, healthy: 12.0"]);
        assert_eq!(united(nics(29)), ["HRN-PORT-SLOW fabric: 29 of 32 NICs at 6.1 GB/s, healthy: 12.0"]);
        assert_eq!(united(nics(28)).len(), 28);
        let gpus = |count| parts("HRN-GPU-SLOW", "gpu", count, 650.0);
        assert_eq!(united(gpus(8)), ["HRN-NODE-SLOW node: all 8 GPUs at 650 GB/s, healthy: 1300"]);
        assert_eq!(united(gpus(7)).len(), 7);
        assert_eq!(
            united([gpus(8), nics(32)].concat()),
            [
                "HRN-NODE-SLOW node: all 8 GPUs at 650 GB/s, healthy: 1300; all 32 NICs at 6.2 GB/s, healthy: 12.0"
            ]
        );
        let one = Devices { nics: 1, gpus: 1 };
        assert_eq!(unite(nics(1), one), nics(1), "one of one is itself");
    }

    #[test]
    fn parts_of_other_codes_and_other_nodes_stay() {
        let mut some = parts("HRN-NIC-SLOW", "rdmap", 32, 6.0);
        some.truncate(31);
        some.extend(parts("HRN-NIC-DEAD", "rdmap", 1, 0.0));
        assert_eq!(united(some.clone()).len(), 2);
        some[0].node = "n3".into();
        assert_eq!(united(some).len(), 3);
        let missing = united(parts("HRN-NIC-MISSING", "rdmap", 32, 0.0).into_iter().map(bare).collect());
        assert_eq!(missing, ["HRN-NIC-MISSING fabric: all 32 NICs: not listed"]);
    }

    fn bare(part: Part) -> Part {
        Part { rate: None, ..part }
    }

    #[test]
    fn a_gpu_with_wrong_results_stays_beside_another_fault_of_its_node() {
        let gpu = parts("HRN-GPU-WRONG", "gpu", 1, 0.0).remove(0);
        let node = |evidence: &str| Part {
            part: "node".into(),
            code: Some("HRN-NODE-BROKEN"),
            evidence: evidence.into(),
            ..gpu.clone()
        };
        let beside = |evidence| absorb(vec![node(evidence), gpu.clone()]).len();
        assert_eq!(beside("all 8 GPUs: wrong results"), 1);
        assert_eq!(beside("the job hung"), 2);
    }

    #[test]
    fn rates_that_differ_are_shown_from_the_least_to_the_most() {
        let mut some = parts("HRN-NIC-SLOW", "rdmap", 32, 6.0);
        some[5].rate = Some(Rate { value: 1.0, healthy: None, unit: Unit::GigabytesPerSecond });
        assert_eq!(united(some), ["HRN-PORT-SLOW fabric: all 32 NICs at 1.0 to 6.3 GB/s, healthy: 12.0"]);
    }

    #[test]
    fn messages() {
        let nics = |code, count| parts(code, "rdmap", count, 6.0);
        let gpus = |code| parts(code, "gpu", 8, 650.0);
        let mut unlike = nics("HRN-NIC-SLOW", 32);
        unlike[5].rate = Some(Rate { value: 1.0, healthy: None, unit: Unit::GigabytesPerSecond });
        let alone = |mut parts: Vec<Part>| {
            for part in &mut parts {
                part.rate = part.rate.map(|rate| Rate { healthy: None, ..rate });
            }
            parts
        };
        let lines = [
            nics("HRN-NIC-SLOW", 32),
            nics("HRN-NIC-SLOW", 29),
            unlike,
            alone(nics("HRN-NIC-SLOW", 32)),
            nics("HRN-NIC-SLOW", 32).into_iter().map(bare).collect::<Vec<Part>>(),
            nics("HRN-NIC-DEAD", 32),
            nics("HRN-NIC-MISSING", 31),
            gpus("HRN-GPU-SLOW"),
            gpus("HRN-GPU-WRONG"),
            [gpus("HRN-GPU-SLOW"), nics("HRN-NIC-SLOW", 32)].concat(),
        ]
        .map(|parts| united(parts).join("\n"));
        insta::assert_snapshot!(lines.join("\n"));
    }
}
