//! `pe-bench compare`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use reports::compare::{HeadToHead, Request, compare, document};
use reports::{html_document, markdown_document};

use super::fit::{fit, width};
use super::folders;
use super::out::{complain, say};

/// Arguments of `compare`.
#[derive(Args, Clone)]
pub(crate) struct CompareArgs {
    /// An encoding, by its name in the records.
    a: String,
    /// Another one, from which differences are counted.
    b: String,
    /// Folders of results; default: every folder below `results` that has cells.
    results: Vec<PathBuf>,
    /// This workload alone; may be repeated.
    #[arg(long = "workload", value_name = "NAME")]
    workloads: Vec<String>,
    /// Workloads of this task alone; may be repeated.
    #[arg(long = "task", value_name = "ID")]
    tasks: Vec<String>,
    /// Slices too: by what travels with samples and tokens.
    #[arg(long)]
    slices: bool,
    /// Everything as JSON, for machines.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Everything as Markdown.
    #[arg(long)]
    markdown: bool,
    /// Write everything as a page too.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Columns that a narrow terminal can do without, the first to go first.
const SPARE: [&str; 6] = ["g", "samples", "tokens", "metric", "95 % interval", "won-lost-tied"];

pub(super) fn run(arguments: &CompareArgs) -> anyhow::Result<()> {
    let records = folders::records(&folders::or_all(&arguments.results)?)?;
    let request = Request {
        a: arguments.a.clone(),
        b: arguments.b.clone(),
        workloads: arguments.workloads.clone(),
        tasks: arguments.tasks.clone(),
    };
    let found = compare(&records, &request)?;
    if arguments.json {
        say(&serde_json::to_string_pretty(&found)?);
    } else if arguments.markdown {
        say(markdown_document(&document(&found)).trim_end());
    } else {
        print(&found, arguments.slices);
    }
    if let Some(path) = &arguments.page {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(path, html_document(&document(&found))))
            .with_context(|| format!("{}: choose another --page", path.display()))?;
        complain(&format!("Page: {}", path.display()));
    }
    Ok(())
}

fn print(found: &HeadToHead, slices: bool) {
    let width = width();
    say(&format!(
        "{} minus {}, paired by seed; shares in points, better means by more than noise",
        found.a.name, found.b.name
    ));
    for section in document(found).sections {
        say(&format!("\n{}", section.heading));
        for note in &section.notes {
            say(&format!("  {note}"));
        }
        let details = if slices { section.details.as_slice() } else { &[] };
        for (caption, table) in section.tables.iter().chain(details) {
            say(&format!("\n{caption}"));
            for line in fit(table, width, &SPARE) {
                say(&line);
            }
            for note in &table.notes {
                say(note);
            }
        }
        let hidden = section.details.len() - details.len();
        if hidden > 0 {
            say(&format!("\n{hidden} tables of slices: --slices"));
        }
    }
}
