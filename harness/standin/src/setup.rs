//! Makes what stand-ins need before the first of them runs: a name for each program, and each host's tree of devices.

use super::state::State;
use super::{STATE, names};
use model::fault::Fault;
use sim::counters;
use std::fs;
use std::io;
use std::path::Path;

/// Fills the folder that holds `cluster.toml`: `bin/` with every program, `hosts/NODE` with devices and their counters.
/// What is there already stays.
pub fn set_up(folder: &Path, executable: &Path) -> Result<(), String> {
    let state = State::read(folder)?;
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    let programs = folder.join("bin");
    fs::create_dir_all(&programs).map_err(failed)?;
    fs::create_dir_all(folder.join("worlds")).map_err(failed)?;
    for name in names() {
        let path = programs.join(name);
        if path.symlink_metadata().is_err() {
            std::os::unix::fs::symlink(executable, &path).map_err(failed)?;
        }
    }
    for node in &state.cluster.nodes {
        devices(&state, node).map_err(failed)?;
    }
    Ok(())
}

fn devices(state: &State, node: &str) -> io::Result<()> {
    for (nic, device) in state.cluster.nics.iter().enumerate() {
        let is_missing =
            |fault: &Fault| matches!(fault, Fault::NicMissing { device: missing } if missing == device);
        let folder = state.counters(node).join(device).join("ports/1/hw_counters");
        if state.ails(node).iter().any(is_missing) || folder.exists() {
            continue;
        }
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("lifespan"), "12\n")?;
        for (counter, value) in counters::at_rest(&state.cluster, node, nic) {
            fs::write(folder.join(counter), format!("{value}\n"))?;
        }
    }
    fs::create_dir_all(state.counters(node))
}

/// `standin set-up FOLDER`.
pub(crate) fn by_command(arguments: &[String]) -> i32 {
    let [folder] = arguments else {
        eprintln!("standin: usage: standin set-up FOLDER, which holds `cluster.toml` and becomes {STATE}");
        return 2;
    };
    let done = std::env::current_exe()
        .map_err(|error| format!("cannot find the path of this executable: {error}"))
        .and_then(|executable| set_up(Path::new(folder), &executable));
    match done {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("standin: {why}");
            1
        }
    }
}
