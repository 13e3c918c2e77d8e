//! What `harness stats` takes for a report: files and folders, the export beside a `.nsys-rep`, one that is stale, and
//! one that the user's own nsys makes. The nsys here is a script that stands in for it.

use crate::project::Ran;
use crate::small_export::{ExportFolder, PLAIN, Report};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const OTHER: Report = Report { kernels: &[(0, 7, "other")], calls: &[], ranges: &[] };

fn kernels(place: &ExportFolder, args: &[&str]) -> Ran {
    place.stats(&[&["-r", "cuda_gpu_kern_sum", "-f", "csv:nohdr"], args].concat())
}

/// A program that does with its last word and `--output=` what it is asked to, and notes how it was called.
fn nsys(place: &ExportFolder, does: &str) {
    let text = format!(
        "#!/bin/bash\necho \"$@\" >>calls\necho \"nsys speaks\"\n\
         for word; do case $word in --output=*) output=${{word#--output=}};; esac; done\n{does}\n"
    );
    place.write("bin/nsys", &text);
    let path = place.path("bin/nsys");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
}

fn all_of(ran: &Ran) -> (Option<i32>, &str) {
    (ran.code, ran.stdout.as_str())
}

#[test]
fn a_folder_is_all_its_reports_in_the_order_of_counting_and_each_once() {
    let place = ExportFolder::new();
    for (name, kernel) in [("r10", "ten"), ("r9", "nine"), ("r1", "one")] {
        place.sqlite(&format!("all/{name}.sqlite"), Report { kernels: &[(0, 1, kernel)], ..OTHER });
    }
    place.write("all/r9.nsys-rep", "report");
    place.set_hour("all/r9.nsys-rep", 1);
    place.write("all/notes.txt", "words");
    let names = |ran: &Ran| -> Vec<String> {
        let last = |line: &str| line.rsplit(',').next().unwrap_or_default().to_owned();
        ran.stdout.lines().filter(|line| !line.is_empty()).map(last).collect()
    };
    let ran = kernels(&place, &["all"]);
    assert_eq!(
        (ran.code, names(&ran)),
        (Some(0), vec!["one".into(), "nine".into(), "ten".into()]),
        "{}",
        ran.all()
    );
    assert_eq!(names(&kernels(&place, &["all:2"])), ["one", "nine"]);
    let ran = kernels(&place, &["all/r9.nsys-rep", "all", "all/r9.sqlite"]);
    assert_eq!(names(&ran), ["nine", "one", "ten"]);
    assert_eq!(ran.stderr.matches("given twice, read once, as all/r9.nsys-rep").count(), 2, "{}", ran.stderr);
}

#[test]
fn one_unreadable_report_of_many_is_named_and_stops_no_other() {
    let place = ExportFolder::new();
    place.sqlite("all/a.sqlite", PLAIN);
    place.write("all/b.sqlite", "no export");
    place.sqlite("all/c.sqlite", OTHER);
    let ran = kernels(&place, &["all"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(ran.stdout.contains("gemm") && ran.stdout.contains("other"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("error: all/b.sqlite: `b.sqlite` is not a readable export"),
        "{}",
        ran.stderr
    );
    place.write("none/notes.txt", "words");
    for (input, expected) in [
        ("none", "error: none: no report or export in this folder"),
        ("all:0", "error: all:0: `:n` needs a number of at least 1"),
        ("all/a.sqlite:2", "`:n` works on folders only"),
    ] {
        let ran = kernels(&place, &[input]);
        assert_eq!(all_of(&ran), (Some(2), ""), "{}", ran.all());
        assert!(ran.stderr.contains(expected), "no `{expected}` in\n{}", ran.stderr);
    }
}

#[test]
fn the_export_beside_a_report_is_read_unless_it_is_stale() {
    let place = ExportFolder::new();
    place.write("a.nsys-rep", "report");
    place.sqlite("a.sqlite", PLAIN);
    place.set_hour("a.nsys-rep", 1);
    place.set_hour("a.sqlite", 2);
    let ran = kernels(&place, &["a.nsys-rep"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(ran.stdout.lines().count(), 2);
    place.set_hour("a.nsys-rep", 3);
    for input in ["a.nsys-rep", "."] {
        let ran = kernels(&place, &[input]);
        assert_eq!(all_of(&ran), (Some(2), ""), "{}", ran.all());
        for expected in ["is older than the report", "`--force-export`", "`--stale-ok`", "a.sqlite"] {
            assert!(ran.stderr.contains(expected), "no `{expected}` in\n{}", ran.stderr);
        }
    }
    for args in [&["--stale-ok", "a.nsys-rep"][..], &["a.sqlite"]] {
        let ran = kernels(&place, args);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        assert!(
            ran.stderr.contains("note: a.sqlite: older than the report beside it: a.nsys-rep"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_report_without_an_export_needs_an_nsys() {
    let place = ExportFolder::new();
    place.write("a.nsys-rep", "report");
    for args in [&["a.nsys-rep"][..], &["--nsys", "./no-such", "a.nsys-rep"]] {
        let ran = kernels(&place, args);
        assert_eq!(all_of(&ran), (Some(2), ""), "{}", ran.all());
        for expected in
            ["a.nsys-rep: not exported, and `", "--nsys PATH", "nsys export --type=sqlite a.nsys-rep"]
        {
            assert!(ran.stderr.contains(expected), "no `{expected}` in\n{}", ran.stderr);
        }
    }
}

#[test]
fn the_users_own_nsys_exports_a_report_once_and_what_it_says_is_not_on_stdout() {
    let place = ExportFolder::new();
    place.sqlite("made", PLAIN);
    place.write("a.nsys-rep", "report");
    nsys(&place, "cp made \"$output\"");
    let first = kernels(&place, &["--nsys", "bin/nsys", "a.nsys-rep"]);
    assert_eq!(first.code, Some(0), "{}", first.all());
    assert!(
        first.stderr.contains("note: a.sqlite: exported by nsys; the export is kept beside it"),
        "{}",
        first.stderr
    );
    assert_eq!(first.stdout.lines().count(), 2, "{}", first.stdout);
    let again = kernels(&place, &["--nsys", "bin/nsys", "a.nsys-rep"]);
    assert_eq!(again.stdout, first.stdout);
    let calls = place.read("calls");
    assert_eq!(calls.lines().count(), 1, "{calls}");
    assert!(calls.starts_with("export --type=sqlite --force-overwrite=true --output="), "{calls}");
    assert!(calls.ends_with("a.nsys-rep\n"), "{calls}");
    // The one on PATH will do.
    let mut command = place.command(&["-q", "-r", "cuda_gpu_kern_sum", "--force-export=true", "a.nsys-rep"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", place.path("bin").display()));
    assert!(command.output().expect("it starts").status.success());
    assert_eq!(place.read("calls").lines().count(), 2);
    assert_eq!(place.names(), ["a.nsys-rep", "a.sqlite", "bin", "calls", "made"], "nothing else is left");
}

#[test]
fn a_stale_export_is_remade_where_that_is_asked_for() {
    let place = ExportFolder::new();
    place.sqlite("made", OTHER);
    place.sqlite("a.sqlite", PLAIN);
    place.write("a.nsys-rep", "report");
    place.set_hour("a.sqlite", 1);
    nsys(&place, "cp made \"$output\"");
    let ran = kernels(&place, &["--nsys", "bin/nsys", "a.nsys-rep"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert!(!place.path("calls").exists());
    let ran = kernels(&place, &["--nsys", "bin/nsys", "--force-export", "a.nsys-rep"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stdout.contains("other"), "{}", ran.stdout);
    assert_eq!(kernels(&place, &["a.nsys-rep"]).stdout, ran.stdout);
}

#[test]
fn an_nsys_that_fails_or_makes_nothing_is_reported_and_leaves_what_was_there() {
    let place = ExportFolder::new();
    place.sqlite("a.sqlite", PLAIN);
    place.write("a.nsys-rep", "report");
    place.set_hour("a.sqlite", 1);
    let before = std::fs::read(place.path("a.sqlite")).expect("read");
    for (does, expected) in [
        ("echo half >\"$output\"; echo 'broken report' >&2; exit 3", "exit status: 3: "),
        ("true", "nsys export failed"),
        ("touch \"$output\"", "nsys export failed"),
    ] {
        nsys(&place, does);
        let ran = kernels(&place, &["--nsys", "bin/nsys", "--force-export", "a.nsys-rep"]);
        assert_eq!(all_of(&ran), (Some(2), ""), "{}", ran.all());
        assert!(ran.stderr.contains(expected), "no `{expected}` in\n{}", ran.stderr);
        assert_eq!(std::fs::read(place.path("a.sqlite")).expect("read"), before);
    }
    assert_eq!(place.names(), ["a.nsys-rep", "a.sqlite", "bin", "calls"]);
    let words = Path::new("bin/nsys");
    std::fs::set_permissions(place.path("bin/nsys"), std::fs::Permissions::from_mode(0o644))
        .expect("no program");
    let ran = kernels(&place, &["--nsys", &words.display().to_string(), "--force-export", "a.nsys-rep"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`bin/nsys` cannot be run"), "{}", ran.stderr);
}
