//! The rates of explained flows, with the reasons as coloured bands behind them, as SVG.

use super::atomic_write::write_atomically;
use super::explain::{Explanation, Reason};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use weir_lab::series::{FlowSeries, Series};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 56.0;
/// Room for half of the last time's text.
const RIGHT: f64 = 34.0;
/// Height of a flow's plot, and of what stands above and below it.
const PLOT: f64 = 220.0;
const HEAD: f64 = 30.0;
const FOOT: f64 = 34.0;
/// Colours of the reasons, in their order: light enough for lines above them.
const BANDS: [&str; Reason::ALL.len()] = [
    "#dbe9d5", "#e9f4e4", "#f7e7c6", "#f6d3b5", "#f2b8b5", "#e6cdea", "#cfe3f3", "#f0a9c4", "#c9c9c9", "#e7e2d4",
    "#ffffff", "#dddddd", "#f4f4f4",
];
/// Most points of a line.
const POINTS: usize = 2_000;

/// Writes the plot, completely or not at all.
pub fn write(series: &Series, flows: &[Explanation], path: &Path) -> io::Result<()> {
    let text = draw(series, flows);
    write_atomically(path, |out| out.write_all(text.as_bytes()))
}

fn draw(series: &Series, flows: &[Explanation]) -> String {
    let used: Vec<Reason> =
        Reason::ALL.into_iter().filter(|r| flows.iter().any(|f| f.spans.iter().any(|s| s.reason == *r))).collect();
    let height = HEAD + flows.len() as f64 * (HEAD + PLOT + FOOT) + 10.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui,sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    let mut x = LEFT;
    for reason in used {
        let (colour, name) = (BANDS[reason as usize], reason.name());
        let _ = writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"10\" width=\"16\" height=\"12\" fill=\"{colour}\" stroke=\"#999\"/><text x=\"{:.0}\" y=\"20\">{name}</text>",
            x + 21.0
        );
        x += 40.0 + 7.0 * name.len() as f64;
    }
    for (i, flow) in flows.iter().enumerate() {
        let Some(of) = series.flows.iter().find(|f| f.name == flow.flow) else { continue };
        one(&mut out, series, of, flow, HEAD + i as f64 * (HEAD + PLOT + FOOT));
    }
    out + "</svg>\n"
}

fn one(out: &mut String, series: &Series, of: &FlowSeries, flow: &Explanation, top: f64) {
    let (Some(first), Some(last)) = (flow.spans.first(), flow.spans.last()) else { return };
    let (from, to) = (first.from_s, last.to_s.max(first.from_s + 1e-3));
    let link = series.links.first().map_or(&[][..], |l| &l.capacity_bps);
    let shown = |values: &[f64]| -> Vec<(f64, f64)> {
        let rows = series.time_s.iter().copied().zip(values.iter().copied());
        let inside = rows.filter(|(t, v)| *t >= from && *t <= to && v.is_finite());
        inside.collect()
    };
    let lines = [
        ("capacity", "#9aa0a6", shown(link)),
        ("goodput", "#c44e00", shown(&of.goodput_bps)),
        ("target", "#0072b2", shown(&of.target_bps)),
    ];
    let most = lines[1..].iter().flat_map(|l| &l.2).map(|p| p.1).fold(1e3, f64::max) * 1.08;
    let width = WIDTH - LEFT - RIGHT;
    let x = |t: f64| LEFT + (t - from) / (to - from) * width;
    let (plot_top, bottom) = (top + HEAD, top + HEAD + PLOT);
    let y = |v: f64| bottom - (v / most).min(1.0) * PLOT;
    let _ = write!(
        out,
        "<text x=\"{LEFT}\" y=\"{:.0}\" font-weight=\"600\">{} ({})</text>",
        top + 20.0,
        escaped(&flow.flow),
        escaped(&flow.controller)
    );
    for span in &flow.spans {
        let (a, b) = (x(span.from_s.max(from)), x(span.to_s.min(to)));
        let _ = writeln!(
            out,
            "<rect x=\"{a:.1}\" y=\"{plot_top:.0}\" width=\"{:.1}\" height=\"{PLOT}\" fill=\"{}\"><title>{:.1} to {:.1} s: {}</title></rect>",
            (b - a).max(0.1),
            BANDS[span.reason as usize],
            span.from_s,
            span.to_s,
            escaped(&span.text)
        );
    }
    for value in ticks(0.0, most) {
        let at = y(value);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#0002\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT + width,
            LEFT - 6.0,
            at + 4.0,
            (value / 1e3).round() / 1e3
        );
    }
    for t in ticks(from, to) {
        let text = (t * 1e3).round() / 1e3;
        let _ =
            writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text} s</text>", x(t), bottom + 16.0);
    }
    let mut key = LEFT + 220.0;
    for (name, colour, points) in lines {
        let step = points.len().div_ceil(POINTS).max(1);
        let path: Vec<String> =
            points.iter().step_by(step).map(|(t, v)| format!("{:.1},{:.1}", x(*t), y(*v))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/><line x1=\"{key}\" x2=\"{}\" y1=\"{ky}\" y2=\"{ky}\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{}\" y=\"{}\">{name}, Mbit/s</text>",
            path.join(" "),
            key + 22.0,
            key + 27.0,
            top + 20.0,
            ky = top + 16.0,
        );
        key += 150.0;
    }
}

/// Three to seven round numbers from `low` to `high`: multiples of 1, 2 or 5 times a power of ten.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    if !(rough > 0.0 && rough.is_finite()) {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::explain::explain;
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!(ticks(0.0, 2.31e6), [0.0, 5e5, 1e6, 1.5e6, 2e6]);
        assert_eq!(ticks(0.0, 200.0), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(ticks(3.2, 5.0), [3.5, 4.0, 4.5, 5.0]);
    }

    #[test]
    fn a_band_for_each_span_and_no_markup_from_names() {
        let flow = FlowSeries {
            name: "<v>".into(),
            controller: "custom".into(),
            target_bps: vec![1e6, 2e6, 1e6],
            generated_bps: vec![1e6, 2e6, 1e6],
            goodput_bps: vec![1e6, 2e6, 1e6],
            delay_ms: vec![50.0; 3],
            loss: vec![0.0; 3],
            ..FlowSeries::default()
        };
        let series =
            Series { interval_s: 1.0, time_s: vec![1.0, 2.0, 3.0], flows: vec![flow], links: vec![], jain: vec![] };
        let flows = explain(&series, 1.0, &|_| None);
        let text = draw(&series, &flows);
        assert_eq!(text.matches("<title>").count(), flows[0].spans.len());
        assert!(text.contains("&lt;v&gt;") && !text.contains("<v>"));
        assert_eq!(text.matches("<polyline").count(), 3);
    }
}
