//! Reads what stress-ng prints: what its workers on the CPU did per second, and wrong results that they found.

use super::{NoResult, last_line};
use crate::range::Range;

/// What one call of stress-ng with `--cpu`, `--vm` and `--verify` found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stressed {
    /// Operations per second of all workers on the CPU together; nothing where results were wrong.
    pub cpu: Option<f64>,
    /// The part of the time of as many processors as there are workers on the CPU that no worker had: they never pause, so that
    /// another process or a limit had it. Nothing where it is not printed.
    pub lost: Option<f64>,
    /// The busiest processes beside the load, where `busy.sh` named some.
    pub busy: Vec<BusyProcess>,
    /// Lines about results of the CPU or contents of memory that are not as they must be.
    pub wrong: Vec<String>,
}

/// Processes of one name, as `busy.sh` prints them: `busy: 6100 python3`.
#[derive(Debug, Clone, PartialEq)]
pub struct BusyProcess {
    /// What they had, in hundredths of one processor.
    pub percent: u32,
    /// Letters, digits and `. _ / : + -`.
    pub name: String,
}

/// What the lines say that speak of wrong results, and of nothing that was refused or ran out.
const WRONG: [&str; 4] = ["error detected", "bit error", "miscalculated", "incorrect"];
/// What is no wrong result: files, devices and options of stressors that a suite adds.
const REFUSED: [&str; 3] = ["incorrect read size", "incorrect write size", "incorrect swap size"];
const MOST_LINES: usize = 16;
const MOST_BUSY: usize = 3;
/// With the words before it a line of a screen.
const LONGEST: usize = 60;

/// The result in a text; an error where it did not come to its end or is incomplete.
pub fn read(text: &str) -> Result<Stressed, NoResult> {
    let (mut stressed, mut failed, mut ended) = (Stressed::default(), None, false);
    let (mut cpu, mut memory) = (None, None);
    let (mut workers, mut had) = (None, Some(0.0));
    for line in text.lines() {
        if stressed.busy.len() < MOST_BUSY {
            stressed.busy.extend(busy(line));
        }
        let Some((head, rest)) = line.split_once("] ") else { continue };
        if !head.contains("stress-ng:") {
            continue;
        }
        let rest = rest.trim();
        let words: Vec<&str> = rest.split_whitespace().collect();
        if head.contains(" fail:") || head.contains(" error:") {
            // A check that fails is of the level `fail`.
            let is_wrong = head.contains(" fail:")
                && WRONG.iter().any(|wrong| rest.contains(wrong))
                && !REFUSED.iter().any(|refused| rest.contains(refused));
            match is_wrong {
                true if stressed.wrong.len() < MOST_LINES => stressed.wrong.push(shorten(rest)),
                true => {}
                false => failed = failed.or(Some(shorten(rest))),
            }
        } else if rest.contains("finished prematurely") {
            failed = failed.or(Some(shorten(rest)));
        } else if let ["metrics", "untrustworthy:", count, ..] = words.as_slice()
            && *count != "0"
        {
            failed = failed.or(Some(shorten(rest)));
        } else if rest.starts_with("successful run completed") {
            ended = true;
        } else if let ["dispatching", "hogs:", count, "cpu,", ..] = words.as_slice() {
            workers = count.parse::<f64>().ok().filter(|workers| *workers >= 1.0);
        } else if let [name @ ("cpu" | "vm"), operations, real, user, system, rate, ..] = words.as_slice()
            && [" info:", " metrc:"].iter().any(|level| head.contains(level))
            && operations.starts_with(|first: char| first.is_ascii_digit())
        {
            let rate = operations_per_second(operations, real, rate)
                .ok_or_else(|| format!("the row of {name} contradicts itself: {}", shorten(rest)))?;
            let busy = processors(real, user, system);
            had = had.zip(busy).map(|(had, busy)| had + busy);
            let row = if *name == "cpu" { &mut cpu } else { &mut memory };
            if row.replace(rate).is_some() {
                return Err(format!("stress-ng printed {name} more than once"));
            }
        }
    }
    if !stressed.wrong.is_empty() {
        return Ok(stressed);
    }
    if let Some(failed) = failed {
        return Err(format!("stress-ng failed: {failed}"));
    }
    let last =
        || last_line(text).map(|line| format!("; its last line: {}", shorten(&line))).unwrap_or_default();
    if !ended {
        return Err(format!("stress-ng did not come to its end{}", last()));
    }
    match (cpu, memory) {
        (Some(cpu), Some(_)) => {
            let lost = had.zip(workers).map(|(had, workers)| (1.0 - had / workers).max(0.0));
            Ok(Stressed { cpu: Some(cpu), lost, ..stressed })
        }
        (None, _) => Err(format!("stress-ng printed no operations of the CPU{}", last())),
        (_, None) => Err(format!("stress-ng printed no operations on memory{}", last())),
    }
}

fn busy(line: &str) -> Option<BusyProcess> {
    let (percent, name) = line.strip_prefix("busy: ")?.split_once(' ')?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._/:+-".contains(c);
    // The kernel keeps 15 bytes of a name, and more of those of its own workers.
    let is_name = (1..=64).contains(&name.len()) && name.chars().all(is_part);
    Some(BusyProcess { percent: percent.parse().ok().filter(|_| is_name)?, name: name.to_owned() })
}

/// How many processors the workers of a row kept busy.
fn processors(real: &str, user: &str, system: &str) -> Option<f64> {
    let seconds =
        |word: &str| word.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    let real = seconds(real).filter(|real| *real > 0.0)?;
    Some((seconds(user)? + seconds(system)?) / real)
}

/// The rate that is printed, where it is that of the operations and the time beside it.
fn operations_per_second(operations: &str, real: &str, rate: &str) -> Option<f64> {
    let (done, time, printed) = (Range::printed(operations)?, Range::printed(real)?, Range::printed(rate)?);
    let rate = rate.parse::<f64>().ok().filter(|rate| *rate > 0.0)?;
    printed.times(time).meets(done).then_some(rate)
}

/// Rows are full of blanks, and what stands at the end of a long line adds nothing.
fn shorten(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the README of stress-ng and releases from 0.11 to 0.18 print them.
    const ROWS: &str = "\
stress-ng: info:  [573366] dispatching hogs: 4 cpu, 2 vm
stress-ng: metrc: [573366] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [573366]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [573366] cpu              515396    120.00    453.02      0.18      4294.89        1137.24
stress-ng: metrc: [573366] vm              2261023    120.01    223.80      1.80     18840.15       10022.27
";
    const END: &str = "\
stress-ng: info:  [573366] passed: 6: cpu (4) vm (2)
stress-ng: info:  [573366] failed: 0
stress-ng: info:  [573366] metrics untrustworthy: 0
stress-ng: info:  [573366] successful run completed in 2 mins, 0.78 secs
";

    #[test]
    fn the_rate_of_the_cpu_is_read_in_each_form() {
        let cpu = |text: &str| read(text).map(|stressed| stressed.cpu);
        assert_eq!(cpu(&format!("{ROWS}{END}")), Ok(Some(4294.89)));
        assert_eq!(cpu(&format!("{ROWS}{END}").replace("metrc:", "info: ")), Ok(Some(4294.89)));
        assert_eq!(
            cpu(&format!("{ROWS}{END}").replace("stress-ng: ", "stress-ng: 23:25:48.41 ")),
            Ok(Some(4294.89))
        );
    }

    #[test]
    fn time_of_processors_that_no_worker_had_is_known_where_their_number_is_printed() {
        let lost = |text: &str| read(text).expect("read").lost;
        let head = "stress-ng: info:  [573366] dispatching hogs: 4 cpu, 2 vm\n";
        assert_eq!(
            lost(&format!("{ROWS}{END}")),
            Some(0.0),
            "two workers on memory had processors of their own"
        );
        let busy = ROWS.replace("453.02", "230.00").replace("223.80", "118.20");
        let part = lost(&format!("{busy}{END}")).expect("known");
        assert!((part - 0.27).abs() < 0.002, "{part}");
        assert_eq!(lost(&format!("{}{END}", busy.replace(head, ""))), None);
        assert_eq!(lost(&format!("{}{END}", busy.replace("230.00", "nan"))), None);
    }

    #[test]
    fn processes_beside_the_load_are_named_and_no_line_of_another_form_is_one() {
        let lines = "busy: 6100 python3\nbusy: 12 kworker/0:1-ev\nbusy: 7 a b\nbusy: x java\nbusy: 5 \u{1b}[2J\nbusy: 3 rsync\n\
                     busy: 1 cron\n";
        let named = read(&format!("{lines}{ROWS}{END}")).expect("read").busy;
        let named: Vec<(u32, &str)> = named.iter().map(|one| (one.percent, one.name.as_str())).collect();
        assert_eq!(named, [(6100, "python3"), (12, "kworker/0:1-ev"), (3, "rsync")]);
    }

    #[test]
    fn what_is_said_of_an_output_is_a_line_of_a_screen() {
        let long = "words ".repeat(60);
        for text in [
            format!("{}{END}", ROWS.replace("4294.89", "4394.89")),
            format!("stress-ng: fail:  [9] vm: {long}\n{ROWS}{END}"),
            ROWS.to_owned(),
            END.to_owned(),
            format!("stress-ng: info:  [9] {long}\n"),
        ] {
            let error = read(&text).expect_err("no result");
            assert!(error.chars().count() <= 120, "{error}");
        }
        let wrong = read(&format!("stress-ng: fail:  [9] vm: bit error {long}\n")).expect("read").wrong;
        assert!(wrong[0].chars().count() <= 60, "{wrong:?}");
    }

    #[test]
    fn wrong_results_count_and_what_ran_out_does_not() {
        let bits = "stress-ng: fail:  [5464] vm: detected 16 bit errors while stressing memory\n";
        let stressed = read(&format!("{bits}{ROWS}")).expect("read");
        assert_eq!((stressed.cpu, stressed.wrong.len()), (None, 1));
        let sums = "stress-ng: fail:  [77] cpu: gcd error detected, failed modulo or assignment operations\n";
        assert_eq!(read(sums).expect("read").wrong.len(), 1);
        for (text, why) in [
            (String::new(), "did not come to its end"),
            (ROWS.to_owned(), "did not come to its end; its last line: stress-ng: metrc: [573366] vm"),
            (END.to_owned(), "no operations of the CPU"),
            (format!("{}{END}", ROWS.replace("] vm ", "] hdd ")), "no operations on memory"),
            (format!("{ROWS}{ROWS}{END}"), "cpu more than once"),
            (format!("{}{END}", ROWS.replace("4294.89", "4394.89")), "the row of cpu contradicts itself"),
            (format!("{ROWS}{}", END.replace("successful", "unsuccessful")), "did not come to its end"),
            (format!("{ROWS}{}", END.replace("worthy: 0", "worthy: 2")), "failed: metrics untrustworthy: 2"),
            (
                format!("stress-ng: fail:  [86833] vm: calloc failed on vm_swap\n{ROWS}{END}"),
                "stress-ng failed: vm: calloc failed",
            ),
            (
                format!("stress-ng: error: [9] incorrect number of workers\n{ROWS}{END}"),
                "stress-ng failed: incorrect number",
            ),
            (
                format!("stress-ng: fail:  [9] seek: incorrect read size, expecting 512 bytes\n{ROWS}{END}"),
                "stress-ng failed: seek: incorrect read size",
            ),
            (
                format!(
                    "stress-ng: warn:  [9] vm: WARNING: finished prematurely after just 1.2 secs\n{ROWS}{END}"
                ),
                "finished prematurely",
            ),
        ] {
            let error = read(&text).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
    }
}
