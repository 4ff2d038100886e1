//! Which encodings can stand together, and what is true of them together.

use super::{acts_on, conducts, stands_over};
use crate::EncodingConfig;
use crate::meta::{Conduct, Site};
use crate::zoo::PeConfig;

/// Why these parts cannot stand together, if they cannot.
pub(super) fn reason_against(parts: &[PeConfig]) -> Option<String> {
    if parts.is_empty() {
        return Some("no encoding, expected at least one; `nope` is the empty one".to_owned());
    }
    alone(parts).or_else(|| same_place(parts)).or_else(|| at_odds(parts))
}

fn id(part: &PeConfig) -> &'static str {
    part.meta().id
}

/// Parts that stand twice, do nothing here, or need another.
fn alone(parts: &[PeConfig]) -> Option<String> {
    for (at, part) in parts.iter().enumerate() {
        let id = id(part);
        if parts[..at].iter().any(|other| other.meta().id == id) {
            return Some(format!("`{id}` stands twice; write it once"));
        }
        if parts.len() > 1 && part.meta().sites.is_empty() {
            return Some(format!("`{id}` does nothing beside others; leave it out"));
        }
    }
    let over = parts.iter().find(|part| stands_over(part))?;
    let beside = parts.iter().filter(|part| !stands_over(part)).collect::<Vec<_>>();
    if beside.is_empty() {
        let id = id(over);
        return Some(format!(
            "`{id}` does nothing alone; write what it stands over in brackets, as `{id}(rope)`"
        ));
    }
    if acts_on(over, Site::Positions)
        && beside.iter().all(|part| conducts(part, Conduct::IgnoresPositions))
    {
        return Some(format!(
            "`{}` chooses positions and `{}` reads none; put it over one that does, as `rope`",
            id(over),
            id(beside[0])
        ));
    }
    None
}

/// Two parts in a place that has room for one.
fn same_place(parts: &[PeConfig]) -> Option<String> {
    let site = |site: Site| move |part: &PeConfig| acts_on(part, site);
    let one_of = |claims: &dyn Fn(&PeConfig) -> bool, what: &str| {
        let mut claiming = parts.iter().filter(|part| claims(part));
        let (first, second) = (claiming.next()?, claiming.next()?);
        Some(format!("`{}` and `{}` both {what}; keep one of them", id(first), id(second)))
    };
    one_of(&site(Site::QueryKey), "transform queries and keys")
        .or_else(|| one_of(&site(Site::Positions), "choose the positions"))
        .or_else(|| {
            one_of(&|part| conducts(part, Conduct::MixesValues), "have the attention mix columns")
        })
}

/// Two parts of which one takes away what the other builds on.
fn at_odds(parts: &[PeConfig]) -> Option<String> {
    let pair = |has: &dyn Fn(&PeConfig) -> bool, builds: &dyn Fn(&PeConfig) -> bool| {
        let at = parts.iter().position(has)?;
        let other = (0..parts.len()).find(|other| *other != at && builds(&parts[*other]))?;
        Some((id(&parts[at]), id(&parts[other])))
    };
    let adds = |part: &PeConfig| acts_on(part, Site::Logits);
    if let Some((replaces, adds)) = pair(&|part| conducts(part, Conduct::ReplacesSoftmax), &adds) {
        return Some(format!(
            "`{replaces}` puts something else in the place of the softmax, whose logits `{adds}` \
             adds to; keep one of them"
        ));
    }
    let products = |part: &PeConfig| conducts(part, Conduct::ReplacesProducts);
    let undivided = |part: &PeConfig| conducts(part, Conduct::Undivided);
    if let Some((replaces, leaves)) = pair(&products, &undivided) {
        return Some(format!(
            "`{replaces}` puts other products in the place of queries with keys, and `{leaves}` \
             leaves out the division of both; give it another `convention`"
        ));
    }
    let reads = |part: &PeConfig| conducts(part, Conduct::ReadsQueries);
    let widens = |part: &PeConfig| conducts(part, Conduct::WidensQueries);
    if let Some((widens, reads)) = pair(&widens, &reads) {
        return Some(format!(
            "`{widens}` widens queries and keys, and `{reads}` meets them with tables of the \
             head's width; keep one of them"
        ));
    }
    let stretches = |part: &PeConfig| conducts(part, Conduct::StretchesQueries);
    let (stretches, reads) = pair(&stretches, &reads)?;
    Some(format!(
        "`{stretches}` stretches queries by factors that only cancel against keys, and `{reads}` \
         meets them with something else; keep one of them"
    ))
}

/// Whether shifting all positions leaves the logits as they are.
pub(super) fn shift_invariant(parts: &[PeConfig]) -> bool {
    // A table meets the queries as they are after the rotation, which is one by the position.
    let rotates = |part: &PeConfig| {
        acts_on(part, Site::QueryKey) && !conducts(part, Conduct::IgnoresPositions)
    };
    let met_after_rotation = parts.iter().any(rotates)
        && parts.iter().any(|part| conducts(part, Conduct::ReadsQueries) && !rotates(part));
    !met_after_rotation && parts.iter().all(|part| part.meta().claims.shift_invariant)
}

/// How the parts behave together.
pub(super) fn conduct(parts: &[PeConfig]) -> Vec<Conduct> {
    let mut any = parts.iter().flat_map(EncodingConfig::conduct).collect::<Vec<_>>();
    any.sort_unstable();
    any.dedup();
    any.retain(|conduct| {
        // One part that reads positions makes all of them together read positions.
        *conduct != Conduct::IgnoresPositions || parts.iter().all(|part| conducts(part, *conduct))
    });
    any
}
