//! Changes to the fitted scenario: the same call with another ceiling, with repair, over another queue.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use weir_lab::scenario::suggest::nearest;
use weir_lab::scenario::{ScenarioFile, parse_rate, parse_time};

/// Keys, what each expects, and what it changes.
pub const CHANGES: [(&str, &str, &str); 10] = [
    ("audio", "a rate such as 32kbps, or off", "the audio beside the video"),
    ("ceiling", "a rate such as 3Mbps", "the greatest rate of the video"),
    ("deadline", "a time such as 400ms", "how long after its capture a frame is played, beside the path's delay"),
    ("extra-delay", "a time such as 50ms", "delay of the path, each way, beside that of the call"),
    ("floor", "a rate such as 100kbps", "the least rate of the video"),
    ("fps", "a number of 1 to 120", "pictures a second"),
    ("queue", "a room such as 75kB, 50packets or 300ms, or a discipline such as codel,target=5ms", "the link's queue"),
    ("repair", "none, auto, nack, uep, or nack,uep", "error resilience of the video"),
    ("reverse-loss", "a share such as 2%", "losses of what the receiver sends back"),
    ("start", "a rate such as 300kbps", "the rate of the video before the first feedback"),
];

/// A change that is none: the fault, and the way out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ChangeError {
    /// The key and its fault.
    pub message: String,
    /// The way out.
    pub help: String,
}

/// Changes to the fitted scenario. Without any it is that of the call.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Changes {
    given: BTreeMap<&'static str, String>,
    pub(crate) audio_bps: Option<f64>,
    pub(crate) ceiling_bps: Option<f64>,
    pub(crate) deadline_ms: Option<f64>,
    pub(crate) extra_delay_ms: f64,
    pub(crate) floor_bps: Option<f64>,
    pub(crate) fps: Option<f64>,
    pub(crate) reverse_loss: Option<f64>,
    pub(crate) start_bps: Option<f64>,
    queue: Option<Queue>,
    repair: Option<String>,
}

/// The link's queue.
#[derive(Clone, PartialEq, Debug)]
enum Queue {
    /// Its room, drop tail.
    Room(String),
    /// A discipline with its parameters as fields, and whether its room is among them.
    Discipline(String, bool),
}

impl Changes {
    /// Of keys with values, as [`CHANGES`] has them.
    ///
    /// # Errors
    /// A key that is none or comes twice; a value that its key does not take.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(all: impl IntoIterator<Item = (K, V)>) -> Result<Self, ChangeError> {
        let mut out = Self::default();
        all.into_iter().try_for_each(|(key, value)| out.set(key.as_ref(), value.as_ref().trim()))?;
        Ok(out)
    }

    /// The changes by key, as they were given.
    pub fn given(&self) -> &BTreeMap<&'static str, String> {
        &self.given
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ChangeError> {
        let known: Vec<&str> = CHANGES.iter().map(|c| c.0).collect();
        let Some((key, expected, _)) = CHANGES.iter().find(|c| c.0 == key) else {
            let near = nearest(key, known.iter().copied()).map_or(String::new(), |n| format!("did you mean `{n}`? "));
            let help = format!("{near}known: {}", known.join(", "));
            return Err(ChangeError { message: format!("`{key}` is nothing that can be set"), help });
        };
        let wrong =
            |why: String| ChangeError { message: format!("{key}: {why}"), help: format!("expected {expected}") };
        let rate = || match parse_rate(&spelt(value)).map(|r| r.as_bps_f64()) {
            Ok(bps) if (1e3..=1e10).contains(&bps) => Ok(bps),
            Ok(_) => Err(wrong(format!("\"{value}\" is not within 1 kbps and 10 Gbps"))),
            Err(why) => Err(wrong(why)),
        };
        let time = |most_ms: f64| match parse_time(value).map(|t| t.as_secs_f64() * 1e3) {
            Ok(ms) if ms > 0.0 && ms <= most_ms => Ok(ms),
            Ok(_) => Err(wrong(format!("\"{value}\" is not above 0 and at most {:.0} s", most_ms * 1e-3))),
            Err(why) => Err(wrong(why)),
        };
        match *key {
            "audio" if value == "off" => self.audio_bps = Some(0.0),
            "audio" => self.audio_bps = Some(rate()?),
            "ceiling" => self.ceiling_bps = Some(rate()?),
            "deadline" => self.deadline_ms = Some(time(60e3)?),
            "extra-delay" => self.extra_delay_ms = time(10e3)?,
            "floor" => self.floor_bps = Some(rate()?),
            "fps" => {
                let fps = value.parse::<f64>().ok().filter(|n| (1.0..=120.0).contains(n));
                self.fps = Some(fps.ok_or_else(|| wrong(format!("\"{value}\" is none")))?);
            }
            "reverse-loss" => {
                self.reverse_loss = Some(share(value).ok_or_else(|| wrong(format!("\"{value}\" is no share")))?);
            }
            "start" => self.start_bps = Some(rate()?),
            "queue" => {
                self.queue = Some(queue(value));
                self.check_scenario().map_err(|(why, help)| ChangeError {
                    message: format!("queue: {why}"),
                    help: help.unwrap_or_else(|| format!("expected {expected}")),
                })?;
            }
            _ => {
                let parts: Vec<&str> = value.split(',').map(str::trim).collect();
                // Others need an encoder: the frames of the scenario are those of a model.
                let known = |p: &str| matches!(p, "nack" | "uep") || (parts.len() == 1 && matches!(p, "auto" | "none"));
                if let Some(part) = parts.iter().find(|p| !known(p)) {
                    return Err(wrong(format!("\"{part}\" is none that can be set")));
                }
                let names: Vec<String> = parts.iter().filter(|p| **p != "none").map(|p| format!("{p:?}")).collect();
                self.repair = Some(format!("[{}]", names.join(", ")));
            }
        }
        match self.given.insert(*key, value.to_owned()) {
            None => Ok(()),
            Some(_) => {
                Err(ChangeError { message: format!("{key}: it is set twice"), help: "leave one of them out".into() })
            }
        }
    }

    /// Reads a small scenario with the queue: disciplines and their parameters are known to the lab alone.
    /// Errors: the fault, and the way out.
    fn check_scenario(&self) -> Result<(), (String, Option<String>)> {
        let mut text =
            String::from("title = \"set\"\nduration = \"1 s\"\n[links.path]\nrate = \"1 Mbps\"\ndelay = \"1 ms\"\n");
        text += &self.queue_line("75 kB").unwrap_or_default();
        text += "[rtp.video]\ncontroller = \"fixed\"\nplayout_deadline = \"400 ms\"\n";
        let read = ScenarioFile::parse_with_files("set", &text, BTreeMap::new(), &weir_cc::Registry::builtin());
        read.map(drop).map_err(|e| (e.message().to_owned(), e.help_text().map(str::to_owned)))
    }

    /// The queue of a link in a scenario, if it is another one than that of the fit, whose room is given.
    pub(crate) fn queue_line(&self, room: &str) -> Option<String> {
        Some(match self.queue.as_ref()? {
            Queue::Room(room) => format!("queue = {room:?}\n"),
            Queue::Discipline(fields, true) => format!("queue = {{ {fields} }}\n"),
            Queue::Discipline(fields, false) => format!("queue = {{ {fields}, limit = {room:?} }}\n"),
        })
    }

    /// The video's repair in a scenario; none without a change.
    pub(crate) fn repair_line(&self) -> String {
        let mut line = String::new();
        if let Some(repair) = self.repair.as_ref().filter(|r| *r != "[]") {
            let _ = writeln!(line, "error_resilience = {repair}");
        }
        line
    }

    /// The mechanisms of repair, as they were given; `None` where there are none.
    pub fn repair(&self) -> Option<&str> {
        self.given.get("repair").map(String::as_str).filter(|r| *r != "none")
    }

    /// Checks what depends on the call.
    ///
    /// # Errors
    /// The floor is above the ceiling.
    pub fn check(&self, ceiling_bps: f64) -> Result<(), ChangeError> {
        let ceiling = self.ceiling_bps.unwrap_or(ceiling_bps);
        match self.floor_bps.filter(|f| *f > ceiling) {
            None => Ok(()),
            Some(floor) => Err(ChangeError {
                message: format!("floor: {:.0} kbit/s is above the ceiling of {:.0}", floor * 1e-3, ceiling * 1e-3),
                help: "lower it, or set a higher ceiling".into(),
            }),
        }
    }
}

/// A rate with its unit as scenario files spell it. Bytes a second stay as they are: only the case of a letter tells them from bits.
fn spelt(value: &str) -> String {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ');
    let number = &value[..value.len() - unit.len()];
    let is_in_bits = !unit.contains('B');
    let known = ["bps", "kbps", "Mbps", "Gbps"].into_iter().find(|k| is_in_bits && k.eq_ignore_ascii_case(unit));
    known.map_or_else(|| value.to_owned(), |known| format!("{}{known}", number.trim()))
}

/// A share, as 2% or 0.02.
fn share(value: &str) -> Option<f64> {
    let (number, scale) = value.strip_suffix('%').map_or((value, 1.0), |n| (n.trim(), 0.01));
    number.parse::<f64>().ok().map(|n| n * scale).filter(|n| (0.0..=1.0).contains(n))
}

/// A room begins with a digit, a discipline with a letter.
fn queue(value: &str) -> Queue {
    if !value.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Queue::Room(value.to_owned());
    }
    let mut has_room = false;
    let mut parts = value.split(',').map(str::trim);
    let mut fields = vec![format!("discipline = {:?}", parts.next().unwrap_or_default())];
    for part in parts {
        let (name, value) = part.split_once('=').map_or((part, ""), |(n, v)| (n.trim(), v.trim()));
        has_room |= name == "limit";
        // Quantities are quoted, numbers and switches are not.
        fields.push(match (value.parse::<f64>(), value.parse::<bool>()) {
            (Ok(number), _) if number.is_finite() => format!("{name:?} = {number:?}"),
            (_, Ok(on)) => format!("{name:?} = {on}"),
            _ => format!("{name:?} = {value:?}"),
        });
    }
    Queue::Discipline(fields.join(", "), has_room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str, value: &str) -> Result<Changes, ChangeError> {
        Changes::new([(key, value)])
    }

    #[test]
    fn values_are_read_and_kept_as_given() {
        let changes = Changes::new([
            ("ceiling", "3mbps"),
            ("audio", "off"),
            ("repair", "nack,uep"),
            ("queue", "codel,target=5ms"),
            ("extra-delay", "50ms"),
            ("reverse-loss", "2%"),
        ]);
        let changes = changes.expect("changes");
        assert_eq!((changes.ceiling_bps, changes.audio_bps), (Some(3e6), Some(0.0)));
        assert_eq!((changes.extra_delay_ms, changes.reverse_loss), (50.0, Some(0.02)));
        assert_eq!(changes.repair_line(), "error_resilience = [\"nack\", \"uep\"]\n");
        let queue = "queue = { discipline = \"codel\", \"target\" = \"5ms\", limit = \"9000 B\" }\n";
        assert_eq!(changes.queue_line("9000 B").as_deref(), Some(queue));
        assert_eq!(changes.given()["ceiling"], "3mbps");
        let room = of("queue", "300ms").expect("a room");
        assert_eq!(room.queue_line("9000 B").as_deref(), Some("queue = \"300ms\"\n"));
        assert_eq!(Changes::default().queue_line("9000 B"), None);
        assert_eq!(of("repair", "none").expect("none").repair(), None);
    }

    #[test]
    fn faults_name_key_value_and_way_out() {
        for (key, value, message, help) in [
            ("ceilng", "3Mbps", "`ceilng` is nothing that can be set", "did you mean `ceiling`? known: audio, ceiling"),
            ("ceiling", "3", "has no unit", "a rate such as 3Mbps"),
            ("ceiling", "3MB", "rates are in bits", "a rate"),
            ("ceiling", "0kbps", "not within 1 kbps", "a rate"),
            ("extra-delay", "-5ms", "-5ms", "a time such as 50ms"),
            ("extra-delay", "1min", "at most 10 s", "a time"),
            ("fps", "NaN", "NaN", "1 to 120"),
            ("queue", "cdel", "`cdel`", "codel"),
            ("queue", "codel,targt=5ms", "targt", "target"),
            ("queue", "5", "no unit", "50packets"),
            ("repair", "fec", "fec", "nack,uep"),
            ("repair", "nack,auto", "auto", "nack,uep"),
            ("reverse-loss", "200%", "200%", "2%"),
        ] {
            let error = of(key, value).expect_err("a fault");
            assert!(error.message.contains(message) && error.help.contains(help), "{key}={value}: {error:?}");
        }
        let twice = Changes::new([("fps", "15"), ("fps", "30")]).expect_err("twice");
        assert!(twice.message.contains("twice"), "{twice:?}");
        let floor = of("floor", "2Mbps").expect("a floor");
        assert!(floor.check(3e6).is_ok() && floor.check(1e6).is_err());
    }

    #[test]
    fn no_value_ends_the_program() {
        for value in
            ["", ",", "=", "\"", "\\", "codel,=", "codel,\n", "\u{e9}", "1e999", "inf", "9".repeat(400).as_str()]
        {
            for (key, ..) in CHANGES {
                let _ = of(key, value);
            }
        }
    }
}
