//! References and descriptions of the encodings and tasks of a report, from their cards.

use std::collections::BTreeSet;

use analysis::{Description, ReportMeta};
use pe_zoo::Combination;
use pe_zoo::card::Card;
use records::RunRecord;

use super::explain;

/// BibTeX entries of the papers of built-in encodings and tasks, separated by empty lines. Encodings of other papers have an entry
/// that is made from their cards.
const PAPERS: &str = include_str!("../papers.bib");

/// Returns the entry of the paper whose arXiv number is in the text; `None` if there is none.
fn entry(text: &str) -> Option<&'static str> {
    PAPERS.trim().split("\n\n").find(|entry| {
        let number = entry.split_once("eprint = {").and_then(|(_, rest)| rest.split('}').next());
        number.is_some_and(|number| text.contains(number))
    })
}

/// Returns the entry of an encoding's paper; one that [`PAPERS`] does not have is made from its card, and from the title in quotes
/// that the references of its documentation begin with.
fn of_card(card: &Card, source: Option<&str>) -> String {
    let made = || {
        let Card { id, label, paper, url, .. } = card;
        let title = source.and_then(title).unwrap_or_else(|| (*label).to_owned());
        // Cards name authors and year, as in `Press et al. 2021`.
        let ends_with_year = |(_, year): &(&str, &str)| year.parse::<u16>().is_ok();
        let (authors, year) =
            paper.rsplit_once(' ').filter(ends_with_year).unwrap_or((paper, "n.d."));
        let authors = authors.replace(" et al.", " and others").replace(", ", " and ");
        format!(
            "@misc{{{id},\n  title = {{{title}}},\n  author = {{{authors}}},\n  year = {{{year}}},\n  url = {{{url}}}\n}}"
        )
    };
    entry(card.url).map_or_else(made, str::to_owned)
}

/// First title in quotes under the heading `References` of a source file; it may continue on the next lines.
fn title(source: &str) -> Option<String> {
    let text = explain::card(source);
    let (_, references) = text.split_once("## References\n")?;
    let title = references.split('"').nth(1)?;
    Some(title.split_whitespace().collect::<Vec<_>>().join(" "))
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
    let cards = parts.map(|part| of_card(&part.entry().card, part.entry().source));
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
        acts_outside: false,
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
        acts_outside: combination.clone().inside_attention().is_err(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "papers of new encodings are added before a release"]
    fn before_a_release_every_card_with_a_number_on_arxiv_has_an_entry() {
        let registry = pe_zoo::Registry::builtin();
        let sources = tasks::ALL.iter().map(|meta| (meta.id, meta.source));
        let sources = sources.filter(|(_, source)| source.contains("arXiv"));
        let cards = registry.cards().map(|card| (card.id, card.url));
        let cards = cards.filter(|(_, source)| source.contains("arxiv.org"));
        for (id, source) in cards.chain(sources) {
            assert!(entry(source).is_some(), "bench/cli/papers.bib lacks {id}: {source}");
        }
    }

    #[test]
    fn no_entry_is_without_a_card() {
        let registry = pe_zoo::Registry::builtin();
        let sources = tasks::ALL.iter().map(|meta| meta.source);
        let used: BTreeSet<&str> =
            registry.cards().map(|card| card.url).chain(sources).filter_map(entry).collect();
        let unused: Vec<&str> =
            PAPERS.trim().split("\n\n").filter(|entry| !used.contains(entry)).collect();
        assert_eq!(unused, Vec::<&str>::new());
    }

    #[test]
    fn every_encoding_has_an_entry_with_title_author_and_year() {
        for pe_zoo::registry::Entry { card, source, .. } in pe_zoo::Registry::builtin().entries() {
            let text = of_card(card, *source);
            for field in ["title", "author", "year"] {
                let value = text.split_once(&format!("\n  {field} = {{"));
                assert!(value.is_some_and(|(_, value)| !value.starts_with('}')), "{text}");
            }
            let has_title = entry(card.url).is_some() || source.and_then(title).is_some();
            assert!(has_title, "{}: the references have no title in quotes", card.id);
        }
    }

    #[test]
    fn a_paper_without_an_entry_is_cited_by_what_its_card_says() {
        let card = Card {
            id: "mine",
            label: "Mine",
            summary: "",
            parameters: "0",
            paper: "Me, You et al. 2026",
            url: "https://example.org",
        };
        let rest = "  author = {Me and You and others},\n  year = {2026},\n  url = {https://example.org}\n}";
        let text = of_card(&card, None);
        assert_eq!(text, format!("@misc{{mine,\n  title = {{Mine}},\n{rest}"));
        let source = "//! # Mine\n//!\n//! ## References\n//! Me, \"A Long\n//! Title\", 2026.\n";
        let text = of_card(&card, Some(source));
        assert_eq!(text, format!("@misc{{mine,\n  title = {{A Long Title}},\n{rest}"));
    }
}
