//! What runs on nodes uses nothing that bash 4.2, which Amazon Linux 2 and CentOS 7 have, does not know.

use crate::project::root;
use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};

/// A construct of a newer bash, and a line that has it.
const NEWER: &[(&str, &str, &str)] = &[
    (r"\$\{!?[A-Za-z_]\w*(\[[^]]*\])?@[A-Za-z]\}", "4.4: ${x@Q}", "echo ${x@Q}"),
    (r"\b(local|declare|typeset)\s+-[a-zA-Z]*n", "4.3: references to names", "local -n all=$1"),
    (r"\bwait\s+-[nfp]", "4.3: wait -n", "wait -n"),
    (r"\b(readarray|mapfile)(\s+-t)?\s+-\w*d", "4.4: readarray -d", "mapfile -t -d '' all"),
    (r"\$\{?EPOCHSECONDS\b", "5.0: EPOCHSECONDS", "now=$EPOCHSECONDS"),
    (r"EPOCHREALTIME", "5.0: EPOCHREALTIME, unless its absence is asked for", "now=$EPOCHREALTIME;"),
    (r"\$\{?(BASH_ARGV0|SRANDOM)\b", "5.0: BASH_ARGV0, 5.1: SRANDOM", "x=$SRANDOM"),
    (r"-v\s+\w+\[", "4.3: [[ -v x[1] ]]", "[[ -v born[3] ]]"),
    (r"^\s*\w+\[-\d+\]\+?=", "4.3: x[-1]=", "all[-1]=3"),
    (r"\bunset\s+.*\[-\d", "4.3: unset x[-1]", "unset 'all[-1]'"),
    (
        r"\bshopt\s.*\b(inherit_errexit|localvar_inherit|assoc_expand_once|globskipdots|patsub_replacement)",
        "4.4 and newer: shopt",
        "shopt -s inherit_errexit",
    ),
    (r"\blocal\s+-(\s|$)", "4.4: local -", "local -"),
    (r"\$\{\s[^}]*;\s*\}", "5.3: ${ command; }", "x=${ date; }"),
    (r"\bprintf\s.*%\([^)]*\)T['\x22]?\s*$", "4.3: printf %()T without an argument", "printf '%(%s)T'"),
];

/// Arrays that begin empty and have an element wherever they are expanded: the script, the array, and why.
const NEVER_EMPTY: &[(&str, &str, &str)] = &[
    ("flows.sh", "devices", "a plan names at least one NIC"),
    ("flows.sh", "words", "each tool has options that are always given"),
];

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            scripts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "sh") {
            found.push(path);
        }
    }
}

fn newer(text: &str) -> Vec<String> {
    let forms: Vec<(Regex, &str)> =
        NEWER.iter().map(|(form, what, _)| (Regex::new(form).expect(form), *what)).collect();
    let asks = |line: &str| line.contains("${EPOCHREALTIME-}") || line.contains("${EPOCHREALTIME:-}");
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    let lines = lines.map(|(at, line)| {
        let is_asked = asks(line);
        (at, if is_asked { line.replace("EPOCHREALTIME", "") } else { line.to_owned() })
    });
    lines
        .flat_map(|(at, line)| {
            let met = forms.iter().filter(|(form, _)| form.is_match(&line));
            met.map(|(_, what)| format!("{}: {what}: {}", at + 1, line.trim())).collect::<Vec<_>>()
        })
        .collect()
}

/// An array without elements is an unset variable for `set -u` before 4.4: arrays that begin empty are expanded by
/// `${x[@]+"${x[@]}"}`, or where their length was looked at.
fn unguarded(script: &str, text: &str) -> Vec<String> {
    let empty = Regex::new(r"(?:^|[\s;(])([A-Za-z_]\w*)=\(\)").expect("a form");
    let mut names: Vec<&str> =
        empty.captures_iter(text).filter_map(|met| Some(met.get(1)?.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    if !Regex::new(r"(?m)^\s*set -\w*u").expect("a form").is_match(text) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let is_filled = |name: &&str| NEVER_EMPTY.iter().any(|(of, array, _)| (*of, *array) == (script, *name));
    for name in names.into_iter().filter(|name| !is_filled(name)) {
        let bare = format!("\"${{{name}[@]}}\"");
        let guarded = format!("${{{name}[@]+{bare}}}");
        let length = format!("${{#{name}[@]}}");
        let is_measured = text.contains(&length);
        for (at, line) in text.lines().enumerate() {
            if line.replace(&guarded, "").contains(&bare) && !is_measured {
                found.push(format!("{}: `{name}` may be empty: {}", at + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn scripts_of_nodes_use_nothing_newer_than_bash_4_2() {
    let mut files = Vec::new();
    scripts(&root().join("harness"), &mut files);
    assert!(files.len() > 20, "{files:?}");
    let mut odd = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a script");
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let lines = newer(&text).into_iter().chain(unguarded(&name, &text));
        odd.extend(lines.map(|line| format!("{}:{line}", file.display())));
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

#[test]
fn each_newer_construct_is_found_and_those_of_4_2_are_not() {
    for (_, what, line) in NEWER {
        let found = newer(line);
        assert!(found.iter().any(|one| one.contains(what)), "{line}: {found:?}");
    }
    for line in [
        "${x[@]+\"${x[@]}\"}",
        "echo ${all[-1]} ${x: -1} ${x::-1}",
        "printf -v wall '%(%s)T' -1",
        "[[ -v $name ]]",
        "declare -gA born=() ; local -a all; local -r name=x",
        "now=${EPOCHREALTIME:-}; if [[ -n ${EPOCHREALTIME-} ]]; then :; fi",
        "# wait -n is of 4.3",
        "mapfile -t all < <(find . -d)",
        "run &>> log",
    ] {
        assert_eq!(newer(line), Vec::<String>::new(), "{line}");
    }
    assert_eq!(unguarded("x.sh", "set -u\nall=()\nfor x in \"${all[@]}\"; do :; done\n").len(), 1);
    for sound in [
        "all=()\necho \"${all[@]}\"\n",
        "set -u\nall=()\necho ${all[@]+\"${all[@]}\"}\n",
        "set -u\nall=(1)\necho \"${all[@]}\"\n",
        "set -u\nall=()\nif ((${#all[@]})); then echo \"${all[@]}\"; fi\n",
    ] {
        assert_eq!(unguarded("x.sh", sound), Vec::<String>::new(), "{sound}");
    }
}
