//! `harness run --attach`: judges what the pods of a manifest left, as a run of its own. The folder is foreign: what is
//! incomplete in it, or of another plan, is refused, and nothing is blamed on a node that no pod recorded.

mod folder;
mod lost_peer;
mod record;

use self::folder::AttachedFolder;
use self::record::Recorded;
use crate::manifest::{ManifestKind, ManifestRequest, SlotPlan, check_pods, jobs, slot};
use crate::pipeline;
use crate::session::execution::new_runtime;
use crate::session::planning::make_plan_as;
use crate::session::{RunOptions, after_run, load, print_errors, report_error};
use base::digest::sha256;
use base::text::show;
use cluster::collect;
use cluster::launch::folder::Folders;
use cluster::reach::redacted::Redacted;
use cluster::reach::{Host, Reach};
use job::script;
use model::artefact::{CaseJobs, Format, Plan, PlannedCase, PlannedJob, RunRecord};
use std::path::{Path, absolute};
use store::{Home, Store, StoreError};

/// Judges the folder. What is wrong with the request is refused as in any run; what is wrong with the folder ends with the
/// exit code of what could not be judged.
pub(crate) fn attach(home: &Home, options: &RunOptions, folder: &Path) -> i32 {
    // Whatever it shows, nothing is launched for it.
    let options = &RunOptions { after_run: None, ..options.clone() };
    let ([_], [case]) = (options.suites.as_slice(), options.filters.cases.as_slice()) else {
        return print_errors(&[
            "--attach needs the suite and the case of the manifest: --suite NAME --case NAME".to_owned(),
        ]);
    };
    let here = match absolute(folder).ok().as_deref().and_then(Path::to_str) {
        Some(here) => here.trim_end_matches('/').to_owned(),
        None => return print_errors(&[format!("--attach: not a path in UTF-8: `{}`", folder.display())]),
    };
    let runtime = match new_runtime(false) {
        Ok(runtime) => runtime,
        Err(why) => return report_error(&why),
    };
    // What the folder says of itself decides only what it is compared with.
    let found = runtime.block_on(record::read_manifest(&here, case));
    let found = match found {
        Ok(found) => found,
        Err(why) => return refuse(folder, &why),
    };
    // A plan is made for as many pods as the folder says: no more than there are nodes.
    let nodes = load::without_suite(home, &options.inventory).and_then(|loaded| {
        let inventory = loaded.inventory;
        let nodes = inventory.select(options.nodes.as_deref(), options.exclude_nodes.as_deref());
        nodes.map(|nodes| (nodes.len(), inventory.file)).map_err(|why| vec![why])
    });
    match nodes.map(|(nodes, file)| check_pods(found.pods, nodes, &file)) {
        Err(diagnostics) => return print_errors(&diagnostics),
        Ok(Err(why)) => return refuse(folder, &why),
        Ok(Ok(())) => {}
    }
    let request = ManifestRequest {
        options: options.clone(),
        kind: ManifestKind::Job,
        pods: Some(found.pods),
        name: Some(found.name.clone()),
        claim: None,
        host_network: false,
    };
    let planned = match SlotPlan::new(home, &request) {
        Ok(planned) => planned,
        Err(diagnostics) => return print_errors(&diagnostics),
    };
    if found != planned.record {
        return refuse(folder, &difference(&found, &planned));
    }
    let attached = AttachedFolder::new(planned.folder(), here);
    let judged = runtime.block_on(async {
        let redactor = store::redactor();
        let clean = Redacted { reach: &attached, redactor: &redactor };
        let recorded = record::read(&clean, &planned).await?;
        let plan = on_nodes(home, &planned, &recorded)?;
        same_files(&clean, &plan).await?;
        judge(home, plan, &planned, &recorded, &clean).await
    });
    match judged {
        Ok((plan, finished, store)) => after_run::close(home, &plan, finished, &store, options, options),
        Err(why) => refuse(folder, &why),
    }
}

fn refuse(folder: &Path, why: &str) -> i32 {
    report_error(&format!("`{}` is not judged: {why}", show(&folder.display().to_string())))
}

/// What a manifest was rendered from, where that is not what is asked for.
fn difference(found: &crate::manifest::ManifestRecord, planned: &SlotPlan) -> String {
    let wanted = &planned.record;
    if found.suite != wanted.suite || found.case != wanted.case {
        return format!("it is of case `{}` of suite `{}`", show(&found.case), show(&found.suite));
    }
    if found.harness != wanted.harness {
        return format!(
            "its manifest was rendered by harness {}, this is {}",
            show(&found.harness),
            wanted.harness
        );
    }
    "its manifest was rendered from another plan; use the suite, the inventory and the `--set` of then, or render it again".to_owned()
}

/// The plan for the nodes that Kubernetes chose. Its jobs are those that ran: of the plan on slots, with the nodes in the
/// order of the ranks.
fn on_nodes(home: &Home, planned: &SlotPlan, recorded: &Recorded) -> Result<Plan, String> {
    let mut text = serde_json::to_string(&planned.case().jobs).map_err(|error| error.to_string())?;
    for (at, place) in recorded.places.iter().enumerate() {
        text = text.replace(&slot(at), &place.node);
    }
    let ran: Vec<PlannedJob> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let nodes: Vec<&str> = recorded.places.iter().map(|place| place.node.as_str()).collect();
    let options = RunOptions { nodes: Some(nodes.join(",")), exclude_nodes: None, ..planned.options.clone() };
    let made = make_plan_as(home, &options, &planned.catalogue, Some(&planned.record.name));
    let (mut plan, _) = made.map_err(|diagnostics| diagnostics.join("; "))?;
    let names = |jobs: &[PlannedJob]| jobs.iter().map(|job| job.name.clone()).collect::<Vec<_>>();
    match plan.cases.as_mut_slice() {
        [case] if names(&case.jobs) == names(&ran) => case.jobs = ran,
        _ => return Err("planned on these nodes the case has other jobs; render it again".to_owned()),
    }
    // The same folder is the same run, whoever attaches it, and how often.
    let Recorded { places, ends } = recorded;
    let tail = &sha256(format!("{:?}", (&planned.record, places, ends)).as_bytes())[..12];
    let run_id = format!("{}-{}-{tail}", store::run_time(recorded.began() as f64), planned.record.suite);
    // Nothing was launched here, so nothing of it is cleaned up or resumed from here.
    Ok(Plan { run_id, replayed_from: Some("collect".to_owned()), ..plan })
}

/// Whether the pods ran what the plan says.
async fn same_files(reach: &dyn Reach, plan: &Plan) -> Result<(), String> {
    for job in plan.cases.iter().flat_map(jobs) {
        for file in &job.files {
            let planned =
                file.text.as_deref().or_else(|| script::shared_text(&file.name)).unwrap_or_default();
            let path = format!("{}/{}", job.folder, file.name);
            let found = reach.get(&Host::Here, &path).await.map_err(|error| error.to_string())?;
            if found != planned.as_bytes() {
                return Err(format!("`{}` of {} is not the one of the plan", show(&file.name), job.name));
            }
        }
    }
    Ok(())
}

/// Whether both plans are of the same jobs on the same nodes.
fn is_same(one: &Plan, other: &Plan) -> bool {
    let jobs_of = |plan: &Plan| {
        let jobs = plan.cases.iter().flat_map(|case| case.jobs.iter().map(|job| (case.name.clone(), job)));
        jobs.map(|(case, job)| (case, job.name.clone(), job.folder.clone(), job.nodes.clone()))
            .collect::<Vec<_>>()
    };
    one.run_id == other.run_id && jobs_of(one) == jobs_of(other)
}

/// Takes the files through the stages from their collection on.
async fn judge(
    home: &Home,
    plan: Plan,
    planned: &SlotPlan,
    recorded: &Recorded,
    reach: &dyn Reach,
) -> Result<(Plan, pipeline::Finished, Store), String> {
    let id = &plan.run_id;
    let folder = home.path().join("runs").join(id);
    if folder.symlink_metadata().is_ok() {
        let earlier: Option<Plan> = store::read_json(&folder.join("plan.json")).ok();
        if !earlier.is_some_and(|earlier| is_same(&earlier, &plan)) {
            return Err(format!(
                "`runs/{id}`, which its run would be, is there and of another; move it away"
            ));
        }
        if folder.join("summary.json").exists() {
            return Err(format!(
                "it was judged already, as run {id}; `harness replay --run {id} --from judge` judges it again"
            ));
        }
        // An earlier attempt at the same folder, which was ended on its way. One that goes on holds it.
        store::remove_run(home, id).map_err(|error| error.to_string())?;
    }
    let [case] = plan.cases.as_slice() else { return Err("the plan has not one case".to_owned()) };
    let store = Store::create(home, id).map_err(|error| error.to_string())?;
    let stages = async {
        let (began, ended) = (recorded.began(), recorded.ended());
        let mut record = RunRecord {
            format: Format,
            started: store::iso8601(began as f64),
            ended: Some(store::iso8601(ended as f64)),
            seconds: Some(ended.saturating_sub(began) as f64),
            stopped: None,
            signal_exit_code: None,
            artefacts: None,
        };
        store.write_json(&store.folder().join("plan.json"), &plan)?;
        pipeline::write_record(&record, &store)?;
        let jobs = CaseJobs { format: Format, skipped: None, jobs: recorded.jobs(case) };
        let folders = Folders { reach, launcher: plan.launcher, nodes: &plan.nodes };
        let judged = through_stages(&plan, case, &jobs, folders, planned, &store).await?;
        pipeline::close_record(&mut record, &plan, &store)?;
        Ok::<_, StoreError>(pipeline::finish(&plan, &record, vec![judged], &planned.catalogue))
    };
    let finished = stages.await.map_err(|error| error.to_string())?;
    Ok((plan, finished, store))
}

async fn through_stages(
    plan: &Plan,
    case: &PlannedCase,
    jobs: &CaseJobs,
    folders: Folders<'_>,
    planned: &SlotPlan,
    store: &Store,
) -> Result<verdict::judge::Judged, StoreError> {
    let folder = store.case(&case.name);
    let (launched, effective) = (case.launched(jobs), case.effective(jobs));
    let collected = collect::collect(&launched, jobs, folders, None, store).await?;
    let jobs = &lost_peer::clear_blame(jobs.clone(), &collected, &folder);
    store.write_json(&folder.join("job.json"), jobs)?;
    store.write_json(&folder.join("collected.json"), &collected)?;
    let unfit = collect::unfit(&collected, &folder);
    let files = pipeline::CaseFiles { jobs, collected: &collected, unfit: &unfit };
    let judged = pipeline::judge_files(plan, &effective, &files, &planned.catalogue, store).await?;
    if let Some(kept) = collect::keep(&launched, &collected, judged.verdict.end, folders, store).await? {
        store.write_json(&folder.join("reports.json"), &kept)?;
    }
    Ok(judged)
}
