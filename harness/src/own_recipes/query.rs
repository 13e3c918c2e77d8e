//! Reads a query of a user's recipe, written as SQL or as steps, and checks it against the tables that it may read. Each
//! error is reported at its place in the query.

use base::suggest::nearest;
use config::toml_reader::{Table, Value};
use recipes::own::{self, Checked, Columns, Parameter, Parsed, SqlError, Steps};
use std::collections::BTreeSet;

/// What a query may read.
pub(super) struct QueryScope<'a> {
    pub tables: &'a [(String, Columns)],
    pub parameters: &'a [Parameter],
    /// Whether all declarations could be read; otherwise a query may use names that are unknown only here.
    pub complete: bool,
}

/// The query of a table, `sql` or steps; and the parameters that it names, right or wrong.
pub(super) fn read(
    table: &Table<'_>,
    scope: &QueryScope,
    over: Option<&str>,
) -> (Option<Checked>, BTreeSet<String>) {
    let sql = table.get("sql");
    let steps = WrittenSteps::from_table(table);
    match (sql, steps.first()) {
        (Some(_), Some(step)) => {
            step.diagnostic(format!("`{}` and `sql` exclude each other", step.key()));
            (None, BTreeSet::new())
        }
        (Some(sql), None) => {
            let Some(text) = sql.non_empty_text() else { return (None, BTreeSet::new()) };
            match own::parse(&text) {
                Ok(query) => checked(&sql, query, scope),
                Err(errors) => (report(&sql, errors), BTreeSet::new()),
            }
        }
        (None, Some(_)) => steps.read(scope, over),
        (None, None) => {
            if !table.source().is_broken() {
                table.diagnostic_with(
                    "missing key: `sql`",
                    "or write steps: `from`, `derive`, `filter`, `group`, `aggregate`",
                );
            }
            (None, BTreeSet::new())
        }
    }
}

fn checked(value: &Value<'_>, query: Parsed, scope: &QueryScope) -> (Option<Checked>, BTreeSet<String>) {
    let parameters = query.parameters().into_iter().map(str::to_owned).collect();
    if !scope.complete {
        return (None, parameters);
    }
    let checked = match own::check(query, scope.tables, scope.parameters) {
        Ok(checked) => Some(checked),
        Err(errors) => report(value, errors),
    };
    (checked, parameters)
}

/// Reports the errors of a query. Always `None`, so that it can be returned as the result.
fn report<T>(value: &Value<'_>, errors: Vec<SqlError>) -> Option<T> {
    for one in errors {
        let near = one.instead.as_ref().and_then(|(word, right)| {
            nearest(word, right.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"))
        });
        let all = one.instead.as_ref().filter(|(_, right)| (1..=24).contains(&right.len()));
        let all = all.map(|(_, right)| format!("known: `{}`", right.join("`, `")));
        let suggestion = near.or_else(|| one.hint.map(str::to_owned)).or(all);
        value.diagnostic_within((one.line, one.column), one.message, suggestion);
    }
    None
}

/// The steps as they are written.
struct WrittenSteps<'a> {
    from: Option<Value<'a>>,
    derive: Option<Value<'a>>,
    filter: Option<Value<'a>>,
    group: Option<Value<'a>>,
    aggregate: Option<Value<'a>>,
    order: Option<Value<'a>>,
}

impl<'a> WrittenSteps<'a> {
    fn from_table(table: &Table<'a>) -> WrittenSteps<'a> {
        WrittenSteps {
            from: table.get("from"),
            derive: table.get("derive"),
            filter: table.get("filter"),
            group: table.get("group"),
            aggregate: table.get("aggregate"),
            order: table.get("order"),
        }
    }

    fn first(&self) -> Option<&Value<'a>> {
        let all = [&self.from, &self.derive, &self.filter, &self.group, &self.aggregate, &self.order];
        all.into_iter().find_map(Option::as_ref)
    }

    fn read(&self, scope: &QueryScope, over: Option<&str>) -> (Option<Checked>, BTreeSet<String>) {
        let mut named = BTreeSet::new();
        if !scope.complete {
            return (None, named);
        }
        let query = self.steps(scope, over, &mut named);
        let parameters = named.iter().filter_map(|name| name.strip_prefix('$')).map(str::to_owned).collect();
        let Some((steps, at)) = query else { return (None, parameters) };
        match own::parse(&steps.sql()) {
            // Each part was checked by itself, so that further errors are reported at the beginning of the steps.
            Ok(query) => {
                match own::check(query.taking(steps.taken.as_deref()), scope.tables, scope.parameters) {
                    Ok(checked) => (Some(checked), parameters),
                    Err(errors) => {
                        errors.into_iter().for_each(|one| at.diagnostic(one.message));
                        (None, parameters)
                    }
                }
            }
            Err(errors) => {
                errors.into_iter().for_each(|one| at.diagnostic(one.message));
                (None, parameters)
            }
        }
    }

    /// The steps, and where they begin.
    fn steps(
        &self,
        scope: &QueryScope,
        over: Option<&str>,
        named: &mut BTreeSet<String>,
    ) -> Option<(Steps, Value<'a>)> {
        let at = self.first()?.clone();
        let names: Vec<&str> = scope.tables.iter().map(|(name, _)| name.as_str()).collect();
        let from = match (&self.from, over, names.as_slice()) {
            (Some(value), _, _) => {
                let text = value.non_empty_text()?;
                if !names.contains(&text.as_str()) {
                    value.unknown(&text, names.iter().copied());
                    return None;
                }
                text
            }
            (None, Some(only), _) => only.to_owned(),
            (None, None, [only]) => (*only).to_owned(),
            (None, None, _) => {
                at.diagnostic_with("missing key: `from`", "add it: the table that the steps begin with");
                return None;
            }
        };
        let of_table = &scope.tables.iter().find(|(name, _)| *name == from)?.1;
        let mut columns: Vec<String> = of_table.iter().map(|(name, _)| name.clone()).collect();
        let mut sound = true;
        let mut expression = |value: &Value<'_>, columns: &[String]| {
            let text = value.non_empty_text()?;
            match own::expression(&text, columns, scope.parameters) {
                Ok(names) => {
                    named.extend(names);
                    Some(text)
                }
                Err(errors) => report(value, errors),
            }
        };
        let mut steps = Steps { from, ..Steps::default() };
        for (name, _, value) in self.derive.iter().filter_map(Value::table).flat_map(|table| table.entries())
        {
            if columns.iter().any(|column| column == name) {
                value.diagnostic(format!("the table already has a column `{name}`"));
                sound = false;
            }
            match expression(&value, &columns) {
                Some(text) => steps.derive.push((name.to_owned(), text)),
                None => sound = false,
            }
            columns.push(name.to_owned());
        }
        if let Some(value) = &self.filter {
            steps.filter = expression(value, &columns);
            sound &= steps.filter.is_some();
        }
        let mut taken = BTreeSet::new();
        for item in self.group.iter().filter_map(Value::list).flatten() {
            let name = item.non_empty_text()?;
            if !columns.contains(&name) {
                item.unknown(&name, columns.iter().map(String::as_str));
                sound = false;
            }
            taken.insert(name.clone());
            steps.group.push(name);
        }
        for (name, _, value) in
            self.aggregate.iter().filter_map(Value::table).flat_map(|table| table.entries())
        {
            if steps.group.iter().any(|group| group == name) {
                value.diagnostic(format!("the rows are already grouped by `{name}`"));
                sound = false;
            }
            match expression(&value, &columns) {
                Some(text) => steps.aggregate.push((name.to_owned(), text)),
                None => sound = false,
            }
        }
        if !steps.group.is_empty() && steps.aggregate.is_empty() {
            at.diagnostic_with(
                "`group` without `aggregate`",
                "add `aggregate` with the values to compute for each group",
            );
            sound = false;
        }
        if !steps.aggregate.is_empty() {
            taken.extend(named.iter().cloned());
            let of_table = of_table.iter().filter(|(name, _)| taken.contains(name));
            let taken: Vec<String> = of_table.map(|(name, _)| name.clone()).collect();
            // Rows that are merely counted are counted by any column.
            let first = columns.first().cloned().into_iter().collect();
            steps.taken = Some(if taken.is_empty() { first } else { taken });
        }
        for item in self.order.iter().filter_map(Value::list).flatten() {
            let text = item.non_empty_text()?;
            let (name, down) = match text.strip_suffix(" DESC").or_else(|| text.strip_suffix(" desc")) {
                Some(name) => (name.trim(), true),
                None => (text.trim(), false),
            };
            let result = steps.group.iter().chain(steps.aggregate.iter().map(|(name, _)| name));
            let result: Vec<&str> = match steps.aggregate.is_empty() {
                true => columns.iter().map(String::as_str).collect(),
                false => result.map(String::as_str).collect(),
            };
            if !result.contains(&name) {
                item.unknown(name, result.into_iter());
                sound = false;
            }
            steps.order.push((name.to_owned(), down));
        }
        sound.then_some((steps, at))
    }
}
