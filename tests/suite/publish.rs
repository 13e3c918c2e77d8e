//! Runs and folders in object stores: claimed first and listed last, never written over, gone on with after a kill at
//! any write; and fetched whole or not at all.

use crate::little::{assert_same, ended, project, results};
use crate::object_server::{Fault, ObjectServer, SECRETS};
use crate::project::{Project, Ran, ran};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const PART: usize = 16 << 20;
const URL: &str = "s3://bucket/team/run";

/// A folder `delivery` with small files, odd names and one file of three parts.
fn delivery() -> Project {
    let project = Project::bare();
    for (name, text) in [("acceptance.md", "# good"), ("deep/a b?c", "odd"), ("empty", ""), ("é/..x", "two")]
    {
        project.write(&format!("delivery/{name}"), text);
    }
    let large: Vec<u8> = (0..2 * PART + 7).map(|at| (at / 4096 % 251) as u8).collect();
    fs::write(project.path().join("delivery/large"), large).expect("written");
    project
}

fn small() -> Project {
    let project = Project::bare();
    project.write("delivery/a", "one");
    project.write("delivery/b", "two");
    project
}

fn with(server: &ObjectServer, project: &Project, arguments: &[&str], kill_at: Option<u64>) -> Ran {
    let mut command = project.command(arguments);
    server.configure(&mut command);
    if let Some(at) = kill_at {
        command.env("HARNESS_TEST_KILL_AT_WRITE", at.to_string());
    }
    let ran = ran(command.output().expect("the harness starts"));
    for (name, secret) in SECRETS {
        assert!(!ran.all().contains(secret), "{name} is shown: {}", ran.all());
    }
    ran
}

fn publish(server: &ObjectServer, project: &Project) -> Ran {
    with(server, project, &["publish", "delivery", URL, "--retries", "3", "--request-timeout", "20s"], None)
}

#[track_caller]
fn assert_ended(ran: &Ran, code: i32, line: &str) {
    assert_eq!(ran.code, Some(code), "{}", ran.all());
    assert!(ran.all().contains(line), "no `{line}` in {}", ran.all());
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    crate::determinism::files(folder, "")
}

/// Every file is in the store, nothing was written over, and no upload is left open.
#[track_caller]
fn assert_complete(server: &ObjectServer, project: &Project, what: &str) {
    let other = Project::bare();
    assert_ended(&with(server, &other, &["fetch", URL, "delivery"], None), 0, "of delivery");
    let fetched = contents(&other.path().join("delivery"));
    assert!(fetched == contents(&project.path().join("delivery")), "{what}: {:?}", fetched.keys());
    let state = server.state();
    assert!(state.written_over.is_empty(), "{what}: {:?}", state.written_over);
}

#[test]
fn a_run_in_a_folder_is_fetched_elsewhere_and_replays_to_the_same_bytes() {
    let project = project();
    let run = ended(&project);
    let expected = results(&project.latest());
    let share = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}/shared/run", share.path().display());
    let dry = project.harness(&["publish", "latest", &url, "--dry-run"]);
    assert_ended(&dry, 0, "nothing was sent");
    assert!(dry.stdout.contains("files/plan.json") && !share.path().join("shared").exists(), "{}", dry.all());
    assert_ended(&project.harness(&["publish", "latest", &url]), 0, &format!("harness fetch {url}"));
    let claim = fs::read_to_string(share.path().join("shared/run/claim.json")).expect("claimed");
    assert!(claim.contains(&run), "{claim}");
    assert_ended(&project.harness(&["publish", "latest", &url]), 0, "published already");
    let other = crate::little::project();
    assert_ended(&other.harness(&["fetch", &url]), 0, &format!("runs/{run}"));
    let replay = other.harness(&["replay", "-q", "--run", &run, "--from", "analyze"]);
    assert_eq!(replay.code, Some(1), "{}", replay.all());
    assert_same(&results(&other.latest()), &expected);
    // It is read and never obeyed, and nothing is fetched over it.
    assert_ended(&other.harness(&["rerun", "--run", &run]), 2, "came in a bundle");
    assert_ended(&other.harness(&["fetch", &url]), 2, "is there already");
    // The same run from another project is another publication.
    assert_ended(&other.harness(&["publish", &run, &url]), 2, "was claimed by");
    assert_ended(&project.harness(&["publish", "nowhere", &url]), 2, "no run `nowhere`");
    fs::write(project.latest().join("summary.json"), "{}").expect("changed");
    assert_ended(&project.harness(&["publish", "latest", &url]), 2, "changed since this publication began");
}

#[test]
fn what_is_published_to_s3_is_claimed_first_and_listed_last_and_comes_back_the_same() {
    let server = ObjectServer::start();
    let project = delivery();
    std::os::unix::fs::symlink("/etc/passwd", project.path().join("delivery/link")).expect("linked");
    let published = publish(&server, &project);
    assert_ended(&published, 0, "5 files of delivery");
    assert!(published.stderr.contains("not published: link"), "{}", published.all());
    fs::remove_file(project.path().join("delivery/link")).expect("removed");
    let writes = server.writes();
    assert_eq!(writes.first().map(String::as_str), Some("team/run/claim.json"), "{writes:?}");
    assert_eq!(writes.last().map(String::as_str), Some("team/run/manifest.json"), "{writes:?}");
    assert_complete(&server, &project, "whole");
    let writes = server.writes().len();
    assert_ended(&publish(&server, &project), 0, "published already");
    assert_eq!(server.writes().len(), writes);
    // The prefix was emptied: the publication begins from there.
    server.state().objects.clear();
    assert_ended(&publish(&server, &project), 0, "5 files of delivery");
    assert_complete(&server, &project, "after it was emptied");
}

#[test]
fn killed_at_any_write_it_goes_on_and_nothing_is_lost_or_written_over() {
    let project = delivery();
    let arguments = ["publish", "delivery", URL];
    let mut kills = 0;
    for at in [1, 2, 8, 11, 12, 13] {
        let server = ObjectServer::start();
        // Each store of its own: what this machine remembers of the one before is of another time.
        let _ = fs::remove_dir_all(project.path().join("runs"));
        let first = with(&server, &project, &arguments, Some(at));
        if first.code == Some(0) {
            assert_eq!(at, 13, "{at} writes were enough");
            continue;
        }
        assert_eq!(first.code, None, "killed at write {at}: {}", first.all());
        assert!(!server.state().objects.contains_key("team/run/manifest.json") || at > 10, "{at}");
        kills += 1;
        // Most of them are killed a second time.
        let second = with(&server, &project, &arguments, Some(2));
        kills += usize::from(second.code.is_none());
        assert_ended(&with(&server, &project, &arguments, None), 0, "delivery");
        assert_complete(&server, &project, &format!("killed at write {at}"));
        let parts = server.state().done.iter().filter(|line| line.contains("partNumber")).count();
        // A part is sent again only where the kill came before its line.
        let most = if at > 10 { 3 } else { 8 };
        assert!((3..=most).contains(&parts), "killed at write {at}: {parts} parts were sent");
    }
    assert!(kills >= 9, "{kills} processes were killed");
}

#[test]
fn what_was_sent_is_looked_at_again_before_it_is_believed() {
    let arguments = ["publish", "delivery", URL];
    for changed in [None, Some(b"other".to_vec())] {
        let (server, project) = (ObjectServer::start(), small());
        assert_eq!(with(&server, &project, &arguments, Some(4)).code, None);
        let key = {
            let mut state = server.state();
            let key = state.objects.keys().find(|key| key.contains("/files/")).expect("sent").clone();
            match changed.clone() {
                None => drop(state.objects.remove(&key)),
                Some(bytes) => drop(state.objects.insert(key.clone(), bytes)),
            }
            key
        };
        let next = with(&server, &project, &arguments, None);
        match changed {
            None => {
                assert_ended(&next, 0, "delivery");
                assert_complete(&server, &project, "sent again");
            }
            Some(bytes) => {
                assert_ended(&next, 2, "another object is there; nothing was written over");
                assert_eq!(server.state().objects[&key], bytes);
                assert!(!server.state().objects.contains_key("team/run/manifest.json"));
            }
        }
    }
}

#[test]
fn faults_that_pass_lose_and_overwrite_nothing() {
    for (method, target, fault, times) in [
        ("PUT", "claim.json", Fault::Status(503, "SlowDown"), 2),
        ("PUT", "files/a", Fault::Status(500, "InternalError"), 3),
        ("PUT", "claim.json", Fault::CutAnswer, 1),
        ("PUT", "manifest.json", Fault::CutAnswer, 1),
        ("PUT", "files/b", Fault::CutAnswer, 2),
        ("PUT", "files/a", Fault::CutRequest, 2),
        ("PUT", "partNumber=2", Fault::CutRequest, 2),
        ("PUT", "partNumber=1", Fault::CutAnswer, 1),
        ("PUT", "partNumber=3", Fault::Status(503, "SlowDown"), 2),
        ("POST", "uploads", Fault::Status(503, "SlowDown"), 1),
        ("POST", "uploadId", Fault::Status(503, "SlowDown"), 1),
        ("HEAD", "files/large", Fault::Status(500, "InternalError"), 1),
    ] {
        let is_large = method == "POST" || target.contains("partNumber") || target.contains("large");
        let (server, project) = (ObjectServer::start(), if is_large { delivery() } else { small() });
        let what = format!("{method} {target} {fault:?}");
        server.plant(method, target, fault, times);
        assert_ended(&publish(&server, &project), 0, "harness fetch");
        assert_complete(&server, &project, &what);
    }
}

#[test]
fn a_lost_answer_to_the_end_of_an_upload_is_no_reason_to_send_it_again() {
    let (server, project) = (ObjectServer::start(), delivery());
    // The store has completed the upload, and knows nothing of it any more.
    server.plant("POST", "uploadId", Fault::CutAnswer, 1);
    assert_ended(&publish(&server, &project), 0, "harness fetch");
    assert_complete(&server, &project, "completed without an answer");
    let parts = server.state().done.iter().filter(|line| line.contains("partNumber")).count();
    assert_eq!(parts, 3);
}

#[test]
fn faults_that_last_end_it_with_the_object_the_status_and_the_next_command() {
    let (server, project) = (ObjectServer::start(), small());
    server.plant("PUT", "files/b", Fault::Status(503, "SlowDown"), 1000);
    let ran = publish(&server, &project);
    assert_ended(&ran, 3, "s3://bucket/team/run/files/b: status 503 SlowDown; the store is busy");
    assert!(ran.stderr.contains("go on with the same command"), "{}", ran.all());
    assert_ended(
        &with(&server, &Project::bare(), &["fetch", URL], None),
        2,
        "is incomplete: it was begun by",
    );
    server.heal();
    server.plant("PUT", "files/b", Fault::Silence, 1000);
    let slow = ["publish", "delivery", URL, "--retries", "0", "--request-timeout", "1s"];
    assert_ended(&with(&server, &project, &slow, None), 3, "no answer within the time of one request");
    server.heal();
    for (status, code, hint) in [
        (403, "AccessDenied", "the credentials do not allow it"),
        (403, "SignatureDoesNotMatch", "the credentials are wrong"),
        (404, "NoSuchBucket", "there is no such bucket"),
    ] {
        server.plant("PUT", "files/b", Fault::Status(status, code), 1);
        assert_ended(&publish(&server, &project), 2, hint);
    }
    server.plant("PUT", "files/b", Fault::Status(400, "ExpiredToken"), 1);
    assert_ended(&publish(&server, &project), 3, "renew the credentials");
    assert_ended(&publish(&server, &project), 0, "had been sent before");
    assert_complete(&server, &project, "in the end");
}

#[test]
fn a_prefix_of_another_publication_or_of_other_objects_is_left_alone() {
    let (server, project, other) = (ObjectServer::start(), small(), small());
    assert_ended(&publish(&server, &project), 0, "delivery");
    let before = server.state().objects.clone();
    other.write("delivery/a", "another");
    let refused = publish(&server, &other);
    assert_ended(&refused, 2, "s3://bucket/team/run was claimed by");
    assert!(
        refused.stderr.contains("for `delivery`") && refused.stderr.contains("another prefix"),
        "{}",
        refused.all()
    );
    assert!(server.state().objects == before);
    server.state().objects.retain(|key, _| key.ends_with("files/a"));
    assert_ended(&publish(&server, &other), 2, "is not empty: it holds `files/a`");
    server.state().objects.clear();
    server.state().objects.insert("team/run/claim.json".to_owned(), b"not JSON \x1b[2J".to_vec());
    assert_ended(&publish(&server, &other), 2, "is no claim");
}

#[test]
fn two_that_publish_at_the_same_time_do_not_mix() {
    let (server, projects) = (ObjectServer::start(), [small(), small()]);
    projects[1].write("delivery/a", "another");
    let started = projects.each_ref().map(|project| {
        let mut command = project.command(&["publish", "delivery", URL]);
        server.configure(&mut command);
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("started")
    });
    let ended = started.map(|child| ran(child.wait_with_output().expect("ended")));
    let winner = usize::from(ended[0].code != Some(0));
    assert_ended(&ended[winner], 0, "harness fetch");
    assert_ended(&ended[1 - winner], 2, "was claimed by");
    assert_complete(&server, &projects[winner], "the one that won");
}

#[test]
fn a_store_without_conditions_is_noticed_and_left_empty() {
    let (server, project) = (ObjectServer::start(), small());
    server.plant("PUT", "claim.json", Fault::Status(501, "NotImplemented"), 1000);
    assert_ended(&publish(&server, &project), 2, "the store has no conditional writes");
    assert!(server.state().objects.is_empty());
    server.heal();
    server.state().ignores_conditions = true;
    assert_ended(&publish(&server, &project), 2, "the store ignores conditions");
    assert!(server.state().objects.is_empty(), "{:?}", server.state().objects.keys());
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_reported_and_no_manifest_is_written() {
    for (method, target) in [("PUT", "claim.json"), ("PUT", "files/a")] {
        let (server, project) = (ObjectServer::start(), small());
        let file = if target == "claim.json" { "delivery/a" } else { "delivery/new" };
        server.plant(method, target, Fault::Grow(project.path().join(file)), 1);
        let why = if target == "claim.json" {
            "a: it changed while it was published"
        } else {
            "new: it came or went"
        };
        assert_ended(&publish(&server, &project), 2, why);
        assert!(!server.state().objects.contains_key("team/run/manifest.json"));
    }
}

#[test]
fn nothing_that_looks_like_a_secret_is_sent() {
    let (server, project) = (ObjectServer::start(), small());
    project.write("delivery/notes.txt", "a note\nAWS_SECRET_ACCESS_KEY=hunter2\n");
    let ran = publish(&server, &project);
    assert_ended(&ran, 2, "nothing was sent: notes.txt: line 2 looks like a secret, `AWS_SECRET_ACCESS_KEY`");
    assert!(!ran.all().contains("hunter2"), "{}", ran.all());
    project.write("delivery/notes.txt", &format!("token: {}", SECRETS[2].1));
    assert_ended(&publish(&server, &project), 2, "notes.txt: line 1 looks like a secret");
    assert!(server.state().done.is_empty(), "{:?}", server.state().done);
}

#[test]
fn without_credentials_it_ends_soon_and_says_what_to_set() {
    let (server, project) = (ObjectServer::start(), small());
    server.plant("PUT", "", Fault::Silence, 1000);
    server.plant("GET", "", Fault::Silence, 1000);
    let arguments = ["publish", "delivery", URL, "--retries", "0", "--request-timeout", "1s"];
    let without = |name: &str, value: &str| {
        let mut command = project.command(&arguments);
        server.configure(&mut command);
        for (name, _) in SECRETS {
            command.env_remove(name);
        }
        ran(command.env(name, value).output().expect("the harness starts"))
    };
    assert_ended(&without("AWS_METADATA_ENDPOINT", &server.address()), 2, "no credentials");
    assert_ended(&without("AWS_EC2_METADATA_DISABLED", "true"), 2, "AWS_ACCESS_KEY_ID");
    let mut command = project.command(&arguments);
    server.configure(&mut command);
    let far =
        ran(command.env("AWS_ENDPOINT_URL", "http://s3.example.com").output().expect("the harness starts"));
    assert_ended(&far, 2, "is not encrypted");
    assert!(server.state().objects.is_empty());
}

#[test]
fn cut_and_slow_bodies_are_fetched_again_or_nothing_is() {
    let (server, project) = (ObjectServer::start(), delivery());
    assert_ended(&publish(&server, &project), 0, "delivery");
    server.plant("GET", "files/large", Fault::HalfAnswer, 1);
    server.plant("GET", "files/acceptance.md", Fault::CutAnswer, 1);
    server.plant("GET", "manifest.json", Fault::Status(503, "SlowDown"), 2);
    let arguments = ["fetch", URL, "here", "--request-timeout", "2s", "--retries", "3"];
    let other = Project::bare();
    assert_ended(&with(&server, &other, &arguments, None), 0, "here");
    assert!(contents(&other.path().join("here")) == contents(&project.path().join("delivery")));
    server.plant("GET", "files/large", Fault::HalfAnswer, 1000);
    let other = Project::bare();
    let lasting = ["fetch", URL, "here", "--request-timeout", "1s", "--retries", "1"];
    assert_ended(&with(&server, &other, &lasting, None), 3, "files/large");
    assert!(!other.path().join("here").exists());
    // What came is kept, and the same command brings the rest.
    server.heal();
    server.state().sent.clear();
    let again = with(&server, &other, &arguments, None);
    assert_ended(&again, 0, "5 files of delivery");
    assert!(contents(&other.path().join("here")) == contents(&project.path().join("delivery")));
    let sent: Vec<String> = server.state().sent.iter().map(|(target, _)| target.clone()).collect();
    let is_small = |target: &&String| target.contains("/files/") && !target.contains("large");
    assert_eq!(sent.iter().filter(is_small).count(), 0, "small files were here: {sent:?}");
    assert_eq!(fs::read_dir(other.path()).expect("read").count(), 1, "nothing else is left");
}

/// A published folder in which a test changes what it likes.
fn shared() -> (tempfile::TempDir, String) {
    let share = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}/shared", share.path().display());
    assert_ended(&small().harness(&["publish", "delivery", &url]), 0, "harness fetch");
    (share, url)
}

#[test]
fn the_store_chooses_no_name_for_a_folder() {
    let (_share, url) = shared();
    let here = Project::bare();
    assert_ended(&here.harness(&["fetch", &url]), 2, &format!("harness fetch {url} DIR"));
    assert_eq!(fs::read_dir(here.path()).expect("read").count(), 0);
}

#[test]
fn what_is_written_while_it_is_published_is_refused_inside_the_source() {
    let project = small();
    let url = format!("file://{}/delivery/share/x", project.path().display());
    for arguments in [&["publish", "delivery", &url][..], &["publish", "delivery", &url, "--dry-run"]] {
        assert_ended(&project.harness(arguments), 2, "the target would lie inside");
    }
    assert!(!project.path().join("delivery/share").exists());
    let url = "file:///tmp/never-made-by-a-test";
    assert_ended(
        &project.harness(&["publish", ".", url]),
        2,
        "the record of the publication would lie inside",
    );
}

#[test]
fn settings_that_no_request_can_hold_are_refused_by_name_without_a_panic() {
    let (server, project) = (ObjectServer::start(), small());
    for (name, value) in [
        ("AWS_ENDPOINT_URL", "not a url"),
        ("AWS_ENDPOINT_URL", "HTTP://8.8.8.8:1"),
        ("AWS_REGION", "us east"),
        ("AWS_ACCESS_KEY_ID", "AKIA\n"),
        ("AWS_SESSION_TOKEN", "odd\n"),
    ] {
        let mut command = project.command(&["publish", "delivery", URL, "--retries", "0"]);
        server.configure(&mut command);
        let ran = ran(command.env(name, value).output().expect("the harness starts"));
        assert_ended(&ran, 2, name);
    }
    assert_ended(
        &with(&server, &project, &["publish", "delivery", "s3://x:80/p"], None),
        2,
        "name of a bucket",
    );
    assert!(server.state().done.is_empty(), "{:?}", server.state().done);
}

#[test]
fn hostile_publications_are_refused_and_leave_nothing() {
    let refused = |why: &str, change: &dyn Fn(&Path)| {
        let (share, url) = shared();
        change(&share.path().join("shared"));
        let here = Project::bare();
        let ran = here.harness(&["fetch", &url, "x"]);
        assert_ended(&ran, 2, why);
        let left: Vec<_> = fs::read_dir(here.path()).expect("read").flatten().collect();
        assert!(left.is_empty(), "{why}: {left:?}");
    };
    let edit = |from: &'static str, to: &'static str| {
        move |folder: &Path| {
            let path = folder.join("manifest.json");
            let text = fs::read_to_string(&path).expect("there");
            assert!(text.contains(from), "{text}");
            fs::write(path, text.replacen(from, to, 1)).expect("changed");
        }
    };
    refused("leads out of its folder", &edit("\"path\": \"a\"", "\"path\": \"../a\""));
    refused("leads out of its folder", &edit("\"path\": \"a\"", "\"path\": \"/tmp/a\""));
    refused("duplicate file", &edit("\"path\": \"b\"", "\"path\": \"a\""));
    refused("is not the key of", &edit("files/a", "../../etc/passwd"));
    refused("is not the key of", &edit("files/a", "files/b"));
    refused("bytes are to be fetched, and", &edit("\"bytes\": 3", "\"bytes\": 9000000000000000000"));
    refused("has not the 2 bytes", &edit("\"bytes\": 3", "\"bytes\": 2"));
    refused("has not the 4 bytes", &edit("\"bytes\": 3", "\"bytes\": 4"));
    refused("its digest differs", &edit("\"sha256\": \"7", "\"sha256\": \"8"));
    refused("is not the name", &edit("\"name\": \"delivery\"", "\"name\": \"../x\""));
    refused("format 7", &edit("\"format\": 1", "\"format\": 7"));
    refused("its digest differs", &|folder| fs::write(folder.join("files/b"), "xyz").expect("changed"));
    refused("status 404", &|folder| fs::remove_file(folder.join("files/b")).expect("removed"));
    refused("nothing is published there", &|folder| {
        for name in ["manifest.json", "claim.json"] {
            fs::remove_file(folder.join(name)).expect("removed");
        }
    });
    refused("is incomplete", &|folder| fs::remove_file(folder.join("manifest.json")).expect("removed"));
    refused("it is not a regular file", &|folder| {
        fs::remove_file(folder.join("files/b")).expect("removed");
        std::os::unix::fs::symlink("/etc/passwd", folder.join("files/b")).expect("linked");
    });
    refused("it lies below a link", &|folder| {
        fs::rename(folder.join("files"), folder.join("other")).expect("moved");
        std::os::unix::fs::symlink("other", folder.join("files")).expect("linked");
    });
    refused("it has no files", &|folder| {
        let text = fs::read_to_string(folder.join("manifest.json")).expect("there");
        let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        manifest["files"] = serde_json::json!([]);
        fs::write(folder.join("manifest.json"), manifest.to_string()).expect("changed");
    });
    refused("it is not a regular file", &|folder| {
        fs::remove_file(folder.join("files/b")).expect("removed");
        nix::unistd::mkfifo(&folder.join("files/b"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    });
    refused("limit", &|folder| {
        let file = fs::File::create(folder.join("manifest.json")).expect("made");
        file.set_len(1 << 30).expect("grown");
    });
}

#[test]
fn a_run_whose_files_were_changed_before_it_was_published_is_no_run_here() {
    let project = project();
    let run = ended(&project);
    let share = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", share.path().display());
    let stdout = project.latest().join(format!("cases/pair/raw/{}/stdout", crate::little::PAIR));
    let before = fs::read(&stdout).expect("there");
    fs::write(&stdout, [&before[..], b"#\n"].concat()).expect("edited");
    assert_ended(
        &project.harness(&["publish", "latest", &url]),
        2,
        "its digest differs from `collected.json`",
    );
    fs::write(&stdout, before).expect("as it was");
    assert_ended(&project.harness(&["publish", "latest", &url]), 0, "harness fetch");
    // Whoever changes an object changes the manifest too, and not what the run says of itself.
    let key = share.path().join("files/plan.json");
    let plan = fs::read_to_string(&key).expect("there").replace(&run, "another");
    fs::write(&key, &plan).expect("changed");
    let path = share.path().join("manifest.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).expect("there")).expect("JSON");
    let files = manifest["files"].as_array_mut().expect("files");
    let entry = files.iter_mut().find(|file| file["path"] == "plan.json").expect("listed");
    entry["sha256"] = base::digest::sha256(plan.as_bytes()).into();
    entry["bytes"] = plan.len().into();
    fs::write(&path, manifest.to_string()).expect("changed");
    let other = Project::bare();
    assert_ended(&other.harness(&["fetch", &url]), 2, "its plan is of run `another`");
    let left: Vec<_> = fs::read_dir(other.path().join("runs")).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
