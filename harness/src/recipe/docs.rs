//! The manual as pages: one per recipe's name, and their list, as Markdown made of nothing but declarations. A test keeps
//! `docs/src/reference/recipes` as this makes it.

use super::manual::{FIGURES, value};
use super::sets::SETS;
use nsys::tables::TableSpec;
use recipes::recipe::of_reports::{self, GROUPS, OutputTable, ReportRecipe};
use recipes::recipe::{LIST, RecipeSpec};
use recipes::report::Takes;
use std::collections::BTreeMap;

/// Every page, by the name of its file.
pub fn pages() -> BTreeMap<String, String> {
    let over_reports = of_reports::LIST.iter().map(|recipe| recipe.name);
    let names = over_reports.chain(LIST.iter().map(|recipe| recipe.name));
    let mut pages: BTreeMap<String, String> = names.map(|name| (format!("{name}.md"), page(name))).collect();
    pages.insert("README.md".to_owned(), list());
    pages
}

const MADE: &str = "<!-- generated from declarations by `tests/expected recipe_docs` -->\n\n";

fn list() -> String {
    let mut text = format!(
        "{MADE}# Recipes\n\nWhat is computed from profiler reports and from what jobs leave behind. The same stands in \
         `harness recipe list` and `harness recipe breakdown --help`.\n"
    );
    let heading = |title: &str, about: &str| {
        format!("\n## {title}\n\n{about}.\n\n| recipe | what it is for |\n|---|---|\n")
    };
    let line = |name: &str, about: &str| format!("| [{name}]({name}.md) | {} |\n", cell(about));
    for group in GROUPS {
        text.push_str(&heading(group.title, &capital(group.about)));
        let recipes = group.recipes.iter().filter_map(|name| of_reports::find(name));
        text.extend(recipes.map(|recipe| line(recipe.name, recipe.about)));
    }
    text.push_str(&heading(
        "In suites",
        "What a case of a suite names in `recipes`, and what its assertions then are about",
    ));
    text.extend(LIST.iter().map(|recipe| line(recipe.name, recipe.about)));
    text.push_str("\n## Sets\n\nAsked for together, as in `harness recipe all --set NAME`.\n");
    for set in SETS {
        text.push_str(&format!("\n### {}\n\n{}.\n\n", set.name, capital(set.about)));
        for word in set.recipes {
            let name = word.split(':').next().unwrap_or_default();
            text.push_str(&format!("- [`{word}`]({name}.md)\n"));
        }
    }
    text
}

/// All about one name, which a recipe over reports and one of suites may share.
fn page(name: &str) -> String {
    let mut text = format!("{MADE}# {name}\n");
    let (over_reports, in_suites) = (of_reports::find(name), LIST.iter().find(|recipe| recipe.name == name));
    if let Some(recipe) = over_reports {
        text.push_str(&report_page(&recipe, if in_suites.is_some() { "## Over reports\n\n" } else { "" }));
    }
    if let Some(recipe) = in_suites {
        text.push_str(&suite_page(recipe));
    }
    text
}

fn report_page(recipe: &ReportRecipe<'_>, heading: &str) -> String {
    let mut text = format!(
        "\n{heading}**{}**: {}.\n\n    harness recipe {} --input reports/\n\n",
        recipe.title, recipe.about, recipe.name
    );
    text.push_str(&format!("Definition (this project's own): {}.\n", recipe.definition));
    if !recipe.arguments.is_empty() {
        text.push_str("\n| argument | what it does | where not given |\n|---|---|---|\n");
        for argument in recipe.arguments {
            let (value, otherwise) = value(&argument.takes);
            let (name, about) = (&argument.name, cell(&argument.about));
            text.push_str(&format!(
                "| `{name}{value}` | {about} | {} |\n",
                cell(&otherwise.unwrap_or_else(|| not_given(&argument.takes).to_owned()))
            ));
        }
    }
    text.push_str(&reads(recipe.tables));
    text.push_str(&tables(&recipe.output_tables()));
    if recipe.is_summary() {
        text.push_str(&format!("\n{FIGURES}.\n"));
    }
    if !recipe.charts().is_empty() {
        text.push_str("\n| draws | which is |\n|---|---|\n");
        text.extend(recipe.charts().iter().map(|(name, about)| format!("| `{name}` | {} |\n", cell(about))));
    }
    text
}

fn suite_page(recipe: &RecipeSpec<'_>) -> String {
    let mut text = format!(
        "\n## In suites\n\n{}.\n\n    recipes = [\"{}\"]\n\n| metric | what it is | unit | better | of each |\n\
         |---|---|---|---|---|\n",
        capital(recipe.about),
        recipe.name
    );
    for metric in recipe.metrics {
        let dims: Vec<String> = metric.dims.iter().map(|dim| dim.name().to_owned()).collect();
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            metric.name,
            cell(&metric.about),
            metric.unit.name(),
            metric.better.name(),
            if dims.is_empty() { "job".to_owned() } else { dims.join(", ") }
        ));
    }
    text.push_str(&reads(recipe.tables));
    let causes: Vec<String> = recipe.causes().map(|cause| format!("`{cause}`")).collect();
    if !causes.is_empty() {
        text.push_str(&format!("\nReasons a metric may be missing: {}.\n", causes.join(", ")));
    }
    text
}

fn reads(tables: &[&TableSpec]) -> String {
    if tables.is_empty() {
        return String::new();
    }
    let mut text = "\n| reads | required columns | optional columns |\n|---|---|---|\n".to_owned();
    for table in tables {
        let columns = |required: bool| {
            let columns = table.columns.iter().filter(|column| column.required == required);
            let columns: Vec<String> = columns.map(|column| format!("`{}`", column.name)).collect();
            if columns.is_empty() { "none".to_owned() } else { columns.join(", ") }
        };
        let older = table.older_name.map(|name| format!(", before `{name}`")).unwrap_or_default();
        text.push_str(&format!("| `{}`{older} | {} | {} |\n", table.name, columns(true), columns(false)));
    }
    text
}

/// What counts where an argument without a default is not given.
fn not_given(takes: &Takes) -> &'static str {
    match takes {
        Takes::Nothing => "off",
        _ => "none",
    }
}

/// Each table, and each of its columns; a column of several tables once for each meaning.
fn tables(tables: &[OutputTable]) -> String {
    let mut text = "\n| gives | which is |\n|---|---|\n".to_owned();
    text.extend(tables.iter().map(|table| format!("| `{}` | {} |\n", table.name, cell(&table.about))));
    text.push_str("\n| column | of | what it holds |\n|---|---|---|\n");
    let mut columns: Vec<(&(String, String), Vec<String>)> = Vec::new();
    for table in tables.iter().filter(|table| table.name != "files") {
        let name = format!("`{}`", table.name);
        for column in &table.columns {
            match columns.iter_mut().find(|(known, _)| *known == column) {
                Some((_, of)) => of.push(name.clone()),
                None => columns.push((column, vec![name.clone()])),
            }
        }
    }
    for ((name, about), of) in columns {
        text.push_str(&format!("| `{name}` | {} | {} |\n", of.join(", "), cell(about)));
    }
    text
}

/// A table's cell ends at a stroke.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_has_a_page_and_its_line_in_the_list() {
        let pages = pages();
        let list = &pages["README.md"];
        for name in
            of_reports::LIST.iter().map(|recipe| recipe.name).chain(LIST.iter().map(|recipe| recipe.name))
        {
            assert!(pages.contains_key(&format!("{name}.md")), "{name}");
            assert!(list.contains(&format!("| [{name}]({name}.md) | ")), "{name}");
        }
    }

    #[test]
    fn a_page_has_both_recipes_of_a_shared_name() {
        let page = page("breakdown");
        for fragment in
            ["## Over reports", "## In suites", "Definition", "`gpu.exposed_comm_share`", "| reads |"]
        {
            assert!(page.contains(fragment), "no {fragment} in\n{page}");
        }
        assert!(!super::page("nvtx_sum").contains("## "));
    }

    #[test]
    fn no_cell_of_a_page_is_blank() {
        for (name, text) in pages() {
            for line in text.lines().filter(|line| line.starts_with('|')) {
                let cells = line.trim_matches('|').replace("\\|", "/");
                let blank = cells.split('|').any(|cell| cell.trim().is_empty());
                assert!(!blank, "{name}: {line}");
            }
        }
    }
}
