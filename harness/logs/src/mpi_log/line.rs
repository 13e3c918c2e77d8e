//! One line of a log of MPI messages: which rank called what, on how many bytes. What lines add up to is `tally`'s
//! business.

use serde::Serialize;

/// What the logger puts before each call, by the names of MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Operation {
    /// `MPI_Allgather`; logged with `send_bytes` and `recv_bytes`.
    Allgather,
    /// `MPI_Allreduce`.
    Allreduce,
    /// `MPI_Bcast`.
    Bcast,
    /// `MPI_Recv`; its bytes are the room to receive.
    Recv,
    /// `MPI_Reduce`.
    Reduce,
    /// `MPI_Send`.
    Send,
    /// `MPI_Sendrecv`; logged with both peers, `send_bytes` and `recv_bytes`.
    Sendrecv,
}

pub(super) const OPERATIONS: [Operation; 7] = [
    Operation::Allgather,
    Operation::Allreduce,
    Operation::Bcast,
    Operation::Recv,
    Operation::Reduce,
    Operation::Send,
    Operation::Sendrecv,
];

impl Operation {
    /// As in MPI, without `MPI_`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Allgather => "Allgather",
            Operation::Allreduce => "Allreduce",
            Operation::Bcast => "Bcast",
            Operation::Recv => "Recv",
            Operation::Reduce => "Reduce",
            Operation::Send => "Send",
            Operation::Sendrecv => "Sendrecv",
        }
    }

    /// Whether each rank of the communicator makes the same call.
    pub(crate) fn is_collective(self) -> bool {
        !matches!(self, Operation::Recv | Operation::Send | Operation::Sendrecv)
    }
}

/// A peer with the tag of the message; a negative one is any, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    pub rank: i64,
    pub tag: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub operation: Operation,
    /// In its communicator; -1 where MPI was not begun.
    pub comm_rank: i64,
    /// Only collectives have it.
    pub comm_size: Option<u64>,
    pub to: Option<Peer>,
    pub from: Option<Peer>,
    pub root: Option<i64>,
    /// That the rank gives; of a receive, for which it has room.
    pub bytes: u64,
    /// For which it has room, where that is another number.
    pub receive_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Begin,
    End,
    Call(Call),
}

/// A line that the logger wrote.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CallLine {
    /// By the clock of its process, which is none of the others'.
    pub seconds: f64,
    /// Nothing where MPI was not begun.
    pub world_rank: Option<u64>,
    pub said: Said,
}

/// Why a line of the logger counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unread {
    /// A call that the logger is not known to write.
    Unknown(String),
    Garbled(&'static str),
}

/// Whether a text begins as a line of the logger does.
pub(super) fn begins(text: &str) -> bool {
    text.starts_with('[') && text.contains("] MPI_")
}

/// Nothing where the line is none of the logger's; a launcher's label may stand before it.
pub(super) fn parse(text: &str) -> Option<Result<CallLine, Unread>> {
    let (before, rest) = text.split_once("] MPI_")?;
    let (_, seconds) = before.rsplit_once('[')?;
    let is_time = seconds.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && seconds.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte));
    let seconds = seconds.parse::<f64>().ok().filter(|_| is_time)?;
    let (name, fields) = rest.split_once(':')?;
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    Some(line(seconds, name, fields))
}

fn line(seconds: f64, name: &str, fields: &str) -> Result<CallLine, Unread> {
    let mut words = Fields(fields.trim_end());
    let world = words.signed("world_rank")?;
    let world_rank = u64::try_from(world).ok();
    let said = match name {
        "Init" => Said::Begin,
        "Init_thread" => {
            words.signed("required")?;
            words.signed("provided")?;
            Said::Begin
        }
        "Finalize" => Said::End,
        _ => {
            let operation = OPERATIONS.into_iter().find(|operation| operation.name() == name);
            Said::Call(call(operation.ok_or_else(|| Unread::Unknown(name.to_owned()))?, &mut words)?)
        }
    };
    match words.0.trim().is_empty() {
        true => Ok(CallLine { seconds, world_rank, said }),
        false => Err(Unread::Garbled("more follows than such a call has")),
    }
}

fn call(operation: Operation, words: &mut Fields) -> Result<Call, Unread> {
    let comm_rank = words.signed("comm_rank")?;
    let comm_size = match operation.is_collective() {
        true => Some(words.whole("comm_size")?),
        false => None,
    };
    let mut call = Call {
        operation,
        comm_rank,
        comm_size,
        to: None,
        from: None,
        root: None,
        bytes: 0,
        receive_bytes: None,
    };
    match operation {
        Operation::Send => {
            call.to = Some(words.peer("->", "dest")?);
            call.bytes = words.whole("bytes")?;
        }
        Operation::Recv => {
            call.from = Some(words.peer("<-", "source")?);
            call.bytes = words.whole("bytes")?;
        }
        Operation::Sendrecv => {
            call.to = Some(words.peer("send->", "dest")?);
            call.bytes = words.whole("send_bytes")?;
            words.literal(";")?;
            call.from = Some(words.peer("recv<-", "source")?);
            call.receive_bytes = Some(words.whole("recv_bytes")?);
        }
        Operation::Bcast | Operation::Reduce => {
            call.root = Some(words.signed("root")?);
            call.bytes = words.whole("bytes")?;
        }
        Operation::Allreduce => call.bytes = words.whole("bytes")?,
        Operation::Allgather => {
            call.bytes = words.whole("send_bytes")?;
            call.receive_bytes = Some(words.whole("recv_bytes")?);
        }
    }
    words.pointer("comm")?;
    Ok(call)
}

/// The unread rest of a line.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn next(&mut self) -> &'a str {
        let rest = self.0.trim_start_matches(' ');
        let end = rest.find(' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.0 = rest;
        word
    }

    fn literal(&mut self, word: &'static str) -> Result<(), Unread> {
        if self.next() == word { Ok(()) } else { Err(Unread::Garbled(word)) }
    }

    fn value(&mut self, key: &'static str) -> Result<&'a str, Unread> {
        let value = self.next().strip_prefix(key).and_then(|rest| rest.strip_prefix('='));
        value.ok_or(Unread::Garbled(key))
    }

    fn signed(&mut self, key: &'static str) -> Result<i64, Unread> {
        let value = self.value(key)?;
        let digits = value.strip_prefix('-').unwrap_or(value);
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        value.parse().ok().filter(|_| is_plain).ok_or(Unread::Garbled(key))
    }

    fn whole(&mut self, key: &'static str) -> Result<u64, Unread> {
        let value = self.value(key)?;
        let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
        value.parse().ok().filter(|_| is_plain).ok_or(Unread::Garbled(key))
    }

    fn peer(&mut self, arrow: &'static str, key: &'static str) -> Result<Peer, Unread> {
        self.literal(arrow)?;
        Ok(Peer { rank: self.signed(key)?, tag: self.signed("tag")? })
    }

    /// Of another process's memory it says nothing: it must only be a pointer.
    fn pointer(&mut self, key: &'static str) -> Result<(), Unread> {
        let value = self.value(key)?;
        let digits = value.strip_prefix("0x").unwrap_or_default();
        let is_one = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_one || value == "(nil)" { Ok(()) } else { Err(Unread::Garbled(key)) }
    }
}
