//! One dump: its groups, how far each got, and its entries. Forms of versions 2.x, of pickle and of JSON, which write
//! absent times as nothing and as 0.

use super::tree::{Node, Tree};
use super::{NotUnderstood, pickle};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Beyond this a list of ranks is of no cluster.
const MOST_RANKS: usize = 1 << 20;
/// Of all groups of one rank: some dozens, a few of them with all ranks.
const MOST_MEMBERS: usize = 4 << 20;
/// A ring has 2000, unless somebody wants more.
const MOST_ENTRIES: usize = 1 << 18;

#[derive(Debug)]
pub(super) struct Dump {
    pub version: String,
    pub library: Option<String>,
    /// By name.
    pub groups: BTreeMap<Rc<str>, Group>,
    /// By number of the process, which is no name.
    pub status: BTreeMap<u64, Status>,
    /// In the order of their records.
    pub entries: Vec<Entry>,
    /// Entries without a group or number.
    pub garbled: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    pub desc: Rc<str>,
    pub ranks: Rc<[u64]>,
}

/// The last collective that was enqueued, and the last that completed; -1 is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Status {
    pub enqueued: i64,
    pub completed: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub record: u64,
    pub group: Rc<str>,
    pub pg_id: Option<u64>,
    /// Of the group, one for each collective.
    pub sequence: u64,
    pub op: u64,
    /// Such as `nccl:all_reduce`.
    pub name: Rc<str>,
    pub is_p2p: bool,
    pub created_ns: Option<u64>,
    /// When the watchdog saw that it was done.
    pub completed_ns: Option<u64>,
    /// How long its rank waits for the others.
    pub timeout_ms: Option<u64>,
    pub is_completed: bool,
    /// The watchdog let go of it.
    pub is_retired: bool,
    /// One call of a coalesced batch, which never shows that it is done: the entry that ends the batch does.
    pub is_part: bool,
    /// What all entries of a batch have in common: the number of the collective, or of the send or receive.
    batch: u64,
    pub input: Tensors,
    pub output: Tensors,
}

/// All tensors of one side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tensors {
    /// None where it is not known.
    pub elements: Option<u64>,
    /// Of all of them; none where they are not known or differ.
    pub dtype: Option<Rc<str>>,
}

/// Lists of ranks, which thousands of dumps repeat.
pub(super) type KnownRanks = HashMap<Rc<str>, Rc<[u64]>>;

pub(super) fn read(bytes: &[u8], known: &mut KnownRanks) -> Result<Dump, NotUnderstood> {
    let refuse = |reason: String| NotUnderstood { reason };
    if bytes.is_empty() {
        return Err(refuse("the file is empty: the process was killed before it wrote".to_owned()));
    }
    let tree = if pickle::looks_like_it(bytes) {
        pickle::read(bytes).map_err(refuse)?
    } else {
        json(bytes).map_err(refuse)?
    };
    let dump = dump(tree.root(), known).map_err(refuse)?;
    match tree.is_exhausted() {
        true => Err(refuse("values that stand in more places than any dump has".to_owned())),
        false => Ok(dump),
    }
}

fn json(bytes: &[u8]) -> Result<Tree, String> {
    let text =
        std::str::from_utf8(bytes).ok().map(str::trim_start).filter(|text| text.starts_with(['{', '[']));
    let text = text.ok_or("neither a pickle nor JSON, as PyTorch's flight recorder writes them")?;
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => "truncated JSON".to_owned(),
        // The message of the parser gives a place and never a content.
        false => format!("broken JSON at line {}, column {}", error.line(), error.column()),
    })?;
    let mut tree = Tree::default();
    tree.root = tree.push_json(value).ok_or("too many values")?;
    Ok(tree)
}

fn dump(root: Node<'_>, known: &mut KnownRanks) -> Result<Dump, String> {
    if root.list().is_some() {
        return Err("a bare list: a dump of before version 2.0, which is not read".to_owned());
    }
    let version = root.get("version").and_then(Node::text);
    let major = version.as_deref().and_then(|version| version.split('.').next());
    // PyTorch 2.3 numbers its dumps from 1.1 on, of which the first have no `pg_config`.
    if let (Some("1"), Some(version), Some(_)) = (major, &version, root.get("entries")) {
        return Err(format!("dump of version {version}, known: 2.x, which PyTorch 2.4 and later write"));
    }
    let config = root.get("pg_config").and_then(Node::items);
    let (Some(version), Some(config)) = (version, config) else {
        return Err("no dump of PyTorch's flight recorder: `version` or `pg_config` is absent".to_owned());
    };
    if version.split('.').next() != Some("2") {
        return Err(format!("dump of version {version}, known: 2.x"));
    }
    let library = ["nccl_version", "comm_lib_version"].into_iter().find_map(|key| root.get(key)?.text());
    let (mut groups, mut members) = (BTreeMap::new(), 0);
    for (key, group) in config {
        let name = group.get("name").and_then(Node::text).or_else(|| key.text());
        let Some((name, ranks)) = name.zip(group.get("ranks").and_then(Node::text)) else { continue };
        let desc = group.get("desc").and_then(Node::text).unwrap_or_else(|| "".into());
        let ranks = parse_ranks(&ranks, known)?;
        members += ranks.len();
        if members > MOST_MEMBERS {
            return Err(format!("groups of more than {MOST_MEMBERS} ranks in all"));
        }
        groups.insert(name, Group { desc, ranks });
    }
    let status = root.get("pg_status").and_then(Node::items).into_iter().flatten();
    let status = status.filter_map(|(key, status)| {
        let number = |key: &str| status.get(key).and_then(Node::int);
        let enqueued = number("last_enqueued_collective")?;
        let completed = number("last_completed_collective").unwrap_or(-1);
        Some((key.count()?, Status { enqueued, completed }))
    });
    let status = status.collect();
    let (mut entries, mut garbled) = (Vec::new(), 0);
    for node in root.get("entries").and_then(Node::list).into_iter().flatten() {
        match entry(node) {
            Some(_) if entries.len() >= MOST_ENTRIES => {
                return Err(format!("more than {MOST_ENTRIES} entries"));
            }
            Some(entry) => entries.push(entry),
            None => garbled += 1,
        }
    }
    entries.sort_by_key(|entry: &Entry| entry.record);
    mark_parts(&mut entries);
    name_the_only_group(&mut groups, &entries);
    Ok(Dump {
        version: version.to_string(),
        library: library.map(|it| it.to_string()),
        groups,
        status,
        entries,
        garbled,
    })
}

/// PyTorch gives each call of a batch an entry, and one to the end of the batch behind them, all under one number. Only the
/// last has events: the others stay `scheduled` (`test_allgather_uneven` in its `test_c10d_nccl.py`).
fn mark_parts(entries: &mut [Entry]) {
    let mut open: HashMap<Rc<str>, (bool, u64)> = HashMap::new();
    for entry in entries.iter_mut().rev() {
        let batch = (entry.is_p2p, entry.batch);
        if entry.ends_batch() {
            open.insert(Rc::clone(&entry.group), batch);
        } else if open.get(&entry.group) == Some(&batch) {
            entry.is_part = true;
        } else {
            open.remove(&entry.group);
        }
    }
}

impl Entry {
    /// `nccl:coalesced`, `nccl:ALLGATHER_coalesced`.
    pub(super) fn ends_batch(&self) -> bool {
        self.name.ends_with("coalesced")
    }
}

/// gloo lists all groups under an empty name, so that one is left. Where all entries are of one group, it is that.
fn name_the_only_group(groups: &mut BTreeMap<Rc<str>, Group>, entries: &[Entry]) {
    let Some(first) = entries.first() else { return };
    let is_one = groups.len() == 1 && entries.iter().all(|entry| entry.group == first.group);
    if is_one && let Some(unnamed) = groups.remove("") {
        groups.insert(Rc::clone(&first.group), unnamed);
    }
}

/// `[0, 1]`, which is a text and is never evaluated.
fn parse_ranks(text: &Rc<str>, known: &mut KnownRanks) -> Result<Rc<[u64]>, String> {
    if let Some(ranks) = known.get(text) {
        return Ok(Rc::clone(ranks));
    }
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let numbers = inner.into_iter().flat_map(|inner| inner.split(',')).map(str::trim);
    let mut ranks = Vec::new();
    for number in numbers.filter(|number| !number.is_empty()) {
        let number = number.parse().map_err(|_| "`ranks` of a group is no list of numbers".to_owned())?;
        ranks.push(number);
        if ranks.len() > MOST_RANKS {
            return Err(format!("a group of more than {MOST_RANKS} ranks"));
        }
    }
    if inner.is_none() {
        return Err("`ranks` of a group is no list of numbers".to_owned());
    }
    let ranks: Rc<[u64]> = ranks.into();
    known.insert(Rc::clone(text), Rc::clone(&ranks));
    Ok(ranks)
}

fn entry(node: Node<'_>) -> Option<Entry> {
    let number = |key: &str| node.get(key).and_then(Node::count);
    let flag = |key: &str| node.get(key).and_then(Node::bool);
    let group = node.get("process_group")?.list()?.next()?.text()?;
    let name = node.get("profiling_name")?.text()?;
    let state = node.get("state").and_then(Node::text);
    // Of what is not there, JSON says 0.
    let completed_ns = number("time_discovered_completed_ns").filter(|ns| *ns > 0);
    let is_p2p = flag("is_p2p").unwrap_or_else(|| is_p2p(&name));
    let sequence = number("collective_seq_id")?;
    Some(Entry {
        record: number("record_id")?,
        group,
        pg_id: number("pg_id"),
        sequence,
        op: number("op_id").unwrap_or_default(),
        name,
        is_p2p,
        created_ns: number("time_created_ns").filter(|ns| *ns > 0),
        completed_ns,
        timeout_ms: number("timeout_ms").filter(|ms| *ms > 0),
        is_completed: state.as_deref() == Some("completed") || completed_ns.is_some(),
        is_retired: flag("retired") == Some(true),
        is_part: false,
        batch: number("p2p_seq_id").filter(|_| is_p2p).unwrap_or(sequence),
        input: tensors(node, "input_sizes", "input_dtypes"),
        output: tensors(node, "output_sizes", "output_dtypes"),
    })
}

fn is_p2p(name: &str) -> bool {
    let operation = name.split_once(':').map_or(name, |(_, operation)| operation);
    operation.starts_with("send ") || operation.starts_with("recv ")
}

fn tensors(node: Node<'_>, sizes: &str, dtypes: &str) -> Tensors {
    let elements = |shape: Node<'_>| {
        let mut dimensions = shape.list()?.map(Node::count);
        dimensions.try_fold(1_u64, |product, dimension| product.checked_mul(dimension?))
    };
    let sizes = node.get(sizes).and_then(Node::list);
    let elements =
        sizes.and_then(|mut sizes| sizes.try_fold(0_u64, |sum, shape| sum.checked_add(elements(shape)?)));
    let mut dtypes = node.get(dtypes).and_then(Node::list).into_iter().flatten().map(Node::text);
    let first = dtypes.next().flatten();
    let dtype = first.filter(|first| dtypes.all(|dtype| dtype.as_ref() == Some(first)));
    Tensors { elements, dtype }
}
