//! The runs of each kernel in one export, by its short name.

use nsys::export::{Export, ExportError};
use nsys::tables::{KERNEL, STRING_IDS};
use std::collections::{BTreeMap, HashMap};

/// Each kernel's durations in nanoseconds.
pub type Kernels = BTreeMap<String, Vec<u64>>;

/// The outer error is of the export, the inner of what stands in it.
pub fn durations(export: &Export) -> Result<Result<Kernels, String>, ExportError> {
    let Some(kernels) = export.columns(&KERNEL, &["start", "end", "shortName"])? else {
        return Ok(Ok(Kernels::new()));
    };
    let Some(strings) = export.table(&STRING_IDS)? else {
        return Ok(Err("the table of strings is missing, so kernels have no names".to_owned()));
    };
    let mut names: HashMap<i64, String> = HashMap::new();
    for (id, value) in strings.maybe_ints("id")?.iter().zip(strings.texts("value")?.iter()) {
        let (Some(id), Some(value)) = (id, value) else { continue };
        let known = names.entry(id).or_insert_with(|| value.to_owned());
        if known.as_str() != value {
            return Ok(Err(format!("string {id} has two texts: of two reports, export it again")));
        }
    }
    let mut columns = [const { Vec::new() }; 3];
    for (values, name) in columns.iter_mut().zip(["start", "end", "shortName"]) {
        *values = kernels.maybe_ints(name)?.iter().collect();
    }
    Ok(gather(&columns, &names))
}

fn gather(
    [starts, ends, ids]: &[Vec<Option<i64>>; 3],
    names: &HashMap<i64, String>,
) -> Result<Kernels, String> {
    let mut of_id: HashMap<i64, Vec<u64>> = HashMap::new();
    for (at, ((start, end), id)) in starts.iter().zip(ends).zip(ids).enumerate() {
        let hole = || format!("kernel {}: missing value", at + 1);
        let (start, end, id) = (start.ok_or_else(hole)?, end.ok_or_else(hole)?, id.ok_or_else(hole)?);
        let duration = end.checked_sub(start).and_then(|ns| u64::try_from(ns).ok());
        let Some(duration) = duration else {
            return Err(format!("kernel {} ends before it begins: {start} ns, {end} ns", at + 1));
        };
        of_id.entry(id).or_default().push(duration);
    }
    let mut kernels = Kernels::new();
    for (id, durations) in of_id {
        let name = names.get(&id).ok_or_else(|| format!("missing string {id}, the name of a kernel"))?;
        // Two ids of one text are one kernel; the order in which they come is evened out by sorting.
        kernels.entry(name.clone()).or_default().extend(durations);
    }
    kernels.values_mut().for_each(|durations| durations.sort_unstable());
    Ok(kernels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_with_two_texts_is_refused() {
        let made = nsys::testing::Made::begin();
        // The short name of a kernel is the text behind its name.
        made.string(2, "a").kernel((0, 5), 1, 1);
        let read = || durations(&Export::open(&made.path()).expect("opens")).expect("read");
        assert!(read().is_ok());
        made.string(2, "b");
        let why = read().expect_err("refused");
        assert_eq!(why, "string 2 has two texts: of two reports, export it again");
    }

    fn gathered(rows: &[(i64, i64, i64)]) -> Result<Kernels, String> {
        let names = HashMap::from([(1, "a".to_owned()), (2, "b".to_owned()), (3, "a".to_owned())]);
        let of = |value: fn(&(i64, i64, i64)) -> i64| rows.iter().map(|row| Some(value(row))).collect();
        gather(&[of(|row| row.0), of(|row| row.1), of(|row| row.2)], &names)
    }

    #[test]
    fn kernels_are_gathered_by_name() {
        let kernels = gathered(&[(0, 5, 1), (10, 12, 2), (-3, 0, 3)]).expect("sound");
        assert_eq!(kernels, Kernels::from([("a".to_owned(), vec![3, 5]), ("b".to_owned(), vec![2])]));
    }

    #[test]
    fn impossible_rows_are_reported_and_not_counted() {
        assert!(gathered(&[(5, 4, 1)]).expect_err("backwards").contains("ends before it begins"));
        assert!(gathered(&[(0, 1, 9)]).expect_err("no name").contains("missing string 9"));
        assert!(gathered(&[(i64::MIN, i64::MAX, 1)]).is_err());
    }
}
