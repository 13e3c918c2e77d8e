//! `allocation.sh` under a real bash, with stand-ins for the words of Slurm that it asks: jobs run one after the other as
//! their turns come, each once, and one that is ended leaves the others alone. What the harness makes of its marks is
//! tested beside `launch/slurm_turns.rs`.

use job::script::ALLOCATION_SH;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The file `steps` is what runs on the nodes; what is sent a signal that it heeds is gone from there.
/// The partition is hidden.
const SQUEUE: &str =
    "#!/bin/bash\nif [[ \" $* \" == *\" --all \"* ]]; then cat steps 2> /dev/null; fi\nexit 0\n";
const SCANCEL: &str =
    "#!/bin/bash\necho \"$@\" >> asked\nif [[ $1 == --signal=KILL || ! -e deaf ]]; then rm -f steps; fi\n";

struct Allocation {
    folder: TempDir,
    child: Child,
}

impl Allocation {
    /// Its jobs by their scripts, each with that limit.
    fn new(idle_s: u32, jobs: &[(&str, u32)]) -> Allocation {
        let folder = TempDir::new().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("bin")).expect("made");
        for (name, text) in [("squeue", SQUEUE), ("scancel", SCANCEL)] {
            fs::write(path("bin").join(name), text).expect("written");
            fs::set_permissions(path("bin").join(name), fs::Permissions::from_mode(0o755)).expect("allowed");
        }
        fs::write(path("allocation.sh"), ALLOCATION_SH).expect("written");
        let mut arguments = vec![idle_s.to_string()];
        for ((script, limit_s), number) in jobs.iter().zip(1..) {
            // Names of folders hold what names may.
            let job = path(&format!("job {number}"));
            fs::create_dir(&job).expect("made");
            fs::write(job.join("job.sh"), format!("#!/bin/bash\n{script}\n")).expect("written");
            arguments.extend([job.display().to_string(), limit_s.to_string()]);
        }
        let child = start(&folder, &arguments);
        Allocation { folder, child }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn ended(&self, job: u32) -> String {
        until(&format!("job {job} has ended"), || self.path(&format!("job {job}/ended")).exists());
        self.text(&format!("job {job}/ended"))
    }

    fn code(&mut self) -> Option<i32> {
        until("the allocation has ended", || self.child.try_wait().expect("a child").is_some());
        self.child.wait().expect("ended").code()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(folder: &TempDir, arguments: &[String]) -> Child {
    let bin = folder.path().join("bin").display().to_string();
    let others = std::env::var("PATH").expect("a path");
    Command::new("bash")
        .arg("allocation.sh")
        .args(arguments)
        .current_dir(folder.path())
        .env("PATH", format!("{bin}:{others}"))
        .env("SLURM_JOB_ID", "7")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash starts")
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Gone, or a zombie that its parent has yet to reap.
fn is_gone(pid: &str) -> bool {
    match fs::read_to_string(format!("/proc/{}/stat", pid.trim())) {
        Err(_) => true,
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
    }
}

const LEAVES: &str = "echo \"$status\" > exit_code; exit \"$status\"";

#[test]
fn jobs_run_one_after_the_other_in_the_order_of_their_turns_and_report_how_they_ended() {
    let job =
        |status: &str| format!("pwd >> ../ran; echo out; echo err >&2; sleep 1; status={status}; {LEAVES}");
    let (well, badly) = (job("0"), job("137"));
    let mut shared = Allocation::new(60, &[(&well, 60), (&badly, 60), ("kill -9 $$", 60)]);
    shared.write("turn.2", "1\n");
    shared.write("turn.1", "2\n");
    assert_eq!(shared.ended(2), "exited 137\n", "a code is a code, whatever it looks like");
    assert_eq!(shared.ended(1), "exited 0\n");
    let folders: Vec<String> = shared.text("ran").lines().map(str::to_owned).collect();
    assert!(folders[0].ends_with("job 2") && folders[1].ends_with("job 1"), "{folders:?}");
    assert_eq!(
        (shared.text("job 1/batch.out"), shared.text("job 1/batch.err")),
        ("out\n".into(), "err\n".into())
    );
    shared.write("turn.3", "3\n");
    assert_eq!(shared.ended(3), "signal 9\n");
    shared.write("close", "");
    assert_eq!(shared.code(), Some(0));
    assert_eq!(shared.text("asked"), "", "nothing was left to be ended");
}

#[test]
fn a_job_that_is_cancelled_or_over_its_limit_is_ended_with_all_it_started_and_the_next_one_runs() {
    let sleeps = "trap '' TERM INT\nsleep 600 & echo $! > child\nwhile :; do sleep 1; done";
    let mut shared = Allocation::new(60, &[(sleeps, 600), (sleeps, 3), ("status=0; echo 0 > exit_code", 60)]);
    shared.write("turn.1", "1\n");
    until("the job has begun", || shared.path("job 1/child").exists());
    shared.write("steps", "7.0\n7.batch\n7.1\n");
    shared.write("deaf", "");
    shared.write("job 1/interrupt", "");
    until("its steps were asked", || shared.text("asked").contains("--signal=INT 7.0 7.1"));
    assert!(!shared.path("job 1/ended").exists(), "it heeds no signal");
    shared.write("turn.2", "2\n");
    shared.write("turn.3", "3\n");
    shared.write("job 1/cancel", "");
    assert_eq!(shared.ended(1), "asked\n");
    assert!(is_gone(&shared.text("job 1/child")));
    assert_eq!(
        shared.text("asked").lines().last(),
        Some("--signal=KILL 7.0 7.1"),
        "{}",
        shared.text("asked")
    );
    assert_eq!(shared.ended(2), "limit\n");
    assert!(is_gone(&shared.text("job 2/child")));
    assert_eq!(shared.ended(3), "exited 0\n");
    shared.write("close", "");
    assert_eq!(shared.code(), Some(0));
}

#[test]
fn what_a_job_leaves_behind_is_ended_before_the_next_one_begins() {
    for leaves in ["sleep", "setsid sleep"] {
        ends_what_is_left(&format!("{leaves} 600 & echo $! > child; sleep 0.3; echo 0 > exit_code"));
    }
}

fn ends_what_is_left(leaves: &str) {
    // What is not reaped yet is over.
    let looks = "read -r pid < '../job 1/child'; { read -r stat < \"/proc/$pid/stat\"; } 2> /dev/null\n\
                 [[ -n ${stat-} && $stat != *') Z '* ]] && echo there > seen; echo 0 > exit_code";
    let shared = Allocation::new(60, &[(leaves, 60), (looks, 60)]);
    shared.write("turn.2", "2\n");
    shared.write("turn.1", "1\n");
    assert_eq!(shared.ended(2), "exited 0\n");
    assert!(!shared.path("job 2/seen").exists());
}

/// A script whose process name holds a line break, and which takes the place of the one that calls it.
const LINE_BREAK: &str = "printf '#!/bin/bash\\necho $$ > child; sleep 600 & wait\\n' > $'a\\nb'; chmod +x $'a\\nb'; exec ./$'a\\nb'";

/// The kernel does not escape a process name in /proc/PID/stat.
#[test]
fn a_process_name_with_a_line_break_does_not_end_the_allocation() {
    let mut shared = Allocation::new(60, &[(LINE_BREAK, 1), ("echo 0 > exit_code", 60)]);
    shared.write("turn.2", "2\n");
    shared.write("turn.1", "1\n");
    assert_eq!(shared.ended(1), "limit\n");
    assert!(is_gone(&shared.text("job 1/child")));
    assert_eq!(shared.ended(2), "exited 0\n");
    shared.write("close", "");
    assert_eq!(shared.code(), Some(0));
}

#[test]
fn no_job_runs_twice_even_where_the_allocation_restarts() {
    let mut shared =
        Allocation::new(60, &[("echo x >> ran; echo 0 > exit_code", 60), ("echo 0 > exit_code", 60)]);
    shared.write("turn.1", "1\n");
    shared.ended(1);
    shared.child.kill().expect("killed");
    shared.child.wait().expect("ended");
    let arguments: Vec<String> = [1, 2]
        .iter()
        .flat_map(|number| [shared.path(&format!("job {number}")).display().to_string(), "60".to_owned()])
        .collect();
    shared.child = start(&shared.folder, &[vec!["60".to_owned()], arguments].concat());
    shared.write("turn.2", "2\n");
    assert_eq!(shared.ended(2), "exited 0\n");
    assert_eq!(shared.text("job 1/ran"), "x\n");
}

#[test]
fn an_allocation_that_is_given_nothing_ends_by_itself_and_wrong_words_are_refused() {
    let mut shared = Allocation::new(1, &[("true", 60)]);
    assert_eq!(shared.code(), Some(0));
    assert!(!shared.path("job 1/began").exists());
    for arguments in [&["60"][..], &["0", "/f", "60"], &["60", "/f"]] {
        let words: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let ended = start(&shared.folder, &words).wait().expect("ended");
        assert_eq!(ended.code(), Some(2), "{arguments:?}");
    }
    let mut other = Allocation::new(60, &[("true", 60)]);
    other.write("turn.1", "2\n");
    assert_eq!(other.code(), Some(2), "there is no second job");
}
