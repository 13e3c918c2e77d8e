//! Lines of calls: which operation, on how much of what, in which communicator. Who called is in what stands before the
//! line; what the calls of a log add up to is `tally`'s business.

use super::tokens::{Words, hex, pointer, whole};
use serde::Serialize;

/// The operations that NCCL logs, by the names that it logs them with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Operation {
    /// `ncclAllGather`; the count is that of one rank.
    AllGather,
    /// `ncclAllReduce`.
    AllReduce,
    /// `ncclAlltoAll`; the count is that for one peer.
    AlltoAll,
    /// `ncclBroadcast`.
    Broadcast,
    /// `ncclGather`; the count is that of one rank.
    Gather,
    /// `ncclPutSignal`, one-sided.
    PutSignal,
    /// `ncclRecv`; the root of its line is the sender.
    Recv,
    /// `ncclReduce`.
    Reduce,
    /// `ncclReduceScatter`; the count is that of one rank's result.
    ReduceScatter,
    /// `ncclScatter`; the count is that for one rank.
    Scatter,
    /// `ncclSend`; the root of its line is the receiver.
    Send,
    /// `ncclSignal`, one-sided.
    Signal,
    /// `ncclWaitSignal`.
    WaitSignal,
}

/// Each operation, at the index `operation as usize`.
pub const OPERATIONS: [Operation; 13] = [
    Operation::AllGather,
    Operation::AllReduce,
    Operation::AlltoAll,
    Operation::Broadcast,
    Operation::Gather,
    Operation::PutSignal,
    Operation::Recv,
    Operation::Reduce,
    Operation::ReduceScatter,
    Operation::Scatter,
    Operation::Send,
    Operation::Signal,
    Operation::WaitSignal,
];

impl Operation {
    /// As NCCL logs it, such as `AllReduce`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::AllGather => "AllGather",
            Operation::AllReduce => "AllReduce",
            Operation::AlltoAll => "AlltoAll",
            Operation::Broadcast => "Broadcast",
            Operation::Gather => "Gather",
            Operation::PutSignal => "PutSignal",
            Operation::Recv => "Recv",
            Operation::Reduce => "Reduce",
            Operation::ReduceScatter => "ReduceScatter",
            Operation::Scatter => "Scatter",
            Operation::Send => "Send",
            Operation::Signal => "Signal",
            Operation::WaitSignal => "WaitSignal",
        }
    }

    /// Whether each rank of the communicator makes the same call.
    pub fn is_collective(self) -> bool {
        !matches!(
            self,
            Operation::PutSignal
                | Operation::Recv
                | Operation::Send
                | Operation::Signal
                | Operation::WaitSignal
        )
    }

    /// Whether the count is that of one peer out of all: the bytes of a line are then a part of what the call moves.
    pub fn counts_one_peer(self) -> bool {
        matches!(
            self,
            Operation::AllGather
                | Operation::AlltoAll
                | Operation::Gather
                | Operation::ReduceScatter
                | Operation::Scatter
        )
    }
}

/// One line of a call, with its numbers as they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub operation: Operation,
    /// Of the communicator; in hexadecimal in the log.
    pub op_count: u64,
    pub send_buffer: u64,
    pub receive_buffer: u64,
    pub count: u64,
    pub datatype: u64,
    pub redop: u64,
    /// The peer, of a send or a receive.
    pub root: u64,
    pub comm: u64,
    pub nranks: u64,
    pub stream: u64,
}

impl Call {
    /// Nothing for a type whose size is not known, and beyond 64 bits.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.count.checked_mul(type_bytes(self.datatype)?)
    }
}

/// Bytes of one element, by the number of its type.
pub fn type_bytes(datatype: u64) -> Option<u64> {
    match datatype {
        0 | 1 | 10 | 11 => Some(1),
        6 | 9 => Some(2),
        2 | 3 | 7 => Some(4),
        4 | 5 | 8 => Some(8),
        _ => None,
    }
}

/// What a type is called, by its number.
pub fn type_name(datatype: u64) -> Option<&'static str> {
    const NAMES: [&str; 12] = [
        "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16",
        "fp8_e4m3", "fp8_e5m2",
    ];
    NAMES.get(usize::try_from(datatype).ok()?).copied()
}

/// Why a line of a call is none that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoCall<'a> {
    /// Of an operation that is not known.
    Unknown(&'a str),
    Garbled(&'static str),
}

/// Nothing where the line is of no call.
pub(super) fn parse(text: &str) -> Option<Result<Call, NoCall<'_>>> {
    let (name, rest) = text.split_once(": opCount")?;
    // Behind a space it is prose, or what another line broke into.
    if name.is_empty() || name.contains(' ') {
        return None;
    }
    let Some(operation) = OPERATIONS.into_iter().find(|operation| operation.name() == name) else {
        return Some(Err(NoCall::Unknown(name)));
    };
    Some(fields(operation, rest).map_err(NoCall::Garbled))
}

fn fields(operation: Operation, rest: &str) -> Result<Call, &'static str> {
    let mut words = Words(rest);
    let op_count = words.next().and_then(hex).ok_or("opCount")?;
    let send_buffer = field(&mut words, "sendbuff").and_then(pointer).ok_or("sendbuff")?;
    let receive_buffer = field(&mut words, "recvbuff").and_then(pointer).ok_or("recvbuff")?;
    let count = field(&mut words, "count").and_then(count).ok_or("count")?;
    let datatype = field(&mut words, "datatype").and_then(whole).ok_or("datatype")?;
    let redop = field(&mut words, "op").and_then(whole).ok_or("op")?;
    let root = field(&mut words, "root").and_then(whole).ok_or("root")?;
    let comm = field(&mut words, "comm").and_then(pointer).ok_or("comm")?;
    let nranks = words.next().and_then(|word| word.strip_prefix("[nranks=")?.strip_suffix(']'));
    let nranks = nranks.and_then(whole).ok_or("nranks")?;
    let stream = field(&mut words, "stream").and_then(pointer).ok_or("stream")?;
    Ok(Call {
        operation,
        op_count,
        send_buffer,
        receive_buffer,
        count,
        datatype,
        redop,
        root,
        comm,
        nranks,
        stream,
    })
}

/// What stands behind a label. Forks and later versions write fields of their own between those that are known, such as
/// `acc 0x7f`: one of them may stand before it.
fn field<'a>(words: &mut Words<'a>, label: &str) -> Option<&'a str> {
    if let Some(word) = words.labelled(label) {
        return Some(word);
    }
    let mut ahead = *words;
    let (name, value) = (ahead.next()?, ahead.next()?);
    let is_field =
        name.bytes().all(|byte| byte.is_ascii_lowercase()) && pointer(value).or(whole(value)).is_some();
    let word = is_field.then(|| ahead.labelled(label))??;
    *words = ahead;
    Some(word)
}

/// The same for a line that is plainly a call, which nearly all are: one pass over its bytes. Nothing where it takes a
/// second look.
pub(super) fn quick(text: &str) -> Option<Call> {
    let bytes = text.as_bytes();
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    let name = bytes.get(..colon)?;
    let operation = OPERATIONS.into_iter().find(|operation| operation.name().as_bytes() == name)?;
    let mut rest = Bytes(bytes.get(colon..)?);
    let op_count = rest.labelled(b": opCount ", Bytes::hex)?;
    let send_buffer = rest.labelled(b" sendbuff ", Bytes::pointer)?;
    let receive_buffer = rest.labelled(b" recvbuff ", Bytes::pointer)?;
    let count = rest.labelled(b" count ", Bytes::whole)?;
    let datatype = rest.labelled(b" datatype ", Bytes::whole)?;
    let redop = rest.labelled(b" op ", Bytes::whole)?;
    let root = rest.labelled(b" root ", Bytes::whole)?;
    let comm = rest.labelled(b" comm ", Bytes::pointer)?;
    let nranks = rest.labelled(b" [nranks=", Bytes::whole)?;
    let stream = rest.labelled(b"] stream ", Bytes::pointer)?;
    // Behind it only a word of its own may stand.
    rest.0.first().is_none_or(|byte| *byte == b' ').then_some(Call {
        operation,
        op_count,
        send_buffer,
        receive_buffer,
        count,
        datatype,
        redop,
        root,
        comm,
        nranks,
        stream,
    })
}

/// The unread rest of a line.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn labelled(&mut self, label: &[u8], value: impl Fn(&mut Self) -> Option<u64>) -> Option<u64> {
        self.0 = self.0.strip_prefix(label)?;
        value(self)
    }

    /// Eighteen digits always fit; longer ones take a second look.
    fn whole(&mut self) -> Option<u64> {
        let (mut value, mut digits) = (0_u64, 0);
        while let [byte, rest @ ..] = self.0
            && byte.is_ascii_digit()
        {
            if digits == 18 {
                return None;
            }
            value = value * 10 + u64::from(byte - b'0');
            (self.0, digits) = (rest, digits + 1);
        }
        (digits > 0).then_some(value)
    }

    fn hex(&mut self) -> Option<u64> {
        let (mut value, mut digits) = (0_u64, 0);
        while let [byte, rest @ ..] = self.0 {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => break,
            };
            if digits == 16 {
                return None;
            }
            value = value << 4 | u64::from(digit);
            (self.0, digits) = (rest, digits + 1);
        }
        (digits > 0).then_some(value)
    }

    fn pointer(&mut self) -> Option<u64> {
        match self.0.strip_prefix(b"0x") {
            Some(rest) => {
                self.0 = rest;
                self.hex()
            }
            None => {
                self.0 = self.0.strip_prefix(b"(nil)")?;
                Some(0)
            }
        }
    }
}

/// Up to 2.21 a count was printed with a sign, beyond 2^63 as less than nothing: the bits are the same.
fn count(text: &str) -> Option<u64> {
    match text.strip_prefix('-') {
        Some(_) => text.parse::<i64>().ok().map(i64::cast_unsigned),
        None => whole(text),
    }
}
