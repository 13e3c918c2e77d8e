//! What is to be told of reports, once for all reports of which it is told: of hundreds of ranks one line, not hundreds.

/// By what is told, in the order in which it first comes up.
pub(super) fn folded<'a>(notes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
    for (report, note) in notes {
        match told.iter_mut().find(|(known, _)| *known == note) {
            Some((_, of)) if of.contains(&report) => {}
            Some((_, of)) => of.push(report),
            None => told.push((note, vec![report])),
        }
    }
    let line = |(note, of): (&str, Vec<&str>)| match of.as_slice() {
        [report] => format!("{report}: {note}"),
        [first, ..] => format!("{first} and {} more: {note}", of.len() - 1),
        [] => note.to_owned(),
    };
    told.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_many_reports_is_one_line_and_what_differs_stays_apart() {
        let notes = [
            ("a", "none: 3"),
            ("a", "late"),
            ("b", "none: 3"),
            ("c", "none: 4"),
            ("c", "none: 3"),
            ("c", "none: 3"),
        ];
        assert_eq!(folded(notes.into_iter()), ["a and 2 more: none: 3", "a: late", "c: none: 4"]);
        assert!(folded(std::iter::empty()).is_empty());
    }
}
