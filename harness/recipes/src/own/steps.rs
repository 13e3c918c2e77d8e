//! A query written as steps instead of one SQL text: derived columns, filtered rows, groups, aggregates. The
//! expressions are those of queries.

/// In the order in which they are done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps {
    /// The table that the steps begin with.
    pub from: String,
    /// The columns of the table that are named anywhere; all where there are no groups.
    pub taken: Option<Vec<String>>,
    /// Name and expression; a later one may name an earlier.
    pub derive: Vec<(String, String)>,
    /// The condition on rows, derived columns included; `None` leaves all rows.
    pub filter: Option<String>,
    /// Columns by whose values the rows are grouped.
    pub group: Vec<String>,
    /// Name and expression of each column computed per group.
    pub aggregate: Vec<(String, String)>,
    /// Columns of the result, and whether the largest comes first.
    pub order: Vec<(String, bool)>,
}

impl Steps {
    /// The same as a query.
    pub fn sql(&self) -> String {
        let mut source = match &self.taken {
            Some(taken) if !taken.is_empty() => {
                let taken: Vec<String> = taken.iter().map(|name| quoted(name)).collect();
                format!("(SELECT {} FROM {}) AS t0", taken.join(", "), quoted(&self.from))
            }
            _ => quoted(&self.from),
        };
        for (at, (name, expression)) in self.derive.iter().enumerate() {
            source = format!("(SELECT *, ({expression}) AS {} FROM {source}) AS t{}", quoted(name), at + 1);
        }
        let filter = self.filter.as_ref().map(|filter| format!(" WHERE ({filter})")).unwrap_or_default();
        let mut columns: Vec<String> = self.group.iter().map(|name| quoted(name)).collect();
        columns.extend(self.aggregate.iter().map(|(name, figure)| format!("({figure}) AS {}", quoted(name))));
        let groups: Vec<String> = self.group.iter().map(|name| quoted(name)).collect();
        let groups =
            if groups.is_empty() { String::new() } else { format!(" GROUP BY {}", groups.join(", ")) };
        let columns = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
        let order = self
            .order
            .iter()
            .map(|(name, down)| format!("{}{}", quoted(name), if *down { " DESC" } else { "" }));
        let order: Vec<String> = order.collect();
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
        format!("SELECT {columns} FROM {source}{filter}{groups}{order}")
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
