//! Readers of what programs print and people write.

use super::figures;
use super::mutate::Seeds;
use super::readers::{Read, Reader};
use cluster::discover;
use cluster::drain::{self, NodeState};
use cluster::field_kit::{self, Evidence, NodeEvidence};
use cluster::launch::slurm_array::Arrays;
use cluster::launch::stderr_blame::Blame;
use cluster::probe::answer;
use cluster::reach::pods::read_pods;
use cluster::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use config::baseline::Baselines;
use config::inventory::{Instances, Inventory, Topology, TopologyFile};
use config::suite::Suite;
use harness::cli::read_pack;
use harness::lint::Source;
use harness::publish::{manifest_paths, readable_paths};
use job::profile::account;
use job::window::mark;
use logs::inspector::lines::{FileLines, Line, ParsedLine};
use logs::nccl_debug::{Compat, Script};
use logs::node_tools;
use logs::torch_failure::{self, Account};
use logs::{efa_counters, flow_log, inspector, lttng, mpi_log, nccl_debug, nccl_tests, ras, training_log};
use observe::Observer;
use recipes::catalogue::Catalogue;
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::LazyLock;
use store::Home;

pub(crate) fn readers() -> Vec<Reader> {
    let reader = |name, cases, seeds, read| Reader { name, is_text: true, cases, seeds, read };
    vec![
        reader("nccl-tests", 6_000, || folder("tests/fuzz/seeds/nccl-tests"), nccl_tests),
        reader("nccl-log", 3_000, || folder("tests/fuzz/seeds/nccl-log"), nccl_log),
        reader("nccl-script", 3_000, || folder("tests/fuzz/seeds/nccl-script"), nccl_script),
        reader("lttng", 6_000, || folder("tests/fuzz/seeds/lttng"), |bytes| or_refused(lttng::read(bytes))),
        reader("training-log", 3_000, || folder("tests/fuzz/seeds/training-log"), training_log),
        reader("mpi-log", 6_000, || folder("tests/fuzz/seeds/mpi-log"), mpi_log),
        reader("ras", 6_000, || folder("tests/fuzz/seeds/ras"), ras_report),
        reader("node-output", 6_000, || folder("tests/fuzz/seeds/node-output"), node_output),
        reader("dcgm", 6_000, || folder("tests/fuzz/seeds/dcgm"), dcgm),
        reader("nvbandwidth", 6_000, || folder("tests/fuzz/seeds/nvbandwidth"), nvbandwidth),
        reader("gpu-burn", 6_000, || folder("tests/fuzz/seeds/gpu-burn"), gpu_burn),
        reader("gpu-state", 6_000, || folder("tests/fuzz/seeds/gpu-state"), gpu_state),
        reader("stream", 6_000, || folder("tests/fuzz/seeds/stream"), stream),
        reader("stress-ng", 6_000, || folder("tests/fuzz/seeds/stress-ng"), stress_ng),
        reader("fio", 6_000, || folder("tests/fuzz/seeds/fio"), fio),
        reader("iperf3", 6_000, || folder("tests/fuzz/seeds/iperf3"), iperf3),
        reader("gpu-allocation", 6_000, || folder("tests/fuzz/seeds/gpu-allocation"), gpu_allocation),
        reader("nic-latency", 6_000, || folder("tests/fuzz/seeds/nic-latency"), nic_latency),
        reader("inspector", 6_000, || folder("tests/fuzz/seeds/inspector"), inspector),
        reader(
            "inspector-gathered",
            2_000,
            || folder("tests/fuzz/seeds/inspector-gathered"),
            inspector_gathered,
        ),
        reader(
            "inspector-followed",
            6_000,
            || folder("tests/fuzz/seeds/inspector-followed"),
            inspector_followed,
        ),
        reader("efa-capture", 6_000, || folder("tests/fuzz/seeds/efa-capture"), efa_capture),
        reader("efa-totals", 6_000, || folder("tests/fuzz/seeds/efa-totals"), efa_totals),
        reader("nic-flow", 6_000, || folder("tests/fuzz/seeds/nic-flow"), nic_flow),
        reader("profile-account", 6_000, || folder("tests/fuzz/seeds/profile-account"), profile_account),
        reader("window-mark", 6_000, || folder("tests/fuzz/seeds/window-mark"), window_mark),
        reader("torch-failure", 6_000, || folder("tests/fuzz/seeds/torch-failure"), torch_failure),
        reader("stderr-blame", 6_000, || folder("tests/fuzz/seeds/stderr-blame"), stderr_blame),
        reader("probe-answer", 6_000, || folder("tests/fuzz/seeds/probe-answer"), probe_answer),
        reader("slurm-node", 6_000, || folder("tests/fuzz/seeds/slurm-node"), slurm_node),
        reader("slurm-queue", 3_000, || folder("tests/fuzz/seeds/slurm-queue"), slurm_queue),
        reader("discover", 3_000, || folder("tests/fuzz/seeds/discover"), discover_slurm),
        reader("kubernetes-nodes", 6_000, || folder("tests/fuzz/seeds/kubernetes-nodes"), kubernetes_nodes),
        reader(
            "kubernetes-discover",
            6_000,
            || folder("tests/fuzz/seeds/kubernetes-discover"),
            |bytes| or_refused(discover::kubernetes::read(bytes)),
        ),
        reader("pods", 6_000, pods_of_a_run, |bytes| or_refused(read_pods(bytes))),
        reader("field-kit", 6_000, || folder("tests/fuzz/seeds/field-kit"), field_kit_of_a_node),
        reader("topology", 6_000, || folder("tests/fuzz/seeds/topology"), topology),
        reader("excerpt", 6_000, || folder("tests/fuzz/seeds/excerpt"), excerpt),
        reader("manifest", 3_000, || folder("tests/lint/manifests/good"), manifest),
        reader("suite", 600, suites, suite),
        reader("inventory", 1_000, || folder("inventory"), inventory),
        reader("instance", 600, || folder("inventory/instances"), instance),
        reader("baseline", 600, || shortened("baselines"), baseline),
        reader("pack", 600, || shortened("baselines"), pack),
        reader("store-manifest", 6_000, || folder("tests/fuzz/seeds/store-manifest"), store_manifest),
        reader("store-listing", 6_000, || folder("tests/fuzz/seeds/store-listing"), store_listing),
        reader("recipe-sql", 6_000, || folder("tests/fuzz/seeds/recipe-sql"), recipe_sql),
    ]
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The files of a folder, by name.
pub(crate) fn folder(path: &str) -> Seeds {
    let entries = std::fs::read_dir(root().join(path)).expect("a folder of seeds");
    let files = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    let mut seeds: Seeds = files
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a seed"))
        })
        .collect();
    seeds.sort();
    seeds
}

/// One of them names a recipe of the project, which no reader of a suite alone knows.
fn suites() -> Seeds {
    folder("suites").into_iter().filter(|(name, _)| name != "evidence-p5.toml").collect()
}

/// Published baselines are long: their first entries do.
fn shortened(path: &str) -> Seeds {
    let cut = |(name, bytes): (String, Vec<u8>)| {
        let text = String::from_utf8(bytes).expect("text");
        let end = text.match_indices("\n[[").nth(4).map_or(text.len(), |(at, _)| at + 1);
        (name, text.as_bytes()[..end].to_vec())
    };
    folder(path).into_iter().map(cut).collect()
}

/// Equal where two values are printed the same way.
fn figures_of(value: &impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{value:?}").hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn clean(value: &impl std::fmt::Debug) -> Read {
    Read::Clean { figures: figures_of(value) }
}

fn or_refused<T: std::fmt::Debug, E>(read: Result<T, E>) -> Read {
    read.map_or(Read::Refused, |value| clean(&value))
}

fn nccl_tests(bytes: &[u8]) -> Read {
    let Ok(read) = nccl_tests::read(bytes, "x") else { return Read::Refused };
    let disagreeing = read
        .runs
        .iter()
        .any(|run| !nccl_tests::recompute(run, None).is_empty() || !nccl_tests::closing(run).is_empty());
    if !read.findings.is_empty() || disagreeing || read.runs.iter().any(|run| run.failure.is_some()) {
        return Read::Findings;
    }
    let contradicts = |run| figures::contradiction(run).or_else(|| figures::average(run));
    match read.runs.iter().find_map(contradicts) {
        Some(why) => Read::Contradicts(why),
        None => clean(&read.runs.iter().map(|run| (&run.rows, run.average_busbw_gb_s)).collect::<Vec<_>>()),
    }
}

fn nccl_log(bytes: &[u8]) -> Read {
    let Ok(log) = nccl_debug::read(bytes, "x", &nccl_debug::EDGES) else { return Read::Refused };
    if log.findings.is_empty() { clean(&log) } else { Read::Findings }
}

/// The five scripts print what they take out of a log, and gather no line that is none.
fn nccl_script(bytes: &[u8]) -> Read {
    const SCRIPTS: [Script; 5] =
        [Script::SeparateSteps, Script::Comm, Script::PerOp, Script::Histogram, Script::Aggregate];
    let mut printed: Vec<u8> = Vec::new();
    for script in SCRIPTS {
        let mut compat = Compat::new(script);
        compat.read(bytes, &mut printed).expect("a reader in memory");
        if compat.finish(&mut printed).is_err() {
            return Read::Refused;
        }
    }
    if printed.is_empty() { Read::Refused } else { clean(&printed) }
}

fn training_log(bytes: &[u8]) -> Read {
    let Ok(log) = training_log::read(bytes) else { return Read::Refused };
    match log.findings.is_empty() && log.garbled == 0 {
        true if log.series.is_empty() => Read::Refused,
        true => figures::training(&log).map_or_else(|| clean(&log.series), Read::Contradicts),
        false => Read::Findings,
    }
}

fn node_output(bytes: &[u8]) -> Read {
    let read = node_tools::output::read(&String::from_utf8_lossy(bytes));
    let is_bad =
        |output: &node_tools::output::NodeOutput| !output.failures.is_empty() || !output.findings.is_empty();
    if read.as_ref().is_ok_and(|outputs| outputs.iter().any(is_bad)) {
        Read::Findings
    } else {
        or_refused(read)
    }
}

fn dcgm(bytes: &[u8]) -> Read {
    or_refused(node_tools::dcgm::read(&String::from_utf8_lossy(bytes)))
}

fn nvbandwidth(bytes: &[u8]) -> Read {
    let read = node_tools::nvbandwidth::read(&String::from_utf8_lossy(bytes));
    let has_gap =
        |read: &node_tools::nvbandwidth::Bandwidths| read.tests.iter().any(|test| test.rates.is_err());
    if read.as_ref().is_ok_and(has_gap) { Read::Findings } else { or_refused(read) }
}

fn gpu_burn(bytes: &[u8]) -> Read {
    or_refused(node_tools::gpu_burn::read(bytes).expect("a reader in memory"))
}

fn gpu_state(bytes: &[u8]) -> Read {
    or_refused(node_tools::gpu_state::read(bytes).expect("a reader in memory"))
}

fn stream(bytes: &[u8]) -> Read {
    let text = String::from_utf8_lossy(bytes);
    match node_tools::stream::read(&text) {
        Ok(read) if read.valid => figures::stream(&text).map_or_else(|| clean(&read), Read::Contradicts),
        read => or_refused(read),
    }
}

fn fio(bytes: &[u8]) -> Read {
    or_refused(node_tools::fio::read(&String::from_utf8_lossy(bytes)))
}

fn stress_ng(bytes: &[u8]) -> Read {
    or_refused(node_tools::stress::read(&String::from_utf8_lossy(bytes)))
}

fn iperf3(bytes: &[u8]) -> Read {
    or_refused(node_tools::iperf3::read(&String::from_utf8_lossy(bytes)))
}

fn gpu_allocation(bytes: &[u8]) -> Read {
    or_refused(node_tools::gpu_allocation::read(&String::from_utf8_lossy(bytes)))
}

fn nic_latency(bytes: &[u8]) -> Read {
    or_refused(node_tools::pingpong::read(&String::from_utf8_lossy(bytes)))
}

fn mpi_log(bytes: &[u8]) -> Read {
    let mut reader = mpi_log::Reader::new(&nccl_debug::EDGES);
    if reader.read(bytes, "x").is_err() {
        return Read::Refused;
    }
    let log = reader.finish();
    if log.findings.is_empty() && log.garbled == 0 { clean(&log) } else { Read::Findings }
}

fn ras_report(bytes: &[u8]) -> Read {
    let mut reader = ras::Reader::default();
    if reader.read(bytes, "x").is_err() {
        return Read::Refused;
    }
    let log = reader.finish();
    if log.findings.is_empty() { clean(&log) } else { Read::Findings }
}

fn inspector_gathered(bytes: &[u8]) -> Read {
    let Ok(Some(read)) = inspector::gathered::read(bytes) else { return Read::Refused };
    match read.log.findings.is_empty() && read.is_complete && read.cut.is_empty() {
        true => figures::inspector(&read.log)
            .map_or_else(|| clean(&(&read.log.members, &read.log.series)), Read::Contradicts),
        false => Read::Findings,
    }
}

fn inspector(bytes: &[u8]) -> Read {
    let mut reader = inspector::Reader::default();
    if reader.read(bytes, "x").is_err() {
        return Read::Refused;
    }
    let log = reader.finish();
    match log.findings.is_empty() {
        true if log.records == 0 && log.gauges.is_empty() => Read::Refused,
        true => figures::inspector(&log)
            .map_or_else(|| clean(&(&log.members, &log.series, &log.gauges)), Read::Contradicts),
        false => Read::Findings,
    }
}

/// As `observe` takes the lines of a file, with what it keeps written and read in between.
fn inspector_followed(bytes: &[u8]) -> Read {
    let text = String::from_utf8_lossy(bytes);
    let (mut lines, mut observer, mut is_damaged) = (FileLines::default(), Observer::new(10), false);
    for line in text.lines() {
        match lines.take(ParsedLine::parse(line)) {
            Line::Call(call) => observer.take(&call),
            Line::Damaged => is_damaged = true,
            Line::Other | Line::Foreign => {}
        }
        let kept = serde_json::to_string(&lines).expect("JSON");
        lines = serde_json::from_str(&kept).expect("the same");
    }
    observer.advance();
    let kept = serde_json::to_string(&observer).expect("JSON");
    let mut observer: Observer = serde_json::from_str(&kept).expect("the same");
    assert!(observer.restore(), "what was kept contradicts itself");
    let coverage = observer.coverage();
    match (coverage.records, is_damaged) {
        (0, _) => Read::Refused,
        (_, true) => Read::Findings,
        (_, false) => clean(&coverage),
    }
}

fn efa_capture(bytes: &[u8]) -> Read {
    match efa_counters::read(bytes, "x") {
        Err(_) => Read::Refused,
        Ok(capture) if capture.end.is_none() || !capture.bad.is_empty() || !capture.missing.is_empty() => {
            Read::Findings
        }
        Ok(capture) => clean(&capture),
    }
}

fn efa_totals(bytes: &[u8]) -> Read {
    or_refused(efa_counters::read_totals(bytes, "x"))
}

fn nic_flow(bytes: &[u8]) -> Read {
    or_refused(flow_log::read(bytes, "x"))
}

/// What an account names is fetched, and removed from the node: no damage may make it name what is elsewhere.
fn profile_account(bytes: &[u8]) -> Read {
    let Ok(account) = account::read(&String::from_utf8_lossy(bytes)) else { return Read::Refused };
    let is_elsewhere = |name: &str| {
        let has_end = [".nsys-rep", ".parquet", ".arrows", ".sqlite"].iter().any(|end| name.ends_with(end));
        let mut parts = name.split('/');
        !has_end || parts.any(|part| matches!(part, "" | "." | "..")) || name.chars().any(char::is_control)
    };
    let mut files = account.report.iter().chain(&account.tables);
    match files.find(|file| is_elsewhere(&file.name)) {
        Some(file) => Read::Contradicts(format!("an account names {:?}", file.name)),
        None if !account.complete => Read::Findings,
        None => clean(&account),
    }
}

fn window_mark(bytes: &[u8]) -> Read {
    or_refused(mark::read(&String::from_utf8_lossy(bytes)))
}

fn torch_failure(bytes: &[u8]) -> Read {
    let mut reader = torch_failure::Reader::default();
    String::from_utf8_lossy(bytes).lines().zip(1..).for_each(|(text, line)| reader.line(text, line));
    match reader.finish() {
        account if account == Account::default() => Read::Refused,
        account => clean(&account),
    }
}

/// Whatever the text says, only a node of the job is blamed.
fn stderr_blame(bytes: &[u8]) -> Read {
    let nodes = ["p5-001", "p5-002"].map(str::to_owned);
    let mut blame = Blame::new(&nodes);
    blame.read(bytes, None);
    match blame.failure() {
        None => Read::Refused,
        Some(failure) if failure.node.as_ref().is_some_and(|node| !nodes.contains(node)) => {
            Read::Contradicts(format!("a stranger is blamed: {failure:?}"))
        }
        Some(failure) => clean(&failure),
    }
}

fn probe_answer(bytes: &[u8]) -> Read {
    match answer::read(&String::from_utf8_lossy(bytes)) {
        Err(_) => Read::Refused,
        Ok(answer) if !answer.broken.is_empty() => Read::Findings,
        Ok(answer) => clean(&answer),
    }
}

fn slurm_node(bytes: &[u8]) -> Read {
    or_refused(NodeState::read(&String::from_utf8_lossy(bytes)))
}

fn kubernetes_nodes(bytes: &[u8]) -> Read {
    or_refused(drain::read_nodes(bytes))
}

/// A queue that prints these bytes, whatever it is asked.
struct Prints(Vec<u8>);

impl Reach for Prints {
    fn exec<'a>(&'a self, _: &'a Host, _: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async { Ok(Answer::ok(self.0.clone())) })
    }

    fn put<'a>(&'a self, _: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async { Ok(()) })
    }

    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { Err(ReachError::NotFound { path: path.to_owned() }) })
    }
}

fn slurm_queue(bytes: &[u8]) -> Read {
    let reach = Prints(bytes.to_vec());
    let arrays = Arrays { reach: &reach, host: &Host::Here, options: Vec::new(), script: "/s".to_owned() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let polled = runtime.block_on(arrays.poll(&BTreeSet::from(["7".to_owned()])));
    // A line that says nothing is left out, and asked for again.
    let lines = String::from_utf8_lossy(bytes).lines().filter(|line| !line.trim().is_empty()).count();
    match polled {
        Ok(tasks) if tasks.len() < lines => Read::Findings,
        polled => or_refused(polled),
    }
}

/// A cluster whose commands print the parts of a text, each behind a line with the beginning of its command.
struct Commands(Vec<(String, String)>);

impl Commands {
    fn new(text: &str) -> Commands {
        let mut parts: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            match (line.strip_prefix("== "), parts.last_mut()) {
                (Some(command), _) => parts.push((command.trim_end().to_owned(), String::new())),
                (None, Some((_, printed))) => printed.push_str(line),
                (None, None) => {}
            }
        }
        Commands(parts)
    }
}

impl Reach for Commands {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        let line = command.argv.join(" ");
        let printed = self.0.iter().find(|(begin, _)| line.starts_with(begin));
        let printed = printed.map_or_else(String::new, |(_, printed)| printed.clone());
        Box::pin(async move { Ok(Answer::ok(printed)) })
    }

    fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        panic!("{path} is written on a cluster that is only looked at")
    }

    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        panic!("{path} is read on a cluster that is only asked")
    }
}

fn discover_slurm(bytes: &[u8]) -> Read {
    let commands = Commands::new(&String::from_utf8_lossy(bytes));
    let request = discover::Request {
        partition: "gpu".to_owned(),
        instance: Some("p5.48xlarge".to_owned()),
        ..discover::Request::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    or_refused(runtime.block_on(discover::discover(&commands, &request, &INSTANCES)))
}

fn pods_of_a_run() -> Seeds {
    let file = "harness/cluster/src/reach/pods/pods.json";
    vec![("pods.json".to_owned(), std::fs::read(root().join(file)).expect("a seed"))]
}

/// Where a field kit looks in the tests.
static PARALLEL_CLUSTER: LazyLock<Inventory> = LazyLock::new(|| {
    let file = "inventory/parallelcluster.toml";
    let text = std::fs::read_to_string(root().join(file)).expect("an inventory that ships");
    Inventory::read(&text, file, &INSTANCES).expect("an inventory")
});

/// What a node printed, and whether it is what the harness assumes.
fn field_kit_of_a_node(bytes: &[u8]) -> Read {
    let Ok(sections) = field_kit::read_sections(&String::from_utf8_lossy(bytes)) else {
        return Read::Refused;
    };
    let nodes = vec![NodeEvidence { node: "gpu-st-p5-1".to_owned(), sections: Ok(sections) }];
    let inventory: &Inventory = &PARALLEL_CLUSTER;
    let evidence = Evidence { inventory, here: BTreeMap::new(), nodes, probe: None };
    clean(&field_kit::check(&evidence))
}

fn topology(bytes: &[u8]) -> Read {
    let wanted = TopologyFile { file: "x".to_owned(), instances: BTreeMap::new() };
    let nodes = ["n1", "n2", "n3", "n4"].map(str::to_owned);
    or_refused(Topology::read(&String::from_utf8_lossy(bytes), &wanted, &nodes))
}

fn excerpt(bytes: &[u8]) -> Read {
    or_refused(recipes::excerpt::read(bytes))
}

fn manifest(bytes: &[u8]) -> Read {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let linted = harness::lint::manifests(&[Source { name: "x.yaml".to_owned(), text }]);
    let is_refused = linted.diagnostics.iter().any(|diagnostic| diagnostic.message.ends_with("[yaml]"));
    match linted.diagnostics.len() + linted.warnings.len() + linted.notes.len() {
        0 => clean(&()),
        _ if is_refused => Read::Refused,
        _ => Read::Findings,
    }
}

/// The shipped profiles: an inventory names one of them.
static INSTANCES: LazyLock<Instances> =
    LazyLock::new(|| Instances::load(root()).expect("the profiles that ship"));

fn suite(bytes: &[u8]) -> Read {
    let find = |name: &str| {
        let file = format!("suites/{name}.toml");
        let text = std::fs::read_to_string(root().join(&file)).ok()?;
        Some((file, text))
    };
    or_refused(Suite::read_with(
        &String::from_utf8_lossy(bytes),
        "suites/x.toml",
        &find,
        &Catalogue::built_in(),
    ))
}

fn inventory(bytes: &[u8]) -> Read {
    or_refused(Inventory::read(&String::from_utf8_lossy(bytes), "inventory/x.toml", &INSTANCES))
}

fn instance(bytes: &[u8]) -> Read {
    let file = ("inventory/instances/x.toml".to_owned(), String::from_utf8_lossy(bytes).into_owned());
    // One that is like another stands beside it.
    let others = folder("inventory/instances").into_iter().map(|(name, bytes)| {
        (format!("inventory/instances/{name}"), String::from_utf8_lossy(&bytes).into_owned())
    });
    let (read, diagnostics) = Instances::read(&std::iter::once(file).chain(others).collect::<Vec<_>>());
    if diagnostics.is_empty() { clean(&read) } else { Read::Refused }
}

fn baseline(bytes: &[u8]) -> Read {
    or_refused(Baselines::read(&String::from_utf8_lossy(bytes), "baselines/x.toml", &Catalogue::built_in()))
}

/// Signed as it is: what a site signs may be anything. With a byte more it is not what was signed.
fn pack(bytes: &[u8]) -> Read {
    let text = String::from_utf8_lossy(bytes);
    let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (public, signature) = (hex(key.public_key().as_ref()), hex(key.sign(text.as_bytes()).as_ref()));
    let signed = format!("{text}# signature: ed25519 {public} {signature}\n");
    let home = Home::bare(root());
    match read_pack(&home, &format!("\n{signed}")) {
        Ok(_) => Read::Contradicts("a pack that was edited is read".to_owned()),
        Err(_) => or_refused(read_pack(&home, &signed)),
    }
}

/// Files are made by these paths: none may lead out of the folder, and no two may be one.
fn paths_are_safe(read: Result<Vec<String>, String>) -> Read {
    let Ok(paths) = read else { return Read::Refused };
    let is_elsewhere = |path: &String| {
        let mut names = path.split('/');
        names.any(|name| matches!(name, "" | "." | "..")) || path.chars().any(char::is_control)
    };
    let different: BTreeSet<&String> = paths.iter().collect();
    match paths.iter().find(|path| is_elsewhere(path)) {
        Some(path) => Read::Contradicts(format!("a file is made at {path:?}")),
        None if different.len() < paths.len() => Read::Contradicts("a file is made twice".to_owned()),
        None => clean(&paths),
    }
}

fn store_manifest(bytes: &[u8]) -> Read {
    paths_are_safe(manifest_paths(bytes))
}

/// The name of a prefix, and in each further line the size of an object and its key.
fn store_listing(bytes: &[u8]) -> Read {
    let text = String::from_utf8_lossy(bytes);
    let (name, objects) = text.split_once('\n').unwrap_or((&*text, ""));
    let objects = objects.lines().filter_map(|line| line.split_once(' '));
    let objects = objects.map(|(size, key)| (key.to_owned(), size.parse().unwrap_or(0))).collect();
    paths_are_safe(readable_paths(name, objects))
}

fn recipe_sql(bytes: &[u8]) -> Read {
    or_refused(recipes::own::parse(&String::from_utf8_lossy(bytes)).map(|parsed| parsed.render()))
}
