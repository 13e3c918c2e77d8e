//! Texts that mean something to shells, schedulers and file systems, drawn by a seed, as arguments, values of variables
//! and names of folders; and whether they arrived as they were. How they travel is the business of the tests that use
//! them.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Names the one seed that is drawn, to see a failure again.
pub(crate) const SEED: &str = "HARNESS_WORDS_SEED";

/// What texts are made of.
const PIECES: [&str; 44] = [
    " ",
    "  ",
    "\t",
    "'",
    "\"",
    "`",
    "\\",
    "$",
    "$(touch odd)",
    "${HOME}",
    "$$",
    "`id`",
    "!",
    "!!",
    "#",
    "# run",
    "&",
    "&&",
    ";",
    "|",
    "<",
    ">",
    "(",
    ")",
    "{a,b}",
    "[x]",
    "*",
    "?",
    "~",
    "~root",
    "-",
    "--",
    "--help",
    "-n",
    "=",
    "A=b",
    "%",
    "%j",
    "\u{e4}",
    "\u{1f980}",
    "\u{7f}",
    "\u{1b}[2J",
    "a",
    "z9",
];
/// These only where more than a line may stand.
const BREAKS: [&str; 4] = ["\n", "\r", "\n#SBATCH --wrap=x\n", "'\n'"];

pub(crate) struct Words {
    seed: u64,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// A folder's name.
    pub folder: String,
}

/// The seeds of a test: a few, or the one that was asked for.
pub(crate) fn seeds(many: u64) -> Vec<u64> {
    match std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (1..=many).collect(),
    }
}

impl Words {
    pub(crate) fn drawn(seed: u64) -> Words {
        let mut draw = ChaCha8Rng::seed_from_u64(seed);
        let mut arguments: Vec<String> = (0..150).map(|_| text(&mut draw, true)).collect();
        // What begins so may be taken for something else than an argument.
        arguments.extend(
            ["", "-", "--", "-x", "--=", "\n", "\"$HARNESS_ARG_X", "environment:X"].map(str::to_owned),
        );
        let environment = (0..60).map(|at| (format!("W_{at}"), text(&mut draw, false))).collect();
        let folder = text(&mut draw, false).replace(['/', '\u{7f}', '\u{1b}', '\t'], "_");
        Words { seed, arguments, environment, folder: format!("folder {folder}") }
    }

    /// The case of a suite that hands them to a program.
    pub(crate) fn case(&self, program: &Path, placement: &str) -> String {
        let arguments: Vec<String> = self.arguments.iter().map(|word| quoted(word)).collect();
        let environment: Vec<String> =
            self.environment.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
        format!(
            "[[case]]\nname = \"words\"\nplacement = \"{placement}\"\nrecipes = [\"command\"]\n\
             workload = {{ kind = \"command\", program = {}, args = [{}], environment = {{ {} }} }}\n\
             [[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n",
            quoted(&program.display().to_string()),
            arguments.join(", "),
            environment.join(", "),
        )
    }

    /// That the program has written down on each of these nodes what is here.
    #[track_caller]
    pub(crate) fn assert_arrived(&self, reported: &Path, nodes: &[&str]) {
        let (seed, again) = (self.seed, format!("{SEED}={}", self.seed));
        let read = |name: String| {
            let bytes = fs::read(reported.join(&name))
                .unwrap_or_else(|error| panic!("{name}: {error}; again by {again}"));
            let text = String::from_utf8(bytes).expect("text");
            text.split_terminator('\0').map(str::to_owned).collect::<Vec<_>>()
        };
        for node in nodes {
            let arguments = read(format!("arguments.{node}"));
            let odd = arguments.iter().zip(&self.arguments).find(|(came, went)| came != went);
            assert!(
                odd.is_none() && arguments.len() == self.arguments.len(),
                "seed {seed}: {odd:?}; again by {again}"
            );
            let mut wanted: Vec<String> =
                self.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
            wanted.sort();
            let mut came = read(format!("environment.{node}"));
            came.sort();
            let odd = came.iter().zip(&wanted).find(|(came, went)| came != went);
            assert!(odd.is_none() && came.len() == wanted.len(), "seed {seed}: {odd:?}; again by {again}");
            let folder = read(format!("folder.{node}")).concat();
            assert!(
                folder.contains(&format!("/{}/", self.folder)),
                "seed {seed}: {folder:?}; again by {again}"
            );
        }
        assert!(!reported.join("odd").exists(), "something was run; again by {again}");
    }
}

/// A program that writes down what it was given, one folder for all nodes.
pub(crate) fn recorder(path: &Path, reported: &Path) {
    let text = format!(
        "#!/bin/bash\ncd_from=$PWD\nnode=${{HARNESS_NODE:-${{SLURMD_NODENAME:-here}}}}\nreported='{}'\n\
         printf '%s\\0' \"$@\" > \"$reported/arguments.$node\"\n\
         for name in ${{!W_*}}; do printf '%s=%s\\0' \"$name\" \"${{!name}}\"; done > \"$reported/environment.$node\"\n\
         printf '%s\\0' \"$cd_from/\" > \"$reported/folder.$node\"\n",
        reported.display()
    );
    fs::create_dir_all(reported).expect("made");
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

/// As TOML has it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '/' | '.' | '-' | '_' => quoted.push(c),
            // Infallible: writing to a string.
            c => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
        }
    }
    quoted + "\""
}

fn below(draw: &mut ChaCha8Rng, end: u64) -> usize {
    usize::try_from(draw.next_u64() % end).unwrap_or_default()
}

fn text(draw: &mut ChaCha8Rng, breaks: bool) -> String {
    let pieces: Vec<&str> = PIECES.iter().chain(BREAKS.iter().filter(|_| breaks)).copied().collect();
    let mut text = String::new();
    for _ in 0..1 + below(draw, 7) {
        text.push_str(pieces[below(draw, pieces.len() as u64)]);
        if below(draw, 6) == 0 {
            let any = u32::try_from(0x20 + below(draw, 0x2fdf)).ok().and_then(char::from_u32);
            text.push(any.unwrap_or('x'));
        }
    }
    text
}
