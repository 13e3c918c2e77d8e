//! The mean time and throughput of some iterations, as the awk script of 2025 that people use for it prints them: every
//! line that has both counts, whichever rank's it is, and nothing shows how far they differ.

use super::numbers::after;
use crate::stream::Pieces;
use std::fmt::Write as _;
use std::io::{self, BufRead};

/// The iterations that the script knows.
pub const ITERATIONS: (u64, u64) = (45, 49);

/// What the script prints for iterations from `first` to `last`.
pub fn mean_of_steps(from: impl BufRead, (first, last): (u64, u64)) -> io::Result<String> {
    let mut pieces = Pieces::new(from);
    let (mut n, mut seconds, mut tflops) = (0_u64, 0.0, 0.0);
    while let Some(piece) = pieces.next_piece()? {
        let text = piece.text.as_str();
        let Some(iteration) = iteration(text) else { continue };
        if !(first..=last).contains(&iteration) {
            continue;
        }
        let value =
            |label: &str| after(text, label).and_then(|rest| Some(leading(rest.split_whitespace().next()?)));
        if let (Some(time), Some(rate)) = (value("train_step_timing in s:"), value("TFLOPS_per_GPU:")) {
            n += 1;
            seconds += time;
            tflops += rate;
        }
    }
    let mut text = String::new();
    // Writing into a text cannot fail.
    let _ = match n {
        0 => writeln!(text, "No matching iterations found in range {first}-{last}"),
        _ => {
            let n_f = n as f64;
            writeln!(text, "Steps: {n} (iterations {first}-{last})")
                .and_then(|()| writeln!(text, "Average train_step_timing (s): {:.6}", seconds / n_f))
                .and_then(|()| writeln!(text, "Average TFLOPS_per_GPU:        {:.6}", tflops / n_f))
        }
    };
    Ok(text)
}

/// Of a line of a training epoch: what stands before the slash in the word after `iteration`.
fn iteration(text: &str) -> Option<u64> {
    if !text.contains("Training epoch") {
        return None;
    }
    let mut words = text.split_whitespace().skip_while(|word| *word != "iteration");
    words.nth(1)?.split('/').next()?.parse().ok()
}

/// A number as awk takes it: as far as it goes, and else 0.
fn leading(word: &str) -> f64 {
    let word = word.trim_matches('|');
    let ends = (1..=word.len()).rev().filter(|end| word.is_char_boundary(*end));
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    ends.map(|end| &word[..end]).find_map(|text| text.parse().ok().filter(|_| plain(text))).unwrap_or(0.0)
}
