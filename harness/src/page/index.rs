//! One page over a folder of pages: the description of each, in the order of their paths.

use super::about::{self, About};
use super::limits::{self, FolderDiagnosis};
use super::markup::{head, with_code};
use super::policy::policy;
use super::script::{INDEX, STYLE};
use base::text::{SIMULATED, thousands};
use recipes::result_table::escaped;
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the file within the folder.
pub const NAME: &str = "index.html";
/// Folders in folders are gone into this far.
const MOST_DEPTH: usize = 8;
/// More pages than this are not listed.
const MOST_PAGES: usize = 10_000;

/// The description of the index; it is no page of a recipe.
#[derive(Serialize)]
struct IndexAbout {
    index: u32,
    pages: usize,
}

/// Pages found in and below a folder, each with its path from there.
struct FoundPages {
    pages: Vec<(PathBuf, About)>,
    /// Files of HTML that could not be read, and why.
    unreadable: Vec<(PathBuf, String)>,
    is_cut: bool,
}

/// The text of an index of the pages in and below a folder; `None` without pages.
pub fn index(folder: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut found = FoundPages { pages: Vec::new(), unreadable: Vec::new(), is_cut: false };
    look(folder, Path::new(""), 0, &mut found)?;
    if found.pages.is_empty() {
        return Ok(None);
    }
    let mut text = Vec::new();
    write(folder, &found, &mut text)?;
    Ok(Some(text))
}

fn look(folder: &Path, within: &Path, depth: usize, found: &mut FoundPages) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, inside) = (entry.path(), within.join(entry.file_name()));
        // Links may lead around in a ring.
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MOST_DEPTH {
            match look(&path, &inside, depth + 1, found) {
                Ok(()) => {}
                Err(error) => found.unreadable.push((inside, error.to_string())),
            }
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "html") {
            if found.pages.len() >= MOST_PAGES {
                found.is_cut = true;
                return Ok(());
            }
            match about::read(&path) {
                Ok(Some(about)) => found.pages.push((inside, about)),
                Ok(None) => {}
                Err(error) => found.unreadable.push((inside, error.to_string())),
            }
        }
    }
    Ok(())
}

fn write(folder: &Path, found: &FoundPages, out: &mut dyn Write) -> io::Result<()> {
    let called = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
    let title =
        if called.is_empty() || called == "." { "Recipes".to_owned() } else { format!("Recipes: {called}") };
    head(
        out,
        &title,
        &IndexAbout { index: about::FORMAT, pages: found.pages.len() },
        &policy(&[&INDEX], STYLE),
        STYLE,
    )?;
    writeln!(out, "<header>\n<div class=\"line\">\n<h1>{}</h1>", escaped(&title))?;
    writeln!(out, "<button type=\"button\" id=\"theme\">Dark</button>\n</div>")?;
    let pages = if found.pages.len() == 1 { "page" } else { "pages" };
    writeln!(
        out,
        "<p class=\"lead\">{} {pages}, each the result of one recipe.</p>",
        thousands(found.pages.len())
    )?;
    writeln!(out, "</header>\n<main>")?;
    if found.pages.iter().any(|(_, about)| about.simulated) {
        writeln!(out, "<p class=\"simulated\" id=\"simulated\">{}.</p>", escaped(&some_simulated(found)))?;
    }
    what_limits(folder, out)?;
    if !found.unreadable.is_empty() || found.is_cut {
        writeln!(
            out,
            "<section class=\"warning\" id=\"unreadable\">\n<h2>Some files are not listed</h2>\n<ul>"
        )?;
        for (path, why) in &found.unreadable {
            writeln!(out, "<li><code>{}</code>: {}</li>", escaped(&path.to_string_lossy()), escaped(why))?;
        }
        if found.is_cut {
            writeln!(out, "<li>only the first {} pages</li>", thousands(MOST_PAGES))?;
        }
        writeln!(out, "</ul>\n</section>")?;
    }
    writeln!(
        out,
        "<p class=\"tools\"><label for=\"filter\">Filter</label> <input id=\"filter\" type=\"search\">"
    )?;
    writeln!(out, "<span id=\"filtered\" role=\"status\"></span></p>\n<ul class=\"pages\">")?;
    for (path, about) in &found.pages {
        entry(path, about, out)?;
    }
    writeln!(out, "</ul>\n</main>\n<script>{}</script>\n</body>\n</html>", *INDEX)
}

/// The first card, where the reports of the folder were diagnosed.
fn what_limits(folder: &Path, out: &mut dyn Write) -> io::Result<()> {
    let Some(read) = limits::read::<FolderDiagnosis>(&folder.join(limits::NAME)) else { return Ok(()) };
    writeln!(out, "<section class=\"card\" id=\"diagnosis\">\n<h2>What limits the work</h2>")?;
    match read {
        Ok(diagnosis) => {
            // As on a command line; what is none is one name.
            let inputs = shlex::split(&diagnosis.input).unwrap_or_else(|| vec![diagnosis.input.clone()]);
            limits::write(&diagnosis.found, &inputs, out)?;
        }
        Err(why) => writeln!(out, "<p>{} cannot be read: {}</p>", limits::NAME, escaped(&why))?,
    }
    writeln!(out, "</section>")
}

fn some_simulated(found: &FoundPages) -> String {
    let simulated = found.pages.iter().filter(|(_, about)| about.simulated).count();
    match simulated == found.pages.len() {
        true => SIMULATED.replace("this run", "these reports"),
        false => {
            format!("SIMULATED: {simulated} of these pages are of simulated clusters, and are marked so")
        }
    }
}

fn entry(path: &Path, about: &About, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<li class=\"card\" data-recipe=\"{}\">", escaped(&about.recipe))?;
    let folder = path.parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    writeln!(out, "<h2><a href=\"{}\">{}</a></h2>", escaped(&address(path)), escaped(&about.title))?;
    writeln!(out, "<p>Shows {}.</p>", with_code(&about.about))?;
    let asked = if about.asked.is_empty() { String::new() } else { format!(":{}", about.asked) };
    let mut facts = vec![format!("<code>{}</code>", escaped(&format!("{}{asked}", about.recipe)))];
    facts.push(counted(about.reports, "report", "reports"));
    match about.hosts.as_slice() {
        [] => {}
        [host] => facts.push(format!("host {}", escaped(host))),
        hosts => facts.push(format!("{} hosts", thousands(hosts.len()))),
    }
    if !about.charts.is_empty() {
        facts.push(counted(about.charts.len(), "chart", "charts"));
    }
    facts.push(counted(about.tables, "table", "tables"));
    if !folder.is_empty() {
        facts.push(format!("in <code>{}</code>", escaped(&folder)));
    }
    writeln!(out, "<p class=\"of\">{}</p>", facts.join(" · "))?;
    let mut warnings = Vec::new();
    if about.simulated {
        warnings.push("SIMULATED".to_owned());
    }
    if about.unreadable > 0 {
        warnings.push(format!("{} could not be read", counted(about.unreadable, "report", "reports")));
    }
    if about.notes > 0 {
        warnings.push(counted(about.notes, "note", "notes"));
    }
    if !warnings.is_empty() {
        writeln!(out, "<p class=\"badges\"><span>{}</span></p>", warnings.join("</span> <span>"))?;
    }
    writeln!(out, "</li>")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(count), if count == 1 { one } else { many })
}

/// A path as a relative link. Every special character is escaped, so that it cannot lead elsewhere.
pub(crate) fn address(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let parts = path.iter().map(|part| {
        let letters = part.as_bytes().iter().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'+' => {
                char::from(*byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        });
        letters.collect::<String>()
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_file_whatever_it_is_called() {
        for (path, link) in [
            ("a/b.html", "a/b.html"),
            ("javascript:x/a b?#%.html", "javascript%3Ax/a%20b%3F%23%25.html"),
            ("\"><b>.html", "%22%3E%3Cb%3E.html"),
            ("核.html", "%E6%A0%B8.html"),
        ] {
            assert_eq!(address(Path::new(path)), link);
        }
    }

    #[test]
    fn the_inputs_of_a_diagnosis_are_words_of_its_commands_and_nothing_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let card = |input: &str| {
            let finding = serde_json::json!({
                "code": "idle", "share": 0.5, "what": "w", "change": "c", "recipe": "gpu_gaps", "table": "all"
            });
            let found = serde_json::json!({
                "findings": [finding], "apart": null, "notes": [], "unreadable": [], "gpus": 1, "window_ns": 1.0
            });
            let text = serde_json::json!({ "format": 1, "input": input, "found": found }).to_string();
            fs::write(folder.path().join(limits::NAME), text).expect("written");
            let mut card = Vec::new();
            what_limits(folder.path(), &mut card).expect("written");
            String::from_utf8(card).expect("UTF-8")
        };
        for (input, words) in [
            ("reports", "reports"),
            ("'job 17' b.sqlite", "'job 17' b.sqlite"),
            ("x; $(id)", "'x;' '$(id)'"),
            ("not 'closed", r"'not '\''closed'"),
        ] {
            let command = format!("harness recipe gpu_gaps --input {words} --table all");
            let card = card(input);
            assert!(card.contains(&format!("<code>{}</code>", escaped(&command))), "{input}: {card}");
        }
    }

    #[test]
    fn pages_in_folders_are_listed_with_their_description_and_other_files_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(index(folder.path()).expect("read"), None);
        let about = |recipe: &str, notes, simulated| About {
            format: about::FORMAT,
            recipe: recipe.to_owned(),
            title: "</title><script>alert(1)</script>".to_owned(),
            about: "what & where".to_owned(),
            asked: "bins=60".to_owned(),
            reports: 1_024,
            hosts: vec!["p5-001".to_owned()],
            notes,
            unreadable: 2,
            simulated,
            charts: vec!["a".to_owned()],
            tables: 3,
        };
        let put = |name: &str, about: &About| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("one")).expect("made");
            let mut text = Vec::new();
            head(&mut text, &about.title, about, "", STYLE).expect("written");
            fs::write(path, text).expect("written");
        };
        put("b/two.html", &about("two", 0, true));
        put("a.html", &about("one", 1, false));
        fs::write(folder.path().join("other.html"), "<html>").expect("written");
        std::os::unix::fs::symlink(folder.path(), folder.path().join("ring")).expect("linked");
        let text = String::from_utf8(index(folder.path()).expect("read").expect("pages")).expect("text");
        let (one, two) = (text.find("href=\"a.html\""), text.find("href=\"b/two.html\""));
        assert!(one.is_some() && one < two, "{text}");
        for fragment in [
            "one:bins=60",
            "1,024 reports",
            "host p5-001",
            "<span>2 reports could not be read</span> <span>1 note</span>",
            "SIMULATED: 1 of these pages",
            "&lt;/title&gt;",
            "2 pages",
        ] {
            assert!(text.contains(fragment), "no `{fragment}` in\n{text}");
        }
        assert!(!text.contains("<script>alert") && !text.contains("other.html"));
        assert!(!text.contains("What limits the work"), "nothing was diagnosed");
        let found = r#"{"findings":[{"code":"idle-gpus","share":0.2,"what":"<i>idle</i>","change":"c","recipe":"r","table":"t"}],
            "apart":null,"notes":["a note"],"unreadable":[],"gpus":1,"window_ns":1e9}"#;
        let kept = format!("{{\"format\":1,\"input\":\"reports\",\"found\":{found}}}");
        fs::write(folder.path().join(limits::NAME), kept).expect("written");
        let text = String::from_utf8(index(folder.path()).expect("read").expect("pages")).expect("text");
        let (card, one) = (text.find("What limits the work"), text.find("href=\"a.html\""));
        assert!(card.is_some() && card < one, "{text}");
        assert!(text.contains("&lt;i&gt;idle") && text.contains("--input reports --table t"), "{text}");
        fs::write(folder.path().join(NAME), &text).expect("written");
        let again = String::from_utf8(index(folder.path()).expect("read").expect("pages")).expect("text");
        assert_eq!(again, text, "an index is no page");
    }
}
