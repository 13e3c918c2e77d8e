//! A bisection whose process is killed at any write goes on where it was ended, and comes to the same conclusion.

use crate::project::{Project, Ran, ran};

const INVENTORY: &str = r#"
kind = "simulated"
instance = "sim-p5"
nodes = "p5-[001-002]"
[reach]
via = "slurm"
[world.slow_with]
"NCCL_ALGO=Tree" = 0.95
"#;

const ARGUMENTS: [&str; 9] =
    ["bisect", "--suite", "nccl-p5", "--inventory", "two", "--bad", "NCCL_ALGO=Tree", "--bad", "A=1"];

fn project() -> Project {
    let project = Project::new();
    project.write("inventory/two.toml", INVENTORY);
    project
}

fn start(project: &Project, arguments: &[&str], kill_at: Option<u64>) -> Ran {
    let mut command = project.command(arguments);
    if let Some(at) = kill_at {
        command.env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
    }
    ran(command.output().expect("the harness starts"))
}

/// From the step on; which run was the last differs.
fn conclusion(ran: &Ran) -> String {
    let from = ran.stdout.find("the step is between").unwrap_or_else(|| panic!("{}", ran.all()));
    ran.stdout[from..].lines().filter(|line| !line.starts_with("pairs ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn killed_at_any_write_it_goes_on_and_concludes_the_same() {
    let whole = start(&project(), &ARGUMENTS, None);
    assert_eq!(whole.code, Some(1), "{}", whole.all());
    let mut kills = 0;
    // Writes are counted in each run: most of these kill the first run of a process, some of them a later one.
    for at in [1, 3, 8, 12] {
        let project = project();
        let mut ended = start(&project, &ARGUMENTS, Some(at));
        for further in [at + 2, at + 1] {
            if ended.code.is_none() {
                kills += 1;
                ended = start(&project, &["bisect", "--resume", "latest"], Some(further));
            }
        }
        if ended.code.is_none() {
            kills += 1;
            ended = start(&project, &["bisect", "--resume", "latest"], None);
        }
        assert_eq!(ended.code, Some(1), "killed at write {at}: {}", ended.all());
        assert_eq!(conclusion(&ended), conclusion(&whole), "killed at write {at}");
    }
    assert!(kills >= 6, "{kills} processes were killed");
}
