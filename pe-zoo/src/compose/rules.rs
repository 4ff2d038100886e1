//! Which encodings can be combined, and the properties of a combination.

use std::sync::Arc;

use super::{ActsOn, Combination, inner, is_over, probed};
use crate::card::Properties;
use crate::registry::EncodingConfig;
use crate::{PeError, probe};

/// Returns the reason why these encodings cannot be combined; `None` if they can.
///
/// # Errors
/// [`PeError::Probe`] if one of several encodings cannot be probed.
pub(super) fn reason_against(parts: &[EncodingConfig]) -> Result<Option<String>, PeError> {
    if parts.is_empty() {
        let reason =
            "no encoding, expected at least one; `nope` is the encoding without any effect";
        return Ok(Some(reason.to_owned()));
    }
    if let Some(reason) = repeated(parts) {
        return Ok(Some(reason));
    }
    for layers in parts.iter().filter_map(inner::layers) {
        if let Some(reason) = against_layers(&layers)? {
            return Ok(Some(reason));
        }
    }
    let [_, _, ..] = parts else {
        return Ok(parts.first().filter(|part| is_over(part)).map(needs_another));
    };
    let properties = probed(parts)?;
    let members = parts
        .iter()
        .zip(&properties)
        .map(|(config, properties)| Member {
            id: config.card().id,
            over: is_over(config),
            properties,
        })
        .collect::<Vec<_>>();
    let reason = without_effect(&members).or_else(|| same_place(&members));
    match reason.or_else(|| at_odds(&members)) {
        Some(reason) => Ok(Some(reason)),
        None => match whole_positions(parts, &members)? {
            Some(reason) => Ok(Some(reason)),
            None => order_matters(parts, &members),
        },
    }
}

/// Finds a part that reads whole positions beside one that chooses real ones.
fn whole_positions(
    parts: &[EncodingConfig],
    members: &[Member<'_>],
) -> Result<Option<String>, PeError> {
    let Some(at) = members.iter().position(|member| member.acts_on(ActsOn::Positions)) else {
        return Ok(None);
    };
    if !probe::chooses_real_positions(&parts[at])? {
        return Ok(None);
    }
    for (part, member) in parts.iter().zip(members) {
        if member.id != members[at].id && !probe::takes_real_positions(part)? {
            return Ok(Some(format!(
                "`{}` chooses fractional positions, but `{}` reads whole positions; combine it with `rope`, `alibi` \
                 or an encoding that ignores positions, or give `{}` whole positions",
                members[at].id, member.id, members[at].id
            )));
        }
    }
    Ok(None)
}

/// Longest pattern of layers, which probing builds.
const LONGEST: usize = *probe::LAYERS.last().expect("there are some");

/// Returns the reason why these encodings cannot be those of the layers of a pattern; `None` if they can.
fn against_layers(layers: &[Combination]) -> Result<Option<String>, PeError> {
    if layers.is_empty() {
        return Ok(Some("no layers, expected an encoding for each layer".to_owned()));
    }
    if layers.len() > LONGEST {
        return Ok(Some(format!(
            "a pattern of {} layers, expected at most {LONGEST}",
            layers.len()
        )));
    }
    let repeats = |period: &usize| {
        layers.len().is_multiple_of(*period)
            && layers[*period..].iter().eq(&layers[..layers.len() - period])
    };
    if let Some(period) = (1..layers.len()).find(repeats) {
        let once = layers[..period].iter().map(Combination::id).collect::<Vec<_>>().join("/");
        return Ok(Some(format!("the pattern repeats itself; write `{once}`")));
    }
    for part in layers.iter().flat_map(Combination::parts) {
        let id = part.card().id;
        if inner::layers(part).is_some() {
            return Ok(Some(
                "a pattern of layers within a pattern; write one pattern without brackets"
                    .to_owned(),
            ));
        }
        let properties = probe::properties(part)?;
        let (effect, example) = if properties.acts_on(ActsOn::Embedding) {
            ("adds to the embeddings", format!("{id}+(rope/nope)"))
        } else if probe::carries_state(part)? {
            ("carries state from layer to layer", format!("{id}+(alibi/nope)"))
        } else if properties.acts_on(ActsOn::Positions) {
            ("chooses the positions of all layers", format!("{id}(rope/nope)"))
        } else {
            continue;
        };
        return Ok(Some(format!(
            "`{id}` {effect}, so it acts on the whole model; write it next to the layers, as `{example}`"
        )));
    }
    Ok(None)
}

/// Finds two parts whose transforms of queries and keys give something else in another order, which no expression states.
fn order_matters(
    parts: &[EncodingConfig],
    members: &[Member<'_>],
) -> Result<Option<String>, PeError> {
    let transforming = parts.iter().zip(members);
    // Factors of rows come last, so that they multiply the products of queries and keys.
    let transforming = transforming
        .filter(|(_, member)| member.acts_on(ActsOn::QueryKey) && !member.properties.scales_rows);
    let transforming = transforming.map(|(part, _)| part).collect::<Vec<_>>();
    for (at, first) in transforming.iter().enumerate() {
        for second in &transforming[at + 1..] {
            if !probe::transforms_commute(first, second)? {
                return Ok(Some(format!(
                    "`{}` and `{}` both transform queries and keys, and the order of their transforms \
                     matters; keep one of them",
                    first.card().id,
                    second.card().id
                )));
            }
        }
    }
    Ok(None)
}

/// An encoding and its properties.
struct Member<'a> {
    id: &'static str,
    over: bool,
    properties: &'a Properties,
}

impl Member<'_> {
    fn acts_on(&self, part: ActsOn) -> bool {
        self.properties.acts_on(part)
    }
}

fn repeated(parts: &[EncodingConfig]) -> Option<String> {
    let ids = parts.iter().map(|part| part.card().id).collect::<Vec<_>>();
    let id = ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id))?.1;
    Some(format!("`{id}` is given twice; write it once"))
}

fn needs_another(over: &EncodingConfig) -> String {
    let id = over.card().id;
    format!(
        "`{id}` has no effect alone; write the encoding it acts with in brackets, as `{id}(rope)`"
    )
}

/// Finds a part that has no effect beside the others.
fn without_effect(parts: &[Member<'_>]) -> Option<String> {
    if let Some(part) = parts.iter().find(|part| part.properties.acts_on.is_empty()) {
        return Some(format!(
            "`{}` has no effect together with other encodings; leave it out",
            part.id
        ));
    }
    let over = parts.iter().find(|part| part.over)?;
    let beside = parts.iter().filter(|part| !part.over).collect::<Vec<_>>();
    let unread = beside.iter().all(|part| part.properties.ignores_positions);
    (over.acts_on(ActsOn::Positions) && unread).then(|| {
        let other = beside.first().map_or(over.id, |part| part.id);
        format!(
            "`{}` chooses positions, but `{other}` does not depend on them; combine it with an encoding that does, such as `rope`",
            over.id
        )
    })
}

/// Finds two parts that change something that only one part may change.
fn same_place(parts: &[Member<'_>]) -> Option<String> {
    let two = |has: &dyn Fn(&Member<'_>) -> bool, what: &str| {
        let mut having = parts.iter().filter(|part| has(part));
        let (first, second) = (having.next()?, having.next()?);
        Some(format!("`{}` and `{}` both {what}; keep one of them", first.id, second.id))
    };
    two(&|part| part.acts_on(ActsOn::Positions), "choose the positions")
        .or_else(|| {
            two(&|part| part.properties.mixes_values, "mix columns by the attention weights")
        })
        .or_else(|| {
            two(
                &|part| part.properties.replaces_products,
                "replace the products of queries and keys",
            )
        })
}

/// Finds two parts of which one removes something that the other needs.
fn at_odds(parts: &[Member<'_>]) -> Option<String> {
    let pair = |removes: &dyn Fn(&Member<'_>) -> bool, needs: &dyn Fn(&Member<'_>) -> bool| {
        let at = parts.iter().position(removes)?;
        let other = (0..parts.len()).find(|other| *other != at && needs(&parts[*other]))?;
        Some((parts[at].id, parts[other].id))
    };
    let reads = |part: &Member<'_>| part.properties.reads_vectors;
    let softmax = pair(&|part| part.properties.replaces_softmax, &|part| part.properties.has_sinks);
    if let Some((replaces, sinks)) = softmax {
        return Some(format!(
            "`{replaces}` replaces the softmax, but `{sinks}` adds to its denominator; keep one of them"
        ));
    }
    let products =
        pair(&|part| part.properties.replaces_products, &|part| part.properties.undivided);
    if let Some((replaces, undivided)) = products {
        return Some(format!(
            "`{replaces}` replaces the products of queries and keys, but `{undivided}` does not divide them by \
             sqrt(D); give `{undivided}` another `convention`"
        ));
    }
    let decays = pair(&|part| part.properties.decays_channels, &|part| {
        let reads_products = part.properties.content_dependent && !part.acts_on(ActsOn::State);
        reads_products && part.acts_on(ActsOn::Logits)
    });
    if let Some((decays, reads)) = decays {
        return Some(format!(
            "`{decays}` does not compute the products of queries and keys, which `{reads}` may read; keep one of them"
        ));
    }
    let scaled = pair(&|part| part.properties.scales_content, &|part| {
        let Properties { has_terms, replaces_products, undivided, .. } = part.properties;
        *has_terms || *replaces_products || *undivided
    });
    if let Some((scales, other)) = scaled {
        return Some(format!(
            "`{scales}` scales the products of queries and keys, which `{other}` also changes; keep \
             one of them"
        ));
    }
    if let Some((widens, reads)) = pair(&|part| part.properties.widens_queries, &reads) {
        return Some(format!(
            "`{widens}` widens queries and keys, but `{reads}` multiplies them with tables of the head's width; keep \
             one of them"
        ));
    }
    let (stretches, reads) = pair(&|part| part.properties.stretches_queries, &reads)?;
    Some(format!(
        "`{stretches}` stretches queries by factors that cancel only in products with keys, but `{reads}` multiplies \
         queries with other vectors; keep one of them"
    ))
}

/// Properties of the combination of these parts.
pub(super) fn together(parts: &[Arc<Properties>]) -> Properties {
    let any = |has: fn(&Properties) -> bool| parts.iter().any(|part| has(part));
    let all = |has: fn(&Properties) -> bool| parts.iter().all(|part| has(part));
    let mut acts_on = parts.iter().flat_map(|part| &part.acts_on).copied().collect::<Vec<_>>();
    acts_on.sort_unstable();
    acts_on.dedup();
    // A table of vectors is multiplied with queries that were already rotated by their positions.
    let rotates = |part: &Properties| part.acts_on(ActsOn::QueryKey) && !part.ignores_positions;
    let read_after_rotation = parts.iter().any(|part| rotates(part))
        && parts.iter().any(|part| part.reads_vectors && !rotates(part));
    Properties {
        acts_on,
        shift_invariant: !read_after_rotation && all(|part| part.shift_invariant),
        content_dependent: any(|part| part.content_dependent),
        limited_length: any(|part| part.limited_length),
        depends_on_length: any(|part| part.depends_on_length),
        ignores_positions: all(|part| part.ignores_positions),
        mixes_heads: any(|part| part.mixes_heads),
        mixes_values: any(|part| part.mixes_values),
        reads_vectors: any(|part| part.reads_vectors),
        has_terms: any(|part| part.has_terms),
        scales_content: any(|part| part.scales_content),
        replaces_products: any(|part| part.replaces_products),
        decays_channels: any(|part| part.decays_channels),
        replaces_softmax: any(|part| part.replaces_softmax),
        has_sinks: any(|part| part.has_sinks),
        scales_rows: any(|part| part.scales_rows)
            && all(|part| part.scales_rows || !part.acts_on(ActsOn::QueryKey)),
        stretches_queries: any(|part| part.stretches_queries),
        undivided: any(|part| part.undivided),
        widens_queries: any(|part| part.widens_queries),
    }
}
