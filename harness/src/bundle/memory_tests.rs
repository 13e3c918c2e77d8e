//! How much memory a bundle of large files takes: seen from a process of its own, for other tests would count too.

use super::*;
use model::artefact::FileKind;
use std::fs::File;
use std::process::Command;

const THIS: &str = "bundle::memory_tests::a_bundle_of_large_files_takes_little_memory";
/// Names the folder of the files, for the process that reads them.
const FOLDER: &str = "HARNESS_TEST_LARGE_FOLDER";
const LARGE: u64 = 128 << 20;
const ALLOWED_KIB: u64 = 32 << 10;

#[test]
fn a_bundle_of_large_files_takes_little_memory() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let before = peak_kib();
        read_large(Path::new(&folder));
        println!("grown-kib {}", peak_kib() - before);
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for side in ["one", "other"] {
        fs::create_dir(folder.path().join(side)).expect("made");
        File::create(folder.path().join(side).join("log")).expect("made").set_len(LARGE).expect("grown");
    }
    let this = std::env::current_exe().expect("a test");
    let output = Command::new(this)
        .args([THIS, "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder.path())
        .output()
        .expect("run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let grown = text.split("grown-kib ").nth(1).and_then(|rest| rest.lines().next());
    let grown: u64 = grown.expect(&text).trim().parse().expect("a number");
    assert!(grown < ALLOWED_KIB, "{grown} KiB for files of {} KiB", LARGE >> 10);
}

fn read_large(folder: &Path) {
    let (one, other) = (folder.join("one"), folder.join("other"));
    assert_eq!(differing(&one, &other).expect("read"), None);
    let file = CollectedFile {
        job: "job".to_owned(),
        path: "log".to_owned(),
        kind: FileKind::Stdout,
        node: None,
        part: None,
        rank: None,
        bytes: LARGE,
        sha256: sha256_of_file(&one.join("log")).expect("read"),
        redacted: 0,
    };
    assert_eq!(broken(&file, &one), None);
    let mut builder = Builder::new(io::sink());
    let name = Path::new("log");
    let outgoing = Outgoing::from_files(&one, &[name.to_owned()]).expect("read");
    add(&mut builder, &Redactor::default(), &outgoing, &one.join(name), name, name).expect("added");
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("read");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("there");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn files_that_differ_anywhere_are_not_the_same() {
    let whole = vec![7; (64 << 10) + 5];
    let mut changed = whole.clone();
    changed[64 << 10] = 8;
    assert!(same(&whole[..], &whole.clone()[..]).expect("read"));
    for other in [&changed[..], &whole[..64 << 10]] {
        assert!(!same(&whole[..], other).expect("read"), "{}", other.len());
        assert!(!same(other, &whole[..]).expect("read"), "{}", other.len());
    }
}
