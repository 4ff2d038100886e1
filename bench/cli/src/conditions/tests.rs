use std::collections::{BTreeMap, BTreeSet};

use clap::Arg;
use clap::error::{ContextKind, ContextValue};

use super::*;
use crate::{parse, program};

/// Reviewed options of all commands and their conditions.
const REVIEWED: &str = include_str!("options.txt");

/// Values of which an option without a list of values takes one.
const VALUES: [&str; 9] =
    ["1", "rope", "1:00:00", "1/2", "0-1", "--account=lab", "4GiB", "/data/x", "chars"];

/// Commands of the parser by their names, without hidden ones.
fn commands() -> BTreeMap<String, Command> {
    fn add(command: &Command, path: &str, found: &mut BTreeMap<String, Command>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let name = format!("{path} {}", inner.get_name()).trim().to_owned();
            if inner.has_subcommands() {
                add(inner, &name, found);
            } else {
                found.insert(name, inner.clone());
            }
        }
    }
    let mut parser = program();
    parser.build();
    let mut found = BTreeMap::new();
    add(&parser, "", &mut found);
    // clap adds them when the parser is built.
    found.retain(|name, _| !name.split(' ').any(|word| word == "help"));
    found
}

/// Shown options of a command.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let own = |argument: &&Arg| {
        argument.get_long().is_some_and(|long| long != "help") && !argument.is_global_set()
    };
    command.get_arguments().filter(own).filter(|argument| !argument.is_hide_set())
}

/// Words of an argument on a command line, with the given value or one that it takes.
fn words(command: &str, argument: &Arg, value: Option<&str>) -> Vec<String> {
    let name: Vec<String> =
        argument.get_long().map(|long| format!("--{long}")).into_iter().collect();
    if !argument.get_action().takes_values() {
        return name;
    }
    let listed = argument.get_possible_values();
    let known = listed.iter().map(|value| value.get_name().to_owned());
    let candidates = known.chain(VALUES.map(str::to_owned)).collect::<Vec<_>>();
    let takes = |value: &&String| {
        let line =
            command.split(' ').map(str::to_owned).chain(name.clone()).chain([(*value).clone()]);
        let invalid = [ErrorKind::InvalidValue, ErrorKind::ValueValidation];
        parse(["pe-bench".to_owned()].into_iter().chain(line))
            .err()
            .is_none_or(|error| !invalid.contains(&error.kind()))
    };
    let value = value.map(str::to_owned).or_else(|| candidates.iter().find(takes).cloned());
    name.into_iter().chain([value.expect("a value that the option takes")]).collect()
}

/// Parses options of a command. With `complete`, arguments that are missing are added.
fn parsed(
    (name, command): (&str, &Command),
    given: &[String],
    complete: bool,
) -> Result<(), clap::Error> {
    let line = ["pe-bench"].into_iter().chain(name.split(' ')).map(str::to_owned);
    let mut line = line.collect::<Vec<_>>();
    for argument in command.get_positionals().filter(|argument| argument.is_required_set()) {
        line.extend(words(name, argument, None));
    }
    for argument in options(command).filter(|argument| argument.is_required_set()) {
        if !given.contains(&format!("--{}", argument.get_id().as_str().replace('_', "-"))) {
            line.extend(words(name, argument, None));
        }
    }
    line.extend(given.iter().cloned());
    for _ in 0..4 {
        let Err(error) = parse(line.clone()) else { return Ok(()) };
        let missing = missing(&error);
        if !complete || missing.is_empty() {
            return Err(error);
        }
        for wanted in missing {
            let mut all = command.get_arguments();
            let argument = all.find(|argument| wanted.starts_with(&shown(argument))).unwrap();
            line.extend(words(name, argument, None));
        }
    }
    panic!("{line:?} is never complete")
}

/// Start of an argument's name in messages.
fn shown(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => format!("[{}]", argument.get_id().as_str().to_uppercase()),
    }
}

/// Arguments that an error misses.
fn missing(error: &clap::Error) -> Vec<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(all))) => all.clone(),
        _ => Vec::new(),
    }
}

/// Condition in the list, `option` or `option=value`, as words.
fn other(name: &str, command: &Command, condition: &str) -> Vec<String> {
    let (option, value) = match condition.split_once('=') {
        Some((option, value)) => (option, Some(value)),
        None => (condition, None),
    };
    let mut all = options(command).chain(command.get_positionals());
    let found =
        all.find(|argument| argument.get_long().unwrap_or(argument.get_id().as_str()) == option);
    words(name, found.unwrap_or_else(|| panic!("{name} has no `{option}`")), value)
}

/// Every option of every command is in the list, and what the list says of it holds.
#[test]
fn no_option_is_ignored_silently() {
    let commands = commands();
    let mut reviewed = BTreeMap::<&str, Vec<&str>>::new();
    for line in REVIEWED.lines().filter(|line| !line.starts_with('#')) {
        let (name, listed) = line.split_once(':').unwrap();
        reviewed.entry(name).or_default().extend(listed.split_whitespace());
    }
    let names =
        |all: &mut dyn Iterator<Item = &str>| all.map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(
        names(&mut commands.keys().map(String::as_str)),
        names(&mut reviewed.keys().copied()),
        "commands and options.txt"
    );
    for (name, listed) in &reviewed {
        let command = &commands[*name];
        let option_of = |entry: &&'static str| entry.split(['+', '!']).next().unwrap();
        assert_eq!(
            names(&mut options(command).filter_map(Arg::get_long)),
            names(&mut listed.iter().map(option_of)),
            "options of {name} and options.txt: say in it beside what a new option acts"
        );
        for entry in listed {
            let option = other(name, command, option_of(entry));
            for part in entry.split_inclusive(['+', '!']).collect::<Vec<_>>().windows(2) {
                let condition = other(name, command, part[1].trim_end_matches(['+', '!']));
                let both = [option.clone(), condition].concat();
                if part[0].ends_with('+') {
                    let alone = parsed((name, command), &option, false);
                    assert!(alone.is_err(), "{name} {option:?} alone is accepted");
                    let beside = parsed((name, command), &both, true);
                    assert!(beside.is_ok(), "{name} {both:?}: {}", beside.unwrap_err());
                } else {
                    let beside = parsed((name, command), &both, true);
                    assert!(beside.is_err(), "{name} {both:?} is accepted");
                }
            }
        }
    }
}

/// clap drops a requirement that conflicts with a given option: `--a` that requires `--b` is accepted with `--c` that excludes
/// `--b`. Such an option must exclude `--c` itself.
#[test]
fn an_option_is_refused_beside_what_excludes_its_requirement() {
    for (name, command) in &commands() {
        // What the command itself needs is no requirement of an option.
        let bare = parsed((name, command), &[], false).err();
        let always = bare.as_ref().map(missing).unwrap_or_default();
        for option in options(command) {
            let own = words(name, option, None);
            let Err(error) = parsed((name, command), &own, false) else { continue };
            for wanted in missing(&error).into_iter().filter(|wanted| !always.contains(wanted)) {
                let mut all = options(command);
                let Some(needed) = all.find(|argument| wanted.starts_with(&shown(argument))) else {
                    continue;
                };
                for excluded in command.get_arg_conflicts_with(needed) {
                    if excluded.get_id() == option.get_id() || excluded.is_hide_set() {
                        continue;
                    }
                    let both = [own.clone(), words(name, excluded, None)].concat();
                    let beside = parsed((name, command), &both, true);
                    assert!(beside.is_err(), "{name} {both:?} is accepted without {wanted}");
                }
            }
        }
    }
}

#[test]
fn a_path_of_weights_leaves_nothing_to_search() {
    for (line, is_refused) in [
        ("export a.safetensors d --best", true),
        ("export dd59a472 d --best", false),
        ("inspect a.safetensors --results r", true),
        ("inspect a.safetensors --results r --against dd59a472", false),
        ("stability a.safetensors --results r", true),
        ("stability dd59a472 --results r", false),
    ] {
        let parsed = parse(["pe-bench"].into_iter().chain(line.split(' ')));
        assert_eq!(parsed.is_err(), is_refused, "{line}");
        if let Err(error) = parsed {
            assert!(error.to_string().contains("has no effect here"), "{error}");
        }
    }
}
