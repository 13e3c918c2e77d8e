//! What the harness assumes of the programs on nodes: MPI, nccl-tests, flow tools, libfabric and its plugin, nsys,
//! training.

use super::Outcome::{self, Differs, Holds, NotSeen};
use super::evidence::{Section, help, lacks, section};
use super::{Assumption, Evidence, On, assumption};
use config::facts::compare_versions;
use config::inventory::NicTool;
use metric::op::Op;
use model::artefact::Value;
use std::collections::{BTreeMap, BTreeSet};

type Sections = BTreeMap<String, Section>;

const HELP: &str = "--help";
/// What `node.sh` has mpirun export.
const MPIRUN_EXPORTED: &str = "exported";

pub(super) const ASSUMPTIONS: &[Assumption] = &[
    assumption(
        "tools.mpirun",
        "mpirun is Open MPI 4 or 5",
        "mpirun --version",
        "the EFA installer puts it into /opt/amazon/openmpi; 4 and 5 start alone in different ways",
        On::Host,
        mpirun,
    ),
    assumption(
        "tools.mpirun_options",
        "mpirun takes -np, -N, --hostfile, --bind-to and -x as jobs give them",
        "mpirun that starts `printenv` on its own node",
        "man mpirun of Open MPI 4.1; tried with 4.1.4",
        On::Ssh,
        mpirun_options,
    ),
    assumption(
        "tools.nccl_tests",
        "all programs of nccl-tests are in `paths.nccl_tests`",
        "ls *_perf",
        "AWS's nccl-tests.Dockerfile: /opt/nccl-tests/build; DLAMI: /usr/local/cuda-*/efa/test-cuda-*",
        On::Host,
        nccl_tests,
    ),
    assumption(
        "tools.nccl_tests_options",
        "nccl-tests knows -b -e -f -n -w -d -o -r -c -g",
        "all_reduce_perf -h",
        "nccl-tests, src/common.cu",
        On::Host,
        nccl_tests_options,
    ),
    assumption(
        "tools.nccl_tests_libraries",
        "nccl-tests finds all of its libraries",
        "ldd all_reduce_perf",
        "AWS's nccl-tests-ami.sbatch sets LD_LIBRARY_PATH for that",
        On::Host,
        nccl_tests_libraries,
    ),
    assumption(
        "tools.nccl_tests_mpi",
        "nccl-tests was built with MPI: else each rank measures itself alone",
        "ldd all_reduce_perf",
        "nccl-tests, src/Makefile: MPI=1, as AWS's nccl-tests.Dockerfile builds it",
        On::Host,
        nccl_tests_mpi,
    ),
    assumption(
        "tools.plugin",
        "aws-ofi-nccl is installed: without it NCCL talks TCP",
        "the probe",
        "the EFA installer: /opt/amazon/ofi-nccl",
        On::Host,
        plugin,
    ),
    assumption(
        "tools.no_fi_variables",
        "libfabric is 1.18 and aws-ofi-nccl 1.7, or newer: EFA needs no FI_ variables",
        "the probe",
        "awsome-distributed-training, efa-cheatsheet.md",
        On::Host,
        no_fi_variables,
    ),
    assumption(
        "tools.efa_provider",
        "libfabric's efa provider lists a domain DEVICE-rdm for each NIC",
        "fi_info -p efa -t FI_EP_RDM",
        "libfabric, efa_user_info.c",
        On::Any,
        efa_provider,
    ),
    assumption(
        "tools.flow_tool",
        "the inventory's flow tool is installed",
        "fi_rma_bw --help, ib_write_bw --help",
        "the EFA installer brings neither; ParallelCluster's tests build fabtests (install-fabtests.sh)",
        On::Any,
        flow_tool,
    ),
    assumption(
        "tools.flow_tool_cuda",
        "the flow tool was built with CUDA",
        HELP,
        "fabtests, shared.c: -D; perftest: --use_cuda",
        On::Any,
        flow_tool_cuda,
    ),
    assumption(
        "tools.flow_tool_options",
        "the flow tool knows the options that flows are started with",
        HELP,
        "fabtests, shared.c; perftest, perftest_parameters.c: SRD writes from 24 on",
        On::Any,
        flow_tool_options,
    ),
    assumption(
        "tools.nsys",
        "nodes have the release of nsys that the inventory names",
        "nsys --version",
        "the inventory's `nsys_version`",
        On::Host,
        nsys,
    ),
    assumption(
        "tools.nsys_switches",
        "nsys knows the switches of every window of a profile",
        "nsys profile --help",
        "the user guide of Nsight Systems, by release",
        On::Host,
        nsys_switches,
    ),
    assumption(
        "tools.fsdp_sample",
        "the FSDP sample is where its README clones it, or at `paths.fsdp`",
        "test -r",
        "awsome-distributed-training, 3.test_cases/pytorch/FSDP",
        On::Host,
        fsdp_sample,
    ),
    assumption(
        "tools.fsdp_options",
        "the FSDP sample knows the options that `fsdp-p5` gives it, and the data set allenai/c4",
        "its options, by grep",
        "awsome-distributed-training, FSDP/src/model_utils/arguments.py; llm-foundry PR 1553",
        On::Host,
        fsdp_options,
    ),
    assumption(
        "tools.fsdp_line",
        "the FSDP sample logs each step with its loss and its samples/sec",
        "its line of a step, by grep",
        "awsome-distributed-training, FSDP/src/train.py",
        On::Host,
        fsdp_line,
    ),
    assumption(
        "tools.peer",
        "a node reaches another by ssh without a question, as mpirun does",
        "ssh -o BatchMode=yes",
        "Open MPI, plm rsh",
        On::Ssh,
        peer,
    ),
];

fn seen<T>(result: Result<T, Outcome>, then: impl FnOnce(T) -> Outcome) -> Outcome {
    result.map_or_else(|outcome| outcome, then)
}

/// What should be installed and is not there differs: that is known.
fn installed<'s>(sections: &'s Sections, name: &str) -> Result<&'s Section, Outcome> {
    match sections.get(name) {
        Some(section) if section.status.is_none() => Err(Differs(section.first().to_owned())),
        _ => section(sections, name),
    }
}

fn mpirun(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(installed(sections, "mpirun"), |section| {
            let first = section.first();
            let major = first.strip_prefix("mpirun (Open MPI) ").and_then(|rest| rest.split('.').next());
            match major {
                Some("4" | "5") => Holds(first.to_owned()),
                _ => Differs(first.to_owned()),
            }
        })
    })
}

fn mpirun_options(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| match sections.get("mpirun_options") {
        // It may have warned of something besides.
        Some(rank) if rank.status == Some(0) && rank.names().any(|line| line == MPIRUN_EXPORTED) => {
            Holds("the rank has the variable of -x".to_owned())
        }
        Some(refused) if refused.status.is_some() => {
            Differs(format!("the rank has no variable of -x: {}", refused.first()))
        }
        Some(absent) => NotSeen(absent.first().to_owned()),
        None => NotSeen("the node reported no `mpirun_options`".to_owned()),
    })
}

fn nccl_tests(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "nccl_tests"), |section| {
            let there: BTreeSet<&str> = section.names().collect();
            let programs = Op::ALL.iter().map(|op| op.program());
            let missing: Vec<String> = programs.filter(|program| !there.contains(program.as_str())).collect();
            match (missing.is_empty(), there.is_empty()) {
                (true, _) => Holds(format!("{} programs", there.len())),
                (false, true) => Differs(format!("none in {}", evidence.inventory.paths.nccl_tests)),
                (false, false) => Differs(format!("no {}", missing.join(", "))),
            }
        })
    })
}

fn nccl_tests_options(evidence: &Evidence<'_>) -> Outcome {
    const OPTIONS: [&str; 10] = ["-b", "-e", "-f", "-n", "-w", "-d", "-o", "-r", "-c", "-g"];
    evidence.each(|sections| seen(help(sections, "nccl_tests_help"), |section| lacks(section, &OPTIONS)))
}

fn nccl_tests_libraries(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "nccl_tests_libraries"), |section| {
            let missing: Vec<&str> = section
                .names()
                .filter(|line| line.contains("not found"))
                .filter_map(|line| line.split_whitespace().next())
                .collect();
            match missing.is_empty() {
                true => Holds(format!("{} libraries", section.names().count())),
                false => Differs(format!("not found: {}", missing.join(" "))),
            }
        })
    })
}

fn nccl_tests_mpi(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "nccl_tests_libraries"), |section| {
            // A static program lists none, and nothing of what is within.
            if !section.contains("=>") {
                return NotSeen(format!("ldd lists no library: {}", section.first()));
            }
            let mut names = section.names().filter_map(|line| line.split_whitespace().next());
            match names.find(|name| name.starts_with("libmpi.so")) {
                Some(name) => Holds(name.to_owned()),
                None => Differs("all_reduce_perf is linked to no libmpi.so".to_owned()),
            }
        })
    })
}

fn plugin(evidence: &Evidence<'_>) -> Outcome {
    let probed = evidence.probe.iter().flat_map(|probe| &probe.nodes);
    // A probe that looked and found none knows it; one that was not made does not.
    let mut without = probed.filter(|node| node.unprobed.is_none() && !node.facts.is_empty());
    match without.find(|node| !node.facts.contains_key("ofi_nccl")) {
        Some(node) => Differs(format!(
            "{}: {}",
            node.node,
            node.unknown.get("ofi_nccl").map_or("the probe found none", String::as_str)
        )),
        None => evidence.each_fact("ofi_nccl", |value| Holds(value.to_string())),
    }
}

fn no_fi_variables(evidence: &Evidence<'_>) -> Outcome {
    let at_least = |name: &str, wanted: &str| {
        evidence.each_fact(name, |value: &Value| {
            let version = value.to_string();
            match compare_versions(&version, wanted).is_lt() {
                true => Differs(format!("{name} {version}")),
                false => Holds(format!("{name} {version}")),
            }
        })
    };
    match (at_least("libfabric", "1.18"), at_least("ofi_nccl", "1.7")) {
        (Holds(one), Holds(other)) => Holds(format!("{one}, {other}")),
        (Differs(why), _) | (_, Differs(why)) => Differs(why),
        (NotSeen(why), _) | (_, NotSeen(why)) => NotSeen(why),
    }
}

fn efa_provider(evidence: &Evidence<'_>) -> Outcome {
    let wanted: BTreeSet<String> =
        evidence.inventory.instance.nics.iter().map(|nic| format!("{nic}-rdm")).collect();
    evidence.each(|sections| {
        let section = match sections.get("fi_info") {
            // 61 is ENODATA: the program ran and found no such provider.
            Some(section) if section.status == Some(61) => return Differs(section.first().to_owned()),
            _ => installed(sections, "fi_info"),
        };
        seen(section, |section| {
            let domains: BTreeSet<String> = section
                .names()
                .filter_map(|line| line.strip_prefix("domain:"))
                .map(|domain| domain.trim().to_owned())
                .collect();
            let missing: Vec<&str> = wanted.difference(&domains).map(String::as_str).collect();
            match missing.as_slice() {
                [] => Holds(format!("{} domains", domains.len())),
                [first, ..] => {
                    Differs(format!("{} of {} missing, such as {first}", missing.len(), wanted.len()))
                }
            }
        })
    })
}

fn tool(evidence: &Evidence<'_>) -> &'static str {
    evidence.inventory.nic_tool.name()
}

fn flow_tool(evidence: &Evidence<'_>) -> Outcome {
    let tool = tool(evidence);
    evidence.each(|sections| match sections.get(tool) {
        Some(section) if section.status.is_none() => Differs(section.first().to_owned()),
        _ => seen(help(sections, tool), |_| Holds(tool.to_owned())),
    })
}

fn flow_tool_cuda(evidence: &Evidence<'_>) -> Outcome {
    let tool = tool(evidence);
    evidence.each(|sections| {
        seen(help(sections, tool), |options| {
            let linked = sections.get(&format!("{tool}-cuda"));
            let calls = linked.is_some_and(|section| section.names().next().is_some());
            // fabtests has the option in every build; perftest only in one with CUDA.
            let is_built = match evidence.inventory.nic_tool {
                NicTool::FiRmaBw => calls,
                NicTool::IbWriteBw => options.contains("--use_cuda"),
            };
            match is_built {
                true => Holds("with CUDA".to_owned()),
                false => Differs(format!("{tool} was built without CUDA")),
            }
        })
    })
}

fn flow_tool_options(evidence: &Evidence<'_>) -> Outcome {
    let tool = tool(evidence);
    evidence.each(|sections| {
        seen(help(sections, tool), |options| match evidence.inventory.nic_tool {
            NicTool::FiRmaBw => lacks(options, &["-e", "-o", "-S", "-I", "-m", "-E", "-p", "-d"]),
            NicTool::IbWriteBw => {
                let has_srd =
                    options.lines.iter().any(|line| line.contains("--connection") && line.contains("SRD"));
                match has_srd {
                    true => lacks(options, &["-F", "-d", "-p", "-s", "-n", "-c", "-x"]),
                    false => Differs("--connection knows no SRD".to_owned()),
                }
            }
        })
    })
}

fn nsys(evidence: &Evidence<'_>) -> Outcome {
    let Some(wanted) = evidence.inventory.nsys_version else {
        return NotSeen("the inventory names no `nsys_version`".to_owned());
    };
    evidence.each(|sections| {
        seen(section(sections, "nsys"), |section| {
            let first = section.first();
            let is_release = |word: &&str| job::profile::NsysVersion::parse(word).is_some();
            let wanted = wanted.to_string();
            match first.split_whitespace().find(is_release) {
                // `2025.3` of the inventory stands for any 2025.3.N.
                Some(word)
                    if word
                        .strip_prefix(&wanted)
                        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit())) =>
                {
                    Holds(first.to_owned())
                }
                Some(_) => Differs(format!("{first}, the inventory has {wanted}")),
                None => NotSeen(format!("no release in: {first}")),
            }
        })
    })
}

fn nsys_switches(evidence: &Evidence<'_>) -> Outcome {
    const GIVEN: [&str; 12] = [
        "--trace",
        "--sample",
        "--force-overwrite",
        "--output",
        "--capture-range",
        "--capture-range-end",
        "--nvtx-capture",
        "--env-var",
        "--delay",
        "--duration",
        "--kill",
        "--enable",
    ];
    evidence.each(|sections| seen(help(sections, "nsys_switches"), |section| lacks(section, &GIVEN)))
}

fn fsdp_sample(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| seen(section(sections, "fsdp"), |section| Holds(section.first().to_owned())))
}

fn fsdp_options(evidence: &Evidence<'_>) -> Outcome {
    const GIVEN: [&str; 17] = [
        "--max_steps",
        "--train_batch_size",
        "--sharding_strategy",
        "--logging_freq",
        "--checkpoint_freq",
        "--validation_freq",
        "--model_type",
        "--tokenizer",
        "--dataset",
        "--dataset_config_name",
        "--num_layers",
        "--hidden_width",
        "--intermediate_size",
        "--num_heads",
        "--num_key_value_heads",
        "--max_context_width",
        "--vocab_size",
    ];
    evidence.each(|sections| {
        seen(section(sections, "fsdp_options"), |section| {
            if section.names().next().is_none() {
                return NotSeen("no option is read from the sample".to_owned());
            }
            match (lacks(section, &GIVEN), section.contains("allenai/c4")) {
                (Holds(_), true) => Holds(format!("{} options, allenai/c4", GIVEN.len())),
                (Holds(_), false) => Differs("it does not name allenai/c4".to_owned()),
                (other, _) => other,
            }
        })
    })
}

fn fsdp_line(evidence: &Evidence<'_>) -> Outcome {
    evidence.each(|sections| {
        seen(section(sections, "fsdp_options"), |section| {
            let lines = || section.names().filter(|name| name.starts_with("Loss: "));
            match (lines().find(|line| line.ends_with(" samples/sec")), lines().next()) {
                (Some(line), _) => Holds(line.to_owned()),
                (None, Some(other)) => Differs(other.to_owned()),
                (None, None) => NotSeen("the line of a step is not found in the sample".to_owned()),
            }
        })
    })
}

fn peer(evidence: &Evidence<'_>) -> Outcome {
    match evidence.nodes.first().map(|node| &node.sections) {
        None => NotSeen("no node was queried".to_owned()),
        Some(Err(why)) => NotSeen(why.clone()),
        Some(Ok(sections)) => match sections.get("peer") {
            None => NotSeen("there is no second node".to_owned()),
            Some(section) if section.status == Some(0) => Holds("it does".to_owned()),
            Some(section) if section.status.is_none() => NotSeen(section.first().to_owned()),
            Some(section) => Differs(section.first().to_owned()),
        },
    }
}
