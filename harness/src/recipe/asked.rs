//! Which recipes a person asks for: names with their arguments, several between commas, and the word for all summaries.

use crate::suggest::nearest;
use recipes::recipe::of_reports::{LIST, ReportRecipe, find};
use recipes::report::Arguments;

/// All summaries at once.
const SUMMARIES: &str = "summaries";

/// The recipes with their arguments, or all that is wrong.
pub fn asked(names: &[String]) -> Result<Vec<(&'static ReportRecipe, Arguments)>, Vec<String>> {
    let (mut asked, mut wrong) = (Vec::new(), Vec::new());
    for word in names.iter().flat_map(|names| names.split(',')).filter(|word| !word.is_empty()) {
        if word == SUMMARIES {
            asked.extend(
                LIST.iter().filter(|recipe| recipe.is_summary()).map(|recipe| (recipe, Arguments::default())),
            );
            continue;
        }
        let mut words = word.split(':');
        let name = words.next().unwrap_or_default();
        match recipe(name) {
            Ok(recipe) => {
                let words: Vec<&str> = words.collect();
                match Arguments::read(recipe.name, recipe.arguments, &words) {
                    Ok(arguments) => asked.push((recipe, arguments)),
                    Err(error) => wrong.push(error.to_string()),
                }
            }
            Err(why) => wrong.push(why),
        }
    }
    if asked.is_empty() && wrong.is_empty() {
        wrong.push("no recipe: `harness recipe list` tells which there are".to_owned());
    }
    // One output has one table of a name.
    let mut seen = std::collections::BTreeSet::new();
    for (recipe, _) in &asked {
        if !seen.insert(recipe.name) {
            wrong.push(format!("asked for twice: {}", recipe.name));
        }
    }
    if wrong.is_empty() { Ok(asked) } else { Err(wrong) }
}

pub(super) fn recipe(name: &str) -> Result<&'static ReportRecipe, String> {
    find(name).ok_or_else(|| {
        let known = LIST.iter().map(|recipe| recipe.name).chain([SUMMARIES]);
        let near = nearest(name, known).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        format!("no recipe `{name}`{near} `harness recipe list` tells which there are")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Result<Vec<&'static str>, Vec<String>> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        asked(&words).map(|asked| asked.into_iter().map(|(recipe, _)| recipe.name).collect())
    }

    #[test]
    fn recipes_are_named_one_by_one_or_between_commas_or_all_summaries_at_once() {
        assert_eq!(
            names(&["nvtx_sum,osrt_sum:"]).unwrap_err().len(),
            1,
            "an empty argument is none that it has"
        );
        assert_eq!(names(&["nvtx_sum", "osrt_sum"]), Ok(vec!["nvtx_sum", "osrt_sum"]));
        assert!(names(&["summaries"]).expect("known").len() >= 7);
        assert_eq!(names(&["cuda_gpu_kern_sum:base"]), Ok(vec!["cuda_gpu_kern_sum"]));
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let wrong = names(&["nvtx_smu,cuda_gpu_kern_sum:bse"]).unwrap_err();
        assert_eq!(wrong.len(), 2);
        assert!(wrong[0].contains("did you mean `nvtx_sum`?"), "{wrong:?}");
        assert!(names(&[""]).is_err() && names(&["nvtx_sum,nvtx_sum"]).is_err());
    }
}
