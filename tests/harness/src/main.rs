//! The harness with the stories that ship with it.

fn main() -> std::process::ExitCode {
    pcp_harness::cli::main(pcp_harness::stories::ALL)
}
