//! The manual of recipes: the list, and the page of one.

use super::request::recipe;
use super::sets::SETS;
use recipes::catalogue::Catalogue;
use recipes::recipe::of_reports::GROUPS;
use recipes::report::Takes;

/// One line per recipe, by groups, and the sets.
pub fn list(catalogue: &Catalogue) -> String {
    let names = catalogue.report_recipes().map(|recipe| recipe.name).chain(SETS.iter().map(|set| set.name));
    let wide = names.map(str::len).max().unwrap_or_default();
    let line = |name: &str, about: &str| format!("  {name:wide$}  {about}\n");
    let mut text = String::new();
    for group in GROUPS {
        text.push_str(&format!("{}: {}", group.title, group.about));
        if group
            .recipes
            .iter()
            .filter_map(|name| catalogue.report_recipe(name))
            .any(|recipe| recipe.is_summary())
        {
            text.push_str(" (`summaries` requests them all)");
        }
        text.push_str(":\n");
        let recipes = group.recipes.iter().filter_map(|name| catalogue.report_recipe(name));
        text.extend(recipes.map(|recipe| line(recipe.name, recipe.about)));
        text.push('\n');
    }
    text.push_str("Your own, from files in `suites/recipes` of the project or at `--recipe-path`:\n");
    text.extend(catalogue.users().map(|user| line(&user.name, &user.about)));
    if catalogue.user(YOURS).is_none() {
        text.push_str(&line(YOURS, &format!("yours to write: `{YOURS}.toml` there, or by any other name")));
    }
    text.push_str(
        "\nSets, as in `harness recipe all --set NAME`; without one `all` is every recipe that has data:\n",
    );
    text.extend(SETS.iter().map(|set| line(set.name, set.about)));
    text
}

/// What the field calls a recipe of one's own.
const YOURS: &str = "my_custom_recipe";

/// All about one recipe: purpose, definition, tables, arguments, what it gives.
pub fn manual(catalogue: &Catalogue, name: &str) -> Result<String, String> {
    let recipe = recipe(catalogue, name.split(':').next().unwrap_or_default())?;
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
            let (value, otherwise) = value(&argument.takes);
            let otherwise = otherwise.map(|other| format!(" (default: {other})")).unwrap_or_default();
            text.push_str(&format!("  {}{value}{otherwise}: {}\n", argument.name, argument.about));
        }
    }
    text.push_str("\nGives:\n");
    for table in recipe.output_tables() {
        text.push_str(&format!("  {}: {}\n", table.name, table.about));
        for (name, about) in &table.columns {
            text.push_str(&format!("    {name}: {about}\n"));
        }
    }
    if recipe.is_summary() {
        text.push_str(&format!("{FIGURES}.\n"));
    }
    let draws: Vec<String> =
        recipe.charts().iter().map(|(name, about)| format!("  {name}: {about}\n")).collect();
    if !draws.is_empty() {
        text.push_str(&format!("\nDraws, with `--html`:\n{}", draws.concat()));
    }
    Ok(text)
}

/// How an argument's value is written, and what counts where it is not given.
pub(super) fn value(takes: &Takes) -> (&'static str, Option<String>) {
    match takes {
        Takes::Nothing => ("", None),
        Takes::Number(number) => ("=N", Some(number.to_string())),
        Takes::Decimal(number) => ("=N", Some(number.to_string())),
        Takes::Span => ("=FIRST..LAST", None),
        Takes::Text(text) => ("=TEXT", Some(text.to_string()).filter(|text| !text.is_empty())),
    }
}

/// What the figures of a summary are.
pub(super) const FIGURES: &str = "Figures: total, count, mean, median, quartiles by linear interpolation, minimum, maximum, \
    standard deviation with n - 1 and 0 of one value. Rows that end before they begin are left out and noted. Under a filter, \
    rows that overlap it count in full";

#[cfg(test)]
mod tests {
    use super::*;
    use recipes::recipe::of_reports::LIST;

    #[test]
    fn every_recipe_stands_in_the_list_once_and_has_a_manual() {
        let catalogue = Catalogue::built_in();
        let list = list(&catalogue);
        for recipe in LIST {
            let lines = list.lines().filter(|line| line.split_whitespace().next() == Some(recipe.name));
            assert_eq!(lines.count(), 1, "{}", recipe.name);
            let manual = manual(&catalogue, recipe.name).expect("there");
            assert!(manual.contains("Definition") && manual.contains("Gives"), "{manual}");
        }
        assert!(super::manual(&catalogue, "nothing").is_err());
    }
}
