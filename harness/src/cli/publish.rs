//! `harness publish`: a stored run or a folder, sent to an object store.

use super::{duration, home};
use crate::error::{self, Error};
use crate::publish::{self, Patience, Source};
use crate::session::stored;
use clap::Args;
use model::exit_code;
use std::io;
use std::path::Path;

const ABOUT: &str = "Send a run or a folder to an object store: S3, Azure, Google, or a folder.";

const LONG_ABOUT: &str = "\
Send a run or a folder to an object store: S3, Azure, Google, or a folder.

A claim is taken first, so that no two publications write below one prefix; the manifest with the digest of every file comes \
last. Nothing is overwritten. The same command resumes a publication that was interrupted.

Credentials come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, \
AWS_ENDPOINT_URL, or the role of the machine or pod; AZURE_STORAGE_*; GOOGLE_SERVICE_ACCOUNT.

Exit codes: 0 published; 2 refused, with the reason; 3 interrupted, the same command resumes it.";

/// `harness publish`
#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT)]
pub(super) struct PublishArgs {
    /// The run: its id, the beginning of it, `latest`, or its folder; or another folder
    #[arg(value_name = "RUN|DIR")]
    source: String,
    /// Where to: s3://BUCKET/PREFIX, az://CONTAINER/PREFIX, gs://BUCKET/PREFIX or file:///FOLDER
    #[arg(value_name = "URL")]
    url: String,
    /// Only look for secrets and print what would be sent
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    requests: RequestArgs,
}

/// How patient requests are.
#[derive(Debug, Args)]
pub(super) struct RequestArgs {
    /// Give up a request after this time; 16 MiB go with one request
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "2m")]
    request_timeout: u64,
    /// Repeat a request that failed for a reason that may pass
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=20), default_value_t = 8)]
    retries: u32,
}

impl RequestArgs {
    pub(super) fn patience(&self) -> Patience {
        Patience { request_timeout_s: self.request_timeout, retries: self.retries }
    }
}

pub(super) fn run(args: &PublishArgs) -> Result<i32, Error> {
    let home = home()?;
    let path = Path::new(&args.source);
    let is_folder = path.is_dir() && !path.join("plan.json").exists();
    let source = match is_folder && home.find_run(&args.source).is_err() {
        true => Source::Folder(
            path.canonicalize().map_err(|why| Error::Usage(format!("{}: {why}", args.source)))?,
        ),
        false => Source::Run(Box::new(stored::open(&home, &args.source).map_err(Error::Usage)?)),
    };
    let patience = args.requests.patience();
    let done = publish::publish(&home, &source, &args.url, patience, args.dry_run, &mut io::stdout());
    Ok(ended(done))
}

/// The exit code, with the reason printed.
pub(super) fn ended(done: Result<(), publish::Failure>) -> i32 {
    match done {
        Ok(()) => exit_code::PASSED,
        Err(failure) => error::end(Err(failure.into())),
    }
}
