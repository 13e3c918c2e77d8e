//! The memory that a running harness takes, its own processes included.

use std::fs;

/// The most that a process and those that it started had in memory at a time, each for itself.
pub(crate) fn most_mib(id: u32) -> u64 {
    let peak = |id: &str| -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    let children = || -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        let of_task = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        of_task.flat_map(|ids| ids.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let mut most = 0;
    while let Some(own) = peak(&id.to_string()) {
        most = children().iter().filter_map(|child| peak(child)).chain([own, most]).max().unwrap_or(most);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    most / 1024
}
