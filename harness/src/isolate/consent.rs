//! Whether the user agrees to what `--drain` would do: asked at a terminal, by `--yes` elsewhere.

use cluster::drain::Wanted;
use cluster::interrupt;
use std::io::{self, BufRead, IsTerminal};

/// Shows what would be drained and asks for it; the error is the message where the user did not agree. `command` drains
/// without asking.
pub(crate) fn ask(wanted: &[Wanted], command: &str) -> Result<(), String> {
    let list = wanted.iter().map(|wanted| format!("would drain {}: {}", wanted.node, wanted.reason));
    let list = list.collect::<Vec<_>>().join("\n");
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(format!("{list}\nnothing is drained: `--yes` is needed without a terminal: {command}"));
    }
    let nodes = if wanted.len() == 1 { "this node" } else { "these nodes" };
    eprint!("{list}\ndrain {nodes}? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    let agrees = ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str());
    match read {
        Ok(_) if agrees && interrupt::asked().is_none() => Ok(()),
        _ => Err("nothing is drained: not confirmed".to_owned()),
    }
}
