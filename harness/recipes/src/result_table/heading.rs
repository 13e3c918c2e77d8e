//! Headings with their units, of today and of 2022, and the units in which times are shown.

use super::{Column, Quantity};

/// Unit in which times are shown, by `--timeunit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    /// The default: values as they are stored.
    #[default]
    Nanoseconds,
    /// With 3 decimals.
    Microseconds,
    /// With 6 decimals.
    Milliseconds,
    /// With 9 decimals.
    Seconds,
}

impl TimeUnit {
    /// Accepted spellings: `nsec`, `nanoseconds`.
    pub(crate) const ALL: [(&'static str, TimeUnit); 12] = [
        ("nsec", TimeUnit::Nanoseconds),
        ("usec", TimeUnit::Microseconds),
        ("msec", TimeUnit::Milliseconds),
        ("seconds", TimeUnit::Seconds),
        ("nanoseconds", TimeUnit::Nanoseconds),
        ("microseconds", TimeUnit::Microseconds),
        ("milliseconds", TimeUnit::Milliseconds),
        ("sec", TimeUnit::Seconds),
        ("ns", TimeUnit::Nanoseconds),
        ("us", TimeUnit::Microseconds),
        ("ms", TimeUnit::Milliseconds),
        ("s", TimeUnit::Seconds),
    ];

    /// By a spelling of `ALL`; `None` for any other.
    pub fn find(name: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
    }

    /// As in headings: `ns`, `us`, `ms`, `s`.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }

    /// How many nanoseconds it has, as a power of ten.
    pub(crate) fn power(self) -> u32 {
        match self {
            TimeUnit::Nanoseconds => 0,
            TimeUnit::Microseconds => 3,
            TimeUnit::Milliseconds => 6,
            TimeUnit::Seconds => 9,
        }
    }
}

/// Which set of headings a table of statistics has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Headings {
    /// Those of current releases: `Time (%)`, `Avg`, `Med`, `Min`, `Max`.
    #[default]
    Today,
    /// Those of releases of 2022 and before: `Time(%)`, `Average`, `Minimum`, `Maximum`, and no median.
    Of2022,
}

/// What releases of 2022 called a column: where they had none, nothing.
const OF_2022: [(&str, Option<&str>); 5] = [
    ("Avg", Some("Average")),
    ("Min", Some("Minimum")),
    ("Max", Some("Maximum")),
    ("StdDev", Some("StdDev")),
    ("Med", None),
];

impl Column {
    /// As it is printed above the column; `None` where that set has no such column.
    pub fn heading(&self, headings: Headings, unit: TimeUnit) -> Option<String> {
        if headings == Headings::Of2022
            && matches!(self.quantity, Quantity::Nanoseconds | Quantity::Bytes)
            && let Some((_, older)) = OF_2022.iter().find(|(name, _)| *name == self.name)
        {
            return older.map(str::to_owned);
        }
        let percent = if headings == Headings::Of2022 { "(%)" } else { " (%)" };
        Some(match self.quantity {
            Quantity::Plain | Quantity::BareNanoseconds | Quantity::Fraction | Quantity::Verbatim => {
                self.name.clone()
            }
            Quantity::Nanoseconds => format!("{} ({})", self.name, unit.symbol()),
            Quantity::Bytes => format!("{} (MB)", self.name),
            Quantity::BytesPerSecond => format!("{} (MB/s)", self.name),
            Quantity::Percent => format!("{}{percent}", self.name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heading(name: &str, quantity: Quantity, headings: Headings) -> Option<String> {
        Column::integers(name, quantity, [1]).heading(headings, TimeUnit::Nanoseconds)
    }

    #[test]
    fn headings_are_those_of_today_and_those_of_2022() {
        let today = |name, quantity| heading(name, quantity, Headings::Today).expect("a heading");
        assert_eq!(today("Time", Quantity::Percent), "Time (%)");
        assert_eq!(today("Total Time", Quantity::Nanoseconds), "Total Time (ns)");
        assert_eq!(today("Med", Quantity::Nanoseconds), "Med (ns)");
        let then = |name, quantity| heading(name, quantity, Headings::Of2022);
        assert_eq!(then("Time", Quantity::Percent).as_deref(), Some("Time(%)"));
        assert_eq!(then("Total Time", Quantity::Nanoseconds).as_deref(), Some("Total Time (ns)"));
        assert_eq!(then("Avg", Quantity::Nanoseconds).as_deref(), Some("Average"));
        assert_eq!(then("Med", Quantity::Nanoseconds), None);
        assert_eq!(then("Name", Quantity::Plain).as_deref(), Some("Name"));
    }

    #[test]
    fn the_unit_of_times_stands_in_the_heading() {
        let column = Column::integers("Avg", Quantity::Nanoseconds, [1]);
        let unit = TimeUnit::find("msec").expect("known");
        assert_eq!(column.heading(Headings::Today, unit).as_deref(), Some("Avg (ms)"));
        assert_eq!(TimeUnit::find("weeks"), None);
    }
}
