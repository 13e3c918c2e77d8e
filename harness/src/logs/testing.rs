//! Runs the verbs of logs over files that a test writes.

use clap::{Args, Parser};
use std::io::Write;

#[derive(Parser)]
struct CommandLine<A: Args> {
    #[command(flatten)]
    args: A,
}

type Verb<A> = fn(&A, &mut dyn Write, &mut dyn Write) -> i32;

/// The exit code and both outputs of a verb over files `1.log`, `2.log`, ..., whose folder is left out of the texts.
pub(super) fn show<A: Args>(verb: Verb<A>, texts: &[&[u8]], flags: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command_line = vec!["logs".to_owned()];
    command_line.extend(flags.iter().map(|flag| (*flag).to_owned()));
    for (bytes, number) in texts.iter().zip(1..) {
        let path = folder.path().join(format!("{number}.log"));
        std::fs::write(&path, bytes).expect("a file");
        command_line.push(path.display().to_string());
    }
    let args = CommandLine::try_parse_from(command_line).expect("valid arguments").args;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = verb(&args, &mut out, &mut err);
    let here = format!("{}/", folder.path().display());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").replace(&here, "");
    (code, text(out), text(err))
}
