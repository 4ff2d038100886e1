//! Look of the command line: groups of commands, headings of options, and names that are nearly right.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error, ValueHint};
use pe_zoo::settings::nearest;

/// Text that the program prints without a command.
pub(super) const START: &str = "\
pe-bench compares position encodings for Transformers on the same tasks.

  pe-bench run quick             trains four encodings and writes a report
  pe-bench list                  lists encodings, tasks, suites and backends
  pe-bench explain cope          explains an encoding and shows its results
  pe-bench compare cope rope     compares two encodings seed by seed
  pe-bench new encoding my-bias  prints a template for your own encoding
  pe-bench --help                lists all commands";

/// Further help of the program.
pub(super) const STATUS_AND_ENVIRONMENT: &str = "Exit status:
  0    success
  1    an error, or failed cells or checks; standard error names them
  2    invalid command line
  3    the gate of `nightly` failed
  4    some cells have no record yet, or are running elsewhere; run the same command again later
  129  stopped by SIGHUP
  130  stopped by Ctrl-C (SIGINT)
  138  stopped by SIGUSR1 (Linux)
  143  stopped by SIGTERM
After a stop (129 to 143), run the same command again: finished cells are saved and not run again.

Environment:
  PE_ZOO_CACHE          folder for texts, tokens and models; default: a folder in the user's cache folder
  PYTHON                Python program whose pip fetches texts and pretrained models
  CARGO                 cargo program that fetches texts
  CUDA_VISIBLE_DEVICES  GPUs of the backend `cuda`
  RAYON_NUM_THREADS     number of threads that read records and write reports
  NO_COLOR              if set, no colours
  CLICOLOR_FORCE        if 1, colours also in files and pipes";

/// Groups of commands in the help of the program, and what each has.
const GROUPS: [(&str, &str); 6] = [
    ("Train and evaluate", "run status eval judge"),
    ("Results", "report compare table cells inspect stability reproduce"),
    ("Reference", "list explain samples data flops speed"),
    ("Your own encodings", "new conform vectors export"),
    ("Pretrained models", "extend generate benchmark"),
    ("Clusters and shells", "cluster records nightly completions help"),
];

/// Headings of the options of a command that has many, and the ids of the options below each.
const HEADINGS: [(&str, &str); 4] = [
    ("Devices", "backend device engine precision devices threads jobs data_parallel"),
    (
        "Limits and resuming",
        "force retry shard worker checkpoint_seconds claim_seconds cell_seconds cell_memory no_wait",
    ),
    ("Report", "settings ablation_base no_report open"),
    ("Output", "out export keep_weights quiet json dry_run"),
];

/// Number of options from which a command has headings.
const MANY: usize = 12;

/// Number of possible values up to which help lists them; shells complete all.
const LISTED: usize = 12;

/// Ids of arguments that name folders.
const FOLDERS: [&str; 4] = ["results", "out", "dir", "baseline"];

/// Gives the program its look.
pub(super) fn arranged(program: Command) -> Command {
    let template = template(&program);
    program.mut_subcommands(with_options).help_template(template)
}

/// Help of the program, with its commands in groups.
fn template(program: &Command) -> String {
    let styles = program.get_styles();
    let (head, name) = (styles.get_header(), styles.get_literal());
    let line = |command: &str| {
        let about = program.find_subcommand(command).and_then(Command::get_about);
        let about = about
            .map_or("Print this message, or the help of a command".into(), ToString::to_string);
        format!("  {name}{command:<11}{name:#}  {about}\n")
    };
    let groups = GROUPS.map(|(group, commands)| {
        format!("{head}{group}:{head:#}\n{}", commands.split(' ').map(line).collect::<String>())
    });
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\n{head}Options:{head:#}\n{{options}}{{after-help}}",
        groups.join("\n")
    )
}

/// Puts the options of a command under headings.
fn with_options(command: Command) -> Command {
    let is_long = command.get_opts().count() >= MANY;
    command.mut_args(|arg| arranged_option(arg, is_long)).mut_subcommands(with_options)
}

fn arranged_option(arg: Arg, is_long: bool) -> Arg {
    let id = arg.get_id().as_str();
    let is_option = arg.get_long().is_some() && arg.get_action().takes_values();
    let is_below = |(_, ids): &&(&str, &str)| ids.split(' ').any(|own| own == id);
    let heading = HEADINGS.iter().find(is_below).map(|(heading, _)| *heading);
    let is_folder = FOLDERS.contains(&id);
    let is_listed = arg.get_possible_values().len() <= LISTED;
    let arg = arg.hide_possible_values(!is_listed);
    let arg = if is_folder { arg.value_hint(ValueHint::DirPath) } else { arg };
    // The parser of a number refuses a negative one with the range.
    let arg = if is_option { arg.allow_negative_numbers(true) } else { arg };
    match heading.filter(|_| is_long) {
        Some(heading) => arg.help_heading(heading),
        None => arg,
    }
}

/// Adds the nearest command to an error about one that does not exist, where clap knows none: `rnu`.
pub(super) fn with_nearest(program: &Command, mut error: Error) -> Error {
    let is_near = error.get(ContextKind::SuggestedSubcommand).is_some();
    if let (ErrorKind::InvalidSubcommand, false, Some(ContextValue::String(name))) =
        (error.kind(), is_near, error.get(ContextKind::InvalidSubcommand))
        && let Some(near) = nearest(name, program.get_subcommands().map(Command::get_name))
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
    }
    error
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::GROUPS;

    #[test]
    fn every_command_is_in_one_group_and_a_line_of_80_characters() {
        let program = crate::program();
        let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
        let shown = shown.collect::<Vec<_>>();
        let names = shown.iter().map(|command| command.get_name()).chain(["help"]);
        let grouped = GROUPS.iter().flat_map(|(_, commands)| commands.split(' '));
        assert_eq!(grouped.clone().count(), grouped.clone().collect::<BTreeSet<_>>().len());
        assert_eq!(grouped.collect::<BTreeSet<_>>(), names.collect());
        for command in shown {
            let about = command.get_about().unwrap().to_string();
            assert!(about.chars().count() <= 65, "{}: {about}", command.get_name());
        }
    }

    #[test]
    fn examples_can_be_copied_from_a_terminal_of_80_characters() {
        fn check(command: &clap::Command) {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in examples.lines().filter(|line| line.contains("pe-bench ")) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&crate::program());
    }

    #[test]
    fn long_commands_have_headings_and_short_ones_none() {
        let help = |command: &str| {
            let mut program = crate::program();
            program.build();
            program.find_subcommand_mut(command).unwrap().render_help().to_string()
        };
        for heading in ["Devices:", "Limits and resuming:", "Report:", "Output:"] {
            assert!(help("run").contains(&format!("\n{heading}\n")), "{heading}: {}", help("run"));
            assert!(!help("table").contains(heading), "{}", help("table"));
        }
    }
}
