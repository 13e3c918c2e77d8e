//! nic-pairs on simulated clusters whose tools lack CUDA, lack SRD or are not installed: by which path flows go, what the
//! plan and the verdicts say of it, and that no node is blamed for a tool.

use crate::project::Project;

fn inventory(project: &Project, more: &str, world: &str) {
    let head = "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n";
    project.write("inventory/w.toml", &format!("{head}{more}\n[world]\n{world}\n"));
}

fn run(project: &Project, more: &[&str]) -> crate::project::Ran {
    let words = ["--suite", "nccl-p5", "--inventory", "w", "nic-pairs"];
    project.harness(&[&words[..], more].concat())
}

/// The verdicts of the run's one case.
fn verdicts(project: &Project) -> Vec<serde_json::Value> {
    project.json("cases/nic-pairs/verdict.json")["verdicts"].as_array().cloned().expect("verdicts")
}

#[test]
fn flows_go_through_gpu_memory_where_the_tool_can() {
    let project = Project::new();
    inventory(&project, "", "");
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let all = verdicts(&project);
    assert_eq!(all.len(), 128);
    for verdict in &all {
        let message = verdict["message"].as_str().expect("a message");
        assert!(message.ends_with(", through GPU memory"), "{message}");
    }
    assert!(!ran.all().contains("host-memory"), "{}", ran.all());
}

#[test]
fn without_cuda_flows_take_turns_and_a_slow_nic_is_still_found() {
    let project = Project::new();
    inventory(&project, "", "flow_tools_cuda = false");
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.all().contains("finding host-memory"), "{}", ran.all());
    let case = project.json("cases/nic-pairs/verdict.json").to_string();
    assert!(case.contains("fi_rma_bw on p5-001 cannot use CUDA"), "{}", ran.all());
    let message = verdicts(&project)[0]["message"].as_str().expect("a message").to_owned();
    assert!(message.ends_with(", through host memory, NICs in turns"), "{message}");
    // At 40 % of its rate it is above its share of the link that four flows at once would have left it.
    let ran = run(&project, &["--sim-fault", "p5-003:nic-slow=0.4@rdmap113s0"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.all().contains("culprit p5-003 rdmap113s0: 4.8 GB/s"), "{}", ran.all());
}

#[test]
fn a_tool_that_refuses_blames_no_node_and_says_what_to_install() {
    for (tool, world, words, install) in [
        ("ib_write_bw", "flow_tools_srd = false", "SRD connection only possible", "perftest 24 or newer"),
        (
            "fi_rma_bw",
            "flow_tools = false",
            "`fi_rma_bw` is not installed on a node",
            "github.com/ofiwg/libfabric",
        ),
    ] {
        let project = Project::new();
        inventory(&project, &format!("nic_tool = \"{tool}\""), world);
        let ran = run(&project, &[]);
        assert_eq!(ran.code, Some(3), "{}", ran.all());
        let text = ran.all();
        let case = project.json("cases/nic-pairs/verdict.json").to_string();
        assert!(case.contains(words) && case.contains(install), "{text}");
        for line in text.lines() {
            assert!(!line.starts_with("culprit ") && !line.starts_with("suspects "), "{text}");
        }
        assert!(!text.contains("not-connected"), "{text}");
        let cause = if tool == "ib_write_bw" { "tool-refused" } else { "tool-missing" };
        assert!(verdicts(&project).iter().all(|verdict| verdict["cause"] == cause), "{text}");
    }
}

#[test]
fn the_plan_says_by_which_path_flows_go_and_the_preflight_settles_it() {
    let project = Project::new();
    inventory(&project, "", "flow_tools_cuda = false");
    let dry = run(&project, &["--dry-run"]);
    let line = dry.stdout.lines().find(|line| line.contains("flows through: ")).expect("a line").to_owned();
    assert!(line.contains("else host memory") && line.ends_with("4 turns; decided on the nodes"), "{line}");
    let ran = run(&project, &["--probe"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let plan = std::fs::read_to_string(project.latest().join("plan.json")).expect("a plan");
    let settled = "in pairs with p5-[001-004]: `fi_rma_bw` there cannot use CUDA";
    assert!(plan.contains(settled), "{plan}");
}

#[test]
fn a_case_may_ask_for_the_memory_that_its_flows_move() {
    let project = Project::new();
    inventory(&project, "", "");
    let case = |memory: &str| {
        format!(
            "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"nics\"\nplacement = \"pairs\"\n\
             recipes = [\"nic_flows\"]\nworkload = {{ kind = \"nic-pairs\", memory = \"{memory}\" }}\n\
             [[case.assert]]\nmetric = \"nic.rate\"\nper = \"nic\"\nat_least = \"11 GB/s\"\n"
        )
    };
    project.write("suites/host.toml", &case("host"));
    let ran = project.harness(&["--suite", "host", "--inventory", "w"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(
        project.json("cases/nics/verdict.json").to_string().contains("(4 turns): the case asks for it"),
        "{}",
        ran.all()
    );
    project.write("suites/host.toml", &case("disk"));
    let ran = project.harness(&["--suite", "host", "--inventory", "w"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
}
