//! Logs of trainings that are bad in one way each, with what comes of them; and logs that were changed at random.

use super::{
    AUTOMODEL, DIALECTS, FSDP, MEGATRON, NEMO_1, NEMO_2, TORCHTITAN, TRAINER, codes, megatron, rendered, run,
};
use crate::training_log::{TrainingLog, read};
use proptest::prelude::*;

fn log(bytes: &[u8]) -> TrainingLog {
    read(bytes).expect("a reader in memory")
}

/// What is wrong, the bytes, how many lines are of steps and how many of these cannot be read, how many series there
/// are, and what is reported.
type Row = (&'static str, Vec<u8>, (u64, u64, usize), &'static [&'static str]);

fn table() -> Vec<Row> {
    let whole = MEGATRON.trim_end();
    let cut = |at: &str| format!("{}\n", &whole[..whole.find(at).expect("there") + at.len()]);
    let padded = format!("{}{}\n", whole.trim_end_matches('|'), "| padding: 1 ".repeat(90));
    let cut_at_1023 = format!("{}\n{}", &padded[..1023], megatron(8, "1000.0", "2.5"));
    let clock = MEGATRON.replace("7/", "8/").replace("10:49:15", "10:49:05");
    let binary: Vec<u8> = (0..4096u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let later = MEGATRON.replace("7/", "8/");
    let interleaved = format!("{}{whole}\n{}\n", &whole[..60], &whole[60..]);
    vec![
        ("empty", Vec::new(), (0, 0, 0), &[]),
        ("binary", binary, (0, 0, 0), &[]),
        ("no line of a step", b"a line\nof prose about iteration 7\n".to_vec(), (0, 0, 0), &[]),
        ("half a line at the end", FSDP.trim_end().into(), (1, 1, 0), &["training-garbled"]),
        ("cut within a number", cut("lm loss: 1.2").into(), (1, 1, 0), &["training-garbled"]),
        ("cut before the time", cut("consumed samples:").into(), (1, 1, 0), &["training-garbled"]),
        // What stood in front of the cut is whole.
        ("cut at 1023 characters", cut_at_1023.into(), (2, 0, 1), &[]),
        ("two jobs", format!("{}{}", run(1..=3), run(1..=3)).into(), (6, 0, 2), &["training-begins-anew"]),
        ("clock going back", format!("{MEGATRON}{clock}").into(), (2, 0, 1), &["training-clock-back"]),
        ("NaN loss", megatron(1, "1.0", "nan").into(), (1, 0, 1), &["training-loss-not-finite"]),
        (
            "two meanings of a step",
            format!("{MEGATRON}{NEMO_1}\n").into(),
            (2, 0, 2),
            &["training-two-meanings"],
        ),
        ("two ranks in one line", interleaved.into(), (1, 1, 0), &["training-garbled"]),
        ("a gap", format!("{}{}", run(1..=3), run(9..=10)).into(), (5, 0, 1), &["training-gap"]),
        (
            "escapes and carriage returns",
            format!("\r\x1b[32m{whole}\x1b[0m\r\n{later}").into(),
            (2, 0, 1),
            &[],
        ),
        ("NUL bytes of a rotated log", format!("\0\0\0{MEGATRON}").into(), (1, 0, 1), &[]),
        ("epochs alone", b"Time taken for epoch 1 is 752.9 sec\n".to_vec(), (0, 0, 0), &[]),
    ]
}

#[test]
fn each_bad_log_has_its_outcome() {
    for (what, bytes, expected, reported) in table() {
        let log = log(&bytes);
        let found = (log.of_steps, log.garbled, log.series.len());
        assert_eq!((found, codes(&log).as_slice()), (expected, reported), "{what}: {log:?}");
    }
    assert_eq!(log(b"Time taken for epoch 1 is 752.9 sec\nEpoch 2: 3 sec\nsecond epoch\n").of_epochs, 2);
    let pax = b"I0411 15:03:26.866614 140737350317184 programs.py:366] [PAX STATUS]: train_step() took 7.47 seconds.\n";
    let pax = log(pax);
    assert_eq!((pax.of_pax, pax.of_steps), (1, 0));
}

#[test]
fn messages() {
    let all = table().into_iter().flat_map(|(_, bytes, ..)| log(&bytes).findings);
    let lines: Vec<String> = all.map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// Lines of every program, of ranks and of runs that begin again.
fn mixed() -> Vec<String> {
    let mut lines: Vec<String> = (1..=4).map(|at| megatron(at, "1000.0", "2.5")).collect();
    lines.extend(DIALECTS.iter().flat_map(|dialect| [10, 20].map(|at| rendered(*dialect, at, 2.5, 1.25))));
    lines.extend(
        [FSDP, AUTOMODEL, TORCHTITAN, TRAINER, NEMO_2, MEGATRON, NEMO_1].map(|line| format!("{line}\n")),
    );
    lines.extend((2..=3).map(|at| megatron(at, "1000.0", "nan")));
    lines.push("n1:7:8 [0] NCCL INFO AllReduce: opCount 1f iteration 3/ 9 |\n".to_owned());
    lines
}

proptest! {
    /// Lines taken out, doubled, swapped, cut, glued together and with bytes changed: whatever comes of it, no step
    /// counts that no line reported, and those of a series are in order, each once.
    #[test]
    fn a_log_that_was_changed_anywhere_reports_no_step_twice(edits in proptest::collection::vec((0..7u8, any::<u16>(), any::<u16>(), any::<u8>()), 1..12)) {
        let mut lines: Vec<Vec<u8>> = mixed().into_iter().map(String::into_bytes).collect();
        for (kind, one, two, byte) in edits {
            let (one, two) = (usize::from(one) % lines.len(), usize::from(two));
            match kind {
                0 => drop(lines.remove(one)),
                1 => { let line = lines[one].clone(); lines.insert(two % lines.len(), line) }
                2 => { let other = two % lines.len(); lines.swap(one, other) }
                3 => { let length = lines[one].len().max(1); lines[one].truncate(two % length) }
                4 => drop(lines[one].pop()),
                5 if !lines[one].is_empty() => { let at = two % lines[one].len(); lines[one][at] = byte }
                _ => { let at = two % (lines[one].len() + 1); lines[one].insert(at, byte) }
            }
            if lines.is_empty() { break }
        }
        let log = log(&lines.concat());
        prop_assert!(log.garbled <= log.of_steps, "{:?}", log);
        let mut reported = 0;
        for series in &log.series {
            prop_assert!(series.steps.windows(2).all(|pair| pair[0].place() < pair[1].place()), "{:?}", series);
            reported += series.steps.iter().map(|step| 1 + step.copies).sum::<u64>();
        }
        prop_assert!(reported + log.garbled <= log.of_steps, "{} reported: {:?}", reported, log);
    }
}
