//! A shell script as commands of words with their places, as far as a linter needs it. Nothing is run and nothing is
//! expanded.

mod reader;
#[cfg(test)]
mod tests;
mod words;

use reader::Reader;

/// A variable where it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lint) struct Use {
    pub name: String,
    /// What stands behind the name within braces.
    pub behind: String,
    pub line: usize,
    pub column: usize,
    /// Within '', where no shell looks at it.
    pub is_quoted: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::lint) struct Word {
    /// Without its quotation marks.
    pub text: String,
    pub line: usize,
    pub column: usize,
    pub uses: Vec<Use>,
    /// Whether any of it is quoted.
    pub is_quoted: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::lint) struct Command {
    pub words: Vec<Word>,
    /// Words of a list that is given this name.
    pub list: Option<String>,
}

/// Something that is not meant as it stands, with what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lint) struct Slip {
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub advice: &'static str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::lint) struct Script {
    /// What the first line names, without its path.
    pub shell: Option<String>,
    pub commands: Vec<Command>,
    /// Lines of `#SBATCH`, whose words no shell looks at.
    pub directives: Vec<Command>,
    pub slips: Vec<Slip>,
}

pub(in crate::lint) fn read(text: &str) -> Script {
    let mut script = Script { shell: shell(text), ..Script::default() };
    for (at, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("#SBATCH") {
            script.directives.push(directive(rest, at + 1, line.len() - rest.len() + 1));
        }
    }
    let mut reader = Reader::new(text, script);
    reader.all();
    reader.script
}

fn shell(text: &str) -> Option<String> {
    let first = text.lines().next()?.strip_prefix("#!")?;
    let mut words = first.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let shell = words.find(|word| *word != "env" && !word.starts_with('-'))?;
    Some(shell.to_owned())
}

fn directive(rest: &str, line: usize, column: usize) -> Command {
    let mut words = Vec::new();
    let rest = rest.split(" #").next().unwrap_or(rest);
    for word in rest.split_whitespace() {
        let at = word.as_ptr() as usize - rest.as_ptr() as usize;
        let text = word.replace(['"', '\''], "");
        let mut of_word = Word { text, line, column: column + at, ..Word::default() };
        let mut from = 0;
        while let Some(found) = word[from..].find('$') {
            from += found + 1;
            let name: String = word[from..].trim_start_matches('{').chars().take_while(is_letter).collect();
            if !name.is_empty() {
                of_word.uses.push(Use {
                    name,
                    behind: String::new(),
                    line,
                    column: column + at + from - 1,
                    is_quoted: true,
                });
            }
        }
        words.push(of_word);
    }
    Command { words, list: None }
}

fn is_letter(c: &char) -> bool {
    c.is_ascii_alphanumeric() || *c == '_'
}
