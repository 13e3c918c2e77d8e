//! What a job inherited from the shell that submitted it: sbatch hands that shell's whole environment on, and the
//! inventory does not describe it. The job's script records it before it sets its own variables.

use job::script::files;
use metric::finding::Finding;
use model::artefact::{Collected, PlannedJob};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use verdict::fingerprint;

/// More than any shell exports of these; a file that is longer is read so far.
const MOST_BYTES: u64 = 64 << 10;
/// Of a value as it is shown.
const MOST_SHOWN: usize = 200;

/// The part of a fingerprint that holds them.
pub(super) const PART: &str = "inherited";

pub(super) struct Inherited {
    /// Names and values that the script does not set itself, in one line.
    pub variables: String,
    pub finding: Option<Finding>,
}

/// `None` where the job recorded nothing, or inherited nothing.
pub(super) fn read(planned: &PlannedJob, collected: &Collected, folder: &Path) -> Option<Inherited> {
    let is_it = |path: &str| path.rsplit('/').next() == Some(files::ENVIRONMENT);
    let file = collected.files.iter().find(|file| file.job == planned.name && is_it(&file.path))?;
    let mut bytes = Vec::new();
    std::fs::File::open(folder.join(&file.path)).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let variables = not_set_by(planned, &text);
    let line = |names: &mut dyn Iterator<Item = (&String, &String)>| {
        names.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    let exported = line(&mut variables.iter().filter(|(name, _)| fingerprint::matters(name)));
    let finding = (!exported.is_empty()).then(|| {
        let message = format!(
            "the submitting shell exports {exported}; set it in `[environment]` of the inventory, or unset it"
        );
        Finding::new("inherited-environment", message).file(file.path.as_str())
    });
    (!variables.is_empty()).then(|| Inherited { variables: line(&mut variables.iter()), finding })
}

fn not_set_by(planned: &PlannedJob, text: &str) -> BTreeMap<String, String> {
    let script =
        planned.files.iter().find(|file| file.name == files::JOB).and_then(|file| file.text.as_deref());
    let exports = script.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("export "));
    let set: Vec<&str> = exports
        .filter_map(|export| export.trim_start_matches('\'').split_once('='))
        .map(|(name, _)| name)
        .collect();
    let is_name = |name: &str| {
        !name.is_empty() && name.len() < 100 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let inherited = pairs.filter(|(name, _)| is_name(name) && !set.contains(name));
    let shown = |value: &str| value.chars().filter(|c| !c.is_control()).take(MOST_SHOWN).collect::<String>();
    inherited.map(|(name, value)| (name.to_owned(), shown(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::Format;

    fn inherited(script: &str, environment: &str) -> Option<Inherited> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(files::ENVIRONMENT), environment).expect("written");
        let planned = serde_json::json!({
            "name": "j", "nodes": ["n1"], "round": 0, "ranks": 8, "folder": "/f", "launch": ["sbatch", "job.sh"],
            "files": [{ "name": "job.sh", "text": script }], "expected": [], "estimate_s": 1, "limit_s": 1,
        });
        let file = serde_json::json!({
            "job": "j", "path": files::ENVIRONMENT, "kind": "log", "bytes": 1, "sha256": "x",
        });
        let collected = Collected {
            format: Format,
            files: vec![serde_json::from_value(file).expect("a file")],
            missing: Vec::new(),
            changed: Vec::new(),
            simulated: Vec::new(),
        };
        read(&serde_json::from_value(planned).expect("a job"), &collected, folder.path())
    }

    #[test]
    fn variables_of_the_submitting_shell_are_reported_unless_the_script_sets_them() {
        let environment =
            "FI_PROVIDER=efa\nLD_LIBRARY_PATH=/a:/b\nNCCL_ALGO=Ring\nNCCL_DEBUG=INFO\nno variable\n";
        let found = inherited("export FI_PROVIDER=efa\nsrun x\n", environment).expect("inherited");
        assert_eq!(found.variables, "LD_LIBRARY_PATH=/a:/b NCCL_ALGO=Ring NCCL_DEBUG=INFO");
        let message = found.finding.expect("a finding").message;
        assert!(message.contains("exports NCCL_ALGO=Ring; set it in `[environment]`"), "{message}");
        // What only says which libraries are found, or what is logged, is recorded, and is no finding.
        let quiet = inherited("srun x\n", "LD_LIBRARY_PATH=/a\nNCCL_DEBUG=INFO\n").expect("inherited");
        assert!(quiet.finding.is_none());
        assert!(inherited("export 'NCCL_ALGO=Tree x'\n", "NCCL_ALGO=Ring\n").is_none());
        assert!(inherited("", "\u{0}\u{1b}[31m=\n==\n").is_none());
    }
}
