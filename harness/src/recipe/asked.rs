//! Which recipes a person asks for: names with their arguments, several between commas, and the word for all summaries. A
//! backslash takes the meaning of a comma or a colon in an argument.

use crate::suggest::nearest;
use recipes::recipe::of_reports::{LIST, ReportRecipe, all, find};
use recipes::report::Arguments;

/// All summaries at once.
const SUMMARIES: &str = "summaries";

/// The recipes with their arguments, or all that is wrong.
pub fn asked(names: &[String]) -> Result<Vec<(&'static ReportRecipe, Arguments)>, Vec<String>> {
    let (mut asked, mut wrong) = (Vec::new(), Vec::new());
    for word in names.iter().flat_map(|names| split(names, ',')).filter(|word| !word.is_empty()) {
        if word == SUMMARIES {
            asked.extend(
                LIST.iter().filter(|recipe| recipe.is_summary()).map(|recipe| (recipe, Arguments::default())),
            );
            continue;
        }
        let words = split(word, ':');
        let (name, words) = words.split_first().map_or(("", &[][..]), |(name, words)| (*name, words));
        match recipe(name) {
            Ok(recipe) => {
                let words: Vec<String> = words.iter().map(|word| unescaped(word)).collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
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

/// At this letter, where no backslash stands before it. Backslashes stay where they are.
fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut begin, mut is_escaped) = (Vec::new(), 0, false);
    for (place, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            letter if letter == at => {
                parts.push(&text[begin..place]);
                begin = place + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Each letter behind a backslash as it is, without the backslash.
fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let next = || match letters.next() {
        // The last one of a text stands for itself.
        Some('\\') => letters.next().or(Some('\\')),
        letter => letter,
    };
    std::iter::from_fn(next).collect()
}

pub(super) fn recipe(name: &str) -> Result<&'static ReportRecipe, String> {
    find(name).ok_or_else(|| {
        let known = all().map(|recipe| recipe.name).chain([SUMMARIES]);
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
    fn a_backslash_takes_the_meaning_of_commas_colons_and_itself() {
        let words = r"cuda_gpu_kern_pace:name=void a\:\:b<1\, 2>(c\\d),nvtx_sum".to_owned();
        let asked = asked(&[words]).expect("known");
        assert_eq!(
            asked.iter().map(|(recipe, _)| recipe.name).collect::<Vec<_>>(),
            ["cuda_gpu_kern_pace", "nvtx_sum"]
        );
        let name = asked[0].0.arguments.iter().find(|spec| spec.name == "name").expect("there");
        assert_eq!(asked[0].1.text(name), r"void a::b<1, 2>(c\d)");
        assert_eq!(unescaped(r"end\"), r"end\");
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let wrong = names(&["nvtx_smu,cuda_gpu_kern_sum:bse"]).unwrap_err();
        assert_eq!(wrong.len(), 2);
        assert!(wrong[0].contains("did you mean `nvtx_sum`?"), "{wrong:?}");
        assert!(names(&[""]).is_err() && names(&["nvtx_sum,nvtx_sum"]).is_err());
    }
}
