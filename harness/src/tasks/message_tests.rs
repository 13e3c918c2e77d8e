//! Why a task is lost, restarted or refused, and why a cluster cannot run tasks: the messages.

use super::gather::{PartReader, gather};
use super::job_work::JobWork;
use super::order::{FORMAT, Program, TaskOrder, Work};
use super::queue::Queue;
use super::report_work::ReportWork;
use super::{AnalysisFolder, Cluster, Failed, KUBERNETES, SLURM, folder, local, part, program, task};
use crate::limited::{self, Limits};
use base::digest::sha256;
use cluster::launch::slurm_array::Arrays;
use cluster::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use config::inventory::{Instances, Inventory, Paths, SamplePaths};
use recipes::catalogue::Catalogue;
use recipes::recipe::of_reports::find;
use std::cell::Cell;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// A Slurm that reports the state of its tasks by the number of the array and of the question.
struct FakeSlurm {
    states: fn(array: u32, question: u32) -> &'static str,
    /// `sbatch` is refused from this array on.
    refuses_from: u32,
    /// Of task 1.
    part: Option<&'static [u8]>,
    log: &'static [u8],
    arrays: Cell<u32>,
    questions: Cell<u32>,
}

impl Default for FakeSlurm {
    fn default() -> FakeSlurm {
        let (arrays, questions) = (Cell::new(0), Cell::new(0));
        FakeSlurm { states: |_, _| "", refuses_from: u32::MAX, part: None, log: b"", arrays, questions }
    }
}

fn count(cell: &Cell<u32>) -> u32 {
    cell.set(cell.get() + 1);
    cell.get()
}

impl Reach for FakeSlurm {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        let answer = match command.argv[0].as_str() {
            "sbatch" if count(&self.arrays) >= self.refuses_from => {
                Answer::failed(1, "sbatch: error: invalid partition specified: gpu")
            }
            "sbatch" => Answer::ok(format!("{}\n", self.arrays.get())),
            "squeue" => match (self.states)(self.arrays.get(), count(&self.questions)) {
                "down" => Answer::failed(1, "slurm_load_jobs error: Unexpected message received"),
                states => Answer::ok(states),
            },
            "mktemp" => Answer::failed(1, "mktemp: failed to create directory: Permission denied"),
            _ => Answer::ok(""),
        };
        Box::pin(async move { Ok(answer) })
    }

    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async { Ok(()) })
    }

    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        let file = match path {
            "/fsx/a/part-1" => self.part.map(<[u8]>::to_vec),
            "/fsx/a/part-2" => part::write("order", 2, b"").ok(),
            _ => Some(self.log.to_vec()),
        };
        Box::pin(async move { file.ok_or_else(|| ReachError::NotFound { path: path.to_owned() }) })
    }
}

struct AnyPart;

impl PartReader for AnyPart {
    type Part = ();

    fn part(&self, _: usize, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn done(&mut self, _: &()) {}
}

/// Runs on a paused clock.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(work)
}

/// What a person reads while tasks run, and at their end.
fn lines_of(what: &str, tasks: usize, slurm: &FakeSlurm) -> String {
    let arrays =
        Arrays { reach: slurm, host: &Host::Here, options: Vec::new(), script: "/fsx/a/task.sh".to_owned() };
    let queue = Queue::Slurm(arrays);
    let place = AnalysisFolder { reach: slurm, host: &Host::Here, folder: "/fsx/a" };
    let mut lines = vec![format!("# {what}")];
    let mut notify = |line: &str| lines.push(line.to_owned());
    let gathered = block_on(gather(&queue, &place, "order", tasks, &mut AnyPart, &mut notify));
    match gathered {
        Ok(gathered) => lines.extend(gathered.lost.iter().map(|(task, why)| format!("lost {task}: {why}"))),
        Err(Failed::Machinery(why)) => lines.push(why),
        Err(Failed::Interrupted(code)) => lines.push(format!("interrupted: {code}")),
    }
    lines.join("\n")
}

#[test]
fn messages_of_lost_tasks() {
    let failed = |_: u32, _: u32| "1|FAILED|NonZeroExitCode|p5-001";
    let completed = |_: u32, _: u32| "1|COMPLETED|None|p5-001";
    let elsewhere = |array: u32, _: u32| match array {
        2 => "1|PENDING|Priority|",
        _ => "1|NODE_FAIL|None|p5-001",
    };
    let two = |_: u32, question: u32| match question {
        1 => "1|FAILED|NonZeroExitCode|p5-001\n2|RUNNING|None|p5-002",
        _ => "2|COMPLETED|None|p5-002",
    };
    let log = b"reading\nerror: this node has another harness program\n\n";
    let other = FakeSlurm::default;
    let cases = [
        ("failed", 1, FakeSlurm { states: failed, log, ..other() }),
        ("no file", 1, FakeSlurm { states: completed, ..other() }),
        ("another file", 1, FakeSlurm { states: completed, part: Some(b"hello"), ..other() }),
        ("held", 1, FakeSlurm { states: |_, _| "1|PENDING|PartitionDown|", ..other() }),
        ("no other node", 1, FakeSlurm { states: elsewhere, ..other() }),
        ("no restart", 2, FakeSlurm { states: two, refuses_from: 2, ..other() }),
        ("no start", 1, FakeSlurm { refuses_from: 1, ..other() }),
        ("no answer", 1, FakeSlurm { states: |_, _| "down", ..other() }),
    ];
    let mut all = cases.map(|(what, tasks, slurm)| lines_of(what, tasks, &slurm)).to_vec();
    let made = block_on(folder(&FakeSlurm::default(), &Host::Here, "/fsx", None));
    all.push(made.expect_err("refused"));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn messages_of_parts() {
    let file = part::write("order", 3, b"the part").expect("written");
    let newer = String::from_utf8(file.clone()).expect("text").replace("\"format\":1", "\"format\":2");
    let mut changed = file.clone();
    *changed.last_mut().expect("bytes") ^= 1;
    let files: [(&str, &[u8]); 5] = [
        ("no line", b""),
        ("another line", b"{}\n"),
        ("another format", newer.as_bytes()),
        ("cut", &file[..file.len() - 1]),
        ("changed", &changed),
    ];
    let mut lines = files
        .map(|(what, file)| format!("{what}: {}", part::read("order", 3, file).expect_err(what)))
        .to_vec();
    lines.push(format!("another task: {}", part::read("order", 4, &file).expect_err("another")));
    insta::assert_snapshot!(lines.join("\n"));
}

fn order(program: Program) -> TaskOrder {
    TaskOrder {
        format: FORMAT,
        program,
        own: Vec::new(),
        folder: Some(PathBuf::from("/no/such/folder")),
        work: Work::Jobs(JobWork::new(&[], Vec::new())),
        shares: vec![Vec::new()],
        jobs: None,
    }
}

#[test]
fn messages_of_orders() {
    let (path, own) = program::own().expect("read");
    let newer = Program { version: "99".to_owned(), sha256: "0123abcd".to_owned() };
    let read = |bytes: &[u8]| TaskOrder::from_bytes(bytes, Path::new("order.json")).err().unwrap_or_default();
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("order.json");
    std::fs::write(&file, order(own.clone()).to_bytes().expect("bytes")).expect("written");
    let lines = [
        read(b"{"),
        read(b"{\"format\": 2}"),
        read(b"{\"format\": 1}"),
        program::check(&newer).expect_err("another"),
        order(newer).enter().expect_err("no folder"),
        task::work(&file, 5).expect_err("no task"),
        task::work(Path::new("/no/such/order.json"), 1).expect_err("no order"),
    ];
    let shown = lines.join("\n").replace(&path.display().to_string(), "PROGRAM");
    insta::assert_snapshot!(shown.replace(&own.sha256, "SHA256").replace(&own.version, "VERSION"));
}

#[test]
fn messages_of_report_work() {
    let work = |recipes: &str, inputs: &str, share: &[usize]| {
        let text = format!("{{\"recipes\": [{recipes}], \"filter\": null, \"inputs\": [{inputs}]}}");
        let work: ReportWork = serde_json::from_str(&text).expect("an order");
        work.read(share, 1, &Catalogue::built_in()).expect_err("refused")
    };
    let named = |name: &str, argument: &str, sha256: &str| {
        format!("{{\"name\": \"{name}\", \"arguments\": [\"{argument}\"], \"sha256\": \"{sha256}\"}}")
    };
    let known = sha256(find("cuda_gpu_kern_hist").expect("a recipe").definition.as_bytes());
    let report = "{\"path\": \"/no/such/report\", \"shown\": \"r\", \"side\": 0}";
    let lines = [
        work(&named("cuda_gpu_kern_hits", "base", ""), "", &[]),
        work(&named("cuda_gpu_kern_hist", "base", ""), "", &[]),
        work(&named("cuda_gpu_kern_hist", "xyzzy=1", &known), "", &[]),
        work("", report, &[0]),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_clusters() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root");
    let instances = Instances::load(root).expect("profiles");
    let real = "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-2]\"\npaths = { shared = \"/fsx\" }\n";
    let refused = |place: &str, text: &str| {
        let inventory = Inventory::read(text, "inventory/x.toml", &instances).expect("an inventory");
        Cluster::from_inventory(&inventory, place, None).err().unwrap_or_default()
    };
    let own = Program { version: "1".to_owned(), sha256: "0123abcd".to_owned() };
    let own = (PathBuf::from("/home/a/harness"), own);
    let on_nodes = |harness: Option<&str>| {
        let paths = Paths {
            shared: "/fsx".to_owned(),
            nccl_tests: String::new(),
            mpirun: None,
            nccl_inspector: None,
            nsys: None,
            slurm: None,
            harness: harness.map(str::to_owned),
            counters: String::new(),
            samples: SamplePaths::default(),
        };
        program::on_nodes(&paths, &own, "`inventory/x.toml`").expect_err("refused")
    };
    let simulated =
        "kind = \"simulated\"\ninstance = \"sim-p5\"\nnodes = \"p5-[001-004]\"\n[reach]\nvia = \"slurm\"\n";
    let lines = [
        refused(SLURM, simulated),
        refused(SLURM, &format!("{real}reach = {{ via = \"ssh\" }}\n")),
        refused(SLURM, &format!("{real}reach = {{ via = \"slurm\", login = \"head\" }}\n")),
        refused(KUBERNETES, simulated),
        refused(KUBERNETES, &format!("{real}reach = {{ via = \"slurm\" }}\n")),
        refused(
            KUBERNETES,
            &format!("{real}reach = {{ via = \"kubernetes\", image = \"r/i:1\", shared = \"claim\" }}\n")
                .replace("/fsx", "/no/such/folder"),
        ),
        on_nodes(None),
        on_nodes(Some("/nowhere/harness")),
        on_nodes(Some("/bin/sh")),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_tasks_that_are_served() {
    let arguments = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let refused = |all: &[&str]| task::parse_and_work(&arguments(all)).expect_err("refused");
    let lines = [
        refused(&[]),
        refused(&["/no/such/order.json"]),
        refused(&["/no/such/order.json", "one"]),
        refused(&["/no/such/order.json", "1"]),
        limited::limits(local::VERB, &arguments(&["1"])).expect_err("refused"),
        local::read(b"{").expect_err("refused"),
        local::internal_error("index out of bounds"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_processes_that_read_reports() {
    let limits = Limits { memory: 4 << 30, seconds: 60, threads: 1, answer: 1 << 30 };
    let refused = std::io::Error::from_raw_os_error(11);
    let failures = [
        limited::Failed::NotStarted(refused),
        limited::Failed::Timeout,
        limited::Failed::Memory,
        limited::Failed::Answer,
        limited::Failed::Message("r.parquet: not a table".to_owned()),
        limited::Failed::Silent(ExitStatus::from_raw(9)),
    ];
    let lines = failures.map(|failed| local::message_of(failed, &limits));
    insta::assert_snapshot!(lines.join("\n"));
}
