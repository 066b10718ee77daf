//! Line plots as SVG.

use super::plot::{Bar, Plot};
use super::value_axis::{ValueAxis, nice};
use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const PLOT_HEIGHT: f64 = 270.0;
const PANEL_HEIGHT: f64 = 170.0;
const LEGEND_ROW: f64 = 20.0;
/// About the width of a character of the legend.
const CHARACTER: f64 = 6.9;

/// Okabe and Ito's hues, darkened for white and lightened for black to a contrast of 3:1 or more.
const LIGHT: [&str; 8] = ["#0072b2", "#c44e00", "#007f5c", "#a8478a", "#8f6a00", "#3a3f47", "#0b8fc2", "#7a5195"];
const DARK: [&str; 8] = ["#56b4e9", "#f58346", "#2fc49a", "#e08cc4", "#e6b93d", "#d5d9de", "#8fd3f7", "#bb9ae0"];
const DASHES: [&str; 8] = ["none", "9 4", "2 3", "11 3 2 3", "5 3", "16 4", "2 6", "8 3 2 3 2 3"];

/// The plots below one another with one title. Labels that all plots share stand in one legend on top.
pub(super) fn draw(title: &str, plots: &[Plot]) -> String {
    let height = if plots.len() > 1 { PANEL_HEIGHT } else { PLOT_HEIGHT };
    let (mut body, mut top) = (String::new(), 34.0);
    for (i, plot) in plots.iter().enumerate() {
        top += legend(&mut body, plot, top);
        axes(&mut body, plot, top, height, i + 1 == plots.len());
        top += height + 30.0;
    }
    if plots.is_empty() {
        let _ = write!(body, r#"<text class="soft" x="{LEFT}" y="60">No run kept a time series.</text>"#);
        top += 40.0;
    }
    top += 18.0;
    let mut css = String::new();
    let colours = |css: &mut String, palette: [&str; 8]| {
        for (i, c) in palette.iter().enumerate() {
            let _ = write!(css, ".l{i}{{stroke:{c}}}");
        }
    };
    colours(&mut css, LIGHT);
    for (i, d) in DASHES.iter().enumerate() {
        let _ = write!(css, ".l{i}{{stroke-dasharray:{d}}}");
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
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top:.0}\" width=\"{WIDTH}\" height=\"{top:.0}\" role=\"img\" \
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

/// Draws a plot's legend and gives the room that it takes.
fn legend(out: &mut String, plot: &Plot, top: f64) -> f64 {
    let (mut x, mut y) = (LEFT, top + 14.0);
    if !plot.title.is_empty() {
        let _ = write!(out, r#"<text class="panel" x="{x}" y="{y}">{}</text>"#, escaped(&plot.title));
        x += plot.title.chars().count() as f64 * (CHARACTER + 1.0) + 22.0;
    }
    let mut style = 0;
    for line in &plot.lines {
        let width = 34.0 + line.label.chars().count() as f64 * CHARACTER + 18.0;
        if x + width > WIDTH - RIGHT && x > LEFT {
            (x, y) = (LEFT, y + LEGEND_ROW);
        }
        let class = if line.capacity { "capkey".into() } else { format!("line l{}", style % 8) };
        style += usize::from(!line.capacity);
        let middle = y - 4.0;
        let _ = write!(out, r#"<line class="{class}" x1="{x:.1}" y1="{middle}" x2="{:.1}" y2="{middle}"/>"#, x + 27.0);
        let _ = write!(out, r#"<text x="{:.1}" y="{y}">{}</text>"#, x + 33.0, escaped(&line.label));
        x += width;
    }
    y - top + 12.0
}

fn axes(out: &mut String, plot: &Plot, top: f64, height: f64, last: bool) {
    let (width, bottom) = (WIDTH - LEFT - RIGHT, top + height);
    let vertical = ValueAxis::of(plot, height);
    let x_start = plot.x_start;
    let x_end = if plot.x_end > x_start { plot.x_end } else { x_start + 1.0 };
    let x = |t: f64| LEFT + (t - x_start) / (x_end - x_start) * width;
    let y = |v: f64| bottom - vertical.share(v) * height;
    for &tick in &vertical.ticks {
        let at = y(tick);
        let _ = write!(out, r#"<line class="grid" x1="{LEFT}" y1="{at:.1}" x2="{:.1}" y2="{at:.1}"/>"#, LEFT + width);
        let _ = write!(
            out,
            r#"<text class="soft" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            LEFT - 7.0,
            at + 4.0,
            tidy(tick)
        );
    }
    let x_step = nice((x_end - x_start) / 10.0);
    let mut tick = (x_start / x_step).ceil() * x_step;
    while tick <= x_end * (1.0 + 1e-9) {
        let at = x(tick);
        let _ =
            write!(out, r#"<line class="axis" x1="{at:.1}" y1="{bottom:.1}" x2="{at:.1}" y2="{:.1}"/>"#, bottom + 4.0);
        let _ = write!(
            out,
            r#"<text class="soft" x="{at:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            bottom + 17.0,
            tidy(tick)
        );
        tick += x_step;
    }
    // Capacity lies behind the axis and the other lines.
    for line in plot.lines.iter().filter(|l| l.capacity) {
        let _ = write!(out, r#"<path class="cap" d="{}"/>"#, area(&line.points, x, y, bottom));
    }
    for (style, line) in plot.lines.iter().filter(|l| !l.capacity).enumerate() {
        let _ = write!(out, r#"<path class="line l{}" d="{}"/>"#, style % 8, path(&line.points, x, y));
        if !line.bars.is_empty() {
            let _ = write!(out, r#"<path class="bar l{}" d="{}"/>"#, style % 8, bars(&line.bars, x, y, x_end));
        }
    }
    let _ =
        write!(out, r#"<line class="axis" x1="{LEFT}" y1="{bottom:.1}" x2="{:.1}" y2="{bottom:.1}"/>"#, LEFT + width);
    let middle = top + height / 2.0;
    let _ = write!(
        out,
        r#"<text class="soft" transform="translate(15 {middle:.1}) rotate(-90)" text-anchor="middle">{}</text>"#,
        escaped(&plot.y_label)
    );
    if last {
        let centre = LEFT + width / 2.0;
        let _ = write!(
            out,
            r#"<text class="soft" x="{centre:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            bottom + 34.0,
            escaped(&plot.x_label)
        );
    }
    out.push('\n');
}

fn path(points: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut d = String::new();
    let mut broken = true;
    for &(t, v) in points {
        if v.is_nan() {
            broken = true;
            continue;
        }
        let _ = write!(d, "{}{:.1} {:.1}", if broken { 'M' } else { 'L' }, x(t), y(v));
        broken = false;
    }
    d
}

/// Steps with everything below them; each value holds from the point before to its own.
fn area(points: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64, bottom: f64) -> String {
    let mut d = format!("M{:.1} {bottom:.1}", x(0.0));
    let mut from = 0.0;
    let mut held = None;
    for &(t, v) in points.iter().filter(|p| !p.1.is_nan()) {
        // A run of one value needs its two ends only.
        if held != Some(v) {
            if let Some(old) = held {
                let _ = write!(d, "L{:.1} {:.1}", x(from), y(old));
            }
            let _ = write!(d, "L{:.1} {:.1}", x(from), y(v));
        }
        held = Some(v);
        from = t;
    }
    if let Some(v) = held {
        let _ = write!(d, "L{:.1} {:.1}L{:.1} {bottom:.1}", x(from), y(v), x(from));
    }
    d.push('Z');
    d
}

/// Bars with a stroke across each end; those that reach beyond the axes end there.
fn bars(bars: &[Bar], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64, x_end: f64) -> String {
    let mut d = String::new();
    for b in bars {
        let (x0, y0, x1, y1) = (x(b.from.0).max(LEFT), y(b.from.1), x(b.to.0.min(x_end)), y(b.to.1));
        let _ = write!(d, "M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}");
        let (dx, dy) = if b.from.0 == b.to.0 { (3.0, 0.0) } else { (0.0, 3.0) };
        for (x, y) in [(x0, y0), (x1, y1)] {
            let _ = write!(d, "M{:.1} {:.1}L{:.1} {:.1}", x - dx, y - dy, x + dx, y + dy);
        }
    }
    d
}

fn tidy(v: f64) -> String {
    let text = format!("{v:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!([0.7, 1.0, 1.1, 3.0, 7.0, 340.0].map(nice), [1.0, 1.0, 2.0, 5.0, 10.0, 500.0]);
        assert_eq!([0.0, 0.5, 20.0, 2_000.0].map(tidy), ["0", "0.5", "20", "2000"]);
    }

    #[test]
    fn gaps_break_a_line() {
        let d = path(&[(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)], |t| t, |v| v);
        assert_eq!(d, "M0.0 1.0L1.0 2.0M3.0 4.0");
    }

    #[test]
    fn capacity_steps_hold_until_the_next() {
        let d = area(&[(1.0, 5.0), (2.0, 5.0), (3.0, 7.0)], |t| t, |v| v, 0.0);
        // From 0 to 2 at 5, from 2 to 3 at 7: the corner at (2, 5) is part of the outline.
        assert_eq!(d, "M0.0 0.0L0.0 5.0L2.0 5.0L2.0 7.0L3.0 7.0L3.0 0.0Z");
    }

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
