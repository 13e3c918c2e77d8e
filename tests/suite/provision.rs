//! `harness provision` as a person calls it: what it says, how it exits, and packages that another program unpacks.

use crate::project::{HARNESS, Ran, ran};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const PARTS: [&str; 3] = [
    "target-linux-x64/nsys",
    "host-linux-x64/QdstrmImporter",
    "target-linux-x64/plugins/efa_metrics/nic_sampler",
];

/// A tar with these programs of a version in it, made by the machine's own tar.
fn package(folder: &Path, parts: &[&str]) -> String {
    let root = folder.join("tree/opt/nvidia/nsight-systems/2025.3.1");
    for part in parts {
        let path = root.join(part);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, "#!/bin/sh\n").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }
    let tar = folder.join("package.tar.gz").display().to_string();
    let tree = folder.join("tree").display().to_string();
    let packed = Command::new("tar").args(["-C", &tree, "-czf", &tar, "."]).status().expect("tar");
    assert!(packed.success());
    tar
}

fn provision(folder: &Path, from: &str, path: &str) -> Ran {
    let to = folder.join("fsx").display().to_string();
    let mut command = Command::new(HARNESS);
    command.args(["provision", "nsys", "--from", from, "--to", &to]).env("PATH", path);
    ran(command.output().expect("the harness starts"))
}

const PATH: &str = "/usr/bin:/bin";

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn a_whole_nsys_exits_with_0_and_says_what_to_write_into_an_inventory() {
    let folder = folder();
    let from = package(folder.path(), &PARTS);
    let ran = provision(folder.path(), &from, PATH);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let nsys = folder.path().join("fsx/nsight-systems/2025.3.1/target-linux-x64/nsys").display().to_string();
    assert!(ran.stdout.starts_with(&format!("nsys 2025.3.1: {nsys}\n")), "{}", ran.all());
    assert!(ran.stdout.contains(&format!("nsys = \"{nsys}\"")), "{}", ran.all());
    assert!(ran.stdout.contains("EFA sampler: /"), "{}", ran.all());
    let again = provision(folder.path(), &from, PATH);
    assert_eq!(again.code, Some(2), "{}", again.all());
    assert!(again.stderr.contains("already exists"), "{}", again.all());
}

#[test]
fn an_nsys_without_its_sampler_exits_with_1_and_says_what_is_lost() {
    let folder = folder();
    let from = package(folder.path(), &PARTS[..2]);
    let ran = provision(folder.path(), &from, PATH);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    assert!(ran.stdout.contains("EFA sampler: missing, nsys warns"), "{}", ran.all());
    assert!(ran.stderr.contains("missing: plugins, EFA sampler"), "{}", ran.all());
}

#[test]
fn an_rpm_is_unpacked_by_what_the_machine_has_and_refused_where_it_has_nothing() {
    let folder = folder();
    let tar = package(folder.path(), &PARTS);
    let rpm = folder.path().join("package.rpm").display().to_string();
    fs::write(&rpm, b"\xed\xab\xee\xdb and so on").expect("written");
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).expect("made");
    let bare = provision(folder.path(), &rpm, &tools.display().to_string());
    assert_eq!(bare.code, Some(2), "{}", bare.all());
    assert!(bare.stderr.contains("needs `bsdtar` or `rpm2cpio`"), "{}", bare.all());
    let tool = |text: &str| {
        let path = tools.join("bsdtar");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
        provision(folder.path(), &rpm, &format!("{}:{PATH}", tools.display()))
    };
    let fails = tool("#!/bin/sh\nexit 3\n");
    assert_eq!(fails.code, Some(2), "{}", fails.all());
    assert!(!folder.path().join("fsx").join("nsight-systems").exists(), "{}", fails.all());
    let ran = tool(&format!("#!/bin/sh\ncat >/dev/null\ngzip -dc '{tar}'\n"));
    assert_eq!(ran.code, Some(0), "{}", ran.all());
}
