//! Looks of encodings: numbers that determine colour, marker and dash in figures and pages.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// Number of colours: one for each family, and grey.
pub const COLOURS: usize = 8;
/// Number of shapes of markers.
pub const MARKERS: usize = 9;
/// Number of patterns of dashes.
pub const DASHES: usize = 3;
/// Number of distinct looks.
pub const LOOK_COUNT: usize = COLOURS * MARKERS * DASHES;
/// Number of pairs of a colour and a marker: looks that differ by a multiple of it differ in the dash alone.
pub const PAIR_COUNT: usize = COLOURS * MARKERS;

/// Colour of everything that belongs to no encoding.
const GREY: usize = COLOURS - 1;
/// Look of a mark that belongs to no encoding.
pub const NEUTRAL: usize = GREY;

/// Ids of the built-in encodings by family. The place of a family is its colour, so that related encodings share one. Together with
/// its family, the place of an encoding in the whole list is its look.
pub const FAMILIES: [&[&str]; GREY] = [
    // Rotations by fixed angles.
    &["rope", "xpos", "randomized", "fope", "pope"],
    // Functions of the distance that are added to logits.
    &["alibi", "kerple", "fire", "sandwich", "dynamic-position-bias", "dape"],
    // Positions that are counted by gates.
    &["cope", "cope-mlp", "cope-alibi"],
    // Weights that decay by content.
    &["fox", "stick-breaking", "wall"],
    // Tables of relative positions.
    &["relative", "relative-capped", "t5-bias"],
    // Transformations that depend on content.
    &["path", "tape", "selective-rope", "grape", "repo"],
    // Absolute positions, and none.
    &["nope", "learned-absolute", "sinusoidal", "abacus"],
];

/// Returns the colour of a look, as an index.
pub fn colour(look: usize) -> usize {
    look % COLOURS
}

/// Returns the marker of a look, as an index.
pub fn marker(look: usize) -> usize {
    if look == NEUTRAL { 0 } else { look % MARKERS }
}

/// Returns the dash of a look, as an index.
pub fn dash(look: usize) -> usize {
    look / MARKERS % DASHES
}

/// Returns the looks of the built-in encodings by id.
fn fixed() -> BTreeMap<&'static str, usize> {
    let members = FAMILIES
        .iter()
        .enumerate()
        .flat_map(|(colour, ids)| ids.iter().map(move |id| (colour, *id)));
    let look = |(place, (of_family, id)): (usize, (usize, &'static str))| {
        let is_own = |look: &usize| {
            colour(*look) == of_family
                && marker(*look) == place % MARKERS
                && dash(*look) == place / MARKERS % DASHES
        };
        Some((id, (0..LOOK_COUNT).find(is_own)?))
    };
    members.enumerate().filter_map(look).collect()
}

/// Returns the colour of the family of the first built-in encoding that a name has: `rope` for `rope, base 10` and `fox` for
/// `fox+rope`.
fn family(name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let colour = |word: &str| FAMILIES.iter().position(|ids| ids.contains(&word));
    name.split(|c| !is_part(c)).find_map(colour)
}

/// Assigns looks to names of encodings, distinct for at most [`LOOK_COUNT`] names, and in colour or marker as long as pairs are
/// left. A built-in id has the look of its place in [`FAMILIES`]. Any other name gets a look derived from its hash, or the
/// next free one: in the colour of its family if one is left, otherwise in any other but grey.
pub fn looks<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let fixed = fixed();
    let mut looks: BTreeMap<&str, usize> =
        names.iter().filter_map(|name| Some((*name, *fixed.get(name)?))).collect();
    // The places of built-in encodings are kept free.
    let mut taken: BTreeSet<usize> = fixed.values().copied().chain([NEUTRAL]).collect();
    let mut pairs: BTreeSet<usize> = taken.iter().map(|look| look % PAIR_COUNT).collect();
    for name in names.into_iter().filter(|name| !fixed.contains_key(name)) {
        let hash = Sha256::digest(name.as_bytes());
        let start = usize::from(u16::from_be_bytes([hash[0], hash[1]])) % LOOK_COUNT;
        let candidates = || (0..LOOK_COUNT).map(|step| (start + step) % LOOK_COUNT);
        let alone = |look: &usize| !pairs.contains(&(look % PAIR_COUNT));
        let of_family = family(name);
        let related = candidates().find(|look| of_family == Some(colour(*look)) && alone(look));
        let coloured = || candidates().find(|look| colour(*look) != GREY && alone(look));
        // With very many names the last ones repeat a look.
        let more = LOOK_COUNT..=LOOK_COUNT + taken.len();
        let free = || candidates().chain(more).find(|look| !taken.contains(look));
        let look = related.or_else(coloured).or_else(|| candidates().find(alone)).or_else(free);
        let look = look.unwrap_or(start);
        taken.insert(look);
        pairs.insert(look % PAIR_COUNT);
        looks.insert(name, look);
    }
    looks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of all families.
    fn ids() -> Vec<&'static str> {
        FAMILIES.concat()
    }

    #[test]
    fn a_name_has_the_same_look_in_every_company() {
        let alone = looks(["rope"]);
        let many = looks(["alibi", "cope", "cope+rope", "rope", "rope(linear)"]);
        assert_eq!((alone["rope"], colour(many["alibi"])), (many["rope"], 1));
        assert_eq!(looks(["rope(linear)"])["rope(linear)"], many["rope(linear)"]);
        let distinct: BTreeSet<usize> = many.values().copied().collect();
        assert_eq!(distinct.len(), many.len());
        assert!(many.values().all(|look| *look != NEUTRAL && *look < LOOK_COUNT));
    }

    #[test]
    fn encodings_of_a_family_share_a_colour_and_differ_in_marker() {
        let names = ["rope, base 10", "randomized{longest=256}(rope)", "window(alibi)", "fox+rope"];
        let found = looks(ids().into_iter().chain(names));
        for (name, look) in &found {
            assert_eq!(Some(colour(*look)), family(name), "{name}");
        }
        let of = |name: &str| colour(found[name]);
        assert_eq!((of("rope, base 10"), of("xpos")), (of("rope"), of("rope")));
        assert_eq!((of("fox+rope"), of("window(alibi)")), (of("stick-breaking"), of("alibi")));
        let pairs: BTreeSet<_> =
            found.values().map(|look| (colour(*look), marker(*look))).collect();
        assert_eq!(pairs.len(), found.len());
    }

    #[test]
    fn built_in_encodings_are_told_apart_without_colour() {
        let found = fixed();
        let ids = ids();
        assert_eq!(found.len(), ids.len(), "an id has two places");
        let grey = |id: &&str| (marker(found[id]), dash(found[id]));
        let grey: BTreeSet<_> = ids.iter().take(MARKERS * DASHES).map(grey).collect();
        assert_eq!(grey.len(), ids.len().min(MARKERS * DASHES));
    }

    #[test]
    fn colours_and_markers_are_shared_only_when_all_are_taken() {
        let left = PAIR_COUNT - 1 - ids().len();
        let names: Vec<String> = (0..left).map(|i| format!("mine-{i}")).collect();
        let found = looks(ids().into_iter().chain(names.iter().map(String::as_str)));
        let pairs: BTreeSet<usize> = found.values().map(|look| look % PAIR_COUNT).collect();
        assert_eq!(pairs.len(), found.len());
        let grey = found.values().filter(|look| colour(**look) == GREY).count();
        // All but the neutral mark, once the colours are used up.
        assert_eq!(grey, MARKERS - 1);
    }

    #[test]
    fn many_names_have_looks_of_their_own() {
        let names: Vec<String> = (0..400).map(|i| format!("mine-{i}")).collect();
        let found = looks(names.iter().map(String::as_str));
        assert_eq!(found.values().collect::<BTreeSet<_>>().len(), 400);
    }
}
