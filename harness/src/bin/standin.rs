//! Stand-ins for the programs of a cluster: parse, call, exit code; nothing else.

fn main() {
    std::process::exit(standin::main(std::env::args().collect()));
}
