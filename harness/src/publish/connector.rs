//! The way out to a store. It follows no redirect, sends nothing unencrypted to far away, and reads no answer without
//! end, whatever the settings or a server say.

use super::settings::is_near;
use base::text::show;
use futures::TryStreamExt;
use futures::future::BoxFuture;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy, Url};
use std::error::Error;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest answer that is no part of an object: a list, an error, a token.
const LONGEST_ANSWER: usize = 16 << 20;
/// All such answers to one client: a list of 100,000 objects has about 50 MiB, and a list may go on for ever.
const MOST_ANSWERS: u64 = 512 << 20;
const CONNECT: Duration = Duration::from_secs(5);

/// Why an exchange was ended on this side. It will be the same next time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "a request to http://{0} would not be encrypted; use https, or http to a loopback or private address only"
    )]
    Unencrypted(String),
    #[error(
        "status {0}: the store sends on to `{1}`, and redirects are not followed: set the region or the endpoint of the bucket"
    )]
    Redirect(u16, String),
    #[error("the answer has more than {LONGEST_ANSWER} bytes")]
    Endless,
    #[error("the store's answers have more than {0} bytes in all, beside objects: a list without end")]
    TooMany(u64),
    #[error("the address of a request is no URL")]
    NoUrl,
}

/// Makes the clients of a store, each request with this time.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) request_timeout: Duration,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = client(options, self.request_timeout)
            .map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })?;
        Ok(HttpClient::new(Guarded::new(client, MOST_ANSWERS)))
    }
}

fn client(options: &ClientOptions, request_timeout: Duration) -> reqwest::Result<Client> {
    let get = |key| options.get_config_value(&key);
    let is_on = |key| get(key).is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1");
    // The services that give credentials to machines answer within a second or are not there.
    let connect = get(ClientConfigKey::ConnectTimeout)
        .and_then(|text| text.strip_suffix('s')?.trim().parse().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .https_only(!is_on(ClientConfigKey::AllowHttp))
        .danger_accept_invalid_certs(is_on(ClientConfigKey::AllowInvalidCertificates))
        .user_agent(concat!("harness/", env!("CARGO_PKG_VERSION")))
        .timeout(request_timeout)
        .connect_timeout(connect.unwrap_or(CONNECT))
        .http1_only()
        // Sizes are those of what is sent.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate();
    if let Some(proxy) = get(ClientConfigKey::ProxyUrl) {
        let excluded = get(ClientConfigKey::ProxyExcludes).and_then(|hosts| NoProxy::from_string(&hosts));
        builder = builder.proxy(Proxy::all(proxy)?.no_proxy(excluded));
    }
    if let Some(certificate) = get(ClientConfigKey::ProxyCaCertificate) {
        builder = builder.add_root_certificate(reqwest::Certificate::from_pem(certificate.as_bytes())?);
    }
    builder.build()
}

#[derive(Debug)]
struct Guarded {
    inner: HttpClient,
    /// Bytes of answers that are no part of an object, so far and at most.
    read: AtomicU64,
    most: u64,
}

impl HttpService for Guarded {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.exchange(request))
    }
}

impl Guarded {
    fn new(client: Client, most: u64) -> Guarded {
        Guarded { inner: HttpClient::new(client), read: AtomicU64::new(0), most }
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let url = Url::parse(&request.uri().to_string()).map_err(|_| refuse(Refusal::NoUrl))?;
        if url.scheme() != "https" && !may_be_plain(&url) {
            return Err(refuse(Refusal::Unencrypted(show(url.host_str().unwrap_or_default()))));
        }
        // Whoever asks for a part of an object counts its bytes.
        let is_object = request.method().as_str() == "GET" && request.headers().contains_key("range");
        let response = self.inner.execute(request).await?;
        let status = response.status();
        if let (true, Some(to)) = (status.is_redirection(), response.headers().get("location")) {
            return Err(refuse(Refusal::Redirect(status.as_u16(), host(&url, to.as_bytes()))));
        }
        if is_object && status.is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let mut whole = Vec::new();
        let mut stream = body.bytes_stream();
        while let Some(bytes) = stream.try_next().await? {
            if whole.len() + bytes.len() > LONGEST_ANSWER {
                return Err(refuse(Refusal::Endless));
            }
            let more = bytes.len() as u64;
            if self.read.fetch_add(more, Ordering::Relaxed).saturating_add(more) > self.most {
                return Err(refuse(Refusal::TooMany(self.most)));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(HttpResponse::from_parts(parts, whole.into()))
    }
}

fn refuse(why: Refusal) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, why)
}

/// The refusal among the causes of an error.
pub(super) fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Refusal> {
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(refusal) = one.downcast_ref() {
            return Some(refusal);
        }
        cause = one.source();
    }
    None
}

/// Near addresses, and the services of clouds that give a machine its credentials.
fn may_be_plain(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let is_link_local = host.parse().is_ok_and(|address: IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(_) => false,
    });
    is_near(url) || is_link_local || host == "metadata.google.internal"
}

/// Where a redirect leads, without its query, which may have a signature.
fn host(from: &Url, to: &[u8]) -> String {
    let to = String::from_utf8_lossy(to);
    let to = from.join(&to).ok().and_then(|url| url.host_str().map(str::to_owned));
    to.map_or_else(|| "no URL".to_owned(), |host| show(&host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::client::HttpRequestBody;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// What comes of a `GET` that is answered with these bytes.
    fn answered(head: &'static str, body_bytes: usize) -> Result<usize, Option<Refusal>> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().expect("asked");
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(head.as_bytes());
            let block = vec![b'x'; 1 << 20];
            for _ in 0..body_bytes >> 20 {
                if connection.write_all(&block).is_err() {
                    break;
                }
            }
        });
        let got = asked(&format!("http://{address}/bucket?list-type=2"));
        serving.join().expect("served");
        got
    }

    fn asked(url: &str) -> Result<usize, Option<Refusal>> {
        let options = ClientOptions::new().with_allow_http(true);
        let connector = Connector { request_timeout: Duration::from_secs(20) };
        let client = connector.connect(&options).expect("a client");
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = url.parse().expect("an address");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let response = client.execute(request).await.map_err(|error| refusal(&error).cloned())?;
            response.into_body().bytes().await.map(|bytes| bytes.len()).map_err(|_| None)
        })
    }

    #[test]
    fn redirects_are_not_followed_and_their_query_is_not_shown() {
        let head =
            "HTTP/1.1 307 T\r\nlocation: http://10.9.9.9:1/x?token=hunter2\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(answered(head, 0), Err(Some(Refusal::Redirect(307, "10.9.9.9".to_owned()))));
    }

    #[test]
    fn answers_without_end_are_left_and_others_are_read() {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        assert_eq!(answered(head, 2 << 20), Ok(2 << 20));
        assert_eq!(answered(head, 64 << 20), Err(Some(Refusal::Endless)));
        let error = "HTTP/1.1 400 Bad\r\nconnection: close\r\n\r\n";
        assert_eq!(answered(error, 64 << 20), Err(Some(Refusal::Endless)));
    }

    #[test]
    fn a_list_that_goes_on_for_ever_is_left_before_it_fills_the_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/bucket?list-type=2", listener.local_addr().expect("an address"));
        let serving = std::thread::spawn(move || {
            for _ in 0..3 {
                let (mut connection, _) = listener.accept().expect("asked");
                let _ = connection.read(&mut [0; 4096]);
                let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
                let _ = connection.write_all(&vec![b'x'; 1 << 20]);
            }
        });
        let options = ClientOptions::new().with_allow_http(true);
        let client = client(&options, Duration::from_secs(20)).expect("a client");
        let client = HttpClient::new(Guarded::new(client, 2 << 20));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let pages: Vec<_> = runtime.block_on(async {
            let mut pages = Vec::new();
            for _ in 0..3 {
                let mut request = HttpRequest::new(HttpRequestBody::empty());
                *request.uri_mut() = url.parse().expect("an address");
                let page = client.execute(request).await.map(drop);
                pages.push(page.map_err(|error| refusal(&error).cloned()));
            }
            pages
        });
        serving.join().expect("served");
        assert_eq!(pages, [Ok(()), Ok(()), Err(Some(Refusal::TooMany(2 << 20)))]);
    }

    #[test]
    fn nothing_is_sent_unencrypted_to_far_away_whoever_named_the_address() {
        for url in
            ["http://8.8.8.8:1/x", "HTTP://8.8.8.8:1/x", "http://s3.example.com/x", "http://[2001:db8::1]/x"]
        {
            assert!(matches!(asked(url), Err(Some(Refusal::Unencrypted(_)))), "{url}");
        }
        let metadata =
            ["http://169.254.169.254/", "http://metadata.google.internal/", "http://[fd00:ec2::254]/"];
        for url in metadata {
            assert!(may_be_plain(&Url::parse(url).expect("a URL")), "{url}");
        }
    }
}
