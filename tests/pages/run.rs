//! The page of a run in a browser: it opens at once and without complaint, at every width, in the light and in the dark, on
//! paper and without scripts; its maps are read by keys; and names that are markup stay words.

use super::browser::{Browser, DESK, Looked};
use super::{assert_quiet, folder, made};
use crate::fact::Fact;
use crate::project::{Project, remove_digests};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) const FACTS: &[Fact] = &[
    (
        "a_page_of_a_run_opens_at_every_width_without_complaint",
        a_page_of_a_run_opens_at_every_width_without_complaint,
    ),
    (
        "the_maps_of_a_run_are_read_by_keys_and_lead_to_its_cases",
        the_maps_of_a_run_are_read_by_keys_and_lead_to_its_cases,
    ),
    (
        "names_of_a_run_that_are_markup_are_words_to_a_browser",
        names_of_a_run_that_are_markup_are_words_to_a_browser,
    ),
];

/// Four nodes, of which one has a slow NIC.
fn run(project: &Project) -> PathBuf {
    let fault = ["--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0"];
    let ran = project.harness(&[&["--suite", "nccl-p5", "-q", "nic-pairs"], &fault[..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.all());
    project.latest().join("index.html")
}

fn a_page_of_a_run_opens_at_every_width_without_complaint() {
    let project = Project::new();
    let page = run(&project);
    let mut browser = Browser::start();
    for (width, is_dark) in
        [(1280, false), (1280, true), (800, false), (800, true), (390, false), (390, true)]
    {
        let took = browser.open(&page, Looked { width, is_dark });
        let of = format!("{width} wide, dark: {is_dark}");
        println!("{of}: {} ms", took.as_millis());
        assert_eq!(
            browser.eval("document.documentElement.scrollWidth <= innerWidth"),
            json!(true),
            "{of}: moves sideways"
        );
        let theme = browser.text("document.documentElement.dataset.theme");
        assert_eq!(theme, if is_dark { "dark" } else { "light" });
        let first = browser.text("document.body.innerText.slice(0, 1000)");
        for words in [
            "FAILED: 1 bad part on 1 of 4 nodes (exit 1)",
            "p5-002 rdmap113s0",
            "HRN-NIC-SLOW",
            "harness isolate --run",
        ] {
            assert!(first.contains(words), "{of}: no `{words}` in: {first}");
        }
        browser.click("#theme");
        assert_ne!(browser.text("document.documentElement.dataset.theme"), theme, "{of}");
        assert_quiet(&mut browser, &of);
    }
    let printed = browser.ask("Page.printToPDF", json!({}));
    assert!(printed["data"].as_str().is_some_and(|pdf| pdf.len() > 20_000));
    assert_quiet(&mut browser, "after printing");
}

fn the_maps_of_a_run_are_read_by_keys_and_lead_to_its_cases() {
    let project = Project::new();
    let page = run(&project);
    let mut browser = Browser::start();
    browser.open(&page, DESK);
    let readout = |browser: &mut Browser, map: &str| {
        browser.text(&format!("document.getElementById('{map}-readout').textContent"))
    };
    // The worst node is the first row, and the slow NIC is among its columns.
    browser.eval("document.querySelector('#parts [data-map]').focus(), true");
    browser.press("Home");
    assert!(readout(&mut browser, "parts").starts_with("p5-002 · "), "{}", readout(&mut browser, "parts"));
    let mut found = String::new();
    for _ in 0..40 {
        found = readout(&mut browser, "parts");
        if found.contains("rdmap113s0") {
            break;
        }
        browser.press("ArrowRight");
    }
    assert!(
        found.contains("nic-pairs: nic.rate 4.79 GB/s, at least 11.00 GB/s")
            && found.contains("43 % of its limit"),
        "{found}"
    );
    browser.press("ArrowDown");
    let next = readout(&mut browser, "parts");
    assert!(next.starts_with("p5-001 · rdmap113s0 · nic-pairs: nic.rate 1"), "{next}");
    browser.press("Escape");
    assert_eq!(readout(&mut browser, "parts"), "Point at a cell, or move with the arrow keys.");
    browser.eval("document.querySelector('#grid [data-map]').focus(), true");
    browser.press("Home");
    assert_eq!(readout(&mut browser, "grid"), "p5-002 · nic-pairs · fail");
    // A case that is folded opens where its cell is followed.
    browser.eval("document.querySelectorAll('details.case').forEach((it) => { it.open = false; }), true");
    browser.press("Enter");
    browser.wait("location.hash === '#case-0' && document.getElementById('case-0').open");
    browser.click("[data-every]");
    assert_eq!(
        browser.eval("document.querySelectorAll('details.case[open]').length"),
        json!(0),
        "all are closed again"
    );
    assert_quiet(&mut browser, "after all keys");
}

/// A stored run into whose artefacts somebody wrote markup.
fn hostile(project: &Project) -> PathBuf {
    run(project);
    let folder = project.latest().canonicalize().expect("a run");
    remove_digests(&folder);
    let replace = |file: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(file).expect("read");
        assert!(text.contains(from), "{}", file.display());
        fs::write(file, text.replace(from, to)).expect("written");
    };
    let [one, two] = made::HOSTILE.map(|name| serde_json::to_string(name).expect("JSON"));
    replace(&folder.join("summary.json"), "\"rdmap113s0\"", &two);
    replace(
        &folder.join("cases/nic-pairs/verdict.json"),
        "\"part\": \"rdmap113s0\"",
        &format!("\"part\": {two}"),
    );
    replace(&folder.join("plan.json"), "\"about\": \"", &format!("\"about\": \"{}", one.trim_matches('"')));
    let ran = project.harness(&["page", "--output", "out.html"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    project.path().join("out.html")
}

fn names_of_a_run_that_are_markup_are_words_to_a_browser() {
    let (kept, _folder) = folder("run");
    let project = Project::new();
    let page = hostile(&project);
    fs::create_dir_all(&kept).expect("made");
    fs::copy(&page, kept.join("hostile.html")).expect("kept");
    let mut browser = Browser::start();
    browser.open(&page, DESK);
    assert!(browser.text("document.body.innerText").contains(made::HOSTILE[0]));
    assert_eq!(
        browser.eval("document.images.length + document.querySelectorAll('b, iframe, object').length"),
        json!(0)
    );
    assert!(browser.text("document.title").starts_with("FAILED: "));
    let heads = browser.eval("[...document.querySelectorAll('#parts thead th')].map((it) => it.textContent)");
    assert!(heads.as_array().is_some_and(|heads| heads.contains(&json!(made::HOSTILE[1]))), "{heads}");
    assert_quiet(&mut browser, "hostile names");
}
