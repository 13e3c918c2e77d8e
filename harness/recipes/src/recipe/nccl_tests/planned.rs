//! What a run of nccl-tests printed, compared with its plan and with itself: options, rows, ranks, hosts, GPUs, closing
//! lines. Only what is printed is compared, for old versions print less; what every version prints must be there.

use super::super::{InputFile, JobInput, Workload};
use super::{OTHER_SWEEP, WRONG_RANKS};
use logs::nccl_tests::{self as source, Format, NcclRun, RankLine, Row};
use metric::SweepFacts;
use std::collections::{BTreeMap, BTreeSet};

/// The cause and the reason of each contradiction; any of them keeps the job's numbers from being judged.
pub(super) fn contradictions(
    run: &NcclRun,
    job: &JobInput,
    file: &InputFile,
    ranks: Option<u32>,
) -> Vec<(&'static str, String)> {
    let Workload::NcclTests { checked, by_torch, sweep, .. } = &job.workload else { return Vec::new() };
    // JSON has neither headings nor all ranks.
    let is_text = !matches!(run.format, Format::Json { .. });
    let nodes: Vec<&str> = match &file.node {
        Some(node) if file.part.is_some() => vec![node.as_str()],
        _ => job.nodes.iter().map(String::as_str).collect(),
    };
    let sweep = sweep.as_ref();
    let of_plan = sweep.and_then(|sweep| options(run, sweep, *checked).or_else(|| other_rows(run, sweep)));
    let found = [
        is_text.then(|| lines(run)).flatten().map(|why| ("garbled", why)),
        of_plan.or_else(|| sweep.and_then(|sweep| other_gpu(run, sweep))).map(|why| (OTHER_SWEEP, why)),
        run.rows.iter().find_map(|row| count(row, ranks)).map(|why| ("garbled", why)),
        is_text.then(|| rank_list(run, ranks)).flatten().map(|why| (WRONG_RANKS, why)),
        hosts(run, &nodes, &job.host_names, is_text).map(|why| (WRONG_RANKS, why)),
        apart(run).map(|why| (WRONG_RANKS, why)),
        elsewhere(run, &nodes, job).map(|why| (WRONG_RANKS, why)),
        (is_text && !by_torch).then(|| gpus(run, nodes.len())).flatten().map(|why| (WRONG_RANKS, why)),
    ];
    found.into_iter().flatten().collect()
}

/// Lines that every version prints around a table.
fn lines(run: &NcclRun) -> Option<String> {
    let why = if run.format == Format::BareText {
        "rows without headings: which column is which is unknown"
    } else if run.parameters.is_none() {
        "the line with the options is missing: `# nThread ...`"
    } else if !run.concluded {
        // Reported as such.
        return None;
    } else if run.out_of_bounds.is_none() {
        "the closing line is missing: `# Out of bounds values`"
    } else if run.average_busbw_gb_s.is_none() {
        "the closing line is missing or not a number: `# Avg bus bandwidth`"
    } else if run.has_start && !run.has_end {
        "it starts with `Collective test starting` and has no `Collective test concluded`"
    } else {
        return None;
    };
    Some(why.to_owned())
}

fn options(run: &NcclRun, planned: &SweepFacts, checked: bool) -> Option<String> {
    let printed = run.parameters.as_ref()?;
    let table = [
        ("iters", printed.iterations, planned.iterations),
        ("warmup iters", printed.warmup, planned.warmup),
        ("agg iters", printed.agg_iterations, 1),
        ("graph", printed.graph, 0),
        ("validation", printed.validation.map(|checks| checks.min(1)), u64::from(checked)),
    ];
    table.into_iter().find_map(|(name, printed, planned)| {
        let printed = printed.filter(|printed| *printed != planned)?;
        Some(format!("ran with `{name}: {printed}`, planned {planned}"))
    })
}

fn other_rows(run: &NcclRun, planned: &SweepFacts) -> Option<String> {
    run.rows.iter().find_map(|row| {
        let (printed, wanted) = if type_of(&row.dtype) != type_of(&planned.dtype) {
            (format!("type {}", row.dtype), planned.dtype.clone())
        } else if row.redop.is_some() && row.redop != planned.redop {
            (
                format!("redop {}", row.redop.as_deref().unwrap_or_default()),
                planned.redop.clone().unwrap_or_else(|| "none".to_owned()),
            )
        } else if row.root.is_some() && row.root != planned.root.map(i64::from) {
            let wanted = planned.root.map_or(-1, i64::from);
            (format!("root {}", row.root.unwrap_or_default()), wanted.to_string())
        } else {
            return None;
        };
        Some(format!("line {}: {printed}, planned {wanted}", row.line))
    })
}

/// One name for a type, of those that versions of nccl-tests have.
fn type_of(name: &str) -> String {
    match name {
        "float16" => "half".to_owned(),
        "float32" => "float".to_owned(),
        "char" => "int8".to_owned(),
        "int" => "int32".to_owned(),
        name => name.replace('_', "").replace("fp8", "f8"),
    }
}

/// The size holds the elements once, or once for each rank.
fn count(row: &Row, ranks: Option<u32>) -> Option<String> {
    let bytes = row.count.saturating_mul(source::element_bytes(&row.dtype)?);
    let is_whole = match bytes {
        0 => row.size_bytes == 0,
        bytes => row.size_bytes.is_multiple_of(bytes),
    };
    let times = row.size_bytes.checked_div(bytes).unwrap_or(1);
    let fits = is_whole && ranks.is_none_or(|ranks| times == 1 || times == u64::from(ranks));
    (!fits).then(|| {
        let Row { line, size_bytes, count, dtype, .. } = row;
        format!("line {line}: size {size_bytes} does not hold {count} elements of type {dtype}")
    })
}

/// Models of GPUs whose names are words of what the driver calls them.
const MODELS: [&str; 12] =
    ["A100", "A10G", "B200", "B300", "GB200", "GB300", "H100", "H200", "L4", "L40S", "T4", "V100"];

fn other_gpu(run: &NcclRun, planned: &SweepFacts) -> Option<String> {
    let model = |name: &str| {
        let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
        words.find_map(|word| MODELS.iter().find(|model| **model == word))
    };
    let wanted = model(&planned.gpu)?;
    let other = run.ranks.iter().find(|rank| model(&rank.name).is_some_and(|model| model != wanted))?;
    Some(format!("rank {} ran on `{}`, the instance has {}", other.rank, other.name, planned.gpu))
}

/// Each rank of the job once.
fn rank_list(run: &NcclRun, ranks: Option<u32>) -> Option<String> {
    let listed = run.ranks.len();
    if listed == 0 {
        return Some("no rank is listed under `Using devices`: who took part is unknown".to_owned());
    }
    if let Some(ranks) = ranks.filter(|ranks| listed > *ranks as usize) {
        return Some(format!("ranks listed: {listed}, declared: {ranks}"));
    }
    let numbers: BTreeSet<u32> = run.ranks.iter().map(|rank| rank.rank).collect();
    let missing = (0..listed as u32).find(|rank| !numbers.contains(rank))?;
    Some(format!("ranks listed: {listed}, and rank {missing} is not among them"))
}

/// Hosts call themselves by their short names, by those of their pods, or by aliases. Where the probe found out how, they must
/// be called so; elsewhere names that are not known say nothing, unless other hosts of the job are called as its nodes are.
fn hosts(run: &NcclRun, nodes: &[&str], names: &HostNames, is_text: bool) -> Option<String> {
    let mut ranks_of: BTreeMap<&str, usize> = BTreeMap::new();
    run.ranks.iter().for_each(|rank| *ranks_of.entry(rank.host.as_str()).or_default() += 1);
    let listed = || ranks_of.keys().copied().collect::<Vec<_>>().join(", ");
    if ranks_of.len() > nodes.len() {
        return Some(format!("ranks ran on {}, nodes of the job: {}", listed(), nodes.join(", ")));
    }
    let distinct: BTreeSet<&str> = nodes.iter().map(|node| short(node)).collect();
    let named: BTreeSet<&str> =
        nodes.iter().map(|node| short(names.get(*node).map_or(*node, String::as_str))).collect();
    if is_text && !ranks_of.is_empty() && ranks_of.len() < distinct.len().max(named.len()) {
        return Some(format!("all ranks ran on {}, nodes of the job: {}", listed(), nodes.join(", ")));
    }
    let (probed, unprobed): (Vec<&str>, Vec<&str>) =
        nodes.iter().copied().partition(|node| names.contains_key(*node));
    let others: Vec<&str> = ranks_of
        .keys()
        .copied()
        .filter(|host| !probed.iter().any(|node| is_called(host, node, names)))
        .collect();
    let (known, unknown): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|host| unprobed.iter().any(|node| is_called(host, node, names)));
    let rest = || unprobed.iter().filter(|node| !known.iter().any(|host| is_called(host, node, names)));
    let is_other =
        (!known.is_empty() && !rest().any(|node| is_address(node))) || unknown.len() > rest().count();
    if let Some(other) = unknown.first().filter(|_| is_other) {
        let nodes: Vec<String> = nodes.iter().map(|node| with_host_name(node, names)).collect();
        return Some(format!("a rank ran on {other}, nodes of the job: {}", nodes.join(", ")));
    }
    let (least, most) = (ranks_of.values().min()?, ranks_of.values().max()?);
    (is_text && ranks_of.len() == nodes.len() && least != most)
        .then(|| format!("{least} ranks ran on one host and {most} on another: {}", listed()))
}

/// Ranks are numbered node by node. Where they are dealt out in turns, neighbours exchange through NICs what goes over NVLink
/// elsewhere, and the halves of a split job are other nodes than planned.
fn apart(run: &NcclRun) -> Option<String> {
    let hosts: BTreeMap<u32, &str> = run.ranks.iter().map(|rank| (rank.rank, rank.host.as_str())).collect();
    let (mut seen, mut last) = (BTreeSet::new(), None);
    for (rank, host) in hosts {
        if last != Some(host) && !seen.insert(host) {
            return Some(format!("rank {rank} ran on {host}: ranks are not numbered node by node"));
        }
        last = Some(host);
    }
    None
}

/// By node.
type HostNames = BTreeMap<String, String>;

/// Programs may take a node's own name for that of its host, unless another host is called so.
fn is_called(host: &str, node: &str, names: &HostNames) -> bool {
    let is_name = |name: &str| host == name || short(host) == short(name);
    match names.get(node) {
        Some(name) => is_name(name) || (is_name(node) && !names.values().any(|name| is_name(name))),
        None => is_name(node),
    }
}

/// `h2 (host name ip-10-0-3-7)`, where its host is called otherwise.
fn with_host_name(node: &str, names: &HostNames) -> String {
    match names.get(node).filter(|name| short(name) != short(node)) {
        Some(name) => format!("{node} (host name {name})"),
        None => node.to_owned(),
    }
}

/// A GPU where the probe found none of NVIDIA's devices on that node.
fn elsewhere(run: &NcclRun, nodes: &[&str], job: &JobInput) -> Option<String> {
    run.ranks.iter().find_map(|rank| {
        let gpu = gpu_id(rank)?;
        let node = match nodes {
            [node] => node,
            _ => nodes.iter().find(|node| is_called(&rank.host, node, &job.host_names))?,
        };
        let places = job.gpu_places.get(*node)?;
        let is_there = places.iter().any(|place| place.eq_ignore_ascii_case(gpu));
        (!is_there)
            .then(|| format!("rank {} ran on GPU {gpu}, and the probe found none there on {node}", rank.rank))
    })
}

fn short(name: &str) -> &str {
    if is_address(name) { name } else { name.split('.').next().unwrap_or(name) }
}

/// Of version 4 or 6.
fn is_address(name: &str) -> bool {
    name.contains(':') || name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// A GPU takes one rank. Hosts of one name have as many GPUs of one id as there are such hosts.
fn gpus(run: &NcclRun, nodes: usize) -> Option<String> {
    let hosts: BTreeSet<&str> = run.ranks.iter().map(|rank| rank.host.as_str()).collect();
    let alike = nodes.saturating_sub(hosts.len()) + 1;
    let mut ranks_of: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let shared = run.ranks.iter().find(|rank| {
        let Some(gpu) = gpu_id(rank) else { return false };
        let ranks = ranks_of.entry((rank.host.as_str(), gpu)).or_default();
        *ranks += 1;
        *ranks > alike
    })?;
    Some(format!("GPU {} of {} has several ranks: rank {} too", shared.bus_id, shared.host, shared.rank))
}

/// What distinguishes the GPU on its host. Old versions print the bus alone, which several have; parts of one GPU share
/// its id.
pub(super) fn gpu_id(rank: &RankLine) -> Option<&str> {
    (rank.bus_id.matches(':').count() == 2 && !rank.name.contains("MIG")).then_some(rank.bus_id.as_str())
}
