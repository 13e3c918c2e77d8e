//! Reads which recipes are requested: names with arguments, comma-separated, groups such as `all`, and sets.

use super::escapes::{split, unescaped};
use super::sets;
use base::suggest::nearest;
use recipes::catalogue::Catalogue;
use recipes::recipe::of_reports::{COMPOSITE, ReportRecipe, group_of};
use recipes::report::Arguments;

/// All summaries at once.
const SUMMARIES: &str = "summaries";
/// Every recipe that needs no argument.
const ALL: &str = "all";

/// A recipe with its arguments.
pub(super) type RecipeWithArguments<'a> = (ReportRecipe<'a>, Arguments);

/// The recipes of one command line.
#[derive(Default)]
pub struct RecipeRequest<'a> {
    /// Those named, and those of groups and sets.
    pub recipes: Vec<RecipeWithArguments<'a>>,
    /// Whether a group or a set was requested, so that a summary is written beside the tables.
    pub is_survey: bool,
    /// Recipes that `all` does not include, and why.
    pub left_out: Vec<(&'a str, String)>,
}

/// The recipes of these names and sets, or all errors. A recipe named by itself, with its own arguments, replaces the one
/// that a group includes.
pub(crate) fn parse_request<'a>(
    catalogue: &'a Catalogue,
    names: &[String],
    of_sets: &[String],
) -> Result<RecipeRequest<'a>, Vec<String>> {
    let (mut request, mut errors) = (RecipeRequest::default(), Vec::new());
    let words = names.iter().flat_map(|names| split(names, ',')).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let single = words.iter().filter(|word| ![ALL, SUMMARIES].contains(word));
    let single: Vec<RecipeWithArguments> =
        single.filter_map(|word| named(catalogue, word).map_err(|why| errors.push(why)).ok()).collect();
    // One output has one table of a name.
    for (at, (recipe, arguments)) in single.iter().enumerate() {
        if single[..at].iter().any(|other| (other.0.name, &other.1) == (recipe.name, arguments)) {
            errors.push(format!("recipe requested twice: {}", recipe.name));
        }
    }
    let mut grouped: Vec<RecipeWithArguments> = Vec::new();
    for name in of_sets {
        request.is_survey = true;
        match sets::find(name) {
            Some(set) => {
                match set.recipes.iter().map(|word| named(catalogue, word)).collect::<Result<Vec<_>, _>>() {
                    Ok(of_set) => grouped.extend(of_set),
                    Err(why) => errors.push(format!("the set `{name}`: {why}")),
                }
            }
            None => {
                let near = nearest(name, sets::SETS.iter().map(|set| set.name));
                let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                errors.push(format!("no set `{name}`; {near}`harness recipe list` lists them"));
            }
        }
    }
    if words.contains(&ALL) && of_sets.is_empty() {
        request.is_survey = true;
        for recipe in catalogue.report_recipes() {
            match why_not(&recipe) {
                None => grouped.push((recipe, Arguments::default())),
                Some(why) => request.left_out.push((recipe.name, why)),
            }
        }
        request.left_out.retain(|(name, _)| single.iter().all(|(recipe, _)| recipe.name != *name));
    }
    if words.contains(&SUMMARIES) {
        let summaries = catalogue.report_recipes().filter(ReportRecipe::is_summary);
        grouped.extend(summaries.map(|recipe| (recipe, Arguments::default())));
    }
    for (recipe, arguments) in grouped {
        let is_there = |others: &[RecipeWithArguments]| {
            others.iter().any(|other| (other.0.name, &other.1) == (recipe.name, &arguments))
        };
        let is_named = single.iter().any(|(other, _)| other.name == recipe.name);
        if !is_named && !is_there(&request.recipes) {
            request.recipes.push((recipe, arguments));
        }
    }
    request.recipes.extend(single);
    if request.recipes.is_empty() && errors.is_empty() {
        errors.push("no recipe given; `harness recipe list` lists them".to_owned());
    }
    if errors.is_empty() { Ok(request) } else { Err(errors) }
}

/// Why `all` does not include a recipe.
fn why_not(recipe: &ReportRecipe<'_>) -> Option<String> {
    let name = recipe.name;
    if recipe.is_comparison() {
        return Some(format!("it compares two inputs: `harness recipe {name} --input BEFORE AFTER`"));
    }
    (group_of(name) == Some(COMPOSITE))
        .then(|| format!("as long as the reports themselves; request it by name: `all,{name}`"))
}

fn named<'a>(catalogue: &'a Catalogue, word: &str) -> Result<RecipeWithArguments<'a>, String> {
    let words = split(word, ':');
    let recipe = recipe(catalogue, words.first().copied().unwrap_or_default())?;
    let words: Vec<String> = words.iter().skip(1).map(|word| unescaped(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let arguments = Arguments::read(recipe.name, recipe.arguments, &words);
    Ok((recipe, arguments.map_err(|error| error.to_string())?))
}

pub(super) fn recipe<'a>(catalogue: &'a Catalogue, name: &str) -> Result<ReportRecipe<'a>, String> {
    catalogue.report_recipe(name).ok_or_else(|| {
        let known = catalogue.report_recipes().map(|recipe| recipe.name).chain([SUMMARIES, ALL]);
        let near = nearest(name, known).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        format!("no recipe `{name}`; {near}`harness recipe list` lists them, and where to put your own")
    })
}

/// A unique folder name for each recipe: its name, followed by its arguments where a recipe is requested more than once.
pub(super) fn labels(recipes: &[RecipeWithArguments<'_>]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (recipe, arguments) in recipes {
        let alike = recipes.iter().filter(|(other, _)| other.name == recipe.name).count();
        let words = arguments.to_strings();
        let mut label = recipe.name.to_owned();
        if alike > 1 && !words.is_empty() {
            label = format!("{label}-{}", words.join("-"));
        }
        // It becomes the name of a folder.
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._=-".contains(letter);
        let label: String =
            label.chars().take(MOST_LABEL_LETTERS).map(|c| if plain(c) { c } else { '_' }).collect();
        let is_taken = |label: &str| labels.iter().any(|other| other == label);
        let numbered = (2..).map(|number| format!("{label}-{number}"));
        let label = std::iter::once(label.clone()).chain(numbered).find(|label| !is_taken(label));
        labels.extend(label);
    }
    labels
}

/// Letters of a folder's name; a kernel's whole name has more.
const MOST_LABEL_LETTERS: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;
    use recipes::recipe::of_reports::{LIST, find};
    use std::sync::LazyLock;

    fn request(words: &[&str]) -> RecipeRequest<'static> {
        static BUILT_IN: LazyLock<Catalogue> = LazyLock::new(Catalogue::built_in);
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse_request(&BUILT_IN, &words, &[]).expect("known")
    }

    fn names(words: &[&str]) -> Result<Vec<String>, Vec<String>> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse_request(&Catalogue::built_in(), &words, &[])
            .map(|asked| asked.recipes.into_iter().map(|(recipe, _)| recipe.name.to_owned()).collect())
    }

    #[test]
    fn recipes_are_named_one_by_one_or_between_commas_or_all_summaries_at_once() {
        assert_eq!(
            names(&["nvtx_sum,osrt_sum:"]).unwrap_err().len(),
            1,
            "an empty argument is none that it has"
        );
        assert_eq!(names(&["nvtx_sum", "osrt_sum"]), Ok(vec!["nvtx_sum".to_owned(), "osrt_sum".to_owned()]));
        assert!(names(&["summaries"]).expect("known").len() >= 7);
        assert_eq!(names(&["cuda_gpu_kern_sum:base"]), Ok(vec!["cuda_gpu_kern_sum".to_owned()]));
    }

    #[test]
    fn a_backslash_takes_the_meaning_of_commas_colons_and_itself() {
        let words = r"cuda_gpu_kern_pace:name=void a\:\:b<1\, 2>(c\\d),nvtx_sum".to_owned();
        let asked = request(&[&words]).recipes;
        assert_eq!(
            asked.iter().map(|(recipe, _)| recipe.name).collect::<Vec<_>>(),
            ["cuda_gpu_kern_pace", "nvtx_sum"]
        );
        let name = asked[0].0.arguments.iter().find(|spec| spec.name == "name").expect("there");
        assert_eq!(asked[0].1.text(name), r"void a::b<1, 2>(c\d)");
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let errors = names(&["nvtx_smu,cuda_gpu_kern_sum:bse"]).unwrap_err();
        assert_eq!(errors.len(), 2);
        assert!(errors[0].contains("did you mean `nvtx_sum`?"), "{errors:?}");
        assert!(names(&[""]).is_err() && names(&["nvtx_sum,nvtx_sum"]).is_err());
        let errors = parse_request(&Catalogue::built_in(), &["all".to_owned()], &["seed-2042".to_owned()])
            .err()
            .expect("no such set");
        assert!(errors[0].contains("did you mean `seed-2024`?"), "{errors:?}");
        let all = [&["nvtx_smu,cuda_gpu_kern_sum:bse"][..], &[""], &["nvtx_sum,nvtx_sum"]]
            .map(|words| names(words).unwrap_err());
        insta::assert_snapshot!("messages", [&all.concat()[..], &errors].concat().join("\n"));
    }

    #[test]
    fn all_is_every_recipe_but_those_that_say_why_not() {
        let all = request(&["all"]);
        assert!(all.is_survey);
        let why: Vec<&str> = all.left_out.iter().map(|(name, _)| *name).collect();
        assert!(why.contains(&"diff") && why.contains(&"CUDA_GPU") && !why.contains(&"gpu_gaps"), "{why:?}");
        let listed = all.recipes.iter().map(|(recipe, _)| recipe.name).chain(why.iter().copied());
        assert_eq!(listed.count(), LIST.len());
        let with = request(&["all,CUDA_GPU"]);
        assert_eq!(with.recipes.len(), all.recipes.len() + 1);
        assert!(with.left_out.iter().all(|(name, _)| *name != "CUDA_GPU"));
    }

    #[test]
    fn a_recipe_named_with_arguments_replaces_the_one_of_all() {
        let all = request(&["all,gpu_gaps:gap=7"]);
        let gaps: Vec<&RecipeWithArguments> =
            all.recipes.iter().filter(|(recipe, _)| recipe.name == "gpu_gaps").collect();
        assert!(gaps.len() == 1 && gaps[0].1.has("gap"), "{}", gaps.len());
    }

    #[test]
    fn every_set_names_recipes_that_there_are_with_arguments_that_they_have() {
        for set in sets::SETS {
            let catalogue = Catalogue::built_in();
            let asked = parse_request(&catalogue, &["all".to_owned()], &[set.name.to_owned()])
                .unwrap_or_else(|errors| panic!("{errors:?}"));
            assert_eq!(asked.recipes.len(), set.recipes.len(), "{}", set.name);
            assert!(asked.left_out.is_empty());
        }
    }

    #[test]
    fn one_recipe_with_two_arguments_has_two_folders() {
        let words = ["cuda_gpu_kern_sum:base,gpu_gaps,cuda_gpu_kern_sum:mangled,cuda_gpu_kern_sum"];
        let asked = request(&words).recipes;
        let expected =
            ["cuda_gpu_kern_sum-base", "gpu_gaps", "cuda_gpu_kern_sum-mangled", "cuda_gpu_kern_sum"];
        assert_eq!(labels(&asked), expected);
    }

    #[test]
    fn names_of_folders_are_plain_short_and_unique() {
        let steps = find("breakdown").expect("there");
        let with = |step: &str| {
            let word = format!("step={step}");
            (steps, Arguments::read(steps.name, steps.arguments, &[&word]).expect("an argument"))
        };
        let labels = labels(&[with("a/b"), with("a b"), with(&"long".repeat(50))]);
        assert_eq!(labels[..2], ["breakdown-step=a_b", "breakdown-step=a_b-2"]);
        assert_eq!(labels[2].len(), MOST_LABEL_LETTERS);
    }
}
