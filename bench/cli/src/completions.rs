//! `pe-bench completions`, and the manual pages.

use std::path::Path;

use anyhow::Context as _;
use clap::ValueEnum as _;
use clap_complete::{Generator as _, Shell};

use super::out::{counted, say};
use super::{folders, program};

/// Prints the completion script of a shell, or writes all of them and the manual pages to a folder.
pub(super) fn run(shell: Option<Shell>, all: Option<&Path>) -> anyhow::Result<()> {
    if let Some(shell) = shell {
        say(script(shell).trim_end());
    }
    all.map_or(Ok(()), write_all)
}

/// Completion script of a shell.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program(), "pe-bench", &mut script);
    // clap_complete 4.6 takes the `-` of the name for a subcommand in half of its script for bash, whose halves do not fit then.
    String::from_utf8_lossy(&script).replace("pe__subcmd__bench", "pe__bench")
}

/// Writes the manual pages of all commands and the completion scripts of all shells to a folder.
fn write_all(folder: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write to {}", folder.display());
    folders::create(folder)?;
    clap_mangen::generate_to(program(), folder).with_context(cannot)?;
    for shell in Shell::value_variants() {
        let file = folder.join(shell.file_name("pe-bench"));
        std::fs::write(file, script(*shell)).with_context(cannot)?;
    }
    let files = std::fs::read_dir(folder).with_context(cannot)?.count();
    say(&format!("{} in {}", counted(files, "file"), folder.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::program;

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
        without_example(&program(), "pe-bench", &mut missing);
        assert!(missing.is_empty(), "without an example: {missing:?}");
    }

    #[test]
    fn the_command_line_is_sound_and_its_help_lists_the_exit_codes() {
        program().debug_assert();
        let help = program().render_long_help().to_string();
        for code in ["0 ", "1 ", "2 ", "3 ", "130 "] {
            assert!(help.contains(&format!("  {code}")), "{code}: {help}");
        }
    }
}
