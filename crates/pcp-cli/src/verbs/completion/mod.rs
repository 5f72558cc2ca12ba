//! `completion`: a script that teaches a shell the verbs, their options, and the ids that the daemon has now.

pub(crate) mod live;
mod wanted;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::context::{Answer, Context};
use crate::error::Error;

/// Print a completion script for a shell
///
/// Where a capability's or an application's id belongs, the script asks the daemon, a tenth of a second at most.
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
        Ok(Answer::Document(self.shell.script().into_bytes()))
    }
}

impl Known {
    fn script(self) -> String {
        let shell = match self {
            Self::Bash => Shell::Bash,
            Self::Zsh => Shell::Zsh,
            Self::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut offered(), "pcp-cli", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        match self {
            Self::Bash => wrapped(&mend_bash(&script), "_pcp__cli", "\nif [[", include_str!("ids.bash")),
            Self::Zsh => wrapped(&script, "_pcp-cli", "\nif [ \"$funcstack[1]\"", include_str!("ids.zsh")),
            Self::Fish => script + include_str!("ids.fish"),
        }
    }
}

/// The command without what nobody types.
fn offered() -> clap::Command {
    let whole = Cli::command();
    let verbs = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let offered =
        clap::Command::new("pcp-cli").disable_help_subcommand(true).version(env!("CARGO_PKG_VERSION"));
    offered.args(whole.get_arguments().cloned()).subcommands(verbs)
}

/// Names the generated function `NAME__words`, and puts the one that asks for ids first before the script's `tail`.
fn wrapped(script: &str, name: &str, tail: &str, with: &str) -> String {
    let script = script.replacen(&format!("{name}() {{"), &format!("{name}__words() {{"), 1);
    match script.rfind(tail) {
        Some(end) => format!("{}\n{with}{}", &script[..end], &script[end..]),
        None => script,
    }
}

/// The generator spells a program's hyphen in two ways, so that no verb after it would complete anything.
fn mend_bash(script: &str) -> String {
    script.replace("pcp__subcmd__cli__subcmd__", "pcp__cli__subcmd__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_script_keeps_its_place_behind_what_asks_for_ids() {
        for (shell, lines) in [
            (Known::Bash, ["_pcp__cli() {", "_pcp__cli__words() {", "complete -F _pcp__cli -o bashdefault"]),
            (Known::Zsh, ["_pcp-cli() {", "_pcp-cli__words() {", "compdef _pcp-cli pcp-cli"]),
            (Known::Fish, ["__fish_pcp_cli_needs_command", "function __pcp_cli_ids", "complete -c pcp-cli"]),
        ] {
            let script = shell.script();
            for line in lines {
                assert!(script.contains(line), "{shell:?}: {line}");
            }
            assert!(
                script.matches("() {").count() == 0 || script.matches(lines[0]).count() == 1,
                "{shell:?}"
            );
            assert!(script.contains("__complete -- "), "{shell:?}");
            assert!(
                !script.contains("__complete)") && !script.contains("\"__complete\""),
                "{shell:?}: it is offered"
            );
        }
    }
}
