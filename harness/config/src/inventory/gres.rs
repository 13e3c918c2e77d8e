//! How Slurm is asked for GPUs where the inventory leaves it open (`gpus = "auto"`): decided from the GRES of the nodes, by the
//! same rule for a run and for `inventory discover`.

use super::Inventory;
use base::nodeset::fold;
use job::script::GpuRequest;
use model::artefact::Probe;

/// What Slurm reports of the GRES of some nodes, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GresReport {
    /// That of every node names GPUs.
    EveryNode,
    /// That of no node does.
    NoNode,
    /// That of these nodes does not, and that of others does.
    NotOf(Vec<String>),
    /// Slurm reported none of the nodes.
    Unknown,
}

impl GresReport {
    /// Of nodes, each with the number of GPUs in its GRES: 0 where it names none, nothing where Slurm did not report it.
    pub fn new<'a>(nodes: impl IntoIterator<Item = (&'a str, Option<u32>)>) -> GresReport {
        let reported = nodes.into_iter().filter_map(|(node, gpus)| Some((node, gpus?)));
        let (with, without): (Vec<_>, Vec<_>) = reported.partition(|(_, gpus)| *gpus > 0);
        match (with.is_empty(), without.is_empty()) {
            (true, true) => GresReport::Unknown,
            (false, true) => GresReport::EveryNode,
            (true, false) => GresReport::NoNode,
            (false, false) => {
                GresReport::NotOf(without.into_iter().map(|(node, _)| node.to_owned()).collect())
            }
        }
    }

    /// As a probe recorded it.
    pub fn from_probe(probe: &Probe) -> GresReport {
        GresReport::new(probe.nodes.iter().map(|node| (node.node.as_str(), node.gres_gpus)))
    }

    /// Not at all where no node has GPUs as GRES, else by GRES: what Slurm does not report is no reason to take GPUs that it
    /// gives to others.
    pub fn request(&self) -> GpuRequest {
        match self {
            GresReport::NoNode => GpuRequest::None,
            GresReport::EveryNode | GresReport::NotOf(_) | GresReport::Unknown => GpuRequest::Gres,
        }
    }

    /// Whether jobs that ask for GPUs by GRES are refused on that node, and on others not.
    pub fn is_without(&self, node: &str) -> bool {
        matches!(self, GresReport::NotOf(without) if without.iter().any(|one| one == node))
    }

    /// What a person should know of the decision; nothing where GPUs are asked for by GRES and all nodes have them.
    pub fn note(&self) -> Option<String> {
        match self {
            GresReport::EveryNode => None,
            GresReport::NoNode => Some(
                "Slurm has no GRES for GPUs, so jobs ask for none; `gpus = \"none\"` in `[reach]` says so too".to_owned(),
            ),
            GresReport::NotOf(without) => Some(format!(
                "GRES of {} names no GPU, but jobs ask for GPUs by GRES; leave out what has none, or set `gpus` in `[reach]`",
                fold(without)
            )),
            GresReport::Unknown => Some(
                "Slurm reported no GRES, so jobs ask for GPUs by GRES; where it has none, set `gpus = \"none\"` in `[reach]`"
                    .to_owned(),
            ),
        }
    }
}

impl Inventory {
    /// Whether what Slurm reports decides how jobs ask for GPUs.
    pub fn leaves_gpu_request_open(&self) -> bool {
        self.reach.slurm().is_some_and(|slurm| slurm.gpus.is_none())
    }

    /// Has jobs ask for GPUs so, where the file leaves it open.
    pub fn settle_gpu_request(&mut self, by: GpuRequest) {
        if let Some(slurm) = self.reach.slurm_mut() {
            slurm.gpus = slurm.gpus.or(Some(by));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Instances;
    use std::path::Path;

    #[test]
    fn gpus_are_asked_for_by_gres_unless_no_node_has_any() {
        let of = |nodes: &[(&str, Option<u32>)]| GresReport::new(nodes.iter().copied());
        for (nodes, report, request) in [
            (&[("n1", Some(8)), ("n2", Some(8))][..], GresReport::EveryNode, GpuRequest::Gres),
            (&[("n1", Some(0)), ("n2", Some(0))], GresReport::NoNode, GpuRequest::None),
            (&[("n1", Some(8)), ("n2", Some(0))], GresReport::NotOf(vec!["n2".into()]), GpuRequest::Gres),
            (&[("n1", None), ("n2", None)], GresReport::Unknown, GpuRequest::Gres),
            (&[], GresReport::Unknown, GpuRequest::Gres),
            // What is not reported speaks for nothing.
            (&[("n1", Some(8)), ("n2", None)], GresReport::EveryNode, GpuRequest::Gres),
            (&[("n1", Some(0)), ("n2", None)], GresReport::NoNode, GpuRequest::None),
        ] {
            assert_eq!(of(nodes), report, "{nodes:?}");
            assert_eq!(report.request(), request, "{nodes:?}");
        }
        let mixed = of(&[("n1", Some(8)), ("n2", Some(0))]);
        assert_eq!((mixed.is_without("n1"), mixed.is_without("n2")), (false, true));
        assert!(!of(&[("n2", Some(0))]).is_without("n2"), "jobs ask for none there");
    }

    #[test]
    fn each_decision_that_may_surprise_names_the_key() {
        assert_eq!(GresReport::EveryNode.note(), None);
        for report in [
            GresReport::NoNode,
            GresReport::Unknown,
            GresReport::NotOf(vec!["n1".into(), "n2".into(), "n4".into()]),
        ] {
            let note = report.note().expect("a note");
            assert!(note.contains("`[reach]`") && note.contains("`gpus"), "{note}");
            assert!(note.len() <= 120, "{note}");
        }
        let note = GresReport::NotOf(vec!["n1".into(), "n2".into(), "n4".into()]).note();
        assert!(note.is_some_and(|note| note.starts_with("GRES of n[1-2,4] names no GPU")));
    }

    #[test]
    fn only_what_the_file_leaves_open_is_settled() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
        let instances = Instances::load(home).expect("sound instances");
        let read = |reach: &str| {
            let text = format!(
                "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"n[1-2]\"\n[reach]\n{reach}\n"
            );
            Inventory::read(&text, "inventory/x.toml", &instances).expect("good")
        };
        for (reach, is_open, settled) in [
            ("via = \"slurm\"", true, Some(GpuRequest::None)),
            ("via = \"slurm\"\ngpus = \"auto\"", true, Some(GpuRequest::None)),
            ("via = \"slurm\"\ngpus = \"gres\"", false, Some(GpuRequest::Gres)),
            ("via = \"slurm\"\ngpus = \"gpus-per-node\"", false, Some(GpuRequest::GpusPerNode)),
            ("via = \"slurm\"\ngpus = \"none\"", false, Some(GpuRequest::None)),
            ("via = \"ssh\"", false, None),
        ] {
            let mut inventory = read(reach);
            assert_eq!(inventory.leaves_gpu_request_open(), is_open, "{reach}");
            inventory.settle_gpu_request(GpuRequest::None);
            assert_eq!(inventory.reach.slurm().and_then(|slurm| slurm.gpus), settled, "{reach}");
            assert!(!inventory.leaves_gpu_request_open(), "{reach}");
        }
    }
}
