//! What programs print that test one node by itself, its GPUs, its memory, its disks, or the NICs between two. One file for each program.

pub mod dcgm;
mod dcgm_table;
mod fabric_manager;
pub mod fio;
pub mod gpu_allocation;
pub mod gpu_burn;
mod gpu_query;
pub mod gpu_state;
pub mod host_state;
pub mod iperf3;
mod kernel;
mod kernel_firmware;
mod kernel_hardware;
mod labels;
pub mod nvbandwidth;
pub mod output;
pub mod pingpong;
pub mod stream;
pub mod stress;
#[cfg(test)]
mod tests;
mod topology;

use serde::de::DeserializeOwned;

/// Why an output has no result.
pub type NoResult = String;

/// The one JSON document of a text: programs print notes before it, and sometimes behind it. A second one may say
/// something else.
fn document<T: DeserializeOwned>(text: &str, program: &str) -> Result<T, NoResult> {
    let Some(from) = text.find('{') else {
        return Err(match last_line(text) {
            Some(line) => format!("{program} printed no JSON; its last line: {line}"),
            None => format!("{program} printed nothing"),
        });
    };
    let mut documents = serde_json::Deserializer::from_str(&text[from..]).into_iter::<T>();
    match documents.next() {
        Some(Ok(document)) => {
            let rest = text.get(from + documents.byte_offset()..).unwrap_or_default();
            match rest.lines().any(|line| line.trim_start().starts_with('{')) {
                true => Err(format!("{program} printed more than one JSON document: it ran more than once")),
                false => Ok(document),
            }
        }
        Some(Err(error)) if error.is_eof() => Err(format!("the JSON of {program} is cut off")),
        Some(Err(error)) => Err(format!("the JSON of {program} is not as expected: {error}")),
        None => Err(format!("{program} printed no JSON")),
    }
}

/// For a message: at most 200 characters.
fn last_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(cut)
}

/// The same of any text: a line may be as long as its file.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Whether two figures of the same thing agree, up to the digits that are printed.
fn agree(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.01 * one.abs().max(other.abs()) + 0.01
}
