//! How long something took, in the unit that suits it, for a person.

/// Nanoseconds with three digits: `17.2 ms`.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns if ns >= 1e3 => (ns / 1e3, "us"),
        ns => (ns, "ns"),
    };
    let decimals = if value >= 100.0 || unit == "ns" { 0 } else { 1 };
    format!("{value:.decimals$} {unit}")
}
