//! Settings of a store from the environment, looked at before anything is made of them. A value that is wrong is named by
//! its variable and never shown.

use base::text::show;
use config::toml_reader::file;
use reqwest::Url;
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// Values that may have blanks: paths, and what is JSON or PEM, which may have lines.
const FREE: [&str; 7] = [
    "_file",
    "_path",
    "service_account",
    "service_account_key",
    "application_credentials",
    "certificate",
    "proxy_excludes",
];

/// Fails at the first variable that a store's crate knows and whose value no request can hold.
pub(super) fn check_values(
    variables: impl Iterator<Item = (String, String)>,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    for (name, value) in variables {
        let lower = name.to_ascii_lowercase();
        if !is_known(&lower) {
            continue;
        }
        if !FREE.iter().any(|free| lower.ends_with(free)) && !is_visible(&value) {
            return Err(format!(
                "{name} is empty, or has a blank, a line's end or another character that no request can hold"
            ));
        }
        let is_endpoint = ["_endpoint", "endpoint_url", "endpoint_url_s3", "base_url"];
        if is_endpoint.iter().any(|end| lower.ends_with(end)) && !lower.contains("metadata") {
            check_endpoint(&name, &value)?;
        }
        if ["region", "account_name"].iter().any(|end| lower.ends_with(end)) && !is_label(&value) {
            return Err(format!("{name} has other characters than letters, digits and `-`"));
        }
    }
    Ok(())
}

/// The variables of this process that are text.
pub(super) fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Whether a header can hold it.
pub(super) fn is_visible(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic())
}

/// It becomes a part of a host's name.
fn is_label(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// It becomes a part of a host's name, or of a path.
pub(super) fn check_bucket(bucket: &str) -> Result<(), String> {
    let is_plain = bucket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._$".contains(&byte));
    let begins = bucket.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '$');
    match is_plain && begins && !bucket.contains("..") && bucket.len() <= 222 {
        true => Ok(()),
        false => Err(format!("`{}` is not the name of a bucket", show(bucket))),
    }
}

/// Without TLS everybody on the network between reads what is sent and can use its signatures.
pub(super) fn check_endpoint(name: &str, endpoint: &str) -> Result<(), String> {
    // Readers of URLs differ in what they make of other characters.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]".contains(c);
    let url = Url::parse(endpoint).ok().filter(|_| endpoint.chars().all(is_plain));
    let url = url.filter(|url| url.has_host() && ["http", "https"].contains(&url.scheme()));
    let Some(url) = url else {
        return Err(format!("{name} is no URL such as https://HOST:PORT; it has no name, password or query"));
    };
    match url.scheme() == "https" || is_near(&url) {
        true => Ok(()),
        false => Err(format!(
            "{name}: the endpoint http://{} is not encrypted; use https, or http to a loopback or private address only",
            show(url.host_str().unwrap_or_default())
        )),
    }
}

/// This machine, or an address of a private network.
pub(super) fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

/// A key file can name an endpoint of its own. The store's crate would wait for a pipe, read a device without an end, and
/// take an endpoint from what is no text; a file that is absent is the crate's to report.
pub(super) fn check_key_file(path: Option<String>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let text = match file::read(Path::new(&path)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("the key file {}: {error}", show(&path))),
    };
    let key: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    match key.get("gcs_base_url").and_then(|url| url.as_str()) {
        Some(url) => check_endpoint("gcs_base_url of the key file", url),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_for_near_endpoints_only_however_it_is_written() {
        for (endpoint, is_allowed) in [
            ("http://127.0.0.1:9000", true),
            ("http://localhost:9000/x", true),
            ("http://[::1]:9000", true),
            ("http://10.1.2.3", true),
            ("https://s3.example.com", true),
            ("HTTPS://s3.example.com", true),
            ("http://s3.example.com", false),
            ("HTTP://s3.example.com", false),
            ("hTTp://8.8.8.8:80", false),
            ("http:8.8.8.8", false),
            ("http:\\\\8.8.8.8", false),
            ("http://8.8.8.8:80", false),
            ("http://127.0.0.1@8.8.8.8", false),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1?x=", false),
            ("http://127.0.0.1:99999", false),
            ("ftp://127.0.0.1", false),
            ("not a url", false),
            ("", false),
        ] {
            assert_eq!(check_endpoint("X", endpoint).is_ok(), is_allowed, "{endpoint}");
        }
    }

    #[test]
    fn values_that_no_request_can_hold_are_named_by_their_variable_and_not_shown() {
        let check = |name: &str, value: &str| {
            check_values([(name.to_owned(), value.to_owned())].into_iter(), &|name| name != "aws_profile")
        };
        for (name, value) in [
            ("AWS_ACCESS_KEY_ID", "hunter2\n"),
            ("AWS_SECRET_ACCESS_KEY", "hunter 2"),
            ("AWS_SESSION_TOKEN", "hunter2\n"),
            ("AWS_REGION", "hunter2/x"),
            ("AWS_REGION", ""),
            ("AWS_DEFAULT_REGION", "hunter2#"),
            ("AWS_ENDPOINT_URL", "hunter2"),
            ("AWS_ENDPOINT_URL_S3", "HTTP://hunter2.example.com?x"),
            ("GOOGLE_BASE_URL", "hunter2"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "hunter2/x"),
        ] {
            let why = check(name, value).expect_err(name);
            assert!(why.contains(name) && !why.contains("hunter2"), "{why}");
        }
        for (name, value) in [
            ("AWS_PROFILE", "my profile"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "/a folder/token"),
            ("GOOGLE_SERVICE_ACCOUNT_KEY", "{\n}\n"),
            ("AWS_REGION", "us-east-1"),
        ] {
            check(name, value).expect(name);
        }
    }

    #[test]
    fn buckets_that_would_change_the_address_are_refused() {
        for name in ["bucket", "my.bucket-1_x", "$web"] {
            check_bucket(name).expect(name);
        }
        for name in ["", "a b", "..", "a..b", "x:80", "a%2fb", "-a", "é"] {
            assert!(check_bucket(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_key_file_names_no_far_endpoint_without_tls() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = || Some(file.path().display().to_string());
        for (url, is_allowed) in
            [("http://8.8.8.8:1", false), ("HTTP://8.8.8.8", false), ("https://g.example", true)]
        {
            std::fs::write(file.path(), format!("{{\"gcs_base_url\": \"{url}\"}}")).expect("written");
            assert_eq!(check_key_file(path()).is_ok(), is_allowed, "{url}");
        }
        let device = check_key_file(Some("/dev/zero".to_owned()));
        assert_eq!(device, Err("the key file /dev/zero: not a regular file".to_owned()));
    }
}
