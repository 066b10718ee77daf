//! A call as a scenario file: the same link, codec, pictures, controllers and bounds of the rate, simulated.

use super::{Material, SaveError};
use crate::call::Record;
use std::fmt::Write as _;
use std::path::Path;
use weir_cc::{FeedbackFormat, Registry};
use weir_lab::scenario::{NetworkText, ScenarioFile};

/// Longest time that scenarios have, in s.
const MAX_S: f64 = 3.6e5;
/// Least delay of the link where none is emulated, in ms.
const LEAST_DELAY_MS: f64 = 0.1;

/// A call as a scenario file, which has been read and checked.
///
/// # Errors
/// See [`SaveError`].
pub fn scenario(record: &Record, material: &Material, registry: &Registry) -> Result<String, SaveError> {
    let (s, terms) = (&record.snapshot, &record.terms);
    if terms.in_room {
        return Err(SaveError::Room);
    }
    if s.direction == "recvonly" {
        return Err(SaveError::SendsNothing);
    }
    let (Some(setup_ms), Some(last)) = (s.setup_ms, s.samples.last()) else { return Err(SaveError::NotConnected) };
    let duration = (last.t_s - setup_ms / 1e3).clamp(1.0, MAX_S);
    let own;
    let (network, seed) = match &terms.link {
        Some(link) => (link.network.as_ref().ok_or(SaveError::Link)?, link.seed),
        None => {
            own = unlimited(record);
            (&own, 1)
        }
    };
    let text = compose(record, material, (network, seed), duration);
    // Files that it names are named by their full paths.
    ScenarioFile::parse("call.toml", &text, Path::new("/"), registry)?;
    Ok(text)
}

/// No link was emulated: nothing is known of the network but the round trip.
fn unlimited(record: &Record) -> NetworkText {
    let least = record.snapshot.samples.iter().filter_map(|s| s.rtt_ms).fold(f64::INFINITY, f64::min);
    let delay = if least.is_finite() { (least / 2.0).max(LEAST_DELAY_MS) } else { LEAST_DELAY_MS };
    let tables = format!(
        "# No link was emulated. The delay is half of the least round trip.\n[links.network]\nrate = \"unlimited\"\n\
         delay = \"{delay:.3} ms\"\n"
    );
    NetworkText { tables, ..NetworkText::default() }
}

/// A string of TOML: JSON's has the same escapes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// A text of several lines.
fn quoted_lines(text: &str) -> String {
    let line = |line: &str| {
        let quoted = quoted(line);
        quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
    };
    format!("\"\"\"\n{}\n\"\"\"", text.lines().map(line).collect::<Vec<_>>().join("\n"))
}

fn compose(record: &Record, material: &Material, (network, seed): (&NetworkText, u64), duration: f64) -> String {
    let (s, terms, limits) = (&record.snapshot, &record.terms, record.limits);
    let mut doc = format!(
        "Saved from a call with a browser: its link, codec, pictures, controllers, first rate and bounds of the rate.\n\n\
         The settings were {}. `weir run` takes the last controller, --controller another, and `weir compare` all of them; the \
         bounds are the last ones.\n\n\
         Simulated are neither sound, nor what the browser sent, nor the times of programs.",
        changes(record)
    );
    if terms.feedback == Some(FeedbackFormat::TransportWide) {
        doc += " Feedback comes as often as libwebrtc's.";
    }
    let mut compare = vec![s.controller.clone()];
    for change in record.changes.iter().rev() {
        if !compare.contains(&change.controller) {
            compare.push(change.controller.clone());
        }
    }
    let compare: Vec<String> = compare.iter().map(|c| quoted(c)).collect();
    let (width, height) = material.size;
    let title = format!("A call with a browser, {} under {}", s.codec, s.controller);
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "title = {}\ndoc = {}\nduration = \"{duration:.1} s\"\nseed = {}\ncompare = [{}]\n{}\n{}\n\
         [rtp.call]\n{}controller = \"$controller\"\nfloor = \"{} bps\"\nceiling = \"{} bps\"\nstart_rate = \"{} bps\"\n\
         source = {{ model = \"encoder\", codec = {}, clip = {}, picture = \"{width}x{height}\", fps = {:.3} }}\n\
         payload = \"1150 B\"\nplayout_deadline = \"2 s\"\nmax_queue_age = \"2 s\"\ncircuit_breaker = \"rfc8083\"\n",
        quoted(&title),
        quoted_lines(&doc),
        // Seeds of scenarios are whole numbers of TOML, which have a sign.
        seed & i64::MAX as u64,
        compare.join(", "),
        network.fields,
        network.tables,
        network.flow,
        limits.floor.as_bps(),
        limits.ceiling.as_bps(),
        limits.clamp(terms.start_rate).as_bps(),
        quoted(&s.codec),
        quoted(material.clip),
        material.fps,
    );
    if terms.repairs {
        out += "error_resilience = [\"nack\"]\n";
    }
    if terms.feedback == Some(FeedbackFormat::TransportWide) {
        out += "feedback = { min_interval = \"50 ms\", max_interval = \"250 ms\" }\n";
    }
    out
}

/// The settings over time, in words.
fn changes(record: &Record) -> String {
    let one = |c: &crate::call::Change| {
        let link = if c.link.is_on { "" } else { " without the link" };
        let loss =
            if c.link.loss > 0.0 { format!(" with {:.1} % of loss added", 100.0 * c.link.loss) } else { String::new() };
        format!("{} up to {} kbit/s{link}{loss} from {:.1} s on", c.controller, c.max_bps / 1_000, c.t_s.max(0.0))
    };
    record.changes.iter().map(one).collect::<Vec<_>>().join(", ")
}
