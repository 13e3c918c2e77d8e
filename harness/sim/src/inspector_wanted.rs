//! What the variables of a job ask of NCCL's Inspector.

use job::inspector::{DUMP_DIR, FOLDER, INTERVAL, MIN_BYTES, PLUGIN, RING};
use std::collections::BTreeMap;

/// What the variables of a job ask of the plugin, with its own defaults where they are silent.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    /// The period of its thread; without one nothing is written.
    pub(crate) interval_s: Option<f64>,
    pub(crate) min_bytes: u64,
    pub(crate) ring: usize,
    /// As the script prints them.
    pub(crate) settings: Vec<(String, String)>,
}

/// The shortest period that makes a difference here.
const LEAST_INTERVAL_S: f64 = 1e-3;

impl Plugin {
    pub(crate) fn from_variables(variables: &BTreeMap<String, String>) -> Plugin {
        let value = |name: &str| variables.get(name).map(|value| value.trim());
        let number =
            |name: &str, default: i64| value(name).and_then(|value| value.parse().ok()).unwrap_or(default);
        let is_loaded = value(PLUGIN).is_some_and(|plugin| plugin.contains("inspector"))
            && number("NCCL_INSPECTOR_ENABLE", 0) == 1
            && number("NCCL_INSPECTOR_DUMP_THREAD_ENABLE", 1) == 1;
        let is_here = value(DUMP_DIR).is_some_and(|folder| folder.rsplit('/').next() == Some(FOLDER))
            && number("NCCL_INSPECTOR_PROM_DUMP", 0) == 0;
        // Since 2.30: -1 is no thread, 0 is one without a pause.
        let micros = number(INTERVAL, -1);
        let interval_s =
            (is_loaded && is_here && micros >= 0).then_some((micros as f64 / 1e6).max(LEAST_INTERVAL_S));
        let is_setting = |(name, _): &(&String, &String)| name.starts_with("NCCL_INSPECTOR_");
        let settings = variables.iter().filter(is_setting);
        Plugin {
            interval_s,
            min_bytes: u64::try_from(number(MIN_BYTES, 8192)).unwrap_or_default().max(1),
            ring: usize::try_from(number(RING, 1024)).unwrap_or(1).max(1),
            settings: settings.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}
