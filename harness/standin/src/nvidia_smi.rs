//! nvidia-smi: the list of GPUs, queries of single fields, and a table for people.

use super::place::ProcessPlace;
use super::print_line;
use super::state::State;
use model::fault::Fault;
use sim::noise;

const DRIVER: &str = "570.133.20-SIMULATED";
const OTHER_DRIVER: &str = "550.163.01-SIMULATED";

pub(crate) fn answer(state: &State, arguments: &[String]) -> i32 {
    let node = ProcessPlace::from_environment().map(|place| place.node).unwrap_or_default();
    let ails = |fault: Fault| state.ails(&node).contains(&fault);
    let gpus = (0..state.cluster.gpus).filter(|gpu| !ails(Fault::GpuMissing { gpu: *gpu }));
    let gpus: Vec<u32> = gpus.filter(|gpu| chosen(arguments, *gpu)).collect();
    let option = |name: &str| arguments.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    if arguments.iter().any(|word| word == "-L" || word == "--list-gpus") {
        for gpu in gpus {
            print_line(format!("GPU {gpu}: {} (UUID: {})", state.cluster.gpu_name, uuid(state, &node, gpu)));
        }
        return 0;
    }
    let format = option("--format").unwrap_or_default();
    if let Some(fields) = option("--query-compute-apps").or_else(|| option("--query-apps")) {
        if !format.contains("noheader") {
            print_line(fields.replace(',', ", "));
        }
        // Only faults make processes on GPUs.
        for gpu in gpus.iter().filter(|gpu| ails(Fault::GpuBusy { gpu: **gpu })) {
            let one = |field: &str| match field.trim() {
                "pid" => (4000 + gpu).to_string(),
                "gpu_uuid" => uuid(state, &node, *gpu),
                "process_name" | "name" => "python3".to_owned(),
                _ => "[N/A]".to_owned(),
            };
            print_line(fields.split(',').map(one).collect::<Vec<_>>().join(", "));
        }
        return 0;
    }
    if let Some(fields) = option("--query-gpu") {
        return query(state, &node, &gpus, fields, format);
    }
    print_line(format!(
        "SIMULATED: a stand-in for nvidia-smi\nNVIDIA-SMI {DRIVER}  Driver Version: {DRIVER}  CUDA Version: 12.8"
    ));
    for gpu in gpus {
        print_line(format!(
            "| {gpu:3}  {:<30} On | {} | 0 MiB / {} MiB | 0% Default |",
            state.cluster.gpu_name,
            bus(gpu),
            memory(state)
        ));
    }
    print_line("| No running processes found |");
    0
}

fn chosen(arguments: &[String], gpu: u32) -> bool {
    let short = arguments
        .iter()
        .zip(arguments.iter().skip(1))
        .find(|(word, _)| *word == "-i")
        .map(|(_, value)| value.as_str());
    let long = arguments.iter().find_map(|word| word.strip_prefix("--id="));
    short.or(long).is_none_or(|list| list.split(',').any(|one| one.parse() == Ok(gpu)))
}

fn query(state: &State, node: &str, gpus: &[u32], fields: &str, format: &str) -> i32 {
    let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
    for field in &fields {
        if value(state, node, 0, field).is_none() {
            print_line(format!("Field \"{field}\" is not a valid field to query."));
            return 2;
        }
    }
    let bare = format.contains("nounits");
    let titled = |field: &&str| match value(state, node, 0, field).map(|(_, unit)| unit) {
        Some(unit) if !unit.is_empty() => format!("{field} [{unit}]"),
        _ => (*field).to_owned(),
    };
    if !format.contains("noheader") {
        print_line(fields.iter().map(titled).collect::<Vec<_>>().join(", "));
    }
    for gpu in gpus {
        let one = |field: &&str| match value(state, node, *gpu, field).unwrap_or_default() {
            (value, unit) if bare || unit.is_empty() => value,
            (value, unit) => format!("{value} {unit}"),
        };
        print_line(fields.iter().map(one).collect::<Vec<_>>().join(", "));
    }
    0
}

/// A field's value and unit, nothing where there is no such field.
fn value(state: &State, node: &str, gpu: u32, field: &str) -> Option<(String, &'static str)> {
    let plain = |text: &str| Some((text.to_owned(), ""));
    let (sm, mem) = if state.cluster.gpu_name.contains("A100") { (1410, 1593) } else { (1980, 2619) };
    match field {
        "index" => Some((gpu.to_string(), "")),
        "count" => Some((state.cluster.gpus.to_string(), "")),
        "name" | "gpu_name" => plain(&state.cluster.gpu_name),
        "uuid" | "gpu_uuid" => Some((uuid(state, node, gpu), "")),
        "serial" | "gpu_serial" => Some((
            (noise::digest(state.cluster.seed, &["serial", node, &gpu.to_string()]) % 10_000_000_000_000)
                .to_string(),
            "",
        )),
        "vbios_version" | "gpu_vbios" => plain("96.00.74.00.1F"),
        "driver_version" if state.ails(node).contains(&Fault::DriverDiffers) => plain(OTHER_DRIVER),
        "driver_version" => plain(DRIVER),
        "pci.bus_id" | "gpu_bus_id" => Some((bus(gpu), "")),
        "memory.total" => Some((memory(state).to_string(), "MiB")),
        "memory.free" => Some((memory(state).to_string(), "MiB")),
        "memory.used" => Some(("0".to_owned(), "MiB")),
        "utilization.gpu" | "utilization.memory" => Some(("0".to_owned(), "%")),
        "temperature.gpu" => Some((((33 + gpu) % 40).to_string(), "")),
        "power.draw" => Some(("71.20".to_owned(), "W")),
        "power.limit" | "enforced.power.limit" => Some(("700.00".to_owned(), "W")),
        "clocks.sm"
        | "clocks.current.sm"
        | "clocks.gr"
        | "clocks.current.graphics"
        | "clocks.max.sm"
        | "clocks.max.graphics"
        | "clocks.applications.graphics" => Some((sm.to_string(), "MHz")),
        "clocks.mem" | "clocks.max.memory" | "clocks.current.memory" | "clocks.applications.memory" => {
            Some((mem.to_string(), "MHz"))
        }
        "pstate" => plain("P0"),
        "persistence_mode" | "ecc.mode.current" | "ecc.mode.pending" => plain("Enabled"),
        "mig.mode.current" | "mig.mode.pending" => plain("Disabled"),
        "compute_mode" => plain("Default"),
        "clocks_throttle_reasons.active" | "clocks_event_reasons.active" => plain("0x0000000000000000"),
        "compute_cap" => plain(if sm == 1410 { "8.0" } else { "9.0" }),
        "remapped_rows.pending" | "remapped_rows.failure" => plain("No"),
        field
            if field.starts_with("ecc.errors.")
                || field.starts_with("remapped_rows.")
                || field.starts_with("retired_pages.") =>
        {
            plain("0")
        }
        field
            if field.starts_with("clocks_throttle_reasons.")
                || field.starts_with("clocks_event_reasons.") =>
        {
            plain("Not Active")
        }
        _ => None,
    }
}

fn uuid(state: &State, node: &str, gpu: u32) -> String {
    format!("GPU-SIMULATED-{:016x}", noise::digest(state.cluster.seed, &["uuid", node, &gpu.to_string()]))
}

fn bus(gpu: u32) -> String {
    format!("00000000:{:02X}:00.0", 0x53 + 0x11 * gpu)
}

fn memory(state: &State) -> u32 {
    if state.cluster.gpu_name.contains("A100") { 81_920 } else { 81_559 }
}
