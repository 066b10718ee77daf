//! Pages of calls with browsers (`weir live webrtc --out`, and the report that a call's page saves): the points of their plots, which are
//! rounded, and of long calls joined.

use super::{Drawn, add_targets, time};
use crate::input::Input;
use crate::recording::Recording;
use crate::schema::Stop;
use crate::stats::{MAX_DOCUMENT, document, number};
use serde_json::{Map, Value};

/// Type of the objects: a call of the page. Numbers are named by group, plot and line.
pub(crate) const CALL: &str = "call";
/// The controller's target, in kbit/s.
pub(super) const TARGET: &str = "Weir to the browser/Rate/target (Weir)";
/// Beginning and end of the data.
const DATA: &[u8] = b"id=\"data\">";
const END: &[u8] = b"</script>";
/// Members of sections, groups, plots and lines that a copy without names keeps.
const MEMBERS: [&str; 8] = ["title", "unit", "t0", "dt", "label", "style", "scale", "v"];
/// Longest name of a number.
const MAX_NAME: usize = 200;

const fn drawn(quantity: &'static str, name: &'static str) -> Drawn {
    Drawn { quantity, kind: CALL, name, unit: 1.0 }
}

/// Quantities that are shown over time: the way from Weir to the browser, and the rate of the other one.
pub(super) const DRAWN: [Drawn; 9] = [
    drawn("sent_kbps", "Weir to the browser/Rate/sent (Weir)"),
    drawn("arrived_kbps", "Weir to the browser/Rate/received (browser)"),
    drawn("received_kbps", "The browser to Weir/Rate/received (Weir)"),
    drawn("delay_ms", "Weir to the browser/Delay/above the least (Weir)"),
    drawn("jitter_ms", "Weir to the browser/Delay/jitter (browser)"),
    drawn("rtt_ms", "Weir to the browser/Round trip/round trip (Weir)"),
    drawn("stun_rtt_ms", "Weir to the browser/Round trip/round trip (browser, ICE)"),
    drawn("loss_percent", "Weir to the browser/Lost/reported to Weir"),
    drawn("frames_per_s", "Weir to the browser/Frames/decoded (browser)"),
];

/// The data of a page: its first byte, and its bytes.
pub(crate) fn data(page: &[u8]) -> Option<(usize, &[u8])> {
    let from = page.windows(DATA.len()).position(|w| w == DATA)? + DATA.len();
    let rest = page.get(from..)?;
    let length = rest.windows(END.len()).position(|w| w == END).unwrap_or(rest.len());
    Some((from, &rest[..length]))
}

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    let (bytes, broken) = input.rest(MAX_DOCUMENT);
    let end = bytes.len() as u64;
    let Some((from, data)) = data(&bytes) else {
        let why = broken.unwrap_or_else(|| "the page ends before its data".into());
        return Some(Stop { offset: end, why });
    };
    let (document, damage) = document(data.to_vec());
    let stop = match damage {
        Some((at, why)) => Some(Stop { offset: (from + at) as u64, why: broken.unwrap_or(why) }),
        None => broken.map(|why| Stop { offset: end, why }),
    };
    for section in list(document.as_ref(), "sections") {
        let id = text(section, "title");
        for group in list(Some(section), "groups") {
            for chart in list(Some(group), "charts") {
                let name = format!("{}/{}", text(group, "title"), text(chart, "title"));
                self::chart(out, id, &name, chart);
            }
        }
    }
    add_targets(out, (CALL, TARGET), 1e3);
    stop
}

fn chart(out: &mut Recording, id: &str, name: &str, chart: &Value) {
    let of = |v: &Value, name: &str| v.get(name).and_then(Value::as_f64);
    let (Some(first), Some(step)) = (of(chart, "t0"), of(chart, "dt")) else {
        return out.fault("plots without times");
    };
    for line in list(Some(chart), "lines") {
        let scale = of(line, "scale").unwrap_or(1.0);
        let name: String = format!("{name}/{}", text(line, "label")).chars().take(MAX_NAME).collect();
        for (i, value) in list(Some(line), "v").enumerate() {
            let at = time(first + i as f64 * step);
            if let (Some(at), Some(value)) = (at, value.as_f64()) {
                number(out, at, (CALL, id, &name), value * scale);
            }
        }
        if out.is_full() {
            return;
        }
    }
}

fn list<'a>(of: Option<&'a Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    of.and_then(|v| v.get(name)).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The data of a page, of which the texts that are not those of [`DRAWN`] are replaced by `names`.
pub(crate) fn without_names(data: &Value, names: &mut impl FnMut(&str) -> String) -> Value {
    let known = |text: &str| {
        let parts = || DRAWN.iter().map(|d| d.name).chain([TARGET]).flat_map(|n| n.split('/'));
        text == "Call" || parts().any(|part| part == text)
    };
    let mut keep = |of: &Value, lists: &[&str]| {
        let mut out = Map::new();
        for (name, v) in of.as_object().into_iter().flatten().filter(|m| MEMBERS.contains(&m.0.as_str())) {
            let v = match v {
                Value::Number(_) | Value::Null => v.clone(),
                Value::String(s) if known(s) => v.clone(),
                Value::String(s) => Value::String(names(s)),
                Value::Array(values) if lists.contains(&name.as_str()) => {
                    Value::Array(values.iter().filter(|v| v.is_number() || v.is_null()).cloned().collect())
                }
                _ => continue,
            };
            out.insert(name.clone(), v);
        }
        out
    };
    let mut sections = Vec::new();
    for section in list(Some(data), "sections") {
        let mut groups = Vec::new();
        for group in list(Some(section), "groups") {
            let mut charts = Vec::new();
            for chart in list(Some(group), "charts") {
                let lines = list(Some(chart), "lines").map(|line| Value::Object(keep(line, &["v"]))).collect();
                charts.push(with(keep(chart, &[]), "lines", lines));
            }
            groups.push(with(keep(group, &[]), "charts", charts));
        }
        sections.push(with(keep(section, &[]), "groups", groups));
    }
    with(Map::new(), "sections", sections)
}

/// An object with one more member, a list.
fn with(mut of: Map<String, Value>, name: &str, list: Vec<Value>) -> Value {
    of.insert(name.into(), Value::Array(list));
    Value::Object(of)
}

#[cfg(test)]
mod tests {
    use crate::why::curves;
    use crate::{Call, Format, ReadError, read};

    fn page() -> String {
        // In the order in which pages have their members.
        let line = |label: &str, scale: f64, v: &str| {
            format!("{{\"label\":\"{label}\",\"style\":1,\"scale\":{scale},\"v\":[{v}]}}")
        };
        let plot = |title: &str, unit: &str, lines: &[String]| {
            let lines = lines.join(",");
            format!("{{\"title\":\"{title}\",\"unit\":\"{unit}\",\"t0\":1.0,\"dt\":0.5,\"lines\":[{lines}]}}")
        };
        let rate = [line("target (Weir)", 1.0, "300,300,500"), line("sent (Weir)", 1.0, "100,null,300")];
        let plots = [plot("Rate", "kbit/s", &rate), plot("Lost", "%", &[line("reported to Weir", 0.01, "250,0,0")])];
        let group = format!("{{\"title\":\"Weir to the browser\",\"charts\":[{}]}}", plots.join(","));
        let data = format!(
            "{{\"quantities\":[],\"sections\":[{{\"title\":\"The call\",\"seeds\":[1],\"groups\":[{group}],\"cdfs\":[]}}]}}"
        );
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<title>A call with a browser</title>\n</head><body>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n<script>1</script></body></html>\n"
        )
    }

    #[test]
    fn lines_of_plots_are_numbers_over_time() {
        let call = read("page", page().as_bytes()).expect("a page");
        assert_eq!((call.format, &call.stop), (Format::WeirPage, &None));
        let points = |name: &str| call.series[&("call".into(), "The call".into(), name.into())].points.clone();
        let sent: Vec<_> =
            points("Weir to the browser/Rate/sent (Weir)").iter().map(|p| (p.0.as_millis(), p.1)).collect();
        assert_eq!(sent, [(1_000, 100.0), (2_000, 300.0)]);
        let targets: Vec<_> = call.estimates.iter().map(|e| (e.at.as_millis(), e.rate.as_bps())).collect();
        assert_eq!(targets, [(1_000, 300_000), (2_000, 500_000)]);
        let curves = curves(&Call::new(vec![call])).expect("times");
        assert_eq!(curves.column("sent_kbps").and_then(|c| c.last().copied()), Some(300.0));
        assert!(curves.column("loss_percent").is_some_and(|c| c.contains(&2.5)));
    }

    #[test]
    fn a_cut_page_is_read_up_to_the_damage_and_others_are_refused() {
        let whole = page();
        let at = whole.find("\"Lost\"").expect("a plot");
        let cut = read("page", &whole.as_bytes()[..at]).expect("a page");
        assert!(cut.stop.is_some_and(|s| s.offset <= at as u64) && cut.series.len() == 2, "{:?}", cut.series);
        let before = read("page", &whole.as_bytes()[..120]).expect("a page");
        assert!(before.stop.is_some_and(|s| s.why.contains("before its data")));
        let other = whole.replace("A call with a browser", "A comparison");
        let Err(ReadError::Unknown(why)) = read("page", other.as_bytes()) else { panic!("refused") };
        assert!(why.contains("calls with browsers"), "{why}");
    }
}
