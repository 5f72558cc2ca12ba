//! The binary: one call.

use std::process::ExitCode;

fn main() -> ExitCode {
    pcp_fakeapp::main(std::env::args_os())
}
