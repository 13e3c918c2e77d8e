//! Values that are secret by themselves, known by how they begin: keys and tokens of services, addresses that let everybody
//! in, credentials.

use super::body::Body;
use super::escapes;
use super::shapes::{Found, count, has_both_cases, in_address, in_escaped, in_token, in_value, is_word};

/// Beginnings of values that are secret by themselves, and how many characters follow at least.
const VALUES: [(&str, usize); 101] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("hf_", 20),
    ("api_org_", 20),
    ("wandb_v1_", 20),
    ("nvapi-", 20),
    ("sk-", 20),
    ("sk_live_", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxr-", 10),
    ("AIza", 30),
    ("dckr_pat_", 16),
    ("npm_", 30),
    ("ya29.", 20),
    ("xapp-", 10),
    ("xoxe-", 10),
    ("hvs.", 20),
    ("pypi-", 30),
    ("glsa_", 20),
    ("rk_live_", 16),
    ("SG.", 20),
    ("dop_v1_", 20),
    ("glrt-", 16),
    ("gldt-", 16),
    ("AGE-SECRET-KEY-1", 30),
    ("gsk_", 40),
    ("tskey-", 20),
    ("lin_api_", 32),
    ("cfut_", 30),
    ("cfat_", 30),
    ("cfk_", 30),
    ("xoxd-", 20),
    ("xoxs-", 20),
    ("xoxc-", 10),
    ("GOCSPX-", 20),
    ("dckr_oat_", 16),
    ("ATATT3", 60),
    ("ATCTT3", 60),
    ("shpat_", 30),
    ("lsv2_pt_", 30),
    ("lsv2_sk_", 30),
    ("tgp_v1_", 40),
    ("pplx-", 40),
    ("rpa_", 40),
    ("glptt-", 40),
    ("glcbt-", 16),
    ("glagent-", 40),
    ("sntrys_", 40),
    ("sntryu_", 40),
    ("hvb.", 60),
    ("hvr.", 60),
    ("whsec_", 30),
    ("xai-", 60),
    ("sk_test_", 16),
    ("rk_test_", 16),
    ("sbp_", 40),
    ("figd_", 20),
    ("HRKU-", 30),
    ("PMAK-", 30),
    ("shpss_", 30),
    ("shpca_", 30),
    ("shppa_", 30),
    ("dp.pt.", 20),
    ("pul-", 40),
    ("lin_oauth_", 32),
    ("sq0csp-", 30),
    ("sq0atp-", 20),
    ("rubygems_", 40),
    ("xkeysib-", 40),
    ("fm2_", 40),
    ("glsoat-", 16),
    ("glft-", 16),
    ("glffct-", 16),
    ("gloas-", 40),
    ("glimt-", 16),
    ("NRAK-", 24),
    ("NRII-", 24),
    ("ntn_", 40),
    ("nfp_", 36),
    ("CFPAT-", 40),
    ("tfp_", 40),
    ("pscale_pw_", 32),
    ("pscale_tkn_", 32),
    ("pscale_oauth_", 32),
    ("phx_", 40),
    ("jina_", 40),
    ("csk-", 40),
    ("apify_api_", 30),
    ("SWMTKN-1-", 40),
    ("k8s-aws-v1.", 40),
    ("dt0c01.", 24),
    ("ops_eyJ", 60),
    ("atlasv1.", 60),
    ("e2b_", 40),
];
/// Those of which values without a digit are letters of both cases.
const MAY_HAVE_NO_DIGIT: [&str; 15] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "wandb_v1_",
    "nvapi-",
    "dckr_pat_",
    "glsa_",
    "glrt-",
    "gldt-",
    "sk_live_",
    "rk_live_",
];
/// Tokens of Hugging Face: exactly so many letters follow, none of which need be a digit.
const LETTERS: [&str; 2] = ["hf_", "api_org_"];
const LETTERS_OF_TOKEN: usize = 34;
/// Ids of keys of AWS, tokens of Replicate, Databricks, Twilio and Modal: exactly so many characters of one kind
/// follow.
const EXACT: [(&str, usize, OfKind); 7] = [
    ("AKIA", 16, is_upper_or_digit),
    ("ASIA", 16, is_upper_or_digit),
    ("r8_", 37, |byte: u8| byte.is_ascii_alphanumeric()),
    ("dapi", 32, |byte: u8| byte.is_ascii_hexdigit()),
    ("SK", 32, |byte: u8| byte.is_ascii_hexdigit()),
    ("ak-", 22, |byte: u8| byte.is_ascii_alphanumeric()),
    ("as-", 22, |byte: u8| byte.is_ascii_alphanumeric()),
];
type OfKind = fn(u8) -> bool;
/// Addresses that let everybody in who knows the rest of them.
const ADDRESSES: [&str; 16] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "hooks.slack-gov.com/services/",
    "discord.com/api/webhooks/",
    "discord.com/api/v9/webhooks/",
    "discord.com/api/v10/webhooks/",
    "discordapp.com/api/webhooks/",
    "webhook.office.com/webhookb2/",
    "office.com/webhook/",
    "hooks.zapier.com/hooks/catch/",
    "pagerduty.com/integration/",
    "hc-ping.com/",
    "anaconda.org/t/",
    "feishu.cn/open-apis/bot/v2/hook/",
    "larksuite.com/open-apis/bot/v2/hook/",
];
/// How a private key in PEM begins in base64, by its kind: as a Secret of Kubernetes holds it, whatever its name.
const ENCODED_KEYS: [&str; 6] = [
    "LS0tLS1CRUdJTiBQUklWQVRFIEtF",
    "LS0tLS1CRUdJTiBSU0EgUFJJVkFU",
    "LS0tLS1CRUdJTiBFQyBQUklWQVRF",
    "LS0tLS1CRUdJTiBPUEVOU1NIIFBS",
    "LS0tLS1CRUdJTiBFTkNSWVBURUQg",
    "LS0tLS1CRUdJTiBQR1AgUFJJVkFU",
];
/// How tokens begin in base64, and how many characters follow at least: those of a session of AWS, keys of Bedrock, logins
/// of Docker, of NGC and of ECR, tokens of Artifactory, of Grafana and of Neptune.
const ENCODED_TOKENS: [(&str, usize); 10] = [
    ("IQoJb3JpZ2lu", 100),
    ("FwoGZXIvYXdz", 100),
    ("ABSKQmVkcm9ja", 60),
    ("bedrock-api-key-YmVkcm9jay", 60),
    ("eyJhdXRocyI6", 40),
    ("JG9hdXRodG9rZW46", 20),
    ("cmVmdGtuOj", 40),
    ("eyJrIjoi", 40),
    ("eyJhcGlfYWRkcmVzcyI6", 40),
    ("eyJwYXlsb2FkIjoi", 100),
];
/// Addresses that a bot's number and its token follow.
const BOTS: [&str; 2] = ["api.telegram.org/bot", "api.telegram.org/file/bot"];
/// A credential of munge: whoever has it acts as its user for some minutes.
const MUNGE: &str = "MUNGE:";
/// How a key of Ceph begins, and how much base64 follows up to the signs that end it.
const CEPH_KEY: &str = "AQ";
const REST_OF_CEPH_KEY: usize = 36;
/// Lines of a private key of PuTTY follow.
const PRIVATE_LINES: &str = "Private-Lines: ";
/// How a part of a web token begins: JSON in base64.
const WEB_TOKEN: &str = "eyJ";

/// Bits for the first two bytes with which one of them begins, and for the second and the third one. Few words begin so:
/// the lists are not gone through for the others.
static BEGINNINGS: [[u64; 1024]; 2] = [beginnings(0), beginnings(1)];

/// Of the two bytes from there on.
const fn beginnings(from: usize) -> [u64; 1024] {
    let mut bits = with_first(with_first([0; 1024], &VALUES, from), &ENCODED_TOKENS, from);
    bits = with_all(with_all(with_all(bits, &ADDRESSES, from), &ENCODED_KEYS, from), &BOTS, from);
    bits = with_all(bits, &[MUNGE, PRIVATE_LINES, WEB_TOKEN, CEPH_KEY], from);
    let mut at = 0;
    while at < EXACT.len() {
        bits = with(bits, EXACT[at].0, from);
        at += 1;
    }
    bits
}

const fn with_first(mut bits: [u64; 1024], begins: &[(&str, usize)], from: usize) -> [u64; 1024] {
    let mut at = 0;
    while at < begins.len() {
        bits = with(bits, begins[at].0, from);
        at += 1;
    }
    bits
}

const fn with_all(mut bits: [u64; 1024], begins: &[&str], from: usize) -> [u64; 1024] {
    let mut at = 0;
    while at < begins.len() {
        bits = with(bits, begins[at], from);
        at += 1;
    }
    bits
}

const fn with(mut bits: [u64; 1024], begin: &str, from: usize) -> [u64; 1024] {
    let begin = begin.as_bytes();
    let row = (begin[from] as usize) << 8;
    // Any byte may follow where it ends.
    let is_open = begin.len() == from + 1;
    let mut last = if is_open { 0 } else { begin[from + 1] as usize };
    let end = if is_open { 255 } else { last };
    while last <= end {
        let pair = row | last;
        bits[pair >> 6] |= 1 << (pair & 63);
        last += 1;
    }
    bits
}

fn may_begin(rest: &[u8]) -> bool {
    let [first, second, third, ..] = rest else { return false };
    let has = |bits: &[u64; 1024], one: u8, other: u8| {
        let pair = usize::from(one) << 8 | usize::from(other);
        bits[pair >> 6] & 1 << (pair & 63) != 0
    };
    has(&BEGINNINGS[0], *first, *second) && has(&BEGINNINGS[1], *second, *third)
}

fn is_upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// A value at the beginning of `rest` that is secret by itself.
pub(super) fn value(rest: &[u8]) -> Option<Found> {
    if !may_begin(rest) {
        return None;
    }
    for &(prefix, length, class) in &EXACT {
        let Some(more) = rest.strip_prefix(prefix.as_bytes()) else { continue };
        if count(more, class, length) == length && !more.get(length).copied().is_some_and(is_word) {
            let (skip, what) = (prefix.len() + length, format!("{prefix}..."));
            return Some(Found { keep: 0, skip, body: None, what });
        }
    }
    for &(prefix, least) in &VALUES {
        let Some(more) = rest.strip_prefix(prefix.as_bytes()) else { continue };
        // Words of a language have no digits.
        let seen = count(more, in_value, 64);
        let is_plain = || more[..seen].iter().all(u8::is_ascii_alphanumeric);
        let is_one = more[..seen].iter().any(u8::is_ascii_digit)
            || (MAY_HAVE_NO_DIGIT.contains(&prefix) && has_both_cases(&more[..seen]))
            || (LETTERS.contains(&prefix) && seen == LETTERS_OF_TOKEN && is_plain());
        if seen >= least && is_one {
            // Behind a dot there may be more of them.
            let class = if prefix.ends_with('.') { in_token } else { in_value };
            let (skip, body) = (prefix.len(), Some(Body::Of(class)));
            return Some(Found { keep: 0, skip, body, what: format!("{prefix}...") });
        }
    }
    for &(begin, least) in &ENCODED_TOKENS {
        let Some(more) = rest.strip_prefix(begin.as_bytes()) else { continue };
        if count(more, in_escaped, least) == least {
            let (skip, body) = (begin.len(), Some(Body::Of(in_escaped)));
            return Some(Found { keep: 0, skip, body, what: format!("{begin}...") });
        }
    }
    if let Some(address) = BOTS.iter().find(|address| rest.starts_with(address.as_bytes())) {
        let number = count(&rest[address.len()..], |byte| byte.is_ascii_digit(), 16);
        let keep = address.len() + number + 1;
        let is_one = rest.get(keep - 1) == Some(&b':') && count(&rest[keep..], in_value, 20) == 20;
        let body = Some(Body::Of(in_value));
        return is_one.then(|| Found { keep, skip: 0, body, what: format!("{address}...") });
    }
    if let Some(address) = ADDRESSES.iter().find(|address| rest.starts_with(address.as_bytes())) {
        let (keep, body) = (address.len(), Some(Body::Of(in_address)));
        let is_one = count(&rest[keep..], in_address, 8) == 8;
        return is_one.then(|| Found { keep, skip: 0, body, what: format!("{address}...") });
    }
    if let Some(begin) = ENCODED_KEYS.iter().find(|begin| rest.starts_with(begin.as_bytes())) {
        let (skip, body) = (begin.len(), Some(Body::Wrapped));
        return Some(Found { keep: 0, skip, body, what: "a private key in base64".to_owned() });
    }
    if let Some(more) = rest.strip_prefix(CEPH_KEY.as_bytes()) {
        let in_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let is_one = count(more, in_key, REST_OF_CEPH_KEY + 1) == REST_OF_CEPH_KEY
            && more[REST_OF_CEPH_KEY..].starts_with(b"==");
        let skip = CEPH_KEY.len() + REST_OF_CEPH_KEY + 2;
        return is_one.then(|| Found { keep: 0, skip, body: None, what: "a key of Ceph".to_owned() });
    }
    if let Some(more) = rest.strip_prefix(MUNGE.as_bytes()) {
        let (keep, body) = (MUNGE.len(), Some(Body::Of(in_token)));
        let is_one = count(more, in_token, 64) >= 40;
        return is_one.then(|| Found { keep, skip: 0, body, what: format!("{MUNGE}...") });
    }
    if let Some(more) = rest.strip_prefix(PRIVATE_LINES.as_bytes()) {
        let keep = rest.len() - more.len() + count(more, |byte| byte.is_ascii_digit(), 4);
        let is_one = escapes::line_break(&rest[keep..]) > 0;
        let body = Some(Body::Base64Lines);
        return is_one.then(|| Found { keep, skip: 0, body, what: "a private key".to_owned() });
    }
    // A web token: two parts that begin as JSON does, and its signature; an encrypted one may have an empty second part.
    let part = |bytes: &[u8]| count(bytes, in_value, 512);
    if rest.starts_with(WEB_TOKEN.as_bytes()) {
        let first = part(rest);
        let next = rest.get(first + 1..).unwrap_or_default();
        if first >= 10
            && rest.get(first) == Some(&b'.')
            && (next.starts_with(WEB_TOKEN.as_bytes()) || next.starts_with(b"."))
        {
            let body = Some(Body::Of(in_token));
            return Some(Found { keep: 0, skip: first, body, what: "a web token".to_owned() });
        }
    }
    None
}

/// Whether a value begins as those do that are secret by themselves.
pub(super) fn begins_as_secret(value: &str) -> bool {
    VALUES.iter().any(|(prefix, _)| value.starts_with(prefix))
}
