//! The text of scenario files.

use std::fmt::Write as _;

/// The link of every row that is read.
pub(super) const LINK: &str = "b";
/// The flow of rows with one.
pub(super) const FLOW: &str = "v";

/// Rates as scenario files have them.
pub(super) fn rate(bps: f64) -> String {
    format!("{:.3} kbps", bps / 1e3)
}

/// A media flow; `more` are further fields.
pub(super) struct FlowText<'a> {
    pub(super) name: &'a str,
    pub(super) floor: f64,
    pub(super) ceiling: f64,
    pub(super) start_rate: f64,
    pub(super) more: &'a [(&'a str, &'a str)],
}

impl Default for FlowText<'_> {
    fn default() -> Self {
        Self { name: FLOW, floor: 150e3, ceiling: 3e6, start_rate: 300e3, more: &[] }
    }
}

impl FlowText<'_> {
    fn text(&self) -> String {
        let mut fields = vec![
            ("controller", "\"$controller\"".to_owned()),
            ("source", "{ model = \"perfect-frames\", fps = 30 }".into()),
            ("payload", "\"1200 B\"".into()),
            ("header_overhead", "\"0 B\"".into()),
            ("floor", format!("\"{}\"", rate(self.floor))),
            ("ceiling", format!("\"{}\"", rate(self.ceiling))),
            ("start_rate", format!("\"{}\"", rate(self.start_rate))),
        ];
        for (key, value) in self.more {
            match fields.iter_mut().find(|f| f.0 == *key) {
                Some(field) => field.1 = (*value).into(),
                None => fields.push((key, (*value).into())),
            }
        }
        fields.iter().fold(format!("\n[rtp.{}]\n", self.name), |text, (key, value)| format!("{text}{key} = {value}\n"))
    }
}

/// A scenario's text. `top` are further lines of the file's head; `rest` are further flows.
pub(super) fn scenario(
    title: &str,
    (seconds, sample): (f64, &str),
    link: &[(&str, &str)],
    flows: &[FlowText<'_>],
    (top, rest): (&str, &str),
) -> String {
    let mut text = format!("title = \"{title}\"\nduration = \"{seconds} s\"\nsample_interval = \"{sample}\"\n{top}\n");
    let _ = writeln!(text, "[links.{LINK}]");
    for (key, value) in link {
        let _ = writeln!(text, "{key} = {value}");
    }
    flows.iter().for_each(|f| text.push_str(&f.text()));
    text + rest
}

/// Steps of capacity: time in s, rate in bit/s.
pub(super) fn steps(points: &[(f64, f64)]) -> String {
    let all: Vec<String> =
        points.iter().map(|(at, bps)| format!("{{ at = \"{at} s\", rate = \"{}\" }}", rate(*bps))).collect();
    format!("[{}]", all.join(", "))
}
