//! The stacks of a bisection in their order: those of a list, or from the good one to the bad one by one setting at a time.

use super::BisectRequest;
use config::inventory::Stack;
use config::toml_reader::file;
use std::path::Path;

/// More than this are too many to compare with each other.
const MOST: usize = 1000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stacks {
    /// At least two.
    pub all: Vec<Stack>,
    /// Neighbours differ in one setting alone, in an order that means nothing.
    pub by_setting: bool,
}

impl Stacks {
    pub(super) fn new(request: &BisectRequest) -> Result<Stacks, String> {
        let parse = |flag: &str, words: &[String]| {
            Stack::parse(words.iter().map(String::as_str)).map_err(|why| format!("{flag}: {why}"))
        };
        let (good, bad) = (parse("--good", &request.good)?, parse("--bad", &request.bad)?);
        let differing = good.differing(&bad);
        if differing.is_empty() {
            return Err(
                "--good and --bad are the same stack; give what differs, such as `NCCL_ALGO=Ring`".to_owned()
            );
        }
        if let Some(path) = &request.between {
            let between = read(path).map_err(|why| format!("--between: {why}"))?;
            let all: Vec<Stack> = [vec![good], between, vec![bad]].concat();
            if let Some(at) = all.windows(2).position(|pair| pair.first() == pair.last()) {
                return Err(format!(
                    "--between: stack {at} and stack {} are the same; the file is without --good and --bad",
                    at + 1
                ));
            }
            return match all.len() <= MOST {
                true => Ok(Stacks { all, by_setting: false }),
                false => Err(format!("--between: at most {MOST} stacks; there are {}", all.len())),
            };
        }
        let mut all = vec![good];
        for name in &differing {
            let last = all.last().cloned().unwrap_or_default();
            all.push(last.with(name, &bad));
        }
        Ok(Stacks { all, by_setting: differing.len() > 1 })
    }
}

/// One stack on each line; `#` begins a comment.
fn read(path: &Path) -> Result<Vec<Stack>, String> {
    let shown = path.display();
    let text = file::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let mut stacks = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words = shlex::split(line).ok_or_else(|| format!("{shown}:{}: a quote is not closed", at + 1))?;
        let stack = Stack::parse(words.iter().map(String::as_str));
        stacks.push(stack.map_err(|why| format!("{shown}:{}: {why}", at + 1))?);
    }
    Ok(stacks)
}
