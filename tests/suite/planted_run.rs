//! Secrets in every form, printed by the programs of a run and by what its node is probed with: every byte of what the
//! run leaves and says is looked through, also of what is packed. What is found there is the list of forms not caught.

#[path = "../planted/forms.rs"]
pub(crate) mod forms;

use crate::project::{Project, Ran, ran};
use crate::secrets::{case, here, program};
use flate2::read::GzDecoder;
use forms::{Form, KNOWN};
use std::fs;
use std::io::Read;
use std::path::Path;

/// Each form on lines of its own.
fn printed(forms: &[Form]) -> String {
    forms.iter().enumerate().map(|(nth, form)| format!("form {nth}\n{}\n", form.text)).collect()
}

fn harness(project: &Project, args: &[&str]) -> Ran {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}/bin:{path}", project.path().display());
    ran(project.command(args).env("PLANTED", KNOWN).env("PATH", path).output().expect("the harness starts"))
}

/// All that lies in a folder, unpacked.
fn contents(folder: &Path, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("read").flatten() {
        let path = entry.path();
        let shown = path.display().to_string();
        into.push((format!("the name of {shown}"), shown.clone().into_bytes()));
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            contents(&path, into);
            continue;
        }
        let bytes = fs::read(&path).expect("read");
        if bytes.starts_with(b"PAR1") {
            let all = std::cell::RefCell::new(Vec::new());
            let look = |text: &[u8]| {
                all.borrow_mut().extend_from_slice(text);
                None
            };
            let table = fs::File::open(&path).expect("opened");
            nsys::export::cleaned(&table, &look).expect("a table");
            into.push((format!("the texts of {shown}"), all.into_inner()));
        }
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut all = Vec::new();
            GzDecoder::new(bytes.as_slice()).read_to_end(&mut all).expect("unpacked");
            into.push((format!("unpacked {shown}"), all));
        }
        into.push((shown, bytes));
    }
}

#[test]
fn no_planted_form_is_found_in_any_byte_that_a_run_leaves() {
    let project = Project::new();
    here(&project);
    let caught = [forms::unknown(), forms::known()].concat();
    let stays = forms::not_caught();
    project.write("planted/caught", &printed(&caught));
    project.write("planted/stays", &printed(&stays));
    let failing: String =
        caught.iter().map(|form| format!("job.sh: line 1: 7 Killed {}\n", form.text)).collect();
    project.write("planted/failing", &failing);
    let planted = project.path().join("planted").display().to_string();
    let both = program(&project, "both", &format!("cat {planted}/caught; cat {planted}/caught >&2"));
    let fails = program(&project, "fails", &format!("cat {planted}/failing >&2; exit 9"));
    let left = program(&project, "left", &format!("cat {planted}/stays"));
    program(&project, "nvidia-smi", &format!("cat {planted}/failing; cat {planted}/caught >&2; exit 1"));
    let cases = case("both", &both, "", "") + &case("fails", &fails, "", "") + &case("left", &left, "", "");
    project.write("suites/test.toml", &format!("instance = \"p5\"\nabout = \"planted\"\n{cases}"));

    let run = ["--suite", "test", "--inventory", "here"];
    // Its nvidia-smi prints them, and the node is left out for that.
    let probed = harness(&project, &run);
    assert_eq!(probed.code, Some(3), "{}", probed.all());
    let run = [&run[..], &["--no-probe"]].concat();
    let reports = ["-v", "--junit", "out/junit.xml", "--json", "out/all.json"];
    let mut said = vec![
        probed,
        harness(&project, &[&run[..], &reports].concat()),
        harness(&project, &[&run[..], &["--format", "json", "--color", "always"]].concat()),
    ];
    for ran in &said[1..] {
        assert_eq!(ran.code, Some(1), "{}", ran.all());
    }
    let raw = project.latest().join("cases/both/raw");
    for file in ["here-1/stdout", "here-1/stderr"] {
        let text = fs::read(raw.join(file)).expect("read");
        let text = String::from_utf8_lossy(&text).into_owned();
        for nth in 0..caught.len() {
            // A whole text redacted would pass as well.
            assert!(text.contains(&format!("form {nth}\n")), "form {nth} is hidden in {file:?}: {text}");
        }
    }
    said.extend([
        harness(&project, &["--run", "latest", "--from", "collect"]),
        harness(&project, &["--run", "latest", "--from", "report"]),
        harness(&project, &["bundle", "--run", "latest", "--out", "out/run.tar.gz"]),
        harness(&project, &["inventory", "probe", "--inventory", "here"]),
        harness(&project, &["clean", "--run", "latest"]),
        harness(&project, &["history", "--suspects"]),
        harness(&project, &["history", "command.exit_code"]),
        harness(&project, &["explain", "latest"]),
    ]);
    for log in ["nccl", "nccl-tests", "steps", "mpi"] {
        said.push(harness(&project, &["logs", log, "planted/caught"]));
    }
    assert!(project.path().join("out/run.tar.gz").is_file(), "{}", said[5].all());

    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    for ran in said {
        all.push((
            format!("terminal: {}", ran.all().chars().take(80).collect::<String>()),
            ran.all().into_bytes(),
        ));
    }
    contents(&project.path().join("runs"), &mut all);
    contents(&project.path().join("out"), &mut all);
    assert!(all.iter().any(|(name, _)| name.ends_with("verdict.json")), "{} files", all.len());
    let mut leaks = Vec::new();
    for (name, bytes) in &all {
        let text = String::from_utf8_lossy(bytes);
        for form in caught.iter().filter(|form| text.contains(&form.secret)) {
            let at = text.find(&form.secret).unwrap_or_default();
            let from = text.char_indices().map(|(at, _)| at).take_while(|from| *from + 60 < at).last();
            let near: String = text[from.unwrap_or_default()..].chars().take(120).collect();
            leaks.push(format!("{name}: {:?}: {near:?}", form.text));
        }
    }
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    let raw = project.latest().join("cases/left/raw");
    let files = store::files(&raw).expect("a run");
    let text: String =
        files.iter().map(|file| fs::read_to_string(raw.join(file)).unwrap_or_default()).collect();
    for form in &stays {
        assert!(
            text.contains(&form.secret),
            "it is caught, and does not belong into the list: {:?}",
            form.text
        );
    }
}
