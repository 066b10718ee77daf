//! Line plots as SVG.

use super::drawing::{Anchor, DASHES, Font, LEFT, LIGHT, STYLES, Shape, Step, Stroke, WIDTH, lay_out, tidy};
use super::plot::Plot;
use std::fmt::Write as _;

/// The hues of [`LIGHT`], lightened for black to a contrast of 3:1 or more.
const DARK: [&str; STYLES] = ["#56b4e9", "#f58346", "#2fc49a", "#e08cc4", "#e6b93d", "#d5d9de", "#8fd3f7", "#bb9ae0"];

/// The plots below one another with one title. Labels that all plots share are in one legend above them.
pub(super) fn draw(title: &str, plots: &[Plot]) -> String {
    let drawing = lay_out(plots);
    let mut body = String::new();
    drawing.shapes.iter().for_each(|s| shape(&mut body, s));
    let mut css = String::new();
    let colours = |css: &mut String, palette: [&str; STYLES]| {
        for (i, c) in palette.iter().enumerate() {
            let _ = write!(css, ".l{i}{{stroke:{c}}}");
        }
    };
    colours(&mut css, LIGHT);
    for (i, dashes) in DASHES.iter().enumerate() {
        let dashes = dashes.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
        let dashes = if dashes.is_empty() { "none" } else { &dashes };
        let _ = write!(css, ".l{i}{{stroke-dasharray:{dashes}}}");
    }
    css.push_str(
        ".bg{fill:#fff}text{fill:#16181d;font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
         .title{font-size:15px;font-weight:600}.soft{fill:#555c68}.panel{font-weight:600}.grid{stroke:#e4e8ed}.axis{stroke:#8a919c}\
         .line{fill:none;stroke-width:1.8;stroke-linejoin:round}.bar{fill:none;stroke-width:1.2;stroke-dasharray:none}.cap{fill:#eceff3;stroke:#8a919c;stroke-width:1.4}.capkey{stroke:#8a919c;stroke-width:1.6}\
         @media(prefers-color-scheme:dark){.bg{fill:#14161a}text{fill:#e9ebee}.soft{fill:#a5adb9}.grid{stroke:#2a2e36}.axis{stroke:#8a929e}\
         .cap{fill:#23272e;stroke:#8a929e}.capkey{stroke:#8a929e}",
    );
    colours(&mut css, DARK);
    css.push('}');
    let description = escaped(&describe(plots));
    let (title, height) = (escaped(title), drawing.height);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" role=\"img\" \
         aria-labelledby=\"t d\">\n<title id=\"t\">{title}</title>\n<desc id=\"d\">{description}</desc>\n<style>{css}</style>\n\
         <rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n<text class=\"title\" x=\"{LEFT}\" y=\"24\">{title}</text>\n{body}</svg>\n"
    )
}

fn describe(plots: &[Plot]) -> String {
    let mut out = String::new();
    for p in plots {
        if !p.title.is_empty() {
            let _ = write!(out, "{}: ", p.title);
        }
        let _ = write!(out, "{} over {} to {}. ", p.y_label, p.x_label, p.x_end);
        for l in &p.lines {
            let there = l.points.iter().map(|p| p.1).filter(|v| !v.is_nan());
            let (sum, n, high) =
                there.fold((0.0, 0.0, f64::NAN), |(s, n, h): (f64, f64, f64), v| (s + v, n + 1.0, h.max(v)));
            if n > 0.0 {
                let _ = write!(out, "{}: mean {}, highest {}. ", l.label, tidy(sum / n), tidy(high));
            }
        }
    }
    out
}

fn shape(out: &mut String, shape: &Shape) {
    // Writing into a string never fails.
    let _ = match shape {
        Shape::Line { stroke, from: (x1, y1), to: (x2, y2) } => {
            write!(out, r#"<line class="{}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#, class(*stroke))
        }
        Shape::Path { stroke, steps } => write!(out, r#"<path class="{}" d="{}"/>"#, class(*stroke), d(steps)),
        Shape::Text { font, at: (x, y), anchor, is_turned, text } => {
            let class = match font {
                Font::Title => " class=\"title\"",
                Font::Panel => " class=\"panel\"",
                Font::Plain => "",
                Font::Soft => " class=\"soft\"",
            };
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let text = escaped(text);
            if *is_turned {
                write!(out, "<text{class} transform=\"translate({x} {y:.1}) rotate(-90)\"{anchor}>{text}</text>")
            } else {
                write!(out, "<text{class} x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{text}</text>")
            }
        }
        Shape::End => writeln!(out),
    };
}

fn class(stroke: Stroke) -> String {
    match stroke {
        Stroke::Line(style) => format!("line l{style}"),
        Stroke::Bar(style) => format!("bar l{style}"),
        Stroke::Capacity => "cap".into(),
        Stroke::CapacityKey => "capkey".into(),
        Stroke::Grid => "grid".into(),
        Stroke::Axis => "axis".into(),
    }
}

fn d(steps: &[Step]) -> String {
    let mut d = String::new();
    for step in steps {
        let _ = match step {
            Step::Move(x, y) => write!(d, "M{x:.1} {y:.1}"),
            Step::To(x, y) => write!(d, "L{x:.1} {y:.1}"),
            Step::Close => write!(d, "Z"),
        };
    }
    d
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        let plot = Plot {
            title: "<b>".into(),
            y_label: "y".into(),
            x_label: "x".into(),
            x_start: 0.0,
            x_end: 1.0,
            lines: vec![],
            ..Plot::default()
        };
        let text = draw("a & b", &[plot]);
        assert!(text.contains("a &amp; b") && text.contains("&lt;b&gt;") && !text.contains("<b>"));
    }
}
