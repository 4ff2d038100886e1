//! References and descriptions of the encodings and tasks of a report, from their cards.

use std::collections::BTreeSet;

use analysis::{Description, ReportMeta};
use pe_zoo::Combination;
use pe_zoo::card::Card;
use records::RunRecord;

use super::explain;

/// BibTeX entries of the papers of built-in encodings and tasks, separated by empty lines.
const PAPERS: &str = include_str!("../papers.bib");

/// Returns the entry of the paper whose arXiv number is in the text; `None` if there is none.
fn entry(text: &str) -> Option<&'static str> {
    PAPERS.trim().split("\n\n").find(|entry| {
        let number = entry.split_once("eprint = {").and_then(|(_, rest)| rest.split('}').next());
        number.is_some_and(|number| text.contains(number))
    })
}

/// Returns the entry of an encoding: that of its paper, or one made from its card.
fn of_card(card: &Card) -> String {
    let made = || {
        let Card { id, label, paper, url, .. } = card;
        format!(
            "@misc{{{id},\n  title = {{{label}}},\n  author = {{{paper}}},\n  url = {{{url}}}\n}}"
        )
    };
    entry(card.url).map_or_else(made, str::to_owned)
}

/// References and descriptions of the encodings and tasks of records; see [`known`].
pub(super) fn known_of(records: &[RunRecord]) -> ReportMeta {
    let trained =
        records.iter().map(|r| [r.encoding.name.clone(), r.encoding.id.clone(), r.task.id.clone()]);
    known(&trained.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>())
}

/// Metadata with the references and descriptions of all encodings and tasks, each once, sorted. `trained` has names and
/// ids of encodings and ids of tasks.
pub(super) fn known(trained: &[[String; 3]]) -> ReportMeta {
    let column = |index: usize| -> BTreeSet<&str> {
        trained.iter().map(|own| own[index].as_str()).collect()
    };
    let asked = column(2);
    // A name that is no expression is one that the suite gave, of the encoding with this id.
    let parsed = |[name, id, _]: &[String; 3]| {
        let parsed = train::encodings::parse(name).or_else(|_| train::encodings::parse(id)).ok()?;
        Some((name.clone(), parsed))
    };
    let encodings: Vec<(String, Combination)> = trained.iter().filter_map(parsed).collect();
    let parts = encodings.iter().flat_map(|(_, combination)| combination.parts());
    let cards = parts.map(|part| of_card(&part.entry().card));
    let tasks = || tasks::ALL.iter().filter(|meta| asked.contains(meta.id));
    let sources = tasks().filter_map(|meta| entry(meta.source)).map(str::to_owned);
    let all: BTreeSet<String> = cards.chain(sources).collect();
    let references = all.into_iter().map(|entry| entry + "\n").collect::<Vec<_>>().join("\n");
    let mut descriptions: Vec<Description> =
        encodings.iter().map(|(name, own)| described(name, own)).collect();
    descriptions.sort_by(|a, b| a.name.cmp(&b.name));
    descriptions.dedup_by(|a, b| a.name == b.name);
    descriptions.extend(tasks().map(|meta| Description {
        name: meta.id.to_owned(),
        summary: meta.summary.to_owned(),
        source: meta.source.to_owned(),
        url: String::new(),
        text: tasks::card(meta.id).unwrap_or_default(),
    }));
    ReportMeta { references, descriptions, ..ReportMeta::default() }
}

/// Returns the description of an encoding; that of a combination has the cards of its parts one after the other.
fn described(name: &str, combination: &Combination) -> Description {
    let cards: Vec<Card> = combination.parts().iter().map(|part| part.entry().card).collect();
    let sources: Vec<&str> = cards.iter().map(|card| card.paper).collect();
    let texts = combination.parts().iter().filter_map(|part| part.entry().source);
    let url = match cards.as_slice() {
        [card] => card.url.to_owned(),
        _ => String::new(),
    };
    Description {
        name: name.to_owned(),
        summary: combination.card().summary.clone(),
        source: sources.join("; "),
        url,
        text: texts.map(explain::card).collect::<Vec<_>>().join("\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_with_a_number_on_arxiv_has_an_entry_and_no_entry_is_without_a_card() {
        let mut used = BTreeSet::new();
        for card in pe_zoo::Registry::builtin().cards() {
            used.insert(entry(card.url).unwrap_or_else(|| panic!("{}: {}", card.id, card.url)));
        }
        for meta in tasks::ALL.iter().filter(|meta| meta.source.contains("arXiv")) {
            used.insert(
                entry(meta.source).unwrap_or_else(|| panic!("{}: {}", meta.id, meta.source)),
            );
        }
        let unused: Vec<&str> =
            PAPERS.trim().split("\n\n").filter(|entry| !used.contains(entry)).collect();
        assert_eq!(unused, Vec::<&str>::new());
    }

    #[test]
    fn a_card_without_an_entry_is_cited_by_what_it_says() {
        let card = Card {
            id: "mine",
            label: "Mine",
            summary: "",
            parameters: "0",
            paper: "Me 2026",
            url: "https://example.org",
        };
        let text = of_card(&card);
        assert!(
            text.starts_with("@misc{mine,\n  title = {Mine},\n  author = {Me 2026},"),
            "{text}"
        );
    }
}
