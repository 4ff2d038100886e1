//! `pe-bench list`.

use super::What;
use super::out::say;
use crate::{backend, suite};

pub(super) fn list(what: What) {
    let rows = match what {
        What::Encodings => encodings(),
        What::Tasks => tasks::ALL
            .iter()
            .map(|meta| {
                vec![meta.id.to_owned(), meta.headline.id().to_owned(), meta.summary.to_owned()]
            })
            .collect(),
        What::Suites => suites(),
        What::Backends => backend::ALL
            .iter()
            .map(|meta| {
                let state = if meta.is_compiled() {
                    "available".to_owned()
                } else {
                    format!("not compiled in; build with --features {}", meta.id)
                };
                vec![meta.id.to_owned(), state, meta.about.to_owned()]
            })
            .collect(),
    };
    for line in aligned(&rows) {
        say(&line);
    }
}

fn encodings() -> Vec<Vec<String>> {
    let header = ["id", "acts on", "learned parameters", "what it does"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(pe_zoo::zoo::ALL.iter().map(|meta| {
        let sites = meta.sites.iter().map(|site| site.label()).collect::<Vec<_>>().join(", ");
        let sites = if sites.is_empty() { "nothing".to_owned() } else { sites };
        vec![meta.id.to_owned(), sites, meta.parameters.to_owned(), meta.summary.to_owned()]
    }));
    rows
}

fn suites() -> Vec<Vec<String>> {
    suite::BUILT_IN
        .iter()
        .map(|(name, text)| match suite::parse(name, text, &suite::Overrides::default()) {
            Ok(suite) => vec![
                suite.name,
                format!("{} cells", suite.cells.len()),
                suite.about.split_whitespace().collect::<Vec<_>>().join(" "),
            ],
            Err(error) => vec![(*name).to_owned(), String::new(), error.to_string()],
        })
        .collect()
}

/// Columns padded to their widest entry, the last one left as it is.
pub(super) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths = (0..columns).map(|column| width(column).unwrap_or(0)).collect::<Vec<_>>();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
}
