//! The text of a page: its head, all that can be read without scripts, places for charts and tables, and what the
//! scripts need. Every name is escaped here or stands in data that is.

use super::about::{self, About};
use super::policy::policy;
use super::script::{LIBRARY, LICENCES, PAGE, STYLE};
use super::{Data, Page};
use base::text::{SIMULATED, thousands};
use recipes::recipe::of_reports::Outcome;
use recipes::result_table::escaped;
use serde::Serialize;
use std::io::{self, Write};

/// How much of what belongs to no table is shown: the rest is counted.
const MOST_NOTES: usize = 100;
const MOST_LINES: usize = 2_000;
const MOST_LETTERS: usize = 100_000;

pub(super) fn page(page: &Page, data: &Data, out: &mut dyn Write) -> io::Result<()> {
    let about = about_of(page, data);
    head(out, &about.title, &about, &policy(&[LIBRARY, &PAGE], STYLE), STYLE)?;
    writeln!(out, "<header>\n<div class=\"line\">\n<h1>{}</h1>", escaped(page.title))?;
    writeln!(out, "<button type=\"button\" id=\"theme\">Dark</button>\n</div>")?;
    writeln!(out, "<p class=\"lead\">Shows {}.</p>", with_code(page.about))?;
    writeln!(out, "<p class=\"of\">{}</p>", source_line(page, &about))?;
    reports(data, out)?;
    writeln!(out, "</header>\n<main>")?;
    left_out(page.outcome, out)?;
    writeln!(
        out,
        "<noscript><p class=\"warning\">Charts and tables need the scripts of this page.</p></noscript>"
    )?;
    contents(data, out)?;
    writeln!(out, "<div id=\"ranks\"></div>")?;
    for (at, chart) in data.charts.iter().enumerate() {
        let number = at + 1;
        writeln!(
            out,
            "<figure id=\"figure-{number}\" class=\"card\" data-figure=\"{}\">\n<figcaption>\n<h2 class=\"title\">{}</h2>\n<p>{}</p>",
            chart.kind(),
            escaped(&chart.title),
            sentence(&chart.about)
        )?;
        writeln!(out, "</figcaption>\n<div class=\"place\"></div>")?;
        writeln!(
            out,
            "<p class=\"readout\" id=\"readout-{number}\" role=\"status\" aria-live=\"polite\"></p>"
        )?;
        if chart.drawn < chart.of {
            let beside = page.beside.join(", ");
            writeln!(
                out,
                "<p class=\"drawn\">{} of {} points drawn, with the minimum and maximum of every span. The \
                 tables beside this page have all points ({beside}).</p>",
                thousands(chart.drawn),
                thousands(chart.of)
            )?;
        }
        writeln!(out, "</figure>")?;
    }
    for (at, table) in data.tables.iter().enumerate() {
        writeln!(
            out,
            "<section id=\"table-{}\" class=\"card\" data-table=\"{}\">\n<h2>{} <code>{}</code></h2>",
            at + 1,
            escaped(&table.name),
            escaped(&table.title),
            escaped(&table.name)
        )?;
        if table.rows < table.of {
            writeln!(
                out,
                "<p class=\"drawn\">The first {} of {} rows. The tables beside this page have all rows ({}).</p>",
                thousands(table.rows),
                thousands(table.of),
                page.beside.join(", ")
            )?;
        }
        writeln!(out, "<div class=\"place\"></div>\n</section>")?;
    }
    texts(page.outcome, out)?;
    definitions(page, out)?;
    licences(out)?;
    writeln!(out, "</main>")?;
    writeln!(out, "<script type=\"application/json\" id=\"data\">{}</script>", in_script(data)?)?;
    writeln!(out, "<script>{LIBRARY}</script>\n<script>{}</script>\n</body>\n</html>", *PAGE)
}

/// All before what is seen; the description comes first.
pub(super) fn head(
    out: &mut dyn Write,
    title: &str,
    about: &impl Serialize,
    policy: &str,
    style: &str,
) -> io::Result<()> {
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">")?;
    writeln!(out, "<title>{}</title>", escaped(title))?;
    writeln!(out, "{}{}{}", about::BEGIN, in_script(about)?, about::END)?;
    writeln!(out, "<style>{style}</style>\n</head>\n<body>")
}

/// JSON that ends no element and begins none, whatever its words are.
pub(super) fn in_script(data: &impl Serialize) -> io::Result<String> {
    let json = serde_json::to_string(data)?;
    let mut text = String::with_capacity(json.len());
    // Outside of strings JSON has none of these, and inside an escape means the same.
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(letter)))
            }
            letter => text.push(letter),
        }
    }
    Ok(text)
}

fn about_of(page: &Page, data: &Data) -> About {
    let mut hosts: Vec<String> = data.reports.iter().filter_map(|report| report.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    About {
        format: about::FORMAT,
        recipe: page.outcome.recipe.to_owned(),
        title: page.title.to_owned(),
        about: page.about.to_owned(),
        asked: page.asked.clone(),
        reports: data.reports.len(),
        hosts,
        notes: page.outcome.notes.len(),
        unreadable: page.outcome.unreadable.len(),
        simulated: page.outcome.simulated,
        charts: data.charts.iter().map(|chart| chart.title.clone()).collect(),
        tables: page.outcome.tables.len(),
    }
}

/// The recipe, its arguments, and how many reports it read.
fn source_line(page: &Page, about: &About) -> String {
    let mut text = format!("Recipe <code>{}</code>", escaped(&about.recipe));
    if !page.asked.is_empty() {
        text.push_str(&format!(", with <code>{}</code>", escaped(&page.asked)));
    }
    let reports = if about.reports == 1 { "report" } else { "reports" };
    text.push_str(&format!(", of {} {reports}", thousands(about.reports)));
    match about.hosts.as_slice() {
        [] => {}
        [host] => text.push_str(&format!(" of host {}", escaped(host))),
        hosts => text.push_str(&format!(" of {} hosts", thousands(hosts.len()))),
    }
    text + "."
}

fn reports(data: &Data, out: &mut dyn Write) -> io::Result<()> {
    if data.reports.is_empty() {
        return Ok(());
    }
    writeln!(out, "<details>\n<summary>Which report is which rank</summary>\n<ul class=\"files\">")?;
    for report in data.reports.iter().take(MOST_LINES) {
        let rank = report.rank.map_or_else(String::new, |rank| format!("rank {rank}: "));
        let host = report.host.as_ref().map_or_else(String::new, |host| format!(" ({host})"));
        writeln!(out, "<li>{}</li>", escaped(&format!("{rank}{}{host}", report.file)))?;
    }
    if data.reports.len() > MOST_LINES {
        writeln!(out, "<li>and {} more</li>", thousands(data.reports.len() - MOST_LINES))?;
    }
    writeln!(out, "</ul>\n</details>")
}

/// Where each chart and table is, where there are too many to be seen at once.
fn contents(data: &Data, out: &mut dyn Write) -> io::Result<()> {
    if data.charts.len() + data.tables.len() < 4 {
        return Ok(());
    }
    writeln!(out, "<nav aria-label=\"charts and tables\">\n<ul class=\"contents\">")?;
    for (at, chart) in data.charts.iter().enumerate() {
        writeln!(out, "<li><a href=\"#figure-{}\">{}</a></li>", at + 1, escaped(&shortened(&chart.title)))?;
    }
    for (at, table) in data.tables.iter().enumerate() {
        writeln!(out, "<li><a href=\"#table-{}\"><code>{}</code></a></li>", at + 1, escaped(&table.name))?;
    }
    writeln!(out, "</ul>\n</nav>")
}

/// What a person must know before believing a number.
fn left_out(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    if outcome.simulated {
        writeln!(out, "<p class=\"simulated\" id=\"simulated\">{}.</p>", escaped(SIMULATED))?;
    }
    if !outcome.unreadable.is_empty() {
        let count = outcome.unreadable.len();
        let what = if count == 1 { "report could" } else { "reports could" };
        writeln!(out, "<section class=\"warning\" id=\"unreadable\">\n<h2>{count} {what} not be read</h2>")?;
        writeln!(out, "<p>These reports are in no number of this page.</p>\n<ul>")?;
        for (report, why) in outcome.unreadable.iter().take(MOST_NOTES) {
            writeln!(out, "<li><code>{}</code>: {}</li>", escaped(report), escaped(why))?;
        }
        more(count, out)?;
        writeln!(out, "</ul>\n</section>")?;
    }
    if !outcome.notes.is_empty() {
        let count = outcome.notes.len();
        let open = if count <= 5 { " open" } else { "" };
        let notes = if count == 1 { "note" } else { "notes" };
        writeln!(
            out,
            "<details class=\"warning\" id=\"notes\"{open}>\n<summary>{} {notes}</summary>\n<ul>",
            thousands(count)
        )?;
        for note in outcome.notes.iter().take(MOST_NOTES) {
            writeln!(out, "<li>{}</li>", with_code(&cut(note)))?;
        }
        more(count, out)?;
        writeln!(out, "</ul>\n</details>")?;
    }
    Ok(())
}

fn more(count: usize, out: &mut dyn Write) -> io::Result<()> {
    match count.checked_sub(MOST_NOTES) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(out, "<li>and {} more</li>", thousands(more)),
    }
}

/// Tables that are texts, as they stand.
fn texts(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let mut left = MOST_LETTERS;
    for (name, result_table) in &outcome.tables {
        let Some(lines) = result_table.lines() else { continue };
        writeln!(
            out,
            "<section class=\"card\" data-table=\"{name}\">\n<h2>{} <code>{name}</code></h2>\n<pre>",
            escaped(&result_table.title)
        )?;
        let mut all = lines.into_iter();
        for line in all.by_ref().take(MOST_LINES).take_while(|line| {
            let fits = line.len() < left;
            left = left.saturating_sub(line.len());
            fits
        }) {
            writeln!(out, "{}", escaped(line))?;
        }
        let is_cut = all.next().is_some() || left == 0;
        writeln!(out, "</pre>")?;
        if is_cut {
            writeln!(
                out,
                "<p class=\"drawn\">Truncated: <code>{name}.txt</code> beside this page has all lines.</p>"
            )?;
        }
        writeln!(out, "</section>")?;
    }
    Ok(())
}

fn definitions(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<details class=\"card\" id=\"definition\">\n<summary>How these numbers are computed</summary>"
    )?;
    writeln!(out, "<p>This project's own definition: {}.</p>", with_code(page.definition))?;
    writeln!(
        out,
        "<p>Whole numbers are exact; others are rounded to a thousandth of a percent, a tenth of a nanosecond or of a byte, \
         or six decimal places. kB, MB and GB are powers of 1,000. What was not measured is never drawn as zero: \
         maps show it hatched, lines break, and tables leave the cell empty.</p>"
    )?;
    writeln!(
        out,
        "<p>In a chart: point or tap for the exact number; with the keyboard, go there with Tab, move with the arrow \
         keys, Page Up and Down, Home and End, zoom with + and -, see all with 0. Once a chart was clicked the wheel \
         zooms. Ranks are chosen for all charts and tables together, as in <code>0-7,12</code> or by host.</p>\n\
         </details>"
    )
}

fn licences(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<details class=\"card\" id=\"licences\">\n<summary>Licences of what draws the charts</summary>"
    )?;
    for (of, text) in LICENCES {
        writeln!(out, "<h3>{of}</h3>\n<pre>{}</pre>", escaped_lines(text))?;
    }
    writeln!(out, "</details>")
}

fn escaped_lines(text: &str) -> String {
    text.lines().map(|line| escaped(line) + "\n").collect()
}

/// With a beginning and an end.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let begun: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let end = if begun.is_empty() || begun.ends_with(['.', '!', '?']) { "" } else { "." };
    with_code(&begun) + end
}

/// What stands between backticks is a word of a machine's.
pub(crate) fn with_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd one out is a letter like any other.
    if parts.len().is_multiple_of(2) {
        return escaped(text);
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        1 => format!("<code>{}</code>", escaped(part)),
        _ => escaped(part),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Long names differ at both ends.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let letters: Vec<char> = text.chars().collect();
    match letters.len() {
        0..=MOST => text.to_owned(),
        all => letters[..MOST / 2].iter().chain(&['…']).chain(&letters[all - MOST / 2..]).collect(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_LINES) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_and_end_as_such_and_words_of_machines_stand_out() {
        for (text, shown) in [
            ("", ""),
            ("each cell: `a<b` of it", "Each cell: <code>a&lt;b</code> of it."),
            ("It ends. Others with `sizes`", "It ends. Others with <code>sizes</code>."),
            ("one ` alone & more.", "One ` alone &amp; more."),
        ] {
            assert_eq!(sentence(text), shown);
        }
    }

    #[test]
    fn long_titles_are_cut_in_the_middle_where_they_are_links() {
        assert_eq!(shortened("short"), "short");
        let long = format!("{}{}", "核".repeat(100), "e".repeat(30));
        assert_eq!(shortened(&long), format!("{}…{}", "核".repeat(30), "e".repeat(30)));
    }
}
