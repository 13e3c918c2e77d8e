//! One broken recipe for each kind of error, as it is reported; and those that are shipped, which have none.

use super::read;
use crate::library::Library;
use config::diagnostic::Diagnostics;
use config::suite::Suite;
use fixture::schema::SchemaCheck;
use recipes::catalogue::Catalogue;

const SOUND: &str = r#"
about = "kernels by name"
tables = ["CUDA_KERNEL"]
sql = '''
SELECT shortName AS kernel, deviceId AS device, COUNT(*) AS runs, SUM("end" - start) AS total
FROM CUDA_KERNEL
WHERE deviceId >= $least
GROUP BY shortName, deviceId
'''

[across]
sql = '''
SELECT "Rank", kernel, total / SUM(total) OVER (PARTITION BY "Rank") AS part
FROM rows
'''

[parameters]
least = { about = "the first device", default = 0 }

[columns]
total = "ns"

[[metric]]
name = "mine.part"
about = "a kernel's part"
value = "part"
unit = "ratio"
better = "neither"
dims = { kernel = "kernel", rank = "Rank" }

[[chart]]
kind = "bars"
title = "Parts"
label = ["Rank", "kernel"]
value = "part"

[limits]
rows_in = 1_000_000
memory = "1GiB"
seconds = 30
"#;

/// The schema of recipes and their reader agree on a file.
fn agree<T>(text: &str, read: &Result<T, Diagnostics>) {
    let messages = match read {
        Ok(_) => Vec::new(),
        Err(diagnostics) => diagnostics.0.iter().map(|one| one.message.clone()).collect(),
    };
    let check = SchemaCheck::new(&super::KIND.schema(&Catalogue::built_in()));
    if let Err(why) = check.compare(text, &messages) {
        panic!("{why}");
    }
}

/// The diagnostics of the sound recipe with these replacements.
fn diagnostics_of(file: &str, changes: &[(&str, &str)]) -> String {
    let mut text = SOUND.trim_start().to_owned();
    for (this, that) in changes {
        assert!(text.contains(this), "{this}");
        text = text.replacen(this, that, 1);
    }
    let read = read(&text, file);
    agree(&text, &read);
    match read {
        Ok(_) => "nothing".to_owned(),
        Err(diagnostics) => diagnostics.to_string(),
    }
}

#[test]
fn a_sound_recipe_is_read() {
    let declaration = match read(SOUND.trim_start(), "suites/recipes/mine.toml") {
        Ok(declaration) => declaration,
        Err(diagnostics) => panic!("{diagnostics}"),
    };
    assert_eq!(declaration.name, "mine");
    assert_eq!(declaration.limits.memory, 1 << 30);
    let across = declaration.across.expect("there");
    let names: Vec<&str> = across.columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Rank", "kernel", "part"]);
}

#[test]
fn messages() {
    let of = |what: &str, changes: &[(&str, &str)]| {
        format!("# {what}\n{}\n", diagnostics_of("mine.toml", changes))
    };
    let all = [
        of("an unknown key", &[("about = \"kernels by name\"", "abuot = \"kernels by name\"")]),
        of("an unknown table", &[("tables = [\"CUDA_KERNEL\"]", "tables = [\"CUDA_KERNELS\"]")]),
        of("a table that is not declared", &[("FROM CUDA_KERNEL", "FROM CUDA_GPU")]),
        of(
            "a table that is not read",
            &[("tables = [\"CUDA_KERNEL\"]", "tables = [\"CUDA_KERNEL\", \"NVTX\"]")],
        ),
        of("an unknown column", &[("deviceId AS device", "devceId AS device")]),
        of("an unknown column of what comes across", &[("total / SUM(total)", "totla / SUM(total)")]),
        of("bad SQL", &[("GROUP BY shortName, deviceId", "GROUP shortName, deviceId")]),
        of("SQL that the engine cannot run", &[("COUNT(*) AS runs", "COUNTS(start) AS runs")]),
        of("SQL that reads files", &[("FROM CUDA_KERNEL", "FROM read_parquet('/etc/x.parquet')")]),
        of("several statements", &[("FROM CUDA_KERNEL", "FROM CUDA_KERNEL; SELECT 1")]),
        of(
            "a statement that is no query",
            &[
                ("SELECT shortName", "DROP TABLE CUDA_KERNEL -- shortName"),
                ("FROM CUDA_KERNEL\n", "\n"),
                ("WHERE", "--"),
                ("GROUP", "--"),
            ],
        ),
        of(
            "every row with every other",
            &[("FROM CUDA_KERNEL", "FROM CUDA_KERNEL CROSS JOIN CUDA_KERNEL AS b")],
        ),
        of("a metric of a column that is not there", &[("value = \"part\"", "value = \"prat\"")]),
        of("a metric of a column of texts", &[("value = \"part\"", "value = \"kernel\"")]),
        of("an unknown unit", &[("unit = \"ratio\"", "unit = \"percent\"")]),
        of("an unknown direction", &[("better = \"neither\"", "better = \"up\"")]),
        of("a metric of another's name", &[("name = \"mine.part\"", "name = \"kernel.share\"")]),
        of("a dimension of the wrong kind", &[("rank = \"Rank\"", "rank = \"kernel\"")]),
        of("an unknown dimension", &[("kernel = \"kernel\", rank", "colour = \"kernel\", rank")]),
        of("a parameter that is not declared", &[(">= $least", ">= $lest")]),
        of("a parameter that is not used", &[(">= $least", ">= 0")]),
        of("a parameter without a type", &[("default = 0 }", "default = [0] }")]),
        of(
            "a chart of a column that is not there",
            &[("label = [\"Rank\", \"kernel\"]\nvalue = \"part\"", "value = \"parts\"")],
        ),
        of(
            "a chart of a column of texts",
            &[("label = [\"Rank\", \"kernel\"]\nvalue = \"part\"", "value = \"kernel\"")],
        ),
        of("an unknown kind of chart", &[("kind = \"bars\"", "kind = \"bar\"")]),
        of("a unit of a column that is not there", &[("total = \"ns\"", "totals = \"ns\"")]),
        of(
            "limits that cannot be",
            &[("memory = \"1GiB\"", "memory = \"1MiB\""), ("seconds = 30", "seconds = 0")],
        ),
        of(
            "both forms at once",
            &[("about = \"kernels by name\"", "about = \"k\"\nfilter = \"deviceId > 0\"")],
        ),
        of(
            "several at once",
            &[("deviceId AS device", "devceId AS device"), ("unit = \"ratio\"", "unit = \"%\"")],
        ),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn steps_are_checked_against_the_table_one_by_one() {
    let of = |body: &str| {
        let text = format!("about = \"a\"\ntables = [\"CUDA_KERNEL\"]\n{body}");
        match read(&text, "mine.toml") {
            Ok(_) => "nothing\n".to_owned(),
            Err(diagnostics) => format!("{diagnostics}\n"),
        }
    };
    let all = [
        of("filter = \"deviceId > 0\""),
        of("group = [\"deviceId\"]\naggregate = { runs = \"COUNT(*)\" }\norder = [\"runs DESC\"]"),
        of("filter = \"devceId > 0\""),
        of("group = [\"devceId\"]\naggregate = { runs = \"COUNT(*)\" }"),
        of("group = [\"deviceId\"]"),
        of("group = [\"deviceId\"]\naggregate = { runs = \"COUNT(*\", deviceId = \"1\" }"),
        of("derive = { start = \"1\" }"),
        of("derive = { ns = \"'''end''' - strat\" }"),
        of("aggregate = { total = \"SUM(start) FROM x\" }"),
        of("filter = \"start IN (SELECT start FROM NVTX)\""),
        of("aggregate = { total = \"SUM(start)\" }\norder = [\"totl\"]"),
        of("from = \"NVTX\"\nfilter = \"TRUE\""),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn names_of_others_are_not_taken() {
    for (file, expected) in [
        ("cuda_gpu_kern_sum.toml", "is the name of a built-in recipe"),
        ("nccl_tests.toml", "is the name of a built-in recipe"),
        ("CUDA_GPU.toml", "the file name of a recipe needs lower-case letters"),
        ("all.toml", "is the name of a built-in recipe"),
        ("kernel.toml", "metrics of a built-in recipe begin with"),
        ("my recipe.toml", "the file name of a recipe needs lower-case letters"),
        ("2nd.toml", "the file name of a recipe needs lower-case letters"),
    ] {
        let found = diagnostics_of(file, &[]);
        assert!(found.starts_with(&format!("{file}:1:1: ")) && found.contains(expected), "{found}");
    }
}

#[test]
fn shipped_recipes_have_no_diagnostics() {
    let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root");
    let (texts, diagnostics) = config::toml_reader::folder::texts(home, super::FOLDER);
    assert!(texts.len() >= 3 && diagnostics.is_empty(), "{diagnostics:?}");
    for (file, text) in texts {
        if let Err(diagnostics) = read(&text, &file) {
            panic!("{diagnostics}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_text_at_all_makes_the_reader_panic(sql in "[a-zA-Z0-9 ,.*()'\"$;=<>+/%-]{0,80}") {
        let text = format!("about = \"a\"\ntables = [\"CUDA_KERNEL\"]\nsql = '''\n{}\n'''\n", sql.replace("'''", ""));
        let _ = read(&text, "mine.toml");
    }
}

#[test]
fn two_projects_in_one_process_keep_their_recipes_of_one_name_apart() {
    let project = |about: &str, name: &str| {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join(super::FOLDER);
        std::fs::create_dir_all(&folder).expect("made");
        let text = SOUND.replace("kernels by name", about).replace("mine.part", &format!("mine.{name}"));
        std::fs::write(folder.join("mine.toml"), text).expect("written");
        super::load(Some(&Library::for_project(home.path())), None).expect("sound")
    };
    let (one, other) = (project("the first", "part"), project("the second", "share"));
    let about = |catalogue: &Catalogue| catalogue.user("mine").map(|user| user.about.clone());
    assert_eq!((about(&one), about(&other)), (Some("the first".into()), Some("the second".into())));
    assert!(one.metric("mine.part").is_some() && one.metric("mine.share").is_none());
    assert!(other.metric("mine.part").is_none() && other.metric("mine.share").is_some());
    let suite = |catalogue: &Catalogue| {
        let text = "instance = \"p5\"\nabout = \"a\"\n[[case]]\nname = \"c\"\nrecipes = [\"mine\"]\n\
                    workload = { kind = \"command\", program = \"x\" }\nplacement = \"each\"\n[case.profile]\n[[case.assert]]\n\
                    metric = \"mine.share\"\nat_most = 0.5\nkernel = \"k\"\n";
        Suite::read(text, "suites/x.toml", catalogue).map_err(|errors| errors.to_string())
    };
    let why = suite(&one).expect_err("of the other project");
    assert!(why.contains("unknown metric: `mine.share`"), "{why}");
    let planned = plan::planned_recipes(&other, ["mine"].iter());
    let replayed = super::from_plan(&planned).expect("as it was planned");
    for catalogue in [&other, &replayed] {
        assert!(suite(catalogue).is_ok(), "{:?}", suite(catalogue));
    }
}
