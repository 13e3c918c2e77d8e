//! Chunks of a stream parsed on all cores and taken in their order. A stream that fits into one chunk is parsed where
//! it is read.

use super::chunks::{Chunk, Chunks};
use super::quick::{self, Parsed};
use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// So many lanes at most: the reader that takes their chunks is one.
const MOST: usize = 8;
/// Chunks that wait in a lane.
const WAITING: usize = 2;

struct Lane {
    to: SyncSender<Chunk>,
    from: Receiver<Parsed>,
}

/// Hands each chunk to `take`, in the order of the stream. An error of the stream is given behind what was read before
/// it.
pub(super) fn each<R: BufRead>(chunks: &mut Chunks<R>, mut take: impl FnMut(Parsed)) -> io::Result<()> {
    let Some(first) = chunks.next()? else { return Ok(()) };
    let second = match chunks.next() {
        Ok(Some(second)) => second,
        end => {
            take(quick::parse(first));
            return end.map(|_| ());
        }
    };
    std::thread::scope(|scope| {
        let lanes: Vec<Lane> = (0..rayon::current_num_threads().clamp(1, MOST))
            .map(|_| {
                let (to, work) = sync_channel::<Chunk>(WAITING);
                let (done, from) = sync_channel::<Parsed>(WAITING);
                // It ends when the sender or the receiver is gone.
                scope.spawn(move || {
                    while let Ok(chunk) = work.recv()
                        && done.send(quick::parse(chunk)).is_ok()
                    {}
                });
                Lane { to, from }
            })
            .collect();
        let lane = |at: usize| lanes.get(at % lanes.len()).ok_or_else(gone);
        let mut waiting = [Some(second), Some(first)].into_iter().rev().flatten();
        let (mut sent, mut taken, mut end) = (0, 0, None);
        loop {
            while end.is_none() && sent < taken + WAITING * lanes.len() {
                match waiting.next().map_or_else(|| chunks.next(), |chunk| Ok(Some(chunk))) {
                    Ok(Some(chunk)) => {
                        lane(sent)?.to.send(chunk).map_err(|_| gone())?;
                        sent += 1;
                    }
                    Ok(None) => end = Some(Ok(())),
                    Err(error) => end = Some(Err(error)),
                }
            }
            if taken == sent {
                return end.unwrap_or(Ok(()));
            }
            take(lane(taken)?.from.recv().map_err(|_| gone())?);
            taken += 1;
        }
    })
}

fn gone() -> io::Error {
    io::Error::other("a thread that parses lines has ended")
}
