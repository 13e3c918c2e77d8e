//! The rank of a process, by the variables of its launcher; and which clusters stand-ins can simulate.

use super::place::ProcessPlace;
use super::state::State;
use super::{Call, names};
use std::collections::BTreeMap;
use std::path::Path;

fn place(variables: &[(&str, &str)]) -> Result<ProcessPlace, String> {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    let of = |name: &str| variables.get(name).map(|value| (*value).to_owned());
    ProcessPlace::read(&of, "/fsx/run/all-all_gather/all", "host")
}

#[test]
fn a_process_without_a_launcher_is_alone_on_its_host() {
    let place = place(&[]).expect("read");
    assert_eq!((place.node.as_str(), place.rank, place.tasks, place.wired), ("host", 0, 1, false));
    assert_eq!(place.nodes, Some(vec!["host".to_owned()]));
    assert_eq!((place.case.as_str(), place.job.as_str()), ("all-all_gather", "all"));
}

#[test]
fn the_launcher_nearest_to_the_program_sets_its_rank() {
    let slurm = [
        ("SLURM_PROCID", "1"),
        ("SLURM_LOCALID", "0"),
        ("SLURM_NTASKS", "2"),
        ("SLURM_JOB_NODELIST", "n[1-2]"),
        ("SLURMD_NODENAME", "n2"),
    ];
    let own = place(&slurm).expect("read");
    assert_eq!((own.rank, own.local, own.tasks, own.wired), (1, 0, 2, false));
    assert_eq!(own.nodes, Some(vec!["n1".to_owned(), "n2".to_owned()]));
    let wired = place(&[&slurm[..], &[("PMI_RANK", "1")]].concat()).expect("read");
    assert!(wired.wired);
    let mpirun = [
        ("OMPI_COMM_WORLD_RANK", "9"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
        ("OMPI_COMM_WORLD_SIZE", "16"),
        ("HARNESS_STANDIN_START", "one"),
    ];
    let under = place(&[&slurm[..], &mpirun[..]].concat()).expect("read");
    assert_eq!((under.rank, under.local, under.tasks, under.wired), (9, 1, 16, true));
    assert_eq!(under.start, "one");
    let torchrun = place(&[("RANK", "1"), ("WORLD_SIZE", "4"), ("HARNESS_NODE", "n3")]).expect("read");
    assert_eq!((torchrun.node.as_str(), torchrun.rank, torchrun.tasks), ("n3", 1, 4));
    assert_eq!(torchrun.nodes, None, "only the ranks themselves know");
}

#[test]
fn wrong_variables_of_a_launcher_are_refused() {
    assert!(place(&[("SLURM_PROCID", "x")]).expect_err("no number").contains("SLURM_PROCID"));
    assert!(place(&[("SLURM_PROCID", "4"), ("SLURM_NTASKS", "4")]).expect_err("too high").contains("of 4"));
    assert!(place(&[("SLURM_PROCID", "0"), ("SLURM_JOB_NODELIST", "n[1-")]).is_err());
}

#[test]
fn programs_are_called_by_their_own_name_or_by_the_first_word() {
    let call = |words: &[&str]| Call::read(words.iter().map(|word| (*word).to_owned()).collect());
    let by_name = call(&["/s/bin/nsys", "--version"]).expect("a call");
    assert_eq!((by_name.program.as_str(), by_name.arguments.len()), ("nsys", 1));
    assert_eq!(by_name.path.as_deref(), Some(Path::new("/s/bin/nsys")));
    let by_word = call(&["target/debug/standin", "nsys", "--version"]).expect("a call");
    assert_eq!((by_word.program.as_str(), by_word.path), ("nsys", None));
    assert!(call(&["standin"]).is_none());
    assert!(names().iter().any(|name| name == "all_reduce_perf"));
}

#[test]
fn a_cluster_that_cannot_be_stood_in_for_is_refused_by_name() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root");
    let head = format!("home = {home:?}\ninstance = \"sim-p5\"\nnodes = \"n[1-2]\"\n");
    let read = |more: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("cluster.toml"), format!("{head}{more}\n")).expect("written");
        State::read(folder.path()).map(|state| state.cluster.nodes.len())
    };
    assert_eq!(read("faults = [\"n1:hang\"]"), Ok(2));
    for (more, expected) in [
        ("faults = [\"n1:node-fails\"]", "produce it on the server"),
        ("faults = [\"n3:hang\"]", "unknown node"),
        ("time_factor = 0.0", "time_factor"),
        ("floor_s = -1.0", "floor_s"),
        ("[case_floor_s]\nsome = 1e9", "`some`"),
        ("stray = 1", "stray"),
        ("[case_faults]\na = [\"n1:nic-missing@rdmap79s0\"]", "in all cases or in none"),
    ] {
        let why = read(more).expect_err(more);
        assert!(why.contains(expected), "{more}: {why}");
    }
}
