//! The daemon's binary: one call.

fn main() -> std::process::ExitCode {
    pcp_daemon::main(std::env::args_os())
}
