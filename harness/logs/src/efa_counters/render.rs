//! A capture as text, in the form that the sampler writes: what a simulated node leaves behind is read like the rest.

use super::escapes::{escape, with_places};
use super::{Capture, Clock};
use std::fmt::Write;

/// The text that `read` reads back, whose first line is `harness-counters 1`.
pub fn render(capture: &Capture) -> String {
    let mut text = String::from("harness-counters 1\n");
    let mut line = |words: std::fmt::Arguments| {
        // Infallible: writing to a string.
        let _ = text.write_fmt(words);
        text.push('\n');
    };
    line(format_args!("node {}", escape(&capture.node)));
    line(format_args!("root {}", escape(&capture.root)));
    line(format_args!("interval_s {}", with_places(capture.interval_cs, 2)));
    let columns: String = capture.columns.iter().map(|column| format!(" {}", escape(column))).collect();
    line(format_args!("columns{columns}"));
    line(format_args!("begin {}", clock(capture.begin)));
    let names: Vec<String> = capture.devices.iter().map(|device| escape(&device.name)).collect();
    for (device, name) in capture.devices.iter().zip(&names) {
        let lifespan = device.lifespan_ms.map_or("-".to_owned(), |ms| ms.to_string());
        line(format_args!("device {name} lifespan_ms={lifespan}"));
    }
    for path in &capture.unreadable {
        line(format_args!("unreadable {}", escape(path)));
    }
    for missing in &capture.missing {
        line(format_args!("missing {} {}", escape(&missing.device), escape(&missing.counter)));
    }
    for bad in &capture.bad {
        line(format_args!("bad {} {} {}", escape(&bad.device), escape(&bad.counter), escape(&bad.text)));
    }
    for phase in &capture.not_quiet {
        line(format_args!("not-quiet {}", phase.name()));
    }
    for reading in &capture.readings {
        // A reading of no device cannot be written, and could not be read.
        let Some(name) = names.get(reading.device) else { continue };
        let mut values = String::with_capacity(reading.values.len() * 12);
        for value in &reading.values {
            let _ = match value {
                Some(value) => write!(values, " {value}"),
                None => write!(values, " -"),
            };
        }
        line(format_args!("{} {} {name}{values}", reading.phase.name(), with_places(reading.uptime_cs, 2)));
    }
    if let Some(end) = &capture.end {
        let cost = with_places(end.cost_ms, 3);
        line(format_args!("end {} cost_s={cost} reason={}", clock(end.clock), end.reason.name()));
    }
    text
}

fn clock(clock: Clock) -> String {
    format!("wall={} uptime={}", with_places(clock.wall_us, 6), with_places(clock.uptime_cs, 2))
}
