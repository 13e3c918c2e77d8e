//! Folders with reports and exports, and which reports are found in them.

use super::*;
use std::fs::File;
use tempfile::TempDir;

/// Empty files, and folders with an empty table where a name ends in `/`, each an hour younger than the one before.
fn folder(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let start = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for (name, hour) in names.iter().zip(1u64..) {
        let path = folder.path().join(name);
        let file = match name.strip_suffix('/') {
            Some(_) => {
                fs::create_dir(&path).expect("made");
                path.join("StringIds.parquet")
            }
            None => path,
        };
        let file = File::create(file).expect("made");
        file.set_modified(start + std::time::Duration::from_secs(hour * 3600)).expect("a time");
    }
    folder
}

fn found(folder: &TempDir, inputs: &[&str]) -> Found {
    find(&inputs.iter().map(|input| folder.path().join(input)).collect::<Vec<_>>())
}

fn names(found: &Found) -> Vec<String> {
    let name =
        |report: &ReportFile| report.base.file_name().unwrap_or_default().to_string_lossy().into_owned();
    found.reports.iter().map(name).collect()
}

fn export_state(names: &[&str], input: &str) -> String {
    let folder = folder(names);
    let found = found(&folder, &[input]);
    let [report] = found.reports.as_slice() else { panic!("{found:?}") };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match report.export_state() {
        ExportState::Fresh(path) => format!("fresh {}", name(&path)),
        ExportState::Stale(path) => format!("stale {}", name(&path)),
        ExportState::NotExported => "none".to_owned(),
    }
}

#[test]
fn a_folder_has_each_report_once_in_the_order_of_counting() {
    let folder = folder(&[
        "rank10.nsys-rep",
        "rank10.sqlite",
        "rank2_pqtdir/",
        "rank2.nsys-rep",
        "rank1.sqlite",
        "rank1.arrows",
        "notes.txt",
        "other/",
        ".sqlite",
    ]);
    let all = found(&folder, &[""]);
    assert_eq!(names(&all), ["rank1", "rank2", "rank10"]);
    assert!(all.diagnostics.is_empty() && all.duplicates.is_empty());
    assert!(all.reports.iter().all(|report| !report.is_export));
    let input = format!("{}:2", folder.path().display());
    assert_eq!(names(&find(&[PathBuf::from(&input)])), ["rank1", "rank2"]);
    assert_eq!(names(&find(&[PathBuf::from(format!("{}:99", folder.path().display()))])).len(), 3);
}

#[test]
fn a_report_named_twice_is_taken_once_and_reported() {
    let folder = folder(&["a.nsys-rep", "a.sqlite", "b.sqlite"]);
    let twice = found(&folder, &["b.sqlite", "a.sqlite", "", "./a.nsys-rep"]);
    assert_eq!(names(&twice), ["b", "a"]);
    assert_eq!(twice.duplicates.len(), 3);
    assert!(twice.reports[1].is_export, "the export that was named");
}

#[test]
fn the_export_beside_a_report_stands_for_it_unless_it_is_older() {
    assert_eq!(export_state(&["a.nsys-rep", "a.sqlite"], "a.nsys-rep"), "fresh a.sqlite");
    assert_eq!(export_state(&["a.nsys-rep", "a.sqlite", "a_pqtdir/"], "a.nsys-rep"), "fresh a_pqtdir");
    assert_eq!(export_state(&["a.sqlite", "a.nsys-rep"], "a.nsys-rep"), "stale a.sqlite");
    assert_eq!(export_state(&["a_pqtdir/", "a.nsys-rep", "a.sqlite"], "a.nsys-rep"), "fresh a.sqlite");
    assert_eq!(export_state(&["a_pqtdir/", "a.sqlite", "a.nsys-rep"], "a.nsys-rep"), "stale a_pqtdir");
    assert_eq!(export_state(&["a.nsys-rep", "b.sqlite"], "a.nsys-rep"), "none");
    assert_eq!(export_state(&["a.qdrep", "a.sqlite"], "a.qdrep"), "fresh a.sqlite");
    // An export that is named is looked at, and that it is old is known.
    assert_eq!(export_state(&["a.sqlite", "a.nsys-rep", "a_pqtdir/"], "a.sqlite"), "stale a.sqlite");
    assert_eq!(export_state(&["a.sqlite", "a.nsys-rep", "a_pqtdir/"], ""), "fresh a_pqtdir");
    assert_eq!(export_state(&["a.sqlite", "a_arwdir/"], ""), "fresh a.sqlite");
}

#[test]
fn one_old_table_makes_a_folder_of_tables_old() {
    let folder = folder(&["old", "a.nsys-rep", "a_pqtdir/"]);
    let of = || found(&folder, &["a.nsys-rep"]).reports[0].export_state();
    assert!(matches!(of(), ExportState::Fresh(_)));
    fs::rename(folder.path().join("old"), folder.path().join("a_pqtdir/OSRT_API.parquet")).expect("moved");
    assert!(matches!(of(), ExportState::Stale(_)));
}

#[test]
fn a_folder_of_tables_is_an_export_under_any_name() {
    let folder = folder(&["mine/", "a_pqtdir/"]);
    for name in ["mine", "a_pqtdir"] {
        let one = found(&folder, &[name]);
        assert!(one.reports[0].is_export && one.reports[0].report.is_none(), "{one:?}");
    }
    assert_eq!(names(&found(&folder, &["mine"])), ["mine"]);
    assert_eq!(names(&found(&folder, &["a_pqtdir/"])), ["a"]);
}

#[test]
fn a_missing_input_is_reported_and_hides_nothing_else() {
    let folder = folder(&["a.sqlite", "empty", "3:2.sqlite"]);
    fs::create_dir(folder.path().join("none")).expect("made");
    let found =
        found(&folder, &["b.sqlite", "a.sqlite", "none", "a.sqlite:2", "none:0", "none:x", "3:2.sqlite"]);
    assert_eq!(names(&found), ["a", "3:2"]);
    let why: Vec<&str> = found.diagnostics.iter().map(|diagnostic| diagnostic.why.as_str()).collect();
    assert_eq!(
        why,
        [
            "no such file or folder",
            "no report or export in this folder",
            "`:n` works on folders only",
            "`:n` needs a number of at least 1",
            "`:n` needs a number of at least 1",
        ]
    );
}

#[test]
fn a_file_of_sqlite_that_another_program_wrote_is_refused_by_name_and_takes_no_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = |name: &str, table: &str| {
        let path = folder.path().join(name);
        let made = rusqlite::Connection::open(&path)
            .and_then(|it| it.execute_batch(&format!("CREATE TABLE {table} (id INTEGER)")));
        made.expect("a file of SQLite");
        path
    };
    let foreign = make("a.sqlite", "profiles");
    let ours = make("b.sqlite", "StringIds");
    let found = find(&[folder.path().to_owned()]);
    let named: Vec<&Path> = found.reports.iter().map(|it| it.named.as_path()).collect();
    assert_eq!((named, found.foreign.as_slice()), (vec![ours.as_path()], std::slice::from_ref(&foreign)));
    let why = crate::export::Export::open(&foreign).err().map(|error| error.to_string());
    let expected = "`a.sqlite` is not a readable export: an SQLite file of another program: \
                    no table `StringIds` or `META_DATA_*`";
    assert_eq!(why.as_deref(), Some(expected));
    assert_eq!(find(&[foreign]).reports.len(), 1, "what is named is looked at, and then refused");
}
