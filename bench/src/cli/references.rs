//! References of encodings and tasks as BibTeX, found by the papers that their cards name.

use std::collections::BTreeSet;

use pe_zoo::card::Card;
use reports::RunRecord;

/// BibTeX entries of the papers of built-in encodings and tasks, separated by empty lines.
const PAPERS: &str = include_str!("../../papers.bib");

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

/// References of the encodings and tasks of records; see [`references`].
pub(super) fn references_of(records: &[RunRecord]) -> String {
    let trained =
        records.iter().map(|r| [r.encoding.name.clone(), r.encoding.id.clone(), r.task.id.clone()]);
    references(&trained.collect::<Vec<_>>())
}

/// References of all encodings and tasks, each once, sorted. `trained` has names and ids of encodings and ids of tasks.
pub(super) fn references(trained: &[[String; 3]]) -> String {
    let column = |index: usize| -> BTreeSet<&str> {
        trained.iter().map(|own| own[index].as_str()).collect()
    };
    let known = column(0)
        .into_iter()
        .chain(column(1))
        .filter_map(|name| crate::encodings::parse(name).ok());
    let parts: Vec<pe_zoo::Combination> = known.collect();
    let parts = parts.iter().flat_map(pe_zoo::Combination::parts);
    let cards = parts.map(|part| of_card(&part.entry().card));
    let asked = column(2);
    let sources = tasks::ALL.iter().filter(|meta| asked.contains(meta.id));
    let sources = sources.filter_map(|meta| entry(meta.source)).map(str::to_owned);
    let all: BTreeSet<String> = cards.chain(sources).collect();
    all.into_iter().map(|entry| entry + "\n").collect::<Vec<_>>().join("\n")
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
