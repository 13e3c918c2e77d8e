//! Formats rows of cells: aligned columns for a person, comma-separated values for programs.

use base::text::show;
use recipes::result_table::csv_text;

/// Texts to the left, and the last as long as it is. A cell stays in its line, whatever a file is called.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| show(cell)).collect()).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let wide = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|at| wide(at).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in &rows {
        let last = row.len().saturating_sub(1);
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if at == last { text.push_str(cell) } else { text.push_str(&format!("{cell:<width$}  ")) }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

/// One line, with quotation marks where a cell needs them.
pub(super) fn comma_separated<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let shown = |cell: &'a str| match cell.parse::<f64>() {
        Ok(_) => cell.into(),
        Err(_) => csv_text(cell),
    };
    cells.into_iter().map(shown).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be_and_the_last_is_open() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = columns(&[row(["a", "▁▂", "x y"]), row(["long", "1", ""])]);
        assert_eq!(text, "a     ▁▂  x y\nlong  1\n");
        assert_eq!(columns(&[]), "");
        let named = columns(&[row(["suite", "a\n::error::\u{1b}[2J", "x"])]);
        assert_eq!(named, "suite  a\\n::error::\\x1b[2J  x\n");
    }

    #[test]
    fn tables_of_recipes_escape_the_characters_that_reports_escape() {
        let texts = (0..0x1_0000).chain(0xe_0000..0xe_0100).filter_map(char::from_u32).map(String::from);
        let commands =
            ["##[error]", "##vso[task.complete]", "##teamcity[a", "## a", "#[a]"].map(str::to_owned);
        for text in texts.chain(commands) {
            let (of_recipes, of_reports) = (recipes::result_table::visible(&text), show(&text));
            assert_eq!(of_recipes == text, of_reports == text, "{text:?}: {of_recipes}, {of_reports}");
        }
    }

    #[test]
    fn a_cell_with_a_comma_or_a_quotation_mark_is_quoted() {
        assert_eq!(comma_separated(["a", "b,c", "d\"e", ""]), "a,\"b,c\",\"d\"\"e\",");
    }
}
