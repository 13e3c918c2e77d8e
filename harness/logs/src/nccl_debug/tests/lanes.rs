//! A stream gives the same result however it is cut into chunks; and memory stays bounded for an endless log.

use super::super::{EDGES, NcclLog, Reader};
use super::{begun, called, line};
use proptest::prelude::*;
use std::io::Cursor;

fn read(text: &[u8], chunk: usize) -> NcclLog {
    let mut reader = Reader::new(&EDGES);
    reader.chunk = chunk;
    reader.read(Cursor::new(text.to_vec()), "log").expect("a log in memory");
    reader.finish()
}

/// Lines of all kinds, with stamps and labels, and some that are torn.
fn some(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut text: String = (0..4).map(|rank| begun(rank, 4)).collect();
    for at in 0..60 + draw(60) {
        let rank = draw(4);
        let call =
            called(rank, 4, ["AllReduce", "Send", "AllShuffle"][draw(3) as usize], draw(1 << 40), draw(4));
        text += &match draw(12) {
            0 => format!("0: [2025-01-31 12:00:{:02}] {call}", draw(60)),
            1 => format!("[1,0]<stdout>:{call}"),
            2 => format!("\x1b[32m{call}"),
            3 => call.replace('\n', "\r\n"),
            4 => call.trim_end().to_owned() + &called(1, 4, "Reduce", 8, 0),
            5 => format!("Training epoch 0, iteration {at}/99 | lr: 0.1 | train_step_timing in s: 2.5\n"),
            6 => "10%\r20%\rloss\n\n".to_owned(),
            7 => call.replace(" datatype", "\n"),
            8 => line(rank, "NVLS multicast support is available on dev 0"),
            9 => format!("[12:00:{:02}] {call}", draw(60)),
            _ => call,
        };
    }
    text.truncate(text.len() - draw(200) as usize);
    text.into_bytes()
}

proptest! {
    #[test]
    fn chunks_of_any_size_are_read_like_one(seed in any::<u64>(), chunk in 700..4000_usize) {
        let text = some(seed);
        prop_assert_eq!(read(&text, chunk), read(&text, 1 << 20));
    }

    /// A carriage return before each line end bypasses the fast parser: both give the same result.
    #[test]
    fn both_readers_of_a_line_agree(seed in any::<u64>()) {
        let text = String::from_utf8(some(seed)).expect("text").replace('\r', "\n");
        let slow = text.replace('\n', "\r\n");
        let (quick, slow) = (read(text.as_bytes(), 1 << 20), read(slow.as_bytes(), 1 << 20));
        // A line that is cut has an end there.
        let but_for_ends = |mut log: NcclLog| {
            log.findings.iter_mut().for_each(|it| it.message = it.message.replace("; the file ends mid-line", ""));
            log
        };
        prop_assert_eq!(but_for_ends(quick), but_for_ends(slow));
    }
}

/// As many communicators as a program that never lets go of one would make, in small: what is kept does not grow with
/// them, and none of their calls is lost.
#[test]
fn communicators_without_end_are_counted_in_bounded_memory() {
    struct Endless {
        left: u64,
        buffer: Cursor<Vec<u8>>,
    }
    impl std::io::Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            loop {
                let bytes = self.buffer.read(into)?;
                if bytes > 0 || self.left == 0 {
                    return Ok(bytes);
                }
                self.left -= 1;
                let id = self.left;
                let text = format!(
                    "a:1:2 [0] NCCL INFO ncclCommInitRank comm 0x5{id:x} rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1 commId 0x{id:x} - Init \
                     COMPLETE\na:1:2 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm \
                     0x5{id:x} [nranks=1] stream 0x5\n"
                );
                self.buffer = Cursor::new(text.into_bytes());
            }
        }
    }
    const MANY: u64 = 300_000;
    let mut reader = Reader::new(&EDGES);
    let endless = Endless { left: MANY, buffer: Cursor::new(Vec::new()) };
    reader.read(std::io::BufReader::new(endless), "log").expect("a log in memory");
    assert!(reader.tally.communicators.handles_held() <= 1 << 17);
    let log = reader.finish();
    assert_eq!((log.communicators.len(), log.operations[0].calls), (4096, MANY));
    assert_eq!(log.communicators.len() as u64 + log.communicators_beyond, MANY);
    let findings: Vec<_> = log.findings.iter().map(|it| (it.code.as_str(), it.message.as_str())).collect();
    let expected = "295904 communicators, by their ranks 0, beyond the first 4096 are not listed one by one";
    assert_eq!(findings, [("nccl-left-out", expected)]);
}
