//! `pe-bench completions`, and the manual pages.

use std::path::Path;

use anyhow::Context as _;
use clap::{Arg, Command, ValueEnum};
use clap_complete::{Generator, generate, shells};
use clap_complete_nushell::Nushell;

use super::out::{counted, say};
use super::parsers::Suggested;
use super::{folders, program};

/// Shells that have a completion script.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Shell {
    Bash,
    Elvish,
    Fish,
    Nushell,
    Powershell,
    Zsh,
}

/// Completion script of a shell, and the name of its file.
struct Script {
    file: String,
    text: String,
}

impl Script {
    fn of(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::of_bash(),
            Shell::Elvish => Self::by(shells::Elvish),
            Shell::Fish => Self::of_fish(),
            Shell::Nushell => Self::by(Nushell),
            Shell::Powershell => Self::by(shells::PowerShell),
            Shell::Zsh => Self::of_zsh(),
        }
    }

    fn by(generator: impl Generator) -> Self {
        let file = generator.file_name("pe-bench");
        let mut script = Vec::new();
        generate(generator, &mut program(), "pe-bench", &mut script);
        // clap_complete 4.6 takes the `-` of the name for a subcommand in half of its script for bash, whose halves do not fit then.
        let text = String::from_utf8_lossy(&script).replace("pe__subcmd__bench", "pe__bench");
        Self { file, text }
    }

    /// The script of bash, which also completes the last name of a list.
    fn of_bash() -> Self {
        let Self { file, text } = Self::by(shells::Bash);
        let text = text.replace("-F _pe__bench ", "-F _pe__bench_list ");
        Self { file, text: BASH_LISTS.to_owned() + &text }
    }

    /// The script of fish, which also completes the last name of a list, and the names that stand without an option.
    fn of_fish() -> Self {
        let given = |names: &[&str]| {
            let each = names.iter().map(|name| format!("{name}\\t''"));
            each.collect::<Vec<_>>().join("\n")
        };
        let listed = |names: &[&str]| format!("(__fish_append , {})", names.join(" "));
        let Self { file, text } = Self::by(shells::Fish).with_lists("complete ", given, listed);
        let program = program();
        let of_command = |command: &Command| {
            let positionals = command.get_positionals().flat_map(Arg::get_possible_values);
            let names: Vec<_> = positionals.map(|value| value.get_name().to_owned()).collect();
            let (command, names) = (command.get_name(), names.join(" "));
            let condition = format!("__fish_pe_bench_using_subcommand {command}");
            let line = format!("complete -c pe-bench -n \"{condition}\" -a \"{names}\"");
            (!names.is_empty()).then_some(line)
        };
        let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
        let lines: Vec<_> = commands.filter_map(of_command).collect();
        Self { file, text: format!("{text}{}\n", lines.join("\n")) }
    }

    /// The script of zsh, which also completes the last name of a list.
    fn of_zsh() -> Self {
        let given = |names: &[&str]| format!(":({})'", names.join(" "));
        let listed = |names: &[&str]| format!(":_values -s , names {}'", names.join(" "));
        Self::by(shells::Zsh).with_lists("'", given, listed)
    }

    /// Replaces the names of options that take a list. A part of the script is about one option, and begins with `start` on a
    /// new line.
    fn with_lists(
        self,
        start: &str,
        given: impl Fn(&[&str]) -> String,
        listed: impl Fn(&[&str]) -> String,
    ) -> Self {
        let of_list = |part: &str| {
            if !part.contains("separated by commas") {
                return part.to_owned();
            }
            let names = Suggested::LISTED.map(Suggested::names);
            names
                .iter()
                .fold(part.to_owned(), |part, names| part.replace(&given(names), &listed(names)))
        };
        let between = format!("\n{start}");
        let parts: Vec<String> = self.text.split(&between).map(of_list).collect();
        Self { text: parts.join(&between), ..self }
    }
}

/// Completes what comes after the last comma of a word.
const BASH_LISTS: &str = r#"_pe__bench_list() {
    local before=""
    if [[ "$2" == *,* ]]; then
        before="${2%,*},"
        COMP_WORDS[COMP_CWORD]="${2##*,}"
    fi
    _pe__bench "$1" "${2##*,}" "$3"
    COMPREPLY=("${COMPREPLY[@]/#/$before}")
}
"#;

/// Prints the completion script of a shell, or writes all of them and the manual pages to a folder.
pub(super) fn run(shell: Option<Shell>, all: Option<&Path>) -> anyhow::Result<()> {
    if let Some(shell) = shell {
        say(Script::of(shell).text.trim_end());
    }
    all.map_or(Ok(()), write_all)
}

/// Writes the manual pages of all commands and the completion scripts of all shells to a folder.
fn write_all(folder: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write to {}", folder.display());
    folders::create(folder)?;
    clap_mangen::generate_to(program(), folder).with_context(cannot)?;
    for shell in Shell::value_variants() {
        let script = Script::of(*shell);
        std::fs::write(folder.join(script.file), script.text).with_context(cannot)?;
    }
    let files = std::fs::read_dir(folder).with_context(cannot)?.count();
    say(&format!("{} in {}", counted(files, "file"), folder.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_shell_has_a_script_of_its_own_that_names_the_commands() {
        let files = Shell::value_variants().iter().map(|shell| {
            let script = Script::of(*shell);
            assert!(script.text.contains("explain"), "{shell:?}");
            script.file
        });
        let files = files.collect::<std::collections::BTreeSet<_>>();
        assert_eq!(files.len(), Shell::value_variants().len());
    }

    #[test]
    fn fish_completes_the_encodings_of_explain() {
        let Script { text, .. } = Script::of(Shell::Fish);
        let explain = "using_subcommand explain\" -a \"";
        assert!(text.lines().any(|line| line.contains(explain) && line.contains(" tape ")));
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
