//! A soak, judged over its windows: what grows slowly, and what most nodes show alike.

pub mod alike;
mod chance;
pub mod growth;

/// Hours and minutes of a soak, for people.
pub fn moment(soaked_s: f64) -> String {
    let minutes = (soaked_s / 60.0).max(0.0) as u64;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_moment_of_a_soak_is_shown_in_hours_and_minutes() {
        let shown = [0.0, 2459.0, 3600.0, 93_780.0].map(super::moment);
        assert_eq!(shown, ["0 min", "40 min", "1 h", "26 h 03 min"]);
    }
}
