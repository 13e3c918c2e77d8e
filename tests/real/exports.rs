//! Every report and every recipe over every real export ends in tables or in a named lack of data.

use crate::corpus;
use crate::ended::assert_ended;
use crate::fact::Fact;
use crate::small_export::ExportFolder;
use serde_json::Value;

pub(crate) const FACTS: &[Fact] = &[
    (
        "every_report_over_every_real_export_is_a_table_or_skipped",
        every_report_over_every_real_export_is_a_table_or_skipped,
    ),
    ("real_exports_are_gone_through_by_every_recipe", real_exports_are_gone_through_by_every_recipe),
    (
        "real_exports_are_gone_through_by_all_recipes_at_once",
        real_exports_are_gone_through_by_all_recipes_at_once,
    ),
];

fn exports() -> Vec<String> {
    corpus::exports().into_iter().map(|export| export.display().to_string()).collect()
}

fn every_report_over_every_real_export_is_a_table_or_skipped() {
    let files = exports();
    assert!(files.len() > 3, "{files:?}");
    let names: Vec<&str> = recipes::report::LIST.iter().map(|report| report.name).collect();
    let place = ExportFolder::new();
    for file in &files {
        for (format, unit) in [("csv", "nsec"), ("json", "usec"), ("column", "seconds")] {
            let ran = place.stats(&["-q", "-r", &names.join(","), "-f", format, "--timeunit", unit, file]);
            assert_eq!(ran.code, Some(0), "{file}: {}", ran.stderr);
            let skipped = ran.stderr.lines().filter(|line| line.starts_with("SKIPPED: ")).count();
            let tables = match format {
                "csv" => ran.stdout.split("\n\n").count(),
                "json" => ran
                    .stdout
                    .lines()
                    .filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
                    .count(),
                _ => ran.stdout.lines().filter(|line| line.starts_with(" ** ")).count(),
            };
            assert_eq!(tables + skipped, names.len(), "{file}, {format}: {}", ran.stderr);
            assert!(!ran.stdout.contains("NaN") && !ran.stderr.contains("error"), "{file}: {}", ran.stderr);
        }
    }
}

fn real_exports_are_gone_through_by_every_recipe() {
    let place = ExportFolder::new();
    let names =
        recipes::recipe::of_reports::LIST.iter().map(|recipe| recipe.name).filter(|name| *name != "diff");
    let names: Vec<&str> = names.collect();
    for export in exports() {
        for name in &names {
            let ran = place.verb("recipe", &[name, &export, "--json"]);
            let has_no_data = ran.code == Some(3) && ran.stderr.contains("no data for it");
            assert!(ran.code == Some(0) || has_no_data, "{name} over {export}: {}", ran.all());
        }
    }
}

fn real_exports_are_gone_through_by_all_recipes_at_once() {
    let exports = exports();
    let place = ExportFolder::new();
    let composite: Vec<&str> = recipes::recipe::of_reports::GROUPS
        .iter()
        .filter(|group| group.title == recipes::recipe::of_reports::COMPOSITE)
        .flat_map(|group| group.recipes.iter().copied())
        .collect();
    let names = format!("all,{}", composite.join(","));
    let each: Vec<Vec<&str>> = exports.iter().map(|export| vec![export.as_str()]).collect();
    for inputs in each.iter().chain([&exports.iter().map(String::as_str).collect()]) {
        let args = [
            &[names.as_str(), "--output", "out", "--force-overwrite", "--csv", "--input"],
            inputs.as_slice(),
        ];
        let ran = place.verb("recipe", &args.concat());
        assert_eq!(ran.code, Some(0), "{inputs:?}: {}", ran.all());
        let summary: Value = serde_json::from_str(&place.read("out/summary.json")).expect("JSON");
        assert_ended(&summary);
    }
}
