//! The suite that profiles every rank: each fault that only profiles can show makes the assertion red that is about it,
//! and no innocent node is named.

use crate::project::Project;

/// What failed, by the names of the assertions without nodes, and who is named.
fn ran(fault: Option<&str>) -> (Option<i32>, Vec<String>, Vec<String>) {
    let project = Project::new();
    let mut words = vec!["--suite", "evidence-p5", "-q"];
    words.extend(fault.iter().flat_map(|fault| ["--sim-fault", fault]));
    let ran = project.harness(&words);
    let all = ran.all();
    let plan = project.json("plan.json");
    let cases = plan["cases"].as_array().expect("cases").iter();
    let mut failed = Vec::new();
    for case in cases.filter_map(|case| case["name"].as_str()) {
        let verdict = project.json(&format!("cases/{case}/verdict.json"));
        let red = |status: &str| ["fail", "unexpected-pass", "error", "inconclusive"].contains(&status);
        let verdicts = verdict["verdicts"].as_array().expect("verdicts").iter();
        let names = verdicts.filter(|one| one["status"].as_str().is_some_and(red));
        let own = names.filter_map(|one| one["name"].as_str()?.strip_prefix("evidence-p5::"));
        failed.extend(own.map(str::to_owned));
    }
    failed.sort();
    let named = all.lines().filter(|line| line.starts_with("culprit ") || line.starts_with("suspects "));
    (ran.code, failed, named.map(str::to_owned).collect())
}

#[test]
fn a_healthy_cluster_passes_whatever_its_clocks_say() {
    for fault in [None, Some("p5-003:clock-offset=-50"), Some("p5-002:clock-drift=50")] {
        assert_eq!(ran(fault), (Some(0), vec![], vec![]), "{fault:?}");
    }
}

#[test]
fn a_late_rank_is_named_with_its_gpu_by_a_collective_and_by_training_alone() {
    let (code, failed, named) = ran(Some("p5-002:straggler=5@3"));
    assert_eq!(code, Some(1));
    assert_eq!(failed, ["arrivals::straggler.late@p5-002", "training::straggler.late@p5-002"]);
    let [culprit] = named.as_slice() else { panic!("{named:?}") };
    let late = "culprit p5-002 gpu3: rank 11: 5.0 ms of 5.4 ms late, kernels start late: host; ";
    assert!(culprit.starts_with(late), "{culprit}");
}

#[test]
fn a_slow_gpu_is_named_where_something_is_computed() {
    let (code, failed, named) = ran(Some("p5-003:gpu-slow=0.5@2"));
    assert_eq!(code, Some(1));
    assert!(failed.contains(&"training::straggler.late@p5-003".to_owned()), "{failed:?}");
    // A recipe that is a file names the device, and none of the others.
    let own: Vec<_> = failed.iter().filter(|name| name.starts_with("training::kernel_times.")).collect();
    assert_eq!(own, ["training::kernel_times.slowdown@p5-003/gpu2"]);
    assert!(failed.iter().all(|name| name.starts_with("training::")), "{failed:?}");
    let [culprit] = named.as_slice() else { panic!("{named:?}") };
    assert!(culprit.starts_with("culprit p5-003 gpu2: "), "{culprit}");
}

#[test]
fn exposed_communication_is_red_and_nobodys_fault() {
    let (code, failed, named) = ran(Some("p5-003:comm-exposed"));
    assert_eq!((code, named), (Some(1), vec![]));
    assert_eq!(failed, ["training::gpu.exposed_comm_share@p5-[001-004]"]);
}

#[test]
fn graphs_that_launch_what_was_to_be_called_leave_the_printed_times_uncertain() {
    let (code, failed, _) = ran(Some("p5-002:graph-launch"));
    assert_eq!(code, Some(3), "{failed:?}");
    assert!(failed.contains(&"arrivals::profile_ratio/64MiB@p5-[001-004]".to_owned()), "{failed:?}");
}
