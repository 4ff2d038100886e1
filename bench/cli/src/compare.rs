//! `pe-bench compare`: paired comparison of two encodings.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use reports::compare::{HeadToHead, Request, compare, document};
use reports::document::Element;
use reports::{html_document, markdown_document};

use super::fit::{fit, width};
use super::folders::{self, messages};
use super::out::{complain, say};
use train::encodings;

/// Arguments of `compare`.
#[derive(Args, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct CompareArgs {
    /// First encoding, by its name in the records, or an expression of the same encodings with the same settings.
    a: String,
    /// Second encoding; differences are first minus second.
    b: String,
    /// Results folders; default: every folder below `results` with records.
    results: Vec<PathBuf>,
    /// Compare only this workload; may be repeated.
    #[arg(long = "workload", value_name = "NAME")]
    workloads: Vec<String>,
    /// Compare only workloads of this task; may be repeated.
    #[arg(long = "task", value_name = "ID")]
    tasks: Vec<String>,
    /// Also print the tables by split and length.
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    points: bool,
    /// Also print the tables by split and length, and those by slice: results grouped by properties of samples and tokens.
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    slices: bool,
    /// Print the whole comparison, slices included, as JSON.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the whole comparison, slices included, as Markdown.
    #[arg(long)]
    markdown: bool,
    /// Also write the whole comparison to this HTML file.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Columns dropped in a narrow terminal, in this order.
const SPARE: [&str; 6] = ["g", "samples", "tokens", "metric", "95 % interval", "won-lost-tied"];

pub(super) fn run(arguments: &CompareArgs) -> anyhow::Result<()> {
    let (records, errors) = folders::readable(&folders::or_all(&arguments.results)?)?;
    let names = records.iter().map(|record| &*record.encoding.name).collect();
    let request = Request {
        a: recorded_name(&names, &arguments.a),
        b: recorded_name(&names, &arguments.b),
        workloads: arguments.workloads.clone(),
        tasks: arguments.tasks.clone(),
    };
    let found = compare(&records, &request)?;
    if arguments.json {
        say(&serde_json::to_string_pretty(&found)?);
    } else if arguments.markdown {
        say(markdown_document(&document(&found)).trim_end());
    } else {
        print(&found, arguments.points || arguments.slices, arguments.slices);
    }
    if let Some(path) = &arguments.page {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(path, html_document(&document(&found))))
            .with_context(|| format!("cannot write --page {}", path.display()))?;
        complain(&format!("Page: {}", path.display()));
    }
    folders::refuse_left_out("comparison", &messages(&errors))
}

/// Returns the name under which records have an encoding: the text itself, or the first of their names that is an
/// expression of the same encodings with the same settings, in any order. The text itself if there is none.
fn recorded_name(names: &BTreeSet<&str>, text: &str) -> String {
    let identity = |text: &str| encodings::parse(text).ok().map(|parsed| parsed.identity());
    let wanted = identity(text).filter(|_| !names.contains(text));
    let same = |name: &&&str| wanted.is_some() && identity(name) == wanted;
    names.iter().find(same).map_or(text, |name| name).to_owned()
}

/// Prints the verdict and a table with a row for each workload and region; `points` and `slices` add those of each
/// workload.
fn print(found: &HeadToHead, points: bool, slices: bool) {
    let document = document(found);
    print_elements(&document.elements);
    let mut hidden = 0;
    for section in &document.sections {
        say(&format!("\n{}", section.heading));
        print_elements(&section.elements);
        for within in &section.sections {
            let wanted = if within.folded { slices } else { points };
            if wanted {
                say(&format!("\n{}", within.heading));
                print_elements(&within.elements);
            } else {
                hidden += 1;
            }
        }
    }
    if hidden > 0 {
        say(&format!("\n{hidden} tables are not shown; add --points or --slices"));
    }
}

/// Prints the text and the tables of elements; a terminal shows no figures.
fn print_elements(elements: &[Element]) {
    for element in elements {
        match element {
            Element::Prose(text) => say(text),
            Element::List(items) => items.iter().for_each(|item| say(&format!("  {item}"))),
            Element::Table(table) => {
                for line in fit(table, width(), &SPARE) {
                    say(&line);
                }
                for note in &table.notes {
                    say(note);
                }
            }
            Element::Answers(_)
            | Element::Formula(_)
            | Element::Source { .. }
            | Element::Code(_)
            | Element::Figure(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_found_in_any_order_of_its_parts_and_with_its_defaults_written() {
        let names = BTreeSet::from(["alibi+cope", "rope", "rope{base=500}", "tuned"]);
        for (asked, expected) in [
            ("cope+alibi", "alibi+cope"),
            ("alibi+cope", "alibi+cope"),
            ("rope{base=10000}", "rope"),
            ("rope{base=500.0}", "rope{base=500}"),
            ("tuned", "tuned"),
            ("fox", "fox"),
            ("not an expression", "not an expression"),
        ] {
            assert_eq!(recorded_name(&names, asked), expected);
        }
        let as_written = BTreeSet::from(["cope+alibi"]);
        assert_eq!(recorded_name(&as_written, "alibi+cope"), "cope+alibi");
    }
}
