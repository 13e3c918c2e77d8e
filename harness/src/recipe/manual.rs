//! What recipes say of themselves: the list, and all about one.

use super::asked::recipe;
use recipes::own;
use recipes::recipe::of_reports::{Kind, LIST, ReportRecipe, all};
use recipes::report::Takes;

/// One line per recipe.
pub fn list() -> String {
    let wide = all().map(|recipe| recipe.name.len()).max().unwrap_or_default();
    let line = |recipe: &ReportRecipe| format!("  {:wide$}  {}\n", recipe.name, recipe.about);
    let of = |which: fn(&ReportRecipe) -> bool| {
        LIST.iter().filter(|recipe| which(recipe)).map(line).collect::<String>()
    };
    let is_composite = |recipe: &ReportRecipe| recipe.name.chars().all(|letter| !letter.is_ascii_lowercase());
    format!(
        "Summaries, over all reports together and of each (`summaries` is all of them):\n{}\nOthers:\n{}\n\
         Composite tables, row by row:\n{}",
        of(ReportRecipe::is_summary),
        LIST.iter()
            .filter(|recipe| !recipe.is_summary() && !is_composite(recipe))
            .map(line)
            .collect::<String>(),
        LIST.iter().filter(|recipe| is_composite(recipe)).map(line).collect::<String>(),
    ) + &own(wide)
}

/// Those that users wrote, where there are any.
fn own(wide: usize) -> String {
    let own = own::all();
    let lines =
        own.iter().map(|own| format!("  {:wide$}  {}\n", own.declaration.name, own.declaration.about));
    match own.is_empty() {
        true => String::new(),
        false => format!("\nYour own, from files:\n{}", lines.collect::<String>()),
    }
}

/// All about one recipe: purpose, definition, tables, arguments, what it gives.
pub fn manual(name: &str) -> Result<String, String> {
    let recipe = recipe(name.split(':').next().unwrap_or_default())?;
    let mut text = format!(
        "{}: {}\n\nDefinition (this project's own): {}.\n",
        recipe.name, recipe.about, recipe.definition
    );
    if !recipe.tables.is_empty() {
        text.push_str("\nReads:\n");
        for table in recipe.tables {
            let columns: Vec<&str> =
                table.columns.iter().filter(|column| column.required).map(|column| column.name).collect();
            text.push_str(&format!(
                "  {} (needs {})\n",
                table.name,
                if columns.is_empty() { "nothing".to_owned() } else { columns.join(", ") }
            ));
        }
    }
    if !recipe.arguments.is_empty() {
        text.push_str("\nArguments, as in `NAME:ARGUMENT`:\n");
        for argument in recipe.arguments {
            let value = match argument.takes {
                Takes::Nothing => String::new(),
                Takes::Number(number) => format!("=N (where not given: {number})"),
                Takes::Span => "=FIRST..LAST".to_owned(),
                Takes::Decimal(number) => format!("=N (where not given: {number})"),
                Takes::Text("") => "=TEXT".to_owned(),
                Takes::Text(other) => format!("=TEXT (where not given: {other})"),
            };
            text.push_str(&format!("  {}{value}: {}\n", argument.name, argument.about));
        }
    }
    let gives = match recipe.kind {
        Kind::Summary { .. } => {
            "all_stats (all reports together), rank_stats (each report), files. Figures: total, count, mean, median, \
             quartiles by linear interpolation, least, most, deviation with n - 1 and 0 of one value. Rows that end \
             before they begin are left out and told. Under a filter rows are kept whole that overlap it"
        }
        Kind::Rows { .. } => "rows (of all reports, with the rank of each), files",
        Kind::Together(together) => &format!("{}, files", together.tables().join(", ")),
        Kind::Diff => "diff, files",
    };
    text.push_str(&format!("\nGives: {gives}.\n"));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_stands_in_the_list_once_and_has_a_manual() {
        let list = list();
        for recipe in LIST {
            let lines = list.lines().filter(|line| line.split_whitespace().next() == Some(recipe.name));
            assert_eq!(lines.count(), 1, "{}", recipe.name);
            let manual = manual(recipe.name).expect("there");
            assert!(manual.contains("Definition") && manual.contains("Gives"), "{manual}");
        }
        assert!(super::manual("nothing").is_err());
    }
}
