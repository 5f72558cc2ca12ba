//! `completion`: a script that teaches a shell the verbs and options.

use clap_complete::Shell;

use crate::cli;
use crate::context::{Answer, Context};
use crate::error::Error;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli completion bash > /usr/share/bash-completion/completions/pcp-cli
  pcp-cli completion zsh > /usr/share/zsh/vendor-completions/_pcp-cli
  pcp-cli completion fish > /usr/share/fish/vendor_completions.d/pcp-cli.fish

Exit codes: 0 ok, 2 another shell.")]
pub(crate) struct Completion {
    /// bash, zsh or fish
    #[arg(value_name = "SHELL", value_enum)]
    shell: Known,
}

/// The shells that scripts are tested for.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

impl Completion {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        let shell = match self.shell {
            Known::Bash => Shell::Bash,
            Known::Zsh => Shell::Zsh,
            Known::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut cli::command(), "pcp-cli", &mut script);
        if let Known::Bash = self.shell {
            script = mend_bash(&script).into_bytes();
        }
        Ok(Answer::Document(script))
    }
}

/// The generator spells a program's hyphen in two ways, so that no verb after it would complete anything.
fn mend_bash(script: &[u8]) -> String {
    String::from_utf8_lossy(script).replace("pcp__subcmd__cli__subcmd__", "pcp__cli__subcmd__")
}
