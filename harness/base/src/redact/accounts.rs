//! Numbers of accounts of AWS in reports that others read: an ARN has one, as a context of kubectl for EKS does, and so has an
//! image of ECR. They are no secrets. Artefacts of a run and commands on a terminal keep them, or these would not work.

use super::stream::INSTEAD;

/// Digits of such a number.
const DIGITS: usize = 12;
/// Before the number in an ARN: `arn:aws-us-gov:elasticfilesystem:us-gov-west-1:`, each colon as `%3A` at most.
const LONGEST_BEGIN: usize = 96;

/// The text with `[redacted]` for each number of an account.
pub fn mask_accounts(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let from = at + found;
        let to = from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_account = to - from == DIGITS && (ends_arn(&bytes[..from]) || begins_registry(&bytes[to..]));
        out.extend_from_slice(&bytes[at..from]);
        out.extend_from_slice(if is_account { INSTEAD } else { &bytes[from..to] });
        at = to;
    }
    out.extend_from_slice(&bytes[at..]);
    String::from_utf8_lossy(&out).into_owned()
}

/// `arn:PARTITION:SERVICE:REGION:`; colons may be those of a URL.
fn ends_arn(before: &[u8]) -> bool {
    let begin = &before[before.len().saturating_sub(LONGEST_BEGIN)..];
    let begin = String::from_utf8_lossy(begin).to_ascii_lowercase().replace("%3a", ":");
    let mut parts = begin.rsplit(':');
    let mut next = || parts.next().unwrap_or_default();
    let [last, region, service, partition, arn] = [next(), next(), next(), next(), next()];
    let is_name = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    last.is_empty()
        && is_name(region)
        && is_name(service)
        && partition.starts_with("aws")
        && is_name(partition)
        && arn.ends_with("arn")
}

/// `.dkr.ecr.REGION.amazonaws.com`, or the newer name of the same.
fn begins_registry(rest: &[u8]) -> bool {
    rest.starts_with(b".dkr.ecr") || rest.starts_with(b".dkr-ecr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_masked_in_arns_and_images_and_the_rest_stays() {
        for (text, masked) in [
            (
                "kubectl --context=arn:aws:eks:us-west-2:123456789012:cluster/train --namespace=bench get pods",
                "kubectl --context=arn:aws:eks:us-west-2:[redacted]:cluster/train --namespace=bench get pods",
            ),
            (
                "User \"arn:aws:sts::123456789012:assumed-role/ops/jo\" cannot list",
                "User \"arn:aws:sts::[redacted]:assumed-role/ops/jo\" cannot list",
            ),
            ("arn:aws-us-gov:iam::123456789012:role/x", "arn:aws-us-gov:iam::[redacted]:role/x"),
            (
                "ARN%3Aaws%3Aeks%3Aus-east-1%3A123456789012%3Acluster",
                "ARN%3Aaws%3Aeks%3Aus-east-1%3A[redacted]%3Acluster",
            ),
            (
                "é 123456789012.dkr.ecr.us-west-2.amazonaws.com/nccl:1, 123456789012.dkr-ecr.us-west-2.on.aws/a",
                "é [redacted].dkr.ecr.us-west-2.amazonaws.com/nccl:1, [redacted].dkr-ecr.us-west-2.on.aws/a",
            ),
        ] {
            assert_eq!(mask_accounts(text), masked);
            assert_eq!(mask_accounts(masked), masked);
        }
    }

    #[test]
    fn other_numbers_of_twelve_digits_stay() {
        for text in [
            "",
            "123456789012 bytes of 123456789012",
            "arn:aws:s3:::acme/123456789012",
            "arn:aws:eks:us-west-2:1234567890123:cluster/x",
            "barn:awe:eks:us-west-2:123456789012",
            "warm:aws:1:2:123456789012",
            "10:20:30:123456789012.dkr",
        ] {
            assert_eq!(mask_accounts(text), text);
        }
    }

    #[test]
    fn a_text_of_numbers_alone_costs_no_more_than_its_length() {
        let text = "123456789012:".repeat(100_000);
        assert_eq!(mask_accounts(&text), text);
    }
}
