//! The tables of statistics against `tests/oracle`, a second implementation that was written from the published
//! definitions alone: of real exports, and of generated ones in both forms.

use crate::corpus;
use crate::fact::Fact;
use nsys::trace::Trace;
use recipes::report::{Arguments, find};
use recipes::result_table::{Headings, List, Quantity, ResultTable, TimeUnit, Values};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const MADE: &[Fact] = &[("tables_of_generated_exports_agree", tables_of_generated_exports_agree)];
pub(crate) const OWN: &[Fact] = &[(
    "a_table_is_read_with_its_quotes_and_every_difference_is_seen",
    a_table_is_read_with_its_quotes_and_every_difference_is_seen,
)];

pub(crate) const COLLECTED: &[Fact] = &[("tables_of_real_exports_agree", tables_of_real_exports_agree)];

/// Every report that both know.
const REPORTS: [&str; 16] = [
    "cuda_api_sum",
    "cuda_gpu_kern_sum",
    "cuda_gpu_kern_sum:base",
    "cuda_gpu_kern_sum:mangled",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_mem_size_sum",
    "osrt_sum",
    "nvtx_sum",
    "mpi_event_sum",
    "cuda_kern_exec_sum",
    "cuda_kern_exec_sum:base",
    "cuda_kern_exec_sum:mangled",
    "nvtx_gpu_proj_trace",
    "nvtx_gpu_proj_sum",
    "nvtx_kern_sum",
    "nvtx_kern_sum:base",
];

/// Headings that differ: report, ours as published, the other's. It writes these times without their unit.
const HEADINGS: [(&str, &str, &str); 4] = [
    ("nvtx_gpu_proj_trace", "Projected Start (ns)", "Projected Start"),
    ("nvtx_gpu_proj_trace", "Projected Duration (ns)", "Projected Duration"),
    ("nvtx_gpu_proj_trace", "Orig Start (ns)", "Orig Start"),
    ("nvtx_gpu_proj_trace", "Orig Duration (ns)", "Orig Duration"),
];

/// Cells that are empty with us and zero there: where no kernel waited, the waiting has no deviation either.
const EMPTY: [(&str, &str); 1] = [("cuda_kern_exec_sum", "QStdDev (ns)")];

/// Makes exports, each with ranges that cross, threads that share them, and correlations that several kernels or calls
/// share; then writes what the other implementation makes of these and of the exports that it is given.
const DRIVER: &str = r#"
import pathlib, sqlite3, sys, warnings
sys.dont_write_bytecode = True
oracle, out, reports, made, given = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3].split(","), sys.argv[4], sys.argv[5:]
sys.path.insert(0, oracle)
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
import gen_synth, refstats

def disturb(path, seed):
    rng = np.random.default_rng(1000 + seed)
    db = sqlite3.connect(path)
    (tid, last), = db.execute("SELECT max(globalTid), max(end) FROM CUPTI_ACTIVITY_KIND_RUNTIME")
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = globalTid + 1 WHERE correlationId % 3 = 0")
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = correlationId - correlationId % 5 "
               "WHERE correlationId BETWEEN 100 AND 300")
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = correlationId + 1 WHERE correlationId % 40 = 0")
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = start WHERE correlationId % 11 = 0")
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = (SELECT min(r.end) FROM CUPTI_ACTIVITY_KIND_RUNTIME r "
               "WHERE r.correlationId = CUPTI_ACTIVITY_KIND_KERNEL.correlationId) "
               "WHERE correlationId % 13 = 0 AND correlationId IN (SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME)")
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start + 1000 WHERE end < start")
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET mangledName = shortName WHERE correlationId % 2 = 0")
    edges = [x for r in db.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_RUNTIME") for x in r]
    for i in range(400):
        a, b = sorted(int(rng.choice(edges)) if i % 2 else int(rng.integers(0, last)) for _ in range(2))
        if i % 4:
            b = min(b, a + int(rng.integers(0, last // 8)))
        thread, style = tid + i % 2, 59 if i % 3 else 60
        elsewhere = tid + 2 if i % 17 == 0 and style == 60 else thread
        db.execute("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, endGlobalTid, domainId) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?)", (a, b, style, f"wild {i % 23}", thread,
                   None if style == 59 else elsewhere, i % 2))
    db.commit()
    folder = path.with_name(path.stem + "_pqtdir")
    folder.mkdir()
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        table = pd.read_sql_query(f"SELECT * FROM {name}", db)
        if len(table):
            table.to_parquet(folder / f"{name}.parquet", index=False)

for seed, devices, kernels in ((1, 1, 2000), (2, 2, 3000), (3, 8, 2500), (4, 4, 1200), (5, 3, 40)) if made else ():
    path = out / f"seed-{seed}.sqlite"
    sys.argv = ["gen_synth", str(path), "--kernels", str(kernels), "--devices", str(devices),
                "--seed", str(seed), "--rank", str(seed - 1), "--nvtx", "--mpi"]
    gen_synth.main()
    disturb(path, seed)
    given.append(str(path))
for path in given:
    for report in reports:
        name, _, argument = report.partition(":")
        to = out / f"{pathlib.Path(path).stem}.{report}"
        try:
            table = getattr(refstats, name)(refstats.Trace(path), argument)
        except refstats.Skip:
            table = []
        except Exception as error:
            to.with_name(to.name + ".failed").write_text(f"{type(error).__name__}: {error}")
            continue
        if len(table):
            table.to_csv(to.with_name(to.name + ".csv"), index=False)
"#;

/// What it fails at, and why: it is no word against ours.
const FAILS: [(&str, &str, &str); 0] = [];

fn tables_of_real_exports_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    run("", folder.path(), &corpus::exports());
    let (tables, _) = compare(&corpus::exports(), folder.path());
    assert!(tables >= 30, "{tables}");
}

fn tables_of_generated_exports_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    run("made", folder.path(), &[]);
    let made = fs::read_dir(folder.path()).expect("there").flatten().map(|entry| entry.path());
    let mut made: Vec<PathBuf> =
        made.filter(|path| path.extension().is_none_or(|of| of == "sqlite")).collect();
    made.sort();
    assert_eq!(made.len(), 10, "five exports in two forms: {made:?}");
    let (tables, seen) = compare(&made, folder.path());
    assert_eq!(seen.len(), REPORTS.len() - usize::from(!seen.contains("osrt_sum")), "{seen:?}");
    assert!(tables >= 10 * 15, "{tables}");
}

/// The second implementation over these exports, and over those that it makes where `made` says so.
fn run(made: &str, folder: &Path, exports: &[PathBuf]) {
    let mut command = Command::new(crate::needs::pandas());
    command.args(["-c", DRIVER]).arg(crate::project::root().join("tests/oracle"));
    command.arg(folder).arg(REPORTS.join(",")).arg(made).args(exports);
    let ran = command.output().expect("it starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// How many tables were compared, and of which reports.
fn compare(exports: &[PathBuf], folder: &Path) -> (usize, BTreeSet<&'static str>) {
    let (mut apart, mut tables, mut seen) = (Vec::new(), 0, BTreeSet::new());
    for path in exports {
        for report in REPORTS {
            let stem = path.file_stem().expect("a name").to_string_lossy();
            let stem = stem.trim_end_matches("_pqtdir");
            let theirs = folder.join(format!("{stem}.{report}.csv"));
            let failed = folder.join(format!("{stem}.{report}.failed"));
            if let Ok(why) = fs::read_to_string(&failed) {
                let known = FAILS.iter().any(|(of, at, _)| *of == stem && *at == report);
                assert!(known, "{stem}: {report}: {why}");
                continue;
            }
            let theirs = fs::read_to_string(theirs).ok().map(|text| Table::read(&text));
            let ours = ours(path, report);
            tables += usize::from(ours.is_some());
            if ours.is_some() {
                seen.insert(report);
            }
            for why in differences(report, ours.as_ref(), theirs) {
                apart.push(format!("{}: {report}: {why}", path.display()));
            }
        }
    }
    assert!(apart.is_empty(), "{} differences:\n{}", apart.len(), apart[..apart.len().min(40)].join("\n"));
    (tables, seen)
}

fn ours(path: &Path, report: &str) -> Option<ResultTable> {
    let (name, words) = match report.split_once(':') {
        Some((name, words)) => (name, words.split(':').collect()),
        None => (report, Vec::new()),
    };
    let spec = find(name).unwrap_or_else(|| panic!("no report: {name}"));
    let arguments = Arguments::read(spec.name, spec.arguments, &words).expect("known");
    let trace = Trace::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (spec.run)(&trace, &arguments).unwrap_or_else(|error| panic!("{}: {report}: {error}", path.display()))
}

/// A table as text, by its columns.
struct Table {
    height: usize,
    columns: BTreeMap<String, Vec<String>>,
}

impl Table {
    /// Comma-separated values, with quotes where a value has a comma, a quote or a line of its own.
    fn read(text: &str) -> Table {
        let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
        let (mut quoted, mut letters) = (false, text.chars().peekable());
        while let Some(letter) = letters.next() {
            match (letter, quoted) {
                ('"', true) if letters.peek() == Some(&'"') => cell.extend(letters.next()),
                ('"', _) => quoted = !quoted,
                (',', false) => row.push(std::mem::take(&mut cell)),
                ('\n', false) => {
                    row.push(std::mem::take(&mut cell));
                    rows.push(std::mem::take(&mut row));
                }
                (letter, _) => cell.push(letter),
            }
        }
        assert!(!quoted && cell.is_empty() && row.is_empty(), "a table that ends with its last line");
        let names = rows.remove(0);
        assert!(rows.iter().all(|row| row.len() == names.len()), "rows of one width");
        let columns = names.iter().enumerate();
        let columns =
            columns.map(|(at, name)| (name.clone(), rows.iter().map(|row| row[at].clone()).collect()));
        Table { height: rows.len(), columns: columns.collect() }
    }
}

#[derive(Debug, Clone, PartialEq, PartialOrd)]
enum Cell {
    None,
    Text(String),
    /// Exact.
    Whole(f64),
    /// Rounded by the other to this much.
    Real(f64, f64),
}

impl Cell {
    fn is(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Real(own, step), Cell::Real(other, _)) => {
                (own - other).abs() <= step * 0.501 + own.abs() * 1e-9
            }
            _ => self == other,
        }
    }
}

fn cells(values: &Values, quantity: Quantity) -> Vec<Cell> {
    // The other rounds mebibytes' decimal cousins to a thousandth, all other fractions to a tenth.
    let (unit, step) = if quantity == Quantity::Bytes { (1e6, 0.001) } else { (1.0, 0.1) };
    let text = |text: Option<&str>| match text {
        None | Some("") => Cell::None,
        Some(text) => Cell::Text(text.to_owned()),
    };
    let whole = |number: Option<i64>| match number {
        None => Cell::None,
        Some(number) if quantity == Quantity::Bytes => Cell::Real(number as f64 / unit, step),
        Some(number) => Cell::Whole(number as f64),
    };
    let real = |number: &Option<f64>| number.map_or(Cell::None, |number| Cell::Real(number / unit, step));
    match values {
        Values::Texts(all) => all.iter().map(text).collect(),
        Values::Lists(all) => all.iter().map(|cell| text(cell.as_ref().map(List::text))).collect(),
        Values::Integers(all) => all.iter().map(whole).collect(),
        Values::Decimals(all) => all.iter().map(real).collect(),
    }
}

/// The other's cells, taken for what ours are.
fn taken(texts: &[String], like: &Values, quantity: Quantity) -> Vec<Cell> {
    let number = |text: &String| match text.as_str() {
        "" => Cell::None,
        text => match (text.parse(), like) {
            (Ok(number), Values::Integers(_)) if quantity != Quantity::Bytes => Cell::Whole(number),
            (Ok(number), _) => Cell::Real(number, 0.0),
            (Err(_), _) => Cell::Text(text.to_owned()),
        },
    };
    let text = |text: &String| if text.is_empty() { Cell::None } else { Cell::Text(text.clone()) };
    match like {
        Values::Texts(_) => texts.iter().map(text).collect(),
        _ => texts.iter().map(number).collect(),
    }
}

fn differences(report: &str, ours: Option<&ResultTable>, theirs: Option<Table>) -> Vec<String> {
    let (ours, mut theirs) = match (ours, theirs) {
        (None, None) => return Vec::new(),
        (Some(ours), None) => return vec![format!("rows of ours alone: {}", ours.height())],
        (None, Some(theirs)) => return vec![format!("rows of the other alone: {}", theirs.height)],
        (Some(ours), Some(theirs)) => (ours, theirs),
    };
    if ours.height() != theirs.height {
        return vec![format!("rows of ours {}, of the other {}", ours.height(), theirs.height)];
    }
    let name = report.split(':').next().expect("a name");
    let (mut own, mut other, mut headings) = (Vec::new(), Vec::new(), Vec::new());
    for column in &ours.columns {
        let heading = column.heading(Headings::Today, TimeUnit::Nanoseconds).expect("a heading");
        let known = HEADINGS.iter().find(|(of, published, _)| *of == name && *published == heading);
        let Some(texts) = theirs.columns.remove(known.map_or(heading.as_str(), |(.., theirs)| theirs)) else {
            return vec![format!("a column of ours alone: {heading}")];
        };
        let mut cells_of_other = taken(&texts, &column.values, column.quantity);
        let own_cells = cells(&column.values, column.quantity);
        if EMPTY.contains(&(name, heading.as_str())) {
            let zeros = cells_of_other.iter_mut().filter(|cell| **cell == Cell::Real(0.0, 0.0));
            zeros.for_each(|cell| *cell = Cell::None);
            let some = own_cells
                .iter()
                .map(|cell| if *cell == Cell::Real(0.0, 0.1) { Cell::None } else { cell.clone() });
            own.push(some.collect());
        } else {
            own.push(own_cells);
        }
        other.push(cells_of_other);
        headings.push(heading);
    }
    if let Some((heading, _)) = theirs.columns.first_key_value() {
        return vec![format!("a column of the other alone: {heading}")];
    }
    let (own, other) = (rows(&own, ours.height()), rows(&other, ours.height()));
    let pairs = own.iter().zip(&other).flat_map(|(own, other)| headings.iter().zip(own.iter().zip(other)));
    let apart = pairs.filter(|(_, (own, other))| !own.is(other));
    apart.map(|(heading, (own, other))| format!("`{heading}`: ours {own:?}, the other's {other:?}")).collect()
}

/// Rows in the order of what is exact in them, so that what was rounded apart still meets.
fn rows(columns: &[Vec<Cell>], height: usize) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> =
        (0..height).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect();
    let exact =
        |row: &[Cell]| row.iter().filter(|cell| !matches!(cell, Cell::Real(..))).cloned().collect::<Vec<_>>();
    rows.sort_by(|a, b| {
        let order = exact(a).partial_cmp(&exact(b)).filter(|order| order.is_ne());
        order.or_else(|| a.partial_cmp(b)).expect("numbers")
    });
    rows
}

fn a_table_is_read_with_its_quotes_and_every_difference_is_seen() {
    let table = Table::read("Name,\"Avg (ns)\"\n\"a \"\"b\"\", c\",1.5\nd,\n");
    assert_eq!(table.columns["Name"], ["a \"b\", c", "d"]);
    assert_eq!((table.height, table.columns["Avg (ns)"][1].as_str()), (2, ""));
    let step = 0.1;
    assert!(
        Cell::Real(1.25, step).is(&Cell::Real(1.3, 0.0)) && !Cell::Real(1.24, step).is(&Cell::Real(1.3, 0.0))
    );
    for (own, other) in [
        (Cell::None, Cell::Whole(0.0)),
        (Cell::Whole(1.0), Cell::Whole(2.0)),
        (Cell::Text("a".to_owned()), Cell::None),
        (Cell::Real(1.0, step), Cell::Real(1.2, 0.0)),
    ] {
        assert!(!own.is(&other), "{own:?} and {other:?}");
    }
}
