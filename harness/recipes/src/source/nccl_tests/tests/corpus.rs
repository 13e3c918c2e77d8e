//! Real logs, where they lie beside the project: each is read with all its figures recomputed, or refused.

use super::super::*;

#[test]
fn real_logs_are_read_or_refused_with_a_reason() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/nccl-tests");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("skipped: no collected logs beside the project");
        return;
    };
    let mut disagreeing = Vec::new();
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    println!("{:44} {:>4} {:>4} {:18} {:>4} findings", "file", "runs", "rows", "failure", "off");
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Ok(bytes) = std::fs::read(&path) else { continue };
        match read(&bytes, &name) {
            Err(error) => println!("{name:44} refused: {error}"),
            Ok(read) => {
                let rows: usize = read.runs.iter().map(|run| run.rows.len()).sum();
                let failure =
                    read.runs.iter().find_map(|run| run.failure.as_ref()).map_or("-", |f| f.class.name());
                let off: usize = read.runs.iter().map(|run| recompute(run, None).len()).sum();
                if off > 0 {
                    disagreeing.push(name.clone());
                }
                let closing: Vec<_> = read.runs.iter().flat_map(closing).collect();
                let all = read.findings.iter().chain(&closing);
                let codes: Vec<_> = all.map(|finding| finding.code.as_str()).collect();
                for finding in &closing {
                    println!("    {}", finding.message);
                }
                println!("{name:44} {:4} {rows:4} {failure:18} {off:4} {}", read.runs.len(), codes.join(" "));
            }
        }
    }
    assert!(disagreeing.is_empty(), "figures that do not follow from each other: {disagreeing:?}");
}
