//! What PyTorch says of a training that failed: the failure summary of torchelastic, the last exception of each rank, and
//! ranks that could not meet. Lines in, one account out; it judges nothing.

use std::collections::BTreeMap;

/// So many ranks' exceptions are kept: more add nothing.
const MOST_RANKS: usize = 64;
/// Of a longer line the rest is left out.
const LONGEST: usize = 300;

/// Reads the lines of all files of a job, in their order.
#[derive(Debug, Default)]
pub struct Reader {
    account: Account,
    /// Within the block that torchelastic calls the root cause.
    in_root_cause: bool,
    /// Behind `Traceback (most recent call last):` without a rank.
    in_traceback: bool,
}

/// What was said, and where.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Account {
    /// None where torchelastic named none.
    pub root_cause: Option<RootCause>,
    /// By rank; nothing where the line does not bear one.
    pub exceptions: BTreeMap<Option<u64>, Said>,
    /// The first, or the first that has an address.
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
    /// Of the heading, as passed to `Reader::line`.
    pub line: u64,
}

/// A rank did not reach the address that all ranks meet at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    /// The host that was to be reached, and its port, where the line says them.
    pub to: Option<(String, u32)>,
    /// The line that shows it.
    pub said: Said,
}

impl Reader {
    /// Takes the next line; `line` is its number.
    pub fn line(&mut self, text: &str, line: u64) {
        let text = text.trim_end();
        self.root_cause(text, line);
        self.exception(text, line);
        if let Some(found) = rendezvous(text, line) {
            let is_better =
                self.account.rendezvous.as_ref().is_none_or(|known| known.to.is_none() && found.to.is_some());
            if is_better {
                self.account.rendezvous = Some(found);
            }
        }
    }

    /// What all lines say together.
    pub fn finish(self) -> Account {
        self.account
    }

    fn root_cause(&mut self, text: &str, line: u64) {
        let bare = text.trim();
        if bare.starts_with("Root Cause (first observed failure)") {
            self.in_root_cause = true;
            self.account.root_cause.get_or_insert(RootCause { line, ..RootCause::default() });
            return;
        }
        if !self.in_root_cause {
            return;
        }
        let Some(cause) = &mut self.account.root_cause else { return };
        if bare.starts_with("====") || bare.is_empty() {
            self.in_root_cause = false;
            return;
        }
        let Some((key, value)) = bare.split_once(':') else { return };
        let value = value.trim();
        let number = || value.split([' ', '(']).next().and_then(|word| word.parse::<i64>().ok());
        match key.trim() {
            "rank" => cause.rank = number().and_then(|rank| u64::try_from(rank).ok()),
            "host" => cause.host = Some(cut(value)),
            "exitcode" => cause.exit_code = number(),
            _ => {}
        }
    }

    fn exception(&mut self, text: &str, line: u64) {
        let (rank, rest) = split_rank(text);
        if rest.starts_with("Traceback (most recent call last):") {
            self.in_traceback = rank.is_none();
            return;
        }
        // Without a rank, prose may look like an exception anywhere but behind its traceback.
        if !is_exception(rest) || !(rank.is_some() || self.in_traceback) {
            return;
        }
        self.in_traceback &= rank.is_some();
        let known = self.account.exceptions.len();
        if known < MOST_RANKS || self.account.exceptions.contains_key(&rank) {
            self.account.exceptions.insert(rank, Said { text: cut(rest), line });
        }
    }
}

impl Account {
    /// The exception that began it: that of the rank that torchelastic saw fail first, else the first that was said.
    pub fn first_exception(&self) -> Option<(Option<u64>, &Said)> {
        let own = self.root_cause.as_ref().and_then(|cause| {
            let rank = Some(cause.rank?);
            self.exceptions.get(&rank).map(|said| (rank, said))
        });
        own.or_else(|| {
            let first = self.exceptions.iter().min_by_key(|(_, said)| said.line);
            first.map(|(rank, said)| (rank.or(self.root_cause.as_ref().and_then(|cause| cause.rank)), said))
        })
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// `[rank2]: ...`: the rank, and the rest of the line.
fn split_rank(text: &str) -> (Option<u64>, &str) {
    let rank = || {
        let (number, rest) = text.strip_prefix("[rank")?.split_once("]:")?;
        Some((number.parse().ok()?, rest.strip_prefix(' ').unwrap_or(rest)))
    };
    rank().map_or((None, text), |(rank, rest)| (Some(rank), rest))
}

/// `RuntimeError: CUDA error: ...`, `torch.OutOfMemoryError: ...`; not what torchelastic wraps around it.
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
    is_one.then(|| Rendezvous { to: address(text), said: Said { text: cut(text.trim()), line } })
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
mod tests {
    use super::*;

    fn read(text: &str) -> Account {
        let mut reader = Reader::default();
        text.lines().zip(1..).for_each(|(text, line)| reader.line(text, line));
        reader.finish()
    }

    const SUMMARY: &str = "\
[rank2]: Traceback (most recent call last):
[rank2]:   File \"/w/train.py\", line 120, in <module>
[rank2]:     loss.backward()
[rank2]: RuntimeError: CUDA error: an illegal memory access was encountered
[rank3]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 3.
Traceback (most recent call last):
  File \"/usr/local/bin/torchrun\", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  host      : n1
  rank      : 3 (local_rank: 1)
  exitcode  : 1 (pid: 4712)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_10:11:12
  host      : n2
  rank      : 2 (local_rank: 0)
  exitcode  : -9 (pid: 4711)
  error_file: <N/A>
============================================================
  rank      : 7 (after the block)
";

    #[test]
    fn the_root_cause_and_the_last_exception_of_each_rank_are_read() {
        let account = read(SUMMARY);
        let cause = account.root_cause.clone().expect("a root cause");
        assert_eq!((cause.rank, cause.host.as_deref(), cause.exit_code), (Some(2), Some("n2"), Some(-9)));
        let (rank, said) = account.first_exception().expect("an exception");
        assert_eq!((rank, said.line), (Some(2), 4));
        assert_eq!(said.text, "RuntimeError: CUDA error: an illegal memory access was encountered");
        assert_eq!(account.exceptions.len(), 2);
    }

    #[test]
    fn an_exception_without_a_rank_stands_behind_its_traceback() {
        let text = "ValueError: prose\nTraceback (most recent call last):\n  File \"x\"\n    y\nKeyError: 'input_ids'\nIOError: prose\n";
        let account = read(text);
        assert_eq!(
            account.first_exception().map(|(rank, said)| (rank, said.text.as_str())),
            Some((None, "KeyError: 'input_ids'"))
        );
        assert_eq!(read("Batch 1 Loss: 3.1 Error: none\n"), Account::default());
    }

    #[test]
    fn ranks_that_could_not_meet_say_where_they_wanted_to() {
        for (text, to) in [
            (
                "[E] The client socket has timed out after 60000ms while trying to connect to (n1, 29500).",
                Some(("n1", 29500)),
            ),
            (
                "[W socket.cpp:752] [c10d] The client socket has failed to connect to [ip-10-1-2-3]:29400 (errno: 111 - Connection refused).",
                Some(("ip-10-1-2-3", 29400)),
            ),
            (
                "[W socket.cpp:601] [c10d] The IPv4 network addresses of (n1, 29500) cannot be retrieved (gai error: -2)",
                Some(("n1", 29500)),
            ),
            ("socket.gaierror: [Errno -2] Name or service not known", None),
            ("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", None),
        ] {
            let found = read(text).rendezvous.expect(text);
            assert_eq!(found.to, to.map(|(host, port)| (host.to_owned(), port)), "{text}");
        }
        assert_eq!(read("connected to n1:29500").rendezvous, None);
    }
}
