//! Where a scenario's text states the capacity of its links, so that an editor can change it in place.

use super::quantity::{Rate, Time};
use serde::Serialize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A rate in a scenario's text, and from when it holds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityPoint {
    /// Start in s.
    pub at_s: f64,
    /// Rate in bit/s.
    pub rate_bps: f64,
    /// The start's value in the text; `None` for a constant rate.
    pub at: Option<Range<usize>>,
    /// The rate's value in the text.
    pub rate: Range<usize>,
    /// The whole step in the text, as `rate` for a constant rate.
    pub step: Range<usize>,
}

/// A link's capacity where it is a constant or a list of steps. Positions are in bytes and include quotation marks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityText {
    /// The link.
    pub link: String,
    /// Whether it is a list of steps.
    pub steps: bool,
    /// Period after which steps repeat, in s.
    pub repeat_s: Option<f64>,
    /// The steps in order; one point for a constant.
    pub points: Vec<CapacityPoint>,
}

/// The capacities that a text states, in the order of the links' names; links with a trace, a pattern or a preset, and
/// what cannot be read, are left out. Variants are not applied.
pub fn capacity_texts(text: &str) -> Vec<CapacityText> {
    let Ok(tree) = DeTable::parse(text) else { return Vec::new() };
    let Some(links) = tree.get_ref().get("links").and_then(|l| table(l)) else { return Vec::new() };
    let stated = links.iter().filter_map(|(name, link)| {
        let rate = table(link)?.get("rate")?;
        capacity(name.get_ref(), rate)
    });
    stated.collect()
}

fn table<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Option<&'a DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(t) => Some(t),
        _ => None,
    }
}

fn text<'a>(value: &'a Spanned<DeValue<'_>>) -> Option<&'a str> {
    match value.get_ref() {
        DeValue::String(s) => Some(s),
        _ => None,
    }
}

fn rate_bps(value: &Spanned<DeValue<'_>>) -> Option<f64> {
    Some(Rate::read(text(value)?).ok()?.0.as_bps_f64())
}

fn seconds(value: &Spanned<DeValue<'_>>) -> Option<f64> {
    Some(Time::read(text(value)?).ok()?.0.as_secs_f64())
}

fn capacity(link: &str, value: &Spanned<DeValue<'_>>) -> Option<CapacityText> {
    let link = link.to_owned();
    let Some(fields) = table(value) else {
        let span = value.span();
        let point = CapacityPoint { at_s: 0.0, rate_bps: rate_bps(value)?, at: None, rate: span.clone(), step: span };
        return Some(CapacityText { link, steps: false, repeat_s: None, points: vec![point] });
    };
    let DeValue::Array(list) = fields.get("steps")?.get_ref() else { return None };
    let point = |step: &Spanned<DeValue<'_>>| {
        let (at, rate) = (table(step)?.get("at")?, table(step)?.get("rate")?);
        let (at_s, rate_bps) = (seconds(at)?, rate_bps(rate)?);
        Some(CapacityPoint { at_s, rate_bps, at: Some(at.span()), rate: rate.span(), step: step.span() })
    };
    let points = list.iter().map(point).collect::<Option<Vec<_>>>()?;
    let repeat_s = fields.get("repeat").and_then(seconds);
    Some(CapacityText { link, steps: true, repeat_s, points })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_rates_and_times_are_found_in_every_notation() {
        let source = r#"
            title = "höher"
            [links.a]
            rate = "2 Mbps"
            [links.b]
            rate.steps = [
                { at = "0 s", rate = "1 Mbps" },
                { at = "1 min", rate = "300 kbps" },
            ]
            rate.repeat = "90 s"
            [links.c]
            rate = { trace = "x" }
            [links.d]
            preset = "y"
            [links.e]
            rate = "2 apples"
        "#;
        let found = capacity_texts(source);
        let names: Vec<&str> = found.iter().map(|c| c.link.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let a = &found[0].points[0];
        assert_eq!((a.rate_bps, &source[a.rate.clone()], a.at.is_none()), (2e6, "\"2 Mbps\"", true));
        let b = &found[1];
        assert_eq!((b.steps, b.repeat_s, b.points.len()), (true, Some(90.0), 2));
        let last = &b.points[1];
        assert!((last.at_s - 60.0).abs() < 1e-9 && last.rate_bps == 3e5, "{last:?}");
        assert_eq!(&source[last.at.clone().expect("a step's")], "\"1 min\"");
        assert_eq!(&source[last.step.clone()], "{ at = \"1 min\", rate = \"300 kbps\" }");
        assert_eq!(capacity_texts("links = 3"), []);
        assert_eq!(capacity_texts("[links.a\n"), []);
    }
}
