//! Whether jobs that run get on: how much their outputs hold, what their NIC counters stand at, and what was printed
//! last. One command asks for all of them.

use super::Command;
use std::time::Duration;

/// How one job stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of all outputs.
    pub bytes: u64,
    /// Changes whenever a counter moves.
    pub counters: String,
    /// The last line of the newest output.
    pub last: String,
}

const LIMIT: Duration = Duration::from_secs(30);
const NAME: &str = "harness-progress";
/// Of a longer line the rest is left out.
const LONGEST: usize = 200;

/// Outputs of ranks, GPUs, flows and shells; the capture of counters grows whether they move or not.
const SCRIPT: &str = r#"
LC_ALL=C
for folder in "$@"; do
  bytes=0 newest= last=
  while read -r _ size path; do
    ((bytes += size))
    newest=$path
  done < <(find "$folder" -maxdepth 1 -type f \( -name 'stdout*' -o -name 'stderr*' -o -name 'log.*' -o -name '*.out' -o -name '*.err' \) \
    ! -name 'batch.*' -size +0 -printf '%T@ %s %p\n' 2>/dev/null | sort -n)
  counters=$(for file in "$folder"/counters.*.txt; do
    [[ -f $file ]] && tail -n 64 -- "$file" | cut -d' ' -f1,3- | sort -u
  done | cksum)
  [[ -n $newest ]] && last=$(tail -c 400 -- "$newest" | tail -n 1 | tr -d '\000-\037\177' | cut -c1-200)
  printf 'harness-progress %s %s %s\n' "$bytes" "${counters%% *}" "$last"
done
"#;

/// Asks for the progress in each of these folders.
pub(crate) fn command(folders: &[&str]) -> Command {
    let mut argv: Vec<String> = ["bash", "-c", SCRIPT, NAME].map(str::to_owned).to_vec();
    argv.extend(folders.iter().map(|folder| (*folder).to_owned()));
    Command::new(argv, LIMIT)
}

/// The folders that an argument list asks for, by the very script; nothing where it is any other.
pub fn asked<S: AsRef<str>>(argv: &[S]) -> Option<Vec<&str>> {
    let words: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        ["bash", "-c", SCRIPT, NAME, folders @ ..] => Some(folders.to_vec()),
        _ => None,
    }
}

/// The line that the script prints for one folder.
pub fn render(progress: &Progress) -> String {
    format!("{NAME} {} {} {}\n", progress.bytes, progress.counters, progress.last)
}

/// One for each folder, in their order; nothing where the answer is any other.
pub(crate) fn read(text: &str, folders: usize) -> Option<Vec<Progress>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(NAME)?.strip_prefix(' '));
    let one = |line: &str| {
        let mut words = line.splitn(3, ' ');
        Some(Progress {
            bytes: words.next()?.parse().ok()?,
            counters: words.next()?.chars().take(LONGEST).collect(),
            last: words.next().unwrap_or_default().chars().take(LONGEST).collect(),
        })
    };
    let all: Option<Vec<Progress>> = lines.map(one).collect();
    all.filter(|all| all.len() == folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process;

    fn run(folders: &[&str]) -> Vec<Progress> {
        let argv = command(folders).argv;
        let output = process::Command::new(&argv[0]).args(&argv[1..]).output().expect("bash");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        read(&text, folders.len())
            .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    }

    #[test]
    fn outputs_that_grow_and_counters_that_move_are_seen_and_a_sampler_that_goes_on_is_not() {
        let (busy, empty) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let folders = [busy.path().to_str().expect("text"), empty.path().to_str().expect("text")];
        let write = |name: &str, text: &str| fs::write(busy.path().join(name), text).expect("written");
        write("job.sh", "a script is no output");
        write("gpu0.n1.out", "# head\n 8 row\n");
        write("counters.n1.txt", "during 1.00 rdmap0s0 5 6\n");
        let first = run(&folders);
        assert_eq!((first[0].bytes, first[0].last.as_str()), (14, " 8 row"));
        assert_eq!((first[1].bytes, first[1].last.as_str()), (0, ""));
        write("counters.n1.txt", "during 1.00 rdmap0s0 5 6\nduring 2.00 rdmap0s0 5 6\n");
        assert_eq!(run(&folders), first, "a reading more, and no byte");
        write("counters.n1.txt", "during 1.00 rdmap0s0 5 6\nduring 3.00 rdmap0s0 7 6\n");
        assert_ne!(run(&folders)[0].counters, first[0].counters);
    }

    #[test]
    fn what_is_asked_and_answered_can_be_read_back() {
        let argv = command(&["/f/a", "/f/b"]).argv;
        assert_eq!(asked(&argv), Some(vec!["/f/a", "/f/b"]));
        assert_eq!(asked(&["bash", "-c", "x", NAME]), None);
        let progress = Progress { bytes: 7, counters: "12".into(), last: "two words".into() };
        assert_eq!(read(&render(&progress), 1), Some(vec![progress]));
        for odd in ["", "harness-progress x 1 y\n", "harness-progress 1\n"] {
            assert_eq!(read(odd, 1), None, "{odd}");
        }
    }
}
