//! `harness clean`: what a harness that was killed leaves is found by what it wrote down, ended by number, and gone.

use crate::project::{Project, Ran};
use job::script::{CLEAN_SH, SHARED, SUPERVISOR_SH, files};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn suite(instance: &str, program: &str, args: &str) -> String {
    format!(
        "instance = \"{instance}\"\nabout = \"x\"\n[[case]]\nname = \"one\"\nplacement = \"each\"\nlimit_s = 600\n\
         workload = {{ kind = \"command\", program = \"{program}\", args = [{args}], environment = {{ A_TOKEN = \"env:PLANTED\" }} }}\n\
         recipes = [\"command\"]\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
    )
}

fn here(project: &Project) {
    let shared = project.path().join("shared");
    project.write(
        "inventory/here.toml",
        &format!(
            "kind = \"real\"\ninstance = \"p5\"\nnodes = \"here-1\"\n[reach]\nvia = \"local\"\n[paths]\nshared = \"{}\"\n",
            shared.display()
        ),
    );
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let from = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(from.elapsed() < Duration::from_secs(60), "it does not come: {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

fn is_there(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

fn pids(file: &Path, many: usize) -> Vec<i32> {
    until("the processes", || {
        let text = fs::read_to_string(file).unwrap_or_default();
        let pids: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == many).then_some(pids)
    })
}

fn clean(project: &Project, more: &[&str]) -> Ran {
    project.harness(&[&["clean", "--run", "latest"], more].concat())
}

/// A job that starts processes of its own which heed no signal that can be ignored, and the harness that runs it.
fn running(project: &Project) -> (Child, Vec<i32>) {
    here(project);
    let pid = project.path().join("pid");
    let program = format!(
        "trap '' TERM INT HUP; echo $$ >> {0}; bash -c 'trap \\\"\\\" TERM; echo $$ >> {0}; while :; do sleep 1; done' & while :; do sleep 1; done",
        pid.display()
    );
    project.write("suites/test.toml", &suite("p5", "bash", &format!("\"-c\", \"{program}\"")));
    let mut command = project.command(&["--suite", "test", "--inventory", "here"]);
    let child = command.env("PLANTED", "planted-1").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.expect("the harness starts");
    let pids = pids(&pid, 2);
    (child, pids)
}

#[test]
fn what_a_killed_harness_left_on_this_machine_is_reported_then_ended_then_gone() {
    let project = Project::new();
    let (mut child, pids) = running(&project);
    // As long as it goes on it is not cleaned up.
    let refused = clean(&project, &[]);
    assert_eq!(refused.code, Some(3), "{}", refused.all());
    assert!(refused.stderr.contains("another harness process is working on this run"), "{}", refused.all());
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert!(pids.iter().all(|pid| is_there(*pid)), "{pids:?}");
    project.write("runs/latest/cases/.part-abc", "half");
    let reported = clean(&project, &["--dry-run"]);
    assert_eq!(reported.code, Some(1), "{}", reported.all());
    for pid in &pids {
        assert!(
            reported
                .stdout
                .lines()
                .any(|line| line.contains(&format!(" {pid} ")) && line.ends_with("is there")),
            "{}",
            reported.all()
        );
    }
    assert!(pids.iter().all(|pid| is_there(*pid)), "telling ends nothing");
    let ended = clean(&project, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.all());
    assert!(ended.stdout.contains("nothing is left"), "{}", ended.all());
    assert!(!pids.iter().any(|pid| is_there(*pid)), "{}", ended.all());
    let again = project.harness(&["clean", "--all"]);
    assert_eq!(again.code, Some(0), "{}", again.all());
    assert!(again.stdout.contains("nothing is left: 0 found"), "{}", again.all());
    // What was cleaned away has ended: the run can still be brought to its end.
    let resumed = project.command(&["--run", "latest", "--resume"]).env("PLANTED", "planted-1").output();
    let resumed = crate::project::ran(resumed.expect("the harness starts"));
    assert_eq!(resumed.code, Some(3), "{}", resumed.all());
}

#[test]
fn a_number_that_another_process_has_by_now_is_nobodys() {
    let project = Project::new();
    let (mut child, pids) = running(&project);
    child.kill().expect("killed");
    child.wait().expect("gone");
    let group =
        project.path().join("shared").join(fs::read_link(project.path().join("runs/latest")).expect("a run"));
    let group =
        group.join("one").read_dir().expect("jobs").flatten().next().expect("a job").path().join("group");
    let text = fs::read_to_string(&group).expect("a record");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.len(), 3, "{text}");
    let mut stranger = Command::new("sleep").arg("600").process_group(0).spawn().expect("started");
    let number = stranger.id();
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).expect("it runs");
    let started =
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).expect("its start");
    for other in [
        format!("{number} 1 {}\n", words[2]),
        format!("{number} {started} another-boot\n"),
        format!("{} 1 {}\n", std::process::id(), words[2]),
        "-1 1 x\n".to_owned(),
        String::new(),
    ] {
        fs::create_dir_all(group.parent().expect("a folder")).expect("there");
        fs::write(&group, &other).expect("written");
        let cleaned = clean(&project, &[]);
        assert!(is_there(i32::try_from(number).expect("a number")), "{other}: {}", cleaned.all());
        // Whatever the record says, these carry the mark of their job.
        assert!(!pids.iter().any(|pid| is_there(*pid)), "{other}: {}", cleaned.all());
    }
    stranger.kill().expect("killed");
    stranger.wait().expect("gone");
}

#[test]
fn unread_secrets_and_incomplete_files_go() {
    let project = Project::new();
    here(&project);
    project.write("suites/test.toml", &suite("p5", "true", ""));
    let output =
        project.command(&["--suite", "test", "--inventory", "here"]).env("PLANTED", "planted-1").output();
    let ran = crate::project::ran(output.expect("the harness starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let run = fs::read_link(project.path().join("runs/latest")).expect("a run");
    let job = project.path().join("shared").join(run).join("one").read_dir().expect("jobs").flatten().next();
    let job = job.expect("a job").path();
    assert!(!job.join("secrets").exists(), "the job has read and removed it");
    for (name, text) in
        [("secrets", "export A_TOKEN='planted-1'\n"), ("job.sh.part", "#!"), ("job.sh", "#!/bin/ba")]
    {
        fs::write(job.join(name), text).expect("written");
    }
    let reported = clean(&project, &["--dry-run"]);
    assert_eq!(reported.code, Some(1), "{}", reported.all());
    for what in ["unread secret", "unfinished file", "broken file"] {
        assert!(reported.stdout.contains(what), "{what}: {}", reported.all());
    }
    let cleaned = clean(&project, &[]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.all());
    for name in ["secrets", "job.sh.part", "job.sh"] {
        assert!(!job.join(name).exists(), "{name}: {}", cleaned.all());
    }
}

/// A workload can move its folder away, or one above it, and put a link in its place.
#[test]
fn nothing_behind_a_link_is_read_removed_or_killed() {
    for (level, folder) in [("job", "$PWD"), ("case", "${PWD%/*}"), ("run", "${PWD%/*/*}")] {
        let project = Project::new();
        here(&project);
        let mut bystander = Command::new("sleep").arg("600").process_group(0).spawn().expect("sleep");
        let pid = bystander.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let begun = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).expect("a time");
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
        let victim = project.path().join("victim");
        let files = ["secrets", "secrets.yaml", "movie.part", "job.sh", "group", "supervisor.-/movie.part"];
        let mut planted = Vec::new();
        for below in ["", "here-1/", "one/here-1/"] {
            for file in files {
                let text =
                    if file == "group" { format!("{pid} {begun} {boot}") } else { "mine\n".to_owned() };
                project.write(&format!("victim/{below}{file}"), &text);
                planted.push(victim.join(below).join(file));
            }
        }
        let moved = project.path().join("moved");
        let (to, done) = (victim.display(), moved.display());
        // The supervisor or the harness may make the folder again meanwhile.
        let program = format!(
            "d={folder}; cd /; n=0; until ln -sT {to} $d; do n=$((n+1)); mv -T $d $d.$n; done; touch {done}; sleep 1"
        );
        project.write("suites/test.toml", &suite("p5", "bash", &format!("\"-c\", \"{program}\"")));
        let mut command = project.command(&["--suite", "test", "--inventory", "here"]);
        let command = command.env("PLANTED", "planted-1").stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the harness starts");
        until("the link", || moved.exists().then_some(()));
        child.kill().and_then(|()| child.wait()).expect("ended");
        for more in [&["--dry-run"][..], &[]] {
            let cleaned = clean(&project, more);
            assert_eq!(cleaned.code, Some(3), "{level}: {}", cleaned.all());
            let line = "not known: the folder of one/here-1 was left alone: ";
            assert!(cleaned.stdout.contains(line), "{level}: {}", cleaned.all());
            assert!(cleaned.stdout.contains("is a symbolic link"), "{level}: {}", cleaned.all());
            assert!(!cleaned.stdout.contains("secret"), "{level}: {}", cleaned.all());
        }
        assert!(is_there(i32::try_from(pid).expect("a number")), "{level}: the bystander was ended");
        bystander.kill().and_then(|()| bystander.wait()).expect("ended");
        for file in planted {
            assert!(file.is_file(), "{level}: {}", file.display());
        }
    }
}

#[test]
fn every_file_that_is_put_there_before_a_job_is_compared_with_the_plan() {
    let there = tempfile::tempdir().expect("a folder");
    let job = there.path().join("run/case/job");
    fs::create_dir_all(&job).expect("made");
    let names: Vec<&str> =
        SHARED.iter().map(|(name, _)| *name).chain([files::JOB, files::HOSTFILE]).collect();
    for name in &names {
        fs::write(job.join(name), "x").expect("written");
    }
    let output = Command::new("bash").args(["-c", CLEAN_SH, "clean", "look", "n1"]).arg(&job).output();
    let reported = String::from_utf8_lossy(&output.expect("bash").stdout).into_owned();
    for name in names {
        let line = |line: &str| line.starts_with("0\tfile\t") && line.ends_with(&format!(" {name}"));
        assert_eq!(reported.lines().filter(|it| line(it)).count(), 1, "{name}: {reported}");
    }
}

/// The script by itself, in folders that a workload has prepared.
#[test]
fn the_script_writes_through_no_link_and_looks_into_no_folder_of_another_user() {
    let there = tempfile::tempdir().expect("a folder");
    let path = |name: &str| there.path().join(name);
    let job = path("run/case/job");
    let state = job.join("supervisor.n1");
    fs::create_dir_all(&state).expect("made");
    fs::create_dir(path("victim")).expect("made");
    for file in ["victim/status", "victim/movie.part", "victim/secrets"] {
        fs::write(path(file), "mine\n").expect("written");
    }
    let clean = |verb: &str| {
        let folder = job.display().to_string();
        let output = Command::new("bash").args(["-c", CLEAN_SH, "clean", verb, "n1", &folder]).output();
        String::from_utf8_lossy(&output.expect("bash").stdout).into_owned()
    };
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(path(to), job.join(name)).expect("linked");
    link("victim/status", "supervisor.n1/status.part");
    link("victim/secrets", "secrets");
    link("victim/movie.part", "movie.part");
    link("victim", "supervisor.n2");
    fs::write(job.join("odd\n1\tsecret.part"), "x").expect("written");
    assert_eq!(clean("look"), "0\tsupervisor\tsupervisor.n1\ncomplete\n");
    assert_eq!(clean("end"), "complete\n");
    assert_eq!(fs::read_to_string(state.join("status")).expect("written"), "ended 137 asked\n");
    assert_eq!(fs::read_to_string(path("victim/status")).expect("there"), "mine\n");
    fs::remove_file(job.join("secrets")).expect("a link");
    fs::write(job.join("secrets"), "x").expect("written");
    assert_eq!(clean("end"), "0\tsecret\tsecrets\ncomplete\n", "files are removed by another");
    // Only root can give a folder away.
    for level in ["run", "run/case", "run/case/job"] {
        if std::os::unix::fs::chown(path(level), Some(65534), None).is_ok() {
            let real = fs::canonicalize(path(level)).expect("there");
            let wanted = format!("0\trefused\t`{}` belongs to another user\ncomplete\n", real.display());
            assert_eq!(clean("end"), wanted);
            std::os::unix::fs::chown(path(level), Some(0), None).expect("given back");
        }
    }
    fs::remove_dir_all(path("run")).expect("removed");
    assert_eq!(clean("end"), "complete\n", "nothing is there");
}

/// As on a node with thousands of processes, or on one that is busy: whoever asked waits 90 s for an answer.
#[test]
fn a_process_that_heeds_no_request_is_ended_in_time_where_each_look_takes_long() {
    let there = tempfile::tempdir().expect("a folder");
    let folder = fs::canonicalize(there.path()).expect("there").join("run/case/job");
    fs::create_dir_all(&folder).expect("made");
    let slow = there.path().join("slow.sh");
    fs::write(&slow, "sleep() { command sleep 3; }\n").expect("written");
    let folder = folder.display().to_string();
    let mut stubborn = Command::new("bash");
    let stubborn = stubborn.args(["-c", "trap '' TERM; while :; do sleep 1; done"]);
    let mut stubborn = stubborn.env("HARNESS_JOB", format!("n1:{folder}")).spawn().expect("bash");
    let pid = i32::try_from(stubborn.id()).expect("a number");
    let mut clean = Command::new("timeout");
    let clean = clean.args(["90", "bash", "-c", CLEAN_SH, "clean", "end", "n1", &folder]);
    let output = clean.env("BASH_ENV", &slow).output().expect("timeout");
    let is_ended = !is_there(pid);
    stubborn.kill().and_then(|()| stubborn.wait()).expect("ended");
    assert_eq!((String::from_utf8_lossy(&output.stdout).as_ref(), is_ended), ("complete\n", true));
}

#[test]
fn what_a_killed_harness_left_on_a_simulated_cluster_is_ended_there() {
    for inventory in ["default", "sim-ssh"] {
        let project = Project::new();
        project.write("suites/test.toml", &suite("sim-p5", "sleep", "\"500\""));
        let mut found = 0;
        for at in [9, 14, 19] {
            let mut command = project.command(&["--suite", "test", "--inventory", inventory]);
            command.env("PLANTED", "planted-1").env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
            assert_eq!(command.output().expect("the harness starts").status.code(), None, "it was killed");
            let reported = clean(&project, &["--dry-run"]);
            let cleaned = clean(&project, &[]);
            assert_eq!(cleaned.code, Some(0), "{inventory} {at}: {}", cleaned.all());
            assert!(cleaned.stdout.contains("SIMULATED"), "{}", cleaned.all());
            assert_eq!(
                reported.code,
                Some(i32::from(!reported.stdout.contains("nothing is left"))),
                "{}",
                reported.all()
            );
            found += reported.stdout.matches("is there").count();
            let again = clean(&project, &["--dry-run"]);
            assert_eq!(again.code, Some(0), "{inventory} {at}: {}", again.all());
        }
        assert!(found > 3, "{inventory}: {found}");
    }
}

/// As a lua job_submit does, and `SBATCH_JOB_NAME` did.
#[test]
fn jobs_that_a_site_renames_and_moves_are_found_and_no_job_is_launched_twice() {
    let project = Project::new();
    project.write("suites/test.toml", &suite("sim-p5", "sleep", "\"500\""));
    project.write(
        "inventory/w.toml",
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\n\
         [world]\njob_name = \"mine\"\njob_folder = \"/home/somebody\"\n",
    );
    let mut found = 0;
    for at in [9, 14, 19] {
        let mut command = project.command(&["--suite", "test", "--inventory", "w"]);
        command.env("PLANTED", "planted-1").env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
        assert_eq!(command.output().expect("the harness starts").status.code(), None, "it was killed");
        let reported = clean(&project, &["--dry-run"]);
        found += reported.stdout.matches("job in the queue").count();
        let cleaned = clean(&project, &[]);
        assert_eq!(cleaned.code, Some(0), "{at}: {}", cleaned.all());
        assert_eq!(clean(&project, &["--dry-run"]).code, Some(0), "{at}");
    }
    assert!(found > 3, "{found}");
    // Where the answer to `sbatch` was lost with the process, the job is there all the same.
    let mut command = project.command(&["--suite", "test", "--inventory", "w"]);
    command.env("PLANTED", "planted-1").env("HARNESS_TEST_KILL_AT_WRITE", "9");
    assert_eq!(command.output().expect("the harness starts").status.code(), None, "it was killed");
    let resumed = project.command(&["--run", "latest", "--resume"]).env("PLANTED", "planted-1").output();
    let resumed = crate::project::ran(resumed.expect("the harness starts"));
    assert_eq!(resumed.code, Some(0), "{}", resumed.all());
}

/// sbatch, squeue and scancel of one job, and sinfo of its node, in a folder that no PATH names.
const SLURM: [(&str, &str); 4] = [
    ("sbatch", "for script; do :; done; echo \"$script\" > \"${0%/*}/queued\"; echo 7"),
    (
        "squeue",
        "[[ $* != *'%i|%T|'* || ! -e ${0%/*}/queued ]] || echo \"7|RUNNING|n1|x|x|$(< \"${0%/*}/queued\")\"",
    ),
    ("scancel", "rm \"${0%/*}/queued\""),
    ("sinfo", "echo 'n1|idle|gpu:8|none'"),
];

#[test]
fn a_run_whose_inventory_names_slurms_commands_is_cleaned_by_those() {
    let project = Project::new();
    for (name, text) in SLURM {
        let file = format!("slurm/{name}");
        project.write(&file, &format!("#!/bin/bash\n{text}\n"));
        fs::set_permissions(project.path().join(file), fs::Permissions::from_mode(0o755))
            .expect("executable");
    }
    let path = project.path().display();
    let inventory = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n1\"\n[reach]\nvia = \"slurm\"\n[paths]\n\
         shared = \"{path}/shared\"\nslurm = \"{path}/slurm\"\n"
    );
    project.write("inventory/own.toml", &inventory);
    project.write("suites/test.toml", &suite("p5", "sleep", "\"500\""));
    let mut command = project.command(&["--suite", "test", "--inventory", "own", "--no-probe"]);
    let command = command.env("PLANTED", "planted-1").stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the harness starts");
    let queued = project.path().join("slurm/queued");
    until("the job", || queued.exists().then_some(()));
    child.kill().expect("killed");
    child.wait().expect("gone");
    let reported = clean(&project, &["--dry-run"]);
    assert_eq!(reported.code, Some(1), "{}", reported.all());
    assert!(reported.stdout.contains("job in the queue"), "{}", reported.all());
    // Which Slurm it was is not known for certain, where the inventory has changed.
    project.write("inventory/own.toml", &inventory.replace("n1", "n[1-2]"));
    let changed = clean(&project, &[]);
    assert_eq!((changed.code, queued.exists()), (Some(3), false), "{}", changed.all());
    assert!(changed.stdout.contains("job in the queue"), "{}", changed.all());
    assert!(changed.stdout.contains("has changed since the run was planned"), "{}", changed.all());
}

#[test]
fn a_run_that_is_none_and_words_that_do_not_go_together_are_refused() {
    let project = Project::new();
    for (args, expected) in [
        (&["clean"][..], "--run"),
        (&["clean", "--run", "nothing"], "no runs in `runs` yet"),
        (&["clean", "--run", "x", "--all"], "cannot be used with"),
    ] {
        let ran = project.harness(args);
        assert_eq!(ran.code, Some(2), "{}", ran.all());
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.all());
    }
    let none = project.harness(&["clean", "--all"]);
    assert_eq!(none.code, Some(0), "{}", none.all());
}

/// The script by itself, on what `supervisor.sh` leaves: over ssh it is sent to each node.
#[test]
fn a_job_under_a_supervisor_is_found_and_ended_with_it_and_a_stale_mark_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path().join("run/case/one job");
    fs::create_dir_all(&job).expect("made");
    fs::write(job.join("supervisor.sh"), SUPERVISOR_SH).expect("written");
    fs::write(job.join("job.sh"), "#!/bin/bash\nsleep 600 &\necho $! > pid\nwait\n").expect("written");
    let shown = job.display().to_string();
    let bash = |args: &[&str]| {
        let output = Command::new("bash").args(args).stdin(Stdio::null()).output().expect("bash");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let supervisor = format!("{shown}/supervisor.sh");
    let clean = |verb: &str| bash(&["-c", CLEAN_SH, "clean", verb, "n1", "/no/such/folder", &shown]);
    assert_eq!(bash(&[&supervisor, "start", &shown, "n1", "300"]), "running\n");
    let pid = pids(&job.join("pid"), 1)[0];
    let count = |text: &str, kind: &str| {
        text.lines().filter(|line| line.starts_with(&format!("1\t{kind}\t"))).count()
    };
    let reported = clean("look");
    assert!(reported.ends_with("complete\n") && count(&reported, "process") >= 3, "{reported}");
    assert!(reported.contains(&format!("1\tprocess\t{pid}\n")), "{reported}");
    let ended = clean("end");
    assert_eq!((count(&ended, "process"), count(&ended, "supervisor")), (0, 0), "{ended}");
    assert!(!is_there(pid));
    assert!(
        bash(&[&supervisor, "look", &shown, "n1"]).starts_with("ended "),
        "what waits for it is informed"
    );
    // One whose supervisor died with all it started, and wrote no status.
    fs::remove_file(job.join("supervisor.n1/status")).expect("there");
    assert_eq!(count(&clean("look"), "supervisor"), 1);
    assert_eq!(count(&clean("end"), "supervisor"), 0);
    assert_eq!(bash(&[&supervisor, "look", &shown, "n1"]), "ended 137 asked\n");
}

/// A supervisor that was killed cannot end what left the job's group.
#[test]
fn what_left_the_group_of_a_job_is_found_and_ended_even_without_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path().join("run/case/job");
    fs::create_dir_all(&job).expect("made");
    let shown = job.display().to_string();
    let begin = |mark: String, file: &str| {
        let file = folder.path().join(file);
        let text = "echo $$ > \"$0\"; exec sleep 600";
        let mut begun = Command::new("setsid");
        begun.args(["bash", "-c", text]).arg(&file).env("HARNESS_JOB", mark).stdin(Stdio::null());
        (begun.spawn().expect("setsid"), pids(&file, 1)[0])
    };
    let clean = |verb: &str| {
        let output = Command::new("bash").args(["-c", CLEAN_SH, "clean", verb, "n1", &shown]).output();
        let output = output.expect("bash");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (mut stranger, other) = begin(format!("n2:{shown}"), "other");
    for mark in ["n1", ""] {
        let (mut begun, pid) = begin(format!("{mark}:{shown}"), &format!("pid-{mark}"));
        assert_eq!(clean("look"), format!("0\tprocess\t{pid}\ncomplete\n"));
        assert_eq!(clean("end"), "complete\n");
        assert!(!is_there(pid));
        begun.wait().expect("ended");
        if job.exists() {
            fs::remove_dir_all(folder.path().join("run")).expect("removed");
        }
    }
    assert!(is_there(other), "of another node");
    stranger.kill().expect("killed");
    stranger.wait().expect("ended");
}

/// The kernel does not escape a process name in /proc/PID/stat.
#[test]
fn a_process_name_with_a_line_break_is_found_and_does_not_end_the_census() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = folder.path().join("run/case/job");
    fs::create_dir_all(&job).expect("made");
    let shown = job.display().to_string();
    let text = "cd \"$0\"; echo '#!/bin/bash\necho $$ > pid; sleep 600 & wait' > $'a\\nb'; chmod +x $'a\\nb'; \
                read -r stat < /proc/$$/stat; read -r boot < /proc/sys/kernel/random/boot_id; set -- ${stat##*) }; \
                echo $$ ${20} $boot > group; exec ./$'a\\nb'";
    let mut named = Command::new("setsid")
        .args(["bash", "-c", text, &shown])
        .stdin(Stdio::null())
        .spawn()
        .expect("setsid");
    let pid = pids(&job.join("pid"), 1)[0];
    let clean = |verb: &str| {
        let output = Command::new("bash").args(["-c", CLEAN_SH, "clean", verb, "n1", &shown]).output();
        let output = output.expect("bash");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let reported = clean("look");
    assert!(
        reported.contains(&format!("0\tprocess\t{pid}\n")) && reported.ends_with("complete\n"),
        "{reported}"
    );
    assert_eq!(clean("end"), "complete\n");
    named.wait().expect("ended");
}

#[test]
fn a_copy_of_a_run_is_not_cleaned_and_not_resumed() {
    let project = Project::new();
    let (mut child, pids) = running(&project);
    let id = project.latest().canonicalize().expect("a run");
    let id = id.file_name().expect("a name").to_str().expect("text").to_owned();
    let runs = project.path().join("runs");
    let copy = |to: &Path| {
        let status = Command::new("cp").arg("-r").arg(runs.join(&id)).arg(to).status().expect("cp");
        assert!(status.success());
    };
    let elsewhere = project.path().join("copy");
    fs::create_dir(&elsewhere).expect("made");
    copy(&elsewhere.join(&id));
    copy(&runs.join("another"));
    let other = Project::new();
    let away = elsewhere.join(&id).display().to_string();
    for (project, verb, run, code, why) in [
        (&project, "clean", away.as_str(), 2, "it may be a copy"),
        (&project, "resume", away.as_str(), 2, "it may be a copy"),
        (&other, "clean", away.as_str(), 2, "it may be a copy"),
        (&project, "clean", "another", 3, "is a copy of run"),
        (&project, "resume", "another", 2, "is a copy of run"),
    ] {
        let ran = project.harness(&[verb, "--run", run]);
        assert_eq!(ran.code, Some(code), "{verb} {run}: {}", ran.all());
        assert!(ran.stderr.contains(why), "{verb} {run}: {}", ran.all());
    }
    assert!(pids.iter().all(|pid| is_there(*pid)), "{pids:?}");
    child.kill().expect("killed");
    child.wait().expect("gone");
    let ended = project.harness(&["clean", "--run", &runs.join(&id).display().to_string()]);
    assert_eq!(ended.code, Some(0), "{}", ended.all());
    assert!(!pids.iter().any(|pid| is_there(*pid)), "{}", ended.all());
}
