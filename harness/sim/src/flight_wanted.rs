//! What the variables of a training ask of PyTorch's flight recorder.

use job::flight_recorder::{BUFFER, DUMP, DUMP_PREFIX, ON_TIMEOUT, PIPE, PIPE_PREFIX};
use std::collections::BTreeMap;

/// What the variables of a job ask of its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorder {
    /// Each rank has a pipe in the job's folder, and dumps into it.
    pub has_pipes: bool,
    /// Ranks that give up dump into the job's folder.
    pub on_timeout: bool,
}

impl Recorder {
    /// Nothing where nothing is recorded, or dumps go elsewhere.
    pub(crate) fn from_variables(variables: &BTreeMap<String, String>) -> Option<Recorder> {
        let value = |name: &str| variables.get(name).map(String::as_str);
        let records = BUFFER
            .iter()
            .any(|name| value(name).is_some_and(|size| size.parse().is_ok_and(|size: u64| size > 0)));
        let ends_with =
            |name: &str, end: &str| value(name).is_some_and(|path| path.rsplit('/').next() == Some(end));
        let is_here = DUMP_PREFIX.iter().any(|name| ends_with(name, DUMP));
        (records && is_here).then(|| Recorder {
            has_pipes: ends_with(PIPE_PREFIX, PIPE),
            on_timeout: ON_TIMEOUT.iter().any(|name| value(name) == Some("1")),
        })
    }
}
