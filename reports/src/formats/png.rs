//! `figures/*.png`: the SVG figures as pixels, for programs that cannot show SVG; of very many figures only the first
//! ones.
//!
//! The font (DejaVu Sans Condensed) is part of the program, so that a figure is the same on every machine.

use std::sync::Arc;

use png::{ColorType, Compression, Encoder, EncodingError};
use rayon::prelude::*;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::chart;
use super::contents::{Contents, FormatError, OutFile};
use crate::document::figures::Figure;

/// Number of pixels per SVG unit.
const SCALE: f32 = 2.0;

pub(super) fn render(contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans_condensed::regular().to_vec());
    fonts.load_font_data(dejavu::sans_condensed::bold().to_vec());
    let family = fonts.faces().flat_map(|face| &face.families).map(|(name, _)| name.clone());
    let family = family.min().unwrap_or_default();
    fonts.set_sans_serif_family(&family);
    let options = Options { fontdb: Arc::new(fonts), font_family: family, ..Options::default() };
    let figures = contents.figures.par_iter().filter(|figure| figure.pixels);
    figures.map(|figure| png(figure, &options)).collect()
}

fn png(figure: &Figure, options: &Options<'_>) -> Result<OutFile, FormatError> {
    let broken = |reason: String| FormatError::Picture { figure: figure.title.clone(), reason };
    let tree = Tree::from_str(&chart::svg(figure), options).map_err(|e| broken(e.to_string()))?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|side| (SCALE * side).ceil() as u32);
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| broken(format!("{width} by {height} pixels are too many")))?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    let bytes = encoded(&pixels).map_err(|e| broken(e.to_string()))?;
    Ok(OutFile { path: figure.path("png"), bytes })
}

/// Encodes opaque pixels as a PNG file.
fn encoded(pixels: &Pixmap) -> Result<Vec<u8>, EncodingError> {
    let colours: Vec<u8> =
        pixels.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(ColorType::Rgb);
    // The default takes as long as drawing the figure.
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&colours)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Report;
    use crate::analysis::ReportMeta;
    use crate::testkit::suite;

    /// Counts the nearly black pixels of `file`; only text is black in a figure.
    fn ink(file: &OutFile) -> usize {
        let pixels = Pixmap::decode_png(&file.bytes).unwrap();
        let dark = |p: &&resvg::tiny_skia::PremultipliedColorU8| p.red().max(p.green()) < 60;
        pixels.pixels().iter().filter(dark).count()
    }

    #[test]
    fn every_figure_is_a_picture_with_text() {
        let report = Report::new(suite(), &ReportMeta::default()).unwrap();
        let contents = Contents::of(&report).unwrap();
        let files = super::render(&contents).unwrap();
        assert_eq!(files.len(), contents.figures.len());
        for file in &files {
            assert!(ink(file) > 500, "{} has {} dark pixels", file.path, ink(file));
        }
    }
}
