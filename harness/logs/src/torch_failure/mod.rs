//! What PyTorch says of a training that failed: the failure summary of torchelastic, the last exception of each rank, and
//! ranks that could not meet. Lines in, one account out; it judges nothing.

use crate::text::{Plain, moment_ms, plain, without_escapes};
use crate::watchdog::global_rank;
use std::collections::{BTreeMap, BTreeSet};

/// So many ranks' exceptions and nodes' root causes are kept: more add nothing.
const MOST_RANKS: usize = 4096;
/// So many labels may have a traceback or a block open at once.
const MOST_OPEN: usize = 4096;
/// Of a longer line the rest is left out.
const LONGEST: usize = 300;
/// Clocks of two hosts differ by less, and a lost peer is noticed faster.
pub const CLOSE_MS: i64 = 5000;
const ROOT_CAUSE: &str = "Root Cause (first observed failure)";
const TRACEBACK: &str = "Traceback (most recent call last):";
/// Since PyTorch 2 the watchdog ends the process with an abort, without an exception in Python.
const WATCHDOG: &str = "watchdog thread terminated with exception: ";

/// What stands between an exception and the one that its handling raised, such as in a clean-up.
const CHAINS: [&str; 2] =
    ["During handling of the above exception", "The above exception was the direct cause"];

/// Reads the lines of a file, in their order.
#[derive(Debug, Default)]
pub struct Reader {
    /// By rank, or by label where no label is a rank's for sure.
    exceptions: BTreeMap<(Option<u64>, String), Exception>,
    /// Each node's torchrun reports the first failure of its own ranks.
    blocks: Vec<Block>,
    rendezvous: Option<Rendezvous>,
    /// By label: lines of several ranks interleave.
    open: BTreeMap<String, Open>,
    /// Whether torchrun started the ranks: then labels of srun and mpirun number its nodes.
    has_torchrun: bool,
}

/// What the lines of one label are in.
#[derive(Debug, Default)]
struct Open {
    /// Behind `Traceback (most recent call last):` without a rank.
    traceback: bool,
    /// The block that torchelastic calls the root cause.
    block: Option<Block>,
}

/// A root cause, and where its lines are.
#[derive(Debug, Default)]
struct Block {
    cause: RootCause,
    /// Behind its field `traceback`, which it ends with.
    in_traceback: bool,
    /// What the program recorded itself.
    exception: Option<Said>,
}

#[derive(Debug)]
struct Exception {
    said: Said,
    /// A rank where the launcher starts each rank itself.
    task: Option<u64>,
    /// The next one follows from it.
    is_chained: bool,
}

/// What was said, and where.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Account {
    /// None where torchelastic named none.
    pub root_cause: Option<RootCause>,
    /// Those of other hosts within seconds of it: which came first is not known.
    pub rivals: Vec<RootCause>,
    /// By rank; nothing where the line does not bear one.
    pub exceptions: BTreeMap<Option<u64>, Said>,
    /// The first, or the first that has an address; errors go before warnings.
    pub rendezvous: Option<Rendezvous>,
}

/// A line of the log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Said {
    /// At most 300 characters, without the label of the rank.
    pub text: String,
    /// As passed to `Reader::line`.
    pub line: u64,
}

/// `Root Cause (first observed failure)`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RootCause {
    /// The global one, not `local_rank`.
    pub rank: Option<u64>,
    /// As torchelastic names it.
    pub host: Option<String>,
    /// Below 0 for a signal.
    pub exit_code: Option<i64>,
    /// When torchelastic saw it, in milliseconds by the host's clock, of which it prints whole seconds.
    pub time_ms: Option<i64>,
    /// Of the heading, as passed to `Reader::line`.
    pub line: u64,
}

/// A rank did not reach the address that all ranks meet at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    /// The host that was to be reached, and its port, where the line says them.
    pub to: Option<(String, u32)>,
    /// Healthy jobs print warnings, while they try again or take the other address family.
    pub is_warning: bool,
    /// The line that shows it.
    pub said: Said,
}

impl Reader {
    /// Takes the next line, with whatever launchers and log collectors put around it; `line` is its number.
    pub fn line(&mut self, text: &str, line: u64) {
        if let Some((before, why)) = text.split_once(WATCHDOG) {
            return self.watchdog(before, why, line);
        }
        let Plain { tag, text, numbers, .. } = plain(text, begins);
        let text = text.trim_end();
        self.has_torchrun |= numbers.local_rank.is_some()
            || text.contains("torch.distributed.elastic")
            || text.contains("torch/distributed/run.py");
        if let Some(found) = rendezvous(text, line) {
            let rank = |it: &Rendezvous| (!it.is_warning, it.to.is_some());
            if self.rendezvous.as_ref().is_none_or(|known| rank(known) < rank(&found)) {
                self.rendezvous = Some(found);
            }
        }
        self.block(&tag, text, line);
        let rest = text.strip_prefix(' ').unwrap_or(text);
        if rest.starts_with(TRACEBACK) {
            self.opened(&tag, |open| open.traceback = numbers.rank.is_none());
            return;
        }
        let key = (numbers.rank, if numbers.rank.is_some() { String::new() } else { tag.clone() });
        if let Some(known) = self.exceptions.get_mut(&key) {
            known.is_chained |= CHAINS.iter().any(|chain| rest.starts_with(chain));
            // NCCL says below its error what CUDA said.
            let said = &mut known.said.text;
            if rest.starts_with("Cuda failure ")
                && said.contains("unhandled cuda error")
                && !said.contains(rest)
            {
                *said = format!("{}; {}", said.chars().take(LONGEST / 2).collect::<String>(), cut(rest));
            }
        }
        // Without a rank, prose may look like an exception anywhere but behind its traceback.
        let in_traceback = self.open.get(&tag).is_some_and(|open| open.traceback);
        if !is_exception(rest) || !(numbers.rank.is_some() || in_traceback) {
            return;
        }
        let task = numbers.task.filter(|_| numbers.local_rank.is_none());
        let next = Exception { said: Said { text: cut(rest), line }, task, is_chained: false };
        let is_room = self.exceptions.len() < MOST_RANKS;
        match self.exceptions.get_mut(&key) {
            // Of a chain the first counts.
            Some(known) if known.is_chained => known.is_chained = false,
            Some(known) => *known = next,
            None if is_room => drop(self.exceptions.insert(key, next)),
            None => {}
        }
        if numbers.rank.is_none() {
            self.closed(&tag, |open| open.traceback = false);
        }
    }

    /// What a watchdog gives as its reason, as its rank's exception. A time-out is none: it is read elsewhere.
    fn watchdog(&mut self, before: &str, why: &str, line: u64) {
        // Without the rank in the job nothing says whose it is.
        let Some(rank) = global_rank(before) else { return };
        let key = (Some(rank), String::new());
        let is_new = self.exceptions.len() < MOST_RANKS && !self.exceptions.contains_key(&key);
        if is_new && !why.contains("Watchdog caught collective operation timeout") {
            let said = Said { text: cut(&without_escapes(why)).trim_end().to_owned(), line };
            self.exceptions.insert(key, Exception { said, task: None, is_chained: false });
        }
    }

    /// What all lines say together.
    pub fn finish(mut self) -> Account {
        for open in std::mem::take(&mut self.open).into_values() {
            self.take_block(open.block);
        }
        let mut exceptions: BTreeMap<Option<u64>, Said> = BTreeMap::new();
        for ((rank, _), exception) in self.exceptions {
            let rank = rank.or(exception.task.filter(|_| !self.has_torchrun));
            let said = exceptions.entry(rank).or_insert_with(|| exception.said.clone());
            if exception.said.line < said.line {
                *said = exception.said;
            }
        }
        for Block { cause, exception, .. } in &self.blocks {
            if let Some(said) = exception {
                exceptions.entry(cause.rank).or_insert_with(|| said.clone());
            }
        }
        let mut causes = root_causes(self.blocks, &exceptions).into_iter();
        let (root_cause, rivals) = (causes.next(), causes.collect());
        Account { root_cause, rivals, exceptions, rendezvous: self.rendezvous }
    }

    fn block(&mut self, tag: &str, text: &str, line: u64) {
        let bare = text.trim();
        if bare.starts_with(ROOT_CAUSE) {
            self.has_torchrun = true;
            let cause = RootCause { line, ..RootCause::default() };
            let before = self.opened(tag, |open| open.block.replace(Block { cause, ..Block::default() }));
            return self.take_block(before.flatten());
        }
        let Some(block) = self.open.get_mut(tag).and_then(|open| open.block.as_mut()) else { return };
        // Some collectors put an empty line behind each.
        if bare.starts_with("====") || (bare.is_empty() && block.in_traceback) {
            let block = self.closed(tag, |open| open.block.take());
            return self.take_block(block.flatten());
        }
        if block.in_traceback {
            // Its frames are deeper.
            let exception =
                text.strip_prefix("  ").filter(|rest| is_exception(rest) && block.exception.is_none());
            if let Some(rest) = exception {
                block.exception = Some(Said { text: cut(rest), line });
            }
            return;
        }
        let Some((key, value)) = bare.split_once(':') else { return };
        let value = value.trim();
        let number = || value.split([' ', '(']).next().and_then(|word| word.parse::<i64>().ok());
        match key.trim() {
            // Where the end of the block is lost, others' lines follow.
            "time" if block.cause.time_ms.is_none() => {
                block.cause.time_ms = moment_ms(&cut(value).replace('_', " "));
            }
            "rank" if block.cause.rank.is_none() => {
                block.cause.rank = number().and_then(|rank| u64::try_from(rank).ok());
            }
            "host" if block.cause.host.is_none() => block.cause.host = Some(cut(value)),
            "exitcode" if block.cause.exit_code.is_none() => block.cause.exit_code = number(),
            "traceback" => block.in_traceback = value.starts_with(TRACEBACK),
            _ => {}
        }
    }

    fn take_block(&mut self, block: Option<Block>) {
        if self.blocks.len() < MOST_RANKS {
            self.blocks.extend(block);
        }
    }

    /// Changes what is open of a label; nothing where too much is open.
    fn opened<T>(&mut self, tag: &str, change: impl FnOnce(&mut Open) -> T) -> Option<T> {
        if !self.open.contains_key(tag) {
            if self.open.len() >= MOST_OPEN {
                return None;
            }
            self.open.insert(tag.to_owned(), Open::default());
        }
        self.open.get_mut(tag).map(change)
    }

    /// The same, and forgets the label where nothing is left open.
    fn closed<T>(&mut self, tag: &str, change: impl FnOnce(&mut Open) -> T) -> Option<T> {
        let open = self.open.get_mut(tag)?;
        let changed = change(open);
        if !open.traceback && open.block.is_none() {
            self.open.remove(tag);
        }
        Some(changed)
    }
}

/// The earliest root cause, and those of other hosts at the same time, which may have come before it. Whoever only lost a peer,
/// aborted or was ended by a signal of others gives way.
fn root_causes(mut blocks: Vec<Block>, exceptions: &BTreeMap<Option<u64>, Said>) -> Vec<RootCause> {
    blocks.sort_by_key(|block| (block.cause.time_ms, block.cause.line));
    let Some(first) = blocks.first().map(|block| (block.cause.time_ms, block.cause.host.clone())) else {
        return Vec::new();
    };
    let is_close = |block: &Block| match (first.0, block.cause.time_ms) {
        (Some(first), Some(time)) => time - first <= CLOSE_MS,
        _ => true,
    };
    let is_victim = |cause: &RootCause| match exceptions.get(&cause.rank) {
        Some(said) => said.is_of_lost_peer(),
        None => is_ended_by_others(cause.exit_code),
    };
    let mut hosts = BTreeSet::from([first.1]);
    let mut close: Vec<RootCause> = Vec::new();
    for (at, block) in blocks.into_iter().enumerate().filter(|(_, block)| is_close(block)) {
        if at == 0 || hosts.insert(block.cause.host.clone()) {
            close.push(block.cause);
        }
    }
    if close.iter().any(|cause| !is_victim(cause)) {
        close.retain(|cause| !is_victim(cause));
    }
    close
}

/// Whether a text begins as a line that is read here does.
fn begins(text: &str) -> bool {
    let bare = text.trim_start();
    let is_field = || {
        let key = bare.split_once(':').map(|(key, _)| key.trim_end());
        matches!(key, Some("time" | "host" | "rank" | "exitcode" | "traceback"))
    };
    bare.starts_with(TRACEBACK)
        || bare.starts_with(ROOT_CAUSE)
        || bare.starts_with("====")
        || CHAINS.iter().any(|chain| bare.starts_with(chain))
        || is_field()
        || is_exception(text.strip_prefix("  ").or_else(|| text.strip_prefix(' ')).unwrap_or(text))
}

impl Account {
    /// The failed rendezvous, where no exception or signal shows that the job failed of something else.
    pub fn failed_rendezvous(&self) -> Option<&Rendezvous> {
        let met = self.rendezvous.as_ref()?;
        let is_killed =
            || self.root_cause.as_ref().and_then(|cause| cause.exit_code).is_some_and(|code| code < 0);
        let is_other = self.exceptions.values().any(|said| !is_of_rendezvous(&said.text));
        (!(is_other || met.is_warning && is_killed())).then_some(met)
    }

    /// The exception that began it: that of the rank that torchelastic saw fail first, unless it only lost its peer and another
    /// rank says more; else the first that was said.
    pub fn first_exception(&self) -> Option<(Option<u64>, &Said)> {
        let cause = self.root_cause.as_ref().and_then(|cause| cause.rank);
        let first = |only: &dyn Fn(&Option<u64>, &Said) -> bool| {
            let all = self.exceptions.iter().filter(|(rank, said)| only(rank, said));
            all.min_by_key(|(_, said)| said.line)
        };
        let is_own = |rank: &Option<u64>| rank.is_some() && *rank == cause;
        let found = first(&|rank, said| is_own(rank) && !said.is_of_lost_peer())
            .or_else(|| first(&|rank, said| rank.is_some() && !said.is_of_lost_peer()))
            .or_else(|| first(&|rank, _| is_own(rank)))
            .or_else(|| first(&|_, _| true));
        found.map(|(rank, said)| (rank.or(cause), said))
    }
}

impl Account {
    /// Whether all that it shows is that others were gone, or ended its ranks.
    pub fn is_of_victim(&self) -> bool {
        match self.first_exception() {
            Some((_, said)) => said.is_of_lost_peer(),
            None => self.root_cause.as_ref().is_some_and(|cause| is_ended_by_others(cause.exit_code)),
        }
    }
}

/// An abort, which follows a lost peer, and the signal by which launchers end ranks.
fn is_ended_by_others(exit_code: Option<i64>) -> bool {
    matches!(exit_code, Some(-6 | -15))
}

impl Said {
    /// Whether it says no more than that another rank was gone.
    pub fn is_of_lost_peer(&self) -> bool {
        const SIGNS: [&str; 5] = [
            "remote process exited",
            "ncclRemoteError",
            "Connection reset by peer",
            "Connection closed by peer",
            "Connection closed by remote peer",
        ];
        SIGNS.iter().any(|sign| self.text.contains(sign))
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// `RuntimeError: CUDA error: ...`, `torch.OutOfMemoryError: ...`; not what torchelastic wraps around it, nor how NCCL explains
/// it: `ncclRemoteError: ...`.
fn is_exception(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let ends = ["Error", "Exception", "Interrupt", "Exit", "Timeout"];
    !name.is_empty()
        && name.len() < 120
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_name)
        && ends.iter().any(|end| last.ends_with(end))
        && last != "ChildFailedError"
        && !last.starts_with("nccl")
}

/// The signs that ranks could not meet, and the address where the line has it: `(n1, 29500)`, `[n1]:29500`, `n1:29500`.
fn rendezvous(text: &str, line: u64) -> Option<Rendezvous> {
    let signs = [
        "client socket has timed out",
        "client socket has failed to connect to",
        "RendezvousConnectionError",
        "RendezvousTimeoutError",
        "socket.gaierror",
        "c10d] The IPv6 network addresses of",
        "c10d] The IPv4 network addresses of",
    ];
    let is_one = signs.iter().any(|sign| text.contains(sign))
        || (text.contains("failed to connect to") && text.contains("29500"));
    // `[W1122 01:02:03.123 socket.cpp:752] [c10d] ...`.
    let level = text.split_once("socket.cpp").and_then(|(before, _)| before.rsplit_once('['));
    let is_warning = level.is_some_and(|(_, level)| level.starts_with('W'));
    is_one.then(|| Rendezvous { to: address(text), is_warning, said: Said { text: cut(text.trim()), line } })
}

/// Whether an exception is what a failed rendezvous raises, or what ends ranks that wait in it.
fn is_of_rendezvous(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let ends = ["DistNetworkError", "DistStoreError", "SignalException", "KeyboardInterrupt"];
    name.contains("Rendezvous") || ends.iter().any(|end| name.ends_with(end)) || rendezvous(text, 0).is_some()
}

fn address(text: &str) -> Option<(String, u32)> {
    let after = |sign: &str| text.split_once(sign).map(|(_, rest)| rest);
    let rest = after("connect to ").or_else(|| after("network addresses of "))?;
    let rest = rest.trim_start_matches(['(', '[', '\'']);
    let host: String =
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')).collect();
    let digits = rest.get(host.len()..)?.trim_start_matches(|c: char| !c.is_ascii_digit());
    let port: String = digits.chars().take_while(char::is_ascii_digit).collect();
    (!host.is_empty()).then_some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests;
