//! The form of a scenario: files, commands, and what must come of them.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Spanned, Table, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// What the name of the file cannot say.
    #[serde(default)]
    pub about: String,
    /// Areas whose `files` are copied, too.
    #[serde(default)]
    pub from: Vec<String>,
    /// No copy of the project's suites, inventories and baselines, and no program but those of the system on `PATH`.
    #[serde(default)]
    pub bare: bool,
    /// `{name}` stands for the value everywhere, in files too.
    #[serde(default)]
    pub vars: Table,
    /// One trial for each row; its cells are variables, and those that are texts name the trial, by their keys' order.
    #[serde(default)]
    pub each: Vec<Table>,
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// SQLite exports of reports, or folders of Parquet where the name ends in `_pqtdir`.
    #[serde(default)]
    pub exports: BTreeMap<String, Export>,
    #[serde(default)]
    pub step: Vec<Step>,
}

/// Rows of start, end and name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export {
    #[serde(default)]
    pub kernels: Vec<(i64, i64, String)>,
    #[serde(default)]
    pub calls: Vec<(i64, i64, String)>,
    #[serde(default)]
    pub ranges: Vec<(i64, i64, String)>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::Many(Vec::new())
    }
}

impl Texts {
    pub(crate) fn list(&self) -> &[String] {
        match self {
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Many(texts) => texts,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    /// Arguments of the harness, as a shell would split them.
    pub run: Option<String>,
    pub env: BTreeMap<String, String>,
    /// Before the command: written, changed (what is replaced must be there), removed.
    pub files: BTreeMap<String, String>,
    pub replace: BTreeMap<String, Vec<[String; 2]>>,
    pub remove: Texts,
    /// The exit code, 0 unless given; or `killed`.
    pub exit: Option<Value>,
    /// Pieces that stdout and stderr have, in any order, and such that they have not.
    pub out: Texts,
    pub err: Texts,
    pub no_out: Texts,
    pub no_err: Texts,
    /// The whole output.
    pub out_is: Option<Spanned<String>>,
    pub err_is: Option<Spanned<String>>,
    /// The lines that name culprits or suspects; up to the colon, unless a pattern has one.
    pub blamed: Option<Texts>,
    /// What stands on the last screen of stdout, of so many columns and rows: `80x24`.
    pub screen: BTreeMap<String, Texts>,
    /// How many runs are stored.
    pub runs: Option<usize>,
    /// Pieces that files have and have not.
    pub text: BTreeMap<String, Texts>,
    pub no_text: BTreeMap<String, Texts>,
    /// Values by place.
    pub is: BTreeMap<String, Value>,
    /// Variables for later steps, by place.
    pub keep: BTreeMap<String, String>,
}

impl Step {
    fn expects(&self) -> bool {
        let files = [&self.text, &self.no_text].into_iter().flat_map(|files| files.values());
        let files = files.map(Texts::list).any(|texts| !texts.is_empty());
        self.expects_a_command() || files || self.runs.is_some() || !self.is.is_empty()
    }

    /// An end, streams, or who is blamed.
    fn expects_a_command(&self) -> bool {
        let lists = [&self.out, &self.err, &self.no_out, &self.no_err];
        let whole = self.exit.is_some() || self.out_is.is_some() || self.err_is.is_some();
        let places =
            self.text.keys().chain(self.no_text.keys()).chain(self.is.keys()).chain(self.keep.values());
        let is_stream = |place: &String| {
            let subject = place.split('#').next().unwrap_or_default().trim_end_matches(')');
            matches!(subject.rsplit('(').next(), Some("out" | "err"))
        };
        let lists = lists.iter().any(|texts| !texts.list().is_empty());
        lists
            || whole
            || self.blamed.is_some()
            || !self.screen.is_empty()
            || places.into_iter().any(is_stream)
    }
}

impl Scenario {
    /// Read from text; an error has its place.
    pub(crate) fn read(text: String) -> Result<Scenario, String> {
        let scenario: Scenario = toml::from_str(&text).map_err(|error| error.to_string())?;
        let last = scenario.step.last().ok_or("no step: add [[step]] with `run`")?;
        if !last.expects() {
            return Err(
                "the last step expects nothing: add `exit`, `out`, `is` or another expectation".to_owned()
            );
        }
        for (step, at) in scenario.step.iter().zip(1..) {
            if step.run.is_none() && step.expects_a_command() {
                return Err(format!("step {at}: expects something of a command and has no `run`"));
            }
        }
        for row in &scenario.each {
            if row.keys().ne(scenario.each[0].keys()) {
                return Err(format!("rows of `each` differ in their keys: {row}"));
            }
        }
        Ok(scenario)
    }

    /// What a row's trial is called.
    pub(crate) fn label(&self, row: usize) -> String {
        let texts = self.each[row].values().filter_map(Value::as_str);
        // A cell that is made of others says nothing new.
        let texts = texts.filter(|text| !text.is_empty() && !text.contains('{'));
        let words = texts.map(|text| text.replace(char::is_whitespace, "_"));
        // Rows may have the same texts; the number is theirs alone.
        std::iter::once((row + 1).to_string()).chain(words).collect::<Vec<_>>().join("-")
    }
}
