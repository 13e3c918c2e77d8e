//! The functions of NCCL that move data, what the size in their payloads counts, and their reduction operations.

use metric::op::Op;
use serde::{Deserialize, Serialize};
use std::fmt;

/// By the name of the C function without `nccl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Function {
    /// `ncclAllReduce`: every rank gets the reduced data of all.
    AllReduce,
    /// `ncclAllGather`: every rank gets the data of all.
    AllGather,
    /// `ncclReduceScatter`: every rank gets its part of the reduced data.
    ReduceScatter,
    /// `ncclBroadcast`: every rank gets the root's data.
    Broadcast,
    /// `ncclReduce`: the root gets the reduced data of all.
    Reduce,
    /// `ncclAlltoAll`: every rank sends another part to every rank.
    AllToAll,
    /// `ncclGather`: the root gets the data of all.
    Gather,
    /// `ncclScatter`: every rank gets its part of the root's data.
    Scatter,
    /// `ncclSend`: to one peer.
    Send,
    /// `ncclRecv`: from one peer.
    Recv,
    /// `ncclPutSignal`: one-sided; no operation of nccl-tests.
    PutSignal,
    /// `ncclSignal`: one-sided; no operation of nccl-tests.
    Signal,
    /// `ncclWaitSignal`: one-sided; no operation of nccl-tests.
    WaitSignal,
}

impl Function {
    /// Every function, in the order of declaration.
    pub(crate) const ALL: [Function; 13] = [
        Function::AllReduce,
        Function::AllGather,
        Function::ReduceScatter,
        Function::Broadcast,
        Function::Reduce,
        Function::AllToAll,
        Function::Gather,
        Function::Scatter,
        Function::Send,
        Function::Recv,
        Function::PutSignal,
        Function::Signal,
        Function::WaitSignal,
    ];

    /// The name of the C function, as ranges have it.
    pub fn name(self) -> &'static str {
        match self {
            Function::AllReduce => "ncclAllReduce",
            Function::AllGather => "ncclAllGather",
            Function::ReduceScatter => "ncclReduceScatter",
            Function::Broadcast => "ncclBroadcast",
            Function::Reduce => "ncclReduce",
            Function::AllToAll => "ncclAlltoAll",
            Function::Gather => "ncclGather",
            Function::Scatter => "ncclScatter",
            Function::Send => "ncclSend",
            Function::Recv => "ncclRecv",
            Function::PutSignal => "ncclPutSignal",
            Function::Signal => "ncclSignal",
            Function::WaitSignal => "ncclWaitSignal",
        }
    }

    /// From the C name, such as `ncclAllReduce`; `None` for any other, such as `ncclGroupEnd`.
    pub fn from_name(name: &str) -> Option<Function> {
        Function::ALL.into_iter().find(|function| function.name() == name)
    }

    /// Which operation of nccl-tests it is by its traffic; one side of a pair of ranks counts as such a pair.
    pub fn op(self) -> Option<Op> {
        Some(match self {
            Function::AllReduce => Op::AllReduce,
            Function::AllGather => Op::AllGather,
            Function::ReduceScatter => Op::ReduceScatter,
            Function::Broadcast => Op::Broadcast,
            Function::Reduce => Op::Reduce,
            Function::AllToAll => Op::AllToAll,
            Function::Gather => Op::Gather,
            Function::Scatter => Op::Scatter,
            Function::Send | Function::Recv => Op::SendRecv,
            Function::PutSignal | Function::Signal | Function::WaitSignal => return None,
        })
    }

    /// Whether a size in its payload is the part of one rank or one peer, and not the whole message.
    pub(crate) fn counts_a_part(self) -> bool {
        use Function::*;
        matches!(self, AllGather | ReduceScatter | AllToAll | Gather | Scatter)
    }

    /// The whole message: what nccl-tests calls the size. Not known without the number of ranks where a payload counts a
    /// part of it.
    pub fn total_bytes(self, bytes: u64, ranks: Option<u32>) -> Option<u64> {
        match self.counts_a_part() {
            true => bytes.checked_mul(u64::from(ranks?)),
            false => Some(bytes),
        }
    }

    /// What each rank has to send and receive at least for a message of so many bytes in all: the size times the factor
    /// of the bus bandwidth.
    pub fn wire_bytes(self, total: u64, ranks: Option<u32>) -> Option<f64> {
        Some(total as f64 * self.op()?.bus_factor(ranks?))
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a reduction does with two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reduction {
    /// `ncclSum`, number 0.
    Sum,
    /// `ncclProd`, number 1.
    Product,
    /// `ncclMax`, number 2.
    Max,
    /// `ncclMin`, number 3.
    Min,
    /// `ncclAvg`, number 4.
    Avg,
    /// Made by the program.
    Own(u32),
}

impl Reduction {
    /// From the number of an `ncclRedOp_t`; from 5 on it is `Own`.
    pub(crate) fn from_number(number: u32) -> Reduction {
        match number {
            0 => Reduction::Sum,
            1 => Reduction::Product,
            2 => Reduction::Max,
            3 => Reduction::Min,
            4 => Reduction::Avg,
            own => Reduction::Own(own),
        }
    }

    /// As payloads spell it; a number stands for what it counts.
    pub(crate) fn from_word(word: &str) -> Option<Reduction> {
        Some(match word {
            "Sum" => Reduction::Sum,
            "Product" | "Prod" => Reduction::Product,
            "Max" => Reduction::Max,
            "Min" => Reduction::Min,
            "Avg" => Reduction::Avg,
            number => Reduction::from_number(number.parse().ok()?),
        })
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reduction::Sum => f.write_str("Sum"),
            Reduction::Product => f.write_str("Product"),
            Reduction::Max => f.write_str("Max"),
            Reduction::Min => f.write_str("Min"),
            Reduction::Avg => f.write_str("Avg"),
            Reduction::Own(number) => write!(f, "Own {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_functions() {
        for function in Function::ALL {
            assert_eq!(Function::from_name(function.name()), Some(function));
        }
        assert_eq!(Function::from_name("ncclGroupEnd"), None);
    }

    #[test]
    fn a_size_per_rank_or_peer_differs_from_a_total() {
        for function in Function::ALL {
            let part = matches!(function.name(), "ncclAllGather" | "ncclReduceScatter" | "ncclAlltoAll")
                || matches!(function, Function::Gather | Function::Scatter);
            let total = function.total_bytes(100, Some(8));
            assert_eq!(total, Some(if part { 800 } else { 100 }), "{function}");
            assert_eq!(function.total_bytes(100, None), if part { None } else { Some(100) });
        }
        assert_eq!(Function::AllGather.total_bytes(u64::MAX, Some(2)), None);
    }

    #[test]
    fn bus_bandwidth_is_that_of_nccl_tests() {
        let wire = Function::AllReduce.wire_bytes(1 << 30, Some(16)).expect("known");
        let published = wire / 4_607_600.0;
        assert!((published - 436.95).abs() < 0.01, "{published}");
        assert_eq!(Function::AllReduce.wire_bytes(1, None), None);
        assert_eq!(Function::Signal.wire_bytes(1, Some(2)), None);
    }
}
