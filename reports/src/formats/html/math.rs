//! Formulas of descriptions as MathML, which browsers draw without a script.
//!
//! Formulas are written as programmers write them: `logit[i, j] = q_i . k_j / sqrt(D) + 2^(-n / H)`. What this module does not
//! know is shown as it is.

use crate::text::html as escape;

/// Letters that are written by their names.
const GREEK: &[(&str, &str)] = &[
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("eps", "ε"),
    ("zeta", "ζ"),
    ("theta", "θ"),
    ("mu", "μ"),
    ("pi", "π"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("phi", "φ"),
    ("psi", "ψ"),
    ("omega", "ω"),
];

/// Operators of several characters, the longest first, and single ones that are drawn otherwise.
const OPERATORS: &[(&str, &str)] = &[
    ("...", "⋯"),
    ("..=", "‥"),
    ("..", "‥"),
    ("->", "→"),
    ("<-", "←"),
    ("+=", "+="),
    ("+-", "±"),
    ("<=", "≤"),
    (">=", "≥"),
    (".", "·"),
    ("*", "·"),
    ("-", "−"),
];

/// Sums and products, which have their range below them: `sum over i of x`.
const LARGE: &[(&str, &str)] = &[("sum", "∑"), ("product", "∏")];

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// Name; whether white space comes before it.
    Name(String, bool),
    Number(String, bool),
    /// Operator, or a single character; whether white space comes before it.
    Sign(String, bool),
}

/// Reports whether code between backticks is a formula, and not the name of a setting or a shape.
fn is_formula(code: &str) -> bool {
    !code.contains(['"', ':']) && code.contains(['=', '[', '^', '/', '<', '>', '(', ' '])
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        let start = rest.trim_start();
        let spaced = start.len() < rest.len();
        let Some(first) = start.chars().next() else { return tokens };
        let length = |is_part: fn(char) -> bool| start.find(|c| !is_part(c)).unwrap_or(start.len());
        let (end, token) = if first.is_ascii_alphabetic() {
            let end = length(|c| c.is_ascii_alphabetic() || c == '\'');
            (end, Token::Name(start[..end].to_owned(), spaced))
        } else if first.is_ascii_digit() {
            let mut end = length(|c| c.is_ascii_digit());
            if let Some(decimals) = start[end..].strip_prefix('.') {
                let digits = decimals.find(|c: char| !c.is_ascii_digit()).unwrap_or(decimals.len());
                end += if digits > 0 { 1 + digits } else { 0 };
            }
            (end, Token::Number(start[..end].to_owned(), spaced))
        } else {
            let known = OPERATORS.iter().find(|(written, _)| start.starts_with(written));
            let end = known.map_or(first.len_utf8(), |(written, _)| written.len());
            let shown = known.map_or(&start[..end], |(_, shown)| shown);
            (end, Token::Sign(shown.to_owned(), spaced))
        };
        tokens.push(token);
        rest = &start[end..];
    }
}

/// Position in the tokens of a formula, from which it is read.
struct FormulaReader<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl FormulaReader<'_> {
    fn sign(&self) -> Option<(&str, bool)> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign, spaced)) => Some((sign, *spaced)),
            _ => None,
        }
    }

    /// Takes a sign without white space before it.
    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.sign() == Some((wanted, false));
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads up to a closing sign, which is taken, or to the end.
    fn until(&mut self, close: &str) -> String {
        let mut out = String::new();
        while let Some(token) = self.tokens.get(self.at) {
            if matches!(token, Token::Sign(sign, _) if sign == close) {
                self.at += 1;
                break;
            }
            out += &self.scripted();
        }
        format!("<mrow>{out}</mrow>")
    }

    /// Reads the range of a sum up to `of`.
    fn range(&mut self) -> Option<String> {
        let is = |token: &Token, word: &str| matches!(token, Token::Name(name, _) if name == word);
        if !self.tokens.get(self.at).is_some_and(|token| is(token, "over")) {
            return None;
        }
        let length = self.tokens[self.at..].iter().position(|token| is(token, "of"))?;
        let range = &self.tokens[self.at + 1..self.at + length];
        self.at += length + 1;
        Some(FormulaReader { tokens: range, at: 0 }.until(""))
    }

    /// Reads what a sub- or superscript, or a root, applies to: a group without its brackets, or one token.
    fn argument(&mut self) -> String {
        if self.take("(") {
            return self.until(")");
        }
        if self.take("{") {
            return self.until("}");
        }
        let minus = if self.take("−") { "<mo>−</mo>" } else { "" };
        format!("<mrow>{minus}{}</mrow>", self.atom())
    }

    /// Reads a single token or a bracket with its content.
    fn atom(&mut self) -> String {
        let Some(token) = self.tokens.get(self.at) else { return String::new() };
        self.at += 1;
        match token {
            Token::Number(digits, _) => format!("<mn>{digits}</mn>"),
            Token::Sign(sign, _) if sign == "(" => {
                format!("<mrow><mo>(</mo>{}<mo>)</mo></mrow>", self.until(")"))
            }
            Token::Sign(sign, _) => format!("<mo>{}</mo>", escape(sign)),
            Token::Name(name, _) if name == "sqrt" && self.take("(") => {
                format!("<msqrt>{}</msqrt>", self.until(")"))
            }
            Token::Name(name, _) => {
                let large = LARGE.iter().find(|(written, _)| written == name);
                if let Some((sign, range)) = large.map(|(_, sign)| sign).zip(self.range()) {
                    return format!("<munder><mo>{sign}</mo>{range}</munder>");
                }
                let greek = GREEK.iter().find(|(written, _)| written == name);
                let letter = greek.map_or(name.as_str(), |(_, letter)| letter);
                format!("<mi>{}</mi>", escape(&letter.replace('\'', "′")))
            }
        }
    }

    /// Reads an atom with its sub- and superscripts, after a gap where white space separates two operands.
    fn scripted(&mut self) -> String {
        let is_operand = |token: &Token| match token {
            Token::Sign(sign, _) => ["(", "["].contains(&&**sign),
            Token::Name(..) | Token::Number(..) => true,
        };
        let spaced = |token: &Token| match token {
            Token::Sign(_, spaced) | Token::Name(_, spaced) | Token::Number(_, spaced) => *spaced,
        };
        let ends = |token: &Token| match token {
            Token::Sign(sign, _) => [")", "]", "}"].contains(&&**sign),
            Token::Name(..) | Token::Number(..) => true,
        };
        let own = &self.tokens[self.at];
        let before = self.at.checked_sub(1).map(|at| &self.tokens[at]);
        let gap = is_operand(own) && spaced(own) && before.is_some_and(ends);
        let is_name = matches!(own, Token::Name(..));
        let base = self.atom();
        // `W2` is the second of several matrices.
        let digits = match self.tokens.get(self.at) {
            Some(Token::Number(digits, false)) if is_name => {
                self.at += 1;
                Some(format!("<mn>{digits}</mn>"))
            }
            _ => None,
        };
        let mut below = digits.into_iter().collect::<Vec<_>>();
        if self.take("_") {
            below.push(self.argument());
        }
        if is_name && self.take("[") {
            below.push(self.until("]"));
        }
        let above = self.take("^").then(|| self.argument());
        let below = match below.len() {
            0 => None,
            _ => Some(format!("<mrow>{}</mrow>", below.join("<mo>,</mo>"))),
        };
        let scripted = match (below, above) {
            (None, None) => base,
            (Some(below), None) => format!("<msub>{base}{below}</msub>"),
            (None, Some(above)) => format!("<msup>{base}{above}</msup>"),
            (Some(below), Some(above)) => format!("<msubsup>{base}{below}{above}</msubsup>"),
        };
        if gap { format!("<mspace width=\"0.3em\"/>{scripted}") } else { scripted }
    }
}

/// Renders code as a formula; `None` for code that is none.
pub(super) fn math(code: &str) -> Option<String> {
    let tokens = tokens(code);
    let formula = FormulaReader { tokens: &tokens, at: 0 }.until("");
    is_formula(code).then(|| format!("<span class=\"math\"><math>{formula}</math></span>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(code: &str) -> String {
        let math = math(code).unwrap();
        let math = math.strip_prefix("<span class=\"math\">").unwrap();
        let math = math.strip_suffix("</span>").unwrap();
        math.replace("<mrow>", "{")
            .replace("</mrow>", "}")
            .replace("<mspace width=\"0.3em\"/>", "~")
    }

    #[test]
    fn indices_roots_powers_and_sums_are_set() {
        assert_eq!(
            plain("x[n] += 2m"),
            "<math>{<msub><mi>x</mi>{{<mi>n</mi>}}</msub><mo>+=</mo><mn>2</mn><mi>m</mi>}</math>"
        );
        assert_eq!(
            plain("w_t^T / sqrt(D)"),
            "<math>{<msubsup><mi>w</mi>{{<mi>t</mi>}}{<mi>T</mi>}</msubsup><mo>/</mo><msqrt>{<mi>D</mi>}</msqrt>}</math>"
        );
        assert_eq!(
            plain("sum over l <= i of ln f"),
            "<math>{<munder><mo>∑</mo>{<mi>l</mi><mo>≤</mo><mi>i</mi>}</munder>~<mi>ln</mi>~<mi>f</mi>}</math>"
        );
        assert!(
            plain("2^(-8 h)").contains("<msup><mn>2</mn>{<mo>−</mo><mn>8</mn>~<mi>h</mi>}</msup>")
        );
    }

    #[test]
    fn names_are_no_formulas_and_brackets_that_do_not_close_end() {
        for code in ["rank", "per-row", "rotary_fraction", "state: [B, H]", "{ type = \"gate\" }"] {
            assert_eq!(math(code), None, "{code}");
        }
        for code in ["f(x = [", "x^", "a_", "sqrt(", "x[ = )", "<b> = '&\""] {
            let math = math(code).unwrap_or_default();
            let inner = math.replacen("class=\"math\"", "", 1);
            assert!(!inner.contains("<b>") && !inner.contains('"'), "{math}");
        }
    }
}
