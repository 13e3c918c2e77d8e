//! The verb `harness trace`, and the excerpts that a run keeps of its failed cases: one window of all ranks as a file for
//! Perfetto. `recipes::excerpt` makes it; this reads the inputs and writes.

pub(crate) mod kept;
pub(crate) mod of_run;

use crate::publish::RemoteInputs;
use crate::recipe::{self, Messages};
use crate::stats::Exporting;
use base::text::{SIMULATED, count, show};
use model::exit_code;
use of_run::TracedJob;
use recipes::excerpt::{Excerpt, ExcerptInput, ExcerptRequest, WindowRequest, excerpt, write};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Slices of a file that a person asks for: some 4 MB.
const MOST_SLICES: usize = 20_000;

/// What is read.
pub(crate) enum Source {
    /// Reports, exports and folders of them.
    Reports(Vec<PathBuf>),
    /// A job of a stored run.
    Job(TracedJob),
}

/// What the command line asks for.
pub(crate) struct Order {
    pub source: Source,
    /// What its paths are called.
    pub names: RemoteInputs,
    pub window: WindowRequest,
    pub output: PathBuf,
    /// How reports without an export are read.
    pub exporting: Exporting,
}

/// What was written goes to `out`, all else to `err`. The exit code is 2 where an input could not be read, or the window
/// is in none of them.
pub(crate) fn run(order: &Order, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut messages = Messages::naming(err, &order.names);
    let mut exports = Vec::new();
    let (inputs, first) = match &order.source {
        Source::Job(job) => (job.inputs.clone(), job.first.clone()),
        Source::Reports(named) => {
            let (inputs, made) = recipe::inputs(&[named.as_slice()], &order.exporting, &mut messages);
            exports.extend(made);
            let numbered = inputs.into_iter().enumerate().map(|(at, input)| ExcerptInput {
                path: input.path,
                shown: input.shown,
                rank: at as i64,
                node: None,
            });
            (numbered.collect(), Vec::new())
        }
    };
    let request =
        ExcerptRequest { inputs: &inputs, window: &order.window, most_slices: MOST_SLICES, first: &first };
    let made = excerpt(&request);
    order.names.notes().iter().for_each(|note| messages.note(note));
    let made = match made {
        Ok(made) => made,
        Err(why) => {
            messages.error(&why);
            return exit_code::USAGE;
        }
    };
    if made.is_simulated {
        messages.note(SIMULATED);
    }
    for (report, why) in &made.unreadable {
        messages.error(&format!("{report}: {why}"));
    }
    for note in &made.notes {
        messages.note(note);
    }
    match write_to(&made, &order.output) {
        Ok(bytes) => match out.write_all(in_words(&made, &order.output, bytes).as_bytes()) {
            Ok(()) => {}
            // The reader of stdout has gone away.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => messages.error(&error.to_string()),
        },
        Err(error) => messages.error(&format!("{}: {error}", order.output.display())),
    }
    if messages.is_bad { exit_code::USAGE } else { exit_code::PASSED }
}

/// The file comes to be whole or not at all; gives its size.
fn write_to(made: &Excerpt, path: &Path) -> Result<u64, String> {
    let mut bytes = 0;
    let mut put = |file: &mut dyn Write| {
        let mut counted = Counted { to: BufWriter::new(file), bytes: 0 };
        write(made, &mut counted)?;
        counted.to.flush()?;
        bytes = counted.bytes;
        Ok(())
    };
    store::write_output_by(path, &mut put).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Counts what is written.
struct Counted<W> {
    to: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn in_words(made: &Excerpt, path: &Path, bytes: u64) -> String {
    format!(
        "window: {}, {:.3} ms\nclocks: {}\nlook at: {}\nwritten: {} ({}, {} counted, {} kB); open it in \
         https://ui.perfetto.dev\n",
        show(&made.window),
        made.ns as f64 / 1e6,
        show(&made.clocks),
        show(&made.look),
        show(&path.display().to_string()),
        count(made.kept as usize, "slice"),
        count(made.merged as usize, "shorter one"),
        bytes.div_ceil(1000)
    )
}
