//! Files over ssh: whole or not at all, whatever happens to the connection meanwhile.

use super::commands::{exec, host};
use super::hosts::{Hosts, block, is_root};
use crate::fact::Fact;
use cluster::reach::{Reach, ReachError};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) const FACTS: &[Fact] = &[
    ("files_go_and_come_whole", files_go_and_come_whole),
    ("a_put_that_broke_off_goes_on_where_it_was", a_put_that_broke_off_goes_on_where_it_was),
    ("a_put_follows_no_link_that_a_job_left", a_put_follows_no_link),
    ("a_fetch_that_broke_off_goes_on_where_it_was", a_fetch_that_broke_off_goes_on_where_it_was),
    ("a_file_that_changes_while_it_comes_is_taken_again", a_file_that_changes_while_it_comes_is_taken_again),
];

/// They need a small file system: see [`no_small_disk`].
pub(super) const ON_A_SMALL_DISK: &[Fact] =
    &[("a_full_disk_is_named_and_leaves_nothing", a_full_disk_is_named_and_leaves_nothing)];

/// Bytes that look like no others.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn files_go_and_come_whole() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    let folder = hosts.path("a/b c/d");
    block(async {
        let there = host("h1");
        for length in [0, 1, 40_000, 5_000_001] {
            let path = folder.join(format!("f{length}")).display().to_string();
            // What lay there before is gone, and all of it.
            for bytes in [noise(length + 77), noise(length)] {
                reach.put(&there, &path, &bytes).await.expect("written");
                assert!(fs::read(&path).expect("there") == bytes, "{length}");
                assert!(reach.get(&there, &path).await.expect("read") == bytes, "{length}");
            }
        }
        assert_eq!(entries(&folder), ["f0", "f1", "f40000", "f5000001"]);
        let path = folder.join("none").display().to_string();
        assert_eq!(reach.get(&there, &path).await, Err(ReachError::NotFound { path }));
        let of_folder =
            reach.get(&there, &folder.display().to_string()).await.expect_err("a folder").to_string();
        assert!(of_folder.ends_with("on h1: it is a folder"), "{of_folder}");
        let link = folder.with_file_name("link");
        symlink(folder.join("f1"), &link).expect("linked");
        for endless in [link.display().to_string(), "/dev/zero".to_owned()] {
            let refused = reach.get(&there, &endless).await.expect_err("no file").to_string();
            assert!(
                refused.ends_with("it is not a regular file, but a link, a pipe or a device"),
                "{refused}"
            );
        }
        let over = reach.put(&there, &folder.display().to_string(), b"x").await.expect_err("a folder");
        assert!(matches!(over, ReachError::Failed { .. }), "{over}");
        assert!(folder.join("f0").exists());
        let below =
            reach.put(&there, &folder.join("f1/x").display().to_string(), b"x").await.expect_err("a file");
        assert!(matches!(below, ReachError::Failed { .. }), "{below}");
        let home = reach.get(&there, "x").await.expect_err("no path").to_string();
        assert_eq!(home, "a file on h1: its path must begin with `/` and hold no zero byte: \"x\"");
        // Its size is reported as nothing, and there is something.
        assert!(!reach.get(&there, "/proc/sys/kernel/ostype").await.expect("read").is_empty());
        reach.end().await;
    });
}

const LARGE: usize = 400_000_000;

fn a_put_that_broke_off_goes_on_where_it_was() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    let bytes = noise(LARGE);
    let folder = hosts.path("to");
    let path = folder.join("large").display().to_string();
    let part = || {
        let part = entries(&folder).into_iter().find(|name| name.ends_with(".part"))?;
        Some(fs::metadata(folder.join(part)).ok()?.len())
    };
    block(async {
        let there = host("h1");
        let watch = async {
            let mut cut = 0;
            let mut least = 0;
            while !folder.join("large").exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let Some(length) = part() else { continue };
                assert!(length >= least, "what was there is resent: {length} of {least} bytes");
                least = length;
                if cut == 0 && length > LARGE as u64 / 8 {
                    cut = hosts.cut(1);
                }
            }
            cut
        };
        let (put, cut) = tokio::join!(reach.put(&there, &path, &bytes), watch);
        put.expect("written all the same");
        assert!(cut > 0);
        assert!(fs::read(&path).expect("there") == bytes);
        assert_eq!(entries(&folder), ["large"]);
        reach.end().await;
    });
    assert_eq!(hosts.text("h1.log").matches("Accepted publickey").count(), 2, "it was connected to twice");
}

fn a_put_follows_no_link() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    let folder = hosts.path("run/case/job");
    fs::create_dir_all(&folder).expect("made");
    fs::create_dir(hosts.path("victim")).expect("made");
    fs::write(hosts.path("victim/file"), "the user's").expect("written");
    let bytes = noise(5000);
    let sum = base::digest::sha256(&bytes);
    block(async {
        let path = folder.join("script").display().to_string();
        for name in [
            "script".to_owned(),
            format!("script.{}.part", &sum[..12]),
            format!("script.{}.0.part", &sum[..12]),
        ] {
            symlink(hosts.path("victim/file"), folder.join(name)).expect("linked");
        }
        reach.put(&host("h1"), &path, &bytes).await.expect("written");
        assert!(
            fs::symlink_metadata(&path).expect("there").is_file() && fs::read(&path).expect("there") == bytes
        );
        fs::rename(hosts.path("run/case"), hosts.path("run/away")).expect("moved");
        symlink(hosts.path("victim"), hosts.path("run/case")).expect("linked");
        fs::create_dir(hosts.path("victim/job")).expect("made");
        let why = reach.put(&host("h1"), &path, &bytes).await.expect_err("refused").to_string();
        assert!(why.contains("a symbolic link leads to"), "{why}");
        reach.end().await;
    });
    assert_eq!(hosts.text("victim/file"), "the user's");
    assert!(entries(&hosts.path("victim/job")).is_empty());
}

fn a_fetch_that_broke_off_goes_on_where_it_was() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    let bytes = noise(LARGE);
    let path = hosts.path("large");
    fs::write(&path, &bytes).expect("written");
    block(async {
        exec(&reach, "h1", &["true"]).await.expect("connected");
        let there = host("h1");
        let path = path.display().to_string();
        let cut = async {
            tokio::time::sleep(Duration::from_millis(250)).await;
            hosts.cut(1)
        };
        let mut got = Vec::new();
        let (fetched, cut) = tokio::join!(reach.fetch(&there, &path, &mut got), cut);
        assert!(cut > 0);
        assert_eq!(fetched, Ok(bytes.len() as u64), "read all the same");
        assert!(got == bytes);
        reach.end().await;
    });
    // More often where the digest here takes so long that an idle connection ends.
    assert!(hosts.text("h1.log").matches("Accepted publickey").count() >= 2, "nothing broke off");
}

fn a_file_that_changes_while_it_comes_is_taken_again() {
    let hosts = Hosts::start(1);
    let reach = hosts.reach();
    let path = hosts.path("log");
    fs::write(&path, noise(1_000_000)).expect("written");
    block(async {
        let there = host("h1");
        exec(&reach, "h1", &["true"]).await.expect("connected");
        let name = path.display().to_string();
        let write = async {
            for nth in 0..300 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let mut bytes = noise(1_000_000);
                bytes.extend_from_slice(format!("{nth}").as_bytes());
                fs::write(&path, &bytes).expect("written");
            }
        };
        let (got, ()) = tokio::join!(reach.get(&there, &name), write);
        if let Err(error) = got {
            let why = error.to_string();
            assert!(why.ends_with("its content changes with each read; something still writes it"), "{why}");
        }
        let now = fs::read(&path).expect("there");
        assert!(reach.get(&there, &name).await.expect("it rests") == now);
        reach.end().await;
    });
}

/// A small file system of its own, for as long as this lives.
struct Small<'a>(&'a Path);

impl Small<'_> {
    fn mounted(at: &Path) -> Option<Small<'_>> {
        fs::create_dir_all(at).expect("made");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "small"]).arg(at).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Small(at))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// Why there can be none here.
pub(super) fn no_small_disk() -> Option<&'static str> {
    let folder = tempfile::tempdir().expect("a folder");
    let can = is_root() && Small::mounted(folder.path()).is_some();
    (!can).then_some("no small file system: root alone can mount one, and not in every container")
}

fn a_full_disk_is_named_and_leaves_nothing() {
    let hosts = Hosts::start(1);
    let folder = hosts.path("small");
    let _small = Small::mounted(&folder).expect("mounted");
    let reach = hosts.reach();
    block(async {
        let there = host("h1");
        let path = folder.join("large").display().to_string();
        let reported = reach.put(&there, &path, &noise(3_000_000)).await.expect_err("no room").to_string();
        assert_eq!(reported, format!("cannot write `{path}` on h1: no space is left on its file system"));
        assert_eq!(entries(&folder), Vec::<String>::new());
        reach.put(&there, &path, &noise(1_000_000)).await.expect("there is room for this");
        reach.end().await;
    });
}
