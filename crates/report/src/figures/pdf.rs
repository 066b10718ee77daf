//! Line plots as PDF, one page of the figure's size, with standard fonts.

use super::drawing::{Anchor, DASHES, Drawing, Font, LEFT, LIGHT, Shape, Step, Stroke, WIDTH, lay_out};
use super::plot::Plot;
use pdf_writer::types::LineJoinStyle;
use pdf_writer::{Content, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

const PLAIN: Name<'_> = Name(b"F1");
const BOLD: Name<'_> = Name(b"F2");
/// Widths of Helvetica's characters from the space to `~`, in thousandths of its size.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];
/// Width of characters that are not in the table.
const WIDTH_ELSE: u16 = 556;

/// The plots below one another with one title.
pub(super) fn draw(title: &str, plots: &[Plot]) -> Vec<u8> {
    let drawing = lay_out(plots);
    let [catalog, pages, page_id, plain, bold, content, info] = [1, 2, 3, 4, 5, 6, 7].map(Ref::new);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.document_info(info).title(TextStr(title)).producer(TextStr("Weir"));
    pdf.pages(pages).kids([page_id]).count(1);
    let mut page = pdf.page(page_id);
    page.media_box(Rect::new(0.0, 0.0, WIDTH as f32, drawing.height as f32)).parent(pages).contents(content);
    page.resources().fonts().pair(PLAIN, plain).pair(BOLD, bold);
    page.finish();
    for (id, name) in [(plain, "Helvetica"), (bold, "Helvetica-Bold")] {
        pdf.type1_font(id).base_font(Name(name.as_bytes())).encoding_predefined(Name(b"WinAnsiEncoding"));
    }
    pdf.stream(content, &page_content(title, &drawing));
    pdf.finish()
}

fn page_content(title: &str, drawing: &Drawing) -> Vec<u8> {
    let mut out = Content::new();
    out.set_line_join(LineJoinStyle::RoundJoin);
    let height = drawing.height;
    let title = Shape::Text {
        font: Font::Title,
        at: (LEFT, 24.0),
        anchor: Anchor::Start,
        is_turned: false,
        text: title.into(),
    };
    for shape in std::iter::once(&title).chain(&drawing.shapes) {
        match shape {
            Shape::Line { stroke, from, to } => {
                pen(&mut out, *stroke);
                out.move_to(from.0 as f32, (height - from.1) as f32).line_to(to.0 as f32, (height - to.1) as f32);
                out.stroke();
            }
            Shape::Path { stroke, steps } => {
                pen(&mut out, *stroke);
                for step in steps {
                    match *step {
                        Step::Move(x, y) => out.move_to(round(x), round(height - y)),
                        Step::To(x, y) => out.line_to(round(x), round(height - y)),
                        Step::Close => out.close_path(),
                    };
                }
                if *stroke == Stroke::Capacity {
                    out.fill_nonzero_and_stroke();
                } else {
                    out.stroke();
                }
            }
            Shape::Text { font, at, anchor, is_turned, text } => {
                let (name, size, grey) = match font {
                    Font::Title => (BOLD, 15.0, 0.09),
                    Font::Panel => (BOLD, 12.0, 0.09),
                    Font::Plain => (PLAIN, 12.0, 0.09),
                    Font::Soft => (PLAIN, 12.0, 0.36),
                };
                let bytes = encoded(text);
                let shift = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => width(&bytes, size) / 2.0,
                    Anchor::End => width(&bytes, size),
                };
                let (x, y) = (at.0 as f32, (height - at.1) as f32);
                let matrix =
                    if *is_turned { [0.0, 1.0, -1.0, 0.0, x, y - shift] } else { [1.0, 0.0, 0.0, 1.0, x - shift, y] };
                out.begin_text().set_fill_gray(grey).set_font(name, size).set_text_matrix(matrix);
                out.show(Str(&bytes)).end_text();
            }
            Shape::End => {}
        }
    }
    out.finish().into_vec()
}

/// Rounds to a tenth of a point, finer than a printer's resolution.
fn round(v: f64) -> f32 {
    ((v * 10.0).round() / 10.0) as f32
}

/// Colour, width and dashes of a stroke.
fn pen(out: &mut Content, stroke: Stroke) {
    const NO_DASHES: &[u8] = &[];
    let (colour, width, dashes) = match stroke {
        Stroke::Line(style) => (LIGHT[style], 1.8, DASHES[style]),
        Stroke::Bar(style) => (LIGHT[style], 1.2, NO_DASHES),
        Stroke::Capacity => ("#8a919c", 1.4, NO_DASHES),
        Stroke::CapacityKey => ("#8a919c", 1.6, NO_DASHES),
        Stroke::Grid => ("#e4e8ed", 1.0, NO_DASHES),
        Stroke::Axis => ("#8a919c", 1.0, NO_DASHES),
    };
    let [r, g, b] = rgb(colour);
    out.set_stroke_rgb(r, g, b).set_line_width(width).set_dash_pattern(dashes.iter().map(|&d| f32::from(d)), 0.0);
    if stroke == Stroke::Capacity {
        let [r, g, b] = rgb("#eceff3");
        out.set_fill_rgb(r, g, b);
    }
}

/// The components of `#rrggbb`, 0 to 1 each.
fn rgb(colour: &str) -> [f32; 3] {
    [1, 3, 5].map(|at| {
        let part = colour.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        f32::from(part.unwrap_or(0)) / 255.0
    })
}

/// A text in WinAnsiEncoding; other characters become question marks.
fn encoded(text: &str) -> Vec<u8> {
    let byte = |c: char| match c {
        ' '..='~' => c as u8,
        '\u{a0}'..='\u{ff}' => c as u32 as u8,
        '\u{2212}' => b'-',
        '\u{2013}' => 0x96,
        '\u{2014}' => 0x97,
        '\u{2019}' => 0x92,
        '\u{2026}' => 0x85,
        '\u{202f}' => b' ',
        _ => b'?',
    };
    text.chars().map(byte).collect()
}

fn width(bytes: &[u8], size: f32) -> f32 {
    let of = |b: &u8| b.checked_sub(b' ').and_then(|i| WIDTHS.get(usize::from(i))).copied().unwrap_or(WIDTH_ELSE);
    bytes.iter().map(|b| f32::from(of(b))).sum::<f32>() * size / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::super::plot::Line;
    use super::*;

    #[test]
    fn a_figure_is_one_page_with_its_texts_and_lines() {
        let line = |label: &str| Line {
            label: label.into(),
            points: vec![(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)],
            ..Line::default()
        };
        let lines = vec![line("a (b)"), line("\u{3b2}")];
        let plots = [Plot { y_label: "Rate, kbit/s".into(), x_end: 3.0, lines, ..Plot::default() }];
        let pdf = draw("Rates \u{2013} of two", &plots);
        assert_eq!(pdf, draw("Rates \u{2013} of two", &plots));
        let text = String::from_utf8_lossy(&pdf);
        assert!(text.starts_with("%PDF-1.") && text.trim_end().ends_with("%%EOF"));
        assert_eq!(text.matches("/Type /Page\n").count(), 1);
        assert!(text.contains("(Rate, kbit/s)") && text.contains("(a (b))") && text.contains("(?)"));
        // The first line and its key.
        assert_eq!(text.matches("0 0.447").count(), 2);
    }

    #[test]
    fn widths_are_helveticas() {
        assert_eq!(width(b"10 ms", 1_000.0), 556.0 * 2.0 + 278.0 + 833.0 + 500.0);
        assert_eq!(encoded("± 5 µs \u{2212}1"), b"\xb1 5 \xb5s -1");
    }
}
