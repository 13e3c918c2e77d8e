//! Parse, call, exit code, and where the program's memory comes from; nothing else.

#[global_allocator]
static ALLOCATOR: nsys::huge_pages::HugePages = nsys::huge_pages::HugePages;

fn main() {
    let program = || harness::cli::main(std::env::args_os().collect());
    std::process::exit(harness::panics::at_the_top(program));
}
