//! `harness site` end to end: static pages of many runs, that are of one kind each, link to nothing outside, and are
//! written over nothing else.

use crate::little;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The links of a page but for those within it.
fn links(page: &str) -> Vec<&str> {
    let all = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    all.filter(|link| !link.starts_with('#') && *link != "data:,").collect()
}

#[test]
fn runs_of_each_kind_have_a_page_and_the_site_links_to_nothing_outside() {
    let project = little::project();
    let one = little::ended(&project);
    let ran = project.harness(&["--suite", "canary", "nic-slow", "-q"]);
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    let canary = little::id(&project);
    let ran = project.harness(&["site"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(ran.stdout, "site of 2 runs (1 simulated, 1 canary): site/index.html, with 2 pages of runs\n");
    let site = project.path().join("site");
    let (index, other) = (read(&site.join("index.html")), read(&site.join("canary.html")));
    assert!(index.contains(&one) && !index.contains(&canary), "kinds are not mixed");
    assert!(other.contains(&canary) && !other.contains(&one), "kinds are not mixed");
    assert!(index.contains("p5-002 rdmap113s0") && index.contains("SIMULATED"));
    assert!(other.contains("they make no node suspect"));
    // The site is moved: every link leads to a file of it.
    let moved = project.path().join("moved");
    fs::rename(&site, &moved).expect("moved");
    for file in store::files(&moved).expect("read") {
        let page = read(&moved.join(&file));
        let folder = moved.join(file.parent().expect("a folder"));
        let links = links(&page);
        for link in &links {
            assert!(folder.join(link).is_file(), "{}: {link}", file.display());
        }
        if file == Path::new("index.html") {
            assert!(links.contains(&"canary.html") && links.contains(&format!("runs/{one}.html").as_str()));
        }
    }
}

#[test]
fn a_site_is_brought_up_to_date_and_pages_beyond_the_limit_go() {
    let project = little::project();
    let one = little::ended(&project);
    let ran = project.harness(&["site", "--output", "out"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let out = project.path().join("out");
    let first = store::files(&out).expect("read");
    let again = project.harness(&["site", "--output", "out"]);
    assert_eq!((again.code, &again.stdout), (Some(0), &ran.stdout), "{}", again.all());
    assert_eq!(store::files(&out).expect("read"), first);
    let two = little::ended(&project);
    let ran = project.harness(&["site", "--output", "out", "--pages", "1"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(out.join(format!("runs/{two}.html")).is_file() && !out.join(format!("runs/{one}.html")).exists());
    // A page that was cut is made again.
    fs::write(out.join(format!("runs/{two}.html")), "<p>cut").expect("cut");
    let ran = project.harness(&["site", "--output", "out", "--pages", "1"]);
    assert!(ran.code == Some(0) && read(&out.join(format!("runs/{two}.html"))).len() > 1000, "{}", ran.all());
    // A run that was ended has no page, and is no pass.
    let killed = little::killed(&project, 12);
    let ran = project.harness(&["site", "--output", "out"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    assert!(ran.stderr.contains(&format!("no page: {killed}: ")), "{}", ran.all());
    let index = read(&out.join("index.html"));
    assert!(index.contains("id=\"verdict\">INCOMPLETE: "), "{index}");
}

#[test]
fn hostile_folders_of_runs_are_named_and_not_followed() {
    let project = little::project();
    let good = little::ended(&project);
    let runs = project.path().join("runs");
    let secret = project.path().join("secret");
    fs::create_dir(&secret).expect("made");
    fs::write(secret.join("plan.json"), "{\"secret\": 1}").expect("written");
    symlink(&secret, runs.join("20260101T000000Z-link-0001")).expect("linked");
    let make = |name: &str| {
        let folder = runs.join(name);
        fs::create_dir_all(folder.join("cases/x")).expect("made");
        folder
    };
    symlink(secret.join("plan.json"), make("a-linked-plan").join("plan.json")).expect("linked");
    let pipe = make("b-pipe");
    fs::copy(runs.join(&good).join("plan.json"), pipe.join("plan.json")).expect("copied");
    let made = std::process::Command::new("mkfifo").arg(pipe.join("cases/x/verdict.json")).status();
    assert!(made.expect("mkfifo starts").success());
    fs::write(make("c-broken").join("plan.json"), "{").expect("written");
    make("d-empty<b>");
    let ran = project.harness(&["site"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let index = read(&project.path().join("site/index.html"));
    for words in [
        "a-linked-plan: plan.json: a link or no regular file",
        "b-pipe: cases/x/verdict.json: a link or no regular file",
        "c-broken: ",
        "d-empty<b>: no `plan.json`",
        "20260101T000000Z-link-0001: a link, which is not followed",
    ] {
        assert!(ran.stderr.contains(words), "no `{words}` in: {}", ran.all());
        let escaped = words.replace('<', "&lt;").replace('>', "&gt;");
        assert!(index.contains(&escaped), "no `{escaped}` on the page");
    }
    assert!(!index.contains("secret") && index.contains(&good));
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_as_it_is() {
    let project = little::project();
    little::ended(&project);
    fs::create_dir(project.path().join("mine")).expect("made");
    project.write("mine/index.html", "mine");
    let ran = project.harness(&["site", "--output", "mine"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    let why = "--output: `mine` holds `index.html`, which is not of a site; give another folder";
    assert!(ran.stderr.contains(why), "{}", ran.all());
    assert_eq!(read(&project.path().join("mine/index.html")), "mine");
    let ran = project.harness(&["site", "--output", "runs/site"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("lies among the runs"), "{}", ran.all());
    assert!(!project.path().join("runs/site").exists(), "nothing is left among the runs");
    let ran = project.harness(&["site", "--deliveries", "absent"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("--deliveries: `absent`: "), "{}", ran.all());
    assert!(!project.path().join("site").exists());
    // Who is refused has lost nothing.
    fs::create_dir(project.path().join("notes")).expect("made");
    project.write("notes/.part-notes", "precious");
    let ran = project.harness(&["site", "--runs", "absent", "--output", "notes"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    assert_eq!(read(&project.path().join("notes/.part-notes")), "precious");
    let ran = project.harness(&["site", "--runs", "absent"]);
    assert_eq!(ran.code, Some(2), "{}", ran.all());
    fs::create_dir(project.path().join("none")).expect("made");
    let ran = project.harness(&["site", "--runs", "none"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("no runs in `none`"), "{}", ran.all());
}
