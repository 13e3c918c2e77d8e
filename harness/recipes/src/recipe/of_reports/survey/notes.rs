//! Folds equal notes of several reports: one line for hundreds of ranks, not hundreds of lines.

/// One line per note, in order of first occurrence.
pub(super) fn folded<'a>(notes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (report, note) in notes {
        match groups.iter_mut().find(|(known, _)| *known == note) {
            Some((_, of)) if of.contains(&report) => {}
            Some((_, of)) => of.push(report),
            None => groups.push((note, vec![report])),
        }
    }
    let line = |(note, of): (&str, Vec<&str>)| match of.as_slice() {
        [report] => format!("{report}: {note}"),
        [first, ..] => format!("{first} and {} more: {note}", of.len() - 1),
        [] => note.to_owned(),
    };
    groups.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_notes_of_many_reports_become_one_line() {
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
