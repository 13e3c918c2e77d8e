//! Cases that run only where their program is installed: by the probe of each node, which of their jobs are left out.

use super::Context;
use super::placement::Placed;
use config::suite::{Case, PYTORCH, TORCHRUN};
use model::artefact::{HOST_ENGINE, NotInstalled, PlannedJob, Probe, ProbedNode, SLURM_GPUS, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The programs that each node has, of those that the probe looks for. A node that did not report them is not in it: its
/// cases are run, and what they come to counts.
pub type NodePrograms = BTreeMap<String, BTreeSet<String>>;

/// By the reports of the nodes.
pub fn node_programs(probe: &Probe) -> NodePrograms {
    let of = |node: &ProbedNode| match node.facts.get("node_programs") {
        Some(Value::Names(names)) => Some((node.node.clone(), names.iter().cloned().collect())),
        _ => None,
    };
    probe.nodes.iter().filter_map(of).collect()
}

/// The jobs whose nodes all have what the case needs, and why there are no others.
pub(crate) fn keep_jobs(
    context: &Context,
    case: &Case,
    jobs: Vec<PlannedJob>,
) -> (Vec<PlannedJob>, Option<NotInstalled>) {
    if !case.where_installed {
        return (jobs, None);
    }
    let mut needed = case.workload.probed_programs();
    // PyTorch comes from the image, where there is one, or from the environment whose torchrun the inventory names: no probe
    // looks into them.
    let inventory = context.inventory;
    let is_elsewhere = inventory.container.is_some()
        || needed.contains(&TORCHRUN) && inventory.paths.samples.torchrun.is_some();
    needed
        .retain(|program| *program != SLURM_GPUS && !(is_elsewhere && [PYTORCH, TORCHRUN].contains(program)));
    let mut without: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in jobs.iter().flat_map(|job| &job.nodes) {
        let Some(has) = context.request.programs.get(node) else { continue };
        // Where dcgmi is not installed, it is not asked whether its daemon runs.
        let is_asked = |program: &&&str| **program != HOST_ENGINE || has.contains("dcgmi");
        for program in needed.iter().filter(|program| !has.contains(**program)).filter(is_asked) {
            without.entry((*program).to_owned()).or_default().insert(node.clone());
        }
    }
    if without.is_empty() {
        return (jobs, None);
    }
    let lacks = |node: &String| without.values().any(|nodes| nodes.contains(node));
    let (left_out, kept): (Vec<PlannedJob>, Vec<PlannedJob>) =
        jobs.into_iter().partition(|job| job.nodes.iter().any(&lacks));
    let of = |jobs: &[PlannedJob]| -> BTreeSet<String> {
        jobs.iter().flat_map(|job| job.nodes.iter().cloned()).collect()
    };
    let skipped = &of(&left_out) - &of(&kept);
    (kept, Some(NotInstalled { without, skipped }))
}

/// Of a case about GPUs that Slurm gives to steps, where this launcher cannot run it.
pub(crate) fn without_slurm(case: &Case, placed: &[Placed]) -> Option<NotInstalled> {
    if !case.where_installed || !case.workload.probed_programs().contains(&SLURM_GPUS) {
        return None;
    }
    let nodes: BTreeSet<String> = placed.iter().flat_map(|placed| placed.nodes.iter().cloned()).collect();
    let without = BTreeMap::from([(SLURM_GPUS.to_owned(), nodes.clone())]);
    Some(NotInstalled { without, skipped: nodes })
}

#[cfg(test)]
mod tests {
    use super::super::message_tests::{inventory, request};
    use super::super::{Request, plan};
    use super::*;
    use config::inventory::Inventory;
    use config::suite::Suite;
    use model::artefact::PlannedCase;
    use recipes::catalogue::Catalogue;

    /// One case on three nodes, of which these have these programs.
    fn planned(workload: &str, placement: &str, programs: &[(&str, &[&str])]) -> PlannedCase {
        planned_on(&inventory("real", "via = \"slurm\"", ""), workload, placement, programs)
    }

    fn planned_on(
        inventory: &Inventory,
        workload: &str,
        placement: &str,
        programs: &[(&str, &[&str])],
    ) -> PlannedCase {
        let (recipe, assertion) = match workload {
            _ if workload.contains("iperf3") => ("iperf3", "metric = \"tcp.rate\"\nat_least = \"1 GB/s\""),
            _ if workload.contains("dcgm") => {
                ("dcgm_diag", "metric = \"dcgm.node_failed\"\nper = \"node\"\nequals = 0")
            }
            _ if workload.contains("torch-ddp") => {
                ("training_log", "metric = \"train.weights_equal\"\nequals = 1")
            }
            _ if workload.contains("allocation") => {
                ("gpu_allocation", "metric = \"allocation.wrong\"\nper = \"node\"\nequals = 0")
            }
            _ => ("fio", "metric = \"fio.errors\"\nper = \"node\"\nequals = 0"),
        };
        let text = format!(
            "instance = \"p5\"\nabout = \"a test\"\n[[case]]\nname = \"one\"\nplacement = \"{placement}\"\n\
             workload = {workload}\nwhere_installed = true\nrecipes = [\"{recipe}\"]\n\
             [[case.assert]]\n{assertion}\n"
        );
        let suite = Suite::read(&text, "suites/s.toml", &Catalogue::built_in());
        let suite = suite.map_err(|why| why.to_string()).expect("good");
        let of = |(node, programs): &(&str, &[&str])| {
            ((*node).to_owned(), programs.iter().map(|program| (*program).to_owned()).collect())
        };
        let programs: NodePrograms = programs.iter().map(of).collect();
        let made = plan(&[suite], inventory, None, Request { programs, ..request(3) });
        made.expect("a plan").cases.remove(0)
    }

    fn nodes_of(case: &PlannedCase) -> Vec<&str> {
        case.jobs.iter().flat_map(|job| job.nodes.iter().map(String::as_str)).collect()
    }

    const FIO: &str = "{ kind = \"fio\", directory = \"/opt/dlami/nvme\" }";
    const DISKS: &str = "/opt/dlami/nvme";

    #[test]
    fn a_node_without_the_program_or_its_folder_is_skipped_and_keeps_its_assertions() {
        let case = planned(FIO, "each", &[("n1", &["fio", DISKS]), ("n2", &[DISKS]), ("n3", &["fio"])]);
        assert_eq!((nodes_of(&case), &case.skip), (vec!["n1"], &None));
        let absent = case.not_installed.expect("two nodes without");
        assert_eq!(absent.skipped, BTreeSet::from(["n2".to_owned(), "n3".to_owned()]));
        assert_eq!(absent.reason(), "there is no /opt/dlami/nvme on n3; fio is not installed on n2");
        assert_eq!(case.assertions.len(), 3);
    }

    #[test]
    fn a_case_whose_program_no_node_has_is_skipped_as_a_whole() {
        let case = planned(FIO, "each", &[("n1", &[DISKS]), ("n2", &[DISKS]), ("n3", &[DISKS])]);
        assert_eq!(case.skip.as_deref(), Some("fio is not installed on n[1-3]"));
        assert!(case.jobs.is_empty() && case.not_installed.is_some_and(|absent| absent.skipped.len() == 3));
    }

    #[test]
    fn a_node_that_did_not_report_its_programs_runs_the_case() {
        let case = planned(FIO, "each", &[("n2", &[])]);
        assert_eq!(nodes_of(&case), ["n1", "n3"]);
        assert_eq!(planned(FIO, "each", &[]).not_installed, None);
    }

    #[test]
    fn a_diagnosis_needs_the_daemon_of_dcgm_and_the_reason_names_the_command_that_starts_it() {
        let diagnosis = "{ kind = \"dcgm-diag\" }";
        let programs: [(&str, &[&str]); 3] =
            [("n1", &["dcgmi", HOST_ENGINE]), ("n2", &["dcgmi"]), ("n3", &[])];
        let case = planned(diagnosis, "each", &programs);
        assert_eq!(nodes_of(&case), ["n1"]);
        let absent = case.not_installed.expect("two nodes without");
        let why = "dcgmi is not installed on n3; nv-hostengine does not run on n2; start it with `systemctl start nvidia-dcgm`";
        assert_eq!(absent.reason(), why);
    }

    #[test]
    fn a_training_needs_pytorch_and_torchrun_of_all_its_nodes_unless_another_environment_is_named() {
        let ddp = "{ kind = \"torch-ddp\" }";
        let programs: [(&str, &[&str]); 3] =
            [("n1", &[PYTORCH, TORCHRUN]), ("n2", &[PYTORCH]), ("n3", &[PYTORCH, TORCHRUN])];
        let case = planned(ddp, "all", &programs);
        assert_eq!(case.skip.as_deref(), Some("torchrun is not installed on n2"));
        assert_eq!(case.not_installed.expect("one node without").skipped.len(), 3);
        let mut named = inventory("real", "via = \"slurm\"", "");
        named.paths.samples.torchrun = Some("/opt/venv/bin/torchrun".to_owned());
        let case = planned_on(&named, ddp, "all", &programs);
        assert_eq!((case.jobs.len(), case.not_installed), (1, None));
    }

    #[test]
    fn gpus_of_slurm_are_not_checked_where_another_launcher_starts_the_jobs() {
        let allocation = "{ kind = \"gpu-allocation\" }";
        assert_eq!(nodes_of(&planned(allocation, "each", &[("n1", &[])])), ["n1", "n2", "n3"]);
        let case = planned_on(&inventory("real", "via = \"ssh\"", ""), allocation, "each", &[]);
        assert!(case.jobs.is_empty() && case.skip.is_some(), "{:?}", case.skip);
        let absent = case.not_installed.expect("no Slurm");
        assert_eq!(absent.reason(), "Slurm gives no GPUs to steps on n[1-3]");
        assert_eq!(absent.skipped.len(), 3);
        // A Slurm that knows of no GPUs gives none, and has none that are checked.
        let none = inventory("real", "via = \"slurm\", gpus = \"none\"", "");
        let case = planned_on(&none, allocation, "each", &[]);
        let why = case.skip.expect("skipped");
        assert!(why.contains("jobs ask for no GPUs here (`gpus = \"none\"`)"), "{why}");
        assert_eq!(
            case.not_installed.map(|absent| absent.reason()).as_deref(),
            Some("Slurm gives no GPUs to steps on n[1-3]")
        );
    }

    #[test]
    fn a_pair_is_run_only_where_both_nodes_have_the_program() {
        let iperf3 = "{ kind = \"iperf3\" }";
        let case = planned(iperf3, "pairs", &[("n1", &["iperf3"]), ("n2", &["iperf3"]), ("n3", &[])]);
        assert!(!nodes_of(&case).contains(&"n3") && nodes_of(&case).contains(&"n1"), "{:?}", nodes_of(&case));
        let absent = case.not_installed.expect("a node without");
        assert_eq!(absent.skipped, BTreeSet::from(["n3".to_owned()]));
    }
}
