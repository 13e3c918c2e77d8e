//! The files that the program carries: those of the repository that it was built from.

/// File and text, sorted by file: `suites/nccl-p5.toml`.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The text of a file.
pub(super) fn text(file: &str) -> Option<&'static str> {
    let at = FILES.binary_search_by_key(&file, |(name, _)| name).ok()?;
    Some(FILES[at].1)
}

/// The files of a folder, not of those below it.
pub(super) fn files(folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().copied().filter(move |(file, _)| file.rsplit_once('/').is_some_and(|(of, _)| of == folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_shipped_file_is_built_in() {
        for file in [
            "suites/nccl-p5.toml",
            "suites/recipes/kernel_times.toml",
            "inventory/default.toml",
            "inventory/instances/p5.toml",
            "baselines/p5.toml",
        ] {
            assert!(text(file).is_some_and(|text| !text.is_empty()), "{file}");
        }
        assert_eq!(text("suites/nccl-p6.toml"), None);
        assert!(files("inventory").all(|(file, _)| !file.contains("instances")));
    }
}
