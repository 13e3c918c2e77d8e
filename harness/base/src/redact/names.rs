//! Names of things that are secret, and what may stand for a value without being one.

/// Words that make a name secret wherever they stand in it.
const SECRET_WORDS: [&str; 25] = [
    "SECRET",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTHORIZATION",
    "AUTHKEY",
    "AUTHTOKEN",
    "ACCESSTOKEN",
    "BEARERTOKEN",
    "IDENTITYTOKEN",
    "REFRESHTOKEN",
    "REGISTRYTOKEN",
    "SESSIONTOKEN",
    "SECRETKEY",
    "ACCESSKEY",
    "ACCOUNTKEY",
    "PRIVATEKEY",
    "SSHPASS",
    "COOKIE",
    "PHPSESSID",
    "JSESSIONID",
    "CSRFTOKEN",
    "XSRFTOKEN",
    "CSRFMIDDLEWARETOKEN",
    "AUTHTOK",
    "ACTIVATIONKEY",
];
/// Words that make a name secret with whatever stands before them in the same word, such as `PGPASSWORD`.
const SECRET_ENDS: [&str; 7] =
    ["PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "APIKEY", "STOREPASS", "KEYPASS"];
/// Ends so, and is a command: what it is given has no such name (`commands::users`).
const COMMAND: &str = "CHPASSWD";
/// The same, but that numbers stand for counts: language models have tokens too.
const TOKEN: &str = "TOKEN";
/// A signed token, at the end of a name such as `SLURM_JWT`.
const WEB_TOKEN: &str = "JWT";
/// Every such word holds one of these, and few other names do.
const MARKS: [&[u8; 2]; 8] = [b"KE", b"SS", b"CR", b"TH", b"PW", b"KI", b"PA", b"WT"];
/// What stands before `KEY` in names of keys that are secret, in whatever case they are written.
const KEYS: [&str; 16] = [
    "API",
    "ACCESS",
    "SECRET",
    "PRIVATE",
    "AUTH",
    "SIGNING",
    "ENCRYPTION",
    "ACCOUNT",
    "MASTER",
    "WANDB",
    "NGC",
    "LICENSE",
    "UNSEAL",
    "PRESHARED",
    "SUBSCRIPTION",
    "ACTIVATION",
];
/// What stands before `PASS`, `PWD` and `PW` at the end of a name: by themselves these are results of tests, and folders.
const HAVE_PASSWORDS: [&str; 53] = [
    "STORAGE",
    "IPMI",
    "BMC",
    "DB",
    "DATABASE",
    "MYSQL",
    "PG",
    "POSTGRES",
    "REDIS",
    "LDAP",
    "SMTP",
    "MAIL",
    "FTP",
    "SSH",
    "PROXY",
    "ADMIN",
    "ROOT",
    "USER",
    "REGISTRY",
    "BECOME",
    "SFTP",
    "SNOWSQL",
    "VAULT",
    "BIND",
    "SNMP",
    "ISCSI",
    "CHAP",
    "KEYSTORE",
    "TRUSTSTORE",
    "ORACLE",
    "MSSQL",
    "SQL",
    "MONGO",
    "MONGODB",
    "RABBITMQ",
    "GRAFANA",
    "SUDO",
    "JUPYTER",
    "MINIO",
    "NEXUS",
    "SLURMDBD",
    "CIFS",
    "SMB",
    "KAFKA",
    "MQTT",
    "WIFI",
    "AUTH",
    "RC",
    "REDFISH",
    "IDRAC",
    "ILO",
    "JDBC",
    "VAR",
];
const LAST_OF_PASSWORDS: [&str; 3] = ["PASS", "PWD", "PW"];
/// What stands before `PAT`, a personal access token, at the end of a name in small letters.
const HAVE_PATS: [&str; 6] = ["GITHUB", "GH", "GITLAB", "GIT", "AZURE", "DEVOPS"];
/// The one field of a group that holds what the group's name says.
const FIELDS: [&str; 7] = ["value", "data", "default", "content", "text", "plaintext", "string"];
/// Libraries whose variables are settings, `..._KEY` or not.
const SETTINGS: [&str; 12] =
    ["NCCL", "FI", "RDMAV", "IBV", "OMPI", "PMI", "PMIX", "PRTE", "UCX", "SLURM", "CUDA", "OFI"];
/// Parameters of an address that sign it.
const SIGNATURES: [&str; 4] = ["SIG", "SIGNATURE", "HMAC", "AUTH"];

/// Whether a name is that of something secret; and if so, whether a number may stand for it.
pub fn is_secret_name(name: &str) -> Option<bool> {
    if !name.as_bytes().windows(2).any(|two| MARKS.iter().any(|mark| two.eq_ignore_ascii_case(*mark))) {
        return None;
    }
    let words = split_words(name.as_bytes());
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    if SECRET_WORDS.iter().any(|word| has(word))
        || words.iter().any(|word| word != COMMAND && SECRET_ENDS.iter().any(|end| word.ends_with(end)))
    {
        return Some(false);
    }
    let pair = |one: &str, other: &str| words.windows(2).any(|two| two[0] == one && two[1] == other);
    if KEYS.iter().any(|kind| pair(kind, "KEY"))
        || (pair("CLIENT", "KEY") && pair("KEY", "DATA"))
        || pair("PASS", "PHRASE")
    {
        return Some(false);
    }
    if let [.., whose, last] = words.as_slice()
        && LAST_OF_PASSWORDS.contains(&last.as_str())
        && (HAVE_PASSWORDS.contains(&whose.as_str()) || words[0] == "RCLONE")
    {
        return Some(false);
    }
    // The same as one word: `dbpass`, `IPMIPASS`. A `.pgpass` is a file.
    if let Some(last) = words.last()
        && let Some(whose) = LAST_OF_PASSWORDS.iter().find_map(|end| last.strip_suffix(*end))
        && whose != "PG"
        && HAVE_PASSWORDS.contains(&whose)
    {
        return Some(false);
    }
    let is_setting = words.first().is_some_and(|first| SETTINGS.contains(&first.as_str()));
    let is_variable = is_variable(name);
    if let [.., whose, last] = words.as_slice()
        && last == "PAT"
        && (is_variable && !is_setting || HAVE_PATS.contains(&whose.as_str()))
    {
        return Some(false);
    }
    if is_variable && !is_setting && words.len() > 1 && words.last().is_some_and(|last| last == "KEY") {
        return Some(false);
    }
    (has(TOKEN) || words.last().is_some_and(|last| last == WEB_TOKEN)).then_some(true)
}

/// Whether a name is written as variables of the environment are.
pub(super) fn is_variable(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Whether a field of a group may hold what the group's name says, as in `"HF_TOKEN": {"value": ...}`.
pub(super) fn is_value_field(name: &str) -> bool {
    FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name))
}

/// The length of such a field's name that begins here.
pub(super) fn value_field(rest: &[u8]) -> usize {
    let length = rest.iter().take(16).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let name = std::str::from_utf8(&rest[..length]).unwrap_or_default();
    if is_value_field(name) { length } else { 0 }
}

/// Whether a name is that of a password or of a folder.
pub(super) fn may_be_folder(name: &str) -> bool {
    name.eq_ignore_ascii_case("pwd")
}

/// Whether a name is that of a key that may as well be a file's or a queue's.
pub(super) fn may_be_key(name: &str) -> bool {
    const WHOSE: [&str; 3] = ["ROUTING", "INTEGRATION", "CERTIFICATE"];
    if ends_as(name, "psk") {
        return true;
    }
    // Few names end so: no words are made of the others.
    if !ends_as(name.trim_end_matches(|c: char| !c.is_ascii_alphabetic()), "key") {
        return false;
    }
    let words = split_words(name.as_bytes());
    matches!(words.as_slice(), [.., whose, key] if key == "KEY" && WHOSE.contains(&whose.as_str()))
}

fn ends_as(name: &str, end: &str) -> bool {
    let from = name.len().checked_sub(end.len());
    from.and_then(|from| name.as_bytes().get(from..))
        .is_some_and(|last| last.eq_ignore_ascii_case(end.as_bytes()))
}

/// Whether a name is that of a password where a command defines it, `-v pw=X`, and elsewhere of a result or of a folder.
pub(super) fn may_be_defined(name: &str) -> bool {
    let is_last = |word: &String| LAST_OF_PASSWORDS.contains(&word.as_str());
    LAST_OF_PASSWORDS.iter().any(|end| ends_as(name, end))
        && split_words(name.as_bytes()).last().is_some_and(is_last)
}

/// Whether a value is a path, or what a program makes one of.
pub(super) fn is_path(value: &[u8]) -> bool {
    value.first().is_some_and(|first| b"/~.$`".contains(first))
        || value.iter().any(|byte| b"/\\(".contains(byte))
        || value.get(1) == Some(&b':')
}

/// Whether a name is that of a login in base64, of how one logs in, or of a password as rclone stores it.
pub(super) fn is_login_name(name: &str) -> bool {
    if ["auth", "_auth", "pass"].contains(&name) {
        return true;
    }
    let is_one = name.ends_with("_AUTH") || name.ends_with("_AUTH_CONFIG");
    is_one && is_variable(name) && !SETTINGS.iter().any(|library| name.starts_with(library))
}

/// Whether a parameter of an address signs it.
pub(super) fn is_signature(name: &str) -> bool {
    split_words(name.as_bytes()).last().is_some_and(|last| SIGNATURES.contains(&last.as_str()))
}

/// Whether a secret name is that of a header, whose value goes to the end of its line.
pub(super) fn is_header(name: &str) -> bool {
    let words = split_words(name.as_bytes());
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    has("AUTHORIZATION") || has("COOKIE") || (words.len() > 1 && words[0] == "X" && !name.contains('_'))
}

/// Whether a value that goes by a name is a secret.
pub fn is_secret_pair(name: &str, value: &str) -> bool {
    let value = value.as_bytes();
    let may_count =
        is_secret_name(name).or_else(|| (may_be_folder(name) && !is_path(value)).then_some(false));
    may_count.is_some_and(|may_count| !(is_placeholder(value) || may_count && is_number(value)))
}

/// The words of a name, in capitals: parted by what is no letter or digit, and where capitals begin. A number at a word's
/// end is left out, as in `HF_TOKEN2`.
fn split_words(name: &[u8]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = b'_';
    for byte in name {
        if byte.is_ascii_alphanumeric() {
            let begins =
                !last.is_ascii_alphanumeric() || (last.is_ascii_lowercase() && byte.is_ascii_uppercase());
            match words.last_mut() {
                Some(word) if !begins => word.push(char::from(byte.to_ascii_uppercase())),
                _ => words.push(char::from(byte.to_ascii_uppercase()).to_string()),
            }
        }
        last = *byte;
    }
    for word in &mut words {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if letters > 0 {
            word.truncate(letters);
        }
    }
    words
}

/// Whether a text stands for a value without being one.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    const NONE: [&str; 6] = ["null", "none", "nil", "true", "false", "unset"];
    let is_none = |word: &str| value.eq_ignore_ascii_case(word.as_bytes());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_reference = match value {
        [b'$', b'{', name @ .., b'}'] | [b'$', name @ ..] => name.iter().all(is_word),
        _ => value.starts_with(b"env:"),
    };
    value.is_empty()
        || is_reference
        || value.starts_with(b"[redacted")
        || value.iter().all(|byte| *byte == b'*')
        || NONE.iter().any(|word| is_none(word))
}

pub(super) fn is_number(value: &[u8]) -> bool {
    value.len() < 16 && value.iter().all(|byte| byte.is_ascii_digit() || b".,eE+-%".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_makes_a_name_secret_does() {
        for word in SECRET_WORDS.into_iter().chain(SECRET_ENDS) {
            assert_eq!(is_secret_name(word), Some(false), "{word}");
            assert_eq!(is_secret_name(&format!("my-{}-x", word.to_lowercase())), Some(false), "{word}");
        }
        assert_eq!(is_secret_name("HF_TOKEN"), Some(true));
        for name in ["SLURM_JWT", "jwt", "X-Auth-Jwt"] {
            assert!(is_secret_name(name).is_some(), "{name}");
        }
        for name in ["jwt_key", "AuthAltTypes", "auth/jwt-hs256"] {
            assert_eq!(is_secret_name(name), None, "{name}");
        }
        for kind in KEYS {
            assert_eq!(is_secret_name(&format!("{kind}_KEY_ID")), Some(false), "{kind}");
        }
        for kind in HAVE_PASSWORDS {
            assert_eq!(is_secret_name(&format!("my_{kind}_PASS")), Some(false), "{kind}");
            assert_eq!(is_secret_name(&format!("{kind}_PWD")), Some(false), "{kind}");
            assert_eq!(is_secret_name(&format!("{kind}_pw")), Some(false), "{kind}");
            let joined = format!("{kind}pass").to_lowercase();
            assert_eq!(is_secret_name(&joined), (kind != "PG").then_some(false), "{kind}");
        }
        for name in ["GITHUB_PAT", "MY_SITE_PAT", "github_pat", "azure-pat"] {
            assert_eq!(is_secret_name(name), Some(false), "{name}");
        }
        for name in [
            "PAT",
            "my_pat",
            "PATH",
            "COMPAT",
            "NCCL_PAT",
            "KEY",
            "sort_key",
            "NCCL_X_KEY",
            "TOKENS",
            "tokenizer",
            "threads",
            "class",
            "across",
            "PWD",
            "ALL_PASS",
            "OLDPWD",
            "bypass",
            "compass",
            "chpasswd",
        ] {
            assert_eq!(is_secret_name(name), None, "{name}");
        }
    }
}
