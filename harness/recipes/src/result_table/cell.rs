//! How the values of a table look: the one place where numbers become digits, in the unit that stands in their heading.
//! The files of the forms write what stands around them.

use super::{Column, Headings, Quantity, ResultTable, TimeUnit, Values};

/// Which headings, and in which unit times are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// As in `--headings`.
    pub headings: Headings,
    /// As in `--timeunit`; only for columns whose heading has a unit of time.
    pub unit: TimeUnit,
}

/// A table under a look: the columns that its headings have.
pub struct Shown<'a> {
    /// As in `ResultTable`.
    pub name: &'a str,
    /// For a person, as in `ResultTable`.
    pub title: &'a str,
    /// Without those that the set of headings lacks.
    pub columns: Vec<ShownColumn<'a>>,
    /// Number of rows.
    pub height: usize,
}

/// A column with its heading; formats its values cell by cell.
pub struct ShownColumn<'a> {
    /// With its unit: `Total Time (ns)`.
    pub heading: String,
    column: &'a Column,
    unit: TimeUnit,
}

/// One value, before a format quotes or pads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell<'a> {
    /// There is no value, which is never a zero.
    Empty,
    /// As it stands in the column, not escaped.
    Text(&'a str),
    /// Digits, with a sign and a point where there are any, and nothing else.
    Number(String),
}

impl ResultTable {
    /// Headings, unit and columns under this look; values are formatted when asked for.
    pub fn render(&self, look: Look) -> Shown<'_> {
        let columns = self.columns.iter().filter_map(|column| {
            let heading = column.heading(look.headings, look.unit)?;
            Some(ShownColumn { heading, column, unit: look.unit })
        });
        Shown { name: &self.name, title: &self.title, columns: columns.collect(), height: self.height() }
    }
}

impl ShownColumn<'_> {
    /// Whether its cells are texts or lists, and no numbers.
    pub fn is_text(&self) -> bool {
        matches!(self.column.values, Values::Texts(_) | Values::Lists(_))
    }

    /// Formats one value; `Empty` beyond the last row too.
    pub fn cell(&self, row: usize) -> Cell<'_> {
        let number = match &self.column.values {
            Values::Texts(all) => return all.get(row).map_or(Cell::Empty, Cell::Text),
            Values::Lists(all) => {
                let list = all.get(row).and_then(Option::as_ref);
                return list.map_or(Cell::Empty, |list| Cell::Text(list.text()));
            }
            Values::Integers(all) => all.get(row).map(|value| self.integer(value)),
            Values::Decimals(all) => all.get(row).copied().flatten().and_then(|value| self.decimal(value)),
        };
        number.map_or(Cell::Empty, Cell::Number)
    }

    fn integer(&self, value: i64) -> String {
        match self.scale() {
            Some((power, decimals)) => fixed(value, power, decimals),
            None if self.column.quantity == Quantity::Percent => format!("{value}.0"),
            None => value.to_string(),
        }
    }

    /// What is no number has no digits.
    fn decimal(&self, value: f64) -> Option<String> {
        if !value.is_finite() {
            return None;
        }
        Some(match self.scale() {
            // A mean of one value looks as that value does in the columns beside it.
            Some((power, decimals)) if value.fract() == 0.0 && value.abs() < EXACT => {
                fixed(value as i64, power, decimals)
            }
            Some((power, decimals)) => rounded(value / 10f64.powi(power as i32), decimals),
            None if self.column.quantity == Quantity::Fraction => rounded(value, FRACTION_DECIMALS),
            None => rounded(value, 1),
        })
    }

    /// By which power of ten values are divided, and how many decimals they then have; `None` where they stand in their
    /// own unit.
    fn scale(&self) -> Option<(u32, u32)> {
        match self.column.quantity {
            // As many decimals as show every nanosecond.
            Quantity::Nanoseconds => {
                Some((self.unit.power(), self.unit.power())).filter(|(power, _)| *power > 0)
            }
            Quantity::Bytes | Quantity::BytesPerSecond => Some((6, 3)),
            Quantity::Plain
            | Quantity::BareNanoseconds
            | Quantity::Percent
            | Quantity::Fraction
            | Quantity::Verbatim => None,
        }
    }
}

const FRACTION_DECIMALS: u32 = 6;

/// Up to here every whole number has a double of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// `value` divided by ten to the `power`; no more decimals than that. A half is rounded away from zero.
fn fixed(value: i64, power: u32, decimals: u32) -> String {
    let dropped = 10u128.pow(power - decimals);
    let kept = (u128::from(value.unsigned_abs()) + dropped / 2) / dropped;
    let one = 10u128.pow(decimals);
    let sign = if value < 0 && kept > 0 { "-" } else { "" };
    format!("{sign}{}.{:0width$}", kept / one, kept % one, width = decimals as usize)
}

fn rounded(value: f64, decimals: u32) -> String {
    let digits = format!("{value:.*}", decimals as usize);
    match digits.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        _ => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell_text(column: Column, unit: TimeUnit) -> String {
        let result_table = ResultTable::new("x", "X", vec![column]);
        let shown = result_table.render(Look { unit, ..Look::default() });
        match shown.columns[0].cell(0) {
            Cell::Empty => "empty".to_owned(),
            Cell::Text(text) => format!("text {text}"),
            Cell::Number(digits) => digits,
        }
    }

    #[test]
    fn integers_stand_as_they_are_and_decimals_have_one_place() {
        let ns = TimeUnit::Nanoseconds;
        for quantity in [Quantity::Plain, Quantity::Nanoseconds, Quantity::BareNanoseconds] {
            assert_eq!(cell_text(Column::integers("x", quantity, [1_234_567]), ns), "1234567");
            assert_eq!(cell_text(Column::decimals("x", quantity, [7658.54]), ns), "7658.5");
            assert_eq!(cell_text(Column::decimals("x", quantity, [3.0]), ns), "3.0");
        }
        assert_eq!(cell_text(Column::integers("x", Quantity::Plain, [i64::MIN]), ns), "-9223372036854775808");
        assert_eq!(cell_text(Column::decimals("x", Quantity::Percent, [99.96]), ns), "100.0");
        assert_eq!(cell_text(Column::integers("x", Quantity::Percent, [7]), ns), "7.0");
        assert_eq!(cell_text(Column::decimals("x", Quantity::Plain, [-0.01]), ns), "0.0");
        assert_eq!(cell_text(Column::decimals("x", Quantity::Fraction, [0.012_345_678]), ns), "0.012346");
    }

    #[test]
    fn times_in_another_unit_keep_every_nanosecond() {
        for (unit, integer, decimal) in [
            (TimeUnit::Microseconds, "1234567.891", "0.334"),
            (TimeUnit::Milliseconds, "1234.567891", "0.000334"),
            (TimeUnit::Seconds, "1.234567891", "0.000000334"),
        ] {
            assert_eq!(
                cell_text(Column::integers("x", Quantity::Nanoseconds, [1_234_567_891]), unit),
                integer
            );
            assert_eq!(cell_text(Column::decimals("x", Quantity::Nanoseconds, [334.4]), unit), decimal);
            // A heading without a unit cannot show that its values are in another one.
            assert_eq!(cell_text(Column::integers("x", Quantity::BareNanoseconds, [1500]), unit), "1500");
            assert_eq!(cell_text(Column::integers("x", Quantity::Plain, [1500]), unit), "1500");
        }
        let least = cell_text(Column::integers("x", Quantity::Nanoseconds, [i64::MIN]), TimeUnit::Seconds);
        assert_eq!(least, "-9223372036.854775808");
    }

    #[test]
    fn bytes_are_megabytes_of_ten_to_the_sixth() {
        let ns = TimeUnit::Nanoseconds;
        for (bytes, shown_as) in
            [(4_194_304, "4.194"), (499, "0.000"), (500, "0.001"), (-500, "-0.001"), (-1, "0.000")]
        {
            assert_eq!(cell_text(Column::integers("x", Quantity::Bytes, [bytes]), ns), shown_as);
            assert_eq!(cell_text(Column::decimals("x", Quantity::Bytes, [bytes as f64]), ns), shown_as);
        }
        let rate = Column::decimals("x", Quantity::BytesPerSecond, [24_345_678_901.5]);
        assert_eq!(cell_text(rate, ns), "24345.679");
    }

    #[test]
    fn what_is_not_there_or_no_number_is_empty_and_never_zero() {
        let ns = TimeUnit::Nanoseconds;
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(cell_text(Column::decimals("x", Quantity::Plain, [value]), ns), "empty");
            assert_eq!(cell_text(Column::decimals("x", Quantity::Bytes, [value]), ns), "empty");
        }
        assert_eq!(cell_text(Column::maybe_integers("x", Quantity::Plain, [None]), ns), "empty");
        assert_eq!(cell_text(Column::maybe_texts::<&str>("x", [None]), ns), "empty");
        assert_eq!(cell_text(Column::texts("x", ["3"]), ns), "text 3");
    }
}
