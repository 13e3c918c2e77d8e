//! How a job is given what no artefact may hold: a file of assignments, which the job's script reads and removes before
//! it does anything else. The plan names their variables only.

use base::redact::{Reference, Secrets, reference};

/// What a script calls a secret that is an argument, and that nothing it runs sees otherwise.
const ARGUMENT: &str = "HARNESS_ARG_";
/// The file's name; over ssh each node has its own.
pub const FILE: &str = "secrets";

/// The variable that stands for an argument.
pub fn argument(from: &str) -> String {
    format!("{ARGUMENT}{from}")
}

/// Whether a variable stands for an argument, and so is not exported.
pub fn is_argument(variable: &str) -> bool {
    variable.starts_with(ARGUMENT)
}

/// How a shell refers to such an argument, if it is one.
pub(crate) fn rendered(word: &str) -> Option<String> {
    match reference(word) {
        Reference::To(from) => Some(format!("\"${}\"", argument(from))),
        _ => None,
    }
}

/// The word as the plan has it, from what a shell would see.
pub(crate) fn read_back(word: String) -> String {
    match word.strip_prefix('$').and_then(|word| word.strip_prefix(ARGUMENT)) {
        Some(from) => format!("env:{from}"),
        None => word,
    }
}

/// The file's text, for a shell that reads it. `secrets` are variables, each with where its value comes from.
pub fn assignments<'a>(
    secrets: impl Iterator<Item = (&'a str, &'a str)>,
    values: &Secrets,
) -> Result<String, String> {
    let mut text = String::new();
    for (variable, from) in secrets {
        let value = values.get(from).ok_or_else(|| format!("`env:{from}` has no value"))?;
        let export = if is_argument(variable) { "" } else { "export " };
        text.push_str(&format!("{export}{variable}='{}'\n", value.replace('\'', r"'\''")));
    }
    Ok(text)
}

/// What such a text assigns, read by its own grammar.
pub fn assigned(text: &str) -> Vec<(String, String)> {
    let words = shlex::Shlex::new(text).filter(|word| word != "export");
    words
        .filter_map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_shell_reads_the_values_as_they_are() {
        let value = "it's \"$(so)\" `x` \\ \u{e4}\nsecond line ";
        let look_up = |_: &str| Some(value.to_owned());
        let values = Secrets::resolve(["A", "B"], &look_up).expect("values");
        let argument = argument("B");
        let text = assignments([("A", "A"), (argument.as_str(), "B")].into_iter(), &values).expect("a text");
        let read = assigned(&text);
        assert_eq!(read, [("A".to_owned(), value.to_owned()), (argument.clone(), value.to_owned())]);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(FILE), &text).expect("written");
        let script = format!(
            ". ./{FILE}\nprintf '%s|' \"$A\" {}\nbash -c 'echo \"${{{argument}-none}}\"'",
            rendered("env:B").expect("one")
        );
        let output =
            std::process::Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output();
        let printed = String::from_utf8(output.expect("bash").stdout).expect("text");
        assert_eq!(printed, format!("{value}|{value}|none\n"));
        assert_eq!(read_back(format!("${argument}")), "env:B");
    }

    #[test]
    fn a_secret_without_a_value_is_reported() {
        let text = assignments([("A", "A")].into_iter(), &Secrets::default());
        assert_eq!(text, Err("`env:A` has no value".to_owned()));
    }
}
