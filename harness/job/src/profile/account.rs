//! The account that a profiled rank leaves (`profile.sh` writes it): which report it made, of what size, exported to
//! which files. Whether that is what the plan expected is asked in `collect` and `analyze`.

use std::fmt;

/// What one profiled rank reports about its profiling.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    /// Among all ranks of the job.
    pub rank: u32,
    /// The node that it ran on.
    pub node: String,
    /// The release found on the node.
    pub nsys: Option<String>,
    /// Why the rank ran without nsys: a cause code and its explanation.
    pub bare: Option<(String, String)>,
    /// This rank took the samples that belong to the whole node.
    pub node_sampling: bool,
    /// None where nsys left no report.
    pub report: Option<File>,
    /// Seconds of the workload under nsys.
    pub seconds: Option<f64>,
    /// The form of the export and its exit code, where it came to that.
    pub export: Option<(String, i32)>,
    /// The files that the export left.
    pub tables: Vec<File>,
    /// The `.qdstrm` file that the report was recovered from.
    pub recovered: Option<String>,
    /// Which `.qdstrm` file could not be made into a report, and why.
    pub unrecovered: Option<String>,
    /// What the hook or the watcher of a window left: a line of JSON.
    pub window: Option<String>,
    /// nsys ended and left no report.
    pub missing: Option<String>,
    /// The last line is there: nothing ended the rank before its account was complete.
    pub complete: bool,
}

/// A file as its node saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// As the file's size on the node.
    pub bytes: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// Below the job's folder.
    pub name: String,
}

/// Why a text is not the account of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnAccount {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for NotAnAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// Reads an account. One that was cut off is read as far as it goes; a line that is none is an error.
pub fn read(text: &str) -> Result<Account, NotAnAccount> {
    let mut account = Account::default();
    let mut known = (false, false);
    for (at, line) in text.lines().enumerate() {
        let bad = |why: &str| NotAnAccount {
            line: at + 1,
            why: format!("{why}: `{}`", line.chars().take(120).collect::<String>().escape_debug()),
        };
        if at == 0 {
            match line.strip_prefix("profile ").map(str::parse::<u32>) {
                Some(Ok(1)) => continue,
                Some(Ok(_)) => return Err(bad("written by a newer harness")),
                _ => {
                    return Err(bad(
                        "not the account of a profiled rank: it does not begin with `profile 1`",
                    ));
                }
            }
        }
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let value = || (!rest.is_empty()).then(|| rest.to_owned()).ok_or_else(|| bad("no value"));
        match key {
            "rank" => {
                let rank = rest.split(' ').next().and_then(|rank| rank.parse().ok());
                account.rank = rank.ok_or_else(|| bad("not a number"))?;
                known.0 = true;
            }
            "node" => {
                account.node = value()?;
                known.1 = true;
            }
            "nsys" => account.nsys = Some(value()?),
            "bare" => {
                let (cause, why) = rest.split_once(' ').ok_or_else(|| bad("no cause"))?;
                account.bare = Some((cause.to_owned(), why.to_owned()));
            }
            "node-sampling" => account.node_sampling = true,
            // Only the name, written before nsys is called.
            "report" => {}
            "report-file" => {
                let report = file(rest).filter(|file| is_report(&file.name));
                account.report = Some(report.ok_or_else(|| bad("not a report file"))?);
            }
            "seconds" => {
                let seconds = rest.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0);
                account.seconds = Some(seconds.ok_or_else(|| bad("not a number"))?);
            }
            "exit" => {
                rest.parse::<i32>().map_err(|_| bad("not a number"))?;
            }
            "export" => {
                let export =
                    rest.split_once(' ').and_then(|(form, code)| Some((form.to_owned(), code.parse().ok()?)));
                account.export = Some(export.ok_or_else(|| bad("not a number"))?);
            }
            "table" => {
                let table = file(rest).filter(|file| is_table(&file.name));
                account.tables.push(table.ok_or_else(|| bad("not an exported table"))?);
            }
            "recovered" => account.recovered = Some(value()?),
            "unrecovered" => account.unrecovered = Some(value()?),
            "window" => account.window = Some(value()?),
            "missing" => account.missing = Some(value()?),
            "end" => account.complete = true,
            _ => return Err(bad("unknown key")),
        }
    }
    match known {
        (true, true) => Ok(account),
        _ => Err(NotAnAccount { line: 1, why: "`rank` or `node` is missing".to_owned() }),
    }
}

/// Whether a name is one that an export leaves: what an account names is fetched, and removed from the node.
fn is_table(name: &str) -> bool {
    match name.split_once('/') {
        Some((folder, table)) => is_plain(folder, "_pqtdir") && is_plain(table, ".parquet"),
        None => is_plain(name, ".arrows") || is_plain(name, ".sqlite"),
    }
}

fn is_report(name: &str) -> bool {
    is_plain(name, ".nsys-rep")
}

fn is_plain(name: &str, end: &str) -> bool {
    !name.contains('/') && name.strip_suffix(end).is_some_and(|begin| !begin.is_empty())
}

/// `BYTES SHA256 NAME`; a name that would leave the job's folder is none.
fn file(text: &str) -> Option<File> {
    let mut parts = text.splitn(3, ' ');
    let bytes = parts.next()?.parse().ok()?;
    let sha256 = parts.next().filter(|digest| digest.len() == 64)?.to_owned();
    let name = parts.next()?.to_owned();
    let inside = !name.starts_with('/') && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    (inside && !name.chars().any(char::is_control)).then_some(File { bytes, sha256, name })
}

/// The account of a rank, in the job's folder.
pub fn file_name(rank: u32) -> String {
    format!("profile.rank{rank}.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn text(lines: &[&str]) -> String {
        let mut text = String::from("profile 1\nrank 3 3\nnode p5-001\n");
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    #[test]
    fn a_complete_account_is_read() {
        let report = format!("report-file 12 {DIGEST} a.step0.try0.rank3.p5-001.nsys-rep");
        let table = format!("table 0 {DIGEST} a_pqtdir/StringIds.parquet");
        let account = read(&text(&[
            "nsys 2025.3.1",
            "node-sampling yes",
            "report a.step0.try0.rank3.p5-001",
            "seconds 12.34",
            "exit 0",
            "window {\"way\": \"hook\", \"opened\": 3}",
            &report,
            "export parquetdir 0",
            &table,
            "end",
        ]))
        .expect("an account");
        assert_eq!((account.rank, account.node.as_str(), account.complete), (3, "p5-001", true));
        assert_eq!(account.seconds, Some(12.34));
        assert_eq!(account.report.map(|file| file.bytes), Some(12));
        assert_eq!(account.tables[0].name, "a_pqtdir/StringIds.parquet");
        assert_eq!(account.window.as_deref(), Some("{\"way\": \"hook\", \"opened\": 3}"));
        assert!(account.node_sampling);
    }

    #[test]
    fn a_truncated_account_is_incomplete() {
        let account = read(&text(&["nsys 2025.3.1", "report a"])).expect("as far as it goes");
        assert!(!account.complete && account.report.is_none());
    }

    #[test]
    fn an_account_names_only_the_files_that_an_export_leaves() {
        for table in ["a_pqtdir/StringIds.parquet", "a.arrows", "a.sqlite"] {
            assert!(read(&text(&[&format!("table 0 {DIGEST} {table}")])).is_ok(), "{table}");
        }
        for table in [
            "a_pqtdir/b/StringIds.parquet",
            "elsewhere/StringIds.parquet",
            "_pqtdir/StringIds.parquet",
            "a_pqtdir/authorized_keys",
            "a_pqtdir/.parquet",
            "stdout",
            "job.sh",
        ] {
            assert!(read(&text(&[&format!("table 0 {DIGEST} {table}")])).is_err(), "{table}");
        }
        for report in ["folder/a.nsys-rep", "stdout", ".nsys-rep"] {
            assert!(read(&text(&[&format!("report-file 0 {DIGEST} {report}")])).is_err(), "{report}");
        }
    }

    #[test]
    fn an_invalid_account_is_refused_with_its_line() {
        for (text, line) in [
            ("".to_owned(), 1),
            ("\u{fffd}\n".to_owned(), 1),
            ("profile 2\n".to_owned(), 1),
            ("profile 1\nend\n".to_owned(), 1),
            (text(&["window"]), 4),
            (text(&["seconds NaN"]), 4),
            (text(&["seconds -1"]), 4),
            (text(&["seconds 1e999"]), 4),
            (text(&["export parquetdir"]), 4),
            (text(&["table 1 short a"]), 4),
            (text(&[&format!("table 1 {DIGEST} ../../etc/passwd")]), 4),
            (text(&[&format!("table 1 {DIGEST} /etc/passwd")]), 4),
            (text(&["nonsense"]), 4),
        ] {
            assert_eq!(read(&text).expect_err(&text).line, line, "{text}");
        }
    }

    #[test]
    fn messages() {
        let table = format!("table 1 {DIGEST} ../../etc/passwd");
        let report = format!("report-file 1 {DIGEST} stdout");
        let lines =
            ["window", "bare x", "seconds NaN", "exit x", "export parquetdir", &table, &report, "nonsense"];
        let mut texts: Vec<String> = lines.iter().map(|line| text(&[line])).collect();
        texts.extend(["", "profile 2\n", "profile 1\nend\n"].map(str::to_owned));
        let messages: Vec<String> =
            texts.iter().map(|text| read(text).expect_err(text).to_string()).collect();
        insta::assert_snapshot!(messages.join("\n"));
    }
}
