//! Each reader of `logs` reads damaged input in `tests/fuzz`.

use crate::project::root;
use std::fs;

/// What reads no file by itself.
const PARTS: [&str; 6] = ["encoding", "slurmstepd", "stream", "window_mark", "xid", "node_tools::host_state"];

#[test]
fn every_reader_of_logs_has_a_fuzz_target() {
    let text = |path: &str| fs::read_to_string(root().join(path)).expect("a file");
    let targets = ["text", "binary"].map(|name| text(&format!("tests/fuzz/{name}.rs"))).concat();
    let modules = |file: &str, before: &str| -> Vec<String> {
        let text = text(file);
        let names = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        names.map(|name| format!("{before}{name}")).collect()
    };
    let mut readers = modules("harness/logs/src/lib.rs", "");
    readers.extend(modules("harness/logs/src/node_tools/mod.rs", "node_tools::"));
    assert!(readers.len() > 20, "{readers:?}");
    for reader in readers {
        // A call of it: not that of a module with the same name in another one.
        let call = format!("{reader}::");
        let calls = targets.match_indices(&call);
        let is_fuzzed = calls.map(|(at, _)| &targets[..at]).any(|before| before.ends_with([' ', '(']));
        assert_ne!(
            is_fuzzed,
            PARTS.contains(&reader.as_str()),
            "{reader}: a target of tests/fuzz, or no reader of files"
        );
    }
}
