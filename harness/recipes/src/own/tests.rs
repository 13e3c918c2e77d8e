//! User queries on small exports: what may be queried, what it returns, and how it fails.

use super::{
    ACROSS, Better, ChartSpec, Checked, Columns, Declaration, Dim, Here, Limits, Literal, MetricColumn,
    Quantity, RANK, ROWS, Shape, Source, SqlError, Steps, Unit, UserRecipe, check, columns_of, expression,
    names, parse, seen_across, tables,
};
use crate::catalogue::Catalogue;
use crate::chart::{Figure, Scale};
use crate::recipe::of_reports::{self, RecipeKind, ReportExtract};
use crate::recipe::testing::job;
use crate::recipe::{RecipeSpec, Workload};
use crate::report::Arguments;
use crate::result_table::{ResultTable, Values};
use crate::testing::{Made, OTHER_PROCESS};
use metric::DimValue;
use nsys::tables::{ColumnType as Holds, KERNEL, LIST};
use std::collections::BTreeSet;

fn known() -> Vec<(String, Columns)> {
    vec![("CUDA_KERNEL".to_owned(), columns_of("CUDA_KERNEL").expect("there"))]
}

fn checked(sql: &str) -> Result<Checked, Vec<String>> {
    let shown = |wrong: Vec<SqlError>| {
        wrong
            .into_iter()
            .map(|one| format!("{}:{}: {}", one.line, one.column, one.message))
            .collect::<Vec<_>>()
    };
    check(parse(sql).map_err(shown)?, &known(), &[]).map_err(shown)
}

#[track_caller]
fn refused(sql: &str, expected: &str) {
    let why = checked(sql).expect_err(sql);
    assert!(why.iter().any(|why| why.contains(expected)), "{sql}: {why:?}");
}

#[test]
fn the_columns_of_a_query_are_known_without_rows() {
    let found = checked(
        "SELECT shortName AS kernel, COUNT(*) AS runs, AVG(\"end\" - start) AS mean, deviceId > 3 AS high \
         FROM CUDA_KERNEL GROUP BY shortName, deviceId > 3",
    );
    let of = |name: &str, kind| (name.to_owned(), kind);
    assert_eq!(
        found.expect("sound").columns,
        [
            of("kernel", Holds::Text),
            of("runs", Holds::Integer),
            of("mean", Holds::Real),
            of("high", Holds::Text)
        ]
    );
}

#[test]
fn what_a_query_may_not_do_is_refused_at_its_place() {
    for (sql, expected) in [
        ("SELEC 1", "1:1: "),
        ("SELECT FROM WHERE", "1:"),
        ("SELECT shortName FROM CUDA_KERNEL; SELECT 1", "1:36: expected one query, found 2"),
        ("DROP TABLE CUDA_KERNEL", "1:1: a query must begin with SELECT or WITH, found `DROP`"),
        (
            "CREATE TABLE x AS SELECT * FROM CUDA_KERNEL",
            "1:1: a query must begin with SELECT or WITH, found `CREATE`",
        ),
        ("EXPLAIN SELECT * FROM CUDA_KERNEL", "1:1: a query must begin with SELECT or WITH, found `EXPLAIN`"),
        ("SELECT * FROM read_parquet('/etc/x')", "1:15: a query may read only the tables it declares"),
        ("SELECT * FROM READ_CSV('/etc/passwd')", "1:15: a query may read only the tables it declares"),
        ("SELECT * FROM '/etc/x.parquet'", "1:1: table `/etc/x.parquet` is not declared in `tables`"),
        ("SELECT start FROM (SELECT * FROM read_ipc('x')) t", "1:34: a query may read"),
        (
            "SELECT start FROM CUDA_KERNEL WHERE start IN (SELECT x FROM read_json('x'))",
            "1:61: a query may read",
        ),
        ("SELECT start\nFROM KERNELS", "2:6: table `KERNELS` is not declared in `tables`"),
        ("SELECT start,\n  durration\nFROM CUDA_KERNEL", "2:3: unknown column `durration`"),
        ("SELECT k.start FROM CUDA_KERNEL AS q", "1:8: unknown table `k`"),
        (
            "SELECT start FROM CUDA_KERNEL LIMIT $most",
            "1:1: `LIMIT` parameter `$most` must be a whole number",
        ),
        ("SELECT start + $x AS y FROM CUDA_KERNEL", "1:16: parameter `$x` is not declared"),
        ("SELECT a.start FROM CUDA_KERNEL a, CUDA_KERNEL b", "1:36: refused: tables separated by commas"),
        (
            "SELECT a.start FROM CUDA_KERNEL a CROSS JOIN CUDA_KERNEL b",
            "1:46: refused: a join without an equality",
        ),
        (
            "SELECT a.start FROM CUDA_KERNEL a JOIN CUDA_KERNEL b ON a.start < b.start",
            "1:40: refused: a join without an",
        ),
        ("SELECT a.start FROM CUDA_KERNEL a JOIN CUDA_KERNEL b ON 1 = 1", "1:40: refused: a join without an"),
        (
            "SELECT a.start FROM CUDA_KERNEL a JOIN CUDA_KERNEL b ON a.pid = a.pid",
            "1:40: refused: a join without an",
        ),
        (
            "SELECT a.start FROM CUDA_KERNEL a JOIN CUDA_KERNEL b ON a.pid = b.pid OR TRUE",
            "1:40: refused: a join without an",
        ),
        ("SELECT start FROM CUDA_KERNEL ORDER BY start + 1", "1:40: `ORDER BY` takes columns of the result"),
        (
            "SELECT start FROM CUDA_KERNEL ORDER BY pid",
            "1:40: `ORDER BY` takes columns of the result, found `pid`",
        ),
        ("SELECT start FROM CUDA_KERNEL LIMIT 3 OFFSET 2", "1:"),
        ("SELECT nosuch(start) AS x FROM CUDA_KERNEL", "1:8: cannot run the query: unsupported function"),
        ("SELECT SUM(shortName || 'x') AS x FROM CUDA_KERNEL", "1:"),
        ("SELECT ARRAY_AGG(start) AS x FROM CUDA_KERNEL", "1:1: cannot run the query: result column"),
        (
            "SELECT pid, SUM(start) / MEDIAN(SUM(start)) OVER () AS x FROM CUDA_KERNEL GROUP BY pid",
            "1:26: refused: a window beside GROUP BY",
        ),
        ("SELECT 'a", "1:8: unterminated string literal"),
    ] {
        refused(sql, expected);
    }
}

/// A chain of thousands ends the process by its stack: in parsing, in looking through what was parsed, or in letting it
/// go.
#[test]
fn chains_without_end_are_refused_at_their_place() {
    let sums = |count: usize| format!("SELECT deviceId{} AS x FROM CUDA_KERNEL", " + 1".repeat(count));
    assert!(checked(&sums(100)).is_ok());
    refused(&sums(201), "more than 200 operators in a row");
    refused(&sums(60_000), "1:1: query of 240037 bytes, limit 65536");
    let unions = |count: usize| vec!["SELECT 1 AS x"; count].join(" UNION ALL ");
    assert!(parse(&unions(50)).is_ok());
    refused(&unions(1_000), "more than 200 operators in a row");
    let groups = vec!["(1 + 1)"; 190].join(" + ");
    let many = [groups.as_str(); 3].join(", ");
    refused(&format!("SELECT {many} FROM CUDA_KERNEL"), "more than 1000 operators in all");
}

#[test]
fn joins_with_an_equality_and_subqueries_are_let_through() {
    for sql in [
        "SELECT a.start FROM CUDA_KERNEL a JOIN CUDA_KERNEL b ON a.correlationId = b.correlationId AND a.start < b.start",
        "SELECT start FROM CUDA_KERNEL JOIN (SELECT correlationId FROM CUDA_KERNEL) AS k USING (correlationId)",
        "WITH k AS (SELECT start AS s FROM CUDA_KERNEL) SELECT s FROM k ORDER BY s DESC LIMIT 3",
        "SELECT COUNT(*) FROM CUDA_KERNEL",
        "SELECT start FROM CUDA_KERNEL UNION ALL SELECT \"end\" AS start FROM CUDA_KERNEL",
        "SELECT start / MEDIAN(start) OVER () AS part FROM CUDA_KERNEL",
        "SELECT start FROM CUDA_KERNEL WHERE start IN (SELECT MAX(start) AS m FROM CUDA_KERNEL)",
    ] {
        if let Err(why) = checked(sql) {
            panic!("{sql}: {why:?}");
        }
    }
}

#[test]
fn values_of_parameters_are_never_read_as_part_of_the_query() {
    let query = parse("SELECT start FROM CUDA_KERNEL WHERE shortName = $name AND start > $from LIMIT $most")
        .expect("read");
    let of = |name: &str, value| (name.to_owned(), value);
    let given = [
        of("name", Literal::Text("it's' OR 1 = 1 --".to_owned())),
        of("from", Literal::Number(2.0)),
        of("most", Literal::Whole(3)),
    ];
    let prepared = query.prepared(&given).expect("filled");
    assert_eq!(
        prepared.sql,
        "SELECT start FROM CUDA_KERNEL WHERE shortName = 'it''s'' OR 1 = 1 --' AND start > 2.0"
    );
    assert_eq!(prepared.limit, Some(3));
    assert!(query.prepared(&given[..1]).is_err());
}

#[test]
fn steps_are_the_same_as_the_query_that_one_would_write() {
    let names: Vec<String> = known()[0].1.iter().map(|(name, _)| name.clone()).collect();
    assert!(expression("\"end\" - start", &names, &[]).is_ok());
    let wrong = expression("SUM(strat) + 1", &names, &[]).expect_err("a slip");
    assert_eq!((wrong[0].line, wrong[0].column), (1, 5));
    assert!(
        expression("start, pid", &names, &[]).expect_err("two")[0].message.contains("found `,` after it")
    );
    let steps = Steps {
        from: "CUDA_KERNEL".to_owned(),
        taken: Some(vec!["start".to_owned(), "end".to_owned(), "deviceId".to_owned()]),
        derive: vec![
            ("ns".to_owned(), "\"end\" - start".to_owned()),
            ("us".to_owned(), "ns / 1000".to_owned()),
        ],
        filter: Some("ns >= 0".to_owned()),
        group: vec!["deviceId".to_owned()],
        aggregate: vec![("total".to_owned(), "SUM(us)".to_owned())],
        order: vec![("total".to_owned(), true)],
    };
    let query = parse(&steps.sql()).expect("read").taking(steps.taken.as_deref());
    let found = check(query, &known(), &[]).expect("sound");
    assert_eq!(found.columns, [("deviceId".to_owned(), Holds::Integer), ("total".to_owned(), Holds::Real)]);
    let wanted = found.query.wanted().expect("no whole table");
    assert!(!wanted.contains("shortName"), "{wanted:?}");
}

/// A declaration over kernels: their time by name, and over all reports each rank's part of it.
fn declared(name: &str, change: impl FnOnce(&mut Declaration)) -> Declaration {
    let sql = "SELECT shortName AS kernel, COUNT(*) AS runs, SUM(\"end\" - start) AS total FROM CUDA_KERNEL \
               GROUP BY shortName ORDER BY total DESC";
    let rows = checked(sql).expect("sound");
    let across = parse(
        "WITH ranks AS (SELECT \"Rank\", SUM(total) AS total FROM rows GROUP BY \"Rank\") \
         SELECT \"Rank\", total, total / MEDIAN(total) OVER () AS part FROM ranks",
    );
    let seen = [(ROWS.to_owned(), seen_across(&rows.columns))];
    let across = check(across.expect("read"), &seen, &[]).expect("sound");
    let metric = |name: &str, of, value: &str, dims: &[(Dim, &str)]| MetricColumn {
        name: name.to_owned(),
        about: "a".to_owned(),
        of,
        value: value.to_owned(),
        unit: Unit::Count,
        better: Better::Lower,
        blames: Default::default(),
        dims: dims.iter().map(|(dim, column)| (*dim, (*column).to_owned())).collect(),
    };
    let mut declaration = Declaration {
        name: name.to_owned(),
        file: "f.toml".to_owned(),
        text: name.to_owned(),
        title: "T".to_owned(),
        about: "a".to_owned(),
        tables: vec![Source { name: "CUDA_KERNEL".to_owned(), optional: false }],
        rows,
        across: Some(across),
        parameters: Vec::new(),
        quantities: vec![("total".to_owned(), Quantity::Nanoseconds)],
        metrics: vec![
            metric(&format!("{name}.total"), ROWS, "total", &[(Dim::Kernel, "kernel")]),
            metric(&format!("{name}.part"), ACROSS, "part", &[(Dim::Rank, "Rank")]),
        ],
        charts: vec![ChartSpec {
            name: "bars".to_owned(),
            title: "B".to_owned(),
            about: String::new(),
            of: ACROSS,
            shape: Shape::Bars { label: vec!["Rank".to_owned()], value: "part".to_owned() },
            log: false,
        }],
        limits: Limits::default(),
    };
    change(&mut declaration);
    declaration
}

fn user_recipe(name: &str, change: impl FnOnce(&mut Declaration)) -> UserRecipe {
    UserRecipe::new(declared(name, change), &Here)
}

/// Two kernels, one of which runs twice.
fn report(long: i64) -> Made {
    let made = Made::begin();
    made.string(1, "gemm<float>").string(2, "gemm").string(3, "copy<int>").string(4, "copy");
    made.kernel((0, 100), 1, 1).kernel((200, 200 + long), 2, 1).kernel((400, 450), 3, 3);
    made
}

fn integers(result_table: &ResultTable, column: &str) -> Vec<i64> {
    match &result_table.column(column).expect("there").values {
        Values::Integers(all) => all.iter().map(|value| value.expect("one")).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_recipe_over_two_reports_gives_exact_rows_and_what_is_made_of_all() {
    let own = user_recipe("own_exact", |declaration| {
        let shape = Shape::Boxes { label: vec!["kernel".to_owned()], value: "total".to_owned() };
        let (title, about) = ("S".to_owned(), String::new());
        declaration.charts.push(ChartSpec {
            name: "spread".to_owned(),
            title,
            about,
            of: ROWS,
            shape,
            log: false,
        });
    });
    let RecipeKind::Together(recipe) = own.report_recipe().kind else { panic!("of all reports") };
    let arguments = Arguments::default();
    let all = std::sync::Mutex::new(recipe.begin());
    let reports = [report(100), report(400)];
    let taken: Vec<_> = reports
        .iter()
        .map(|made| recipe.take(&made.trace(), &arguments, &all).expect("sound").expect("rows"))
        .collect();
    assert_eq!(taken[0].1, 3);
    let of = |rank: usize| ReportExtract {
        rank: rank as i64,
        file: format!("r{rank}"),
        host: Some("h".to_owned()),
        utc_epoch_ns: None,
        extract: &taken[rank].0,
    };
    let made = recipe.make(all.into_inner().expect("whole"), vec![of(0), of(1)], &arguments);
    assert!(made.unreadable.is_empty(), "{:?}", made.unreadable);
    let names: Vec<&str> = made.tables.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [ACROSS, ROWS]);
    let rows = &made.tables[1].1;
    assert_eq!(integers(rows, "Rank"), [0, 0, 1, 1]);
    assert_eq!(integers(rows, "runs"), [2, 1, 2, 1]);
    assert_eq!(integers(rows, "total"), [200, 50, 500, 50]);
    let across = &made.tables[0].1;
    assert_eq!(integers(across, "total"), [250, 550]);
    assert_eq!(
        across.column("part").expect("there").values,
        Values::Decimals(vec![Some(0.625), Some(1.375)])
    );
    let names: Vec<&str> = made.charts.iter().map(|chart| &*chart.name).collect();
    assert_eq!(names, ["bars", "spread"], "as they are declared");
    let Figure::Bars(bars) = &made.charts[0].figure else { panic!("bars") };
    let shown: Vec<_> = bars.bars.iter().map(|bar| (bar.label.as_str(), bar.rank, bar.value)).collect();
    assert_eq!(shown, [("rank 0", Some(0), Some(0.625)), ("rank 1", Some(1), Some(1.375))]);
    assert_eq!(bars.value.scale, Scale::Linear);
}

#[test]
fn a_report_without_the_table_has_no_data_and_an_optional_one_may_be_absent() {
    let own = user_recipe("own_absent", |_| ());
    let RecipeKind::Together(recipe) = own.report_recipe().kind else { panic!("of all reports") };
    let all = std::sync::Mutex::new(recipe.begin());
    let made = Made::begin();
    made.string(1, "x");
    assert!(recipe.take(&made.trace(), &Arguments::default(), &all).expect("sound").is_none());
    let own = user_recipe("own_optional", |declaration| declaration.tables[0].optional = true);
    let RecipeKind::Together(recipe) = own.report_recipe().kind else { panic!("of all reports") };
    assert!(recipe.take(&made.trace(), &Arguments::default(), &all).expect("sound").is_some());
}

#[test]
fn more_rows_than_the_limits_allow_are_an_error() {
    for (name, change, expected) in [
        ("own_rows_in", Limits { rows_in: 2, ..Limits::default() }, "`limits.rows_in` allows: 3 > 2"),
        ("own_rows_out", Limits { rows_out: 1, ..Limits::default() }, "`limits.rows_out` allows: 2 > 1"),
    ] {
        let own = user_recipe(name, |declaration| declaration.limits = change);
        let RecipeKind::Together(recipe) = own.report_recipe().kind else { panic!("of all reports") };
        let all = std::sync::Mutex::new(recipe.begin());
        let Err(error) = recipe.take(&report(1).trace(), &Arguments::default(), &all) else {
            panic!("{name}")
        };
        assert!(error.to_string().contains(expected), "{error}");
    }
}

fn ran(recipe: &RecipeSpec<'_>, reports: &[Made], expected: u32) -> (Vec<String>, Vec<String>) {
    let paths: Vec<_> = reports.iter().map(Made::path).collect();
    let job = job(Workload::Command, &paths, |rank| format!("n{}", rank / 2), expected);
    let output = (recipe.run)(&job);
    let metrics = output.metrics.iter().map(|metric| {
        let dims = metric.dims.iter().filter(|(dim, _)| ![Dim::Case, Dim::Job].contains(dim));
        let dims: Vec<String> =
            dims.map(|(dim, value): (Dim, &DimValue)| format!("{}={value}", dim.name())).collect();
        format!("{} {} {}", metric.name, dims.join(" "), metric.value)
    });
    let findings = output.findings.iter().map(|finding| {
        format!("{} {} {}", finding.code, finding.node.as_deref().unwrap_or("-"), finding.message)
    });
    (metrics.collect(), findings.collect())
}

#[test]
fn metrics_of_a_job_stand_with_rank_and_node_and_those_of_all_ranks_need_all_reports() {
    let own = user_recipe("own_job", |_| ());
    let (metrics, findings) = ran(&own.job_recipe(), &[report(100), report(400)], 2);
    assert_eq!(findings, [] as [&str; 0]);
    assert_eq!(
        metrics,
        [
            "own_job.total node=n0 kernel=gemm rank=0 200",
            "own_job.total node=n0 kernel=copy rank=0 50",
            "own_job.total node=n0 kernel=gemm rank=1 500",
            "own_job.total node=n0 kernel=copy rank=1 50",
            "own_job.part node=n0 rank=0 0.625",
            "own_job.part node=n0 rank=1 1.375",
        ]
    );
    // Of three ranks one left no report: its node's numbers are not given, nor is what is made of all.
    let (metrics, _) = ran(&own.job_recipe(), &[report(1), report(1)], 3);
    assert!(
        metrics.iter().all(|metric| metric.contains("node=n0") && !metric.contains("part")),
        "{metrics:?}"
    );
    let (metrics, _) = ran(&own.job_recipe(), &[report(1)], 2);
    assert_eq!(metrics, [] as [&str; 0]);
}

#[test]
fn a_report_without_data_and_one_that_lost_events_are_findings_and_no_numbers() {
    let own = user_recipe("own_lacks", |_| ());
    let empty = Made::begin();
    empty.string(1, "x");
    let (metrics, findings) = ran(&own.job_recipe(), &[empty], 1);
    assert_eq!(metrics, [] as [&str; 0]);
    assert!(
        findings[0].starts_with("recipe-no-data n0 rank 0: `own_lacks` needs rows of: CUDA_KERNEL"),
        "{findings:?}"
    );
    let lossy = report(1);
    lossy.put(
        &nsys::tables::DIAGNOSTIC_EVENT,
        &[("text", "4096 events were dropped".to_owned().into()), ("severity", 3.into())],
    );
    let (metrics, findings) = ran(&own.job_recipe(), &[lossy], 1);
    assert!(metrics.is_empty() && findings[0].starts_with("events-dropped n0 "), "{metrics:?} {findings:?}");
}

#[test]
fn a_row_without_a_value_takes_its_node_out_and_no_row_is_no_pass() {
    // No division by nothing is a number.
    let sql = "SELECT shortName AS kernel, COUNT(*) AS runs, SUM(\"end\" - start) / SUM(start * 0) AS total \
               FROM CUDA_KERNEL GROUP BY shortName";
    let rows = checked(sql).expect("sound");
    let own = user_recipe("own_nan", |declaration| {
        declaration.rows = rows;
        declaration.across = None;
        declaration.metrics.truncate(1);
    });
    let (metrics, findings) = ran(&own.job_recipe(), &[report(1)], 1);
    assert_eq!(metrics, [] as [&str; 0]);
    assert_eq!(findings, ["recipe-no-value n0 `own_nan.total`: row 1 has no value in `total`"]);
    let sql = "SELECT shortName AS kernel, COUNT(*) AS runs, SUM(\"end\" - start) AS total FROM CUDA_KERNEL \
               WHERE pid = 41 GROUP BY shortName";
    let rows = checked(sql).expect("sound");
    let own = user_recipe("own_none", |declaration| {
        declaration.rows = rows;
        declaration.across = None;
        declaration.metrics.truncate(1);
    });
    let (metrics, findings) = ran(&own.job_recipe(), &[report(1)], 1);
    assert!(metrics.is_empty());
    assert_eq!(findings, ["recipe-no-value n0 `own_none.total`: the query returned no row"]);
    // One rank of the node speaks, the other does not.
    let other = report(1);
    other.kernel_of(OTHER_PROCESS, (500, 600), 9, 1);
    let (metrics, findings) = ran(&own.job_recipe(), &[other, report(1)], 2);
    assert!(metrics.is_empty());
    assert_eq!(findings, ["recipe-no-value n0 `own_none.total`: the query returned no row for ranks 1"]);
}

#[test]
fn names_are_taken_once_and_never_from_built_in_recipes() {
    let mut catalogue = Catalogue::built_in();
    assert_eq!(catalogue.add(declared("own_twice", |_| ()), &Here), Ok(()));
    assert_eq!(catalogue.add(declared("own_twice", |_| ()), &Here), Ok(()));
    let other = declared("own_twice", |declaration| declaration.text = "another".to_owned());
    assert!(catalogue.add(other, &Here).is_err_and(|why| why.contains("two recipes have this name")));
    let taken = declared("cuda_gpu_kern_sum", |_| ());
    assert!(catalogue.add(taken, &Here).is_err_and(|why| why.contains("is the name of a built-in recipe")));
    assert!(catalogue.report_recipe("own_twice").is_some() && catalogue.metric("own_twice.part").is_some());
}

#[test]
fn two_catalogues_in_one_process_have_two_recipes_of_one_name() {
    let of = |title: &str, long: u64| {
        let mut catalogue = Catalogue::built_in();
        let declaration = declared("own_both", |declaration| {
            (declaration.title, declaration.text) = (title.to_owned(), title.to_owned());
            declaration.limits.rows_in = long;
        });
        catalogue.add(declaration, &Here).expect("the first of its name");
        catalogue
    };
    let (one, other, none) = (of("one", 2), of("other", 100), Catalogue::built_in());
    let findings = |catalogue: &Catalogue| {
        let recipe = catalogue.job_recipe("own_both").expect("there");
        ran(&recipe, &[report(1)], 1).1
    };
    assert!(findings(&one)[0].contains("`limits.rows_in` allows: 3 > 2"), "{:?}", findings(&one));
    assert_eq!(findings(&other), [] as [&str; 0]);
    let title =
        |catalogue: &Catalogue| catalogue.report_recipe("own_both").map(|recipe| recipe.title.to_owned());
    assert_eq!((title(&one), title(&other), title(&none)), (Some("one".into()), Some("other".into()), None));
}

/// What is declared of the composite tables is what they have: of an export with something of everything.
#[test]
fn composite_tables_have_the_columns_that_queries_are_checked_against() {
    let made = report(10);
    made.call((0, 5), 3, 1, 1).call((6, 9), 3, 2, 1);
    made.range((0, 50), 3, "step");
    made.event(
        nsys::trace::nvtx::DOMAIN,
        3,
        &[("domainId", 5.into()), ("text", "aws-ofi-nccl dev 2_0".to_owned().into())],
    );
    made.event(nsys::trace::nvtx::DOMAIN, 3, &[("domainId", 6.into()), ("text", "NCCL".to_owned().into())]);
    for (domain, text) in [(5, "Send_write_seg"), (6, "ncclAllReduce")] {
        let own = [
            ("start", 10.into()),
            ("end", 20.into()),
            ("domainId", domain.into()),
            ("text", text.to_owned().into()),
        ];
        made.event(nsys::trace::nvtx::PUSH_POP, 3, &own);
    }
    let trace = made.trace();
    let mut seen = 0;
    for name in names().into_iter().filter(|name| !LIST.iter().any(|spec| spec.name == *name)) {
        let Some(frame) = tables::read(&trace, name, None).expect(name) else { continue };
        seen += 1;
        let recipe = if name == "AWS_OFI_NCCL_LTTNG" { "AWS_OFI_NCCL" } else { name };
        let recipe = of_reports::find(recipe).expect("there");
        let table = if name == "AWS_OFI_NCCL_LTTNG" { "lttng" } else { "rows" };
        let result_table = of_reports::table_of(&recipe, &trace, table).expect("sound").expect("rows");
        let made: BTreeSet<&str> = result_table
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .filter(|name| *name != RANK)
            .collect();
        let declared = columns_of(name).expect("there");
        assert_eq!(made, declared.iter().map(|(name, _)| name.as_str()).collect(), "{name}");
        assert_eq!(frame.height(), result_table.height(), "{name}");
        for (column, kind) in &declared {
            let fits = match result_table.column(column).expect("there").values {
                Values::Integers(_) => *kind == Holds::Integer,
                Values::Decimals(_) => *kind == Holds::Real,
                Values::Texts(_) => *kind == Holds::Text,
                Values::Lists(_) => false,
            };
            assert!(fits, "{name}.{column}");
        }
    }
    assert!(seen >= 7, "only {seen} composite tables have rows here");
    // A table of the report itself is read by the columns that are named.
    let wanted = BTreeSet::from(["start".to_owned()]);
    let frame = tables::read(&trace, KERNEL.name, Some(&wanted)).expect("sound").expect("rows");
    assert_eq!((frame.width(), frame.height()), (1, 3));
}

#[test]
fn messages() {
    let messages = [
        "SELECT start FROM CUDA_KERNEL; SELECT 1",
        "DROP TABLE CUDA_KERNEL",
        "SELECT * FROM read_parquet('/etc/x')",
        "SELECT start FROM a.b",
        "SELECT start FROM KERNELS",
        "SELECT durration FROM CUDA_KERNEL",
        "SELECT k.start FROM CUDA_KERNEL AS q",
        "SELECT start + $x AS y FROM CUDA_KERNEL",
        "SELECT start FROM CUDA_KERNEL LIMIT $most",
        "SELECT start FROM CUDA_KERNEL LIMIT 3 OFFSET 2",
        "SELECT start FROM CUDA_KERNEL ORDER BY start + 1",
        "SELECT start FROM CUDA_KERNEL ORDER BY pid",
        "SELECT start FROM CUDA_KERNEL ORDER BY start NULLS FIRST",
        "SELECT a.start FROM CUDA_KERNEL a, CUDA_KERNEL b",
        "SELECT a.start FROM CUDA_KERNEL a CROSS JOIN CUDA_KERNEL b",
        "SELECT pid, SUM(start) / MEDIAN(SUM(start)) OVER () AS x FROM CUDA_KERNEL GROUP BY pid",
        "SELECT ARRAY_AGG(start) AS x FROM CUDA_KERNEL",
        "SELECT nosuch(start) AS x FROM CUDA_KERNEL",
    ]
    .map(|sql| format!("{sql}\n  {}", checked(sql).expect_err(sql).join("\n  ")));
    insta::assert_snapshot!(messages.join("\n"));
}
