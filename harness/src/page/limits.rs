//! What limits the work, as pages have it: the largest findings of some reports, what to change, and the command that shows
//! each.

use base::text::{command_line, count, shorten, show};
use model::artefact::Format;
use recipes::diagnosis::{Diagnosis, LimitFound};
use recipes::result_table::escaped;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// Of the file that holds it.
pub(crate) const NAME: &str = "diagnosis.json";
/// Of what is found.
pub(crate) const MOST_BYTES: u64 = 1 << 20;
/// Findings of one diagnosis on a page.
const MOST_FINDINGS: usize = 3;
/// Letters of a sentence, and of a command.
const MOST_LETTERS: usize = 300;

/// What a diagnosis says, as it is read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundLimits {
    /// The largest effect first.
    pub findings: Vec<FoundLimit>,
    /// That the reports are not of one run, and why.
    pub apart: Option<String>,
    /// What limits what can be said.
    pub notes: Vec<String>,
    /// Reports that could not be read, and why.
    pub unreadable: Vec<(String, String)>,
    /// GPUs that ran something.
    pub gpus: usize,
    /// Of all these GPUs, in nanoseconds.
    pub window_ns: f64,
    /// Whether any report is of a simulated cluster.
    #[serde(default)]
    pub simulated: bool,
}

/// One thing that limits the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundLimit {
    /// Such as `exposed-communication`.
    pub code: String,
    /// The time that could be won at most, as a part of all time.
    pub share: f64,
    /// One sentence with its number.
    pub what: String,
    /// What to change.
    pub change: String,
    /// The recipe that shows it.
    pub recipe: String,
    /// Its table.
    pub table: String,
}

impl From<Diagnosis> for FoundLimits {
    fn from(diagnosis: Diagnosis) -> FoundLimits {
        let limit = |one: LimitFound| FoundLimit {
            code: one.code.to_owned(),
            share: one.share,
            what: one.what,
            change: one.change.to_owned(),
            recipe: one.recipe.to_owned(),
            table: one.table.to_owned(),
        };
        FoundLimits {
            findings: diagnosis.findings.into_iter().map(limit).collect(),
            apart: diagnosis.apart,
            notes: diagnosis.notes,
            unreadable: diagnosis.unreadable,
            gpus: diagnosis.gpus,
            window_ns: diagnosis.window_ns,
            simulated: diagnosis.simulated,
        }
    }
}

/// `diagnosis.json` beside the pages of recipes: what limits the work in the reports that they are of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FolderDiagnosis {
    pub format: Format<1>,
    /// The reports, as on the command line.
    pub input: String,
    pub found: FoundLimits,
}

/// `None` where there is no such file. A file may be anybody's.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Option<Result<T, String>> {
    let facts = fs::symlink_metadata(path).ok()?;
    if !facts.is_file() || facts.len() > 2 * MOST_BYTES {
        return Some(Err("a link, no regular file, or too large".to_owned()));
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(2 * MOST_BYTES).read_to_end(&mut bytes));
    Some(match read {
        Ok(_) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    })
}

fn short(text: &str) -> String {
    escaped(&shorten(&show(text), MOST_LETTERS))
}

/// The notes and the largest findings; `inputs` are what the commands read.
pub(crate) fn write(found: &FoundLimits, inputs: &[String], out: &mut dyn Write) -> io::Result<()> {
    let notes = found.apart.iter().chain(&found.notes).cloned();
    let unread = found.unreadable.iter().map(|(report, why)| format!("not read: {report}: {why}"));
    let said: Vec<String> = notes.chain(unread).collect();
    for line in said.iter().take(MOST_FINDINGS) {
        writeln!(out, "<p class=\"warning\">{}</p>", short(line))?;
    }
    if let more @ 1.. = said.len().saturating_sub(MOST_FINDINGS) {
        writeln!(out, "<p class=\"drawn\">{}.</p>", count(more, "more note"))?;
    }
    // Only what was read whole, and can be known, is good news.
    if found.findings.is_empty() {
        let line = match said.is_empty() && found.gpus > 0 {
            true => "Nothing limits it by more than 2 %: no exposed communication, idle time or copies.",
            false => "No finding.",
        };
        return writeln!(out, "<p>{line}</p>");
    }
    writeln!(out, "<ol>")?;
    for finding in found.findings.iter().take(MOST_FINDINGS) {
        entry(finding, inputs, out)?;
    }
    writeln!(out, "</ol>")?;
    match found.findings.len().saturating_sub(MOST_FINDINGS) {
        0 => Ok(()),
        more => writeln!(out, "<p class=\"drawn\">{}.</p>", count(more, "more finding")),
    }
}

fn entry(finding: &FoundLimit, inputs: &[String], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<li><strong>{}</strong>: {}<p class=\"of\">change: {}; shown by <code>{}</code></p></li>",
        short(&finding.code),
        short(&finding.what),
        short(&finding.change),
        escaped(&command(finding, inputs))
    )
}

/// What shows the finding. Names may be anybody's, so each is quoted; names that would be cut are left out.
fn command(finding: &FoundLimit, inputs: &[String]) -> String {
    let line = |inputs: &[String]| {
        let head = ["harness", "recipe", finding.recipe.as_str(), "--input"].map(str::to_owned);
        let tail = ["--table", finding.table.as_str()].map(str::to_owned);
        command_line(&[&head[..], inputs, &tail[..]].concat())
    };
    let whole = line(inputs);
    match whole.chars().count() <= MOST_LETTERS {
        true => whole,
        false => shorten(&line(&["REPORTS".to_owned()]), MOST_LETTERS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_finding_is_quoted_for_a_shell_and_for_the_page_and_never_cut() {
        let finding = FoundLimit {
            code: "idle".into(),
            share: 0.5,
            what: "idle for 50 %".into(),
            change: "feed it".into(),
            recipe: "nccl_sum".into(),
            table: "a;b".into(),
        };
        let page = |inputs: &[String]| {
            let mut page = Vec::new();
            entry(&finding, inputs, &mut page).expect("written");
            String::from_utf8(page).expect("UTF-8")
        };
        let text = page(&["job 17/it's <b>.sqlite".to_owned(), "b.sqlite".to_owned()]);
        let command = r"harness recipe nccl_sum --input 'job 17/it'\''s <b>.sqlite' b.sqlite --table 'a;b'";
        assert!(text.contains(&format!("<code>{}</code>", escaped(command))), "{text}");
        assert!(!text.contains("<b>"), "{text}");
        let many: Vec<String> = (0..100).map(|n| format!("reports/rank{n}.sqlite")).collect();
        assert!(page(&many).contains("--input REPORTS --table "), "{}", page(&many));
    }

    #[test]
    fn what_stands_in_the_place_of_a_diagnosis_is_an_error_and_nothing_is_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(NAME);
        assert!(read::<FolderDiagnosis>(&path).is_none());
        std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
        assert!(read::<FolderDiagnosis>(&path).expect("a link").is_err());
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "{\"format\": 1").expect("written");
        assert!(read::<FolderDiagnosis>(&path).expect("a file").is_err());
    }
}
