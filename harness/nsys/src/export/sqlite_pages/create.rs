//! The columns of a table, parsed from its CREATE statement. Anything that profilers do not write is left to SQLite,
//! so nothing is guessed.

mod tokens;

use tokens::{Token, tokenize};

/// One column, at the place that it has in each record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnDef {
    pub name: String,
    /// It stands for the number of the row, and the record holds nothing for it.
    pub row_number: bool,
    /// Whole numbers in it are reals.
    pub real: bool,
    /// A row written before the column was added has a value all the same.
    pub default: bool,
}

/// `None` where the statement has anything that is not known for sure.
pub(super) fn columns(statement: &str) -> Option<Vec<ColumnDef>> {
    let tokens = tokenize(statement)?;
    let mut parser = Parser { statement, tokens: &tokens };
    parser.key("CREATE")?;
    parser.key("TABLE")?;
    parser.name()?;
    parser.sign('(')?;
    let mut made: Vec<(ColumnDef, bool)> = Vec::new();
    loop {
        if parser.begins_constraint() {
            parser.table_constraint(&mut made)?;
        } else {
            made.push(parser.column()?);
        }
        if parser.sign(',').is_none() {
            parser.sign(')')?;
            break;
        }
    }
    // What could follow changes how rows are stored.
    parser.tokens.is_empty().then(|| made.into_iter().map(|(column, _)| column).collect())
}

struct Parser<'s, 'w> {
    statement: &'s str,
    tokens: &'w [Token],
}

/// What no column can be called without quotes, so that it begins something else.
const CONSTRAINTS: [&str; 5] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
/// What ends the type of a column.
const AFTER_TYPE: [&str; 11] = [
    "CONSTRAINT",
    "PRIMARY",
    "UNIQUE",
    "CHECK",
    "NOT",
    "NULL",
    "DEFAULT",
    "COLLATE",
    "REFERENCES",
    "GENERATED",
    "AS",
];

impl Parser<'_, '_> {
    fn next(&mut self) -> Option<&Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn key(&mut self, key: &str) -> Option<()> {
        self.tokens.first().filter(|token| token.is_key(key))?;
        self.next().map(drop)
    }

    fn sign(&mut self, sign: char) -> Option<()> {
        self.tokens.first().filter(|token| token.is_sign(sign))?;
        self.next().map(drop)
    }

    fn name(&mut self) -> Option<String> {
        self.next()?.name().map(str::to_owned)
    }

    fn begins_constraint(&self) -> bool {
        self.tokens.first().is_some_and(|token| CONSTRAINTS.iter().any(|key| token.is_key(key)))
    }

    /// The column, and whether its type is such that a primary key of it is the number of the row.
    fn column(&mut self) -> Option<(ColumnDef, bool)> {
        let name = self.name()?;
        let kind = self.kind()?.to_ascii_uppercase();
        let integer = kind == "INTEGER";
        // The order of these rules is SQLite's.
        let real = !["INT", "CHAR", "CLOB", "TEXT", "BLOB"].iter().any(|part| kind.contains(part))
            && ["REAL", "FLOA", "DOUB"].iter().any(|part| kind.contains(part));
        let mut column = ColumnDef { name, row_number: false, real, default: false };
        while let Some(token) = self.tokens.first() {
            if token.is_sign(',') || token.is_sign(')') {
                break;
            }
            if self.key("CONSTRAINT").is_some() {
                self.name()?;
            } else if self.key("PRIMARY").is_some() {
                self.key("KEY")?;
                let ascending = self.key("DESC").is_none();
                let _ = self.key("ASC");
                self.conflict()?;
                let _ = self.key("AUTOINCREMENT");
                column.row_number = integer && ascending;
            } else if self.key("NOT").is_some() {
                self.key("NULL")?;
                self.conflict()?;
            } else if self.key("NULL").is_some() || self.key("UNIQUE").is_some() {
                self.conflict()?;
            } else if self.key("CHECK").is_some() {
                self.parentheses()?;
            } else if self.key("COLLATE").is_some() {
                self.name()?;
            } else if self.key("DEFAULT").is_some() {
                column.default = self.default()?;
            } else if self.key("REFERENCES").is_some() {
                self.reference()?;
            } else {
                return None;
            }
        }
        Some((column, integer))
    }

    /// The type as it is written, empty where there is none.
    fn kind(&mut self) -> Option<String> {
        let mut range: Option<(usize, usize)> = None;
        while let Some(token) = self.tokens.first() {
            if !token.is_plain() || AFTER_TYPE.iter().any(|key| token.is_key(key)) {
                break;
            }
            range = Some((range.map_or(token.start, |(start, _)| start), token.end));
            self.next()?;
        }
        if range.is_some() && self.tokens.first().is_some_and(|token| token.is_sign('(')) {
            let length = self.tokens.iter().position(|token| token.is_sign(')'))?;
            range = range.zip(self.tokens.get(length)).map(|((start, _), last)| (start, last.end));
            self.parentheses()?;
        }
        let Some((start, end)) = range else { return Some(String::new()) };
        let kind = self.statement.get(start..end)?;
        // SQLite looks for its words in a comment too.
        (!kind.contains("--") && !kind.contains("/*")).then(|| kind.to_owned())
    }

    /// Whether there is a value, for rows that were written without one.
    fn default(&mut self) -> Option<bool> {
        if self.key("NULL").is_some() {
            return Some(false);
        }
        if self.tokens.first()?.is_sign('(') {
            self.parentheses()?;
            return Some(true);
        }
        if self.sign('-').is_none() {
            let _ = self.sign('+');
        }
        self.next()?.is_value().then_some(true)
    }

    fn conflict(&mut self) -> Option<()> {
        if self.key("ON").is_some() {
            self.key("CONFLICT")?;
            self.name()?;
        }
        Some(())
    }

    fn reference(&mut self) -> Option<()> {
        self.name()?;
        if self.tokens.first().is_some_and(|token| token.is_sign('(')) {
            self.parentheses()?;
        }
        while self.key("ON").is_some() {
            self.key("DELETE").or_else(|| self.key("UPDATE"))?;
            if self.key("SET").is_some() {
                self.key("NULL").or_else(|| self.key("DEFAULT"))?;
            } else if self.key("NO").is_some() {
                self.key("ACTION")?;
            } else {
                self.key("CASCADE").or_else(|| self.key("RESTRICT"))?;
            }
        }
        Some(())
    }

    /// Whatever is between two that belong together.
    fn parentheses(&mut self) -> Option<()> {
        self.sign('(')?;
        let mut open = 1usize;
        while open > 0 {
            let token = self.next()?;
            if token.is_sign('(') {
                open += 1;
            } else if token.is_sign(')') {
                open -= 1;
            }
        }
        Some(())
    }

    fn table_constraint(&mut self, made: &mut [(ColumnDef, bool)]) -> Option<()> {
        if self.key("CONSTRAINT").is_some() {
            self.name()?;
        }
        if self.key("PRIMARY").is_some() {
            self.key("KEY")?;
            self.sign('(')?;
            let name = self.name()?;
            let one = self.key("DESC").or_else(|| self.key("ASC"));
            if self.sign(')').is_some() {
                let (column, integer) =
                    made.iter_mut().find(|(column, _)| column.name.eq_ignore_ascii_case(&name))?;
                column.row_number = *integer;
            } else {
                // A key of several columns; one with a collation or so is never the row number.
                let _ = one;
                while self.sign(',').is_some() {
                    self.name()?;
                    let _ = self.key("DESC").or_else(|| self.key("ASC"));
                }
                self.sign(')')?;
            }
            return self.conflict();
        }
        if self.key("UNIQUE").is_some() {
            self.parentheses()?;
            return self.conflict();
        }
        if self.key("CHECK").is_some() {
            return self.parentheses();
        }
        self.key("FOREIGN")?;
        self.key("KEY")?;
        self.parentheses()?;
        self.key("REFERENCES")?;
        self.reference()
    }
}

#[cfg(test)]
mod tests;
