//! Parser of expressions; every error names its place in the text.

use serde_json::{Map, Number, Value};

use super::{Combination, Inner, is_over};
use crate::PeError;
use crate::card::Composition;
use crate::registry::{EncodingConfig, Registry};

/// Largest nesting depth of brackets; bounds the recursion.
const DEEPEST: usize = 24;

/// Encoding in an expression, as parsed: id, options and brackets.
struct SyntaxNode {
    id: String,
    at: usize,
    options: Map<String, Value>,
    /// Offset of each option's key in the text.
    keys: Vec<(String, usize)>,
    brackets: Option<(usize, Vec<Operand>)>,
}

/// Operand of a sum, as parsed.
enum Operand {
    Encoding(SyntaxNode),
    /// Sums between slashes, with the place of the first.
    Layers(usize, Vec<Vec<Operand>>),
}

/// Id of the encoding whose layers are written between slashes.
const LAYERS: &str = "layers";

/// Parse error: a reason and a byte offset.
struct Trouble {
    at: usize,
    reason: String,
}

fn trouble<T>(at: usize, reason: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble { at, reason: reason.into() })
}

/// Parses an expression; `more` are further options for its only part.
pub(super) fn read(
    registry: &Registry,
    text: &str,
    more: Map<String, Value>,
) -> Result<Combination, PeError> {
    let plain = text.trim();
    if !plain.is_empty() && plain.chars().all(is_id) {
        // The whole text is the place.
        return build(registry, vec![registry.configured(plain, more)?]);
    }
    let placed = |trouble: Trouble| PeError::Expression {
        text: text.to_owned(),
        at: text[..trouble.at].chars().count() + 1,
        reason: trouble.reason,
    };
    let mut reader = Reader { text, at: 0, depth: 0 };
    let mut nodes = reader.expression().map_err(placed)?;
    if let Some(found) = reader.next() {
        let reason = format!("found `{found}`, expected `+`, `/` or the end");
        return Err(placed(Trouble { at: reader.at, reason }));
    }
    if !more.is_empty() {
        let [Operand::Encoding(node)] = nodes.as_mut_slice() else {
            let key = more.keys().next().map_or("", String::as_str);
            let reason = format!(
                "`{key}` is set outside the expression, which has several parts; set it in the \
                 part that it belongs to, as id{{{key}=…}}"
            );
            return Err(placed(Trouble { at: 0, reason }));
        };
        for (key, value) in more {
            if node.options.insert(key.clone(), value).is_some() {
                let reason =
                    format!("`{key}` is set both in the expression and outside it; keep one");
                return Err(placed(Trouble { at: node.at, reason }));
            }
        }
    }
    let mut parts = Vec::new();
    for node in nodes {
        collect(registry, node, &mut parts).map_err(placed)?;
    }
    build(registry, parts)
}

/// Builds the combination of these parts. A part that has no effect by itself gets its default
/// partner if it is the only one.
fn build(registry: &Registry, mut parts: Vec<EncodingConfig>) -> Result<Combination, PeError> {
    if parts.iter().all(is_over)
        && let Some(Composition::Over { default }) = parts.first().map(EncodingConfig::composition)
    {
        parts.push(registry.encoding(default)?);
    }
    Combination::new(parts)
}

/// Builds the combination of the parts of a sum that begins at a place of the text.
fn within(registry: &Registry, at: usize, sum: Vec<Operand>) -> Result<Inner, Trouble> {
    let mut parts = Vec::new();
    for node in sum {
        collect(registry, node, &mut parts)?;
    }
    let combination = build(registry, parts);
    Ok(Inner::from(combination.map_err(|error| Trouble { at, reason: error.to_string() })?))
}

/// Encoding with a setting that holds encodings, whose text begins at a place.
fn holding(
    registry: &Registry,
    node: &mut SyntaxNode,
    field: &str,
    encodings: impl serde::Serialize,
) -> Result<EncodingConfig, Trouble> {
    let refused = |reason: String| Trouble { at: node.at, reason };
    let value = serde_json::to_value(encodings).map_err(|error| refused(error.to_string()))?;
    node.options.insert(field.to_owned(), value);
    settings(registry, node)
}

/// Converts the written options to settings.
fn collect(
    registry: &Registry,
    node: Operand,
    parts: &mut Vec<EncodingConfig>,
) -> Result<(), Trouble> {
    let node = match node {
        Operand::Encoding(node) => node,
        Operand::Layers(at, sums) => {
            let pattern = sums.into_iter().map(|sum| within(registry, at, sum));
            let pattern = pattern.collect::<Result<Vec<_>, _>>()?;
            let mut node = SyntaxNode {
                id: LAYERS.to_owned(),
                at,
                options: Map::new(),
                keys: Vec::new(),
                brackets: None,
            };
            parts.push(holding(registry, &mut node, "pattern", pattern)?);
            return Ok(());
        }
    };
    let part = settings(registry, &node)?;
    let SyntaxNode { id, mut options, brackets, keys, .. } = node;
    match (brackets, part.composition()) {
        (None, _) => parts.push(part),
        (Some((open, _)), Composition::Plain | Composition::Layers { .. }) => {
            return trouble(
                open,
                format!("`{id}` does not take an encoding in brackets; use `+`, as `{id}+…`"),
            );
        }
        (Some((_, inner)), Composition::Over { .. }) => {
            parts.push(part);
            for node in inner {
                collect(registry, node, parts)?;
            }
        }
        (Some((open, inner)), Composition::Setting { field, tag }) => {
            let mut inner = inner.into_iter();
            let (
                Some(Operand::Encoding(SyntaxNode {
                    id: kind, options: own, brackets: None, ..
                })),
                None,
            ) = (inner.next(), inner.next())
            else {
                return trouble(open, format!("expected one part for `{field}` of `{id}`"));
            };
            if options.contains_key(field) {
                let reason =
                    format!("`{field}` is set both in {{…}} and in (…); remove one of the two");
                return trouble(open, reason);
            }
            let mut value = own;
            value.insert(tag.to_owned(), Value::String(kind));
            options.insert(field.to_owned(), Value::Object(value));
            let node = SyntaxNode { id, at: open, options, keys, brackets: None };
            let part = settings(registry, &node).map_err(|found| Trouble { at: open, ..found })?;
            parts.push(part);
        }
        (Some((open, inner)), Composition::Inner { field }) => {
            if options.contains_key(field) {
                let reason =
                    format!("`{field}` is set both in {{…}} and in (…); remove one of the two");
                return trouble(open, reason);
            }
            let inner = within(registry, open, inner)?;
            let mut node = SyntaxNode { id, at: open, options, keys, brackets: None };
            parts.push(holding(registry, &mut node, field, inner)?);
        }
    }
    Ok(())
}

fn settings(registry: &Registry, node: &SyntaxNode) -> Result<EncodingConfig, Trouble> {
    registry.configured(&node.id, node.options.clone()).map_err(|error| {
        let reason = error.to_string();
        let named = node.keys.iter().find(|(key, _)| reason.contains(&format!("field `{key}`")));
        Trouble { at: named.map_or(node.at, |(_, at)| *at), reason }
    })
}

/// Splits at commas outside brackets and quotes.
pub(super) fn split_list(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped, mut start) = (0_i32, false, false, 0);
    let mut items = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            ',' if depth <= 0 => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn is_id(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Whether text needs no quotes.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| is_id(c) || c == '.')
        && !["true", "false", "null"].contains(&text)
}

struct Reader<'a> {
    text: &'a str,
    /// Byte offset of the next character.
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    /// Returns the next character other than white space without consuming it.
    fn next(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    /// Consumes the next character if it is `wanted`.
    fn take(&mut self, wanted: char) -> bool {
        let found = self.next() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char, or: &str) -> Result<(), Trouble> {
        if self.take(wanted) {
            return Ok(());
        }
        let found = self.found();
        trouble(self.at, format!("found {found}, expected `{wanted}`{or}"))
    }

    fn found(&mut self) -> String {
        self.next().map_or("the end".to_owned(), |c| format!("`{c}`"))
    }

    /// Consumes characters while they satisfy `part`; returns their offset and text.
    fn run(&mut self, part: impl Fn(char) -> bool) -> (usize, &str) {
        self.next();
        let start = self.at;
        let rest = &self.text[start..];
        let len = rest.find(|c| !part(c)).unwrap_or(rest.len());
        self.at += len;
        (start, &self.text[start..start + len])
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        if self.depth == DEEPEST {
            return trouble(self.at, format!("brackets are nested more than {DEEPEST} deep"));
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Parses sums between slashes; a single one is returned as it is.
    fn expression(&mut self) -> Result<Vec<Operand>, Trouble> {
        self.next();
        let at = self.at;
        let first = self.sum()?;
        if self.next() != Some('/') {
            return Ok(first);
        }
        let mut layers = vec![first];
        while self.take('/') {
            layers.push(self.sum()?);
        }
        Ok(vec![Operand::Layers(at, layers)])
    }

    fn sum(&mut self) -> Result<Vec<Operand>, Trouble> {
        let mut nodes = self.operand()?;
        while self.take('+') {
            nodes.extend(self.operand()?);
        }
        Ok(nodes)
    }

    /// Parses an encoding, or an expression in brackets.
    fn operand(&mut self) -> Result<Vec<Operand>, Trouble> {
        if self.next() == Some('(') {
            return self.bracketed();
        }
        let found = self.found();
        let (at, id) = self.run(is_id);
        if id.is_empty() {
            return trouble(at, format!("found {found}, expected the id of an encoding"));
        }
        let id = id.to_owned();
        let (options, keys) =
            if self.next() == Some('{') { self.options()? } else { (Map::new(), Vec::new()) };
        let brackets = match self.next() {
            Some('(') => Some((self.at, self.bracketed()?)),
            _ => None,
        };
        Ok(vec![Operand::Encoding(SyntaxNode { id, at, options, keys, brackets })])
    }

    fn bracketed(&mut self) -> Result<Vec<Operand>, Trouble> {
        self.expect('(', "")?;
        let inner = self.deeper(Self::expression)?;
        self.expect(')', ", `+` or `/`")?;
        Ok(inner)
    }

    /// Parses `{ key = value, … }`; returns the options and the offset of each key.
    #[expect(clippy::type_complexity, reason = "the two halves of one list")]
    fn options(&mut self) -> Result<(Map<String, Value>, Vec<(String, usize)>), Trouble> {
        self.expect('{', "")?;
        let (mut options, mut keys) = (Map::new(), Vec::new());
        while self.next() != Some('}') {
            let found = self.found();
            let (at, key) = self.run(is_id);
            if key.is_empty() {
                return trouble(at, format!("found {found}, expected the name of a setting"));
            }
            let key = key.to_owned();
            self.expect('=', &format!(", as {key}=value"))?;
            let value = self.deeper(Self::value)?;
            if options.insert(key.clone(), value).is_some() {
                return trouble(at, format!("`{key}` is set twice; keep one"));
            }
            keys.push((key, at));
            if !self.take(',') {
                break;
            }
        }
        self.expect('}', " or `,`")?;
        Ok((options, keys))
    }

    fn value(&mut self) -> Result<Value, Trouble> {
        match self.next() {
            Some('{') => Ok(Value::Object(self.options()?.0)),
            Some('[') => self.list(),
            Some('"') => self.quoted(),
            _ => self.bare(),
        }
    }

    fn list(&mut self) -> Result<Value, Trouble> {
        self.expect('[', "")?;
        let mut items = Vec::new();
        while self.next() != Some(']') {
            items.push(self.deeper(Self::value)?);
            if !self.take(',') {
                break;
            }
        }
        self.expect(']', " or `,`")?;
        Ok(Value::Array(items))
    }

    fn quoted(&mut self) -> Result<Value, Trouble> {
        let start = self.at;
        let mut escaped = false;
        let inside = self.text[start + 1..].char_indices();
        let end = inside.clone().find(|(_, c)| {
            let end = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            end
        });
        let Some((len, _)) = end else {
            return trouble(start, "text without an end, expected `\"`");
        };
        let text = &self.text[start..start + len + 2];
        match serde_json::from_str(text) {
            Ok(value) => {
                self.at = start + text.len();
                Ok(value)
            }
            Err(error) => trouble(start, format!("text in quotes: {error}")),
        }
    }

    fn bare(&mut self) -> Result<Value, Trouble> {
        let found = self.found();
        let (at, token) = self.run(|c| is_id(c) || c == '.' || c == '+');
        let number = || {
            let whole = token.parse::<i64>().map(Number::from);
            let whole = whole.or_else(|_| token.parse::<u64>().map(Number::from)).ok();
            whole.or_else(|| token.parse::<f64>().ok().and_then(Number::from_f64))
        };
        match token {
            "" => trouble(at, format!("found {found}, expected a value")),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            word if is_word(word) => Ok(Value::String(word.to_owned())),
            _ => number().map(Value::Number).ok_or_else(|| Trouble {
                at,
                reason: format!(
                    "found `{token}`, expected a finite number, a word or a quoted text"
                ),
            }),
        }
    }
}
