//! Looks of encodings: numbers that determine colour, marker and dash in figures and pages.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// Ids of the built-in encodings by look, so that an encoding looks the same in every report. The order keeps
/// encodings that are often shown together apart in colour and marker. The look of any other encoding follows from its name.
pub const FIXED: &[&str] = &[
    "rope",
    "cope",
    "alibi",
    "nope",
    "learned-absolute",
    "relative",
    "fox",
    // Grey: see NEUTRAL.
    "",
    "tape",
    "fire",
    "t5-bias",
    "sinusoidal",
    "kerple",
    "path",
    "randomized",
    "stick-breaking",
    "cope-mlp",
    "xpos",
    "cope-alibi",
    "abacus",
    "dape",
    "sandwich",
    "relative-capped",
    "grape",
    "fope",
    "pope",
    "selective-rope",
    "dynamic-position-bias",
];

/// Look of a mark that belongs to no encoding.
pub const NEUTRAL: usize = 7;

/// Number of distinct looks: 8 colours, 9 markers, 3 dashes.
pub const LOOK_COUNT: usize = 216;

/// Number of pairs of a colour and a marker: looks that differ by a multiple of it differ in the dash alone.
pub const PAIR_COUNT: usize = 72;

/// Assigns looks to names of encodings, distinct for at most [`LOOK_COUNT`] names, and in colour or marker for at most
/// [`PAIR_COUNT`]. A built-in id has its position in
/// [`FIXED`]; any other name gets a look derived from its hash, or the next free one.
pub fn looks<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let fixed = |name: &str| FIXED.iter().position(|id| *id == name && !id.is_empty());
    let mut looks: BTreeMap<&str, usize> =
        names.iter().filter_map(|name| Some((*name, fixed(name)?))).collect();
    let mut taken: BTreeSet<usize> = looks.values().copied().collect();
    for name in names.into_iter().filter(|name| fixed(name).is_none()) {
        let hash = Sha256::digest(name.as_bytes());
        let start = usize::from(u16::from_be_bytes([hash[0], hash[1]])) % LOOK_COUNT;
        let free = |look: &usize| *look >= FIXED.len() && !taken.contains(look);
        let alone = |look: &usize| {
            free(look) && !taken.iter().any(|other| other % PAIR_COUNT == look % PAIR_COUNT)
        };
        let candidates = || (0..LOOK_COUNT).map(|step| (start + step) % LOOK_COUNT);
        // With very many names the last ones repeat a look.
        let more = LOOK_COUNT..=LOOK_COUNT + taken.len();
        let look = candidates().find(alone).or_else(|| candidates().chain(more).find(free));
        let look = look.unwrap_or(start);
        taken.insert(look);
        looks.insert(name, look);
    }
    looks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_same_look_in_every_company() {
        let alone = looks(["rope"]);
        let many = looks(["alibi", "cope", "cope+rope", "rope", "rope(linear)"]);
        assert_eq!((alone["rope"], many["rope"], many["alibi"]), (0, 0, 2));
        assert_eq!(looks(["rope(linear)"])["rope(linear)"], many["rope(linear)"]);
        let distinct: BTreeSet<usize> = many.values().copied().collect();
        assert_eq!(distinct.len(), many.len());
        assert!(many.values().all(|look| *look != NEUTRAL && *look < LOOK_COUNT));
    }

    #[test]
    fn colours_and_markers_are_shared_only_when_all_are_taken() {
        let names: Vec<String> =
            (0..PAIR_COUNT - FIXED.len()).map(|i| format!("mine-{i}")).collect();
        let ids = FIXED.iter().copied().filter(|id| !id.is_empty());
        let found = looks(ids.chain(names.iter().map(String::as_str)));
        let pairs: BTreeSet<usize> = found.values().map(|look| look % PAIR_COUNT).collect();
        assert_eq!(pairs.len(), found.len());
    }

    #[test]
    fn many_names_have_looks_of_their_own() {
        let names: Vec<String> = (0..400).map(|i| format!("mine-{i}")).collect();
        let found = looks(names.iter().map(String::as_str));
        assert_eq!(found.values().collect::<BTreeSet<_>>().len(), 400);
    }
}
