//! Names in outputs that no two runs share: they are shown with others, which stay the same.

/// Stands in pages for the folder in which their commands run.
const SHOWN_FOLDER: &str = "/home/you/cluster";

/// The ids of runs that a page has made, in the order in which they were seen; and its folder.
pub(crate) struct Names {
    folder: String,
    runs: Vec<String>,
}

impl Names {
    pub(crate) fn new(folder: String) -> Names {
        Names { folder, runs: Vec::new() }
    }

    /// An output as a page shows it.
    pub(crate) fn on_page(&mut self, output: &str) -> String {
        for id in ids(output) {
            if !self.runs.iter().any(|run| run == id) {
                self.runs.push(id.to_owned());
            }
        }
        let output = without_times(&output.replace(&self.folder, SHOWN_FOLDER));
        let all = self.runs.iter().zip(1..);
        all.fold(output, |output, (id, number)| output.replace(id.as_str(), &id_on_page(id, number)))
    }

    /// A command of a page as it is run.
    pub(crate) fn real(&self, command: &str) -> String {
        let command = command.replace(SHOWN_FOLDER, &self.folder);
        let all = self.runs.iter().zip(1..);
        all.fold(command, |command, (id, number)| command.replace(&id_on_page(id, number), id))
    }
}

const STAMP: usize = "20260101T000000Z-".len();

/// Whether bytes are digits where the form has `0`, and as the form elsewhere.
fn has_form(bytes: &[u8], form: &str) -> bool {
    let fits = |(byte, form): (&u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { *byte == form };
    bytes.len() == form.len() && bytes.iter().zip(form.bytes()).all(fits)
}

fn is_stamp(bytes: &[u8]) -> bool {
    has_form(bytes, "00000000T000000Z-")
}

/// The machine's clock, as a person reads it; that of the simulated cluster has another form.
fn without_times(text: &str) -> String {
    const SHOWN: &str = "2026-01-01 00:00:00";
    let mut text = text.to_owned();
    for at in 0..text.len().saturating_sub(SHOWN.len() - 1) {
        if has_form(&text.as_bytes()[at..at + SHOWN.len()], "0000-00-00 00:00:00") {
            text.replace_range(at..at + SHOWN.len(), SHOWN);
        }
    }
    text
}

/// `20260101T000000Z-SUITE-HEX`, wherever such stands.
fn ids(text: &str) -> Vec<&str> {
    let begins = (0..text.len()).filter(|at| text.as_bytes().get(*at..at + STAMP).is_some_and(is_stamp));
    let id = |at: usize| {
        let rest = &text[at + STAMP..];
        let long = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
        &text[at..at + STAMP + long.unwrap_or(rest.len())]
    };
    begins.map(id).collect()
}

/// The suite stays; time and chance are replaced by a number.
fn id_on_page(id: &str, number: usize) -> String {
    let suite = id[STAMP..].rsplit_once('-').map_or("", |(suite, _)| suite);
    format!("20260101T{number:06}Z-{suite}-{number:04}")
}

/// By itself, so that pages may count on it.
pub(crate) fn check() {
    let mut names = Names::new("/tmp/x".to_owned());
    let (one, other) = ("20251124T055736Z-nccl-p5-5a0f", "20251124T055737Z-canary-00ff");
    let shown = names.on_page(&format!("/tmp/x/runs/{one}/a {other}, {one}."));
    let expected =
        "20260101T000001Z-nccl-p5-0001/a 20260101T000002Z-canary-0002, 20260101T000001Z-nccl-p5-0001.";
    assert_eq!(shown, format!("/home/you/cluster/runs/{expected}"));
    assert_eq!(names.on_page("at 2025-11-24 05:57:36."), "at 2026-01-01 00:00:00.");
    assert_eq!(names.real("20260101T000002Z-canary-0002 /home/you/cluster"), format!("{other} /tmp/x"));
}
