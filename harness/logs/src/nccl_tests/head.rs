//! The lines around the table: versions, parameters, ranks, closing lines, and commands that start programs.
//! To which run they belong is `text`'s business.

use super::row::Layout;
use super::{OutOfBounds, Parameters, RankLine, Step, cell};
use metric::op::Op;

/// A line that is no row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Comment {
    Version {
        nccl_tests: String,
        nccl: Option<String>,
    },
    /// What runs a collective where PyTorch does.
    Torch {
        pytorch: String,
        nccl: Option<String>,
    },
    Starting(String),
    Parameters(Parameters),
    /// Less than was asked for, because memory is short.
    MaxBytes(u64),
    Rank(RankLine),
    /// The line with the names; whether two blanks stand before `#wrong`, which shows the era.
    Headings(Layout, bool),
    OutOfBounds(OutOfBounds),
    /// The average, and whether it was below a required minimum.
    Average(f64, bool),
    /// A closing line whose figure or word is none that is printed there.
    OddClosing(String),
    Concluded(String),
    Error(String),
    /// Of nccl-tests, and of no interest.
    Known,
}

/// Reads a line that documents may have robbed of its `#`.
pub(super) fn comment(text: &str) -> Option<Comment> {
    // Tables that went through a spreadsheet have tabs where blanks were.
    let spaced = text.contains('\t').then(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let text = spaced.as_deref().unwrap_or(text).trim();
    let hash = text.starts_with('#');
    let bare = text.trim_start_matches('#').trim_start();
    if bare.is_empty() {
        return hash.then_some(Comment::Known);
    }
    if let Some(rest) = bare.strip_prefix("nccl-tests version ") {
        return Some(version(rest));
    }
    if let Some(rest) = bare.strip_prefix("torch-collective PyTorch ") {
        let mut words = rest.split_whitespace();
        let pytorch = words.next()?.to_owned();
        let nccl = words.skip_while(|word| *word != "NCCL").nth(1).filter(|version| *version != "none");
        return Some(Comment::Torch { pytorch, nccl: nccl.map(str::to_owned) });
    }
    if let Some(rest) = bare.strip_prefix("Collective test starting:") {
        return program_name(rest).map(Comment::Starting);
    }
    if let Some(rest) = bare.strip_prefix("Collective test concluded:") {
        return Some(Comment::Concluded(program_name(rest).unwrap_or_default()));
    }
    if bare.starts_with("nThread ") && bare.contains(" nGpus ") {
        return Some(Comment::Parameters(parameters(bare)));
    }
    if let Some(rest) = bare.strip_prefix("Reducing maxBytes to ") {
        return rest.split_whitespace().next().and_then(cell::whole).map(Comment::MaxBytes);
    }
    if bare.starts_with("Rank ")
        && let Some(rank) = rank(bare)
    {
        return Some(Comment::Rank(rank));
    }
    if let Some(rest) = bare.strip_prefix("Out of bounds values") {
        let mut words = rest.split_whitespace().skip_while(|word| *word == ":");
        let (count, word) = (words.next().and_then(cell::whole), words.next());
        return match (count, word) {
            (Some(count), Some(word @ ("OK" | "FAILED"))) => {
                Some(Comment::OutOfBounds(OutOfBounds { count, ok: word == "OK" }))
            }
            _ => odd_closing(bare, rest),
        };
    }
    if let Some(rest) = bare.strip_prefix("Avg bus bandwidth") {
        let mut words = rest.split_whitespace().skip_while(|word| *word == ":");
        return match words.next().and_then(|word| word.parse().ok()) {
            Some(average) => Some(Comment::Average(average, words.next() == Some("FAILED"))),
            None => odd_closing(bare, rest),
        };
    }
    if hash && let Some(rest) = bare.strip_prefix("error:") {
        return Some(Comment::Error(rest.trim().to_owned()));
    }
    let words: Vec<&str> = bare.split_whitespace().collect();
    let wide = bare.split_once("busbw").is_some_and(|(_, rest)| rest.starts_with("  "));
    if let Some(layout) = Layout::from_headings(&words) {
        return Some(Comment::Headings(layout, wide));
    }
    let known = ["Using devices", "out-of-place", "(B) ", "GPU memory usage", "Blocking Enabled"];
    let known_too =
        ["Parallel Init", "Per-Iteration Report", "Writing J", "Bitwise mismatches", "skipping json"];
    known.iter().chain(&known_too).any(|start| bare.starts_with(start)).then_some(Comment::Known)
}

/// Prose may name such a line, without a colon.
fn odd_closing(line: &str, rest: &str) -> Option<Comment> {
    let is_line = rest.trim_start().starts_with(':');
    is_line.then(|| Comment::OddClosing(line.chars().take(LONGEST_SHOWN).collect()))
}

/// Of a line in a message.
const LONGEST_SHOWN: usize = 120;

fn version(rest: &str) -> Comment {
    // Since 2.20 the commit follows in parentheses: `2.20.0 (b4d5bee)`.
    let nccl_tests = rest.split(" nccl-").next().unwrap_or(rest).trim().to_owned();
    let code = rest.split_whitespace().find_map(|word| word.strip_prefix("nccl-library="));
    Comment::Version { nccl_tests, nccl: code.and_then(cell::whole).and_then(version_of_code) }
}

/// NCCL's version code: 2804 is 2.8.4, 22602 is 2.26.2.
pub(super) fn version_of_code(code: u64) -> Option<String> {
    match code {
        1000..10_000 => Some(format!("{}.{}.{}", code / 1000, code % 1000 / 100, code % 100)),
        10_000..1_000_000 => Some(format!("{}.{}.{}", code / 10_000, code % 10_000 / 100, code % 100)),
        _ => None,
    }
}

/// `all_reduce_perf` of a path, if it is the name of such a program.
fn program_name(text: &str) -> Option<String> {
    let word = text.split_whitespace().next()?;
    let base = word.rsplit('/').next().unwrap_or(word);
    (!base.is_empty() && base.len() <= 64).then(|| base.to_owned())
}

/// The operation of a program's name, with or without `_perf` and `_mpi`.
pub(super) fn op_of(program: &str) -> Option<Op> {
    let base = program.rsplit('/').next().unwrap_or(program);
    let base = base.strip_suffix(".exe").unwrap_or(base);
    let base = base.strip_suffix("_mpi").unwrap_or(base);
    let name = base.strip_suffix("_perf")?;
    // Those of MSCCL++ are called `allreduce_test_perf`.
    let of_mscclpp = name.strip_suffix("_test").and_then(|name| match name {
        "allreduce" => Some(Op::AllReduce),
        "allgather" => Some(Op::AllGather),
        name => Op::from_name(name),
    });
    of_mscclpp.or_else(|| Op::from_name(name))
}

/// The program that a command line starts: the name of one, followed by one of its options, or its path at the end.
pub(super) fn launched(text: &str) -> Option<&str> {
    if !text.contains("_perf") {
        return None;
    }
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let word = word.trim_matches(['"', '\'', '`']);
        let base = word.rsplit('/').next().unwrap_or(word);
        if op_of(base).is_some() {
            // Without options a path ends the line; a name alone may be prose.
            return match words.next() {
                Some(option) => (option.len() >= 2 && option.starts_with('-')).then_some(base),
                None => word.contains('/').then_some(base),
            };
        }
    }
    None
}

/// The operation whose source file a failure names, as in `Test failure all_reduce.cu:90`.
pub(super) fn op_of_source_file(text: &str) -> Option<Op> {
    let (_, rest) = text.split_once(" failure ")?;
    let (file, _) = rest.split_once(".cu:")?;
    Op::from_name(file.rsplit('/').next().unwrap_or(file))
}

fn parameters(text: &str) -> Parameters {
    let mut read = Parameters::default();
    // A label ends where its number begins, and the next one begins after it.
    let mut label = String::new();
    for word in text.split_whitespace() {
        if let Some(number) = cell::whole(word) {
            let number = Some(number);
            match label.as_str() {
                "nThread" => read.threads = number,
                "nGpus" => read.gpus_per_thread = number,
                "minBytes" => read.min_bytes = number,
                "maxBytes" => read.max_bytes = number,
                "warmup iters:" => read.warmup = number,
                "iters:" => read.iterations = number,
                "agg iters:" => read.agg_iterations = number,
                "validation:" => read.validation = number,
                "graph:" => read.graph = number,
                _ => (),
            }
        } else if let Some((number, unit)) = word.split_once('(')
            && let Some(number) = cell::whole(number)
        {
            match unit {
                "factor)" => read.step = Some(Step::Factor(number)),
                "bytes)" => read.step = Some(Step::Bytes(number)),
                _ => (),
            }
        } else {
            if !label.is_empty() {
                label.push(' ');
            }
            label.push_str(word);
            continue;
        }
        label.clear();
    }
    read
}

/// `Rank  0 Group  0 Pid  64904 on       mew0 device  1 [0000:65:00] NVIDIA A100 80GB PCIe`
fn rank(text: &str) -> Option<RankLine> {
    let (figures, rest) = text.split_once('[')?;
    let (bus_id, name) = rest.split_once(']')?;
    let mut words = figures.split_whitespace().peekable();
    let mut number = |label: &str| {
        words.next_if(|word| *word == label)?;
        cell::whole(words.next()?)
    };
    let rank = u32::try_from(number("Rank")?).ok()?;
    let group = number("Group").and_then(|group| u32::try_from(group).ok());
    let pid = number("Pid")?;
    words.next_if(|word| *word == "on")?;
    let host = words.next()?.to_owned();
    words.next_if(|word| *word == "device")?;
    let device = u32::try_from(cell::whole(words.next()?)?).ok()?;
    Some(RankLine { rank, group, pid, host, device, bus_id: bus_id.to_owned(), name: name.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_names_and_commands_by_their_options() {
        assert_eq!(op_of("all_reduce_perf"), Some(Op::AllReduce));
        assert_eq!(op_of("/x/all_gather_perf_mpi"), Some(Op::AllGather));
        assert_eq!(op_of("alltoallv_perf"), None);
        assert_eq!(op_of("build/test/perf/allreduce_test_perf"), Some(Op::AllReduce));
        assert_eq!(op_of("sendrecv_test_perf"), Some(Op::SendRecv));
        assert_eq!(launched("mpirun -np 8 ./allgather_test_perf -b 1k -e 1G"), Some("allgather_test_perf"));
        assert_eq!(launched("> /b/all_reduce_perf -b 8 -e 8G"), Some("all_reduce_perf"));
        assert_eq!(launched("user@n:~$ sudo ./build/./alltoall_perf"), Some("alltoall_perf"));
        assert_eq!(launched("NCCL_DEBUG=INFO ./alltoall_perf"), Some("alltoall_perf"));
        assert_eq!(launched("measured by alltoall_perf"), None);
        assert_eq!(launched("the program all_reduce_perf measures it"), None);
    }

    #[test]
    fn a_code_of_nccl_is_its_version() {
        assert_eq!(version_of_code(2804).as_deref(), Some("2.8.4"));
        assert_eq!(version_of_code(22602).as_deref(), Some("2.26.2"));
        assert_eq!(version_of_code(7), None);
    }

    #[test]
    fn ranks_of_both_forms_are_read() {
        let old = comment("#   Rank  0 Pid 167261 on localhost device  0 [0x00] A100-SXM4-40GB");
        let Some(Comment::Rank(old)) = old else { panic!("{old:?}") };
        assert_eq!((old.group, old.bus_id.as_str()), (None, "0x00"));
        let new =
            comment("#  Rank 12 Group  1 Pid   6735 on node-b device  4 [0000:0b:00] NVIDIA H100 80GB HBM3");
        let Some(Comment::Rank(new)) = new else { panic!("{new:?}") };
        assert_eq!((new.rank, new.group, new.device), (12, Some(1), 4));
        assert_eq!((new.host.as_str(), new.name.as_str()), ("node-b", "NVIDIA H100 80GB HBM3"));
    }
}
