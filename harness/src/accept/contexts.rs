//! Contexts of kubectl in which runs were made: they name a site, and no inventory has the one that was kubectl's own.

use std::collections::BTreeSet;
use std::path::Path;

/// Those that the runs in these folders have recorded.
pub(crate) fn contexts<'a>(runs: impl IntoIterator<Item = &'a Path>) -> BTreeSet<String> {
    let clusters = runs.into_iter().filter_map(|run| store::cluster_of(run).ok().flatten());
    clusters.filter_map(|cluster| cluster.context).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{Format, RunCluster};
    use std::fs;

    #[test]
    fn a_context_is_known_by_the_run_that_was_made_in_it() {
        let (with, without) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let cluster = RunCluster {
            format: Format,
            server: "https://a.example".to_owned(),
            namespace: "bench".to_owned(),
            context: Some("acme-prod".to_owned()),
        };
        let text = serde_json::to_string(&cluster).expect("JSON");
        fs::write(with.path().join("cluster.json"), text).expect("written");
        let found = contexts([with.path(), without.path()]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["acme-prod"]);
    }
}
