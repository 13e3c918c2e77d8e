//! Pages as a browser has them: their size, what they show, and what a hand or a key does to them.

mod browser;
mod made;
mod run;

use crate::fact::{Fact, trials};
use browser::{Browser, DESK, Looked};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(crate) fn tests() -> Vec<Trial> {
    let absent = browser::program().is_none().then_some("no Chromium on PATH");
    [FACTS, run::FACTS].into_iter().flat_map(|facts| trials("pages", facts, absent)).collect()
}

const FACTS: &[Fact] = &[
    ("pages_of_256_ranks_are_small_and_open", pages_of_256_ranks_are_small_and_open),
    (
        "every_kind_of_chart_opens_without_complaint_on_a_desk_in_the_dark_and_on_a_phone",
        every_kind_of_chart_opens_without_complaint_on_a_desk_in_the_dark_and_on_a_phone,
    ),
    (
        "a_hand_and_the_keys_give_the_exact_number_of_every_kind_of_mark",
        a_hand_and_the_keys_give_the_exact_number_of_every_kind_of_mark,
    ),
    (
        "what_was_not_measured_says_so_and_a_zoom_keeps_the_mark",
        what_was_not_measured_says_so_and_a_zoom_keeps_the_mark,
    ),
    (
        "a_wheel_moves_the_page_until_a_person_is_in_the_chart",
        a_wheel_moves_the_page_until_a_person_is_in_the_chart,
    ),
    (
        "ranks_are_chosen_for_all_charts_and_tables_together",
        ranks_are_chosen_for_all_charts_and_tables_together,
    ),
    (
        "tables_are_sorted_by_their_headings_and_filtered_by_words",
        tables_are_sorted_by_their_headings_and_filtered_by_words,
    ),
    ("names_that_are_markup_are_words_to_a_browser", names_that_are_markup_are_words_to_a_browser),
    ("on_paper_a_page_is_light_and_its_tables_are_whole", on_paper_a_page_is_light_and_its_tables_are_whole),
    ("an_index_is_filtered_and_leads_to_its_pages", an_index_is_filtered_and_leads_to_its_pages),
];

/// A folder that goes with the test, or the one that a person wants to look into.
fn folder(kept: &str) -> (PathBuf, Option<tempfile::TempDir>) {
    match std::env::var_os("HARNESS_KEEP_PAGES").filter(|folder| !folder.is_empty()) {
        Some(folder) => (PathBuf::from(folder).join(kept), None),
        None => {
            let folder = tempfile::tempdir().expect("a folder");
            (folder.path().to_owned(), Some(folder))
        }
    }
}

#[track_caller]
fn assert_quiet(browser: &mut Browser, of: &str) {
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{of}: {complaints:#?}");
}

fn readout(browser: &mut Browser, figure: usize) -> String {
    browser.text(&format!("document.getElementById('readout-{figure}').textContent"))
}

/// What stands under the chart when these keys were pressed in it.
fn by_keys(browser: &mut Browser, figure: usize, keys: &[&str]) -> String {
    browser.eval(&format!(
        "(() => {{ const it = document.querySelector('#figure-{figure} .chart'); it.scrollIntoView({{block: 'center'}}); \
         it.focus({{preventScroll: true}}); return true; }})()"
    ));
    browser.press("Escape");
    for key in keys {
        browser.press(key);
    }
    readout(browser, figure)
}

/// Where the mark is that the keys have reached.
fn place(browser: &mut Browser, figure: usize) -> (f64, f64) {
    let place = browser.eval(&format!(
        "(() => {{ const box = document.querySelector('#figure-{figure} .cursor').getBoundingClientRect(); \
         return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
    ));
    (place[0].as_f64().expect("x"), place[1].as_f64().expect("y"))
}

fn pages_of_256_ranks_are_small_and_open() {
    let (folder, _kept) = folder("large");
    let pages = made::large(&folder);
    let mut browser = Browser::start();
    for (name, bytes) in pages {
        assert!(bytes < harness::page::MOST_BYTES, "{name}: {bytes}");
        assert!(bytes > 1_500_000, "{name} holds little: {bytes}");
        let took = browser.open(&folder.join(name), DESK);
        println!("{name}: {bytes} bytes, {} ms", took.as_millis());
        let marks: Vec<i64> = browser
            .eval("[...document.querySelectorAll('figure')].map((it) => Number(it.dataset.marks))")
            .as_array()
            .expect("figures")
            .iter()
            .filter_map(Value::as_i64)
            .collect();
        let least = if name == "maps.html" { vec![256 * 8 * 60; 3] } else { vec![20_000] };
        assert_eq!(marks.len(), least.len(), "{name}");
        assert!(marks.iter().zip(&least).all(|(marks, least)| marks >= least), "{name}: {marks:?}");
        assert_quiet(&mut browser, name);
    }
}

fn every_kind_of_chart_opens_without_complaint_on_a_desk_in_the_dark_and_on_a_phone() {
    let (folder, _kept) = folder("small");
    assert!(made::every_kind(&folder) < harness::page::MOST_BYTES);
    let mut browser = Browser::start();
    for (width, is_dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
        browser.open(&folder.join("kinds.html"), Looked { width, is_dark });
        let of = format!("{width} wide, dark: {is_dark}");
        let wide = browser.eval("document.documentElement.scrollWidth <= innerWidth");
        assert_eq!(wide, json!(true), "{of}: moves sideways");
        let marks = browser.eval(
            "Object.fromEntries([...document.querySelectorAll('figure')].map((it) => [it.dataset.figure, it.dataset.marks]))",
        );
        assert_eq!(
            marks,
            json!({"heatmap": "480", "lines": "800", "histogram": "200", "bars": "6", "boxes": "5"}),
            "{of}"
        );
        // Something is drawn, in more than one colour.
        let colours = browser.eval(
            "[...document.querySelectorAll('figure canvas')].every((it) => { const all = new Uint32Array(it.getContext('2d')\
             .getImageData(0, 0, it.width, it.height).data.buffer); return new Set(all).size > 5; })",
        );
        assert_eq!(colours, json!(true), "{of}");
        let theme = browser.text("document.documentElement.dataset.theme");
        assert_eq!(theme, if is_dark { "dark" } else { "light" });
        browser.click("#theme");
        assert_ne!(browser.text("document.documentElement.dataset.theme"), theme, "{of}");
        assert_quiet(&mut browser, &of);
    }
}

fn a_hand_and_the_keys_give_the_exact_number_of_every_kind_of_mark() {
    let (folder, _kept) = folder("small");
    made::every_kind(&folder);
    let mut browser = Browser::start();
    browser.open(&folder.join("kinds.html"), DESK);
    for (figure, keys, expected) in [
        (
            1,
            &["Home", "PageDown"][..],
            &["rank 3 GPU 1 · kernels running: ", " %", "0 ns to 12.35 ms (12,345,678 ns)", "bin 1 of 60"][..],
        ),
        (2, &["Home", "ArrowDown", "ArrowRight"], &["rank 1", "instance: 1", "duration: not measured"]),
        (2, &["Home"], &["rank 0 · instance: 0 · duration: 2.", " ns)"]),
        (3, &["Home"], &["in place", "20 ms (20,000,000 ns) to 22 ms (22,000,000 ns)", "out of place: "]),
        (
            4,
            &["Home", "ArrowDown"],
            &["nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "402 ms (402,000,001 ns)"],
        ),
        (4, &["End"], &["never measured · total time: not measured"]),
        (
            5,
            &["Home"],
            &[
                "least: 3 µs (3,000 ns)",
                "lower quartile: 4.5 µs (4,500 ns)",
                "median: 5.25 µs (5,250 ns)",
                "upper quartile: 7.5 µs (7,500 ns)",
                "most: 27 µs (27,001 ns)",
                "1,000 values",
            ],
        ),
    ] {
        let by_keys = by_keys(&mut browser, figure, keys);
        for expected in expected {
            assert!(by_keys.contains(expected), "figure {figure}: no `{expected}` in: {by_keys}");
        }
        if by_keys.contains("not measured") {
            continue;
        }
        let (x, y) = place(&mut browser, figure);
        browser.press("Escape");
        assert!(readout(&mut browser, figure).starts_with("Point at a mark"), "figure {figure}");
        browser.point(x, y);
        assert_eq!(readout(&mut browser, figure), by_keys, "figure {figure}, by hand");
        let tip = browser.text(&format!(
            "[...document.querySelectorAll('#figure-{figure} .tip:not([hidden]) div')].map((it) => it.textContent).join(' · ')"
        ));
        assert_eq!(tip, by_keys, "figure {figure}, beside the mark");
        browser.point(1.0, 1.0);
    }
    assert_quiet(&mut browser, "after all keys");
}

fn what_was_not_measured_says_so_and_a_zoom_keeps_the_mark() {
    let (folder, _kept) = folder("small");
    made::every_kind(&folder);
    let mut browser = Browser::start();
    browser.open(&folder.join("kinds.html"), DESK);
    let down = ["Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"];
    let hatched = by_keys(&mut browser, 1, &down);
    assert!(hatched.contains("rank 2 GPU 0 · kernels running: not measured"), "{hatched}");
    let before = place(&mut browser, 1);
    let marked = by_keys(&mut browser, 1, &[&down[..], &["ArrowRight", "+", "+"]].concat());
    assert!(marked.contains("bin 2 of 60"), "{marked}");
    let after = place(&mut browser, 1);
    assert!(after.0 > before.0 + 20.0, "zoomed in: {before:?}, {after:?}");
    // Beyond what is seen, the chart moves along.
    let far = by_keys(&mut browser, 1, &["End"]);
    assert!(far.contains("bin 60 of 60"), "{far}");
    let tools = "#figure-1 .chart-tools button[aria-label='see all']";
    browser.click(tools);
    let again = by_keys(&mut browser, 1, &down);
    assert_eq!((again, place(&mut browser, 1)), (hatched, before), "all is seen again");
    assert_quiet(&mut browser, "after zooming");
}

fn a_wheel_moves_the_page_until_a_person_is_in_the_chart() {
    let (folder, _kept) = folder("small");
    made::every_kind(&folder);
    let mut browser = Browser::start();
    browser.open(&folder.join("kinds.html"), DESK);
    // Where one mark stands reports whether the chart was zoomed.
    let keys = ["Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"];
    let marked = by_keys(&mut browser, 2, &keys);
    let (x, y) = place(&mut browser, 2);
    let turn = |browser: &mut Browser| (0..5).for_each(|_| browser.wheel(x + 400.0, y));
    browser.eval("document.activeElement.blur(), true");
    turn(&mut browser);
    assert_eq!(by_keys(&mut browser, 2, &keys), marked);
    assert!((place(&mut browser, 2).0 - x).abs() < 1.0, "a wheel that passes by zooms nothing");
    turn(&mut browser);
    assert_eq!(by_keys(&mut browser, 2, &keys), marked);
    assert!((place(&mut browser, 2).0 - x).abs() > 4.0, "the wheel of a person who is in it zooms");
    assert_quiet(&mut browser, "after the wheel");
}

fn ranks_are_chosen_for_all_charts_and_tables_together() {
    let (folder, _kept) = folder("large");
    made::large(&folder);
    let mut browser = Browser::start();
    browser.open(&folder.join("maps.html"), DESK);
    let marks =
        |browser: &mut Browser| browser.eval("Number(document.getElementById('figure-2').dataset.marks)");
    let status = |browser: &mut Browser| browser.text("document.getElementById('ranks-status').textContent");
    let rows = |browser: &mut Browser| browser.text("document.querySelector('#table-2 .status').textContent");
    assert_eq!(status(&mut browser), "256 ranks");
    browser.write("#ranks-input", "0-7, 12");
    assert_eq!(marks(&mut browser), json!(9 * 8 * 60));
    assert_eq!(status(&mut browser), "9 of 256 ranks");
    assert_eq!(rows(&mut browser), "9 rows of 256");
    browser.write("#ranks-input", "p5-002,300,x");
    assert_eq!(marks(&mut browser), json!(8 * 8 * 60));
    assert_eq!(status(&mut browser), "8 of 256 ranks; not there: 300, x");
    browser.click("#ranks button[aria-label='no rank']");
    assert_eq!((marks(&mut browser), rows(&mut browser)), (json!(0), "0 rows of 256".to_owned()));
    browser.eval(
        "(() => { const it = document.getElementById('ranks-host'); it.value = 'p5-032'; \
         it.dispatchEvent(new Event('change')); return true; })()",
    );
    browser.wait("document.getElementById('figure-2').dataset.marks === '3840'");
    assert_eq!(browser.text("document.getElementById('ranks-input').value"), "248-255");
    browser.click("#ranks button[aria-label='all ranks']");
    assert_eq!(marks(&mut browser), json!(256 * 8 * 60));
    assert_quiet(&mut browser, "after choosing");
}

fn tables_are_sorted_by_their_headings_and_filtered_by_words() {
    let (folder, _kept) = folder("small");
    made::every_kind(&folder);
    let mut browser = Browser::start();
    browser.open(&folder.join("kinds.html"), DESK);
    let first = |browser: &mut Browser| {
        browser.text(
            "[...document.querySelector('#table-1 tbody tr').cells].map((it) => it.textContent).join('|')",
        )
    };
    let head = |at: usize| format!("#table-1 th:nth-child({at})");
    let sorted =
        |browser: &mut Browser| browser.text(&format!("document.querySelector({:?}).ariaSort", head(3)));
    assert!(first(&mut browser).starts_with("0|9,000,000,000,000|0|"), "as the table has it");
    browser.click(&format!("{} button", head(3)));
    assert_eq!(sorted(&mut browser), "descending");
    assert!(first(&mut browser).contains("|2,739|"), "{}", first(&mut browser));
    browser.click(&format!("{} button", head(3)));
    assert_eq!(sorted(&mut browser), "ascending");
    assert!(first(&mut browser).contains("|0|"), "a cell without a value is below: {}", first(&mut browser));
    browser.click(&format!("{} button", head(3)));
    assert_eq!(sorted(&mut browser), "none");
    browser.write("#filter-1", "kernel_0042 float");
    assert!(first(&mut browser).ends_with("kernel_0042<float, 0>"), "{}", first(&mut browser));
    let status = "document.querySelector('#table-1 .status').textContent";
    assert_eq!(browser.text(status), "1 row of 250");
    browser.write("#filter-1", "nothing like this");
    assert_eq!(browser.text(status), "0 rows of 250");
    browser.write("#filter-1", "kernel");
    assert_eq!(browser.text(status), "1–100 of 250 rows");
    browser.click("#table-1 button[aria-label='rows behind these']");
    assert_eq!(browser.text(status), "101–200 of 250 rows");
    assert_quiet(&mut browser, "after sorting");
}

fn names_that_are_markup_are_words_to_a_browser() {
    let (folder, _kept) = folder("small");
    made::hostile(&folder);
    let mut browser = Browser::start();
    browser.open(&folder.join("hostile.html"), DESK);
    assert_eq!(browser.text("document.title"), made::HOSTILE[0]);
    assert_eq!(
        browser.eval("document.images.length + document.querySelectorAll('b, iframe, object').length"),
        json!(0)
    );
    let reported = by_keys(&mut browser, 1, &["Home"]);
    assert_eq!(reported, format!("{0} · {0}: 5", made::HOSTILE[0]));
    let cells =
        browser.eval("[...document.querySelectorAll('#table-1 tbody td')].map((it) => it.textContent)");
    assert_eq!(cells, json!(made::HOSTILE));
    assert_eq!(
        browser.text("document.querySelector('#table-1 th button').firstChild.data"),
        made::HOSTILE[1]
    );
    // Were one let in by error, the policy would not let it run.
    browser.eval("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = `owned`\">'), true");
    browser.eval("new Promise((done) => setTimeout(() => done(true), 100))");
    assert_eq!(browser.text("document.title"), made::HOSTILE[0]);
    assert!(!browser.complaints().is_empty(), "the policy said nothing");
}

fn on_paper_a_page_is_light_and_its_tables_are_whole() {
    let (folder, _kept) = folder("small");
    made::every_kind(&folder);
    let mut browser = Browser::start();
    browser.open(&folder.join("kinds.html"), Looked { width: 1280, is_dark: true });
    browser.eval(
        "addEventListener('beforeprint', () => { window.seen = [document.documentElement.dataset.theme, \
         document.querySelectorAll('#table-1 tbody tr').length]; }), true",
    );
    let printed = browser.ask("Page.printToPDF", json!({}));
    assert!(printed["data"].as_str().is_some_and(|pdf| pdf.len() > 50_000));
    assert_eq!(browser.eval("window.seen"), json!(["light", 250]));
    browser.wait("document.documentElement.dataset.theme === 'dark'");
    assert_eq!(browser.eval("document.querySelectorAll('#table-1 tbody tr').length"), json!(100));
    assert_quiet(&mut browser, "after printing");
}

fn an_index_is_filtered_and_leads_to_its_pages() {
    let (folder, _kept) = folder("indexed");
    made::every_kind(&folder.join("a b#c"));
    made::hostile(&folder);
    let index = harness::page::index(&folder).expect("read").expect("pages");
    std::fs::write(folder.join("index.html"), index).expect("written");
    let mut browser = Browser::start();
    browser.open(&folder.join("index.html"), Looked { width: 390, is_dark: false });
    assert_eq!(browser.eval("document.images.length"), json!(0));
    assert_eq!(browser.eval("document.documentElement.scrollWidth <= innerWidth"), json!(true));
    browser.write("#filter", "every kind");
    assert_eq!(browser.eval("document.querySelectorAll('.pages li:not([hidden])').length"), json!(1));
    assert_quiet(&mut browser, "the index");
    browser.click(".pages li:not([hidden]) a");
    browser.wait(
        "document.documentElement?.dataset.ready === 'true' && document.title === 'Every Kind of Chart'",
    );
    assert_quiet(&mut browser, "the page behind the link");
}
