//! Queries as users write them: parsed once for the names they use and for what they may not do, each error with its
//! place in the text. `engine` checks by running a query which columns it returns.

use super::{Columns, Literal, Parameter, operands};
use serde::{Deserialize, Serialize};
use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, ObjectName,
    OrderByKind, Query, Select, SelectItem, SetExpr, Spanned, Statement, TableFactor, TableWithJoins, Value,
    Visit, Visitor,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError, ParserOptions};
use sqlparser::tokenizer::{Location, Span, Token, Tokenizer};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// An error, and where in the text of the query it stands: line and column from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// Line of the query's text.
    pub line: u64,
    /// Character within the line.
    pub column: u64,
    /// What is wrong, without the place.
    pub message: String,
    /// The word that is wrong, and those that would be right: for a suggestion.
    pub instead: Option<(String, Vec<String>)>,
    /// What to write instead; shown where nothing in `instead` is similar.
    pub hint: Option<&'static str>,
}

/// A query that can be read and does nothing that it may not.
#[derive(Debug, Clone)]
pub struct Parsed {
    query: Box<Query>,
    order: Vec<Key>,
    limit: Option<Bound>,
    named: Named,
    /// Which columns of its table it takes, where that was said beside it.
    taken: Option<BTreeSet<String>>,
}

#[derive(Debug, Clone)]
struct Key {
    name: String,
    down: bool,
    at: Location,
}

#[derive(Debug, Clone)]
enum Bound {
    Number(u64),
    Parameter(String),
}

/// What stands in a query, with places.
#[derive(Debug, Clone, Default)]
struct Named {
    tables: Vec<(String, Location)>,
    /// Names that the query itself gives: of tables, and of columns.
    own_tables: BTreeSet<String>,
    own_columns: BTreeSet<String>,
    columns: Vec<(String, Location)>,
    qualifiers: Vec<(String, Location)>,
    functions: Vec<(String, Location)>,
    parameters: Vec<(String, Location)>,
    /// Whether it takes whole tables.
    all: bool,
    wrong: Vec<SqlError>,
}

/// A query ready to be run: values stand in the place of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Prepared {
    pub sql: String,
    /// Columns of the result, and whether the largest comes first.
    pub order: Vec<(String, bool)>,
    pub limit: Option<u64>,
}

impl SqlError {
    pub(super) fn at(at: Location, message: impl Into<String>) -> SqlError {
        let message = message.into();
        SqlError { line: at.line.max(1), column: at.column.max(1), message, instead: None, hint: None }
    }

    pub(super) fn hint(mut self, hint: &'static str) -> SqlError {
        self.hint = Some(hint);
        self
    }

    pub(super) fn instead(mut self, word: &str, right: impl IntoIterator<Item = String>) -> SqlError {
        self.instead = Some((word.to_owned(), right.into_iter().collect()));
        self
    }
}

/// Reads a query.
pub fn parse(text: &str) -> Result<Parsed, Vec<SqlError>> {
    let one = |wrong: SqlError| vec![wrong];
    let mut parser = parser(text).map_err(one)?;
    let statements = parser.parse_statements().map_err(|error| one(parse_error(&error, &parser)))?;
    let start = Location::new(1, 1);
    let [statement] = statements.as_slice() else {
        let at = statements.get(1).map_or(start, |second| second.span().start);
        return Err(one(SqlError::at(at, format!("expected one query, found {}", statements.len()))));
    };
    let Statement::Query(query) = statement else {
        let word = text.split_whitespace().next().unwrap_or_default().to_uppercase();
        return Err(one(SqlError::at(
            start,
            format!("a query must begin with SELECT or WITH, found `{word}`"),
        )));
    };
    let (mut query, mut wrong) = (query.clone(), Vec::new());
    let order = order(&mut query, &mut wrong);
    let limit = limit(&mut query, &mut wrong);
    let mut named = Named::default();
    let _ = query.visit(&mut named);
    named.wrong.extend(wrong);
    match std::mem::take(&mut named.wrong) {
        wrong if wrong.is_empty() => Ok(Parsed { query, order, limit, named, taken: None }),
        wrong => Err(wrong),
    }
}

/// Whether a text is one expression over these columns, and which of them it names.
pub fn expression(
    text: &str,
    columns: &[String],
    parameters: &[Parameter],
) -> Result<BTreeSet<String>, Vec<SqlError>> {
    let one = |wrong: SqlError| vec![wrong];
    let mut parser = parser(text).map_err(one)?;
    let expression = parser.parse_expr().map_err(|error| one(parse_error(&error, &parser)))?;
    let behind = parser.peek_token();
    if behind.token != Token::EOF {
        let message = format!("expected one expression, found `{}` after it", behind.token);
        return Err(one(SqlError::at(behind.span.start, message)));
    }
    let mut named = Named::default();
    let _ = expression.visit(&mut named);
    let mut wrong = std::mem::take(&mut named.wrong);
    wrong.extend(named.tables.iter().map(|(table, at)| {
        SqlError::at(*at, format!("an expression cannot read the table `{table}`"))
            .hint("write the whole query as `sql`")
    }));
    wrong.extend(named.unknown_columns(&columns.iter().cloned().collect()));
    wrong.extend(named.unknown_parameters(parameters));
    let names = named.columns.into_iter().map(|(name, _)| name);
    if wrong.is_empty() {
        Ok(names.chain(named.parameters.into_iter().map(|(name, _)| format!("${name}"))).collect())
    } else {
        Err(wrong)
    }
}

fn parser(text: &str) -> Result<Parser<'static>, SqlError> {
    operands::check_length(text)?;
    let tokens = Tokenizer::new(&GenericDialect, text)
        .tokenize_with_location()
        .map_err(|error| SqlError::at(error.location, small(&error.message)))?;
    operands::check(&tokens)?;
    let options = ParserOptions { trailing_commas: true, ..ParserOptions::default() };
    Ok(Parser::new(&GenericDialect).with_options(options).with_tokens_with_locations(tokens))
}

/// The parser writes the place behind its message.
fn parse_error(error: &ParserError, parser: &Parser) -> SqlError {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => "nested too deeply",
    };
    let (message, at) = match text.rsplit_once(" at Line: ") {
        Some((message, place)) => {
            let mut numbers = place.split(", Column: ").filter_map(|number| number.trim().parse().ok());
            let at = numbers.next().zip(numbers.next()).map(|(line, column)| Location::new(line, column));
            (message, at)
        }
        None => (text, None),
    };
    let at = at.unwrap_or_else(|| parser.peek_token().span.start);
    SqlError::at(at, small(message))
}

fn small(message: &str) -> String {
    let mut letters = message.chars();
    let first: String = letters.next().map(|letter| letter.to_lowercase().collect()).unwrap_or_default();
    first + letters.as_str()
}

/// The order of the result, taken out of the query: rows that it leaves equal must not stand as it happens.
fn order(query: &mut Query, wrong: &mut Vec<SqlError>) -> Vec<Key> {
    let Some(order) = query.order_by.take() else { return Vec::new() };
    let OrderByKind::Expressions(keys) = &order.kind else {
        wrong.push(SqlError::at(order.span().start, "`ORDER BY` takes columns of the result"));
        return Vec::new();
    };
    let mut named = Vec::new();
    for key in keys {
        let at = key.expr.span().start;
        match &key.expr {
            Expr::Identifier(name) if key.options.nulls_first != Some(true) => {
                named.push(Key { name: name.value.clone(), down: key.options.asc == Some(false), at });
            }
            Expr::Identifier(_) => {
                wrong
                    .push(SqlError::at(at, "`NULLS FIRST` is not supported: rows without a value come last"));
            }
            other => wrong.push(
                SqlError::at(at, format!("`ORDER BY` takes columns of the result, found `{other}`"))
                    .hint("give it a name in the SELECT"),
            ),
        }
    }
    named
}

fn limit(query: &mut Query, wrong: &mut Vec<SqlError>) -> Option<Bound> {
    let clause = query.limit_clause.take()?;
    let at = clause.span().start;
    let refused = "`LIMIT` takes a whole number or a parameter, and no offset";
    let LimitClause::LimitOffset { limit: Some(Expr::Value(limit)), offset: None, limit_by } = &clause else {
        wrong.push(SqlError::at(at, refused));
        return None;
    };
    let bound = match &limit.value {
        Value::Number(number, _) => number.to_string().parse().ok().map(Bound::Number),
        Value::Placeholder(name) => Some(Bound::Parameter(name.trim_start_matches('$').to_owned())),
        _ => None,
    };
    if bound.is_none() || !limit_by.is_empty() {
        wrong.push(SqlError::at(at, refused));
    }
    bound
}

impl Parsed {
    /// The tables that it reads, each once.
    pub fn tables(&self) -> BTreeSet<&str> {
        let others = self.named.tables.iter().filter(|(name, _)| !self.named.own_tables.contains(name));
        others.map(|(name, _)| name.as_str()).collect()
    }

    /// The parameters that it names, without the `$`.
    pub fn parameters(&self) -> BTreeSet<&str> {
        let own = self.named.parameters.iter().map(|(name, _)| name.as_str());
        own.chain(match &self.limit {
            Some(Bound::Parameter(name)) => Some(name.as_str()),
            _ => None,
        })
        .collect()
    }

    /// The same where it is known to take no more than these columns of its table, though it says `*` of what it made.
    pub fn taking(mut self, columns: Option<&[String]>) -> Parsed {
        self.taken = columns.map(|columns| columns.iter().cloned().collect());
        self
    }

    /// The columns that it may need of its tables; nothing where it takes all.
    pub(super) fn wanted(&self) -> Option<BTreeSet<String>> {
        if self.taken.is_some() {
            return self.taken.clone();
        }
        (!self.named.all).then(|| self.named.columns.iter().map(|(name, _)| name.clone()).collect())
    }

    /// The whole query as it is shown.
    pub fn render(&self) -> String {
        let order = self
            .order
            .iter()
            .map(|key| if key.down { format!("{} DESC", key.name) } else { key.name.clone() });
        let order: Vec<String> = order.collect();
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
        let limit = match &self.limit {
            Some(Bound::Number(number)) => format!(" LIMIT {number}"),
            Some(Bound::Parameter(name)) => format!(" LIMIT ${name}"),
            None => String::new(),
        };
        format!("{}{order}{limit}", self.query)
    }

    /// What of it is not there: tables, columns, parameters.
    pub(super) fn against(&self, tables: &[(String, Columns)], parameters: &[Parameter]) -> Vec<SqlError> {
        let named = &self.named;
        let mut wrong = Vec::new();
        for (table, at) in &named.tables {
            if !named.own_tables.contains(table) && !tables.iter().any(|(name, _)| name == table) {
                let message = format!("table `{table}` is not declared in `tables`");
                wrong.push(
                    SqlError::at(*at, message).instead(table, tables.iter().map(|(name, _)| name.clone())),
                );
            }
        }
        if !wrong.is_empty() {
            return wrong;
        }
        let columns = tables.iter().flat_map(|(_, columns)| columns.iter().map(|(name, _)| name.clone()));
        wrong.extend(named.unknown_columns(&columns.collect()));
        for (table, at) in &named.qualifiers {
            let known =
                || tables.iter().map(|(name, _)| name.clone()).chain(named.own_tables.iter().cloned());
            if !known().any(|name| name == *table) {
                wrong.push(SqlError::at(*at, format!("unknown table `{table}`")).instead(table, known()));
            }
        }
        wrong.extend(named.unknown_parameters(parameters));
        if let Some(Bound::Parameter(name)) = &self.limit
            && !parameters.iter().any(|one| one.name == *name && matches!(one.default, Literal::Whole(_)))
        {
            let message = format!("`LIMIT` parameter `${name}` must be a whole number");
            wrong.push(SqlError::at(Location::new(1, 1), message));
        }
        wrong
    }

    pub(super) fn against_result(&self, columns: &Columns) -> Vec<SqlError> {
        let unknown = self.order.iter().filter(|key| !columns.iter().any(|(name, _)| *name == key.name));
        let names = || columns.iter().map(|(name, _)| name.clone());
        unknown
            .map(|key| {
                SqlError::at(key.at, format!("`ORDER BY` takes columns of the result, found `{}`", key.name))
                    .instead(&key.name, names())
            })
            .collect()
    }

    /// Where something that the engine says stands, as far as it names a word of the query.
    pub(super) fn place(&self, why: &str) -> SqlError {
        let words: Vec<&str> = why.split(['`', '\'', '"']).skip(1).step_by(2).collect();
        let named = &self.named;
        let known =
            named.columns.iter().chain(&named.tables).chain(&named.qualifiers).chain(&named.functions);
        let is_it = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name));
        let at = known.into_iter().find(|(name, _)| is_it(name)).map(|(_, at)| *at);
        SqlError::at(at.unwrap_or(Location::new(1, 1)), format!("cannot run the query: {}", small(why)))
    }

    pub(super) fn prepared(&self, arguments: &[(String, Literal)]) -> Result<Prepared, String> {
        let limit = match &self.limit {
            None => None,
            Some(Bound::Number(number)) => Some(*number),
            Some(Bound::Parameter(name)) => match arguments.iter().find(|(of, _)| of == name) {
                Some((_, Literal::Whole(number))) => Some(*number),
                _ => return Err(format!("`LIMIT` parameter `${name}` must be a whole number")),
            },
        };
        let sql = filled(&self.query.to_string(), arguments)?;
        let order = self.order.iter().map(|key| (key.name.clone(), key.down)).collect();
        Ok(Prepared { sql, order, limit })
    }
}

/// The text with values in the place of parameters; nothing that a value holds is read as part of the query.
fn filled(text: &str, arguments: &[(String, Literal)]) -> Result<String, String> {
    let tokens =
        Tokenizer::new(&GenericDialect, text).tokenize_with_location().map_err(|error| error.to_string())?;
    let mut whole = String::new();
    for token in tokens {
        match &token.token {
            Token::Placeholder(name) => {
                let value = arguments.iter().find(|(of, _)| Some(of.as_str()) == name.strip_prefix('$'));
                let (_, value) = value.ok_or_else(|| format!("parameter `{name}` has no value"))?;
                whole.push_str(&value.render());
            }
            other => whole.push_str(&other.to_string()),
        }
    }
    Ok(whole)
}

impl Literal {
    fn render(&self) -> String {
        match self {
            Literal::Whole(number) => number.to_string(),
            // With a point, so that it is no whole number where it happens to be one.
            Literal::Number(number) => format!("{number:?}"),
            Literal::Text(text) => format!("'{}'", text.replace('\'', "''")),
            Literal::Flag(flag) => if *flag { "TRUE" } else { "FALSE" }.to_owned(),
        }
    }
}

impl Named {
    fn unknown_columns(&self, known: &BTreeSet<String>) -> Vec<SqlError> {
        let mut wrong = Vec::new();
        for (column, at) in &self.columns {
            if !known.contains(column) && !self.own_columns.contains(column) {
                let right = known.union(&self.own_columns).cloned();
                wrong.push(SqlError::at(*at, format!("unknown column `{column}`")).instead(column, right));
            }
        }
        wrong
    }

    fn unknown_parameters(&self, parameters: &[Parameter]) -> Vec<SqlError> {
        let unknown =
            self.parameters.iter().filter(|(name, _)| !parameters.iter().any(|one| one.name == *name));
        let names = || parameters.iter().map(|one| one.name.clone());
        unknown
            .map(|(name, at)| {
                SqlError::at(*at, format!("parameter `${name}` is not declared"))
                    .instead(name, names())
                    .hint("declare it in `[parameters]`")
            })
            .collect()
    }

    fn refuse(&mut self, span: Span, message: impl Into<String>, hint: &'static str) {
        self.wrong.push(SqlError::at(span.start, message).hint(hint));
    }

    fn joins(&mut self, from: &TableWithJoins) {
        for join in &from.joins {
            let span = join.relation.span();
            let equal = match constraint(&join.join_operator) {
                Some(JoinConstraint::On(condition)) => has_equality(condition),
                Some(JoinConstraint::Using(columns)) => {
                    let names = columns.iter().filter_map(last);
                    self.columns.extend(names.map(|name| (name.value.clone(), name.span.start)));
                    true
                }
                Some(JoinConstraint::Natural) => {
                    self.all = true;
                    true
                }
                Some(JoinConstraint::None) | None => false,
            };
            if !equal {
                self.refuse(
                    span,
                    "refused: a join without an equality pairs every row with every other",
                    "write `JOIN ... ON a.x = b.x`, or a window such as `SUM(x) OVER ()` for one number beside all rows",
                );
            }
        }
    }
}

/// Where the first window of an item stands.
fn window(item: &SelectItem) -> Option<Span> {
    struct Windows(Option<Span>);
    impl Visitor for Windows {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match expression {
                Expr::Function(function) if function.over.is_some() => {
                    self.0 = Some(function.name.span());
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    let mut windows = Windows(None);
    let _ = item.visit(&mut windows);
    windows.0
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::Right(on)
        | JoinOperator::RightOuter(on)
        | JoinOperator::FullOuter(on)
        | JoinOperator::Semi(on)
        | JoinOperator::LeftSemi(on)
        | JoinOperator::RightSemi(on)
        | JoinOperator::Anti(on)
        | JoinOperator::LeftAnti(on)
        | JoinOperator::RightAnti(on) => Some(on),
        _ => None,
    }
}

/// Of the parts that must all hold, one that says that a column of each side is equal.
fn has_equality(condition: &Expr) -> bool {
    match condition {
        Expr::Nested(inner) => has_equality(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => has_equality(left) || has_equality(right),
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            let names = |side: &Expr| {
                let mut named = Named::default();
                let _ = side.visit(&mut named);
                !named.columns.is_empty()
            };
            left != right && names(left) && names(right)
        }
        _ => false,
    }
}

fn last(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

impl Visitor for Named {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.own_tables.insert(cte.alias.name.value.clone());
            self.own_columns.extend(cte.alias.columns.iter().map(|column| column.name.value.clone()));
        }
        if !matches!(*query.body, SetExpr::Select(_) | SetExpr::SetOperation { .. } | SetExpr::Query(_)) {
            self.refuse(query.span(), "a query must begin with SELECT or WITH", "read from a table");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => {
                    self.own_columns.insert(alias.value.clone());
                }
                // `COUNT(*)` is named so.
                SelectItem::UnnamedExpr(Expr::Function(function)) => {
                    self.own_columns.extend(last(&function.name).map(|name| name.value.clone()));
                }
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => self.all = true,
                _ => {}
            }
        }
        if let Some(second) = select.from.get(1) {
            self.refuse(
                second.relation.span(),
                "refused: tables separated by commas pair every row with every other",
                "write `JOIN ... ON a.x = b.x`",
            );
        }
        select.from.iter().for_each(|from| self.joins(from));
        let groups = match &select.group_by {
            GroupByExpr::Expressions(groups, _) => !groups.is_empty(),
            GroupByExpr::All(_) => true,
        };
        if let (true, Some(window)) = (groups, select.projection.iter().find_map(window)) {
            // The engine would take it within each group, and say nothing.
            self.refuse(
                window,
                "refused: a window beside GROUP BY would see one group only",
                "group in a `WITH` clause, and take the window over its result",
            );
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                match name.0.as_slice() {
                    [_] => {
                        self.tables.extend(last(name).map(|name| (name.value.clone(), name.span.start)));
                    }
                    _ => self.refuse(
                        factor.span(),
                        format!("expected a plain table name, found `{name}`"),
                        "name it in `tables`",
                    ),
                }
                alias
            }
            TableFactor::Derived { alias, .. } | TableFactor::NestedJoin { alias, .. } => alias,
            other => {
                let shown: String = other.to_string().chars().take(60).collect();
                self.refuse(
                    other.span(),
                    format!("a query may read only the tables it declares, found `{shown}`"),
                    "name the table in `tables`",
                );
                return ControlFlow::Continue(());
            }
        };
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.joins(table_with_joins);
        }
        if let Some(alias) = alias {
            // An alias stands for its table, and names none that could be read.
            self.own_columns.extend(alias.columns.iter().map(|column| column.name.value.clone()));
            self.own_tables.insert(alias.name.value.clone());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) => self.columns.push((name.value.clone(), name.span.start)),
            Expr::CompoundIdentifier(parts) => {
                if let [.., table, column] = parts.as_slice() {
                    self.columns.push((column.value.clone(), column.span.start));
                    self.qualifiers.push((table.value.clone(), table.span.start));
                }
            }
            Expr::Value(value) => {
                if let Value::Placeholder(name) = &value.value {
                    self.parameters.push((name.trim_start_matches('$').to_owned(), value.span.start));
                }
            }
            Expr::Function(function) => {
                if let Some(name) = last(&function.name) {
                    self.all |= name.value.eq_ignore_ascii_case("columns");
                    self.functions.push((name.value.clone(), name.span.start));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
