//! A Kubernetes manifest as commands and variables, as far as a linter needs it: lists of words that are started, and
//! what stands in the environment. Which keys a manifest may have is not looked at.

use super::shell::{Command, Script, Slip, Use, Word};
use super::{Diagnostics, ParsedFile};

/// Whether a file is one, by its name.
pub(super) fn is_one(file: &str) -> bool {
    let small = file.to_ascii_lowercase();
    small.ends_with(".yaml") || small.ends_with(".yml")
}

/// The keys and values of a manifest of Kubernetes have a linter of their own.
pub(super) fn rule(file: &ParsedFile, _: &[ParsedFile], diagnostics: &mut Diagnostics) {
    let line_of = |key: &str| file.text.lines().position(|line| line.starts_with(key));
    let (Some(at), Some(_), true) = (line_of("apiVersion:"), line_of("kind:"), file.is_manifest) else {
        return;
    };
    diagnostics.note(
        &word("apiVersion", at + 1, 1),
        "a manifest of Kubernetes: only its commands and environment are checked here",
        &format!("check the rest with `harness lint manifest {}`", base::text::show(file.name)),
    );
}

pub(super) fn read(text: &str) -> Script {
    let mut script = Script::default();
    let mut list: Option<(usize, Command)> = None;
    let mut name: Option<(usize, Word)> = None;
    for (at, raw) in text.lines().enumerate() {
        let line = raw.split(" #").next().unwrap_or(raw);
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        unexpanded(line, at + 1, &mut script.slips);
        match bare.strip_prefix("- ") {
            Some(item) if pair(item).is_none() => {
                let word = word(item, at + 1, indent + 3);
                match &mut list {
                    Some((column, command)) if *column == indent => command.words.push(word),
                    _ => {
                        let whole = list.replace((indent, Command { words: vec![word], list: None }));
                        script.commands.extend(whole.map(|(_, command)| command));
                    }
                }
                continue;
            }
            _ => script.commands.extend(list.take().map(|(_, command)| command)),
        }
        let (item, column) = match bare.strip_prefix("- ") {
            Some(item) => (item, indent + 3),
            None => (bare, indent + 1),
        };
        let Some((key, value)) = pair(item) else { continue };
        let behind = column + item.len() - value.len();
        match (key, name.take()) {
            ("name", _) => name = Some((column, word(value, at + 1, behind))),
            // A variable as a command that sets it.
            ("value", Some((of, mut variable))) if of == column => {
                let value = word(value, at + 1, behind);
                variable.text = format!("{}={}", variable.text, value.text);
                let export = Word { text: "export".to_owned(), ..variable.clone() };
                script.commands.push(Command { words: vec![export, variable], list: None });
            }
            _ if value.starts_with('[') => {
                let inside = value.trim_matches(['[', ']']);
                let words = inside.split(',').map(|part| {
                    let at_part = part.as_ptr() as usize - value.as_ptr() as usize;
                    word(part.trim(), at + 1, behind + at_part + part.len() - part.trim_start().len())
                });
                script.commands.push(Command { words: words.collect(), list: None });
            }
            _ => {}
        }
    }
    script.commands.extend(list.map(|(_, command)| command));
    script
}

/// `key: value`.
fn pair(item: &str) -> Option<(&str, &str)> {
    let (key, value) = item.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./\"'".contains(c));
    (is_key && (value.is_empty() || value.starts_with(' ')))
        .then(|| (key.trim_matches(['"', '\'']), value.trim()))
}

fn word(text: &str, line: usize, column: usize) -> Word {
    let bare = text.trim().trim_matches(['"', '\'']).to_owned();
    Word { text: bare, line, column, uses: Vec::<Use>::new(), is_quoted: false }
}

/// `${NAME}` means nothing to Kubernetes; `$(NAME)` does. A text for a shell is the shell's.
fn unexpanded(line: &str, number: usize, slips: &mut Vec<Slip>) {
    let Some((key, value)) = pair(line.trim_start().trim_start_matches("- ")) else { return };
    let Some(at) = value.find("${") else { return };
    if value.contains(['|', ';', ' ']) {
        return;
    }
    let name: String = value[at + 2..].chars().take_while(|c| *c != '}').collect();
    slips.push(Slip {
        line: number,
        column: line.len() - line.trim_start().len() + line.trim_start().find("${").unwrap_or_default() + 1,
        message: format!(
            "`${{{}}}` in `{key}` is not expanded: kubectl expands no variables",
            name.escape_debug()
        ),
        advice: "write the value, or fill the file in with `envsubst` before applying it",
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::diagnostics_of;
    use super::*;

    const MANIFEST: &str = "\
apiVersion: kubeflow.org/v2beta1
spec:
  containers:
    - image: ${REGISTRY}gpu-profile:latest   # ours
      env:
        - name: FI_PROVIDER
          value: \"efa\"
      command:
        - mpirun
        - -np
        - \"16\"
        - /profile.sh
      args: [\"-x\", \"NCCL_DEBUG=INFO\"]
";

    #[test]
    fn lists_are_commands_and_variables_are_set() {
        let script = read(MANIFEST);
        let words: Vec<Vec<&str>> = script
            .commands
            .iter()
            .map(|command| command.words.iter().map(|word| word.text.as_str()).collect())
            .collect();
        let expected: Vec<Vec<&str>> = vec![
            vec!["export", "FI_PROVIDER=efa"],
            vec!["mpirun", "-np", "16", "/profile.sh"],
            vec!["-x", "NCCL_DEBUG=INFO"],
        ];
        assert_eq!(words, expected);
        assert_eq!((script.commands[1].words[3].line, script.commands[1].words[3].column), (12, 11));
    }

    #[test]
    fn a_manifest_of_kubernetes_is_sent_to_its_own_linter() {
        let note = "a manifest of Kubernetes: only its commands and environment are checked here; check the rest with \
                    `harness lint manifest job.yaml`";
        let job = "# a job\nkind: Job\napiVersion: batch/v1\n";
        assert_eq!(diagnostics_of(&[("job.yaml", job)]), [format!("note: job.yaml:3:1: {note}")]);
        // Values of a chart, another YAML, and a script that has the words.
        for (name, other) in
            [("v.yaml", "image: a\n"), ("c.yml", "kind: x\n"), ("a.sh", "apiVersion: a\nkind: b\n")]
        {
            let found = diagnostics_of(&[(name, other)]);
            assert!(!found.iter().any(|line| line.contains("a manifest of Kubernetes")), "{name}: {found:?}");
        }
    }

    #[test]
    fn what_kubectl_does_not_expand_is_a_slip() {
        let slips = read(MANIFEST).slips;
        assert_eq!((slips.len(), slips[0].line, slips[0].column), (1, 4, 14));
        assert!(slips[0].message.starts_with("`${REGISTRY}` in `image` is not expanded"));
        for fine in ["      - name: $(POD_NAME)\n", "  args: sh -c \"echo ${A}; b\"\n", "# ${A}\n"] {
            assert_eq!(read(fine).slips, [], "{fine}");
        }
    }
}
