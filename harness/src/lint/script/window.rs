//! The rule about windows of steps: those that never open, and those that never close because the training ends before.

use super::resolve::Values;
use super::shell::Word;
use super::{Diagnostics, ParsedFile};

pub(super) fn rule(file: &ParsedFile, _: &[ParsedFile], diagnostics: &mut Diagnostics) {
    let values = Values::from_script(&file.script);
    for command in file.script.commands.iter().filter(|command| command.list.is_none()) {
        read_window(&values.resolved(command), diagnostics);
    }
}

/// How the known programs count steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepCounting {
    /// The samples of FSDP leave their loop at the last step before they check for the end of the window.
    Samples,
    /// NeMo counts from 0.
    Nemo,
    /// Megatron counts from 1.
    Megatron,
}

#[derive(Default)]
struct StepWindow<'a> {
    first: Option<(StepCounting, u64, &'a Word)>,
    last: Option<(StepCounting, u64, &'a Word)>,
    steps: Option<u64>,
}

fn read_window(words: &[Word], diagnostics: &mut Diagnostics) {
    let mut window = StepWindow::default();
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
            "max_steps" | "train_iters" => window.steps = Some(value),
            "nsys_start_step" => window.first = Some((StepCounting::Samples, value, word)),
            "nsys_end_step" | "nsys_stop_step" => window.last = Some((StepCounting::Samples, value, word)),
            "profile_step_start" => window.first = Some((StepCounting::Megatron, value, word)),
            "profile_step_end" => window.last = Some((StepCounting::Megatron, value, word)),
            _ if key.ends_with(".max_steps") => window.steps = Some(value),
            _ if key.ends_with("nsys_profile.start_step") => {
                window.first = Some((StepCounting::Nemo, value, word))
            }
            _ if key.ends_with("nsys_profile.end_step") => {
                window.last = Some((StepCounting::Nemo, value, word))
            }
            _ => {}
        }
    }
    check(&window, diagnostics);
}

fn check(window: &StepWindow, diagnostics: &mut Diagnostics) {
    match (window.first, window.last) {
        (Some((_, first, _)), Some((_, last, word))) if last < first => {
            let message = format!("the window ends at step {last}, before it begins at step {first}");
            return diagnostics.error(word, message, "write the smaller step first");
        }
        (Some((.., word)), None) => {
            diagnostics.warn(
                word,
                "the window has no last step: it ends with the training",
                "add its last step",
            );
        }
        (None, Some((.., word))) => {
            diagnostics.warn(word, "the window has a last step, but no first step", "add its first step");
        }
        _ => {}
    }
    let Some(steps) = window.steps.filter(|steps| *steps > 0) else { return };
    // The last step that the program comes to.
    let end = |by: StepCounting| match by {
        StepCounting::Samples | StepCounting::Nemo => steps - 1,
        StepCounting::Megatron => steps,
    };
    if let Some((by, first, word)) = window.first
        && first > end(by)
    {
        let message = format!(
            "the window begins at step {first}, but the last of {steps} steps is {}: it never opens",
            end(by)
        );
        return diagnostics.error(word, message, "begin earlier, or train longer");
    }
    let Some((by, last, word)) = window.last else { return };
    let reached = match by {
        StepCounting::Samples => steps.saturating_sub(2),
        StepCounting::Nemo | StepCounting::Megatron => end(by),
    };
    if last > reached {
        let why = match by {
            StepCounting::Samples => {
                "the program leaves its loop at the last step before it checks for the end of the window"
            }
            StepCounting::Nemo | StepCounting::Megatron => "the training ends earlier",
        };
        let message = format!("the window ends at step {last} of {steps}: {why}, so it never closes");
        diagnostics.error(word, message, &format!("end it at {reached} or before, or train longer"));
    }
}
