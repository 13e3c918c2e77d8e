//! Pods of a probe whose harness was killed: no run's folder knows of them, and `clean --kubernetes` does.

use super::elsewhere::killed;
use super::{Bench, all};
use crate::project::{Ran, ran};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PROBE: [&str; 4] = ["inventory", "probe", "--inventory", "pods"];
const LIST: [&str; 4] = ["clean", "--kubernetes", "--inventory", "pods"];
const REMOVE: [&str; 5] = ["clean", "--kubernetes", "--inventory", "pods", "--remove"];

/// A probe that waits for one of its two pods.
fn probing(bench: &Bench) -> Child {
    let waits = r#"{"phase":"Pending","containerStatuses":[{"name":"work","state":{"waiting":{"reason":"ContainerCreating"}}}]}"#;
    bench.0.write("kube/nodes/n2", waits);
    let mut command = bench.command(&PROBE);
    // Whoever starts the tests by `nohup` leaves the signal ignored in all that they start.
    // Safety: between fork and exec it calls sigaction alone.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(|| Ok(signal(Signal::SIGHUP, SigHandler::SigDfl).map(|_| ())?));
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let from = Instant::now();
    while bench.pods().len() < 2 {
        assert!(from.elapsed() < Duration::from_secs(60), "no pods are made");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// Long enough to be looked at meanwhile.
fn waits_long(bench: &Bench) {
    let text = fs::read_to_string(bench.0.path().join("inventory/pods.toml")).expect("an inventory");
    bench.0.write("inventory/pods.toml", &text.replace("start_limit_s = 5", "start_limit_s = 60"));
}

fn lines_of_pods(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter(|line| line.starts_with("pod/harness-")).collect()
}

#[test]
fn pods_of_a_probe_that_was_killed_are_listed_and_removed_where_asked() {
    let bench = Bench::new();
    waits_long(&bench);
    let mut child = probing(&bench);
    let ran = bench.run(&REMOVE);
    assert_eq!(ran.code, Some(0), "{}", all(&ran));
    let lines = lines_of_pods(&ran);
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("; in use: its harness goes on; `")));
    assert_eq!(bench.pods().len(), 2, "{}", all(&ran));

    child.kill().and_then(|()| child.wait()).expect("killed");
    let ran = bench.run(&LIST);
    assert_eq!(ran.code, Some(1), "{}", all(&ran));
    let lines = lines_of_pods(&ran);
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("; its harness has ended; `")));
    let [first, second] = lines[..] else { panic!("two lines") };
    // That which has not begun is first: it takes its devices once they are free.
    assert!(first.contains("-probe-") && first.contains(" on n2: age "), "{first}");
    assert!(first.contains(", waits: ContainerCreating; "), "{first}");
    assert!(second.contains(" on n1: age ") && second.contains(", runs; "), "{second}");
    let name = first.split(' ').next().and_then(|pod| pod.strip_prefix("pod/")).expect("a name");
    assert!(
        first.ends_with(&format!("; `kubectl --context=here --namespace=default delete pod {name}`")),
        "{first}"
    );
    assert!(ran.stdout.contains("\nleft by a harness that has ended: 2; `--remove` removes them\n"));
    assert_eq!(bench.pods().len(), 2);

    // A copy, one of another user and one that another machine made.
    let made = fs::read_to_string(bench.0.path().join(format!("kube/made/{name}"))).expect("its maker");
    let owner = made.lines().next().expect("an owner");
    let pod = fs::read_to_string(bench.0.path().join(format!("kube/pods/{name}"))).expect("a pod");
    let run = pod.split(' ').nth(1).expect("its label");
    let begin = name.rsplit_once('-').expect("a node").0;
    for (name, owner, process) in [
        ("harness-copy-1".to_owned(), owner, made.lines().nth(1).expect("a process")),
        (format!("{begin}-0123456789ab"), "another", made.lines().nth(1).expect("a process")),
        (format!("{begin}-ba9876543210"), owner, "0123456789abcdef 1 1"),
    ] {
        bench.0.write(&format!("kube/pods/{name}"), &format!("n1 {run} uid-{name}\n"));
        bench.0.write(&format!("kube/made/{name}"), &format!("{owner}\n{process}\n"));
    }
    let ran = bench.run(&REMOVE);
    assert_eq!(ran.code, Some(3), "{}", all(&ran));
    assert_eq!(lines_of_pods(&ran).len(), 3, "{}", all(&ran));
    let unknown = format!("pod/{begin}-ba9876543210 of {run} on n1: age ");
    let line = ran.stdout.lines().find(|line| line.starts_with(&unknown)).unwrap_or_default();
    assert!(
        line.contains("; of a run, user or machine that is not known here: left alone; `"),
        "{}",
        all(&ran)
    );
    assert!(ran.stdout.contains("\nremoved pods: 2\n"), "{}", all(&ran));
    assert_eq!(bench.pods().len(), 3, "{:?}", bench.pods());
}

#[test]
fn pods_of_a_run_that_is_here_are_left_to_its_own_verbs() {
    let bench = killed();
    let ran = bench.run(&REMOVE);
    assert_eq!((ran.code, lines_of_pods(&ran).len(), bench.pods().len()), (Some(0), 0, 2), "{}", all(&ran));
    // Where its folder is gone, another project may go on with it.
    fs::rename(bench.0.path().join("runs"), bench.0.path().join("away")).expect("moved");
    let ran = bench.run(&REMOVE);
    assert_eq!((ran.code, lines_of_pods(&ran).len(), bench.pods().len()), (Some(3), 2, 2), "{}", all(&ran));
    fs::rename(bench.0.path().join("away"), bench.0.path().join("runs")).expect("moved back");
    let ran = bench.run(&["clean", "--all"]);
    assert_eq!((ran.code, bench.pods()), (Some(0), Vec::new()), "{}", all(&ran));
}

#[test]
fn a_probe_whose_terminal_is_closed_deletes_its_pods() {
    let bench = Bench::new();
    waits_long(&bench);
    let child = probing(&bench);
    let id = Pid::from_raw(i32::try_from(child.id()).expect("an id"));
    // By the shell, and by the kernel.
    kill(id, Signal::SIGHUP).expect("sent");
    kill(id, Signal::SIGHUP).expect("sent");
    let ran = ran(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.code, bench.pods()), (Some(143), Vec::<PathBuf>::new()), "{}", all(&ran));
}
