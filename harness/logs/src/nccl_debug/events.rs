//! Events of NCCL's log one by one, for comparing each call with another record of it. Tables are made in `tally`.

use super::call::Call;
use super::line::{self, Said};
use super::setup::Stage;
use crate::nccl_prefix::Level;
use crate::stream::Pieces;
use crate::text::{without_escapes, without_tags};
use std::io::{self, BufRead};

/// One line that concerns calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// A call of one rank.
    Call {
        /// Empty where the line names none.
        host: &'a str,
        /// 0 where the line names no host.
        pid: u64,
        /// The numbers of the line.
        call: Call,
    },
    /// A rank joined a communicator.
    Rank {
        /// Empty where the line names none.
        host: &'a str,
        /// 0 where the line names no host.
        pid: u64,
        /// A pointer, the same as in `Call::comm` of this process.
        comm: u64,
        /// In the communicator, from 0.
        rank: u64,
        /// How many ranks the communicator has.
        nranks: u64,
        /// The same on all ranks; versions up to 2.17 log none.
        comm_id: Option<u64>,
    },
    /// By what calls of so many bytes are carried out.
    Choice {
        /// None up to NCCL 2.22, which does not log it.
        operation: Option<&'a str>,
        /// As in the line, before `Bytes ->`.
        bytes: u64,
        /// Algorithm and protocol, such as `RING SIMPLE`, or a kernel.
        by: String,
    },
    /// A call line that cannot be read.
    Garbled,
}

/// Calls `take` with each event, to the end of the stream.
pub fn for_each_event(from: impl BufRead, mut take: impl FnMut(&Event)) -> io::Result<()> {
    let mut pieces = Pieces::new(from);
    while let Some(piece) = pieces.next_piece()? {
        let text = without_escapes(&piece.text);
        let text = without_tags(&text);
        let Some(line) = line::split(&text).filter(|line| line.level == Level::Info) else { continue };
        let (host, pid) = (line.host, line.pid);
        match line::parse(line.text) {
            Ok(Said::Call(call)) => take(&Event::Call { host, pid, call }),
            Ok(Said::Setup(setup)) if matches!(setup.stage, Stage::InitStart | Stage::InitComplete) => {
                take(&Event::Rank {
                    host,
                    pid,
                    comm: setup.comm,
                    rank: setup.rank,
                    nranks: setup.nranks,
                    comm_id: setup.comm_id,
                });
            }
            Ok(Said::Choice(choice)) => {
                let by = choice.by.named();
                take(&Event::Choice { operation: choice.operation, bytes: choice.bytes, by });
            }
            Err(line::Unread::Call(_)) => take(&Event::Garbled),
            _ => {}
        }
    }
    Ok(())
}
