//! How an analysis is called: its folder and the arrays of its tasks, after the run that it is of. By these names whoever
//! cleans up behind a process that was killed finds what it had made, and nothing of another run.

const ANALYSIS: &str = "analysis-";
/// So many signs of a folder's name are drawn by `mktemp`.
const DRAWN: usize = 8;

/// What the folder's name is made of. An analysis of reports that a person names is of no run.
pub fn pattern(run: Option<&str>) -> String {
    let run = run.map(|run| format!("{run}.")).unwrap_or_default();
    format!("{ANALYSIS}{run}{}", "X".repeat(DRAWN))
}

/// The array that is the `nth` of the analysis in the folder of this name.
pub fn array(folder: &str, nth: usize) -> String {
    format!("{folder}.{nth}")
}

/// Whether `name` is that of a folder which `mktemp` made for an analysis of this run.
pub fn is_folder_of(run: &str, name: &str) -> bool {
    behind(run, name).is_some_and(is_drawn)
}

/// Whether `name` is that of a Slurm array which an analysis of this run submitted.
pub fn is_array_of(run: &str, name: &str) -> bool {
    let parts = behind(run, name).and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(drawn, nth)| is_drawn(drawn) && nth.parse::<usize>().is_ok())
}

fn behind<'a>(run: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix(ANALYSIS)?.strip_prefix(run)?.strip_prefix('.')
}

fn is_drawn(text: &str) -> bool {
    text.len() == DRAWN && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "20261121T031000Z-nccl-p5-3f9c";

    fn drawn(run: Option<&str>) -> String {
        pattern(run).replace("XXXXXXXX", "aB3dE9gh")
    }

    #[test]
    fn folders_and_arrays_of_a_run_are_known_by_their_names() {
        let folder = drawn(Some(RUN));
        assert_eq!(folder, "analysis-20261121T031000Z-nccl-p5-3f9c.aB3dE9gh");
        assert!(is_folder_of(RUN, &folder) && is_array_of(RUN, &array(&folder, 12)));
        assert!(!is_array_of(RUN, &folder) && !is_folder_of(RUN, &array(&folder, 1)));
    }

    #[test]
    fn the_names_of_one_run_are_no_names_of_another() {
        // Of a run whose id goes on where the other ends, also in the way in which names do; and of no run.
        let others = ["20261121T031000Z-nccl-p5-3f9", "20261121T031000Z-nccl-p5-3f9c0", "", "nccl-p5"];
        let alike = [format!("{RUN}.aB3dE9gh"), format!("{RUN}.aB3dE9gh.1")];
        for other in others.into_iter().chain(alike.iter().map(String::as_str)) {
            for (one, two) in [(RUN, other), (other, RUN)] {
                let folder = drawn(Some(one));
                assert!(!is_folder_of(two, &folder), "{one}: {two}");
                assert!(!is_array_of(two, &array(&folder, 1)), "{one}: {two}");
            }
        }
        let of_none = drawn(None);
        assert!(!is_folder_of(RUN, &of_none) && !is_array_of(RUN, &array(&of_none, 1)));
        for name in ["", "analysis-", RUN, "analysis-20261121T031000Z-nccl-p5-3f9c.short.1"] {
            assert!(!is_folder_of(RUN, name) && !is_array_of(RUN, name), "{name}");
        }
    }
}
