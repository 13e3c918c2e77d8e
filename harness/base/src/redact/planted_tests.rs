//! Secrets planted in the forms in which logs, scripts and settings hold them: none may survive but those that the list
//! of forms names.

use super::*;
use forms::{KNOWN, not_caught};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::time::Duration;

#[path = "../../../../tests/planted/forms.rs"]
mod forms;

/// Stands in no text but where it was planted.
const X: &str = "x1Y2q9W8e7R6t5Z4";

fn long() -> String {
    X.repeat(4)
}

fn survives(redactor: &Redactor, text: &str, secret: &str) -> Vec<String> {
    let mut leaks = Vec::new();
    let json = serde_json::to_string(text).expect("text");
    for (form, whole) in [("plain", text), ("JSON", &json)] {
        let clean = redactor.text(whole);
        if clean.contains(secret) {
            leaks.push(format!("{form}: {clean:?}"));
        }
        let masked =
            String::from_utf8_lossy(&redactor.bytes(&[b"\0", whole.as_bytes()].concat()).bytes).into_owned();
        if masked.contains(secret) {
            leaks.push(format!("{form}, masked: {masked:?}"));
        }
    }
    leaks
}

fn knowing_one() -> Redactor {
    let look_up = |_: &str| Some(KNOWN.to_owned());
    Redactor::default().and(&Secrets::resolve(["X"], &look_up).expect("a value"))
}

#[test]
fn no_planted_secret_survives() {
    let forms = [forms::unknown(), forms::known()].concat();
    let redactor = knowing_one();
    let leaks: Vec<_> = forms.iter().flat_map(|form| survives(&redactor, &form.text, &form.secret)).collect();
    assert!(leaks.is_empty(), "{} forms leak:\n{}", leaks.len(), leaks.join("\n"));
    // Bundles and uploads are refused for what is found in a file that was redacted before.
    let clean = |text: &str| redactor.text(text);
    let left = forms
        .iter()
        .filter_map(|form| Some((clean(&form.text), redactor.first(clean(&form.text).as_bytes())?)));
    // A user in an address stays where its password is asked for, and counts by itself.
    assert_eq!(left.filter(|(_, what)| what.1 != "a token in an address").collect::<Vec<_>>(), []);
}

#[test]
fn nuls_between_letters_hide_no_secret() {
    let spread = |text: &str, nuls: usize| -> String {
        text.chars().map(|c| format!("{c}{}", "\0".repeat(nuls))).collect()
    };
    let mut forms = vec![(spread(KNOWN, 1), spread("w0rd", 1))];
    for text in [
        "HF_TOKEN={X}\r\nnext",
        "a\nexport HF_TOKEN='{X}'\n",
        "{\"db_password\": \"{X}\", \"b\": 1}",
        "prog --token {X} and MY_TOKEN: {X}",
    ] {
        let text = text.replace("{X}", X);
        let cut = text.replace("TOKEN", "TO\0KEN").replace("pass", "pa\0ss").replace("token", "to\0ken");
        forms.push((cut, X.to_owned()));
        // Two and four bytes a letter, from the lower and from the higher one on.
        for nuls in [1, 3] {
            forms.push((spread(&format!("a {text}"), nuls), spread(X, nuls)));
            forms.push((format!("{}{}", "\0".repeat(nuls), spread(&text, nuls)), spread(X, nuls)));
        }
    }
    let redactor = knowing_one();
    let json = |text: &str| serde_json::to_string(text).expect("text");
    let mut leaks = Vec::new();
    for (text, secret) in &forms {
        leaks.extend(survives(&redactor, text, secret));
        // JSON writes what must be seen nowhere in its own way, too.
        let clean = redactor.text(&json(text));
        if clean.contains(json(secret).trim_matches('"')) {
            leaks.push(format!("JSON: {clean:?}"));
        }
    }
    assert!(leaks.is_empty(), "{} forms leak:\n{}", leaks.len(), leaks.join("\n"));
    // What ends a text ends a value.
    let text = "a\0HF_TOKEN=abc\0next\0B\0\0C\0=\0d\0";
    assert_eq!(redactor.text(text), text.replace("abc", "***"));
}

#[test]
fn forms_that_are_listed_as_not_caught_are_not() {
    for form in not_caught() {
        assert!(knowing_one().text(&form.text).contains(&form.secret), "it is caught: {:?}", form.text);
    }
}

#[test]
fn no_line_of_a_private_key_survives_a_launchers_prefixes() {
    for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        for prefix in
            ["", "[default0]:", "0: ", "[1,0]<stdout>:", "[prterun-p5-1@1,3]<stderr>: ", "\u{1b}[32m"]
        {
            let lines =
                [format!("-----BEGIN {kind}-----"), long(), X.to_owned(), format!("-----END {kind}-----")];
            let text: String = lines.iter().map(|line| format!("{prefix}{line}\n")).collect();
            let leaks = survives(&Redactor::default(), &format!("{text}[default0]:next\n"), X);
            assert!(leaks.is_empty(), "{kind} behind {prefix:?}: {leaks:?}");
            let clean = Redactor::default().text(&format!("{text}[default0]:next\n"));
            assert!(clean.ends_with("[default0]:next\n"), "{clean:?}");
        }
    }
}

#[test]
fn names_that_only_resemble_the_new_ones_stay() {
    for text in [
        "OLDPWD=/home/me PWD=/home/me",
        "ALL_PASS=1 num_pass: 12, pass: yes",
        "| tokens | 12 |",
        "| token | count |",
        "docker run -p 8080:80 image",
        "ssh -p 2222 host; mkdir -p /a/b; curl -u $USER:$PASS url",
        "signature: valid, sig=11, compass=north, bypass=on",
        "the password is wrong\nthe cookies are warm",
        "\u{1b}[32mok\u{1b}[0m done",
        "{\"name\": \"nccl.busbw\", \"value\": 12} name: NCCL_DEBUG\nvalue: INFO, key: max_token value: 12",
        "auth: none, \"auth\": \"munge\", AuthType=auth/munge, auth=password-based",
        "('NCCL_DEBUG', 'INFO') get(\"max_token\", \"many\") redis-cli -a --tls; ls -a x",
        "Private-Lines: 2 of them; SG.short; Vec<Token>x",
        "| ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>) | 12.5 | 1024 |",
        "p5-001:1234:1301 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n",
        "p5-001:1234:1301 [0] NCCL INFO comm 0x55f0c8a41b20 rank 0 nranks 16 commId 0x3c1fe2a45d7b9c01 - Init START",
        "tokens/s: 123, max_tokens = 4096, tokens: int = 8, max_token: int = 4096, n_token+=12",
        "needs $PWD = container folder, pwd: not a folder, pwd=/home/x, pwd: ~/runs, \"pwd\": \"./a\", pwd=$(pwd), pwd = os.getcwd()",
        "counts[token] = counts.get(token, 0) + 1; vocab[token]+=1; if token in seen: x",
        "kind: ConfigMap\ndata:\n  any: 12\nkind: Pod\ndata: none, data: [1, 2]",
        "type Secret data:{s any:s} kind:s\nnext",
        "{\"kind\": \"ConfigMap\", \"data\": {\"any\": \"x1Y2q9W8e7R6t5Z4\"}}",
        "API key: none, access key: /etc/keys/1a2b3c4d, the sort key: x1Y2q9W8e7R6t5Z4",
        "secret default-token-8xk2p not found, token GPT2TokenizerFast, token step-20-of-30",
        "echo x1Y2 | grep -c a; echo $TOKEN | docker login --password-stdin",
        "openssl rsa -passin env:PASS -in a; curl -k https://host; openssl x509 -in pass.pem",
        "kubectl create configmap a --from-literal=a=b; mysql -p db; ls -w 80",
        "MY_AUTH=none REQUIRE_AUTH=true DOCKER_AUTH_CONFIG=/root/.docker/config.json OMPI_AUTH=x1Y2q9W8e7R6t5Z4",
        "0: token:\n0: step 12 loss 2.5\n[default0]:password:\n[default0]:step 5 loss 2.25\n",
        "-----BEGIN RSA PUBLIC KEY-----\nMIIB\n---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----",
        "{\"kty\":\"RSA\",\"n\":\"x1Y2q9W8e7R6t5Z4x1Y2q9W8\",\"e\":\"AQAB\",\"p\":12}",
        "{\"k\": \"x1Y2q9W8e7R6t5Z4x1Y2q9W8\", \"d\": \"x1Y2q9W8e7R6t5Z4x1Y2q9W8\", \"kind\": \"a\"}",
        "$scrypt$ $argon2id$ pbkdf2_sha256 and SCRAM-SHA-256 are slow; scrypt: done; {SSHA} of a; $P$Q",
        "Unseal Key 1 is lost, operator unseal the vault; DHHC-1: none; negotiate link speed 400G, NTLM v2",
        "routing_key=tasks.default, ssl_certificate_key: /etc/a1b2c3d4.pem, certificateKey: none",
        "{\"sort\":{\"key\":\"x1Y2q9W8e7R6t5Z4\"}} wandb: {project: x1Y2q9W8e7R6t5Z4}",
        "curl -U me https://host; curl --passive a1b2c3d4; ssh-keygen -N '' -f id; useradd -m -s /bin/bash me",
        "docker run --name mongo -p 27017:27017 mongo; psql -W -h host db; git clone ssh://git@host/a@b",
        "[115, 195, 164] 0x73, 0xc3, 0xa4; 00000000: 7361 6d70 6c65  sample",
        "use net user accounts; a net user limit of 12, mc alias list; mc alias set is next; rabbitmqctl list_users",
        "1073741824  268435456  float  sum  -1  5000.0  214.75  375.81  0; ./all_reduce_perf -b 8 -e 16G -f 2 -g 1",
        "p5-001:1234:1301 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 32 nics)",
        "p5-001 send 1234 recv 5678; send \"ls -l /tmp\" to p5-002; identified by 'GPU-5ec3'; PASSWORD is next",
        "| N/A   34C    P0             112W /  700W |    1234MiB /  81559MiB |      0%      Default |",
        "nvidia-smi -i 0 -q -d CLOCK; docker run -p 8080:80 a; k3s server; curl https://host -o a:b -b jar.txt",
        "git config --global user.name me; the mkpasswd tool; sqlplus / as sysdba",
        "srun --container-image=nvcr.io/a -N 2 -n 16; see https://docs -a one:two; redis-cli config get maxmemory 12",
        "docker run -u 1000 --name mongo -p 127.0.0.1:27017:27017/tcp mongo; docker run --name mongo -p $PORT:27017 mongo",
        "kubectl -n mongo patch sts a -p '{\"spec\":{}}'; mkdir -p /a/mongo; mongo --port 27017 host",
        "iscsiadm -m node -T a -o update -n node.startup -v automatic; the gh secret; glab mr create -t title",
        "ctr run --user me:group a b; az storage blob list --value a; ipmitool -v -H host; coscmd list",
        "ceph config-key get a; ceph config-key set a -i /root/a.key; ceph config set osd a 12; vault write auth/a/login role=b",
        "the pro attach point; username and password are wrong; snmp-server enable traps; the psk of EAP is on; PSK none",
        "mount.cifs //host/a /mnt -o username=me,vers=3.0; echo a | grep -c su; gluster volume info; enable secret scanning",
        "psql -v ON_ERROR_STOP=1 -v pass=2 -v pwd=/a; docker run -e PWD=/a -e OLD_PWD=/b/c a; awk -v pass=$PASS; java -Dbypass=yes",
        "p5-001:5432:1301 [0] NCCL INFO a:b:c; docker run -p 5432:5432:5432 a; 12:5432:a:b; \"ports\": \"db:5432:5432\"",
        "psk = none, key_mgmt=WPA-PSK, psk: disabled; chpasswd: {expire: False}; list: [a, b]; usermod; chpasswd: me",
        "kubectl patch configmap a -p '{\"data\":{\"any\":\"x1Y2q9W8e7R6t5Z4\"}}'; curl -u $A_LONG_NAME_OF_A_KEY_1: https://host",
        "n_pass: 12, pass = yes, pass: p5-002-and-p5-003, pass=2026-01-31, rank_pass=ok first_pass=1 torch_elastic_pass=ok",
        "auth=('me', password), login('me', ''), HTTPBasicAuth(user, None), author('a', 'b'), login(url), auth(a), auth = (a, b)",
        "basic authentication12, Basic AllReduceTest1, sum -u 1 -i; the sum -p 8; nv set interface eth0 mtu 9216; maas login is",
        "AQ is short; pat-na1-east; SK0123; secret_of_a_name; as-is; ak-47; glft-none; hc-ping.com; ops_eyJ",
    ] {
        assert_eq!(Redactor::default().text(text), text);
    }
}

#[test]
fn hostile_texts_take_linear_time() {
    // The processor time of this thread: other work on the machine does not count.
    let worked = || {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("of this thread");
        let time = usage.user_time() + usage.system_time();
        Duration::from_micros(time.num_microseconds().unsigned_abs())
    };
    let once = |text: &str| {
        let begun = worked();
        knowing_one().text(text);
        worked() - begun
    };
    let least_of_3 = |text: &str| (0..3).map(|_| once(text)).min().unwrap_or(Duration::ZERO);
    for piece in [
        "th.kb.c-",
        "-p ",
        "login ",
        "-----BEGIN ",
        "password='a\n",
        "\u{1b}[",
        "token: [\"a\", ",
        "machine a ",
        "| a_token",
        "name: A_TOKEN\nvalu",
        "Private-Lines: 1\n",
        "{\"log\":\"-----BEGIN PRIVATE KEY-----\\n\"}\n",
        "s\u{e4}cret/w\n",
        "kind\ndata:\n ",
        "echo a|",
        "A_TOKEN: str|None ",
        "0: token:\n0:  a",
        "[1][2]a_token:\n",
        "73 c3 ",
        "c8OkY3Jl\"",
        "sudo -S <<<",
        "htpasswd -b ",
        "mc alias set ",
        "nmcli a ",
        "rclone config ",
        "$6$a$b",
        "-----BEGIN%20A+",
        "---- BEGIN ",
        "://a@b:c@",
        "\"kty\":\"d\":\"",
        "$argon2id$a$",
        "password: ",
        "mongo -p ",
        "-v pw=",
        "a:5432:b:c",
        "chpasswd:{list: ",
        "username -a ",
        "auth=('a',",
    ] {
        let few = least_of_3(&piece.repeat(100_000 / piece.len()));
        // 8 where linear, 64 where quadratic.
        let most = few * 24 + Duration::from_millis(50);
        let long = piece.repeat(800_000 / piece.len());
        // What was slow may have been disturbed: only then it is measured again.
        let many = once(&long);
        let many = if many < most { many } else { least_of_3(&long) };
        assert!(many < most, "{piece:?}: {few:?}, {many:?}");
    }
}
