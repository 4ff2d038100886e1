//! `pe-bench completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use super::out::say;

/// Prints the completion script of a shell.
pub(super) fn completions(shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "pe-bench", &mut script);
    say(String::from_utf8_lossy(&script).trim_end());
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::Cli;

    fn without_example(command: &Command, path: &str, missing: &mut Vec<String>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name());
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            if sub.has_subcommands() {
                without_example(sub, &path, missing);
            } else if !help.contains("pe-bench") {
                missing.push(path);
            }
        }
    }

    #[test]
    fn every_command_has_an_example_in_its_help() {
        let mut missing = Vec::new();
        without_example(&Cli::command(), "pe-bench", &mut missing);
        assert!(missing.is_empty(), "without an example: {missing:?}");
    }

    #[test]
    fn the_command_line_is_sound_and_its_help_lists_the_exit_codes() {
        Cli::command().debug_assert();
        let help = Cli::command().render_help().to_string();
        for code in ["0 ", "1 ", "2 ", "3 ", "130 "] {
            assert!(help.contains(&format!("  {code}")), "{code}: {help}");
        }
    }
}
