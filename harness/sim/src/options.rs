//! The options of an nccl-tests program, as its own parser takes them, and the sizes that they ask for.
//! An option that the real programs do not have is refused as they refuse it, and so is one that is not simulated.

use metric::op::Op;

/// What the command line of an nccl-tests program asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// By the name of the program.
    pub op: Op,
    /// `-b`: the first size, in bytes.
    pub min_bytes: u64,
    /// `-e`: no size is larger, in bytes.
    pub max_bytes: u64,
    /// `-i` or `-f`, whichever comes last.
    pub step: Step,
    /// `-n`: timed iterations of each size.
    pub iterations: u32,
    /// Operations of one iteration, in one group.
    pub aggregated: u32,
    /// `-w`: iterations of each of the `warmup_sizes`.
    pub warmup: u32,
    /// How often a graph of all iterations is launched; 0 where there is no graph.
    pub graph_launches: u32,
    /// `-d`, such as `float`.
    pub dtype: String,
    /// `-o`, such as `sum`.
    pub redop: String,
    /// `-c`: whether results are checked.
    pub check: bool,
    /// `-g`: GPUs of each process.
    pub gpus: u32,
    /// PyTorch runs it (`torch_collective`).
    pub by_torch: bool,
}

/// From one size to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `-i`: so many bytes more.
    Bytes(u64),
    /// `-f`: so many times as large.
    Factor(u64),
}

impl Options {
    /// From the arguments behind the program's name; the error is worded as the program's.
    pub(crate) fn read(op: Op, arguments: &[String]) -> Result<Options, String> {
        let mut options = Options {
            op,
            min_bytes: 32 << 20,
            max_bytes: 32 << 20,
            step: Step::Bytes(1 << 20),
            iterations: 20,
            aggregated: 1,
            warmup: 1,
            graph_launches: 0,
            dtype: "float".to_owned(),
            redop: "sum".to_owned(),
            check: true,
            gpus: 1,
            by_torch: false,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let (name, glued) = match (word.strip_prefix("--"), word.strip_prefix('-')) {
                (Some(long), _) => match long.split_once('=') {
                    Some((long, value)) => (short_of(long), Some(value)),
                    None => (short_of(long), None),
                },
                (None, Some(short)) => {
                    let letter = short.chars().next();
                    let rest = letter.map(|letter| &short[letter.len_utf8()..]).unwrap_or_default();
                    (letter, (!rest.is_empty()).then_some(rest))
                }
                (None, None) => (None, None),
            };
            let refused = || format!("invalid option -- '{}'", word.trim_start_matches('-'));
            let name = name.filter(|name| KNOWN.contains(*name)).ok_or_else(refused)?;
            let value = match glued {
                Some(value) => value,
                None => words.next().ok_or_else(|| format!("option requires an argument -- '{name}'"))?,
            };
            options.set(name, value).ok_or_else(|| format!("invalid value for '{name}': {value}"))?;
        }
        if options.max_bytes < options.min_bytes {
            return Err("invalid sizes: 'e' is below 'b'".to_owned());
        }
        Ok(options)
    }

    /// Whether it runs out of place, and in place.
    pub(crate) fn placements(&self) -> (bool, bool) {
        match self.op {
            Op::AllReduce | Op::Reduce | Op::Broadcast if self.by_torch => (false, true),
            Op::AllToAll | Op::SendRecv | Op::Gather | Op::Scatter if self.by_torch => (true, false),
            _ => (true, true),
        }
    }

    /// The sizes asked for; what a program makes of one that does not divide by its ranks is not described here.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let mut sizes = Vec::new();
        let mut size = self.min_bytes;
        while size <= self.max_bytes && sizes.len() < 4096 {
            sizes.push(size);
            let next = match self.step {
                Step::Bytes(step) => size.checked_add(step),
                Step::Factor(factor) => size.checked_mul(factor),
            };
            match next {
                Some(next) if next > size => size = next,
                _ => break,
            }
        }
        sizes
    }

    /// What runs before the first row: from the least size to the greatest by doubling, whatever the step.
    pub(crate) fn warmup_sizes(&self) -> Vec<u64> {
        if self.warmup == 0 {
            return Vec::new();
        }
        let doubled = |size: &u64| size.checked_mul(2).filter(|next| next > size && *next <= self.max_bytes);
        std::iter::successors(Some(self.min_bytes), doubled).collect()
    }

    /// Bytes of one element of `dtype`.
    pub(crate) fn element_bytes(&self) -> u64 {
        match self.dtype.as_str() {
            "int8" | "uint8" | "char" | "f8e4m3" | "f8e5m2" => 1,
            "half" | "bfloat16" => 2,
            "int64" | "uint64" | "double" => 8,
            _ => 4,
        }
    }

    fn set(&mut self, name: char, value: &str) -> Option<()> {
        match name {
            'b' => self.min_bytes = bytes(value)?,
            'e' => self.max_bytes = bytes(value)?,
            'i' => self.step = Step::Bytes(bytes(value)?),
            'f' => self.step = Step::Factor(value.parse().ok()?),
            'n' => self.iterations = value.parse().ok()?,
            'm' => self.aggregated = value.parse().ok().filter(|number| *number > 0)?,
            'w' => self.warmup = value.parse().ok()?,
            'G' => self.graph_launches = value.parse().ok()?,
            'c' => self.check = value.parse::<u32>().ok()? > 0,
            'g' => self.gpus = value.parse().ok()?,
            'd' => self.dtype = value.to_owned(),
            'o' => self.redop = value.to_owned(),
            _ => {}
        }
        Some(())
    }
}

/// Without those that print other columns or write other files: this world does not have them.
const KNOWN: &str = "tgbeifnmwNpcodrzyTGaRxDVu";

fn short_of(long: &str) -> Option<char> {
    Some(match long {
        "nthreads" => 't',
        "ngpus" => 'g',
        "minbytes" => 'b',
        "maxbytes" => 'e',
        "stepbytes" => 'i',
        "stepfactor" => 'f',
        "iters" => 'n',
        "agg_iters" => 'm',
        "warmup_iters" => 'w',
        "check" => 'c',
        "op" => 'o',
        "datatype" => 'd',
        "root" => 'r',
        "blocking" => 'z',
        "timeout" => 'T',
        "cudagraph" => 'G',
        "average" => 'a',
        _ => return None,
    })
}

/// A number with G, M or K behind it, in either case, for binary units.
fn bytes(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        'k' | 'K' => 1u64 << 10,
        'm' | 'M' => 1 << 20,
        'g' | 'G' => 1 << 30,
        _ => return text.parse().ok(),
    };
    let number: f64 = text[..text.len() - 1].parse().ok()?;
    (number >= 0.0).then_some((number * unit as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::read(Op::AllReduce, &words)
    }

    #[test]
    fn options_are_read_in_each_form_that_the_programs_take() {
        let options = read("-b 8 -e 1K -f2 --iters=50 --warmup_iters 5 -c 0 -g 8 -d half").expect("read");
        assert_eq!(options.sizes(), [8, 16, 32, 64, 128, 256, 512, 1024]);
        assert_eq!((options.iterations, options.warmup, options.check, options.gpus), (50, 5, false, 8));
        assert_eq!(options.element_bytes(), 2);
        assert_eq!(read("").map(|options| options.sizes()), Ok(vec![32 << 20]));
        assert_eq!(options.warmup_sizes(), options.sizes());
        assert_eq!(read("-b 8 -e 32 -i 8 -w 1").map(|options| options.warmup_sizes()), Ok(vec![8, 16, 32]));
        assert_eq!(read("-b 8 -e 32 -w 0").map(|options| options.warmup_sizes()), Ok(Vec::new()));
        assert_eq!(read("-m 4 -G 2").map(|options| (options.aggregated, options.graph_launches)), Ok((4, 2)));
        assert_eq!(read("-b 1.5G -e 2G -i 512M").map(|options| options.sizes()), Ok(vec![3 << 29, 1 << 31]));
    }

    #[test]
    fn what_the_programs_refuse_is_refused() {
        for (line, expected) in [
            ("-q 1", "invalid option -- 'q'"),
            ("--what", "invalid option -- 'what'"),
            ("stray", "invalid option"),
            ("-b", "requires an argument"),
            ("-n many", "invalid value for 'n'"),
            ("-m 0", "invalid value for 'm'"),
            ("-b 2 -e 1", "'e' is below 'b'"),
        ] {
            let message = read(line).expect_err(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
