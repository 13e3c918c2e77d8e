//! A prefix of an object store, or a folder, by its URL; and requests to it, each bounded in time and number.

use super::connector::Connector;
use super::failure::{Answer, Failure};
use super::object_name::CLAIM;
use super::profile;
use super::settings::{check_bucket, check_key_file, check_values, is_visible, variables};
use base::digest::Sum;
use base::text::show;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, AzureCredential, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, RetryConfig,
};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// How long a person waits to learn that there are no credentials.
const CREDENTIALS: Duration = Duration::from_secs(10);
const LONGEST_PREFIX: usize = 256;
const SCHEMES: &str = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER";
/// How often a conditional write without an answer is repeated; each waits for the whole time of a request.
const REPEATS: u32 = 3;
/// What is read of an object at once, so that each request is bounded.
const CHUNK: u64 = 16 << 20;

/// How long and how often is tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) request_timeout_s: u64,
    pub(crate) retries: u32,
}

enum Backend {
    S3(AmazonS3),
    Azure(MicrosoftAzure),
    Google(GoogleCloudStorage),
    Folder(LocalFileSystem, PathBuf),
}

/// Where a publication lies.
pub(super) struct Prefix {
    url: String,
    root: Path,
    backend: Backend,
    patience: Patience,
}

/// What came of writing an object that must not be there.
pub(super) enum Put {
    /// With its tag.
    Written(Option<String>),
    Exists,
}

impl Prefix {
    /// By its URL; nothing is sent yet. `make`: a folder that is not there is made.
    pub(super) fn open(url: &str, patience: Patience, make: bool) -> Result<Prefix, Failure> {
        let refused = |why: &dyn std::fmt::Display| Failure::refused(format!("`{}`: {why}", show(url)));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused(&format!("expected {SCHEMES}")))?;
        let rest = rest.trim_end_matches('/');
        if rest.contains(['?', '#', '@']) || rest.contains(char::is_control) {
            return Err(refused(
                &"a URL has no query and no credentials here: they come from the environment",
            ));
        }
        if scheme == "file" {
            return Prefix::in_folder(rest, patience, make).map_err(|why| refused(&why));
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() || prefix.is_empty() {
            return Err(refused(&format!("expected {SCHEMES}")));
        }
        let root = Path::parse(prefix).map_err(|error| refused(&error))?;
        if prefix.len() > LONGEST_PREFIX {
            return Err(refused(&format!("the prefix has {} bytes, limit {LONGEST_PREFIX}", prefix.len())));
        }
        check_bucket(bucket).map_err(|why| refused(&why))?;
        let backend = match scheme {
            "s3" => s3(bucket, patience),
            "gs" => google(bucket, patience),
            "az" => azure(bucket, patience),
            _ => Err(format!("expected {SCHEMES}")),
        };
        let backend = backend.map_err(|why| refused(&why))?;
        Ok(Prefix { url: format!("{scheme}://{rest}"), root, backend, patience })
    }

    fn in_folder(rest: &str, patience: Patience, make: bool) -> Result<Prefix, String> {
        let folder = PathBuf::from(rest);
        if !folder.is_absolute() {
            return Err("expected file:///FOLDER".to_owned());
        }
        if rest.split('/').any(|name| name == "." || name == "..") {
            return Err("expected file:///FOLDER without `.` and `..`".to_owned());
        }
        if folder.metadata().is_ok_and(|facts| !facts.is_dir()) {
            return Err("it is not a folder".to_owned());
        }
        if make {
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        }
        let store =
            LocalFileSystem::new_with_prefix(&folder).map_err(|_| "there is no such folder".to_owned())?;
        let backend = Backend::Folder(store, folder);
        Ok(Prefix { url: format!("file://{rest}"), root: Path::default(), backend, patience })
    }

    /// As it was typed, without a slash at its end.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Fails soon where this machine has no credentials.
    pub(super) async fn check_credentials(&self) -> Result<(), Failure> {
        let unsigned = match &self.backend {
            Backend::S3(_) => "AWS_SKIP_SIGNATURE",
            Backend::Azure(_) => "AZURE_SKIP_SIGNATURE",
            Backend::Google(_) | Backend::Folder(..) => "GOOGLE_SKIP_SIGNATURE",
        };
        if is_set(unsigned) {
            return Ok(());
        }
        let asked = async {
            match &self.backend {
                Backend::S3(store) => store.credentials().get_credential().await.map(|given| {
                    let token = given.token.as_deref();
                    is_visible(&given.key_id) && token.is_none_or(is_visible)
                }),
                Backend::Azure(store) => store.credentials().get_credential().await.map(|given| {
                    let AzureCredential::BearerToken(token) = &*given else { return true };
                    is_visible(token)
                }),
                Backend::Google(store) => {
                    let given = store.credentials().get_credential().await;
                    given.map(|given| given.bearer.is_empty() || is_visible(&given.bearer))
                }
                Backend::Folder(..) => Ok(true),
            }
        };
        let why = match timeout(CREDENTIALS, asked).await {
            Ok(Ok(true)) => return Ok(()),
            Ok(Ok(false)) => "they have characters that no request can hold".to_owned(),
            Ok(Err(error)) => Answer::new(&error).without_hint(),
            Err(_) => format!("none within {} s", CREDENTIALS.as_secs()),
        };
        let advice = match &self.backend {
            Backend::S3(_) => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; for SSO and roles: `eval \"$(aws configure export-credentials \
                 --format env)\"`"
            }
            Backend::Azure(_) => "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
            _ => "set GOOGLE_SERVICE_ACCOUNT to the path of a key file",
        };
        Err(Failure::refused(format!("{}: no credentials could be got: {why}; {advice}", self.url)))
    }

    fn key(&self, inner: &str) -> Path {
        let whole = format!("{}/{inner}", self.root);
        // Our keys are encoded already, and must not be encoded a second time.
        Path::parse(&whole).unwrap_or_else(|_| Path::from(whole))
    }

    fn store(&self) -> &dyn ObjectStore {
        match &self.backend {
            Backend::S3(store) => store,
            Backend::Azure(store) => store,
            Backend::Google(store) => store,
            Backend::Folder(store, _) => store,
        }
    }

    /// Uploads in parts that the next process can go on with, where the store has them.
    fn parts(&self) -> Option<&dyn MultipartStore> {
        match &self.backend {
            Backend::S3(store) => Some(store),
            Backend::Azure(store) => Some(store),
            Backend::Google(store) => Some(store),
            Backend::Folder(..) => None,
        }
    }

    /// Whether uploads in parts outlive the process.
    pub(super) fn has_lasting_uploads(&self) -> bool {
        self.parts().is_some()
    }

    /// Of an object, for a message.
    pub(super) fn failure(&self, inner: &str, error: &object_store::Error) -> Failure {
        Failure::from_answer(&format!("{}/{inner}", self.url), &Answer::new(error))
    }

    /// The first object below the prefix, by its key there.
    pub(super) async fn first_object(&self) -> Result<Option<String>, Failure> {
        let mut listed = self.store().list(Some(&self.root).filter(|root| !root.as_ref().is_empty()));
        let first = self.bounded("", listed.try_next()).await?.map_err(|error| self.failure("", &error))?;
        Ok(first.map(|meta| {
            show(meta.location.as_ref().trim_start_matches(self.root.as_ref()).trim_start_matches('/'))
        }))
    }

    /// The objects below the prefix, by their keys there, with their sizes: at most so many, or an error.
    pub(super) async fn list(&self, most: usize) -> Result<Vec<(String, u64)>, Failure> {
        let root = self.root.as_ref();
        let mut listed = self.store().list(Some(&self.root).filter(|root| !root.as_ref().is_empty()));
        let mut found = Vec::new();
        loop {
            let next = self.bounded("", listed.try_next()).await?;
            let Some(meta) = next.map_err(|error| self.failure("", &error))? else { return Ok(found) };
            if found.len() == most {
                return Err(Failure::refused(format!("{}: more than {most} objects lie there", self.url)));
            }
            let key = meta.location.as_ref();
            let inner = key.strip_prefix(root).map_or(key, |rest| rest.trim_start_matches('/'));
            found.push((inner.to_owned(), meta.size));
        }
    }

    /// The names directly below the prefix that have objects below them. No link is among them.
    pub(super) async fn folders(&self) -> Result<Vec<String>, Failure> {
        let root = Some(&self.root).filter(|root| !root.as_ref().is_empty());
        let listed = self.bounded("", self.store().list_with_delimiter(root)).await?;
        let listed = listed.map_err(|error| self.failure("", &error))?;
        let names = listed.common_prefixes.iter().filter_map(|path| path.filename().map(str::to_owned));
        let is_own = |name: &String| match &self.backend {
            Backend::Folder(_, folder) => folder.join(name).symlink_metadata().is_ok_and(|it| it.is_dir()),
            _ => true,
        };
        Ok(names.filter(is_own).collect())
    }

    /// A part of an object of `of` bytes.
    pub(super) async fn range(&self, inner: &str, range: Range<u64>, of: u64) -> Result<Vec<u8>, Failure> {
        self.check_regular(inner)?;
        self.chunk(inner, range.start, range.end.saturating_sub(range.start), of).await
    }

    /// Writes an object that must not be there. A request that may have been carried out is repeated: if the object is
    /// there then, whoever calls must look whether it is the same.
    pub(super) async fn put_new(&self, inner: &str, bytes: &Bytes) -> Result<Put, Failure> {
        self.check_regular(inner)?;
        self.try_put_new(inner, bytes).await.map_err(|answer| match answer.is_unsupported() && inner == CLAIM {
            true => Failure::refused(format!(
                "{}: the store has no conditional writes ({answer}), so two publications could overwrite one another; \
                 nothing was sent; choose another store, or copy the file of `harness bundle`",
                self.url
            )),
            false => Failure::from_answer(&format!("{}/{inner}", self.url), &answer),
        })
    }

    async fn try_put_new(&self, inner: &str, bytes: &Bytes) -> Result<Put, Answer> {
        let mut tries = 0;
        loop {
            let options = PutOptions::from(PutMode::Create);
            let error = match self.store().put_opts(&self.key(inner), bytes.clone().into(), options).await {
                Ok(result) => return Ok(Put::Written(result.e_tag)),
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                    return Ok(Put::Exists);
                }
                Err(error) => error,
            };
            let answer = Answer::new(&error);
            // The crate repeats what was answered with a status that may pass, but no write that is conditional.
            if !answer.is_unknown || tries >= self.patience.retries.min(REPEATS) {
                return Err(answer);
            }
            tries += 1;
            tokio::time::sleep(pause(tries)).await;
        }
    }

    /// Begins an upload in parts; its id.
    pub(super) async fn begin_upload(&self, inner: &str) -> Result<String, object_store::Error> {
        match self.parts() {
            Some(parts) => parts.create_multipart(&self.key(inner)).await,
            None => Err(unsupported()),
        }
    }

    /// Sends one part; by what it is named when the upload is completed.
    pub(super) async fn put_part(
        &self,
        inner: &str,
        id: &str,
        index: usize,
        bytes: Bytes,
    ) -> Result<String, object_store::Error> {
        let parts = self.parts().ok_or_else(unsupported)?;
        let part = parts.put_part(&self.key(inner), &id.to_owned(), index, bytes.into()).await?;
        Ok(part.content_id)
    }

    /// Makes an object of the parts.
    pub(super) async fn complete(
        &self,
        inner: &str,
        id: &str,
        parts: Vec<String>,
    ) -> Result<(), object_store::Error> {
        let store = self.parts().ok_or_else(unsupported)?;
        let parts = parts.into_iter().map(|content_id| PartId { content_id }).collect();
        store.complete_multipart(&self.key(inner), &id.to_owned(), parts).await.map(drop)
    }

    /// Writes a large file into a folder, from its parts in their order; it has its name when it is complete.
    pub(super) async fn write_parts(
        &self,
        inner: &str,
        count: usize,
        read: &mut dyn FnMut(usize) -> Result<Bytes, Failure>,
    ) -> Result<(), Failure> {
        self.check_regular(inner)?;
        let failed = |error: object_store::Error| self.failure(inner, &error);
        let mut upload = self.store().put_multipart(&self.key(inner)).await.map_err(failed)?;
        for part in 0..count {
            let sent = match read(part) {
                Ok(bytes) => upload.put_part(bytes.into()).await.map_err(failed),
                Err(failure) => Err(failure),
            };
            if let Err(failure) = sent {
                // What was begun is removed as far as that is possible; why it ended counts.
                let _ = upload.abort().await;
                return Err(failure);
            }
        }
        upload.complete().await.map(drop).map_err(failed)
    }

    /// The size and the tag of an object, where it is there.
    pub(super) async fn head(&self, inner: &str) -> Result<Option<ObjectMeta>, Failure> {
        self.check_regular(inner)?;
        match self.store().head(&self.key(inner)).await {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure(inner, &error)),
        }
    }

    /// A small object, of at most so many bytes; none where it is not there.
    pub(super) async fn read(&self, inner: &str, most: u64) -> Result<Option<Vec<u8>>, Failure> {
        let Some(meta) = self.head(inner).await? else { return Ok(None) };
        if meta.size > most {
            return Err(Failure::refused(format!("{}/{inner}: {} bytes, limit {most}", self.url, meta.size)));
        }
        let mut bytes = Vec::new();
        self.read_by(inner, meta.size, &mut |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })
        .await?;
        Ok(Some(bytes))
    }

    /// The digest of an object of that size.
    pub(super) async fn digest(&self, inner: &str, bytes: u64) -> Result<String, Failure> {
        let mut sum = Sum::default();
        self.read_by(inner, bytes, &mut |chunk| {
            sum.update(chunk);
            Ok(())
        })
        .await?;
        Ok(sum.to_hex())
    }

    /// Gives an object of that size piece by piece. One of another size is an error, whatever else it says of itself.
    pub(super) async fn read_by(
        &self,
        inner: &str,
        bytes: u64,
        give: &mut (dyn FnMut(&[u8]) -> std::io::Result<()> + Send),
    ) -> Result<(), Failure> {
        self.check_regular(inner)?;
        let mut from = 0;
        loop {
            let most = CHUNK.min(bytes - from);
            let chunk = self.chunk(inner, from, most, bytes).await?;
            give(&chunk).map_err(|error| Failure::interrupted(format!("{inner}: {error}")))?;
            from += most;
            if from >= bytes {
                return Ok(());
            }
        }
    }

    /// One piece. The crate goes on where a connection was cut, as long as the object is the same.
    async fn chunk(&self, inner: &str, from: u64, most: u64, of: u64) -> Result<Vec<u8>, Failure> {
        match self.bounded(inner, self.try_chunk(inner, from, most, of)).await? {
            Ok(Some(chunk)) => Ok(chunk),
            Ok(None) => {
                let url = &self.url;
                Err(Failure::refused(format!(
                    "{url}/{inner}: the object has not the {of} bytes of its entry"
                )))
            }
            Err(error) => Err(self.failure(inner, &error)),
        }
    }

    async fn try_chunk(
        &self,
        inner: &str,
        from: u64,
        most: u64,
        of: u64,
    ) -> Result<Option<Vec<u8>>, object_store::Error> {
        // A range of an object without bytes is no range.
        let range = (of > 0).then(|| GetRange::Bounded(from..from + most));
        let options = GetOptions { range, ..GetOptions::default() };
        let got = self.store().get_opts(&self.key(inner), options).await?;
        if got.meta.size != of || got.range != (from..from + most) {
            return Ok(None);
        }
        let mut stream = got.into_stream();
        let mut chunk = Vec::new();
        while let Some(bytes) = stream.try_next().await? {
            if chunk.len() as u64 + bytes.len() as u64 > most {
                return Ok(None);
            }
            chunk.extend_from_slice(&bytes);
        }
        Ok((chunk.len() as u64 == most).then_some(chunk))
    }

    /// Removes the claim of this process from a store in which claims mean nothing.
    pub(super) async fn remove_claim(&self) -> Result<(), Failure> {
        self.store().delete(&self.key(CLAIM)).await.map_err(|error| self.failure(CLAIM, &error))
    }

    /// Nothing is read or written through a link, and opening a pipe would wait for ever.
    fn check_regular(&self, inner: &str) -> Result<(), Failure> {
        let Backend::Folder(_, folder) = &self.backend else { return Ok(()) };
        let mut path = folder.clone();
        let mut names = inner.split('/').peekable();
        while let Some(name) = names.next() {
            path.push(name);
            let Ok(facts) = path.symlink_metadata() else { return Ok(()) };
            let is_last = names.peek().is_none();
            if facts.is_symlink() || (is_last && !facts.is_file()) || (!is_last && !facts.is_dir()) {
                let what =
                    if is_last { "it is not a regular file" } else { "it lies below a link or a file" };
                return Err(Failure::refused(format!("{}/{inner}: {what}", self.url)));
            }
        }
        Ok(())
    }

    /// Removes what a process that was killed left beside objects of a folder that it had not finished writing.
    pub(super) fn remove_leftovers(&self, keys: &BTreeSet<&str>) -> Result<(), Failure> {
        let Backend::Folder(_, folder) = &self.backend else { return Ok(()) };
        for path in store::every_file(folder).map_err(Failure::interrupted)? {
            let base = path.to_str().and_then(|path| path.rsplit_once('#'));
            let is_ours = base.is_some_and(|(base, number)| {
                keys.contains(base) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            });
            if is_ours {
                let path = folder.join(path);
                std::fs::remove_file(&path)
                    .map_err(|error| Failure::interrupted(format!("{}: {error}", path.display())))?;
            }
        }
        Ok(())
    }

    /// The crate ends its own tries before this; a file system that hangs ends here.
    async fn bounded<T>(&self, inner: &str, request: impl Future<Output = T>) -> Result<T, Failure> {
        let limit = Duration::from_secs(self.patience.request_timeout_s.saturating_mul(4).saturating_add(30));
        let over =
            |_| Failure::interrupted(format!("{}/{inner}: no answer within {} s", self.url, limit.as_secs()));
        timeout(limit, request).await.map_err(over)
    }
}

fn unsupported() -> object_store::Error {
    object_store::Error::NotSupported { source: "uploads in parts".into() }
}

/// Twice as long after each try, and never longer than 10 s.
fn pause(tries: u32) -> Duration {
    Duration::from_millis(100).saturating_mul(1 << tries.min(7)).min(Duration::from_secs(10))
}

fn retry(patience: Patience) -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(10), ..BackoffConfig::default() };
    let retry_timeout = Duration::from_secs(patience.request_timeout_s.saturating_mul(2).min(240));
    RetryConfig { backoff, max_retries: patience.retries as usize, retry_timeout }
}

fn seconds(patience: Patience) -> String {
    format!("{}s", patience.request_timeout_s)
}

fn connector(patience: Patience) -> Connector {
    Connector { request_timeout: Duration::from_secs(patience.request_timeout_s) }
}

fn s3(bucket: &str, patience: Patience) -> Result<Backend, String> {
    check_values(variables().filter(|(name, _)| name.starts_with("AWS_")), &|name| {
        name.parse::<AmazonS3ConfigKey>().is_ok()
    })?;
    let builder = with_profile(AmazonS3Builder::from_env())?;
    if is_set("AWS_EC2_METADATA_DISABLED") {
        let ways = [
            AmazonS3ConfigKey::AccessKeyId,
            AmazonS3ConfigKey::WebIdentityTokenFile,
            AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
            AmazonS3ConfigKey::ContainerCredentialsFullUri,
        ];
        let is_unsigned =
            builder.get_config_value(&AmazonS3ConfigKey::SkipSignature).is_some_and(|set| set == "true");
        if !is_unsigned && ways.iter().all(|way| builder.get_config_value(way).is_none()) {
            return Err(
                "no credentials: AWS_EC2_METADATA_DISABLED is set and AWS_ACCESS_KEY_ID is not".to_owned()
            );
        }
    }
    let builder = builder
        .with_bucket_name(bucket)
        .with_http_connector(connector(patience))
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), seconds(patience))
        .with_retry(retry(patience));
    builder.build().map(Backend::S3).map_err(|error| Answer::new(&error).to_string())
}

/// What the environment does not have comes from a profile.
fn with_profile(builder: AmazonS3Builder) -> Result<AmazonS3Builder, String> {
    let is_given = |key: AmazonS3ConfigKey| builder.get_config_value(&key).is_some();
    let is_unsigned =
        builder.get_config_value(&AmazonS3ConfigKey::SkipSignature).is_some_and(|set| set == "true");
    if is_given(AmazonS3ConfigKey::AccessKeyId) || is_unsigned {
        return Ok(builder);
    }
    let others = [
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ];
    let Some(found) = profile::read(others.into_iter().any(is_given))? else { return Ok(builder) };
    let (key, secret) = found.keys.unzip();
    let missing = [
        (AmazonS3ConfigKey::AccessKeyId, key),
        (AmazonS3ConfigKey::SecretAccessKey, secret),
        (AmazonS3ConfigKey::Token, found.token),
        (AmazonS3ConfigKey::Region, found.region),
        (AmazonS3ConfigKey::Endpoint, found.endpoint),
    ];
    Ok(missing.into_iter().fold(builder, |builder, (key, value)| match value {
        Some(value) if builder.get_config_value(&key).is_none() => builder.with_config(key, value),
        _ => builder,
    }))
}

fn azure(container: &str, patience: Patience) -> Result<Backend, String> {
    check_values(variables().filter(|(name, _)| name.starts_with("AZURE_")), &|name| {
        name.parse::<AzureConfigKey>().is_ok()
    })?;
    let builder = MicrosoftAzureBuilder::from_env();
    let is_named = [AzureConfigKey::AccountName, AzureConfigKey::UseEmulator]
        .iter()
        .any(|key| builder.get_config_value(key).is_some_and(|value| value != "false"));
    if !is_named {
        return Err("no account: set AZURE_STORAGE_ACCOUNT_NAME".to_owned());
    }
    let builder = builder
        .with_container_name(container)
        .with_http_connector(connector(patience))
        .with_config(AzureConfigKey::Client(ClientConfigKey::Timeout), seconds(patience))
        .with_retry(retry(patience));
    builder.build().map(Backend::Azure).map_err(|error| Answer::new(&error).to_string())
}

fn google(bucket: &str, patience: Patience) -> Result<Backend, String> {
    check_values(variables().filter(|(name, _)| name.starts_with("GOOGLE_")), &|name| {
        name.parse::<GoogleConfigKey>().is_ok()
    })?;
    let builder = GoogleCloudStorageBuilder::from_env();
    check_key_file(builder.get_config_value(&GoogleConfigKey::ServiceAccount))?;
    let builder = builder
        .with_bucket_name(bucket)
        .with_http_connector(connector(patience))
        .with_config(GoogleConfigKey::Client(ClientConfigKey::Timeout), seconds(patience))
        .with_retry(retry(patience));
    builder.build().map(Backend::Google).map_err(|error| Answer::new(&error).to_string())
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { request_timeout_s: 5, retries: 1 };

    #[test]
    fn urls_that_are_none_or_bring_credentials_are_refused() {
        for (url, why) in [
            ("bucket/prefix", "expected s3://"),
            ("ftp://b/p", "expected s3://"),
            ("s3://bucket", "expected s3://"),
            ("s3:///prefix", "expected s3://"),
            ("s3://key:secret@bucket/prefix", "no credentials here"),
            ("s3://bucket/prefix?X-Amz-Signature=1", "no query"),
            ("s3://bucket/a//b", "empty"),
            ("s3://bucket/../b", ".."),
            ("s3://a b/p", "not the name of a bucket"),
            ("s3://../p", "not the name of a bucket"),
            ("s3://x:80/p", "not the name of a bucket"),
            ("gs://a%2fb/p", "not the name of a bucket"),
            ("file:///tmp/../etc", "without `.` and `..`"),
            ("file:///etc/hostname", "not a folder"),
            ("file://relative", "file:///FOLDER"),
            ("file:///no/such/folder/anywhere", "no such folder"),
        ] {
            let error =
                Prefix::open(url, PATIENCE, false).err().unwrap_or_else(|| panic!("{url} was opened"));
            assert!(error.to_string().contains(why), "{url}: {error}");
            assert_eq!(error.exit_code(), 2, "{url}");
        }
        let long = format!("s3://bucket/{}", "p".repeat(257));
        assert!(
            Prefix::open(&long, PATIENCE, false).err().expect("refused").to_string().contains("limit 256")
        );
    }

    fn folder() -> (tempfile::TempDir, Prefix) {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("file://{}/shared", folder.path().display());
        let prefix = Prefix::open(&url, PATIENCE, true).unwrap_or_else(|why| panic!("{why}"));
        (folder, prefix)
    }

    #[tokio::test]
    async fn no_link_below_the_prefix_is_followed() {
        let (folder, prefix) = folder();
        let outside = folder.path().join("outside");
        std::fs::create_dir(&outside).expect("made");
        std::fs::write(outside.join("there"), "secret").expect("written");
        std::os::unix::fs::symlink(&outside, folder.path().join("shared/files")).expect("linked");
        let bytes = Bytes::from_static(b"x");
        assert!(prefix.put_new("files/a", &bytes).await.is_err());
        assert!(prefix.write_parts("files/a", 1, &mut |_| Ok(Bytes::new())).await.is_err());
        assert!(prefix.read("files/there", 100).await.is_err());
        assert!(prefix.head("files/there").await.is_err());
        assert_eq!(std::fs::read_dir(&outside).expect("read").count(), 1);
    }

    #[test]
    fn only_leftovers_of_our_own_objects_are_removed() {
        let (folder, prefix) = folder();
        let shared = folder.path().join("shared");
        for name in ["claim.json", "claim.json#1", "a#x", "b#1", "claim.json#"] {
            std::fs::write(shared.join(name), "x").expect("written");
        }
        prefix.remove_leftovers(&BTreeSet::from(["claim.json", "a"])).unwrap_or_else(|why| panic!("{why}"));
        let left = store::every_file(&shared).expect("read");
        assert_eq!(left, ["a#x", "b#1", "claim.json", "claim.json#"].map(PathBuf::from));
    }
}
