//! What holds for data that this project did not make, and against second implementations. Where a test's data or program
//! is absent it is ignored, with the reason; none passes without it.

// Tests wait for real processes by the machine's clock; what they test must not.
#![allow(clippy::disallowed_methods)]

mod awk;
#[path = "../stand_ins/mod.rs"]
#[allow(dead_code)]
mod bed;
mod book;
mod breakdown;
mod corpus;
mod counters;
mod diagnosis;
#[path = "../drawn/mod.rs"]
mod drawn;
#[path = "../suite/ended.rs"]
mod ended;
mod exports;
#[path = "../live/fact.rs"]
#[allow(dead_code)]
mod fact;
mod heatmaps;
mod kernels;
mod left_out;
mod logs;
mod manifests;
mod nccl_calls;
mod nccl_debug;
mod nccl_tests;
mod needs;
mod node_tools;
mod oracle;
mod own_python;
#[path = "../suite/project.rs"]
#[allow(dead_code)]
mod project;
mod projections;
mod reports;
mod runtime_evidence;
#[path = "../suite/small_export.rs"]
#[allow(dead_code)]
mod small_export;
mod torch_burn;
mod torch_collective;
mod torch_ddp;
mod training_logs;
mod window_hook;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let ended = libtest_mimic::run(&arguments, tests());
    needs::print(&arguments);
    ended.exit();
}

fn tests() -> Vec<Trial> {
    let need = needs::seen();
    let collected = [
        breakdown::COLLECTED,
        counters::FACTS,
        diagnosis::COLLECTED,
        exports::FACTS,
        heatmaps::FACTS,
        kernels::FACTS,
        logs::FACTS,
        manifests::FACTS,
        nccl_calls::FACTS,
        nccl_debug::FACTS,
        nccl_tests::FACTS,
        node_tools::FACTS,
        projections::FACTS,
        runtime_evidence::FACTS,
    ]
    .concat();
    [
        need.trials("corpus", &collected, &[needs::CORPUS]),
        need.trials("corpus", awk::COLLECTED, &[needs::CORPUS, needs::GAWK]),
        need.trials("corpus", breakdown::COLLECTED_AND_PYTHON, &[needs::CORPUS, needs::PYTHON]),
        need.trials("corpus", oracle::COLLECTED, &[needs::CORPUS, needs::PANDAS]),
        need.trials("oracle", oracle::MADE, &[needs::PANDAS]),
        need.trials("oracle", oracle::OWN, &[]),
        need.trials("oracle", breakdown::MADE, &[needs::PYTHON]),
        need.trials("reports", reports::METRICS, &[needs::PROMETHEUS]),
        need.trials("reports", reports::SCHEMA, &[needs::JSON_SCHEMA]),
        need.trials("book", book::FACTS, &[needs::MDBOOK]),
        need.trials("reports", reports::JUNIT, &[needs::XMLLINT]),
        need.trials("awk", training_logs::FACTS, &[needs::GAWK]),
        need.trials("awk", awk::MADE, &[needs::GAWK]),
        need.trials("stand_ins", own_python::FACTS, &[needs::OWN_PYTHON]),
        need.trials("hook", window_hook::FACTS, &[needs::PYTHON]),
        need.trials("hook", window_hook::WITH_TORCH, &[needs::TORCH]),
        need.trials("torch", torch_collective::WITH_TORCH, &[needs::TORCH]),
        need.trials("torch", torch_burn::WITH_TORCH, &[needs::TORCH]),
        need.trials("torch", torch_ddp::WITH_TORCH, &[needs::TORCH]),
        need.trials("torch_burn", torch_burn::FACTS, &[needs::PYTHON]),
        fact::trials("left_out", left_out::FACTS, None),
    ]
    .into_iter()
    .flatten()
    .collect()
}
