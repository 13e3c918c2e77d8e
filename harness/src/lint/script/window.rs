//! The rule about windows of steps: those that never open, and those that never close because the training ends before.

use super::resolve::Values;
use super::shell::Word;
use super::{Read, Told};

pub(super) fn rule(file: &Read, _: &[Read], told: &mut Told) {
    let values = Values::of(&file.script);
    for command in file.script.commands.iter().filter(|command| command.list.is_none()) {
        look(&values.resolved(command), told);
    }
}

/// How the programs count that are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The samples of FSDP leave their loop at the last step before they look for the end of the window.
    Samples,
    /// NeMo counts from 0.
    Nemo,
    /// Megatron counts from 1.
    Megatron,
}

#[derive(Default)]
struct Asked<'a> {
    first: Option<(By, u64, &'a Word)>,
    last: Option<(By, u64, &'a Word)>,
    steps: Option<u64>,
}

fn look(words: &[Word], told: &mut Told) {
    let mut asked = Asked::default();
    for (at, word) in words.iter().enumerate() {
        let (key, value) = match word.text.split_once('=') {
            Some((key, value)) => (key, value),
            None => {
                (word.text.as_str(), words.get(at + 1).map(|word| word.text.as_str()).unwrap_or_default())
            }
        };
        let Ok(value) = value.parse::<u64>() else { continue };
        let key = key.trim_start_matches(['-', '+', '~']).replace('-', "_");
        match key.as_str() {
            "max_steps" | "train_iters" => asked.steps = Some(value),
            "nsys_start_step" => asked.first = Some((By::Samples, value, word)),
            "nsys_end_step" | "nsys_stop_step" => asked.last = Some((By::Samples, value, word)),
            "profile_step_start" => asked.first = Some((By::Megatron, value, word)),
            "profile_step_end" => asked.last = Some((By::Megatron, value, word)),
            _ if key.ends_with(".max_steps") => asked.steps = Some(value),
            _ if key.ends_with("nsys_profile.start_step") => asked.first = Some((By::Nemo, value, word)),
            _ if key.ends_with("nsys_profile.end_step") => asked.last = Some((By::Nemo, value, word)),
            _ => {}
        }
    }
    tell(&asked, told);
}

fn tell(asked: &Asked, told: &mut Told) {
    match (asked.first, asked.last) {
        (Some((_, first, _)), Some((_, last, word))) if last < first => {
            let message = format!("the window ends at step {last}, before it begins: {first}");
            return told.wrong(word, message, "write the smaller step first");
        }
        (Some((.., word)), None) => {
            told.warn(
                word,
                "a window that begins at a step, and ends with the training",
                "say its last step, too",
            );
        }
        (None, Some((.., word))) => {
            told.warn(
                word,
                "a window that ends at a step, and is said to begin at none",
                "say its first step, too",
            );
        }
        _ => {}
    }
    let Some(steps) = asked.steps.filter(|steps| *steps > 0) else { return };
    // The last step that the program comes to.
    let end = |by: By| match by {
        By::Samples | By::Nemo => steps - 1,
        By::Megatron => steps,
    };
    if let Some((by, first, word)) = asked.first
        && first > end(by)
    {
        let message = format!(
            "the window begins at step {first}, and the last of {steps} steps is {}: it never opens",
            end(by)
        );
        return told.wrong(word, message, "begin earlier, or train longer");
    }
    let Some((by, last, word)) = asked.last else { return };
    let reached = match by {
        By::Samples => steps.saturating_sub(2),
        By::Nemo | By::Megatron => end(by),
    };
    if last > reached {
        let why = match by {
            By::Samples => "the program leaves its loop at the last step before it looks for the end",
            By::Nemo | By::Megatron => "the training is over before",
        };
        let message = format!("the window ends at step {last} of {steps}: {why}, so that it never closes");
        told.wrong(word, message, &format!("end it at {reached} or before, or train longer"));
    }
}
