//! Why a capture, or a text of lifetime totals, is refused: every message.

use super::{MOST_BYTES, read, read_file, read_totals};
use std::path::Path;

/// Every line of a capture's header but the last.
const BEFORE_BEGIN: &str =
    "harness-counters 1\nnode n1\nroot /sys\ninterval_s 1.00\ncolumns tx_bytes rx_bytes\n";

#[test]
fn messages_of_captures() {
    let begin = |rest: &str| format!("{BEFORE_BEGIN}begin {rest}\n");
    let head = begin("wall=1700000000 uptime=10.5") + "device d0 lifespan_ms=12\n";
    let behind = |rest: &str| format!("{head}{rest}\n");
    let end = "end wall=1700000009 uptime=19.5 cost_s=0.1 reason=stop";
    let texts = [
        ("nothing", String::new()),
        ("another format", "harness-counters 2\n".to_owned()),
        ("header without its first line", "node n1\n".to_owned()),
        ("header that is cut", BEFORE_BEGIN.to_owned()),
        ("interval that is no number", BEFORE_BEGIN.replace("1.00", "soon")),
        ("escape of one digit", BEFORE_BEGIN.replace("n1", "n%4")),
        ("begin with one clock", begin("wall=1700000000")),
        ("begin with three clocks", begin("wall=1 uptime=2 cpu=3")),
        ("begin without names", begin("1 2")),
        ("device without a lifespan", behind("device d1")),
        ("lifespan of another name", behind("device d1 ms=12")),
        ("lifespan that is no number", behind("device d1 lifespan_ms=soon")),
        ("device twice", behind("device d0 lifespan_ms=-")),
        ("reading with too few values", behind("before 1.0 d0 1")),
        ("reading of an unknown device", behind("before 1.0 d1 1 2")),
        ("reading of a signed value", behind("before 1.0 d0 1 +2")),
        ("reading without a time", behind("before x d0 1 2")),
        ("missing counter without a name", behind("missing d0")),
        ("unknown phase", behind("not-quiet noon")),
        ("unknown reason", behind(&end.replace("stop", "tired"))),
        ("line behind the end", behind(&format!("{end}\nafter 20.0 d0 1 2"))),
        ("line of a shell", behind("bash: warning: setlocale")),
        ("long line", behind(&"x".repeat(1 << 20))),
    ];
    let mut lines: Vec<String> = texts
        .iter()
        .map(|(what, text)| format!("{what}: {}", read(text.as_bytes(), "f").expect_err(what)))
        .collect();
    let bytes = [head.as_bytes(), b"\xff\n"].concat();
    lines.push(format!("line that is not UTF-8: {}", read(&bytes, "f").expect_err("no text")));
    let gone = read_file(Path::new("/no/such/folder/counters.n1.txt")).expect_err("no file");
    lines.push(format!("no file: {gone}"));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn messages_of_totals() {
    let colons = "::::::::::::::\n";
    let path = "/sys/class/infiniband/d/ports/1/hw_counters/a\n";
    let texts = [
        ("nothing", String::new()),
        ("more than is read", "x".repeat(MOST_BYTES + 1)),
        ("rdma: name without a value", "link d/1 a 1 b".to_owned()),
        ("rdma: device without a port", "link d a 1".to_owned()),
        ("rdma: device without a counter", "link d/1 a 1\nlink e/1\n".to_owned()),
        ("rdma: counter twice", "link d/1 a 1 a 2".to_owned()),
        ("rdma: negative value", "link d/1 a -1".to_owned()),
        ("files: no file", colons.to_owned()),
        ("files: cut before the value", format!("{colons}{path}{colons}")),
        ("files: no value between two", format!("{colons}{path}{colons}{colons}{path}{colons}7\n")),
        ("files: two values", format!("{colons}{path}{colons}7\n8\n")),
        ("files: another path", format!("{colons}/etc/passwd\n{colons}7\n")),
        ("files: value that is no number", format!("{colons}{path}{colons}x\n")),
        ("files: counter twice", format!("{colons}{path}{colons}7\n{colons}{path}{colons}7\n")),
        ("exporter: no device", "node_amazonefa_a{port=\"1\"} 1\n".to_owned()),
        ("exporter: fraction", "node_amazonefa_a{device=\"d\",port=\"1\"} 1.5\n".to_owned()),
        ("exporter: no counter", "node_amazonefa_info{device=\"d\"} 1\n".to_owned()),
        ("prose", "Warning: a host was added\n".to_owned()),
    ];
    let lines =
        texts.map(|(what, text)| format!("{what}: {}", read_totals(text.as_bytes(), "f").expect_err(what)));
    insta::assert_snapshot!(lines.join("\n"));
}
