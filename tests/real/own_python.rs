//! The stand-in of a training called python3 hands anything else to the machine's own python3.

use crate::bed::StandIns;
use crate::fact::Fact;
use std::fs;

pub(crate) const FACTS: &[Fact] = &[(
    "python3_is_the_machine_s_own_where_it_is_no_training",
    python3_is_the_machine_s_own_where_it_is_no_training,
)];

fn python3_is_the_machine_s_own_where_it_is_no_training() {
    let bed = StandIns::new("n1", "");
    let output = |words: &[&str]| {
        let mut command = bed.command(bed.programs().join("python3"));
        let output = command.args(words).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(output(&["-c", "import sys; print(6 * 7); sys.exit(3)"]), (Some(3), "42\n".to_owned()));
    let script = bed.state().join("other.py");
    fs::write(&script, "import sys\nprint(sys.argv[1])\n").expect("written");
    let path = script.display().to_string();
    assert_eq!(output(&[&path, "train.py"]), (Some(0), "train.py\n".to_owned()));
}
