//! Rules about how many processes a job starts, and for how many GPUs.

use super::resources::GPU;
use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Document, Manifests, Pod, commands, count};
use crate::lint::manifest::yaml::{Node, Position};
use crate::lint::script::{Word, base, number};
use ::base::text;

pub(super) const RANKS: Rule = Rule {
    code: "ranks",
    weight: Weight::Warning,
    what: "`mpirun -np` that is not workers times `slotsPerWorker`",
    harm: "mpirun refuses it for want of slots, or GPUs stay idle in a test of all",
};
pub(super) const SLOTS: Rule = Rule {
    code: "slots",
    weight: Weight::Warning,
    what: "`slotsPerWorker` that is not the number of GPUs of a worker",
    harm: "ranks share a GPU, or GPUs stay idle",
};
pub(super) const PROCESSES: Rule = Rule {
    code: "processes",
    weight: Weight::Warning,
    what: "`--nproc_per_node` that is not the number of GPUs of the container",
    harm: "processes share a GPU or fail for want of one, or GPUs stay idle",
};

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    for document in &manifests.documents {
        if document.kind == "MPIJob" {
            mpi(document, findings);
        }
        for pod in &document.pods {
            processes(pod, findings);
        }
    }
}

fn mpi(document: &Document, findings: &mut Findings) {
    let slots = document.root.at(&["spec", "slotsPerWorker"]);
    let worker = document.pod("Worker");
    if let (Some(slots), Some(node), Some(gpus)) =
        (slots.and_then(Node::number), slots, worker.and_then(|worker| worker.count(GPU)))
        && slots != gpus
    {
        let message = format!("`slotsPerWorker: {slots}`, and a worker has {gpus} GPUs");
        findings.add(&SLOTS, node.place, message, format!("write {gpus}"));
    }
    // An operator's default is one slot.
    let slots = slots.map_or(Some(1), Node::number);
    let is_launcher_too = document.root.at(&["spec", "runLauncherAsWorker"]).is_some_and(Node::is_true);
    let workers = worker.and_then(|worker| worker.replicas?.checked_add(u64::from(is_launcher_too)));
    let (Some(slots), Some(workers), Some(launcher)) = (slots, workers, document.pod("Launcher")) else {
        return;
    };
    let Some(all) = slots.checked_mul(workers) else { return };
    for (container, command) in each_command(launcher) {
        let Some(at) = command.iter().position(|word| matches!(base(&word.text), "mpirun" | "mpiexec"))
        else {
            continue;
        };
        let ranks = number(&command[at..], &["-np", "--np"]);
        if let Some(ranks) = ranks.filter(|ranks| *ranks != all) {
            let place =
                Position { file: container.place.file, line: command[at].line, column: command[at].column };
            let message = format!("`-np {ranks}` with {workers} workers of {}", text::count(slots, "slot"));
            findings.add(&RANKS, place, message, format!("write `-np {all}`"));
        }
    }
}

fn each_command(pod: &Pod) -> impl Iterator<Item = (&Node, Vec<Word>)> {
    pod.containers()
        .flat_map(|container| commands(container).into_iter().map(move |command| (container, command.words)))
}

fn processes(pod: &Pod, findings: &mut Findings) {
    for (container, words) in each_command(pod) {
        let Some(gpus) = count(container, GPU) else { continue };
        let of = |name: &str| number(&words, &[name]).filter(|processes| *processes != gpus);
        let Some(processes) = of("--nproc_per_node").or_else(|| of("--nproc-per-node")) else { continue };
        let option = words.iter().find(|word| word.text.starts_with("--nproc"));
        let place = option.map_or(container.place, |word| Position {
            file: container.place.file,
            line: word.line,
            column: word.column,
        });
        let message = format!("{processes} processes on each node, and the container has {gpus} GPUs");
        findings.add(&PROCESSES, place, message, format!("write `--nproc_per_node={gpus}`"));
    }
}
