//! What a job in pods costs as nodes grow: processor time of the harness without its kubectl, requests to the API server by
//! verb, and bytes of their answers, in all and for each node and minute. kubectl is the tests' stand-in, whose pods are as long
//! as a real server prints them. Exits 1 where one of them grows faster than n log n.
//!
//!     cargo bench -p harness --bench pods_scale              # 4, 64 and 512 nodes: minutes
//!     cargo bench -p harness --bench pods_scale -- 4 64

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NODES: [u32; 3] = [4, 64, 512];
/// Several polls of each node.
const JOB_S: u32 = 60;
/// Bytes of a pod's status in a list, beside its names: what `kubectl get --output=json` prints of one with such containers.
const STATUS: usize = 4 << 10;
/// Powers of nodes are measured on a machine that does other things.
const SLACK: f64 = 0.15;
/// A line for each call: its verb, and the bytes of its answer.
const KUBECTL: &str = "#!/bin/bash\nfor word; do [[ $word == -* ]] || break; done\nset -o pipefail\n\
                       \"$STAND_IN\" \"$@\" | tee >(wc -c | sed \"s/^/$word /\" >> \"$HARNESS_TEST_KUBE/bytes\")\n";

fn main() -> Result<(), String> {
    // `cargo test --benches` calls it too; a benchmark is not a test.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let mut sizes: Vec<u32> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = NODES.to_vec();
    }
    println!(
        "{:>6} {:>7} {:>6} {:>8} {:>6} {:>6} {:>7} {:>8} {:>9} {:>12}",
        "nodes", "run s", "CPU s", "create", "list", "exec", "delete", "MB", "requests*", "bytes*"
    );
    let mut rows = Vec::new();
    for nodes in sizes {
        let row = Row::measure(nodes)?;
        let calls = |verb: &str| row.calls.get(verb).copied().unwrap_or_default();
        let minutes = row.nodes * row.run_s / 60.0;
        println!(
            "{nodes:>6} {:>7.1} {:>6.2} {:>8} {:>6} {:>6} {:>7} {:>8.2} {:>9.1} {:>12.0}",
            row.run_s,
            row.cpu_s,
            calls("create"),
            calls("get"),
            calls("exec"),
            calls("delete"),
            row.bytes / 1e6,
            row.requests() / minutes,
            row.bytes / minutes
        );
        rows.push(row);
    }
    println!("* for each node and minute of the run");
    println!("growth as a power of nodes, from each row to the next:");
    let mut wrong = Vec::new();
    for pair in rows.windows(2) {
        let [from, to] = pair else { continue };
        let power = |of: fn(&Row) -> f64| (of(to) / of(from)).ln() / (to.nodes / from.nodes).ln();
        let limit = power(|row| row.nodes * row.nodes.ln());
        let grown = [
            ("CPU", power(|row| row.cpu_s)),
            ("requests", power(Row::requests)),
            ("bytes", power(|row| row.bytes)),
        ];
        let shown: Vec<String> = grown.iter().map(|(what, power)| format!("{what} {power:.2}")).collect();
        println!("{:>6} to {:>6}: {}; n log n {limit:.2}", from.nodes, to.nodes, shown.join(", "));
        for (what, power) in grown.into_iter().filter(|(_, power)| *power > limit + SLACK) {
            wrong.push(format!(
                "{what} from {} to {} nodes: power {power:.2}, limit {limit:.2}",
                from.nodes, to.nodes
            ));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// What a run in so many pods cost.
struct Row {
    nodes: f64,
    run_s: f64,
    cpu_s: f64,
    /// By verb.
    calls: BTreeMap<String, u64>,
    bytes: f64,
}

impl Row {
    // A benchmark reads the clock.
    #[allow(clippy::disallowed_methods)]
    fn measure(nodes: u32) -> Result<Row, String> {
        let failed = |error: std::io::Error| error.to_string();
        let folder = tempfile::Builder::new().prefix("harness-bench-").tempdir().map_err(failed)?;
        let kube = set_up(folder.path(), nodes).map_err(failed)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let from = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(["-q", "--suite", "pods", "--inventory", "pods", "--no-probe"])
            .current_dir(folder.path())
            .env("PATH", format!("{}:{path}", folder.path().join("bin").display()))
            .env("STAND_IN", Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stand_ins/kubectl"))
            .env("HARNESS_TEST_KUBE", &kube)
            .env_remove("KUBERNETES_SERVICE_HOST")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let cpu_s = processor_time(&mut child);
        let run_s = from.elapsed().as_secs_f64();
        let exit = child.wait().map_err(failed)?;
        if !exit.success() {
            return Err(format!("the run on {nodes} nodes ended with {exit}"));
        }
        // kubectl reads the config for this; it asks no server.
        let text = fs::read_to_string(kube.join("bytes")).map_err(failed)?;
        let lines =
            text.lines().filter_map(|line| line.split_once(' ')).filter(|(verb, _)| *verb != "config");
        let mut row = Row { nodes: f64::from(nodes), run_s, cpu_s, calls: BTreeMap::new(), bytes: 0.0 };
        for (verb, bytes) in lines {
            *row.calls.entry(verb.to_owned()).or_default() += 1;
            row.bytes += bytes.trim().parse::<f64>().map_err(|error| format!("{bytes:?}: {error}"))?;
        }
        Ok(row)
    }

    fn requests(&self) -> f64 {
        self.calls.values().sum::<u64>() as f64
    }
}

/// A project and the state of the stand-in, whose folder is given.
fn set_up(folder: &Path, nodes: u32) -> std::io::Result<PathBuf> {
    let (kube, bin) = (folder.join("kube"), folder.join("bin"));
    for made in [&kube.join("nodes"), &bin, &folder.join("inventory"), &folder.join("suites")] {
        fs::create_dir_all(made)?;
    }
    fs::write(bin.join("kubectl"), KUBECTL)?;
    fs::set_permissions(bin.join("kubectl"), fs::Permissions::from_mode(0o755))?;
    let status = format!(
        "{{\"phase\":\"Running\",\"podIP\":\"127.0.0.1\",\"containerStatuses\":[{{\"name\":\"work\",\"ready\":true,\
         \"state\":{{\"running\":{{}}}}}}],\"message\":\"{}\"}}",
        "x".repeat(STATUS)
    );
    for node in 1..=nodes {
        fs::write(kube.join(format!("nodes/n{node:03}")), &status)?;
    }
    let shared = folder.join("shared").display().to_string();
    let inventory = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[001-{nodes:03}]\"\n[reach]\nvia = \"kubernetes\"\nimage = \"r/i:1\"\n\
         shared = \"fsx\"\n[paths]\nshared = \"{shared}\"\n"
    );
    fs::write(folder.join("inventory/pods.toml"), inventory)?;
    let suite = format!(
        "instance = \"p5\"\nabout = \"a job that waits\"\n[[case]]\nname = \"wait\"\nplacement = \"all\"\nlimit_s = 1800\n\
         workload = {{ kind = \"command\", program = \"sleep\", args = [\"{JOB_S}\"] }}\nrecipes = [\"command\"]\n\
         [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
    );
    fs::write(folder.join("suites/pods.toml"), suite)?;
    Ok(kube)
}

/// Of the child alone, as it was last read before its end.
#[allow(clippy::disallowed_methods)]
fn processor_time(child: &mut Child) -> f64 {
    let mut ticks = 0.0;
    while let Ok(None) = child.try_wait() {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        // Of fields 14 and 15; a name in brackets is the second.
        let own: f64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        ticks = own.max(ticks);
        std::thread::sleep(Duration::from_millis(20));
    }
    // Linux counts in hundredths of a second for programs.
    ticks / 100.0
}
