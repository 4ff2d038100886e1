//! Scripts of a page, and the content security policy that permits only these.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plotly::Plot;
use sha2::{Digest, Sha256};

const OWN: &str = include_str!("page.js");

/// Scripts of a page: plotly.js and the page's own code.
pub(super) struct Scripts {
    plotly: String,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self { plotly: plotly_js() }
    }

    /// Returns the policy that forbids every connection and every script except these two.
    pub(super) fn policy(&self) -> String {
        let hash = |script: &str| STANDARD.encode(Sha256::digest(script.as_bytes()));
        format!(
            "default-src 'none'; script-src 'sha256-{}' 'sha256-{}'; style-src 'unsafe-inline'; img-src \
             data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'",
            hash(&self.plotly),
            hash(OWN)
        )
    }

    pub(super) fn elements(&self) -> String {
        format!("<script>{}</script>\n<script>{OWN}</script>\n", self.plotly)
    }
}

/// Returns the source of plotly.js from the `plotly` crate: the first of its two script elements. The second,
/// MathJax, is not used.
fn plotly_js() -> String {
    let sources = Plot::offline_js_sources();
    let inside = sources.split_once('>').map_or("", |(_, rest)| rest);
    // The hash includes line ends, and an HTML parser converts `\r\n` to `\n`.
    inside.split("</script").next().unwrap_or("").replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_plotly_and_not_mathjax() {
        let script = plotly_js();
        assert!(script.contains("plotly.js v"));
        assert!(!script.contains("MathJax=") && script.len() < 5_000_000, "{}", script.len());
        assert!(!script.contains("</script"));
    }
}
