//! Attention maps as SVG: one map per head, tokens on the axes.

use std::fmt::Write as _;

use pe_zoo::attention::TraceKind;

use train::run::{AttentionMap, Look};

/// Labels of the token axes.
pub(super) struct TokenAxis<'a> {
    /// Texts of the input tokens.
    pub(super) texts: &'a [String],
    /// Whether the token after each input token is scored.
    pub(super) asked: &'a [bool],
    /// Whether each token is marked; empty without marks.
    pub(super) counted: &'a [bool],
    /// Number of tokens that a cell is the mean of, in each direction.
    pub(super) tokens: usize,
}

/// Number of shades of a colour scale. More could not be distinguished; equal adjacent cells are merged into one
/// rectangle.
const SHADES: usize = 48;
const GAP: f64 = 18.0;
/// Height of the title of a layer and of the name of a head.
const TOP: f64 = 40.0;
/// Height of the title of a layer, which is above the drawings of a page.
const TOP_OF_DRAWING: f64 = 20.0;
/// Maximum total width of the heads in one row of the figure, that of a page.
const ACROSS: f64 = 1180.0;

/// Colour scale of a map: one hue from white up, or two hues around 0.
struct Shade {
    low: f64,
    high: f64,
}

impl Shade {
    /// Chooses the scale of a map: 0 to 1 for shares, 0 to the maximum for other non-negative values and for means over
    /// blocks, and symmetric around 0 otherwise.
    fn of(map: &AttentionMap, tokens: usize) -> Self {
        let values = || {
            map.heads.iter().flatten().flatten().map(|x| f64::from(*x)).filter(|x| x.is_finite())
        };
        let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
        let is_signed = low < 0.0
            || matches!(
                map.look,
                Look::Trace(TraceKind::AddedLogits | TraceKind::PositionProducts)
            );
        if is_signed {
            let most = high.max(-low);
            return Self { low: -most, high: most };
        }
        // Shares of many columns, averaged, are too small for a scale to 1.
        let to_most = tokens > 1 || map.look == Look::Trace(TraceKind::ContextualPositions);
        Self { low: 0.0, high: if to_most { high } else { 1.0 } }
    }

    fn level(&self, value: f64) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        if share.is_finite() {
            (share.clamp(0.0, 1.0) * (SHADES - 1) as f64).round() as usize
        } else {
            0
        }
    }

    /// Value in the middle of a shade.
    fn value(&self, level: usize) -> f64 {
        self.low + (self.high - self.low) * level as f64 / (SHADES - 1) as f64
    }

    /// Returns the ends of the scale in words.
    fn range(&self) -> String {
        format!("values from {} to {}", short(self.low), short(self.high))
    }

    fn colour(&self, level: usize) -> String {
        let share = level as f64 / (SHADES - 1) as f64;
        let mix =
            |share: f64, end: [f64; 3]| end.map(|c| (255.0 + share * (c - 255.0)).round() as u8);
        let [r, g, b] = if self.low < 0.0 {
            let from_middle = 2.0 * share - 1.0;
            if from_middle < 0.0 {
                mix(-from_middle, [178.0, 80.0, 0.0])
            } else {
                mix(from_middle, [8.0, 69.0, 148.0])
            }
        } else {
            mix(share, [8.0, 48.0, 107.0])
        };
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// Sizes of the maps of a layer, which are equal for all heads.
struct Layout {
    /// Width of a cell.
    cell: f64,
    row_height: f64,
    font: f64,
    /// Width of the names of the rows.
    left: f64,
    /// Height of the names of the columns.
    below: f64,
    /// Width of a map.
    side: f64,
    /// Number of rows of a map.
    rows: usize,
    /// Number of maps: one for each head, or one whose rows are heads.
    panels: usize,
}

impl Layout {
    fn of(map: &AttentionMap, axis: &TokenAxis<'_>) -> Self {
        let tokens = axis.texts.len();
        // Two heads of up to 64 tokens stand side by side.
        let cell = (448.0 / tokens as f64).clamp(3.0, 14.0);
        let font = cell.clamp(8.5, 11.0);
        let longest = axis.texts.iter().map(|text| text.chars().count()).max().unwrap_or(1).min(12);
        let below = 8.0 + 0.65 * font * longest as f64;
        let side = cell * tokens as f64;
        let heads = map.heads.len();
        if map.is_of_columns() {
            let row_height = cell.max(12.0);
            Self { cell, row_height, font, left: 56.0, below, side, rows: heads, panels: 1 }
        } else {
            Self {
                cell,
                row_height: cell,
                font,
                left: below,
                below,
                side,
                rows: tokens,
                panels: heads,
            }
        }
    }

    /// Width of a map with the names of its rows.
    fn width(&self) -> f64 {
        self.left + self.side + GAP
    }

    /// Height of a map with its name and the names of its columns.
    fn height(&self) -> f64 {
        TOP + self.row_height * self.rows as f64 + self.below
    }

    /// Returns the beginning of a drawing.
    fn open(&self, width: f64, height: f64, label: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             font-family=\"ui-monospace,monospace\" font-size=\"{:.1}\" fill=\"#1a1a1a\" role=\"img\" aria-label=\"{}\">\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
            self.font,
            escape(label)
        )
    }
}

/// Returns the name of a map.
fn title(layer: usize, map: &AttentionMap) -> String {
    format!("Layer {}: {}", layer + 1, map.look.label())
}

/// Renders a map of one layer as a drawing with all heads.
pub(super) fn svg(layer: usize, map: &AttentionMap, axis: &TokenAxis<'_>) -> String {
    let layout = Layout::of(map, axis);
    let across = ((ACROSS / layout.width()) as usize).clamp(1, layout.panels);
    let height = layout.height() * layout.panels.div_ceil(across) as f64 + 34.0;
    let title = title(layer, map);
    let heads = map.heads.len();
    let shade = Shade::of(map, axis.tokens);
    let heads = format!("{heads} {}", if heads == 1 { "head" } else { "heads" });
    let label = format!("{title}, {heads}, {}", shade.range());
    let mut out = layout.open(layout.width() * across as f64 + 10.0, height, &label);
    let style = " font-size=\"13\" font-family=\"system-ui,sans-serif\"";
    text(&mut out, SvgPoint { x: 6.0, y: 15.0 }, &format!("{style}>{}", escape(&title)));
    for number in 0..layout.panels {
        let x = layout.width() * (number % across) as f64;
        let y = layout.height() * (number / across) as f64;
        panel(&mut out, &layout, SvgPoint { x, y }, Panel { number, map, axis, shade: &shade });
    }
    legend(&mut out, &shade, height - 20.0);
    out.push_str("</svg>\n");
    out
}

/// Renders a map of one layer as a figure of a page: a drawing for each head, side by side where the window has room.
pub(super) fn figure(layer: usize, map: &AttentionMap, axis: &TokenAxis<'_>) -> String {
    let layout = Layout::of(map, axis);
    let shade = Shade::of(map, axis.tokens);
    let title = title(layer, map);
    let mut out = format!("<figure class=\"heads\"><figcaption>{}</figcaption>\n", escape(&title));
    for number in 0..layout.panels {
        let label = match layout.panels {
            1 => format!("{title}, {}", shade.range()),
            _ => format!("{title}, head {}, {}", number + 1, shade.range()),
        };
        out += &layout.open(layout.width(), layout.height() - TOP_OF_DRAWING, &label);
        let origin = SvgPoint { x: 0.0, y: -TOP_OF_DRAWING };
        panel(&mut out, &layout, origin, Panel { number, map, axis, shade: &shade });
        out.push_str("</svg>\n");
    }
    out.push_str("<div>");
    out += &layout.open(240.0, 14.0, &format!("{title}, colour scale"));
    legend(&mut out, &shade, 4.0);
    out.push_str("</svg></div></figure>\n");
    out
}

/// A map of a layer.
#[derive(Clone, Copy)]
struct Panel<'a> {
    number: usize,
    map: &'a AttentionMap,
    axis: &'a TokenAxis<'a>,
    shade: &'a Shade,
}

/// Appends a map with its name and its axes. `origin` is the top left of its place.
fn panel(out: &mut String, layout: &Layout, origin: SvgPoint, of: Panel<'_>) {
    let Panel { number, map, axis, shade } = of;
    let Layout { cell, row_height, font, left, side, rows, .. } = *layout;
    let every = (font / cell).ceil() as usize;
    let (x, top) = (origin.x + left, origin.y + TOP);
    let values: Vec<&[f32]> = if map.is_of_columns() {
        map.heads.iter().map(|head| &*head[0]).collect()
    } else {
        map.heads[number].iter().map(|row| &**row).collect()
    };
    cells(out, &values, SvgCell { x, y: top, width: cell, height: row_height }, shade);
    if map.is_of_columns() {
        for head in 0..rows {
            let at = top + row_height * (head as f64 + 0.5) + font / 3.0;
            let at = SvgPoint { x: x - 4.0, y: at };
            text(out, at, &format!(" text-anchor=\"end\">head {}", head + 1));
        }
    } else {
        let style = " font-size=\"11\" font-family=\"system-ui,sans-serif\"";
        text(out, SvgPoint { x, y: top - 7.0 }, &format!("{style}>head {}", number + 1));
        let place = format!("translate({:.1},{:.1})", x - 3.0, top + font / 3.0);
        labels(out, axis, Side::Row, &place, cell, every);
    }
    let below = top + row_height * rows as f64;
    let _ = write!(
        out,
        "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{side:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"#999\"/>",
        below - top
    );
    let place = format!("translate({:.1},{:.1}) rotate(-90)", x + font / 3.0, below + 4.0);
    labels(out, axis, Side::Column, &place, cell, every);
}

/// Place in a figure, in its units from the top left.
#[derive(Clone, Copy)]
struct SvgPoint {
    x: f64,
    y: f64,
}

/// Top left cell of a map.
#[derive(Clone, Copy)]
struct SvgCell {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Writes a text at a place; `rest` is the rest of its attributes, `>` and its content.
fn text(out: &mut String, at: SvgPoint, rest: &str) {
    let SvgPoint { x, y } = at;
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\"{rest}</text>");
}

#[derive(Clone, Copy)]
enum Side {
    Row,
    Column,
}

/// Appends the texts of one token in `every`, tokens being `cell` apart: rows with a scored next token and counted columns
/// are bold.
fn labels(
    out: &mut String,
    axis: &TokenAxis<'_>,
    side: Side,
    place: &str,
    cell: f64,
    every: usize,
) {
    let _ = write!(out, "<g transform=\"{place}\" text-anchor=\"end\">");
    for token in (0..axis.texts.len()).step_by(every) {
        let style = match side {
            Side::Row if axis.asked[token] => " font-weight=\"bold\" fill=\"#b25000\"",
            Side::Column if axis.counted.get(token) == Some(&true) => {
                " font-weight=\"bold\" fill=\"#084594\""
            }
            _ => "",
        };
        let text: String = axis.texts[token].chars().take(12).collect();
        let y = cell * (token as f64 + 0.5);
        let _ = write!(out, "<text y=\"{y:.1}\"{style}>{}</text>", escape(&text));
    }
    out.push_str("</g>");
}

/// Appends rows of cells as one path for each shade, a thick line for each run of equal cells: a tenth of the size of
/// rectangles. White cells are omitted. `first` is the top left cell.
fn cells(out: &mut String, rows: &[&[f32]], first: SvgCell, shade: &Shade) {
    let SvgCell { x, y, width, height } = first;
    let mut paths = vec![String::new(); SHADES];
    for (row, values) in rows.iter().enumerate() {
        let levels: Vec<usize> =
            values.iter().map(|value| shade.level(f64::from(*value))).collect();
        let mut start = 0;
        for run in levels.chunk_by(|a, b| a == b) {
            let _ = write!(paths[run[0]], "M{start} {row}h{}", run.len());
            start += run.len();
        }
    }
    let middle = y + height / 2.0;
    let _ = write!(
        out,
        "<g transform=\"translate({x:.1},{middle:.1}) scale({width:.3},{height:.3})\" fill=\"none\" shape-rendering=\"crispEdges\">"
    );
    for (level, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let colour = shade.colour(level);
        if colour != "#ffffff" {
            let value = short(shade.value(level));
            let _ =
                write!(out, "<path stroke=\"{colour}\" d=\"{path}\"><title>{value}</title></path>");
        }
    }
    out.push_str("</g>");
}

/// Appends the colour scale as a row of cells with both ends of its range.
fn legend(out: &mut String, shade: &Shade, y: f64) {
    let values: Vec<f32> = (0..SHADES).map(|level| shade.value(level) as f32).collect();
    cells(out, &[&values], SvgCell { x: 60.0, y, width: 3.0, height: 8.0 }, shade);
    let at = y + 8.0;
    let _ = write!(
        out,
        "<text x=\"55\" y=\"{at:.1}\" text-anchor=\"end\">{}</text><text x=\"{}\" y=\"{at:.1}\">{}</text>",
        short(shade.low),
        65 + 3 * SHADES,
        short(shade.high)
    );
}

fn short(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Escapes text for SVG and HTML; control characters become spaces.
pub(super) fn escape(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { '␣' } else { c }).collect();
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis() -> (Vec<String>, Vec<bool>, Vec<bool>) {
        let texts = ["<script>", "\"", "ab\ncd"].map(str::to_owned).to_vec();
        (texts, vec![false, true, true], vec![true, false, false])
    }

    type Draw = fn(usize, &AttentionMap, &TokenAxis<'_>) -> String;

    fn drawn_by(draw: Draw, look: Look, heads: Vec<Vec<Vec<f32>>>) -> String {
        let (texts, asked, counted) = axis();
        let axis = TokenAxis { texts: &texts, asked: &asked, counted: &counted, tokens: 1 };
        draw(0, &AttentionMap { look, heads }, &axis)
    }

    fn drawn(look: Look, heads: Vec<Vec<Vec<f32>>>) -> String {
        drawn_by(svg, look, heads)
    }

    #[test]
    fn a_figure_of_a_page_has_a_drawing_for_each_head_with_the_cells_of_the_file() {
        let rows = vec![vec![1.0], vec![0.5, 0.5], vec![0.0, 0.25, 0.75]];
        let heads = vec![rows.clone(), rows];
        let file = drawn(Look::Attention, heads.clone());
        let page = drawn_by(figure, Look::Attention, heads);
        assert_eq!(page.matches("<svg").count(), 3, "two heads and the scale of colours");
        assert!(
            page.contains("aria-label=\"Layer 1: attention weights, head 2, values from 0 to 1\""),
            "{page}"
        );
        for part in ["<path", "&lt;script&gt;"] {
            assert_eq!(page.matches(part).count(), file.matches(part).count(), "{part}");
        }
        assert!(!page.contains("<script"));
        let strips = vec![vec![vec![0.1, 0.5, 0.9]], vec![vec![0.2, 0.4, 0.6]]];
        let page = drawn_by(figure, Look::Trace(TraceKind::Forgetting), strips);
        assert_eq!(page.matches("<svg").count(), 2, "one map, whose rows are heads");
    }

    #[test]
    fn tokens_stand_on_the_axes_and_open_no_tag() {
        let rows = vec![vec![1.0], vec![0.5, 0.5], vec![0.0, 0.25, 0.75]];
        let text = drawn(Look::Attention, vec![rows.clone(), rows]);
        assert_eq!(text.matches("&lt;script&gt;").count(), 4, "two heads, two axes");
        assert!(!text.contains("<script"));
        assert!(text.contains("head 2") && text.contains("Layer 1: attention weights"));
        // 1; 0.5 twice in one line; 0 not drawn, 0.25, 0.75, in the order of their shades.
        let (maps, legend) = text.split_once("scale(3.000,8.000)").unwrap();
        assert_eq!(legend.matches("<path").count(), SHADES - 1, "white is not drawn");
        let lines: Vec<&str> = maps
            .split("<path stroke=")
            .skip(1)
            .map(|path| path.split('"').nth(3).unwrap())
            .collect();
        assert_eq!(lines, ["M1 2h1", "M0 1h2", "M2 2h1", "M0 0h1"].repeat(2), "{text}");
        assert!(text.contains("scale(14.000,14.000)"), "{text}");
    }

    #[test]
    fn negative_values_have_a_hue_of_their_own_and_nonsense_does_not_panic() {
        let look = Look::Trace(TraceKind::AddedLogits);
        let text =
            drawn(look, vec![vec![vec![-2.0], vec![2.0, 0.0], vec![f32::NAN, 1.0, f32::INFINITY]]]);
        assert!(text.contains("#b25000") && text.contains("#084594"), "{text}");
        assert!(text.contains(">-2<") && text.contains(">2<"), "{text}");
        drawn(look, vec![vec![vec![0.0], vec![0.0, 0.0], vec![0.0; 3]]]);
    }

    #[test]
    fn what_belongs_to_columns_is_a_strip_for_each_head() {
        let look = Look::Trace(TraceKind::Forgetting);
        let text = drawn(look, vec![vec![vec![0.1, 0.5, 0.9]], vec![vec![0.2, 0.4, 0.6]]]);
        assert!(text.contains("head 1") && text.contains("head 2"));
        assert_eq!(text.matches("ab␣cd").count(), 1, "one axis");
    }
}
