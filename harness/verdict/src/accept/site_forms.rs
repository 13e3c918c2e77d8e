//! What identifies a site by its form alone: addresses, hosts, paths of the site, places in a store, whole URLs, numbers
//! of accounts.

use super::words::{equals, taken, window};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form<'a> {
    Path(&'a str),
    /// The scheme stays.
    Url {
        scheme: &'a str,
        whole: &'a str,
    },
    /// Its kind, and the text.
    Other(&'static str, &'a str),
}

/// Ends of names of hosts, in any case.
const DOMAINS: [&str; 10] =
    ["internal", "local", "cluster", "com", "net", "org", "edu", "io", "cloud", "lan"];
/// Further ones, behind a label with a letter. None is also the end of a file's name or a usual name in code.
const MORE_DOMAINS: &str = "ai dev gov mil biz tech systems corp intranet arpa co eu de fr uk nl ch se fi dk cz hu ro gr pt \
                            ie il jp cn kr tw sg hk au nz ca br mx ru es ae sa tr ua kz vn qa lu";
/// Common words as well: only behind two dots, and where no code follows.
const SHORT_WORDS: &str = "it no at be is";
/// How addresses of objects in a store begin, and names of resources in a cloud.
const STORES: [&str; 7] = ["s3://", "s3a://", "gs://", "az://", "abfss://", "arn:aws", "arn%3Aaws"];
/// Parts of any Linux.
const KEPT: [&str; 5] = ["/sys/", "/proc/", "/dev/", "/bin/", "/usr/bin/"];
/// Where files of users lie, wherever in a word it stands.
const ROOTS: [&str; 9] =
    ["/home/", "/users/", "/fsx/", "/efs/", "/scratch/", "/lustre/", "/gpfs/", "/mnt/", "/nfs/"];
const LONGEST_SCHEME: usize = 32;
/// Digits of the number of an account in AWS.
const ACCOUNT: usize = 12;

/// What begins here, at the beginning of a word.
pub(super) fn form<'a>(before: &str, rest: &'a str) -> Option<Form<'a>> {
    match rest.as_bytes().first()? {
        b'/' => return path(rest).or_else(|| double_path(rest)).map(Form::Path),
        b'~' => return home(rest).map(Form::Path),
        first if !first.is_ascii_alphanumeric() && *first != b':' => return None,
        _ => {}
    }
    if STORES.iter().any(|begins| equals(rest, begins)) {
        return Some(Form::Other("store", place(rest)));
    }
    if let Some(url) = url(rest) {
        return Some(url);
    }
    let word = taken(window(rest), |c| c.is_ascii_alphanumeric() || "-._:@+".contains(c))
        .trim_end_matches(['.', ':', '-']);
    if let Some(address) = mail(word).or_else(|| ip(before, word)).or_else(|| hardware(word)) {
        return Some(Form::Other("address", address));
    }
    if is_account(before, word) {
        return Some(Form::Other("account", word));
    }
    let host = taken(word, |c| c.is_ascii_alphanumeric() || c == '-' || c == '.').trim_end_matches('.');
    let next = rest.as_bytes().get(host.len()).copied();
    (host.len() > 3 && (is_host(host, next) || is_cloud_host(host))).then_some(Form::Other("host", host))
}

/// A path that begins within a word: one of users' files, or behind an option such as `-I`.
pub(super) fn within_word<'a>(before: &str, rest: &'a str) -> Option<&'a str> {
    if !rest.starts_with('/') {
        return None;
    }
    let is_option = || {
        let mut letters = before.bytes().rev();
        letters.next().is_some_and(|byte| b"ILBFRCo".contains(&byte))
            && letters.next() == Some(b'-')
            && !letters.next().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_/.".contains(&byte))
    };
    (ROOTS.iter().any(|root| equals(rest, root)) || is_option()).then(|| path(rest)).flatten()
}

fn path(rest: &str) -> Option<&str> {
    let behind = rest.strip_prefix('/')?;
    let begins = behind.chars().next().is_some_and(|c| c.is_alphanumeric() || "._~".contains(c));
    if !begins || KEPT.iter().any(|kept| rest.starts_with(kept)) {
        return None;
    }
    let path = taken(behind, |c| c.is_alphanumeric() || "/._-+@%~=".contains(c));
    Some(rest.get(..path.len() + 1)?.trim_end_matches('.'))
}

/// Such as `//fsx/x`; a comment in code has no further slash.
fn double_path(rest: &str) -> Option<&str> {
    let found = path(rest.strip_prefix('/')?)?;
    found.get(1..)?.contains('/').then(|| rest.get(..found.len() + 1)).flatten()
}

/// Such as `~jdoe/x`.
fn home(rest: &str) -> Option<&str> {
    let behind = rest.strip_prefix('~')?;
    let user = taken(window(behind), |c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let begins = user.starts_with(|c: char| c.is_ascii_alphabetic());
    let below = path(behind.get(user.len()..)?);
    begins.then_some(())?;
    rest.get(..1 + user.len() + below?.len())
}

fn url(rest: &str) -> Option<Form<'_>> {
    let name = taken(window(rest), |c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.len() <= LONGEST_SCHEME;
    let scheme = rest.get(..name.len() + "://".len())?;
    if !begins || !scheme.ends_with("://") {
        return None;
    }
    let whole = place(rest);
    (whole.len() > scheme.len()).then_some(Form::Url { scheme, whole })
}

/// To the end of an address of any kind: to a blank, a quote, or a comma that no further part of a path follows.
fn place(rest: &str) -> &str {
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>\\".contains(c);
    let whole = taken(rest, |c| !is_end(c));
    let mut length = 0;
    for (at, part) in whole.split(',').enumerate() {
        if at > 0 && !part.contains('/') {
            break;
        }
        length += part.len() + usize::from(at > 0);
    }
    whole.get(..length).unwrap_or(whole).trim_end_matches([')', ']', '}', '.', ',', ':', ';', '|'])
}

fn mail(word: &str) -> Option<&str> {
    let (user, host) = word.split_once('@')?;
    let ends = host
        .rsplit('.')
        .next()
        .is_some_and(|end| end.len() > 1 && end.chars().all(|c| c.is_ascii_alphabetic()));
    (!user.is_empty() && host.contains('.') && ends).then_some(word)
}

/// Of four numbers, or of the newer kind.
fn ip<'a>(before: &str, word: &'a str) -> Option<&'a str> {
    let four = taken(word, |c| c.is_ascii_digit() || c == '.').trim_end_matches('.');
    // Zeros alone are a version of firmware, or every address.
    let is_one = four.parse::<std::net::Ipv4Addr>().is_ok_and(|address| !address.is_unspecified());
    if (is_one || is_padded(before, four)) && !followed_by_word(word, four) {
        return Some(four);
    }
    let six = taken(word, |c| c.is_ascii_hexdigit() || c == ':').trim_end_matches(':');
    // Names of code have such colons too, and no digit.
    let has_digit = six.contains(|c: char| c.is_ascii_digit());
    let is_one = has_digit && six.matches(':').count() > 1 && six.parse::<std::net::Ipv6Addr>().is_ok();
    (is_one && !followed_by_word(word, six)).then_some(six)
}

/// Such as `10.001.2.3`; the end of a longer version is none.
fn is_padded(before: &str, four: &str) -> bool {
    let is_number = |part: &str| {
        (1..=3).contains(&part.len()) && part.parse::<u16>().is_ok_and(|number| number <= u16::from(u8::MAX))
    };
    let numbers: Vec<&str> = four.split('.').collect();
    // A pair of digits is how versions of firmware are written.
    let is_of_three = numbers.iter().any(|part| part.len() == 3 && part.starts_with('0'));
    numbers.len() == 4 && is_of_three && numbers.iter().all(|part| is_number(part)) && !before.ends_with('.')
}

fn followed_by_word(word: &str, part: &str) -> bool {
    word.as_bytes().get(part.len()).is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// Of a network card: six pairs of digits.
fn hardware(word: &str) -> Option<&str> {
    let six = |sign: char| {
        let six = taken(word, |c| c.is_ascii_hexdigit() || c == sign);
        let pairs: Vec<&str> = six.split(sign).collect();
        (pairs.len() == 6 && pairs.iter().all(|pair| pair.len() == 2)).then_some(six)
    };
    // A moment may be written as six pairs as well.
    let has_letter = |six: &&str| six.contains(|c: char| c.is_ascii_alphabetic());
    let dashed = || six('-').filter(has_letter).filter(|six| !followed_by_word(word, six));
    six(':').or_else(dashed)
}

/// A number of an account that is called one.
fn is_account(before: &str, word: &str) -> bool {
    if word.len() != ACCOUNT || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let from = before.ceil_char_boundary(before.len().saturating_sub(LONGEST_SCHEME));
    let before = before.get(from..).unwrap_or_default().to_ascii_lowercase();
    let letters: String = before.chars().filter(char::is_ascii_alphabetic).collect();
    ["", "id", "number", "no", "is"].iter().any(|end| letters.ends_with(&format!("account{end}")))
}

fn is_host(host: &str, next: Option<u8>) -> bool {
    let Some((before, end)) = host.rsplit_once('.') else { return false };
    let is_upper = !host.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_lower = !end.bytes().any(|byte| byte.is_ascii_uppercase());
    let end = end.to_ascii_lowercase();
    let is_common = ["com", "net", "org", "edu"].contains(&end.as_str());
    // `System.IO` is a name in code.
    if !(is_upper || is_lower || is_common) {
        return false;
    }
    if DOMAINS.contains(&end.as_str()) {
        return true;
    }
    let label = before.rsplit('.').next().unwrap_or_default();
    if !label.contains(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let is_in = |list: &str| list.split_whitespace().any(|one| one == end);
    let is_code = next.is_some_and(|byte| b"([=".contains(&byte));
    is_in(MORE_DOMAINS) || (is_in(SHORT_WORDS) && before.contains('.') && !is_code && is_lower)
}

/// Such as `ip-10-0-12-7`.
fn is_cloud_host(host: &str) -> bool {
    let name = host.split('.').next().unwrap_or_default();
    let Some(numbers) = name.get("ip-".len()..).filter(|_| equals(name, "ip-")) else { return false };
    numbers.split('-').count() == 4 && numbers.split('-').all(|number| number.parse::<u8>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::super::pseudonyms::Pseudonyms;

    #[test]
    fn users_buckets_hosts_and_addresses_of_any_writing_are_replaced() {
        for text in [
            "https://acme-bucket.s3.amazonaws.com/alice/secret-model",
            "(http://s3.amazonaws.com/acme-bucket2/key?a=1,alice/x)",
            "HTTPS://acct.blob.core.windows.net/acme/x wandb://acme/x",
            "S3://acme3/x x_arn:aws:s3:::acme4",
            "-I/home/alice/inc -L/fsx/alice3/lib -isystem/home/alice/x",
            "file:///home/alice2/x //fsx/alice5/y ~alice6/x =/home/älice/é-acme",
            "\u{1b}[1m/home/alice12/x \u{1b}[32m/srv/alice",
            "login.acme.ai head.acme.de wandb.acme.dev HEAD.ACME.COM x.acme.co.uk srv.acme.it",
            "IP-10-0-1-3 \u{1b}[0m10.9.8.7 10.001.2.3 0a-1b-2c-3d-4e-5f",
            "account 123456789012 \"AccountId\": \"123456789012\"",
            "kubectl --context=arn:aws:eks:us-west-2:123456789012:cluster/acme --namespace=bench get pods",
            "'--context=arn:aws-us-gov:eks:us-gov-west-1:123456789012:cluster/acme' ?arn=arn%3Aaws%3Aeks%3Ax%3A123456789012%3Aacme",
            "123456789012.dkr.ecr.us-west-2.amazonaws.com/nccl:1",
        ] {
            let shown = Pseudonyms::default().text(text).to_lowercase();
            for name in ["acme", "lice", "acct", "10.9", "10.0", "10-0", "4e-5f", "1234"] {
                assert!(!shown.contains(name), "{name} in {shown}");
            }
        }
        let same = Pseudonyms::default().text("HEAD.acme.com head.acme.com https://x.ai/a https://x.ai/a.");
        assert_eq!(same, "host-1 host-1 https://url-1 https://url-1.");
    }

    #[test]
    fn versions_modules_metrics_files_and_counts_stay() {
        for text in [
            "torch.distributed.elastic torch.nn.functional.relu tf.it( x.y.at[ logger.info System.IO numpy.int",
            "nic.rate nccl.lat.us 2.5.0.dev 2.5.0.dev20240801 96.00.74.00.01 12.04.00.01 570.133.20 1.0.ca",
            "main.py lib.so.2 x.rs x.pl x.sh x.cc x.md x.h.in a.out config.json x.tar.gz done.No is.It",
            "549755813888 bytes of 123456789012 26-11-28-15-14-19 env:// a//b // comment x://",
            "build/lib/x ${HOME}/x 1/2 GB/s a/b -x/y ../x ~ ~5 /sys/class/net -I. and/or",
        ] {
            assert_eq!(Pseudonyms::default().text(text), text);
        }
    }

    #[test]
    fn long_words_and_many_distinct_hosts_cost_no_more_than_their_length() {
        let mut names = Pseudonyms::default();
        let hosts: String = (0..50_000).map(|n| format!("h{n}.acme.com /data/p{n}\n")).collect();
        assert!(names.text(&hosts).ends_with("host-50000 /path-50000\n"));
        for long in ["a-", "a.", "a:", "=/", "/-", "~a", "a@", "[a"] {
            let text = long.repeat(20_000);
            assert!(!names.text(&text).is_empty());
        }
    }
}
