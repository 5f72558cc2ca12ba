//! The program `pcp-cli`.

fn main() -> std::process::ExitCode {
    pcp_cli::main(std::env::args_os())
}
