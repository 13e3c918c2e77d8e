//! `harness --version`: what this program was built from, which files it reads and writes, and what it carries.

use crate::library::Library;
use model::artefact::{PlanFormat, SummaryFormat};

/// The commit that it was built from, where git could name it.
const COMMIT: &str = env!("HARNESS_COMMIT");

/// One line, for `-V`.
pub(super) fn short() -> String {
    format!("harness {} ({COMMIT})", env!("CARGO_PKG_VERSION"))
}

/// Several lines, for `--version`.
pub(super) fn long() -> String {
    let features = if cfg!(feature = "stand-ins") { "stand-ins" } else { "none" };
    let counts = [
        ("suites", "suites"),
        ("inventories", "inventory"),
        ("instances", "inventory/instances"),
        ("baselines", "baselines"),
    ]
    .map(|(name, folder)| format!("{} {name}", Library::count_built_in(folder)));
    format!(
        "{}\nartefact format: plan.json {}, summary.json {}\nfeatures: {features}\nbuilt in: {}\ntarget: {}-{}",
        short(),
        PlanFormat::VERSION,
        SummaryFormat::VERSION,
        counts.join(", "),
        std::env::consts::ARCH,
        std::env::consts::OS
    )
}
