//! Labels that NVIDIA's feature discovery and MIG manager put on nodes. Whoever places jobs by them relies on what they say: one
//! that the node itself contradicts is stale, and MIG leaves jobs a part of a GPU.

use super::on_node::Reported;
use base::text::{shorten, show};
use model::artefact::{ProbedNode, Value};
use std::collections::BTreeMap;

pub(super) const CONTRADICTED: &str = "gpu_labels";
pub(super) const MIG: &str = "mig_labels";
const COUNT: &str = "nvidia.com/gpu.count";
const PRODUCT: &str = "nvidia.com/gpu.product";
const ANY: &str = "nvidia.com/";
const MIG_CONFIG: &str = "nvidia.com/mig.config";
const MIG_STATE: &str = "nvidia.com/mig.config.state";
/// Of a label and what contradicts it.
const LONGEST: usize = 160;

/// Those of NVIDIA.
pub(super) fn select(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels
        .iter()
        .filter(|(key, _)| key.starts_with(ANY))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// By which a node's GPUs are parted, or are to be. Other labels say what the GPUs are capable of.
pub(super) fn report_mig(labels: &BTreeMap<String, String>, reported: &mut Reported) {
    let is_parted = |key: &str, value: &str| match key {
        MIG_CONFIG => names_parts(value),
        MIG_STATE => value == "failed",
        PRODUCT => value.contains("-MIG-"),
        _ => key.starts_with("nvidia.com/mig-") && key.ends_with(".count") && value != "0",
    };
    let of_mig = |key: &str| key.starts_with("nvidia.com/mig");
    let found: Vec<String> = labels
        .iter()
        .filter(|(key, value)| is_parted(key, value))
        .map(|(key, value)| line(&format!("{key}={value}")))
        .collect();
    if found.is_empty() && !labels.keys().any(|key| of_mig(key)) {
        reported.unknown.insert(MIG.to_owned(), "the node has no label `nvidia.com/mig.*`".to_owned());
    } else {
        reported.facts.insert(MIG.to_owned(), Value::Names(found));
    }
}

/// Whether a configuration of the MIG manager parts GPUs by its name: `all-1g.10gb`, `all-balanced`. A site's own name shows
/// nothing.
fn names_parts(config: &str) -> bool {
    let is_profile = |(before, _): (&str, &str)| before.ends_with(|c: char| c.is_ascii_digit());
    config == "all-balanced" || config.split_once("g.").is_some_and(is_profile)
}

/// What the node reports otherwise than its labels, once it has answered.
pub(super) fn compare(labels: &BTreeMap<String, String>, node: &mut ProbedNode) {
    match contradicted(labels, node) {
        Ok(found) => {
            node.facts.insert(CONTRADICTED.to_owned(), Value::Names(found));
        }
        Err(why) => {
            node.unknown.insert(CONTRADICTED.to_owned(), why);
        }
    }
}

fn contradicted(labels: &BTreeMap<String, String>, node: &ProbedNode) -> Result<Vec<String>, String> {
    let (count, product) = (labels.get(COUNT), labels.get(PRODUCT));
    if count.is_none() && product.is_none() {
        return Err(format!("the node has no label `{COUNT}` or `{PRODUCT}`"));
    }
    let mut found = Vec::new();
    if let Some(count) = count {
        let Some(Value::Number(gpus)) = node.facts.get("gpus") else {
            return Err("the node itself reports no GPUs".to_owned());
        };
        if count.parse::<u64>() != Ok(*gpus) {
            found.push(line(&format!("{COUNT}={count}: nvidia-smi lists {gpus}")));
        }
    }
    if let Some(product) = product {
        let Some(Value::Text(model)) = node.facts.get("gpu") else {
            return Err("the node itself reports no model of its GPUs".to_owned());
        };
        if comparable(product) != comparable(model) {
            found.push(line(&format!("{PRODUCT}={product}: nvidia-smi reports {model}")));
        }
    }
    Ok(found)
}

/// Blanks of a model are `-` in a label, and older drivers leave the maker out.
fn comparable(model: &str) -> String {
    let letters = model.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase());
    let letters: String = letters.collect();
    letters.strip_prefix("nvidia").map(str::to_owned).unwrap_or(letters)
}

fn line(text: &str) -> String {
    shorten(&show(text), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn node(facts: &[(&str, Value)]) -> ProbedNode {
        let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        ProbedNode { facts, ..ProbedNode::default() }
    }

    fn h100() -> ProbedNode {
        node(&[("gpus", Value::Number(8)), ("gpu", Value::Text("NVIDIA H100 80GB HBM3".to_owned()))])
    }

    #[test]
    fn labels_that_the_node_contradicts_are_listed() {
        let h100_label = (PRODUCT, "NVIDIA-H100-80GB-HBM3");
        for (all, found) in [
            (&[(COUNT, "8"), h100_label][..], "none"),
            (&[(PRODUCT, "H100-80GB-HBM3")], "none"),
            (&[(COUNT, "7"), h100_label], "nvidia.com/gpu.count=7: nvidia-smi lists 8 (1)"),
            (&[(COUNT, "many")], "nvidia.com/gpu.count=many: nvidia-smi lists 8 (1)"),
            (
                &[(PRODUCT, "NVIDIA-H100-80GB-HBM3-SHARED")],
                "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3-SHARED: nvidia-smi reports NVIDIA H100 80GB HBM3 (1)",
            ),
        ] {
            let mut node = h100();
            compare(&labels(all), &mut node);
            assert_eq!(node.facts[CONTRADICTED].to_string(), found);
        }
    }

    #[test]
    fn without_labels_or_what_they_are_compared_with_nothing_is_known() {
        let unknown = |all: &[(&str, &str)], mut node: ProbedNode| {
            compare(&labels(all), &mut node);
            assert!(!node.facts.contains_key(CONTRADICTED));
            node.unknown[CONTRADICTED].clone()
        };
        let none = "the node has no label `nvidia.com/gpu.count` or `nvidia.com/gpu.product`";
        assert_eq!(unknown(&[], h100()), none);
        assert_eq!(unknown(&[(COUNT, "8")], node(&[])), "the node itself reports no GPUs");
        let without_model = node(&[("gpus", Value::Number(8))]);
        let why = unknown(&[(COUNT, "8"), (PRODUCT, "x")], without_model);
        assert_eq!(why, "the node itself reports no model of its GPUs");
    }

    #[test]
    fn labels_of_parted_gpus_are_listed_and_those_of_whole_ones_are_not() {
        let mig = |all: &[(&str, &str)]| {
            let mut reported = Reported::default();
            report_mig(&labels(all), &mut reported);
            reported.facts.get(MIG).map(Value::to_string)
        };
        let whole = [
            ("nvidia.com/mig.capable", "true"),
            ("nvidia.com/mig.strategy", "single"),
            (MIG_CONFIG, "all-disabled"),
        ];
        assert_eq!(mig(&whole).as_deref(), Some("none"));
        assert_eq!(
            mig(&[(MIG_CONFIG, "training-nodes")]).as_deref(),
            Some("none"),
            "a name of the site's own"
        );
        assert_eq!(
            mig(&[(MIG_CONFIG, "all-balanced")]).as_deref(),
            Some("nvidia.com/mig.config=all-balanced (1)")
        );
        assert_eq!(
            mig(&[(MIG_CONFIG, "all-1g.10gb")]).as_deref(),
            Some("nvidia.com/mig.config=all-1g.10gb (1)")
        );
        assert_eq!(
            mig(&[("nvidia.com/mig-1g.10gb.count", "7"), ("nvidia.com/mig-2g.20gb.count", "0")]).as_deref(),
            Some("nvidia.com/mig-1g.10gb.count=7 (1)")
        );
        assert_eq!(mig(&[(MIG_STATE, "failed")]).as_deref(), Some("nvidia.com/mig.config.state=failed (1)"));
        let product = "nvidia.com/gpu.product=NVIDIA-H100-MIG-1g.10gb (1)";
        assert_eq!(mig(&[(PRODUCT, "NVIDIA-H100-MIG-1g.10gb")]).as_deref(), Some(product));
        assert_eq!(mig(&[(COUNT, "8")]), None, "nothing labels MIG there");
    }
}
