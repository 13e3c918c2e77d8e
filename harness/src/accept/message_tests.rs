//! Every message of an acceptance, as a person reads it.

use super::acceptance_session::given_up;
use super::cost_estimate::{Cost, CostEstimate, OfStage};
use super::{delivery, messages};
use model::artefact::acceptance::{
    Acceptance, Coded, Rejected, RunOfStage, StageRecord, Undecided, Withdrawn,
};
use model::artefact::{CommonFailure, Format, HOST_ENGINE, SLURM_GPUS};
use std::path::Path;
use verdict::accept::schedule::Schedule;
use verdict::accept::soak::growth::Growth;
use verdict::accept::stages::Stage;
use verdict::history::hardware::Unvouched;

fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

#[test]
fn messages_of_costs() {
    let of = |stage: Stage, jobs: usize, node_hours: f64, seconds: u64| OfStage {
        stage,
        jobs,
        node_hours,
        seconds,
        windows: if stage == Stage::Soak { 24 } else { 1 },
    };
    let costs = CostEstimate {
        stages: vec![
            of(Stage::Single, 1, 0.25, 95),
            of(Stage::Soak, 768, 778.0, 87_600),
            of(Stage::Pairs, 32, 12.5, 4000),
        ],
        best: Cost { runs: 2, node_hours: 12.75 },
        worst: Cost { runs: 9, node_hours: 40.0 },
    };
    let vouched = "p5-[001-008], which were named as known to be good";
    let mut lines = vec![
        messages::heading(&names(["p5-033", "p5-034"]), "acceptance-p5", vouched, true),
        messages::heading(&names(["p5-033"]), "acceptance-p5", vouched, false),
        messages::delivery(Path::new("deliveries/d")),
    ];
    lines.extend(messages::cost_estimate(&costs, Some(20.0)));
    insta::assert_snapshot!(lines.join("\n"));
}

fn growth() -> Growth {
    Growth {
        node: "p5-033".to_owned(),
        part: "node".to_owned(),
        code: "HRN-NODE-LEAK",
        evidence: "host.kernel_memory: grew by 2048 MiB over 12 windows, limit 1024 MiB".to_owned(),
        is_own: false,
    }
}

fn rejected() -> Rejected {
    Rejected {
        node: "p5-059".to_owned(),
        stage: Stage::Pairs.name().to_owned(),
        culprits: vec![Coded {
            code: "HRN-NIC-SLOW".to_owned(),
            severity: "replace".to_owned(),
            part: "rdmap113s0".to_owned(),
            evidence: "4.8 GB/s with p5-001, limit 11 GB/s".to_owned(),
        }],
        assertions: Vec::new(),
        run: None,
        soaked_s: None,
    }
}

fn undecided(node: &str) -> Undecided {
    let why = messages::budget_spent(1.5, 0.25, 1.0);
    Undecided { node: node.to_owned(), stage: Stage::Pairs.name().to_owned(), why }
}

fn stage_of_pairs() -> StageRecord {
    let run = RunOfStage {
        run: "d-02-pairs".to_owned(),
        about: String::new(),
        nodes: "p5-[033-034]".to_owned(),
        jobs: 1,
        node_hours: 0.25,
        planned_node_hours: 0.25,
        planned_s: 60,
        seconds: 60.0,
    };
    StageRecord {
        name: Stage::Pairs.name().to_owned(),
        entered: "p5-[033-036,059]".to_owned(),
        passed: "p5-[035-036]".to_owned(),
        runs: vec![run],
        node_hours: 0.25,
    }
}

#[test]
fn messages_of_stages() {
    let withdrawn = Withdrawn {
        node: "p5-003".to_owned(),
        stage: Stage::Pairs.name().to_owned(),
        why: "HRN-PORT-SLOW reboot p5-003 fabric: all 32 NICs at 6.0 GB/s".to_owned(),
    };
    let schedule = Schedule {
        candidates: names(["p5-035", "p5-036"]),
        rejected: vec![rejected()],
        undecided: vec![undecided("p5-033"), undecided("p5-034")],
        withdrawn: vec![withdrawn],
        ..Schedule::default()
    };
    insta::assert_snapshot!(messages::stage(&stage_of_pairs(), &schedule, 1.75).join("\n"));
}

pub(crate) fn acceptance() -> Acceptance {
    Acceptance {
        format: Format,
        harness: String::new(),
        delivery: "d".to_owned(),
        simulated: true,
        note: Some(base::text::SIMULATED.to_owned()),
        suite: "acceptance-p5".to_owned(),
        inventory: "sim-64".to_owned(),
        instance: "sim-p5".to_owned(),
        seed: 1,
        nodes: "p5-[033-036,059]".to_owned(),
        count: 5,
        partners: "p5-[001-004]".to_owned(),
        vouched: String::new(),
        began: String::new(),
        ended: String::new(),
        budget_node_hours: None,
        node_hours: 1.75,
        accepted: names(["p5-035", "p5-036"]),
        rejected: vec![rejected()],
        undecided: vec![undecided("p5-033"), undecided("p5-034")],
        withdrawn: Vec::new(),
        stages: vec![stage_of_pairs()],
        soak: None,
        limits: Vec::new(),
        judged_by: Vec::new(),
        stack: Vec::new(),
        hardware: Vec::new(),
        not_checked: vec![messages::not_checked("diagnosis", "dcgmi", &names(["p5-033", "p5-034"]))],
        not_measured: vec![messages::not_reached(Stage::Groups.name())],
    }
}

#[test]
fn messages_of_conclusions() {
    let (certificate, vendor) = (Path::new("d/acceptance.md"), Path::new("d/vendor"));
    let healthy = Acceptance {
        simulated: false,
        note: None,
        rejected: Vec::new(),
        undecided: Vec::new(),
        not_checked: Vec::new(),
        not_measured: Vec::new(),
        ..acceptance()
    };
    let all = [
        messages::conclusion(&acceptance(), certificate, Some((120, vendor))),
        messages::conclusion(&healthy, certificate, Some((1, vendor))),
        messages::conclusion(&healthy, certificate, None),
    ];
    insta::assert_snapshot!(all.concat().join("\n"));
}

#[test]
fn nodes_that_the_preflight_leaves_open_have_the_command_that_probes_them() {
    let open = |node: &str| Undecided {
        stage: Stage::Preflight.name().to_owned(),
        why: messages::gpus_unread("no nvidia-smi on PATH"),
        ..undecided(node)
    };
    let lines = |undecided: Vec<Undecided>| {
        let made = Acceptance { undecided, ..acceptance() };
        messages::conclusion(&made, Path::new("d/acceptance.md"), None)
    };
    let next = "next: harness inventory probe --inventory sim-64 --nodes 'p5-[033-034]'".to_owned();
    assert!(lines(vec![open("p5-033"), open("p5-034")]).contains(&next));
    // Of other stages there is a run to read.
    assert!(!lines(vec![undecided("p5-033")]).iter().any(|line| line.contains("inventory probe")));
}

#[test]
fn messages_of_what_was_not_measured() {
    let nodes = names(["p5-033", "p5-034"]);
    let lines = [
        messages::unprobed("no answer within 30 s"),
        messages::gpus_unread("no nvidia-smi on PATH"),
        messages::too_few_nodes("group-all_gather", 1, 2),
        messages::slow_group(&nodes),
        messages::no_case(Stage::Groups.name()),
        messages::no_soak(),
        messages::not_checked("disk", "/opt/dlami/nvme", &nodes),
        messages::not_checked("diagnosis", HOST_ENGINE, &nodes),
        messages::not_checked("gpu-allocation", SLURM_GPUS, &nodes),
        messages::strict_refuses(&names(["`disk`: fio is not installed on p5-033"])),
        messages::repeat(1, 2, &["all-all_gather".to_owned(), "all-all_reduce".to_owned()].into()),
        messages::retry_of_window(&messages::window(2, 24, 3600, 7200)),
        messages::window_over(2, 24, 7200, &Schedule::default(), 1),
        messages::window_over(
            2,
            24,
            7200,
            &Schedule { candidates: names(["p5-033"]), ..Schedule::default() },
            0,
        ),
        messages::soaked("gpu.slowed: 33.3 %, limit 5 %", Some(2460.0), 1, 24),
        messages::soaked("gpu.nvlink_errors: 120, limit 60", None, 4, 24),
        messages::grows_alike(&growth()),
        messages::common_cause(&CommonFailure {
            case: "soak".to_owned(),
            jobs: 3,
            nodes: "p5-[033-035]".to_owned(),
            cause: "hang".to_owned(),
            words: Vec::new(),
            check: "look at the last lines of one job".to_owned(),
            expected: false,
        }),
        messages::too_short_for_growth(6, 11),
        messages::growth_unread("gpu.ecc_corrected", &names(["p5-033", "p5-034"])),
        messages::not_reached(Stage::All.name()),
        messages::fewer_at_once(7, "all-all_gather", 4, 2),
        messages::fewer_at_once(7, "all-all_gather", 4, 1),
        messages::provisional(1),
        messages::provisional(12),
        messages::fact_unknown("driver", "no nvidia-smi on PATH", &nodes),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_errors() {
    let folder = Path::new("/no/such/delivery");
    let lines = [
        messages::interrupted(folder),
        messages::continues(folder),
        messages::over_budget(1.5),
        messages::folder_taken(folder),
        messages::fault_of_real_cluster("prod"),
        messages::partner_is_new("p5-034"),
        messages::no_partners("prod", &names(["p5-001", "p5-002"])),
        messages::name_left("runs/d-01-single/plan.json", "p5-001"),
        delivery::changed_since("d-01-single"),
        delivery::read_record(folder).expect_err("no delivery"),
        given_up("groups of nodes"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn who_vouches_is_said_with_those_that_are_other_hardware_now_or_may_be() {
    let vouched = |blamed: &[String], other: &[&str], unknown: &[&str]| {
        let owned = |nodes: &[&str]| nodes.iter().map(|node| (*node).to_owned()).collect();
        let unvouched = Unvouched { other: owned(other), unknown: owned(unknown) };
        messages::vouched(&names(["p5-001", "p5-002"]), "r1", blamed, &unvouched)
    };
    assert_eq!(vouched(&[], &[], &[]), "p5-[001-002], which passed run r1");
    assert_eq!(
        vouched(&names(["p5-003"]), &["p5-004"], &["p5-002"]),
        "p5-[001-002], which passed run r1; not with p5-003, which a run blames and none has cleared (`harness \
         history --suspects`); not with p5-004: other hardware has the name now; hardware then or now unknown, \
         taken as the same: p5-002"
    );
    assert_eq!(messages::other_hardware("r1"), "its hardware is not what passed run r1");
    assert_eq!(
        messages::hardware_unread(&names(["p5-001"]), "r1"),
        "whether partners have the hardware that passed run r1: unknown, taken as the same: p5-001"
    );
}
