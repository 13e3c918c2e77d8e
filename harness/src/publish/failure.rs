//! Why a publication or a fetch ended, in a person's words: the object, the status, what to do. Bodies and queries of a
//! server are never shown, for they may repeat what was sent: tokens and signatures.

use super::connector::refusal;
use base::text::{shorten, show};
use model::exit_code;
use object_store::client::{HttpError, HttpErrorKind};
use std::error::Error;
use std::fmt;

/// The exit code follows from the variant.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What was asked for is wrong, or must not be: nothing was changed, and trying it again changes nothing.
    #[error("{0}")]
    Refused(String),
    /// It began, or could not begin, for a reason that may pass: the same command goes on.
    #[error("{0}")]
    Interrupted(String),
    /// A person or a scheduler ended it, and what it had begun was removed.
    #[error("{1}")]
    Stopped(i32, String),
}

impl Failure {
    /// The code that the program ends with.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Failure::Refused(_) => exit_code::USAGE,
            Failure::Interrupted(_) => exit_code::INCONCLUSIVE,
            Failure::Stopped(code, _) => *code,
        }
    }

    pub(super) fn refused(why: impl fmt::Display) -> Failure {
        Failure::Refused(why.to_string())
    }

    /// By whether what was answered may pass; `what` is the object.
    pub(super) fn from_answer(what: &str, answer: &Answer) -> Failure {
        let why = format!("{what}: {answer}");
        if answer.is_lasting() { Failure::Refused(why) } else { Failure::Interrupted(why) }
    }

    pub(super) fn interrupted(why: impl fmt::Display) -> Failure {
        Failure::Interrupted(why.to_string())
    }
}

/// What a store answered, or why it did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    status: Option<u16>,
    /// The store's own name of the error, such as `SlowDown`.
    code: Option<String>,
    /// Where there is no status: whether the request may have been carried out all the same.
    pub(super) is_unknown: bool,
    /// Whether it was refused on this side, or is an answer that is none in the store's protocol.
    is_odd: bool,
    text: String,
}

const LONGEST: usize = 160;

impl Answer {
    pub(super) fn new(error: &object_store::Error) -> Answer {
        let whole = error.to_string();
        let status = after(&whole, "status code: ").and_then(|rest| rest.get(..3)?.parse().ok());
        let is_missing = matches!(error, object_store::Error::NotFound { .. });
        let status = status.or(is_missing.then_some(404)).filter(|_| refusal(error).is_none());
        let code =
            after(&whole, "<Code>").and_then(|rest| rest.split('<').next()).filter(|code| is_name(code));
        let mut inner: &dyn Error = error;
        let mut kind = None;
        let mut is_system = false;
        while let Some(source) = inner.source() {
            inner = source;
            kind = inner.downcast_ref::<HttpError>().map(HttpError::kind).or(kind);
            is_system |= inner.is::<std::io::Error>();
        }
        let refusal = refusal(error);
        let kind = kind.filter(|_| refusal.is_none());
        let what = match kind {
            _ if status.is_some() => None,
            Some(HttpErrorKind::Connect) => Some("cannot connect"),
            Some(HttpErrorKind::Timeout) => {
                Some("no answer within the time of one request (`--request-timeout`)")
            }
            Some(HttpErrorKind::Interrupted | HttpErrorKind::Request) => Some("the connection was cut"),
            Some(HttpErrorKind::Decode) => Some("the answer cannot be read"),
            _ => None,
        };
        let text = match (status, what) {
            _ if refusal.is_some() => refusal.map(ToString::to_string).unwrap_or_default(),
            (Some(status), _) => format!("status {status}"),
            // The innermost error is the system's or the protocol's; those around it have URLs in them.
            (None, Some(what)) => format!("{what}: {}", clean(&inner.to_string())),
            (None, None) => clean(&inner.to_string()),
        };
        Answer {
            status,
            code: code.map(str::to_owned),
            is_unknown: status.is_none() && kind.is_some_and(|kind| kind != HttpErrorKind::Connect),
            is_odd: status.is_none() && kind.is_none() && (refusal.is_some() || !is_system),
            text,
        }
    }

    /// Whether the store does not know such requests.
    pub(super) fn is_unsupported(&self) -> bool {
        self.status == Some(501) || self.code.as_deref() == Some("NotImplemented")
    }

    /// Whether what was to be completed is not there any more.
    pub(super) fn is_gone(&self) -> bool {
        self.status == Some(404) || matches!(self.code.as_deref(), Some("InvalidBlockList" | "InvalidPart"))
    }

    /// Whether the configuration is wrong, and not the moment.
    fn is_lasting(&self) -> bool {
        let may_pass = matches!(self.code.as_deref(), Some("ExpiredToken" | "RequestTimeout"));
        self.is_odd
            || (!may_pass
                && matches!(self.status, Some(301 | 302 | 307 | 308 | 400 | 401 | 403 | 404 | 405 | 501)))
    }

    /// Without advice, where another is given.
    pub(super) fn without_hint(&self) -> String {
        match &self.code {
            Some(code) => format!("{} {code}", self.text),
            None => self.text.clone(),
        }
    }

    fn hint(&self) -> &'static str {
        match (self.status, self.code.as_deref()) {
            (_, Some("NoSuchBucket" | "ContainerNotFound")) => "; there is no such bucket",
            (_, Some("ExpiredToken")) => "; the session has expired: renew the credentials",
            (_, Some("RequestTimeTooSkewed")) => "; the clock of this machine is wrong",
            (_, Some("SignatureDoesNotMatch" | "InvalidAccessKeyId")) => "; the credentials are wrong",
            (_, Some("PermanentRedirect" | "AuthorizationHeaderMalformed")) | (Some(301 | 307), _) => {
                "; the bucket is in another region: set AWS_REGION"
            }
            (Some(401 | 403), _) => {
                "; the credentials do not allow it: listing, reading and writing below the prefix are needed"
            }
            (Some(429 | 503), _) => "; the store is busy",
            _ => "",
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        f.write_str(self.hint())
    }
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

fn is_name(code: &str) -> bool {
    !code.is_empty() && code.len() <= 60 && code.chars().all(|letter| letter.is_ascii_alphanumeric())
}

/// One line without secrets and without the queries of URLs.
fn clean(text: &str) -> String {
    let without_query = |word: &str| match word.split_once('?') {
        Some((before, _)) if word.contains("://") => format!("{before}?..."),
        _ => word.to_owned(),
    };
    let text = text.split(' ').map(without_query).collect::<Vec<_>>().join(" ");
    shorten(&show(&store::redactor().text(&text)), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn an_answer_is_its_status_and_code_without_the_body() {
        let body = "Error performing PUT http://h/b/k?X-Amz-Signature=abc in 1s - Server returned non-2xx status code: 503 \
                    Service Unavailable: <Error><Code>SlowDown</Code><Message>hunter2</Message></Error>";
        let answer = Answer::new(&generic(body));
        assert_eq!(answer.to_string(), "status 503 SlowDown; the store is busy");
        assert!(!answer.is_unsupported() && !answer.is_gone() && !answer.is_unknown);
        let odd = body.replace("SlowDown", "x y\u{1b}[2J");
        assert_eq!(Answer::new(&generic(&odd)).to_string(), "status 503; the store is busy");
        let unsupported = body.replace("503", "501").replace("SlowDown", "NotImplemented");
        assert!(Answer::new(&generic(&unsupported)).is_unsupported());
        assert!(Answer::new(&generic(&body.replace("503", "404"))).is_gone());
    }

    #[test]
    fn other_errors_have_no_query_and_no_secret_and_fit_a_line() {
        let text = format!(
            "cannot read https://h/b?sig=hunter2 AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY {}\n\u{1b}[2J",
            "x".repeat(500)
        );
        let shown = Answer::new(&generic(&text)).to_string();
        assert!(shown.starts_with("cannot read https://h/b?..."), "{shown}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("wJalr") && !shown.contains('\u{1b}'),
            "{shown}"
        );
        assert!(shown.chars().count() <= LONGEST, "{shown}");
    }

    #[test]
    fn answers_that_are_none_in_the_protocol_will_not_pass_and_faults_of_the_system_may() {
        let code = |error| Failure::from_answer("x", &Answer::new(&error)).exit_code();
        assert_eq!(code(generic("no ETag")), 2);
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(code(object_store::Error::Generic { store: "Folder", source: full.into() }), 3);
        let refusal = super::super::connector::Refusal::Redirect(307, "h".to_owned());
        let refused = HttpError::new(HttpErrorKind::Unknown, refusal);
        let answer = Answer::new(&object_store::Error::Generic { store: "S3", source: refused.into() });
        assert!(answer.is_lasting() && !answer.is_unknown);
        assert!(answer.to_string().contains("redirects are not followed"), "{answer}");
    }
}
