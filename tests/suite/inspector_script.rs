//! The script that puts the files of NCCL's Inspector into one, under a real bash, read back by the reader of such texts.

use job::script::INSPECTOR_SH;
use logs::inspector::gathered;
use std::fs;
use std::process::Command;

const CALL: &str = r#"{"header":{"id":"0x1","rank":0,"n_ranks":1,"nnodes":1},"metadata":{"hostname":"h","pid":1},"coll_perf":{"coll":"AllReduce","coll_sn":0,"coll_msg_size_bytes":8192,"coll_exec_time_us":10,"coll_busbw_gbs":1.0}}"#;

fn gather(files: &[(&str, &str)], limit: &str) -> gathered::Gathered {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("inspector")).expect("made");
    for (name, text) in files {
        fs::write(folder.path().join("inspector").join(name), text).expect("written");
    }
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("inspector/n9-pid1.log")).expect("a link");
    fs::write(folder.path().join("inspector.sh"), INSPECTOR_SH).expect("written");
    let ran = Command::new("bash")
        .args(["inspector.sh", "inspector", limit])
        .env("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "4096")
        .current_dir(folder.path())
        .output()
        .expect("bash");
    assert!(ran.status.success(), "{ran:?}");
    assert!(!String::from_utf8_lossy(&ran.stdout).contains("root:"), "a link was followed");
    gathered::read(ran.stdout.as_slice()).expect("read").expect("such a text")
}

#[test]
fn the_files_of_all_processes_are_one_text_and_links_are_left_alone() {
    let whole = format!("{CALL}\n");
    let read =
        gather(&[("n1-pid1.log", &whole), ("n1-pid2.log", &CALL[..50]), ("other.log", "x\n")], "1000000");
    assert!(read.is_complete && read.cut.is_empty());
    assert_eq!((read.files, read.log.records), (2, 1));
    assert_eq!(read.number("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES"), Some(4096));
    assert!(read.log.findings.iter().any(|it| it.code == "inspector-cut"), "{:?}", read.log.findings);
}

#[test]
fn what_is_too_large_is_cut_and_says_so() {
    let many = format!("{CALL}\n").repeat(10);
    let limit = (many.len() / 2).to_string();
    let read = gather(&[("n1-pid1.log", &many)], &limit);
    assert_eq!((read.is_complete, read.cut.len()), (true, 1));
    assert!(read.log.records < 10 && read.log.records > 0);
    assert_eq!(gather(&[], "100").files, 0);
}
