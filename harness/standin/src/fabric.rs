//! fi_info and ibv_devices: which devices the host lists.

use super::place::ProcessPlace;
use super::print_line;
use super::state::State;

pub(crate) fn answer(state: &State, arguments: &[String]) -> i32 {
    if arguments.iter().any(|word| word == "--version") {
        print_line("fi_info: 2.1.0-SIMULATED\nlibfabric: 2.1.0-SIMULATED\nlibfabric api: 2.1");
        return 0;
    }
    let mut wanted = arguments.iter().zip(arguments.iter().skip(1));
    if let Some((_, provider)) =
        wanted.find(|(word, _)| *word == "-p").filter(|(_, provider)| *provider != "efa")
    {
        eprintln!("fi_getinfo: -61 (No data available): {provider}");
        return 61;
    }
    let devices = listed(state);
    if devices.is_empty() {
        eprintln!("fi_getinfo: -61 (No data available)");
        return 61;
    }
    for device in devices {
        for (kind, tail, protocol) in [("RDM", "rdm", "FI_PROTO_EFA"), ("DGRAM", "dgrm", "FI_PROTO_EFA")] {
            print_line(format!(
                "provider: efa\n    fabric: efa\n    domain: {device}-{tail}\n    version: 201.0\n    type: FI_EP_{kind}\n    protocol: {protocol}"
            ));
        }
    }
    0
}

pub(crate) fn devices(state: &State) -> i32 {
    print_line("    device          \t   node GUID\n    ------          \t----------------");
    for (at, device) in listed(state).iter().enumerate() {
        print_line(format!("    {device:<16}\t{at:016x}"));
    }
    0
}

/// As the tree of the host has them.
fn listed(state: &State) -> Vec<String> {
    let Ok(place) = ProcessPlace::from_environment() else { return Vec::new() };
    let folder = state.counters(&place.node);
    state.cluster.nics.iter().filter(|nic| folder.join(nic).is_dir()).cloned().collect()
}
