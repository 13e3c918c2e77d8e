//! Nodes probed over real ssh: what they report, by which clock, over how many connections, and who is left out of a
//! suite.

use super::hosts::Hosts;
use crate::fact::Fact;
use crate::project::Project;
use serde_json::Value;
use std::fs;

pub(super) const FACTS: &[Fact] = &[
    ("nodes_report_what_they_are_over_one_connection_each", nodes_report_what_they_are),
    ("a_dead_host_is_unknown_and_costs_the_others_no_probe", a_dead_host_is_unknown),
    ("a_node_without_one_of_its_nics_is_left_out_of_a_suite", a_node_without_a_nic_is_left_out),
];

const NICS: [&str; 2] = ["rdmap79s0", "rdmap80s0"];

/// Hosts whose devices lie in a tree of their own, and an inventory of them.
fn bench(many: usize, probe: &str) -> (Hosts, Project) {
    let (hosts, project) = (Hosts::start(many), Project::new());
    for name in hosts.names() {
        for nic in NICS {
            let port = hosts.path("sys").join(&name).join(nic).join("ports/1");
            fs::create_dir_all(&port).expect("made");
            fs::write(port.join("state"), "4: ACTIVE\n").expect("written");
        }
    }
    let sys = hosts.path("sys").display().to_string();
    let text = hosts.inventory("").replace("instance = \"p5\"\n", "").replace(
        "[paths]\n",
        &format!(
            "[instance]\nname = \"small\"\nlike = \"p5\"\nnics = \"rdmap[79-80]s0\"\n[probe]\n{probe}\n[paths]\ncounters = \"{sys}/{{host}}\"\n"
        ),
    );
    project.write("inventory/live.toml", &text);
    (hosts, project)
}

fn connections(hosts: &Hosts, nth: usize) -> usize {
    hosts.text(&format!("h{nth}.log")).matches("Accepted publickey").count()
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn nodes_report_what_they_are() {
    let (hosts, project) = bench(3, "shared = { equals = \"writable\" }");
    let ran = project.harness(&["inventory", "probe", "--inventory", "live", "--json"]);
    // Their GPUs cannot be read, and all else is.
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    let made = parse(&ran.stdout);
    for (at, node) in made["nodes"].as_array().expect("nodes").iter().enumerate() {
        assert_eq!(node["node"], format!("h{}", at + 1));
        assert_eq!(node["facts"]["nics"], Value::from(NICS.to_vec()), "{node}");
        assert_eq!(node["facts"]["shared"], "writable");
        assert!(node["facts"]["kernel"].is_string() && node["fingerprint"].is_string(), "{node}");
        // One machine has one clock; how near that is reported is a matter of the question's way.
        let (least, most) =
            (node["clock_offset"]["at_least_ms"].as_f64(), node["clock_offset"]["at_most_ms"].as_f64());
        let (least, most) = (least.expect("a number"), most.expect("a number"));
        assert!(least <= 1.0 && most >= -1.0 && most - least < 2000.0, "{least} {most}");
        assert_eq!(connections(&hosts, at + 1), 1);
    }
    let alike = project.harness(&["inventory", "diff", "--inventory", "live"]);
    assert_eq!(alike.code, Some(0), "{}", alike.all());
}

fn a_dead_host_is_unknown() {
    let (hosts, project) = bench(3, "");
    hosts.down(2);
    let ran = project.harness(&["inventory", "probe", "--inventory", "live"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(
        ran.stdout.contains("not probed: h2: ") && ran.stdout.contains("0 fit, 0 cannot pass, 1 not"),
        "{}",
        ran.all()
    );
}

fn a_node_without_a_nic_is_left_out() {
    let (hosts, project) = bench(3, "");
    fs::remove_dir_all(hosts.path("sys/h2/rdmap80s0")).expect("removed");
    project.write(
        "suites/test.toml",
        "instance = \"p5\"\nabout = \"over real ssh\"\n[[case]]\nname = \"each\"\nplacement = \"each\"\nlimit_s = 60\n\
         workload = { kind = \"command\", program = \"hostname\" }\nrecipes = [\"command\"]\n\
         counters = false\n\
         [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
    );
    let ran = project.harness(&["--suite", "test", "--inventory", "live"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    assert!(ran.stdout.contains("excluded h2: NICs: 1 of 2, missing: rdmap80s0"), "{}", ran.all());
    assert_eq!(ran.blamed(), ["culprit h2 node"], "{}", ran.all());
    let counts = &project.json("summary.json")["counts"];
    assert_eq!((&counts["pass"], &counts["error"]), (&2.into(), &1.into()), "{}", ran.all());
    assert_eq!(project.json("probe.json")["nodes"].as_array().map(Vec::len), Some(3));
    for nth in 1..=3 {
        assert_eq!(connections(&hosts, nth), 1, "the run goes over the connection of the probe");
    }
    // Launched on as it is where that is wanted.
    let all = project.harness(&["--suite", "test", "--inventory", "live", "--no-probe"]);
    assert_eq!(all.code, Some(0), "{}", all.all());
    assert!(!project.latest().join("probe.json").exists());
}
