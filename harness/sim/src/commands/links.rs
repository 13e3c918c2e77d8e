//! A simulated `links.sh`: messages of fi_pingpong between the NICs of two nodes, or of one, and TCP of iperf3, by their
//! faults.

use super::{CommandCall, CommandOutput};
use crate::noise;
use model::fault::Fault;
use serde_json::json;

/// What a small message takes on a sound fabric, and what large ones move.
const LATENCY_US: f64 = 12.0;
const BYTES_PER_US: f64 = 9_000.0;

/// What TCP moves over all streams.
const TCP_GB_S: f64 = 4.0;

/// The arguments behind the script's name.
struct Arguments<'a> {
    server: usize,
    client: usize,
    iterations: f64,
    bytes: Vec<f64>,
    limit_s: &'a str,
    devices: &'a [String],
}

pub(super) fn run(call: &CommandCall<'_>) -> CommandOutput {
    let Some(asked) = read(call) else {
        let stderr = format!("links.sh: wrong arguments\n{}", call.exits(2));
        return CommandOutput { stderr, code: 2, ..CommandOutput::default() };
    };
    let (text, seconds) = match call.arguments().get(1).map(String::as_str) {
        Some("tcp") => tcp(call, &asked),
        _ => messages(call, &asked),
    };
    let of_node = |at: usize| match at == asked.client {
        true => text.clone(),
        false => format!("server {}\n", call.nodes[at]),
    };
    let stdout = (0..call.nodes.len()).map(of_node).collect();
    CommandOutput { stdout, seconds, ..CommandOutput::default() }
}

/// As iperf 3.12 prints it, without its intervals.
fn tcp(call: &CommandCall<'_>, asked: &Arguments<'_>) -> (String, f64) {
    let of_fault = |fault: &Fault| match fault {
        Fault::TcpSlow { left } => Some(*left),
        _ => None,
    };
    let ends = [asked.server, asked.client];
    let faults = ends.iter().flat_map(|node| call.active_faults.tool_faults(*node));
    let left = faults.filter_map(of_fault).fold(1.0, f64::min);
    let mut draws =
        noise::stream(call.cluster.seed, &["tcp", &call.nodes[asked.server], &call.nodes[asked.client]]);
    let (rate, seconds) = (TCP_GB_S * left * draws.factor(0.02), asked.iterations);
    let sum = json!({"start": 0, "end": seconds, "seconds": seconds, "bytes": (rate * seconds * 1e9).round(),
                     "bits_per_second": rate * 8e9});
    let document = json!({
        "start": {"version": "iperf 3.12", "test_start": {"protocol": "TCP"}},
        "intervals": [],
        "end": {"sum_sent": sum, "sum_received": sum},
    });
    (format!("{document:#}\n"), seconds + 1.0)
}

/// Of each device and size, one after the other.
fn messages(call: &CommandCall<'_>, asked: &Arguments<'_>) -> (String, f64) {
    let (mut text, mut seconds) = (String::new(), 2.0);
    for device in asked.devices {
        for bytes in &asked.bytes {
            let Some(us) = message_us(call, asked, device, *bytes) else {
                let limit = asked.limit_s;
                text += &format!(
                    "not-connected {device} no answer in {limit} s, attempts: 1, last status: 124\n"
                );
                seconds += limit.parse::<f64>().unwrap_or(0.0);
                continue;
            };
            text += &format!("device {device}\n{}", table(*bytes, asked.iterations, us));
            seconds += 0.5 + 2.0 * asked.iterations * us / 1e6;
        }
    }
    (text, seconds)
}

fn read<'a>(call: &'a CommandCall<'_>) -> Option<Arguments<'a>> {
    let [_, _, _, server, client, _, iterations, bytes, limit_s, devices @ ..] = call.arguments() else {
        return None;
    };
    let place = |name: &String| call.nodes.iter().position(|node| node == name);
    let bytes: Result<Vec<f64>, _> = bytes.split(',').map(str::parse).collect();
    Some(Arguments {
        server: place(server)?,
        client: place(client)?,
        iterations: iterations.parse().ok()?,
        bytes: bytes.ok()?,
        limit_s,
        devices,
    })
}

/// From one end to the other; nothing where either end carries nothing.
fn message_us(call: &CommandCall<'_>, asked: &Arguments<'_>, device: &str, bytes: f64) -> Option<f64> {
    let nic = call.cluster.nics.iter().position(|nic| nic == device)?;
    let (mut left, mut late_us) = (1.0f64, 0.0f64);
    for node in [asked.server, asked.client] {
        left = left.min(call.active_faults.nic_left(node, nic)?);
        let late = call.active_faults.tool_faults(node).filter_map(|fault| match fault {
            Fault::NicLate { ms, device: which } if which == device => Some(ms * 1000.0),
            _ => None,
        });
        late_us = late.fold(late_us, f64::max);
    }
    let ends = [&call.nodes[asked.server], &call.nodes[asked.client]];
    let size = bytes.to_string();
    let mut draws = noise::stream(call.cluster.seed, &["links", ends[0], ends[1], device, &size]);
    Some((LATENCY_US + bytes / BYTES_PER_US / left) * draws.factor(0.02) + late_us)
}

/// As fi_pingpong of libfabric 1.22 prints it.
fn table(bytes: f64, iterations: f64, us: f64) -> String {
    let (size, count) = (scaled(bytes, 1024.0), scaled(iterations, 1000.0));
    let total = scaled(2.0 * bytes * iterations, 1024.0);
    let seconds = 2.0 * iterations * us / 1e6;
    format!(
        "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
         {size:<8}{count:<8}={count:<8}{total:<12}{seconds:.2}s{:>10.2}{us:>11.2}{:>11.2}\n",
        bytes / us,
        1.0 / us
    )
}

fn scaled(number: f64, base: f64) -> String {
    let units = ["", "k", "m", "g"];
    let (mut number, mut at) = (number, 0);
    while number >= base && at + 1 < units.len() {
        (number, at) = (number / base, at + 1);
    }
    format!("{:.0}{}", number.floor(), units[at])
}
