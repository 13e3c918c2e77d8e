//! What stands before a line of a program: labels of ranks, pods and services, and time stamps, in any order.

use super::{stamps, tags};

/// How many prefixes may stand before one another: a collector's time, a pod's name, a rank, a logger's level.
const DEPTH: usize = 6;
/// Longer labels are none.
const LONGEST: usize = 128;
/// How torchtitan's logger calls itself before the time of its lines: no rank, and no node.
const LOGGER: &str = "titan";
/// The levels of Python's logging, which are no ranks either.
const LEVELS: [&str; 5] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/// All prefixes of a line.
#[derive(Debug, Default, PartialEq)]
pub(in super::super) struct Front<'a> {
    /// The labels, from the outermost on.
    pub tag: String,
    /// Where the program's own text begins.
    pub length: usize,
    pub first_stamp: Option<&'a str>,
    /// The time stamp that the program's own text follows at once.
    pub last_stamp: Option<&'a str>,
    pub numbers: Numbers,
}

/// What the labels of launchers number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Numbers {
    /// `[rank3]:` of PyTorch: among all ranks of the job.
    pub rank: Option<u64>,
    /// `[default3]:` of torchrun: among those of one node.
    pub local_rank: Option<u64>,
    /// `3: ` of srun, `[1,3]<stdout>:` of mpirun: a rank, or a node where each task starts the ranks of one.
    pub task: Option<u64>,
}

struct Prefix<'a> {
    tag: &'a str,
    length: usize,
    is_stamp: bool,
    numbers: Numbers,
}

impl<'a> Prefix<'a> {
    fn label(tag: &'a str, length: usize) -> Prefix<'a> {
        Prefix { tag, length, is_stamp: false, numbers: Numbers::default() }
    }

    fn stamp(length: usize) -> Prefix<'a> {
        Prefix { tag: "", length, is_stamp: true, numbers: Numbers::default() }
    }
}

/// `begins` returns whether a text begins as a line of the program does.
pub(in super::super) fn front<'a>(line: &'a str, begins: fn(&str) -> bool) -> Front<'a> {
    let mut front = Front::default();
    let mut after_stamp = false;
    for _ in 0..DEPTH {
        let Some(rest) = line.get(front.length..) else { break };
        // What begins as a line of the program does has no label that only looks like one.
        let prefix =
            certain(rest, after_stamp).or_else(|| if begins(rest) { None } else { likely(rest, begins) });
        let Some(prefix) = prefix else { break };
        if !prefix.tag.is_empty() {
            front.tag.push_str(if front.tag.is_empty() { "" } else { " " });
            front.tag.push_str(prefix.tag);
        }
        front.last_stamp = rest.get(..prefix.length).filter(|_| prefix.is_stamp);
        front.first_stamp = front.first_stamp.or(front.last_stamp);
        after_stamp = prefix.is_stamp;
        front.length += prefix.length;
        let Numbers { rank, local_rank, task } = prefix.numbers;
        let known = front.numbers;
        front.numbers = Numbers {
            rank: rank.or(known.rank),
            local_rank: local_rank.or(known.local_rank),
            task: task.or(known.task),
        };
    }
    front
}

/// What is a prefix whatever follows it.
fn certain(line: &str, after_stamp: bool) -> Option<Prefix<'_>> {
    let bare = line.trim_start_matches(' ');
    let indent = line.len() - bare.len();
    let prefix = |tag, length| Some(Prefix::label(tag, indent + length));
    let task = |tag: &str| Numbers { task: tag.parse().ok(), ..Numbers::default() };
    let head = bare.get(..bare.floor_char_boundary(2 * LONGEST)).unwrap_or("");
    if let Some(tag) = tags::find(head, 0).filter(|tag| tag.from == 0) {
        return Some(Prefix { numbers: task(tag.rank), ..Prefix::label(tag.who, indent + tag.to) });
    }
    if let Some(length) =
        stamps::iso(bare).or_else(|| stamps::bracketed(head)).or_else(|| stamps::syslog(bare))
    {
        return Some(Prefix::stamp(indent + length));
    }
    if after_stamp && let Some(length) = level(bare).or_else(|| stream_of_pod(bare)) {
        return prefix("", length);
    }
    if let Some((tag, rank, length)) = ray(head) {
        return Some(Prefix { numbers: task(rank), ..Prefix::label(tag, indent + length) });
    }
    // `host unit[12]: ` of journald.
    if after_stamp
        && let Some((host, rest)) = bare.split_once(' ')
        && let Some((unit, _)) = rest.split_once(": ")
        && is_word(host)
        && is_word(unit)
        && unit
            .strip_suffix(']')
            .and_then(|unit| unit.rsplit_once('['))
            .is_some_and(|(_, pid)| is_number(pid))
    {
        return prefix(host, host.len() + unit.len() + 3);
    }
    // ` 12: ` of srun --label.
    if let Some((label, rest)) = bare.split_once(':')
        && label.len() <= 7
        && is_number(label)
        && (rest.is_empty() || rest.starts_with(' '))
    {
        let length = indent + label.len() + 1 + usize::from(!rest.is_empty());
        return Some(Prefix { numbers: task(label), ..Prefix::label(label, length) });
    }
    // `[rank3]:` of PyTorch, `[default3]:` of torchrun.
    for word in ["[rank", "[default"] {
        if let Some((rank, rest)) = bare.strip_prefix(word).and_then(|rest| rest.split_once(']'))
            && is_number(rank)
            && rest.starts_with(':')
        {
            let number = rank.parse().ok();
            let numbers = match word {
                "[rank" => Numbers { rank: number, ..Numbers::default() },
                _ => Numbers { local_rank: number, ..Numbers::default() },
            };
            return Some(Prefix { numbers, ..Prefix::label(rank, indent + bare.len() - rest.len() + 1) });
        }
    }
    // `[pod/worker-0/pytorch] ` of kubectl logs --prefix.
    let (pod, rest) = bare.strip_prefix("[pod/")?.split_once("] ")?;
    is_word(pod).then_some(())?;
    prefix(pod, bare.len() - rest.len())
}

/// `(head, rank=0, pid=3808) ` of SkyPilot, `(RayTrainWorker pid=1193, ip=10.0.0.2) ` of Ray: the label, its rank, and the
/// length. What stands in the brackets is the label where it names no rank.
fn ray(text: &str) -> Option<(&str, &str, usize)> {
    let (inside, rest) = text.strip_prefix('(')?.split_once(')')?;
    let words = || inside.split([' ', ',']).filter(|word| !word.is_empty());
    let value = |name: &str| {
        let value = words().find_map(|word| word.strip_prefix(name));
        value.filter(|value| is_number(value))
    };
    value("pid=")?;
    // A name, and then nothing but such pairs.
    let is_one = words()
        .enumerate()
        .all(|(at, word)| if at == 0 { is_word(word) } else { word.contains('=') || at < 3 });
    (is_one && inside.len() <= LONGEST && (rest.is_empty() || rest.starts_with(' '))).then_some(())?;
    let length = inside.len() + 2 + usize::from(!rest.is_empty());
    let rank = value("rank=").unwrap_or("");
    Some((if rank.is_empty() { inside } else { rank }, rank, length))
}

/// `stdout F ` of containerd and CRI-O, behind its time; `P` where the line goes on in the next.
fn stream_of_pod(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("stdout ").or_else(|| text.strip_prefix("stderr "))?;
    let rest = rest.strip_prefix(['F', 'P'])?;
    let rest = rest.strip_prefix(' ').or_else(|| rest.is_empty().then_some(rest))?;
    Some(text.len() - rest.len())
}

/// `- root - INFO - `, or the level alone, of Python's logging behind its time.
fn level(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix("- ")?;
    for _ in 0..4 {
        let (word, behind) = rest.split_once(" - ")?;
        rest = behind;
        if LEVELS.contains(&word.trim()) {
            return Some(text.len() - rest.len());
        }
        is_word(word).then_some(())?;
    }
    None
}

/// `[0] `, `host: `, `worker-1  | `, `> `, the tab of `parallel --tag`, `pod container `: words like others, and labels only before what is certainly the
/// program's.
fn likely<'a>(line: &'a str, begins: fn(&str) -> bool) -> Option<Prefix<'a>> {
    let bare = line.trim_start_matches(' ');
    let head = bare.get(..bare.floor_char_boundary(2 * LONGEST)).unwrap_or("");
    let is_ours = |text: &str| {
        let mut at = 0;
        let mut after_stamp = false;
        for _ in 0..DEPTH {
            let Some(prefix) = text.get(at..).and_then(|rest| certain(rest, after_stamp)) else { break };
            after_stamp = prefix.is_stamp;
            at += prefix.length;
        }
        text.get(at..).is_some_and(begins)
    };
    let prefix = |tag, rest: &str| Some(Prefix::label(tag, line.len() - rest.len()));
    for (separator, bracket) in [("] ", true), (": ", false), ("| ", false), ("> ", false), ("\t", false)] {
        if bracket != bare.starts_with('[') {
            continue;
        }
        let Some((tag, _)) = head.split_once(separator) else { continue };
        let rest = bare.get(tag.len() + separator.len()..)?;
        let tag = tag.trim_end();
        if ((tag.is_empty() && separator != "\t") || is_word(tag)) && is_ours(rest) {
            let tag = tag.trim_start_matches('[');
            let is_other = is_clock(tag) || is_uptime(tag) || tag == LOGGER || LEVELS.contains(&tag);
            return prefix(if is_other { "" } else { tag }, rest);
        }
    }
    // stern writes both names without anything between.
    let (pod, rest) = bare.split_once(' ')?;
    let (container, rest) = rest.split_once(' ')?;
    let is_name = |word: &str| {
        is_word(word)
            && word.starts_with(|c: char| c.is_ascii_lowercase())
            && !word.ends_with([':', ',', '.'])
    };
    let names = bare.get(..pod.len() + 1 + container.len())?;
    (is_name(pod) && is_name(container) && is_ours(rest)).then_some(())?;
    prefix(names, rest)
}

/// `12:30:01`, with a fraction or without: a time of day names no rank.
fn is_clock(text: &str) -> bool {
    let is_two = |part: &str| part.len() == 2 && is_number(part);
    let mut parts = text.splitn(3, ':');
    let (Some(hour), Some(minute), Some(second)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, "0"));
    is_two(hour) && is_two(minute) && is_two(second) && is_number(fraction)
}

/// `1843.308145`: the kernel's seconds since it started.
fn is_uptime(text: &str) -> bool {
    text.split_once('.').is_some_and(|(seconds, fraction)| is_number(seconds) && is_number(fraction))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST && !text.starts_with('#') && !text.contains(char::is_whitespace)
}
