//! What is taken for a secret and what is not, in whatever it stands; and that nothing depends on how bytes were cut.

use super::*;
use proptest::prelude::*;

fn redacted(text: &str) -> String {
    Redactor::default().text(text)
}

/// Secrets of no one, put together here so that nothing in this file looks like one.
fn made(prefix: &str, length: usize) -> String {
    prefix.chars().chain("x1Y2".chars().cycle().take(length)).collect()
}

/// The same without a digit.
fn letters(prefix: &str, length: usize) -> String {
    prefix.chars().chain("xYqW".chars().cycle().take(length)).collect()
}

#[test]
fn values_are_known_by_their_names_wherever_they_stand() {
    for (text, wanted) in [
        ("HF_TOKEN=abc\n", "HF_TOKEN=[redacted]\n"),
        ("HF_TOKEN=two words, all of it\nNEXT=1", "HF_TOKEN=[redacted]\nNEXT=1"),
        ("export WANDB_API_KEY=abc def\n", "export WANDB_API_KEY=[redacted]\n"),
        ("export DB_PASSWORD='it'\\''s' && x", "export DB_PASSWORD='[redacted]' && x"),
        (
            r#"{"a": "{\"secret\": \"ab\\\\\", \"c\": 1}"}"#,
            r#"{"a": "{\"secret\": \"[redacted]\", \"c\": 1}"}"#,
        ),
        ("export WANDB_API_KEY='a b' && x", "export WANDB_API_KEY='[redacted]' && x"),
        ("run -e NGC_API_KEY=abc123 image", "run -e NGC_API_KEY=[redacted] image"),
        (
            "{\"env\": [\"A=1\", \"DB_PASSWORD=it's \\\"so\\\"\", \"B=2\"]}",
            "{\"env\": [\"A=1\", \"DB_PASSWORD=[redacted]\", \"B=2\"]}",
        ),
        ("{\"password\": \"a\\\\\", \"b\": 1}", "{\"password\": \"[redacted]\", \"b\": 1}"),
        ("{\"apiKey\":12345678,\"n\":2}", "{\"apiKey\":[redacted],\"n\":2}"),
        (r#"{"line": "export X_SECRET='abc'\nB=1"}"#, r#"{"line": "export X_SECRET='[redacted]'\nB=1"}"#),
        (r#"{"line": "A\nPASSWORD=abc\nB"}"#, r#"{"line": "A\nPASSWORD=[redacted]\nB"}"#),
        (
            r#"{"a": "{\"secret\": \"a\\\"b\", \"c\": 1}"}"#,
            r#"{"a": "{\"secret\": \"[redacted]\", \"c\": 1}"}"#,
        ),
        ("prog --token abc --size 8", "prog --token [redacted] --size 8"),
        ("prog --api-key=abc --size 8", "prog --api-key=[redacted] --size 8"),
        ("prog --wandb-key=abc --size 8", "prog --wandb-key=[redacted] --size 8"),
        ("prog --ngc-key=abc --size 8", "prog --ngc-key=[redacted] --size 8"),
        ("prog --license-key=abc --size 8", "prog --license-key=[redacted] --size 8"),
        (r#"["prog", "--token", "abc", "x"]"#, r#"["prog", "--token", "[redacted]", "x"]"#),
        (r#"["prog", "--token=a b", "x"]"#, r#"["prog", "--token=[redacted]", "x"]"#),
        ("AWS_SECRET_ACCESS_KEY = abc", "AWS_SECRET_ACCESS_KEY = [redacted]"),
        ("aws_session_token=abc/+=", "aws_session_token=[redacted]"),
        ("SECRET_KEY=\"abc", "SECRET_KEY=\"[redacted]"),
        ("Authorization: Basic-abc", "Authorization: [redacted]"),
        ("x&password=abc&next", "x&password=[redacted]&next"),
        ("<a password=\"p&amp;q\" b=\"1\"/>", "<a password=\"[redacted]\" b=\"1\"/>"),
        ("MY_KEY=abc", "MY_KEY=[redacted]"),
        ("DB_PASSWORD=:abc\n", "DB_PASSWORD=[redacted]\n"),
        ("{\"password\u{1b}[0m\": \"abc\"}", "{\"password\u{1b}[0m\": \"[redacted]\"}"),
    ] {
        assert_eq!(redacted(text), wanted, "{text}");
        assert_eq!(redacted(wanted), wanted, "twice is once: {wanted}");
    }
}

#[test]
fn values_are_known_by_their_forms() {
    for secret in [
        format!("AKIA{}", "ABCD1234".repeat(2)),
        format!("ASIA{}", "ABCD1234".repeat(2)),
        made("ghp_", 36),
        made("github_pat_", 60),
        made("hf_", 34),
        made("nvapi-", 60),
        made("sk-", 48),
        made("glpat-", 20),
        made("xoxb-", 24),
        made("gsk_", 52),
        made("tskey-", 32),
        made("lin_api_", 40),
        made("cfut_", 48),
        made("r8_", 37),
        letters("r8_", 37),
        made("ak-", 22),
        made("as-", 22),
        format!("SK{}", "0123456789abcdef".repeat(2)),
        format!("{}==", made("AQ", 36)),
        format!("dapi{}", "0123456789abcdef".repeat(2)),
        letters("hf_", 34),
        letters("hf_", 34).to_lowercase(),
        letters("api_org_", 34),
        letters("wandb_v1_", 86),
        letters("glpat-", 20),
        letters("ghp_", 36),
        format!("{}.{}.{}", made("eyJ", 33), made("eyJ", 40), made("", 43)),
        format!("-----BEGIN RSA {0}-----\nMIIEow+/\nabc=\n-----END RSA {0}-----", "PRIVATE KEY"),
    ] {
        for (left, right) in [("", ""), ("said: ", " and more"), ("{\"a\": \"", "\", \"b\": 1}"), ("(", ")")]
        {
            let clean = redacted(&format!("{left}{secret}{right}"));
            assert_eq!(clean, format!("{left}[redacted]{right}"), "{secret}");
        }
        let within = serde_json::to_string(&format!("a {secret}\nb")).expect("text");
        assert_eq!(redacted(&within), "\"a [redacted]\\nb\"", "{within}");
    }
    for bearer in [made("", 24), letters("", 24)] {
        assert_eq!(redacted(&format!("x: Bearer {bearer}\n")), "x: Bearer [redacted]\n");
        assert_eq!(redacted(&format!("wandb login {bearer}\n")), "wandb login [redacted]\n");
        assert_eq!(redacted(&format!("login(\"{bearer}\")\n")), "login(\"[redacted]\")\n");
    }
    let of_models = letters("hf_", 34);
    for text in ["token is ", "token: ", "huggingface-cli login --add ", "Bearer "] {
        assert_eq!(redacted(&format!("{text}{of_models} x")), format!("{text}[redacted] x"));
    }
    assert_eq!(redacted("https://me:pa55@host/x"), "https://me:[redacted]@host/x");
    let cut = format!("-----BEGIN {}-----\nMIIE\n\"next\"", "PRIVATE KEY");
    assert_eq!(redacted(&cut), "[redacted]\"next\"");
    let of_putty = "Private-Lines: 2\nAAAA\nBBB=\nPrivate-MAC: 0a1b\n";
    assert_eq!(redacted(of_putty), "Private-Lines: 2[redacted]Private-MAC: 0a1b\n");
}

#[test]
fn what_only_resembles_a_secret_stays() {
    for text in [
        "tokens per second: 123.4, TOKENIZERS_PARALLELISM=false",
        "ms_per_token=12.5 pad_token_id: 0, \"max_token\": 4096,",
        "NCCL_SOMETHING_KEY=abc FI_UNIVERSE_KEY=7",
        "the bearer of bad news, a token: nothing",
        "  hf_token ............ None\n  max_token .......... 40960000\n  use_token ... true1",
        "bearer-of-bad-news-2-days-ago, show password | grep abcd1234",
        "password=$PASSWORD token=${TOKEN} secret='' HF_TOKEN=env:HF_TOKEN",
        "\"token\": null, \"secret\": false",
        "task-0123456789012345678901234567890123456789",
        "http://host:8080/a@b tcp://host:1234",
        "AKIA and AKIA1234 and xAKIAABCD1234ABCD1234",
        "key: all_reduce/p5/2x8, \"key\": \"busbw\"",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "sk-learn-is-a-library-with-a-long-name",
        "adapi0123456789abcdef0123456789abcdef dapiserver0123456789012345678901234567890",
        "dapi-server-0123456789012345678901234567 dapi0123456789abcdef0123456789abcdef0",
        "r8_alpha16_lr1e-4_bs128_epochs3_llama2_7b_hf cfut_is_a_name_of_something_longer",
        "license=Apache-2.0 --sort-key=name --license-file=LICENSE-MIT",
        "hf_AutoModelForCausalLM hf_some_long_name_of_a_variable_of_lower_letters",
        "Bearer authentication is-off-for-this-server",
        "1073741824  268435456  float  sum  -1  5000.0  214.75  375.81  0",
        "echo $1$2 $6$HOME; awk '{print $1$2}'; kernel<<<grid, block>>>(a); prog <<< word; cat <<EOF",
        "xai-grok-4-fast-reasoning IQoJ FwoGZXIvYXdzE ABSK bedrock-api-key-name https://api.telegram.org/bot",
        "mount -t ext4 -o pass=1 /dev/a /mnt, pass=12 fail=3 skip=0; bash -c ls; curl -X POST -A agent -c jar host",
        "htpasswd -c file me; htpasswd -B file me; smbclient -U me //host/a; snmpwalk -v3 -l noAuthNoPriv host",
        "SLURM_SACK_KEY=/etc/slurm/slurm.key AuthAltParameters=jwt_key=/etc/slurm/jwt.key",
    ] {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn hashes_of_passwords_are_known_by_their_form() {
    for (begin, length) in [
        ("$1$salt$", 22),
        ("$apr1$salt$", 22),
        ("$5$rounds=5000$salt$", 43),
        ("$6$salt.salt$", 86),
        ("$6$rounds=656000$salt$", 86),
        ("$y$j9T$salt$", 43),
        ("$2b$12$", 53),
        ("$2y$05$", 53),
    ] {
        let hash = made(begin, length);
        assert_eq!(redacted(&format!("root:{hash}:19000:0\n")), "root:[redacted]:19000:0\n");
        assert_eq!(redacted(&format!("{{\"a\": \"{hash}\"}}")), "{\"a\": \"[redacted]\"}");
        for other in [made(begin, length - 1), made(begin, length + 1)] {
            assert_eq!(redacted(&other), other);
        }
    }
}

fn knowing(values: &[(&str, &str)]) -> Redactor {
    let look_up =
        |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let names = values.iter().map(|(name, _)| *name);
    Redactor::default().and(&Secrets::resolve(names, &look_up).expect("values"))
}

#[test]
fn a_known_value_is_found_in_every_form_in_which_artefacts_hold_it() {
    let value = "p\u{e4}ss \"word'\\ <&> tail";
    let redactor = knowing(&[("X", value)]);
    let json = serde_json::to_string(value).expect("text");
    let twice = serde_json::to_string(&json).expect("text");
    let shell = format!("export A='{}'", value.replace('\'', r"'\''"));
    let xml = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let in_json = serde_json::to_string(&shell).expect("text");
    for text in [format!("a{value}b"), json, twice, shell, format!("{value:?}"), xml, in_json] {
        let clean = redactor.text(&text);
        assert!(clean.contains("[redacted]") && !clean.contains("tail"), "{text}: {clean}");
    }
    assert_eq!(redactor.text(&format!("X_PASSWORD={value}, B=1")), "X_PASSWORD=[redacted]");
    assert_eq!(redactor.text(&format!("a X_PASSWORD={value}, B=1")), "a X_PASSWORD=[redacted] B=1");
    // Each line of it for itself, and beyond what a launcher puts before a line.
    let redactor = knowing(&[("X", "the first line\nand the second")]);
    assert_eq!(redactor.text("[0] the first line\n[0] x\n"), "[0] [redacted]\n[0] x\n");
    assert_eq!(redactor.text("b and the second c"), "b [redacted] c");
    let redactor = knowing(&[("X", "one two three")]);
    assert_eq!(redactor.text("a one\n [1,0]<stdout>: two three b"), "a [redacted] b");
    assert_eq!(redactor.text("a one\n two :three b"), "a one\n two :three b");
}

#[test]
fn what_is_no_text_keeps_its_length() {
    let token = made("ghp_", 36);
    let bytes = [b"PAR1\0\0\xff", token.as_bytes(), b"\0HF_TOKEN=abc\0rest"].concat();
    let Redacted { bytes: masked, count } = Redactor::default().bytes(&bytes);
    assert_eq!(masked, [b"PAR1\0\0\xff", "*".repeat(40).as_bytes(), b"\0HF_TOKEN=***\0rest"].concat());
    assert_eq!(count, 2);
}

#[test]
fn the_first_secret_is_reported_by_line_and_kind() {
    let redactor = Redactor::default();
    assert_eq!(redactor.first(b"a\nb\n"), None);
    let long = "a line\n".repeat(20_000) + "DB_PASSWORD=abc\nX_SECRET=2";
    let found = Some((20_001, "DB_PASSWORD".to_owned()));
    assert_eq!(redactor.first(long.as_bytes()), found);
    assert_eq!(redactor.first_in(&mut long.as_bytes()).expect("read"), found);
    let value = serde_json::json!({"a": [1, {"b": "--token abc"}]});
    assert_eq!(redactor.first_within(&value), Some(("a.1.b".to_owned(), "token".to_owned())));
}

#[test]
fn secrets_are_found_wherever_they_stand_in_an_artefact() {
    use serde_json::json;
    let redactor = Redactor::default();
    for (value, wanted, path) in [
        (json!({"password": "abc"}), json!({"password": "[redacted]"}), "password"),
        (json!({"a": {"apiKey": ["abc", 1]}}), json!({"a": {"apiKey": ["[redacted]", 1]}}), "a.apiKey"),
        (json!([1, [{"secret": "abc"}]]), json!([1, [{"secret": "[redacted]"}]]), "1.0.secret"),
        (json!([["--token abc"]]), json!([["--token [redacted]"]]), "0.0"),
    ] {
        assert_eq!(redactor.first_within(&value).expect("a secret").0, path);
        let mut clean = value;
        redactor.value(&mut clean);
        assert_eq!(clean, wanted);
        assert_eq!(redactor.first_within(&clean), None, "{clean}");
    }
    for mut value in [json!({"password": ""}), json!({"max_token": "4096"}), json!({"token": "env:A"})] {
        let before = value.clone();
        redactor.value(&mut value);
        assert_eq!(value, before);
    }
}

#[test]
fn unusable_secrets_are_all_reported_by_name_only() {
    let look_up = |name: &str| match name {
        "SHORT" => Some("abc".to_owned()),
        "ZERO" => Some("abcdef\0".to_owned()),
        _ => None,
    };
    let diagnostics = Secrets::resolve(["SHORT", "ZERO", "ABSENT"], &look_up).expect_err("refused");
    assert_eq!(diagnostics.len(), 3);
    assert!(diagnostics.iter().all(|why| !why.contains("abc")), "{diagnostics:?}");
    assert_eq!(reference("env:A_1"), Reference::To("A_1"));
    for text in ["env:", "env:1A", "env:A B", "env:$A"] {
        assert_eq!(reference(text), Reference::Broken, "{text}");
    }
    assert_eq!(reference("environment"), Reference::None);
}

#[test]
fn variables_of_the_environment_are_known_by_value_unless_that_is_an_everyday_word() {
    let variables = [
        ("A_TOKEN", "q9w8e7r6"),
        ("B_SECRET", "/home/me/1"),
        ("C_KEY", "production"),
        ("D", "a1b2c3d4e5"),
        ("E_PASSWORD", "qwertasdfgzxcvbnm"),
        ("F_TOKEN", "glpat-abcd"),
    ];
    let own = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let redactor = Redactor::from_environment(own);
    assert_eq!(
        redactor.text("q9w8e7r6 /home/me/1 production a1b2c3d4e5 qwertasdfgzxcvbnm glpat-abcd"),
        "[redacted] /home/me/1 production a1b2c3d4e5 [redacted] [redacted]"
    );
}

/// Pieces of which texts are made: plain ones, and what begins and ends secrets.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~\n\t]{0,20}",
        Just("HF_TOKEN=".to_owned()),
        Just("\"password\": \"".to_owned()),
        Just("--token ".to_owned()),
        Just(made("ghp_", 36)),
        Just("the known value".to_owned()),
        Just(format!("-----BEGIN {}-----\nabc", "PRIVATE KEY")),
        Just(format!("-----END {}-----", "PRIVATE KEY")),
        Just("\\".repeat(70)),
        Just("it'\\''s".to_owned()),
        Just("\\\"".to_owned()),
        Just("a".repeat(900)),
        Just("://me:secret@".to_owned()),
        Just("\0".to_owned()),
        Just("\n0: A_TOKEN:\n0:  abc".to_owned()),
        Just("\nkind: Secret\ndata:\n  a: ".to_owned()),
        Just("74 68 65 20 6b 6e 6f 77  |the know|\n00000008  6e 20 76 61 6c 75 65".to_owned()),
        Just("echo abc | chpasswd\n".to_owned()),
        Just("['A_TOKEN']: Optional[str] = b'a".to_owned()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn however_bytes_are_cut_the_result_is_the_same(text in pieces(), cuts in prop::collection::vec(1usize..1500, 1..40)) {
        let redactor = knowing(&[("X", "the known value")]);
        for how in [How::Word, How::Mask] {
            let mut whole = Vec::new();
            let mut stream = redactor.stream(how);
            stream.push(text.as_bytes(), &mut whole);
            stream.finish(&mut whole);
            let count = stream.count();
            let mut cut = Vec::new();
            let mut stream = redactor.stream(how);
            let mut rest = text.as_bytes();
            for length in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (now, later) = rest.split_at((*length).min(rest.len()));
                stream.push(now, &mut cut);
                prop_assert!(stream.waiting() <= 1500 + 1536, "{}", stream.waiting());
                rest = later;
            }
            stream.finish(&mut cut);
            prop_assert_eq!(&cut, &whole);
            prop_assert_eq!(stream.count(), count);
            if how == How::Mask {
                prop_assert_eq!(whole.len(), text.len());
            }
            prop_assert!(!String::from_utf8_lossy(&whole).contains("the known value"));
        }
    }

    // Unbalanced marks and backslashes may close what they did not open: nothing is guaranteed for such texts.
    #[test]
    fn what_was_json_is_json_afterwards(text in pieces().prop_map(|text| text.replace(['\\', '"', '\''], ""))) {
        let json = serde_json::json!({"a": text, "b": [text, 1], "c": serde_json::to_string(&text).expect("text")});
        let clean = knowing(&[("X", "the known value")]).text(&serde_json::to_string_pretty(&json).expect("text"));
        prop_assert!(serde_json::from_str::<serde_json::Value>(&clean).is_ok(), "{}", clean);
    }
}
