//! Line plots as lines, paths and texts, before they become a file.

use super::plot::{Bar, Plot};
use super::value_axis::{ValueAxis, nice};

pub(super) const WIDTH: f64 = 760.0;
pub(super) const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const PLOT_HEIGHT: f64 = 270.0;
const PANEL_HEIGHT: f64 = 170.0;
const LEGEND_ROW: f64 = 20.0;
/// Approximate width of a character of the legend.
const CHARACTER: f64 = 6.9;

/// Line styles, which differ by colour and by dashes.
pub(super) const STYLES: usize = 8;
/// Okabe and Ito's hues, darkened for white to a contrast of 3:1 or more.
pub(super) const LIGHT: [&str; STYLES] =
    ["#0072b2", "#c44e00", "#007f5c", "#a8478a", "#8f6a00", "#3a3f47", "#0b8fc2", "#7a5195"];
/// Dashes and gaps in points; a solid line if empty.
pub(super) const DASHES: [&[u8]; STYLES] =
    [&[], &[9, 4], &[2, 3], &[11, 3, 2, 3], &[5, 3], &[16, 4], &[2, 6], &[8, 3, 2, 3, 2, 3]];

/// The part of the figure that a stroke belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stroke {
    /// A line of the plot, by style.
    Line(usize),
    /// A confidence interval of such a line.
    Bar(usize),
    /// The capacity behind the lines, filled.
    Capacity,
    /// Its key in the legend.
    CapacityKey,
    Grid,
    Axis,
}

/// Style of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Font {
    Title,
    Panel,
    Plain,
    Soft,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A part of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Step {
    Move(f64, f64),
    To(f64, f64),
    Close,
}

pub(super) enum Shape {
    Line {
        stroke: Stroke,
        from: (f64, f64),
        to: (f64, f64),
    },
    Path {
        stroke: Stroke,
        steps: Vec<Step>,
    },
    Text {
        font: Font,
        at: (f64, f64),
        anchor: Anchor,
        is_turned: bool,
        text: String,
    },
    /// The end of a panel.
    End,
}

/// A figure, in points from its upper left corner.
pub(super) struct Drawing {
    pub(super) height: f64,
    pub(super) shapes: Vec<Shape>,
}

/// The plots below one another, with room for a title above.
pub(super) fn lay_out(plots: &[Plot]) -> Drawing {
    let height = if plots.len() > 1 { PANEL_HEIGHT } else { PLOT_HEIGHT };
    let (mut shapes, mut top) = (Vec::new(), 34.0);
    for (i, plot) in plots.iter().enumerate() {
        top += legend(&mut shapes, plot, top);
        axes(&mut shapes, plot, top, height, i + 1 == plots.len());
        top += height + 30.0;
    }
    if plots.is_empty() {
        shapes.push(text(Font::Soft, (LEFT, 60.0), Anchor::Start, "No run kept a time series."));
        top += 40.0;
    }
    Drawing { height: top + 18.0, shapes }
}

fn text(font: Font, at: (f64, f64), anchor: Anchor, text: &str) -> Shape {
    Shape::Text { font, at, anchor, is_turned: false, text: text.into() }
}

/// Draws a plot's legend and returns its height.
fn legend(out: &mut Vec<Shape>, plot: &Plot, top: f64) -> f64 {
    let (mut x, mut y) = (LEFT, top + 14.0);
    if !plot.title.is_empty() {
        out.push(text(Font::Panel, (x, y), Anchor::Start, &plot.title));
        x += plot.title.chars().count() as f64 * (CHARACTER + 1.0) + 22.0;
    }
    let mut style = 0;
    for line in &plot.lines {
        let width = 34.0 + line.label.chars().count() as f64 * CHARACTER + 18.0;
        if x + width > WIDTH - RIGHT && x > LEFT {
            (x, y) = (LEFT, y + LEGEND_ROW);
        }
        let stroke = if line.capacity { Stroke::CapacityKey } else { Stroke::Line(style % STYLES) };
        style += usize::from(!line.capacity);
        let middle = y - 4.0;
        out.push(Shape::Line { stroke, from: (x, middle), to: (x + 27.0, middle) });
        out.push(text(Font::Plain, (x + 33.0, y), Anchor::Start, &line.label));
        x += width;
    }
    y - top + 12.0
}

fn axes(out: &mut Vec<Shape>, plot: &Plot, top: f64, height: f64, last: bool) {
    let (width, bottom) = (WIDTH - LEFT - RIGHT, top + height);
    let vertical = ValueAxis::of(plot, height);
    let x_start = plot.x_start;
    let x_end = if plot.x_end > x_start { plot.x_end } else { x_start + 1.0 };
    let x = |t: f64| LEFT + (t - x_start) / (x_end - x_start) * width;
    let y = |v: f64| bottom - vertical.share(v) * height;
    for &tick in &vertical.ticks {
        let at = y(tick);
        out.push(Shape::Line { stroke: Stroke::Grid, from: (LEFT, at), to: (LEFT + width, at) });
        out.push(text(Font::Soft, (LEFT - 7.0, at + 4.0), Anchor::End, &tidy(tick)));
    }
    let x_step = nice((x_end - x_start) / 10.0);
    let mut tick = (x_start / x_step).ceil() * x_step;
    while tick <= x_end * (1.0 + 1e-9) {
        let at = x(tick);
        out.push(Shape::Line { stroke: Stroke::Axis, from: (at, bottom), to: (at, bottom + 4.0) });
        out.push(text(Font::Soft, (at, bottom + 17.0), Anchor::Middle, &tidy(tick)));
        tick += x_step;
    }
    // Capacity is behind the axis and the other lines.
    for line in plot.lines.iter().filter(|l| l.capacity) {
        out.push(Shape::Path { stroke: Stroke::Capacity, steps: area(&line.points, x, y, bottom) });
    }
    for (style, line) in plot.lines.iter().filter(|l| !l.capacity).enumerate() {
        out.push(Shape::Path { stroke: Stroke::Line(style % STYLES), steps: path(&line.points, x, y) });
        if !line.bars.is_empty() {
            out.push(Shape::Path { stroke: Stroke::Bar(style % STYLES), steps: bars(&line.bars, x, y, x_end) });
        }
    }
    out.push(Shape::Line { stroke: Stroke::Axis, from: (LEFT, bottom), to: (LEFT + width, bottom) });
    let (at, anchor) = ((15.0, top + height / 2.0), Anchor::Middle);
    out.push(Shape::Text { font: Font::Soft, at, anchor, is_turned: true, text: plot.y_label.clone() });
    if last {
        out.push(text(Font::Soft, (LEFT + width / 2.0, bottom + 34.0), Anchor::Middle, &plot.x_label));
    }
    out.push(Shape::End);
}

fn path(points: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut broken = true;
    for &(t, v) in points {
        if v.is_nan() {
            broken = true;
            continue;
        }
        steps.push(if broken { Step::Move(x(t), y(v)) } else { Step::To(x(t), y(v)) });
        broken = false;
    }
    steps
}

/// Steps and the area below them; each value is valid from the previous point to its own.
fn area(points: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64, bottom: f64) -> Vec<Step> {
    let mut steps = vec![Step::Move(x(0.0), bottom)];
    let mut from = 0.0;
    let mut held = None;
    for &(t, v) in points.iter().filter(|p| !p.1.is_nan()) {
        // A run of equal values needs only its ends.
        if held != Some(v) {
            if let Some(old) = held {
                steps.push(Step::To(x(from), y(old)));
            }
            steps.push(Step::To(x(from), y(v)));
        }
        held = Some(v);
        from = t;
    }
    if let Some(v) = held {
        steps.extend([Step::To(x(from), y(v)), Step::To(x(from), bottom)]);
    }
    steps.push(Step::Close);
    steps
}

/// Bars with a stroke across each end, clipped to the axes.
fn bars(bars: &[Bar], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64, x_end: f64) -> Vec<Step> {
    let mut steps = Vec::new();
    for b in bars {
        let (x0, y0, x1, y1) = (x(b.from.0).max(LEFT), y(b.from.1), x(b.to.0.min(x_end)), y(b.to.1));
        steps.extend([Step::Move(x0, y0), Step::To(x1, y1)]);
        let (dx, dy) = if b.from.0 == b.to.0 { (3.0, 0.0) } else { (0.0, 3.0) };
        for (x, y) in [(x0, y0), (x1, y1)] {
            steps.extend([Step::Move(x - dx, y - dy), Step::To(x + dx, y + dy)]);
        }
    }
    steps
}

/// A number without trailing zeros.
pub(super) fn tidy(v: f64) -> String {
    let text = format!("{v:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
        let steps = path(&[(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)], |t| t, |v| v);
        assert_eq!(steps, [Step::Move(0.0, 1.0), Step::To(1.0, 2.0), Step::Move(3.0, 4.0)]);
    }

    #[test]
    fn capacity_steps_hold_until_the_next() {
        let steps = area(&[(1.0, 5.0), (2.0, 5.0), (3.0, 7.0)], |t| t, |v| v, 0.0);
        // From 0 to 2 at 5, from 2 to 3 at 7: the corner at (2, 5) is part of the outline.
        let corners = [(0.0, 5.0), (2.0, 5.0), (2.0, 7.0), (3.0, 7.0), (3.0, 0.0)].map(|(x, y)| Step::To(x, y));
        assert_eq!(steps[0], Step::Move(0.0, 0.0));
        assert_eq!(steps[1..6], corners);
        assert_eq!(steps[6..], [Step::Close]);
    }
}
