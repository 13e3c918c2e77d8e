//! Profiles of AWS in `~/.aws`: static keys, a session's token, region and endpoint. Whatever else gives credentials there
//! (SSO, roles, processes) is named as unsupported, with the command that turns it into variables.

use super::settings::{check_endpoint, is_visible};
use base::text::show;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

const LONGEST: u64 = 1 << 20;
/// Keys by which a profile gets its credentials elsewhere.
const ELSEWHERE: [&str; 6] = [
    "sso_session",
    "sso_start_url",
    "role_arn",
    "credential_process",
    "web_identity_token_file",
    "credential_source",
];

/// What a profile holds.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Profile {
    /// Key and secret; none where the profile has no credentials.
    pub(super) keys: Option<(String, String)>,
    pub(super) token: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
}

/// The profile that `AWS_PROFILE` names, else `default`; `None` where that one is not there. `may_be_other`: credentials
/// may come from elsewhere, so that a default profile of another kind is passed over.
pub(super) fn read(may_be_other: bool) -> Result<Option<Profile>, String> {
    let given = std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    let file = |variable: &str, name: &str| -> Option<PathBuf> {
        let named = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        named.or_else(|| Some(std::env::home_dir()?.join(".aws").join(name)))
    };
    let text = |path: Option<PathBuf>| path.map_or(Ok(String::new()), |path| text(&path));
    let credentials = text(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"))?;
    let config = text(file("AWS_CONFIG_FILE", "config"))?;
    let name = given.as_deref().unwrap_or("default");
    match profile(&credentials, &config, name) {
        Ok(None) if given.is_some() => {
            Err(format!("AWS_PROFILE: no profile `{}` in ~/.aws/credentials or ~/.aws/config", show(name)))
        }
        Err(Unusable::Elsewhere(_)) if given.is_none() && may_be_other => Ok(None),
        Err(Unusable::Elsewhere(key)) => Err(format!(
            "profile `{0}` has `{key}`, which is not supported; eval \"$(aws configure export-credentials --profile {0} \
             --format env)\" sets variables from it",
            show(name)
        )),
        Err(Unusable::Wrong(why)) => Err(format!("profile `{}`: {why}", show(name))),
        Ok(found) => Ok(found),
    }
}

/// A file that is not there has no profiles. A pipe would be waited for.
fn text(path: &Path) -> Result<String, String> {
    let at = |why: &dyn std::fmt::Display| format!("{}: {why}", show(&path.display().to_string()));
    let Ok(facts) = fs::metadata(path) else { return Ok(String::new()) };
    if !facts.is_file() || facts.len() > LONGEST {
        return Err(at(&"no regular file, or larger than 1 MiB"));
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    read.map_err(|error| at(&error))?;
    String::from_utf8(bytes).map_err(|_| at(&"it is not UTF-8"))
}

/// Why a profile gives no credentials. No value of it is shown.
#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    Elsewhere(&'static str),
    Wrong(String),
}

/// Of two files of that form; what the first says of credentials comes first.
fn profile(credentials: &str, config: &str, name: &str) -> Result<Option<Profile>, Unusable> {
    let in_credentials = section(credentials, &[name.to_owned()]);
    let mut of_config = vec![format!("profile {name}")];
    if name == "default" {
        of_config.push(name.to_owned());
    }
    let in_config = section(config, &of_config);
    if in_credentials.is_none() && in_config.is_none() {
        return Ok(None);
    }
    let mut values = in_config.unwrap_or_default();
    values.extend(in_credentials.unwrap_or_default());
    let wrong = |key: &str| {
        Unusable::Wrong(format!(
            "`{key}` is empty, or has a blank, a line's end or another character that no request can hold"
        ))
    };
    let taken = |key: &str| match values.get(key) {
        Some(value) if is_visible(value) => Ok(Some(value.clone())),
        Some(_) => Err(wrong(key)),
        None => Ok(None),
    };
    let keys = match (taken("aws_access_key_id")?, taken("aws_secret_access_key")?) {
        (Some(key), Some(secret)) => Some((key, secret)),
        (None, None) => None,
        (Some(_), None) => return Err(Unusable::Wrong("it has no `aws_secret_access_key`".to_owned())),
        (None, Some(_)) => return Err(Unusable::Wrong("it has no `aws_access_key_id`".to_owned())),
    };
    if keys.is_none()
        && let Some(key) = ELSEWHERE.into_iter().find(|key| values.contains_key(*key))
    {
        return Err(Unusable::Elsewhere(key));
    }
    let region = taken("region")?;
    let is_label = |text: &String| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if region.as_ref().is_some_and(|region| !is_label(region)) {
        return Err(Unusable::Wrong("`region` has other characters than letters, digits and `-`".to_owned()));
    }
    let endpoint = taken("endpoint_url")?;
    if let Some(endpoint) = &endpoint {
        check_endpoint("`endpoint_url`", endpoint).map_err(Unusable::Wrong)?;
    }
    Ok(Some(Profile { keys, token: taken("aws_session_token")?, region, endpoint }))
}

/// The values of the section with one of these names; `None` where there is no such section.
fn section(text: &str, names: &[String]) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut is_inside = false;
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let head: Vec<&str> = head.split_whitespace().collect();
            let head = head.join(" ").replace(['"', '\''], "");
            is_inside = names.contains(&head);
            if is_inside {
                found.get_or_insert_default();
            }
            continue;
        }
        // Settings of one service stand indented below a key of their own.
        if let (true, false, Some((key, value))) = (is_inside, is_nested, line.split_once('=')) {
            let value = value.split(" #").next().unwrap_or_default().split(" ;").next().unwrap_or_default();
            if let Some(values) = &mut found {
                values.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "[default]\naws_access_key_id = AKIA1\naws_secret_access_key=one/+=\n\n[work]\n# a comment\naws_access_key_id = AKIA2 # mine\naws_secret_access_key = two\naws_session_token = t==\n[half]\naws_access_key_id = AKIA3\n";
    const CONFIG: &str = "[default]\nregion = us-east-1\n[profile work]\nregion = eu-west-1\nendpoint_url = https://s3.example.com\ns3 =\n  region = no-where\n[profile sso]\nsso_session = corp\nregion = us-west-2\n[profile \"two words\"]\nregion = us-east-2\n[profile far]\nendpoint_url = http://8.8.8.8\n[profile odd]\nregion = a/b\n";

    fn found(name: &str) -> Result<Option<Profile>, Unusable> {
        profile(CREDENTIALS, CONFIG, name)
    }

    #[test]
    fn keys_token_region_and_endpoint_of_a_profile_are_read_from_both_files() {
        let Ok(Some(default)) = found("default") else { panic!("the default profile is there") };
        assert!(default.keys == Some(("AKIA1".into(), "one/+=".into())) && default.token.is_none());
        assert_eq!(default.region.as_deref(), Some("us-east-1"));
        let Ok(Some(work)) = found("work") else { panic!("the profile is there") };
        assert!(work.keys == Some(("AKIA2".into(), "two".into())) && work.token == Some("t==".into()));
        assert_eq!(
            (work.region.as_deref(), work.endpoint.as_deref()),
            (Some("eu-west-1"), Some("https://s3.example.com"))
        );
        let Ok(Some(words)) = found("two words") else { panic!("the profile is there") };
        assert!(words.keys.is_none() && words.region.as_deref() == Some("us-east-2"));
        assert!(matches!(found("nowhere"), Ok(None)) && matches!(profile("", "", "default"), Ok(None)));
        // In the file of credentials no name has the word `profile` before it.
        assert!(matches!(profile("[profile x]\naws_access_key_id = a\n", "", "x"), Ok(None)));
    }

    #[test]
    fn other_kinds_of_credentials_and_wrong_values_are_named_and_no_value_is_shown() {
        assert!(matches!(found("sso"), Err(Unusable::Elsewhere("sso_session"))));
        for (name, why) in [
            ("half", "no `aws_secret_access_key`"),
            ("far", "not encrypted"),
            ("odd", "`region` has other characters"),
        ] {
            match found(name) {
                Err(Unusable::Wrong(text)) => assert!(text.contains(why), "{name}: {text}"),
                _ => panic!("{name} was taken"),
            }
        }
        let hostile = "[x]\naws_access_key_id = AKIA hunter2\naws_secret_access_key = s\n";
        match profile(hostile, "", "x") {
            Err(Unusable::Wrong(text)) => {
                assert!(text.contains("aws_access_key_id") && !text.contains("hunter2"), "{text}");
            }
            _ => panic!("a key with a blank was taken"),
        }
        let both = "[x]\naws_access_key_id = AKIA1\naws_secret_access_key = s\nrole_arn = arn\n";
        assert!(matches!(profile(both, "", "x"), Ok(Some(_))), "static keys are there");
    }

    #[test]
    fn what_is_no_file_of_profiles_is_an_error_and_no_file_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(text(&folder.path().join("gone")), Ok(String::new()));
        assert!(text(folder.path()).is_err());
        let path = folder.path().join("binary");
        fs::write(&path, [255, 254]).expect("written");
        assert!(text(&path).is_err());
        File::create(&path).and_then(|file| file.set_len(LONGEST + 1)).expect("made");
        assert!(text(&path).is_err());
    }
}
