//! The words of `clean.sh` on the simulated cluster: leftovers of jobs, and the end of their processes.

use super::World;
use base::digest::sha256;
use cluster::reach::Answer;
use job::script::{self, secrets};
use std::fmt::Write;

/// The verb, the node and the folders, where the command is that script.
pub(crate) fn asked(argv: &[String]) -> Option<(&str, &str, &[String])> {
    match argv {
        [bash, c, text, clean, verb, node, folders @ ..]
            if bash == "bash" && c == "-c" && text == script::CLEAN_SH && clean == "clean" =>
        {
            let folders = match folders {
                [option, _runtime, folders @ ..] if option == "--containers" => folders,
                folders => folders,
            };
            Some((verb, node, folders))
        }
        _ => None,
    }
}

pub(crate) fn run(world: &mut World, verb: &str, node: &str, folders: &[String]) -> Answer {
    let now_s = world.now_s;
    let mut text = String::new();
    for (at, folder) in folders.iter().enumerate() {
        if verb == "end" {
            world.ssh.end(folder, node, true, now_s);
        }
        // Processes have no numbers here.
        if world.ssh.running_on(node).any(|running| running == folder) {
            let _ = writeln!(text, "{at}\tprocess\t{}", at + 1);
        }
        for name in given(world, folder) {
            // Infallible: writing to a string.
            let _ = writeln!(text, "{at}\tsecret\t{name}");
        }
        let within = format!("{folder}/");
        for (path, bytes) in
            world.files.range(within.clone()..).take_while(|(path, _)| path.starts_with(&within))
        {
            let _ = writeln!(text, "{at}\tfile\t{} {}", sha256(bytes), &path[within.len()..]);
        }
    }
    Answer::ok(text + "complete\n")
}

/// The files by which a job was to be given its secrets.
fn given(world: &World, folder: &str) -> Vec<String> {
    let within = format!("{folder}/{}", secrets::FILE);
    let paths = world.files.range(within.clone()..).take_while(|(path, _)| path.starts_with(&within));
    paths.map(|(path, _)| path[folder.len() + 1..].to_owned()).collect()
}
