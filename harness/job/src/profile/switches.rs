//! The switches of `nsys profile` and the release that each is known from. A switch that the release of the plan does
//! not have is refused before anything is launched: nsys would refuse it on every node, after the queue.

use super::NsysVersion;
use base::suggest::nearest;

struct Switch {
    name: &'static str,
    /// The first release that public command lines or release notes show it in.
    since: NsysVersion,
    /// The key of `profile` that this switch is written as.
    key: Option<&'static str>,
}

const fn switch(name: &'static str, year: u32, release: u32) -> Switch {
    Switch { name, since: NsysVersion::new(year, release), key: None }
}

const fn set_by(name: &'static str, key: &'static str, year: u32, release: u32) -> Switch {
    Switch { name, since: NsysVersion::new(year, release), key: Some(key) }
}

const SWITCHES: &[Switch] = &[
    switch("backtrace", 2020, 1),
    set_by("capture-range", "capture", 2020, 1),
    set_by("capture-range-end", "capture", 2021, 3),
    switch("cpu-core-events", 2020, 1),
    switch("cpu-core-metrics", 2023, 3),
    switch("cpuctxsw", 2020, 1),
    switch("cuda-event-trace", 2025, 1),
    switch("cuda-flush-interval", 2020, 1),
    switch("cuda-graph-trace", 2021, 5),
    switch("cuda-memory-usage", 2020, 1),
    switch("cuda-trace-scope", 2025, 6),
    switch("cuda-um-cpu-page-faults", 2020, 3),
    switch("cuda-um-gpu-page-faults", 2020, 3),
    switch("cudabacktrace", 2020, 1),
    set_by("delay", "delay_s", 2020, 1),
    set_by("duration", "duration_s", 2020, 1),
    set_by("enable", "efa", 2024, 2),
    switch("env-var", 2020, 1),
    set_by("export", "recipes", 2020, 1),
    switch("flush-on-cudaprofilerstop", 2020, 5),
    set_by("force-overwrite", "keep", 2020, 1),
    set_by("gpu-metrics-device", "gpu_metrics", 2021, 2),
    set_by("gpu-metrics-devices", "gpu_metrics", 2024, 4),
    switch("gpu-metrics-frequency", 2021, 2),
    switch("gpu-metrics-set", 2021, 2),
    switch("gpuctxsw", 2020, 1),
    switch("inherit-environment", 2020, 1),
    set_by("kill", "duration_s", 2020, 1),
    switch("mpi-impl", 2020, 1),
    switch("nic-metrics", 2021, 5),
    set_by("nvtx-capture", "capture", 2020, 1),
    switch("nvtx-domain-exclude", 2021, 1),
    switch("nvtx-domain-include", 2021, 1),
    switch("osrt-backtrace-stack-size", 2020, 1),
    switch("osrt-backtrace-threshold", 2020, 1),
    switch("osrt-threshold", 2020, 1),
    set_by("output", "keep", 2020, 1),
    switch("python-backtrace", 2022, 5),
    set_by("python-functions-trace", "python_functions", 2023, 1),
    switch("python-nvtx-annotations", 2023, 1),
    switch("python-sampling", 2023, 1),
    switch("python-sampling-frequency", 2023, 1),
    switch("pytorch", 2024, 5),
    switch("resolve-symbols", 2023, 1),
    set_by("sample", "extra", 2020, 1),
    switch("samples-per-backtrace", 2021, 2),
    switch("sampling-frequency", 2020, 1),
    switch("sampling-period", 2021, 2),
    switch("show-output", 2020, 1),
    set_by("stats", "recipes", 2020, 1),
    switch("stop-on-exit", 2020, 1),
    set_by("trace", "trace", 2020, 1),
    switch("trace-fork-before-exec", 2020, 1),
    switch("vsync", 2020, 1),
    switch("wait", 2020, 1),
];

/// Refuses a switch that this release does not have, with the release that has it.
pub(super) fn check(switch: &str, version: NsysVersion) -> Result<(), String> {
    let name = name_of(switch)?;
    match SWITCHES.iter().find(|known| known.name == name) {
        Some(known) if known.since > version => {
            Err(format!("`--{name}` needs nsys {} or newer, the nodes have {version}", known.since))
        }
        Some(_) => Ok(()),
        None => Err(unknown(name)),
    }
}

/// Refuses switches that have a key, are misspelt, or are not switches.
pub(super) fn check_extra(switch: &str) -> Result<(), String> {
    let name = name_of(switch)?;
    match SWITCHES.iter().find(|known| known.name == name) {
        Some(Switch { key: Some("extra"), .. }) => {
            Err(format!("`--{name}` is already set: the harness profiles without CPU sampling"))
        }
        Some(Switch { key: Some(key), .. }) => {
            Err(format!("`--{name}` cannot be added: the key `{key}` sets it"))
        }
        Some(_) => Ok(()),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> String {
    let shown = name.escape_debug();
    match nearest(name, SWITCHES.iter().map(|known| known.name)) {
        Some(near) => format!("unknown nsys switch `--{shown}`; did you mean `--{near}`?"),
        None => format!("unknown nsys switch `--{shown}`; pass it unchecked: `unchecked = [\"--{shown}\"]`"),
    }
}

fn name_of(switch: &str) -> Result<&str, String> {
    let shown = switch.escape_debug();
    if switch.chars().any(char::is_control) {
        return Err(format!("nsys switch `{shown}` holds a control character"));
    }
    // Published command lines have been pasted with a typographic dash, which no program takes for a switch.
    if switch.starts_with(['\u{2013}', '\u{2014}', '\u{2212}']) {
        return Err(format!("`{shown}` begins with a typographic dash; write two plain hyphens"));
    }
    let Some(long) = switch.strip_prefix("--") else {
        return Err(format!("nsys switch `{shown}` is not in long form; write `--name=value`"));
    };
    if long.contains(' ') && !long.contains('=') {
        return Err(format!("nsys switch `{shown}` has a blank; join the switch and its value by `=`"));
    }
    Ok(long.split('=').next().unwrap_or(long))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_holds_no_name_twice() {
        assert!(SWITCHES.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn a_switch_that_the_release_lacks_is_refused_with_the_release_that_has_it() {
        let why = check("--pytorch=autograd-shapes-nvtx", NsysVersion::new(2024, 4)).expect_err("too old");
        assert_eq!(why, "`--pytorch` needs nsys 2024.5 or newer, the nodes have 2024.4");
        assert_eq!(check("--pytorch=autograd-shapes-nvtx", NsysVersion::new(2024, 5)), Ok(()));
    }

    #[test]
    fn a_misspelt_switch_gets_the_nearest_name() {
        let why = check_extra("--cuda-graf-trace=node").expect_err("misspelt");
        assert!(why.contains("did you mean `--cuda-graph-trace`?"), "{why}");
        let why = check_extra("--quite-another").expect_err("unknown");
        assert!(why.contains("unchecked"), "{why}");
    }

    #[test]
    fn a_switch_with_a_key_is_refused_as_an_extra() {
        let why = check_extra("--trace=cuda").expect_err("has a key");
        assert!(why.contains("the key `trace` sets it"), "{why}");
        assert!(check_extra("--sample=cpu").is_err());
    }

    #[test]
    fn a_typographic_dash_is_reported() {
        let why = check_extra("\u{2013}cuda-graph-trace=node").expect_err("a dash");
        assert!(why.contains("typographic dash"), "{why}");
        assert!(check_extra("-t cuda").expect_err("short").contains("long form"));
        assert!(check_extra("--osrt-threshold 5").expect_err("blank").contains("by `=`"));
    }

    #[test]
    fn messages() {
        let mut lines = vec![
            check("--pytorch=autograd-shapes-nvtx", NsysVersion::new(2024, 4)).expect_err("too old"),
            check("--cuda-graf-trace=node", NsysVersion::new(2024, 4)).expect_err("misspelt"),
        ];
        for switch in [
            "--quite-another",
            "--trace=cuda",
            "--sample=cpu",
            "\u{2013}cuda-graph-trace=node",
            "-t cuda",
            "--osrt-threshold 5",
            "--wait=\nall",
        ] {
            lines.push(check_extra(switch).expect_err(switch));
        }
        insta::assert_snapshot!(lines.join("\n"));
    }
}
