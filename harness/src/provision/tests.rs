//! Packages of the vendor's layout with nothing of the vendor's in them, whole and hostile.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

const INSIDE: &str = "opt/nvidia/nsight-systems/2025.3.1";
const NSYS: &[u8] = b"#!/bin/sh\necho nsys\n";

enum Entry {
    Program(&'static str, &'static [u8]),
    File(&'static str),
    Link(&'static str, &'static str),
    HardLink(&'static str, &'static str),
    Device(&'static str),
}

fn whole() -> Vec<Entry> {
    vec![
        Entry::Program("opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/nsys", NSYS),
        Entry::Program("opt/nvidia/nsight-systems/2025.3.1/host-linux-x64/QdstrmImporter", b"#!/bin/sh\n"),
        Entry::Program(
            "opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/plugins/efa_metrics/nic_sampler",
            b"#!/bin/sh\n",
        ),
        Entry::File("opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/plugins/efa_metrics/plugin.yaml"),
        Entry::Link("opt/nvidia/nsight-systems/2025.3.1/bin/nsys", "../target-linux-x64/nsys"),
        Entry::HardLink(
            "opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/nsys-hard link",
            "opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/nsys",
        ),
        Entry::File("usr/share/doc/nsight-systems/README"),
    ]
}

fn tar_of(entries: &[Entry]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        let (name, kind, to, bytes, mode) = match entry {
            Entry::Program(name, bytes) => (name, EntryType::Regular, "", *bytes, 0o755),
            Entry::File(name) => (name, EntryType::Regular, "", b"text".as_slice(), 0o600),
            Entry::Link(name, to) => (name, EntryType::Symlink, *to, b"".as_slice(), 0o777),
            Entry::HardLink(name, to) => (name, EntryType::Link, *to, b"".as_slice(), 0o644),
            Entry::Device(name) => (name, EntryType::Char, "", b"".as_slice(), 0o644),
        };
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        header.set_entry_type(kind);
        // The builder itself refuses `..`: a hostile archive is written by hand.
        let name = format!("./{name}").replace(".//", "/");
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        let to = if kind == EntryType::Link { format!("./{to}") } else { to.to_owned() };
        old.linkname[..to.len()].copy_from_slice(to.as_bytes());
        header.set_cksum();
        builder.append(&header, bytes).expect("appended");
    }
    builder.into_inner().expect("built")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("packed");
    encoder.finish().expect("packed")
}

/// By the machine's own xz, where there is one: ours only reads.
fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut command = Command::new("xz");
    let child = command.arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("xz, which tests/setup installs");
    // It is far less than a pipe holds.
    child.stdin.take().expect("a pipe").write_all(bytes).expect("packed");
    child.wait_with_output().expect("packed").stdout
}

fn ar_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = ar::MAGIC.to_vec();
    for (name, content) in members {
        bytes.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, "100644", content.len()).bytes(),
        );
        bytes.extend_from_slice(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

fn deb_of(name: &str, data: &[u8]) -> Vec<u8> {
    ar_of(&[("debian-binary", b"2.0\n"), ("control.tar.gz", &gzip(&tar_of(&[]))), (name, data)])
}

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a folder") }
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("fsx")
    }

    fn provision(&self, name: &str, bytes: &[u8]) -> Result<Provisioned, String> {
        let package = self.folder.path().join(name);
        fs::write(&package, bytes).expect("written");
        let done = provision(&package, &self.to());
        let left: Vec<String> = self.all().into_iter().filter(|name| name.contains(UNFINISHED)).collect();
        assert!(left.is_empty(), "unfinished things are left: {left:?}");
        done
    }

    /// Refused, and nothing is where it should not be.
    #[track_caller]
    /// The message without the folder of the test.
    fn refused(&self, name: &str, bytes: &[u8], expected: &str) -> String {
        let before = self.all();
        let why = self.provision(name, bytes).expect_err(expected);
        assert!(why.contains(expected), "{why}, not: {expected}");
        let after: Vec<String> = self.all().into_iter().filter(|path| path != name).collect();
        let before: Vec<String> = before.into_iter().filter(|path| path != name).collect();
        assert_eq!(after, before, "something was written");
        why.replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn all(&self) -> Vec<String> {
        let mut open = vec![self.folder.path().to_owned()];
        let mut names = Vec::new();
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).expect("read").flatten() {
                let path = entry.path();
                names.push(path.strip_prefix(self.folder.path()).expect("inside").display().to_string());
                if path.symlink_metadata().expect("there").is_dir() {
                    open.push(path);
                }
            }
        }
        names.sort();
        names
    }
}

#[test]
fn a_package_of_each_kind_becomes_the_folder_of_its_version() {
    let tar = tar_of(&whole());
    let xz = xz(&tar);
    let zst = zstd::stream::encode_all(tar.as_slice(), 1).expect("packed");
    let packages = [
        ("p.tar", tar.clone()),
        ("p.tar.gz", gzip(&tar)),
        ("p.tar.zst", zst.clone()),
        ("p.deb", deb_of("data.tar", &tar)),
        ("g.deb", deb_of("data.tar.gz/", &gzip(&tar))),
        ("z.deb", deb_of("data.tar.zst", &zst)),
        ("x.deb", deb_of("data.tar.xz", &xz)),
        ("p.tar.xz", xz),
    ];
    for (name, bytes) in packages {
        let bench = Bench::new();
        let done = bench.provision(name, &bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        let folder = bench.to().join("nsight-systems/2025.3.1");
        assert_eq!((done.version.to_string().as_str(), &done.folder), ("2025.3.1", &folder), "{name}");
        assert_eq!(done.nsys, folder.join("target-linux-x64/nsys"));
        assert_eq!(fs::read(&done.nsys).expect("there"), NSYS);
        assert_eq!(fs::read(folder.join("bin/nsys")).expect("a link to it"), NSYS);
        assert_eq!(done.missing().count(), 0, "{done:?}");
        assert_eq!(done.plugins, ["efa_metrics"]);
        let mode = |path: &str| fs::metadata(folder.join(path)).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode("target-linux-x64/nsys"), 0o755);
        assert_eq!(mode("target-linux-x64/plugins/efa_metrics/plugin.yaml"), 0o644, "others read it");
        assert!(!bench.to().join("usr").exists(), "the rest of the package stays away");
    }
}

#[test]
fn the_wrapper_of_ranks_finds_the_newest_of_several_versions() {
    let bench = Bench::new();
    for version in ["2024.9.1", "2024.10.1", "2023.4.4"] {
        let renamed = |name: &'static str| -> &'static str { name.replace("2025.3.1", version).leak() };
        let entries: Vec<Entry> = whole()
            .into_iter()
            .map(|entry| match entry {
                Entry::Program(name, bytes) => Entry::Program(renamed(name), bytes),
                Entry::File(name) => Entry::File(renamed(name)),
                Entry::Link(name, to) => Entry::Link(renamed(name), to),
                Entry::HardLink(name, to) => Entry::HardLink(renamed(name), renamed(to)),
                Entry::Device(name) => Entry::Device(name),
            })
            .collect();
        bench.provision("p.tar", &tar_of(&entries)).expect(version);
    }
    // What it does before anything runs is read out of it: its own lines, up to the call of all of it. Where any user can
    // make folders, as above this test's, it would take none.
    let call = "trusted() { printf '%s\\n' \"$1\"; }\nfind_nsys";
    let script = job::script::PROFILE_SH.replace("main \"$@\"", call);
    let found = Command::new("bash")
        .args(["-c", &script])
        .env("NSYS_VENDOR_FOLDER", bench.to())
        .output()
        .expect("bash");
    let found = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let newest = bench.to().join("nsight-systems/2024.10.1");
    assert!(Path::new(&found).starts_with(&newest), "{found}, not below {}", newest.display());
}

#[test]
fn a_folder_that_is_called_like_the_vendors_is_the_one_of_the_versions() {
    let bench = Bench::new();
    let package = bench.folder.path().join("p.tar");
    fs::write(&package, tar_of(&whole())).expect("written");
    let to = bench.folder.path().join("nsight-systems-shared");
    let done = provision(&package, &to).expect("provisioned");
    assert_eq!(done.folder, to.join("2025.3.1"));
}

#[test]
fn a_version_that_is_there_is_never_overwritten() {
    let bench = Bench::new();
    let tar = tar_of(&whole());
    let done = bench.provision("p.tar", &tar).expect("provisioned");
    fs::write(&done.nsys, "changed").expect("written");
    bench.refused("p.tar", &tar, "already exists; remove it first");
    assert_eq!(fs::read(&done.nsys).expect("there"), b"changed");
}

#[test]
fn missing_parts_are_reported_and_the_rest_is_provisioned() {
    let bench = Bench::new();
    let bare = [Entry::Program("nsight-systems-2024.4.1/target-linux-x64/nsys", NSYS)];
    let done = bench.provision("p.tar", &tar_of(&bare)).expect("provisioned");
    assert_eq!(done.missing().collect::<Vec<_>>(), [Part::Importer, Part::Plugins, Part::EfaSampler]);
    let bench = Bench::new();
    let mut entries = whole();
    // A sampler that is no program is none.
    entries[2] =
        Entry::File("opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/plugins/efa_metrics/nic_sampler");
    let done = bench.provision("p.tar", &tar_of(&entries)).expect("provisioned");
    assert_eq!(done.missing().collect::<Vec<_>>(), [Part::EfaSampler]);
}

#[test]
fn the_version_may_stand_in_the_name_of_the_package_alone() {
    let entries = [Entry::Program("nsys-tree/target-linux-x64/nsys", NSYS)];
    let bench = Bench::new();
    let name = "nsight-systems-2024.4.1_2024.4.1.61-1_amd64.tar";
    assert_eq!(
        bench.provision(name, &tar_of(&entries)).expect("provisioned").version.to_string(),
        "2024.4.1"
    );
    Bench::new().refused("p.tar", &tar_of(&entries), "neither its folders nor its name have a version");
}

#[test]
fn entries_that_would_leave_the_folder_are_refused_with_the_whole_package() {
    let with = |entry: Entry| {
        let mut entries = whole();
        entries.push(entry);
        tar_of(&entries)
    };
    let mut messages = String::new();
    for (entry, expected) in [
        (Entry::File("../evil"), "leads out"),
        (Entry::File("opt/../../evil"), "leads out"),
        (Entry::File("/tmp/evil"), "leads out"),
        (Entry::Link("opt/l", "/etc/passwd"), "a link in it leads out"),
        (Entry::Link("opt/l", "../../etc/passwd"), "a link in it leads out"),
        (Entry::Link("l", ".."), "a link in it leads out"),
        (Entry::Link("opt/l", "nvidia/../../.."), "a link in it leads out"),
        (Entry::HardLink("opt/t", "../../etc/passwd"), "leads out"),
        (Entry::HardLink("opt/t", "opt/nowhere"), "does not precede it"),
        (Entry::Device("opt/d"), "neither file, folder nor link"),
        (Entry::File("opt/nvidia/nsight-systems/2025.3.1/bin/nsys"), "duplicate"),
    ] {
        messages += &format!("{}\n", Bench::new().refused("p.tar", &with(entry), expected));
    }
    insta::assert_snapshot!("messages_of_entries", messages);
    // Nothing is written through a link, even one that stays inside.
    let through = [Entry::Link("a", "b"), Entry::File("b/file"), Entry::File("a/file")];
    let mut entries = whole();
    entries.extend(through);
    Bench::new().refused("p.tar", &tar_of(&entries), "cannot write an entry");
}

#[test]
fn a_file_that_is_not_a_package_is_refused_with_advice() {
    let bench = Bench::new();
    let mut messages = vec![
        bench.refused("p.run", b"#!/bin/sh\n", "sh p.run --noexec --target nsys"),
        bench.refused("p.zip", b"PK\x03\x04", "neither .deb, .rpm nor tar"),
        bench.refused("p.tar", b"", "neither .deb, .rpm nor tar"),
        bench.refused("p.tar", &tar_of(&[Entry::File("README")]), "has no nsys"),
        bench.refused("p.deb", &ar_of(&[("debian-binary", b"2.0\n")]), "without `data.tar`"),
    ];
    let two = [
        Entry::Program("a/2024.4.1/target-linux-x64/nsys", NSYS),
        Entry::Program("a/2025.1.1/target-linux-x64/nsys", NSYS),
    ];
    messages.push(bench.refused("p.tar", &tar_of(&two), "more than one nsys"));
    let missing = provision(&bench.folder.path().join("nowhere.deb"), &bench.to()).expect_err("no file");
    assert!(missing.contains("cannot read `"), "{missing}");
    let folder = provision(bench.folder.path(), &bench.to()).expect_err("a folder");
    assert!(folder.contains("is a folder, expected a package file"), "{folder}");
    nix::unistd::mkfifo(&bench.folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let pipe = provision(&bench.folder.path().join("pipe"), &bench.to()).expect_err("a pipe");
    assert!(pipe.ends_with("pipe`: not a regular file"), "{pipe}");
    insta::assert_snapshot!("messages_of_packages", messages.join("\n"));
}

#[test]
fn a_package_that_is_cut_anywhere_is_refused() {
    let tar = tar_of(&whole());
    for (name, bytes) in
        [("p.tar", tar.clone()), ("p.tar.gz", gzip(&tar)), ("p.deb", deb_of("data.tar.gz", &gzip(&tar)))]
    {
        let bench = Bench::new();
        // All places of a small one would take long; those at the borders of blocks are the ones that matter.
        let cuts = (1..20).map(|part| bytes.len() * part / 20).chain([600, 1024, 1536, bytes.len() - 2]);
        // Behind the last entry of a tar there is nothing to lose, nor in the byte that fills up a member of a .deb.
        let end = if name == "p.tar" { bytes.len() - 1024 } else { bytes.len() - 1 };
        for cut in cuts.filter(|cut| *cut < end) {
            assert!(bench.provision(name, &bytes[..cut]).is_err(), "{name} cut at {cut} of {}", bytes.len());
            assert!(!bench.to().exists(), "{name} cut at {cut}");
        }
    }
}

fn newc(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, mode, content) in entries.iter().chain([&("TRAILER!!!", 0, b"".as_slice())]) {
        let fields = [1, *mode, 0, 0, 1, 0, content.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        bytes.extend(b"070701");
        fields.iter().for_each(|field| bytes.extend(format!("{field:08x}").bytes()));
        bytes.extend(name.bytes().chain([0]));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

#[test]
fn the_stream_of_an_rpm_is_read_under_the_same_rules() {
    let unpacked = |bytes: &[u8]| {
        let folder = tempfile::tempdir().expect("a folder");
        cpio::unpack(bytes, folder.path()).map(|()| folder)
    };
    let nsys = format!("./{INSIDE}/target-linux-x64/nsys");
    let link = format!("./{INSIDE}/bin/nsys");
    let good = newc(&[
        (&nsys, 0o100_755, NSYS),
        (&link, 0o120_777, b"../target-linux-x64/nsys"),
        ("./usr", 0o040_755, b""),
    ]);
    let folder = unpacked(&good).expect("unpacked");
    assert_eq!(fs::read(folder.path().join(INSIDE).join("bin/nsys")).expect("a link"), NSYS);
    for at in [0, 50, 115, good.len() / 2, good.len() - 130] {
        assert!(unpacked(&good[..at]).is_err(), "cut at {at}");
    }
    for (name, mode, content, expected) in [
        ("../evil", 0o100_644, b"x".as_slice(), "leads out"),
        ("/evil", 0o100_644, b"x", "leads out"),
        ("l", 0o120_777, b"/etc/passwd", "a link in it leads out"),
        ("d", 0o020_644, b"", "neither file, folder nor link"),
    ] {
        let why = unpacked(&newc(&[(name, mode, content)])).expect_err(expected);
        assert!(why.contains(expected), "{why}, not: {expected}");
    }
    assert!(unpacked(b"").is_err() && unpacked(&[b'7'; 300]).is_err());
}

proptest::proptest! {
    #[test]
    fn no_bytes_at_all_make_the_readers_panic(bytes in proptest::collection::vec(0u8.., 0..600)) {
        let folder = tempfile::tempdir().expect("a folder");
        let _ = cpio::unpack(bytes.as_slice(), folder.path());
        let _ = cpio::unpack([b"070701".as_slice(), &bytes].concat().as_slice(), folder.path());
        let _ = unpack::tar(bytes.as_slice(), folder.path());
        let _ = ar::members([ar::MAGIC.as_slice(), &bytes].concat().as_slice(), &mut |_, _| Ok(()));
    }
}
