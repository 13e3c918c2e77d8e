//! Real exports: every declared table is read as SQLite reads it.

use super::*;
use crate::tables::LIST;

#[test]
#[ignore = "reads collected exports: `tests/run` runs it where they are"]
fn real_exports_are_read_as_the_engine_reads_them() {
    let corpus = PathBuf::from(std::env::var_os("HARNESS_TEST_CORPUS").expect("HARNESS_TEST_CORPUS"));
    let entries = std::fs::read_dir(corpus.join("nsys")).expect("a folder");
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sqlite"));
    assert!(!files.is_empty(), "no export in {}", corpus.display());
    for path in files {
        let mut rows = 0;
        for spec in LIST {
            for name in [Some(spec.name), spec.older_name].into_iter().flatten() {
                for table in pages(&path).schema.called(name) {
                    assert!(create::columns(&table.statement).is_some(), "{name} is left to the engine");
                }
                let all: Vec<_> = spec.columns.iter().collect();
                if let Ok(Some(frame)) = both(&path, name, &all) {
                    rows += frame.height();
                }
            }
        }
        assert!(rows > 0, "{}", path.display());
    }
}
