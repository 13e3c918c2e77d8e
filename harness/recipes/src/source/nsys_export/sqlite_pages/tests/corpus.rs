//! Real exports, where they lie beside the project: every declared table is read as the whole engine reads it.

use super::*;
use crate::tables::LIST;

#[test]
fn real_exports_are_read_as_the_engine_reads_them() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/nsys");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("skipped: no collected exports beside the project");
        return;
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sqlite"));
    files.sort();
    for path in files {
        let (mut tables, mut rows) = (0, 0);
        for spec in LIST {
            for name in [Some(spec.name), spec.older_name].into_iter().flatten() {
                for table in pages(&path).schema.called(name) {
                    assert!(create::columns(&table.statement).is_some(), "{name} is left to the engine");
                }
                let all: Vec<_> = spec.columns.iter().collect();
                if let Ok(Some(frame)) = both(&path, name, &all) {
                    (tables, rows) = (tables + 1, rows + frame.height());
                }
            }
        }
        println!(
            "{:32} {tables:3} tables {rows:8} rows",
            path.file_stem().unwrap_or_default().to_string_lossy()
        );
        assert!(rows > 0, "{}", path.display());
    }
}
