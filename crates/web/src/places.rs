//! Positions in a text as JavaScript counts them, in units of UTF-16.

use serde_json::{Value, json};
use std::ops::Range;
use weir_lab::scenario::{CapacityText, capacity_texts};

/// For each byte of a text, how many units come before it; and for its end.
fn units(text: &str) -> Vec<usize> {
    let mut before = Vec::with_capacity(text.len() + 1);
    let mut count = 0;
    for c in text.chars() {
        before.resize(before.len() + c.len_utf8(), count);
        count += c.len_utf16();
    }
    before.push(count);
    before
}

/// Whole microseconds in s, for people to read.
fn rounded(s: f64) -> f64 {
    (s * 1e6).round() / 1e6
}

/// The capacities that can be changed in a scenario's text, each with its places `[start, end]`.
pub(crate) fn capacities(text: &str) -> Value {
    let units = units(text);
    let place = |span: &Range<usize>| [units[span.start], units[span.end]];
    let one = |c: &CapacityText| {
        let points = c.points.iter().map(|p| {
            json!({
                "at_s": rounded(p.at_s), "rate_bps": p.rate_bps, "at": p.at.as_ref().map(place),
                "rate": place(&p.rate), "step": place(&p.step),
            })
        });
        json!({ "link": c.link, "steps": c.steps, "repeat_s": c.repeat_s.map(rounded), "points": points.collect::<Vec<_>>() })
    };
    capacity_texts(text).iter().map(one).collect()
}
