//! How jobs ask Slurm for GPUs where the inventory leaves it open: settled by what Slurm reports, before anything is
//! launched. The scripts of the plan hold the answer, so that a resumed run does not ask again.

use config::inventory::{GresReport, Inventory};
use job::script::{self, GpuRequest, Start, files};
use model::artefact::Plan;

/// How jobs ask, where that is not by GRES; nothing where the inventory leaves nothing open. A decision that may surprise is
/// printed.
pub(crate) fn settled(inventory: &Inventory, report: &GresReport, is_quiet: bool) -> Option<GpuRequest> {
    if !inventory.leaves_gpu_request_open() {
        return None;
    }
    if let Some(note) = report.note().filter(|_| !is_quiet) {
        eprintln!("note: {note}");
    }
    Some(report.request()).filter(|request| *request != GpuRequest::default())
}

/// As a stored plan has it.
pub(crate) fn from_plan(plan: &Plan) -> Option<GpuRequest> {
    let scripts = plan.cases.iter().flat_map(|case| &case.jobs).flat_map(|job| &job.files);
    let texts = scripts.filter(|file| file.name == files::JOB).filter_map(|file| file.text.as_deref());
    let mut read = texts.filter_map(|text| script::read(text).ok());
    read.find_map(|script| match script.start {
        Start::Slurm(directives) => Some(directives.gpus),
        Start::Bash | Start::Ssh | Start::Pods => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::inventory::Instances;
    use job::script::{Directives, Script};
    use std::path::Path;

    fn plan_by(start: Start) -> Plan {
        let mut plan = fixture::plan();
        let script = Script { start, nodes: vec!["p5-001".into()], steps: Vec::new() };
        for case in &mut plan.cases {
            for file in case.jobs.iter_mut().flat_map(|job| &mut job.files) {
                if file.name == files::JOB {
                    file.text = Some(script::render(&script));
                }
            }
        }
        plan
    }

    #[test]
    fn a_plan_says_by_its_scripts_how_its_jobs_ask_for_gpus() {
        let directives = |gpus: GpuRequest| {
            Start::Slurm(Directives {
                job_name: "r.c.j".into(),
                folder: "/fsx/j".into(),
                tasks_per_node: 8,
                gpus_per_node: gpus.count(8),
                minutes: 8,
                exclusive: true,
                stands_alone: true,
                partition: None,
                account: None,
                reservation: None,
                constraint: None,
                gpus,
                qos: None,
                mem: None,
                sbatch: Vec::new(),
                srun: Vec::new(),
                records_environment: false,
            })
        };
        for gpus in [GpuRequest::Gres, GpuRequest::GpusPerNode, GpuRequest::None] {
            assert_eq!(from_plan(&plan_by(directives(gpus))), Some(gpus));
        }
        assert_eq!(from_plan(&plan_by(Start::Bash)), None);
        assert_eq!(from_plan(&fixture::plan()), None);
    }

    #[test]
    fn only_what_the_inventory_leaves_open_and_is_not_by_gres_is_settled() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a root");
        let instances = Instances::load(home).expect("sound instances");
        let of = |reach: &str, report: &GresReport| {
            let text =
                format!("kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"n1\"\n[reach]\n{reach}\n");
            let inventory = Inventory::read(&text, "inventory/x.toml", &instances).expect("good");
            settled(&inventory, report, true)
        };
        let some = GresReport::NotOf(vec!["n1".into()]);
        for (reach, report, settled) in [
            ("via = \"slurm\"", &GresReport::NoNode, Some(GpuRequest::None)),
            ("via = \"slurm\"", &GresReport::EveryNode, None),
            ("via = \"slurm\"", &GresReport::Unknown, None),
            ("via = \"slurm\"", &some, None),
            ("via = \"slurm\"\ngpus = \"gres\"", &GresReport::NoNode, None),
            ("via = \"ssh\"", &GresReport::NoNode, None),
        ] {
            assert_eq!(of(reach, report), settled, "{reach} {report:?}");
        }
    }
}
