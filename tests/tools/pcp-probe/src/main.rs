//! `pcp-probe`: sends raw frames to a socket and judges the answers.

fn main() -> std::process::ExitCode {
    pcp_probe::run(std::env::args_os())
}
