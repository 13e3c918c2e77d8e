//! A page of the documents as blocks: commands with their output, files, commands for a real cluster, and other text.

use std::ops::Range;

/// What a page has that is checked, in its order.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    /// A command line, and what it prints: where that stands in the page.
    Run { line: usize, command: String, output: Range<usize> },
    /// A command that readers do not see, such as the run that a page is about, and how it exits.
    Setup { line: usize, command: String, exit: i32 },
    /// A file that readers are asked to write.
    File { line: usize, name: String, text: String },
    /// A command that needs a real cluster, a network or much time: it is parsed and not run.
    Parse { line: usize, command: String },
    /// A part of a TOML file.
    Toml { line: usize, text: String },
}

/// Languages of blocks in which no command stands, or whose commands begin with `harness`.
const OTHERS: [&str; 6] = ["text", "json", "yaml", "groovy", "xml", "csv"];

/// The blocks of a page, or the first that is none.
pub(crate) fn read(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = lines(text).into_iter();
    while let Some(PageLine { number, range, content }) = lines.next() {
        if let Some(info) = content.trim_start().strip_prefix("```") {
            let indent = content.len() - content.trim_start().len();
            let mut inner: Vec<PageLine<'_>> =
                lines.by_ref().take_while(|line| line.content.trim() != "```").collect();
            // Of a list.
            for line in &mut inner {
                line.content = line.content.get(indent..).unwrap_or_default();
            }
            if indent > 0 && info == "console" {
                return Err(format!("line {number}: a block of `console` stands at the beginning of lines"));
            }
            blocks.extend(fenced(text, info, number, range.end, &inner)?);
        } else if let Some(setup) = content.strip_prefix("<!-- run") {
            blocks.push(hidden(setup, number)?);
        } else if let Some(command) = content.strip_prefix("    ").filter(|code| is_harness(code)) {
            blocks.push(Block::Parse { line: number, command: command.to_owned() });
        } else {
            let code = content.split('`').skip(1).step_by(2).filter(|code| is_harness(code));
            blocks.extend(code.map(|code| Block::Parse { line: number, command: code.to_owned() }));
        }
    }
    Ok(blocks)
}

struct PageLine<'a> {
    number: usize,
    range: Range<usize>,
    content: &'a str,
}

fn lines(text: &str) -> Vec<PageLine<'_>> {
    let mut at = 0;
    let line = |(content, number): (&'_ str, usize)| {
        let range = at..at + content.len();
        at = range.end;
        (range, number)
    };
    let ranges: Vec<_> = text.split_inclusive('\n').zip(1..).map(line).collect();
    let content = |range: &Range<usize>| text[range.clone()].trim_end_matches('\n');
    ranges.into_iter().map(|(range, number)| PageLine { number, content: content(&range), range }).collect()
}

fn is_harness(code: &str) -> bool {
    code.starts_with("harness ") || code.starts_with("cargo run ")
}

/// `<!-- run: COMMAND -->` or `<!-- run, exit 1: COMMAND -->`.
fn hidden(rest: &str, line: usize) -> Result<Block, String> {
    let form = || format!("line {line}: write `<!-- run: COMMAND -->` or `<!-- run, exit 1: COMMAND -->`");
    let (exit, command) =
        rest.strip_suffix(" -->").and_then(|rest| rest.split_once(": ")).ok_or_else(form)?;
    let exit = match exit.strip_prefix(", exit ") {
        Some(code) => code.parse().map_err(|_| form())?,
        None if exit.is_empty() => 0,
        None => return Err(form()),
    };
    Ok(Block::Setup { line, command: command.to_owned(), exit })
}

fn fenced(
    text: &str,
    info: &str,
    line: usize,
    begin: usize,
    inner: &[PageLine<'_>],
) -> Result<Vec<Block>, String> {
    let (language, file) = match info.split_once(" file=") {
        Some((language, file)) => (language, Some(file)),
        None => (info, None),
    };
    let end = inner.last().map_or(begin, |line| line.range.end);
    let whole = || text[begin..end].to_owned();
    let commands = || {
        let stripped = inner.iter().map(|line| (line.number, command_of(line.content)));
        stripped.filter(|(_, code)| is_harness(code)).map(|(line, code)| Block::Parse { line, command: code })
    };
    if let Some(name) = file {
        let file = Block::File { line, name: name.to_owned(), text: whole() };
        return Ok(std::iter::once(file).chain(commands()).collect());
    }
    match language {
        "console" => console(line, inner),
        "sh" => Ok(inner
            .iter()
            .filter(|line| !line.content.trim().is_empty() && !line.content.starts_with('#'))
            .map(|line| Block::Parse { line: line.number, command: line.content.to_owned() })
            .collect()),
        "toml" => Ok(vec![Block::Toml { line, text: whole() }]),
        other if OTHERS.contains(&other) => match inner.iter().find(|line| line.content.starts_with("$ ")) {
            Some(line) => Err(format!("line {}: a command in a block of `{other}`", line.number)),
            None => Ok(commands().collect()),
        },
        other => Err(format!(
            "line {line}: no such kind of block: `{other}`; console (run), sh (parsed), toml, {}",
            OTHERS.join(", ")
        )),
    }
}

/// The command in a line of a pipeline's file: behind `- ` and `run: `, or in single quotes.
fn command_of(line: &str) -> String {
    let quoted = line.split('\'').skip(1).step_by(2).find(|quoted| is_harness(quoted));
    quoted.unwrap_or_else(|| line.trim().trim_start_matches("- ").trim_start_matches("run: ")).to_owned()
}

fn console(line: usize, inner: &[PageLine<'_>]) -> Result<Vec<Block>, String> {
    let mut blocks: Vec<Block> = Vec::new();
    for PageLine { number, range, content } in inner {
        if let Some(command) = content.strip_prefix("$ ") {
            let output = range.end..range.end;
            blocks.push(Block::Run { line: *number, command: command.to_owned(), output });
        } else if let (Some(more), Some(Block::Run { command, output, .. })) =
            (content.strip_prefix("> "), blocks.last_mut())
            && output.start == output.end
            && command.ends_with('\\')
        {
            command.push('\n');
            command.push_str(more);
            *output = range.end..range.end;
        } else if let Some(Block::Run { output, .. }) = blocks.last_mut() {
            // Empty lines behind an output only set off the next command.
            if !content.is_empty() {
                output.end = range.end;
            }
        } else {
            return Err(format!("line {number}: output of no command"));
        }
    }
    if blocks.is_empty() { Err(format!("line {line}: a block without a command")) } else { Ok(blocks) }
}
