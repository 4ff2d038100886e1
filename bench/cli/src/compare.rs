//! `pe-bench compare`: paired comparison of two encodings.

use std::collections::BTreeSet;
use std::path::PathBuf;

use analysis::compare::{HeadToHead, Request, compare};
use anyhow::Context;
use clap::Args;
use console::Style;
use records::settings::Region;
use reports::compare::document;
use reports::document::{Element, Table};
use reports::{html_document, markdown_document};

use super::columns::{TerminalTable, width};
use super::folders::{self, messages};
use super::out::{self, Printable, complain, say};
use super::page::OpenArgs;
use super::parsers::Suggested;
use super::prose::say_markdown;
use train::encodings;

/// Arguments of `compare`.
#[derive(Args, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct CompareArgs {
    /// First encoding: its name in the records, or an expression with the same encodings and settings, in any order.
    #[arg(value_parser = Suggested::ENCODINGS)]
    a: String,
    /// Second encoding. A difference is the value of the first encoding minus the value of the second encoding.
    #[arg(value_parser = Suggested::ENCODINGS)]
    b: String,
    /// Results folders; default: every folder with records below `results`.
    results: Vec<PathBuf>,
    /// Workloads to compare, separated by commas; default: all.
    #[arg(long, alias = "workload", value_name = "NAMES", value_delimiter = ',', value_parser = Suggested::TASKS)]
    workloads: Vec<String>,
    /// Compare only workloads of these tasks, separated by commas; default: all.
    #[arg(long, alias = "task", value_name = "IDS", value_delimiter = ',', value_parser = Suggested::TASKS)]
    tasks: Vec<String>,
    /// Also print the tables by split and length.
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    points: bool,
    /// Also print the tables by split and length, and the tables by slice. A slice has the results of the samples or
    /// tokens that share a property.
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

/// Columns dropped in a narrow terminal, in this order. Rows that are not separable have no name in the last column, so
/// p-values can go before names are cut.
const SPARE: [&str; 8] =
    ["chance", "g", "samples", "tokens", "metric", "won-lost-tied", "95% interval", "p"];

/// Number of cells that were not compared up to which all are listed.
const LISTED: usize = 3;

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
        if arguments.json || arguments.markdown {
            complain(&format!("Page: {}", path.display()));
        } else {
            OpenArgs::default().show("Page", path);
        }
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

/// Prints how often each encoding is better and a table for each region; `points` and `slices` add those of each workload.
fn print(found: &HeadToHead, points: bool, slices: bool) {
    let document = document(found);
    print_elements(found, &document.elements, usize::MAX);
    for (index, section) in document.sections.iter().enumerate() {
        let is_left_out = section.sections.is_empty();
        match section.elements.as_slice() {
            [Element::Table(all)] if index == 0 => {
                for region in regions(all) {
                    say(&format!("\n{}", region.caption));
                    say_compared(found, &region);
                }
                all.notes.iter().for_each(|note| say_markdown(note));
            }
            elements if points || is_left_out => {
                say(&format!("\n{}", section.heading));
                print_elements(found, elements, if points { usize::MAX } else { LISTED });
            }
            _ => {}
        }
        for within in section.sections.iter().filter(|own| if own.folded { slices } else { points })
        {
            say(&format!("\n{}", within.heading));
            print_elements(found, &within.elements, usize::MAX);
        }
    }
    if !slices {
        say(
            "\n--points adds notes and a table by split and length for each workload; --slices also adds tables by slice",
        );
    }
}

/// The table of all workloads as one for each region, which is its caption.
fn regions(table: &Table) -> Vec<Table> {
    let mut columns = table.columns.clone();
    columns.remove(1);
    let of_region = |region: Region| {
        let own = table.rows.iter().filter(|row| row[1].text == region.name()).cloned();
        let rows: Vec<_> = own
            .map(|mut row| {
                row.remove(1);
                row
            })
            .collect();
        Table {
            caption: region.name().to_owned(),
            columns: columns.clone(),
            rows,
            ..Table::default()
        }
    };
    Region::ALL.map(of_region).into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// Prints a table of differences, with the lines of the first encoding in green and of the second in red where it is better.
fn say_compared(found: &HeadToHead, table: &Table) {
    let mut columns = TerminalTable { spare: &SPARE, ..TerminalTable::from(table) };
    for texts in &mut columns.rows {
        // The notes have the numbers of seeds.
        if let Some(text) = texts.last_mut().filter(|text| text.starts_with("not separable")) {
            "=".clone_into(text);
        }
    }
    let is_won = |index: usize, name: &str| {
        index
            .checked_sub(1)
            .and_then(|at| columns.rows.get(at)?.last())
            .is_some_and(|own| own == name)
    };
    for (index, line) in columns.lines(width()).iter().enumerate() {
        let style = match () {
            () if is_won(index, &found.a.name) => Style::new().green(),
            () if is_won(index, &found.b.name) => Style::new().red(),
            () => Style::new(),
        };
        out::print(&Printable::of(line).styled(&style));
    }
}

/// Prints the text and the tables of elements, of a list at most `most` items; a terminal shows no figures.
fn print_elements(found: &HeadToHead, elements: &[Element], most: usize) {
    for element in elements {
        match element {
            Element::Prose(text) => say_markdown(text),
            Element::List(items) => {
                items.iter().take(most).for_each(|item| say_markdown(&format!("- {item}")));
                if items.len() > most {
                    say(&format!("- and {} more; --json lists all", items.len() - most));
                }
            }
            Element::Table(table) => {
                say_compared(found, table);
                table.notes.iter().for_each(|note| say_markdown(note));
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
