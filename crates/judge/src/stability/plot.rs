//! The map as a picture: a panel for each feedback interval, round-trip time over capacity, coloured by swing.

use super::grid::{Cell, Map, Region};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use weir_report::atomic_write::write_atomically;

const SIDE: f64 = 34.0;
const LEFT: f64 = 70.0;
const HEAD: f64 = 64.0;
const GAP: f64 = 52.0;
/// Colours from the least swing to that which is an oscillation, and the swings at which they begin.
const COLOURS: [(f64, &str); 5] =
    [(0.0, "#d9efe0"), (0.08, "#b6dfc0"), (0.15, "#f7e7b0"), (0.22, "#f5c98b"), (0.3, "#e8806f")];

/// Writes the picture as SVG, completely or not at all; the region stated is framed.
pub fn write(map: &Map, region: Option<Region>, path: &Path) -> io::Result<()> {
    let text = draw(map, region);
    write_atomically(path, |out| out.write_all(text.as_bytes()))
}

fn draw(map: &Map, region: Option<Region>) -> String {
    let grid = &map.grid;
    let (columns, rows) = (grid.rate_bps.len() as f64, grid.rtt_ms.len() as f64);
    let (width, panel) = (LEFT + columns * SIDE + 20.0, rows * SIDE + GAP);
    let height = HEAD + panel * grid.feedback_ms.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui,sans-serif\" font-size=\"11\" fill=\"#222\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\" font-weight=\"600\">Stability of {}: swing of the rate, last 20 s</text>\n",
        map.controller
    );
    let mut x = LEFT;
    for (i, (from, colour)) in COLOURS.iter().enumerate() {
        let label = match COLOURS.get(i + 1) {
            Some((to, _)) => format!("{from}-{to}"),
            None => format!("over {from}"),
        };
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"28\" width=\"14\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"38\">{label}</text>",
            x + 18.0
        );
        x += 78.0;
    }
    let _ =
        writeln!(out, "<text x=\"{LEFT}\" y=\"56\">Q: queue too long; u: use below 0.8; frame: stated region</text>");
    for (k, feedback) in grid.feedback_ms.iter().enumerate() {
        let top = HEAD + k as f64 * panel;
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"600\">feedback every {feedback} ms</text>",
            top + 12.0
        );
        for (r, rtt) in grid.rtt_ms.iter().enumerate() {
            let y = top + 18.0 + r as f64 * SIDE;
            let _ = writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{rtt} ms</text>", LEFT - 6.0, y + 21.0);
            for (c, rate) in grid.rate_bps.iter().enumerate() {
                let x = LEFT + c as f64 * SIDE;
                cell(&mut out, map.cell(*rtt, *rate, *feedback), (x, y), region);
                if r == 0 && k == 0 || r + 1 == grid.rtt_ms.len() {
                    let y = if r + 1 == grid.rtt_ms.len() { y + SIDE + 13.0 } else { continue };
                    let _ = writeln!(
                        out,
                        "<text x=\"{}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
                        x + SIDE / 2.0,
                        short(*rate)
                    );
                }
            }
        }
    }
    out + "</svg>\n"
}

fn cell(out: &mut String, cell: Option<&Cell>, (x, y): (f64, f64), region: Option<Region>) {
    let side = SIDE - 2.0;
    let Some(c) = cell else {
        let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"#eee\"/>");
        return;
    };
    let colour = COLOURS.iter().rev().find(|(from, _)| c.swing >= *from).map_or("#eee", |(_, colour)| colour);
    let frame = if region.is_some_and(|r| r.contains(c)) { " stroke=\"#444\" stroke-width=\"1.2\"" } else { "" };
    let is_late = c.oscillates && c.swing <= 0.3;
    let mark = [(is_late, "Q"), (c.starved, "u")].iter().filter(|m| m.0).map(|m| m.1).collect::<String>();
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"{colour}\"{frame}><title>{} kbit/s, {} ms, feedback {} ms: \
         swing {:.2}, queue p95 {:.0} ms, use {:.2}</title></rect><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{mark}</text>",
        c.rate_bps / 1e3,
        c.rtt_ms,
        c.feedback_ms,
        c.swing,
        c.queue_p95_ms,
        c.used,
        x + side / 2.0,
        y + 20.0
    );
}

fn short(bps: f64) -> String {
    if bps < 1e6 { format!("{:.0}k", bps / 1e3) } else { format!("{:.0}M", bps / 1e6) }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Grid;
    use super::*;

    #[test]
    fn a_square_for_each_cell_and_marks_where_it_is_not_stable() {
        let grid = Grid { rtt_ms: vec![50.0, 100.0], rate_bps: vec![1e6], feedback_ms: vec![20.0] };
        let cell = |rtt_ms, swing, queue_p95_ms, used| Cell {
            rtt_ms,
            rate_bps: 1e6,
            feedback_ms: 20.0,
            swing,
            queue_p95_ms,
            used,
            oscillates: swing > 0.3 || queue_p95_ms > 100.0,
            starved: used < 0.8,
        };
        let cells = vec![cell(50.0, 0.5, 20.0, 0.9), cell(100.0, 0.1, 150.0, 0.7)];
        let map = Map { controller: "x".into(), grid, cells, failed: vec![], undone: 0 };
        let text = draw(&map, Some(Region { rtt_ms: 50.0, feedback_ms: (20.0, 20.0), ..Region::SLUICE }));
        assert_eq!((text.matches("<title>").count(), text.matches("stroke=\"#444\"").count()), (2, 1));
        assert!(text.contains(">Qu<") && text.contains("#e8806f"));
    }
}
