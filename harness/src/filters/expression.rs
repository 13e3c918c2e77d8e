//! Filter expressions, in nextest's language: `test()`, `case()`, `node()`, `tag()` and `metric()` with `&`, `|`, `not` and
//! parentheses; `=exact`, `~substring` and `/regex/` say how a word is compared.

use super::Candidate;
use base::{nodeset, suggest};
use regex::Regex;

/// What is asked of an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Test,
    Case,
    Node,
    Tag,
    Metric,
}

const SUBJECTS: [(&str, Subject); 5] = [
    ("test", Subject::Test),
    ("case", Subject::Case),
    ("node", Subject::Node),
    ("tag", Subject::Tag),
    ("metric", Subject::Metric),
];

#[derive(Debug, Clone)]
enum Matcher {
    Exact(String),
    Contains(String),
    Regex(Regex),
    /// A range of nodes, unfolded.
    OneOf(Vec<String>),
}

#[derive(Debug, Clone)]
enum Node {
    All,
    None,
    Is(Subject, Matcher),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
}

/// An expression, and its text.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    text: String,
    node: Node,
}

/// So many parentheses and `not`s may stand within each other.
const DEEPEST: u32 = 64;

impl Expression {
    /// Reads an expression, or says what is wrong and points at the place.
    pub(crate) fn parse(text: &str) -> Result<Expression, String> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let node = parser.any().and_then(|node| match parser.rest().is_empty() {
            true => Ok(node),
            false => Err(parser.odd(parser.at, "expected `&`, `|` or the end")),
        });
        node.map(|node| Expression { text: text.to_owned(), node }).map_err(|odd| odd.render(text))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn matches(&self, candidate: &Candidate<'_>) -> bool {
        self.node.matches(candidate)
    }
}

impl Node {
    fn matches(&self, candidate: &Candidate<'_>) -> bool {
        match self {
            Node::All => true,
            Node::None => false,
            Node::Not(node) => !node.matches(candidate),
            Node::And(a, b) => a.matches(candidate) && b.matches(candidate),
            Node::Or(a, b) => a.matches(candidate) || b.matches(candidate),
            Node::Is(subject, matcher) => match subject {
                Subject::Test => matcher.matches(&candidate.assertion.name),
                Subject::Case => matcher.matches(&candidate.case.name),
                Subject::Metric => matcher.matches(&candidate.assertion.metric),
                Subject::Tag => candidate.case.tags.iter().any(|tag| matcher.matches(tag)),
                Subject::Node => candidate.nodes.iter().any(|node| matcher.matches(node)),
            },
        }
    }
}

impl Matcher {
    fn matches(&self, text: &str) -> bool {
        match self {
            Matcher::Exact(word) => text == word,
            Matcher::Contains(word) => text.contains(word.as_str()),
            Matcher::Regex(regex) => regex.is_match(text),
            Matcher::OneOf(words) => words.iter().any(|word| word == text),
        }
    }
}

/// An error and its place.
struct Odd {
    at: usize,
    length: usize,
    why: String,
}

impl Odd {
    fn render(&self, text: &str) -> String {
        let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let column = text.get(..self.at).unwrap_or(text).chars().count();
        format!("{}\n  {shown}\n  {:column$}{}", self.why, "", "^".repeat(self.length.max(1)))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn odd(&self, at: usize, why: &str) -> Odd {
        Odd { at, length: 1, why: why.to_owned() }
    }

    /// Goes behind one of these, if it comes next. A word must end there.
    fn skip(&mut self, tokens: &[&str]) -> bool {
        let rest = self.rest();
        let is_word = |token: &str| token.starts_with(|c: char| c.is_ascii_alphabetic());
        let follows = |token: &str| rest[token.len()..].chars().next();
        let found = tokens.iter().find(|token| {
            rest.starts_with(**token)
                && !(is_word(token) && follows(token).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_'))
        });
        self.at += found.map_or(0, |token| token.len());
        found.is_some()
    }

    fn any(&mut self) -> Result<Node, Odd> {
        let mut node = self.both()?;
        while self.skip(&["||", "|", "+", "or"]) {
            node = Node::Or(Box::new(node), Box::new(self.both()?));
        }
        Ok(node)
    }

    fn both(&mut self) -> Result<Node, Odd> {
        let mut node = self.one()?;
        loop {
            if self.skip(&["&&", "&", "and"]) {
                node = Node::And(Box::new(node), Box::new(self.one()?));
            } else if self.skip(&["-"]) {
                node = Node::And(Box::new(node), Box::new(Node::Not(Box::new(self.one()?))));
            } else {
                return Ok(node);
            }
        }
    }

    fn one(&mut self) -> Result<Node, Odd> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.odd(self.at, "too many parentheses"));
        }
        let node = if self.skip(&["not", "!"]) {
            Node::Not(Box::new(self.one()?))
        } else if self.skip(&["("]) {
            let open = self.at - 1;
            let node = self.any()?;
            if !self.skip(&[")"]) {
                return Err(self.odd(open, "no `)` for this `(`"));
            }
            node
        } else {
            self.predicate()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn predicate(&mut self) -> Result<Node, Odd> {
        let rest = self.rest();
        let at = self.at;
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = &rest[..length];
        if word.is_empty() {
            return Err(
                self.odd(at, "expected `test(...)`, `case(...)`, `node(...)`, `tag(...)` or `metric(...)`")
            );
        }
        self.at += length;
        let subject = SUBJECTS.iter().find(|(name, _)| *name == word).map(|(_, subject)| *subject);
        let is_constant = matches!(word, "all" | "none");
        if subject.is_none() && !is_constant {
            let near = suggest::nearest(word, SUBJECTS.iter().map(|(name, _)| *name));
            let hint = match near {
                Some(near) => format!("did you mean `{near}(...)`?"),
                None => format!("a part of a name is written `test({word})`"),
            };
            return Err(Odd { at, length, why: format!("no predicate `{word}`; {hint}") });
        }
        if !self.skip(&["("]) {
            return Err(self.odd(self.at, &format!("expected `(` behind `{word}`")));
        }
        let open = self.at - 1;
        let Some(subject) = subject else {
            return match self.skip(&[")"]) {
                true if word == "all" => Ok(Node::All),
                true => Ok(Node::None),
                false => Err(self.odd(self.at, &format!("`{word}()` takes nothing"))),
            };
        };
        let rest = self.rest();
        let start = self.at;
        let (matcher, length) = match rest.strip_prefix('/') {
            Some(pattern) => {
                let end =
                    closing_slash(pattern).ok_or_else(|| self.odd(start, "no `/` ends this pattern"))?;
                let pattern = pattern[..end].replace("\\/", "/");
                let regex = Regex::new(&pattern).map_err(|error| {
                    let why = error.to_string();
                    let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                    Odd { at: start, length: end + 2, why: format!("not a regular expression: {why}") }
                })?;
                (Matcher::Regex(regex), end + 2)
            }
            None => {
                let end = rest.find(')').ok_or_else(|| self.odd(open, "no `)` for this `(`"))?;
                let word = rest[..end].trim();
                if word.trim_start_matches(['=', '~']).is_empty() {
                    return Err(self.odd(start, "expected a word"));
                }
                (self.matcher(subject, word, start)?, end)
            }
        };
        self.at = start + length;
        match self.skip(&[")"]) {
            true => Ok(Node::Is(subject, matcher)),
            false => Err(self.odd(self.at, "expected `)`")),
        }
    }

    fn matcher(&self, subject: Subject, word: &str, at: usize) -> Result<Matcher, Odd> {
        if let Some(exact) = word.strip_prefix('=') {
            return Ok(Matcher::Exact(exact.to_owned()));
        }
        if let Some(part) = word.strip_prefix('~') {
            return Ok(Matcher::Contains(part.to_owned()));
        }
        Ok(match subject {
            Subject::Test => Matcher::Contains(word.to_owned()),
            Subject::Node => {
                Matcher::OneOf(nodeset::expand(word).map_err(|why| Odd { at, length: word.len(), why })?)
            }
            Subject::Case | Subject::Tag | Subject::Metric => Matcher::Exact(word.to_owned()),
        })
    }
}

/// Where a pattern ends; `\/` is a slash in it.
fn closing_slash(pattern: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, letter) in pattern.char_indices() {
        match letter {
            '/' if !is_escaped => return Some(at),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_point_at_their_place() {
        let all = [
            "",
            "tst(pair)",
            "pair",
            "test(pair) case(x)",
            "test(pair",
            "(test(pair)",
            "test()",
            "test(/[/)",
            "test(/abc)",
            "node(p5-[001)",
            "all(x)",
            "not",
            "test(a) &",
        ];
        let lines = all.map(|text| format!("{text}: {}", Expression::parse(text).expect_err(text)));
        insta::assert_snapshot!(lines.join("\n"));
        let deep = "(".repeat(100_000);
        assert!(Expression::parse(&deep).expect_err("deep").starts_with("too many parentheses"));
    }

    #[test]
    fn what_nextest_reads_is_read() {
        for text in [
            "all()",
            "none()",
            "not test(a)",
            "!test(a) & (case(=b) | tag(~c)) - metric(/n\\/a.*/)",
            "test(a)+test(b)",
            "test(a) and not node(p5-[001-004]) or none()",
            "case(notes) & case(order)",
        ] {
            assert!(Expression::parse(text).is_ok(), "{text}");
        }
    }
}
