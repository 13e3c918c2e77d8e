//! Whole pages as texts: what is in them, in which order, and what never is. How they look is tested in browsers.

use super::script::{INDEX, LIBRARY, LICENCES, LIVE, PAGE, RUN, STYLE};
use super::*;
use recipes::chart::{Axis, Bar, Bars, Chart, Figure};
use recipes::result_table::{Column, Quantity};
use sha2::{Digest, Sha256};

const HOSTILE: [&str; 3] =
    ["</script><img src=x onerror=alert(1)>", "\"><b>&amp;", "<!--<script>\u{2028}\x1b[31m"];

pub(super) fn outcome(tables: Vec<(&'static str, ResultTable)>, charts: Vec<Chart>) -> Outcome {
    Outcome { recipe: "small".to_owned(), tables, charts, ..Outcome::default() }
}

fn text(outcome: &Outcome, asked: &str) -> String {
    let page = Page {
        title: "Kernels",
        about: "kernels & their time",
        definition: "by <whole> name",
        asked: asked.to_owned(),
        outcome,
        look: Look::default(),
        beside: &["CSV", "Parquet"],
    };
    let mut text = Vec::new();
    write(&page, &mut text).expect("written");
    String::from_utf8(text).expect("text")
}

fn hostile() -> Outcome {
    let names = || HOSTILE.into_iter();
    let bars = names().map(|name| Bar { label: name.to_owned(), rank: None, value: Some(1.0) });
    let value = Axis::linear(HOSTILE[0], Quantity::Plain);
    let chart = Chart {
        name: "bars".into(),
        title: HOSTILE[0].to_owned(),
        about: HOSTILE[1].to_owned(),
        figure: Figure::Bars(Bars { value, bars: bars.collect(), marks: vec![] }),
    };
    let result_table = ResultTable::new("x", "X", vec![Column::texts(HOSTILE[0], names())]);
    let files = ResultTable {
        name: "x".into(),
        title: "Reports".into(),
        columns: vec![
            Column::integers("Rank", Quantity::Plain, [0, 1, 2]),
            Column::texts("File", names()),
            Column::texts("Host", names()),
        ],
    };
    let lines = ResultTable::from_lines("text", "T", names().map(str::to_owned).collect());
    let mut outcome = outcome(vec![("x", result_table), ("text", lines), ("files", files)], vec![chart]);
    outcome.notes = names().map(str::to_owned).collect();
    outcome.unreadable = names().map(|name| (name.to_owned(), name.to_owned())).collect();
    outcome
}

/// What the elements of this beginning hold.
fn inside<'a>(page: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    page.split(begin).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

#[test]
fn names_of_reports_are_words_wherever_they_stand() {
    // The library's own text speaks of elements.
    let plain = text(&outcome(vec![], vec![]), "").replace(LIBRARY, "");
    let hostile = text(&hostile(), HOSTILE[0]).replace(LIBRARY, "");
    assert!(!hostile.contains("<img") && !hostile.contains("<b>") && !hostile.contains('\u{2028}'));
    assert!(!hostile.contains('\x1b') && !hostile.contains("<!--"));
    for tag in ["<script", "</script>", "<style", "<link", "<meta"] {
        assert_eq!(hostile.matches(tag).count(), plain.matches(tag).count(), "{tag}");
    }
    // They are all there, for a person to read.
    let data = inside(&hostile, "<script type=\"application/json\" id=\"data\">", "</script>")[0];
    let data: serde_json::Value = serde_json::from_str(data).expect("json");
    assert_eq!(data["charts"][0]["bars"][0]["label"], HOSTILE[0]);
    assert_eq!(data["tables"][0]["columns"][0]["heading"], HOSTILE[0]);
    assert_eq!(data["reports"][1]["file"], HOSTILE[1]);
    assert!(hostile.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
}

#[test]
fn the_policy_lets_in_what_the_page_holds_and_nothing_else() {
    let page = text(&hostile(), "");
    let policy = inside(&page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"")[0];
    assert_eq!(policy, super::policy::policy(&[LIBRARY, &PAGE], STYLE));
    assert_eq!(inside(&page, "<script>", "</script>"), [LIBRARY, PAGE.as_str()]);
    assert_eq!(inside(&page, "<style>", "</style>"), [STYLE]);
    let bare = page.replace(LIBRARY, "");
    for other in [" style=\"", " onclick", "javascript:", "http://", "https://", "src="] {
        // The licences name addresses, and a hostile name has a `src` that is a word.
        let without = bare.split("id=\"licences\"").next().unwrap_or_default();
        let without = without.replace("src=x", "");
        assert!(!without.contains(other), "{other}");
    }
    // The policy must come before anything that it speaks of.
    assert!(page.find("Content-Security-Policy") < page.find("<script"));
}

#[test]
fn the_library_is_the_published_file_and_its_licences_are_in_every_page() {
    let readme = include_str!("echarts/README.md");
    let digest: String =
        Sha256::digest(LIBRARY.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(readme.contains(&format!("`{digest}` (SHA-256")), "{digest}");
    for holder in [LIBRARY, PAGE.as_str(), INDEX.as_str()] {
        assert!(!holder.contains("</script") && !holder.contains("<!--") && !holder.contains('\r'));
    }
    let page = text(&outcome(vec![], vec![]), "");
    assert_eq!(LICENCES.len(), 4);
    for said in ["Apache License", "The Apache Software Foundation", "Mike Bostock", "Baidu Inc."] {
        assert!(
            page.split("id=\"licences\"").nth(1).is_some_and(|licences| licences.contains(said)),
            "{said}"
        );
    }
}

#[test]
fn scripts_ask_for_nothing_and_read_no_markup() {
    let scripts = [PAGE.as_str(), INDEX.as_str(), RUN.as_str(), LIVE.as_str()];
    for script in scripts {
        // The page of a run that goes on asks whether it has changed, and nothing else.
        let script = script.replacen(
            "fetch(location.pathname, { method: \"HEAD\"",
            "",
            usize::from(script == LIVE.as_str()),
        );
        for word in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch("]
        {
            assert!(!script.contains(word), "{word}");
        }
    }
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/page/script")).expect("there") {
        let path = file.expect("read").path();
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.starts_with("// ") && text.lines().count() < 400, "{}", path.display());
        assert!(scripts.iter().any(|script| script.contains(&text)), "in no page: {}", path.display());
    }
}

#[test]
fn a_page_shows_what_was_left_out_before_any_number() {
    let mut outcome = hostile();
    outcome.simulated = true;
    let page = text(&outcome, "bins=60");
    let main = page.find("<main>").expect("there");
    let figure = page.find("<figure").expect("there");
    for (id, heading) in [
        ("simulated", "SIMULATED: nothing in this run was measured on real hardware."),
        ("unreadable", "3 reports could not be read"),
        ("notes", "3 notes"),
    ] {
        let at = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
        assert!(main < at && at < figure && page.contains(heading), "{id}");
    }
    assert!(page.contains("with <code>bins=60</code>, of 3 reports of 3 hosts."), "{page}");
    let plain = text(&self::outcome(vec![], vec![]), "");
    for id in ["simulated", "unreadable", "notes"] {
        assert!(!plain.contains(&format!("id=\"{id}\"")), "{id}");
    }
}

#[test]
fn a_page_describes_itself_to_an_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.html");
    std::fs::write(&path, text(&hostile(), "bins=60")).expect("written");
    let about = about::read(&path).expect("read").expect("a page");
    assert_eq!((about.recipe.as_str(), about.asked.as_str(), about.reports), ("small", "bins=60", 3));
    assert_eq!((about.notes, about.unreadable, about.tables, about.simulated), (3, 3, 3, false));
    assert_eq!(about.charts, [HOSTILE[0]]);
    std::fs::write(&path, "<html>").expect("written");
    assert_eq!(about::read(&path).expect("read"), None);
}

#[test]
fn very_many_notes_are_counted_and_not_all_shown() {
    let mut outcome = self::outcome(vec![], vec![]);
    outcome.notes = (0..5_000).map(|at| format!("note {at} {}", "x".repeat(10_000))).collect();
    let page = text(&outcome, "");
    assert!(page.contains("5,000 notes") && page.contains("and 4,900 more"));
    assert!(page.len() < MOST_BYTES, "{}", page.len());
}
