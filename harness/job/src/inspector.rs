//! NCCL's Inspector in a job: the variables that must be set when its ranks start, and what they cost and leave out.

use std::collections::BTreeMap;

/// Where the plugin writes, in the job's folder.
pub const FOLDER: &str = "inspector";
/// Bytes that are fetched of all ranks of a job together: about a million calls.
pub const LIMIT: u64 = 256 << 20;

/// The library, by its path or by the name that NCCL completes.
pub const PLUGIN: &str = "NCCL_PROFILER_PLUGIN";
/// By this name NCCL looks for `LIBRARY`.
pub const USUAL_PLUGIN: &str = "inspector";
/// The library of that name.
pub const LIBRARY: &str = "libnccl-profiler-inspector.so";
/// Where the files are to lie.
pub const DUMP_DIR: &str = "NCCL_INSPECTOR_DUMP_DIR";
/// The period of the only thread that writes; by default there is none, and no file.
pub const INTERVAL: &str = "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS";
/// Smaller calls are not recorded.
pub const MIN_BYTES: &str = "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES";
/// Calls of a communicator that are kept between two writings.
pub const RING: &str = "NCCL_INSPECTOR_DUMP_COLL_RING_SIZE";
/// 1: a call without clock values of the GPU leaves no record.
pub(crate) const NEEDS_GPU_TIMES: &str = "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING";

/// What must be set for ranks that see the job's folder under this path.
pub fn variables(folder: &str, plugin: Option<&str>) -> Vec<(&'static str, String)> {
    let fixed = [
        ("NCCL_INSPECTOR_ENABLE", "1"),
        ("NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "1"),
        // The last interval of a communicator is never written.
        (INTERVAL, "100000"),
        // Time stamps of hosts are of no use while their clocks differ.
        ("NCCL_INSPECTOR_DUMP_VERBOSE", "0"),
        // It would be written instead of records.
        ("NCCL_INSPECTOR_PROM_DUMP", "0"),
        (MIN_BYTES, "8192"),
        // Such calls are recorded and marked, not dropped in silence.
        (NEEDS_GPU_TIMES, "0"),
        (RING, "16384"),
        ("NCCL_INSPECTOR_DUMP_P2P_RING_SIZE", "16384"),
    ];
    let mut all =
        vec![(PLUGIN, plugin.unwrap_or(USUAL_PLUGIN).to_owned()), (DUMP_DIR, format!("{folder}/{FOLDER}"))];
    all.extend(fixed.map(|(name, value)| (name, value.to_owned())));
    all
}

/// In one line: what the recording costs and leaves out, by the variables of a job.
pub fn cost(variables: &BTreeMap<String, String>) -> String {
    let value = |name: &str| variables.get(name).map_or("?", String::as_str);
    let without_times = match value(NEEDS_GPU_TIMES) {
        "0" => "",
        _ => ", calls without GPU times",
    };
    format!(
        "a thread of each rank writes every {} us; leaves out calls below {} B{without_times}, all but the last {} \
         between two writings, and the end of each communicator",
        value(INTERVAL),
        value(MIN_BYTES),
        value(RING),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_costs_says_what_the_variables_leave_out() {
        let all = variables("/fsx/r/c/j", None);
        let mut all: BTreeMap<String, String> =
            all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(all[PLUGIN], "inspector");
        assert_eq!(all[DUMP_DIR], "/fsx/r/c/j/inspector");
        let usual = cost(&all);
        assert!(usual.contains("every 100000 us") && usual.contains("below 8192 B, all but"), "{usual}");
        all.insert(NEEDS_GPU_TIMES.to_owned(), "1".to_owned());
        assert!(cost(&all).contains("calls without GPU times"));
    }
}
