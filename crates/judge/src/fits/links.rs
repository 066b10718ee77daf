//! Links of many kinds, by number and seed.

use crate::draw::Draw;
use serde::Serialize;
use std::path::Path;
use weir_cc::Registry;
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};

/// The recorded flow.
pub(super) const FLOW: &str = "video";
/// Ranges of the draws, each uniform in its logarithm: rate in bit/s, delay one way in ms, the queue's room in s.
const RATE: (f64, f64) = (500e3, 8e6);
const DELAY_MS: (f64, f64) = (8.0, 90.0);
const QUEUE_S: (f64, f64) = (0.06, 0.6);
/// Flows' ceiling over the rate that the link carries.
const CEILING: (f64, f64) = (1.2, 2.5);
/// Times for which changing links keep their rate, s, and rates over the mean one.
const STEP_S: (f64, f64) = (6.0, 16.0);
const STEPS: (f64, f64) = (0.4, 2.0);
const FADE_S: (f64, f64) = (0.3, 3.0);
const FADES: (f64, f64) = (0.25, 2.0);

/// Kinds of links.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "KnownKind"))]
pub enum Kind {
    /// One rate.
    Constant,
    /// A rate that changes every ten seconds or so.
    Steps,
    /// A rate that changes all the time.
    Radio,
    /// Losses by chance.
    Chance,
    /// The same in a row.
    Clusters,
    /// A token bucket that drops.
    Policer,
    /// A longer path from some time on.
    DelayStep,
    /// Delay by chance.
    Jitter,
    /// Active queue management.
    Managed,
    /// A download under CUBIC beside it.
    Cubic,
}

impl Kind {
    /// All, in the order of the links' numbers.
    pub const ALL: [Self; 10] = [
        Self::Constant,
        Self::Steps,
        Self::Radio,
        Self::Chance,
        Self::Clusters,
        Self::Policer,
        Self::DelayStep,
        Self::Jitter,
        Self::Managed,
        Self::Cubic,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Steps => "steps",
            Self::Radio => "radio",
            Self::Chance => "chance",
            Self::Clusters => "clusters",
            Self::Policer => "policer",
            Self::DelayStep => "delay step",
            Self::Jitter => "jitter",
            Self::Managed => "AQM",
            Self::Cubic => "CUBIC",
        }
    }
}

/// A link that is known.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownLink {
    /// Its number, from 1, which is also the seed of its runs.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// Delay one way, in ms.
    pub delay_ms: f64,
    /// Room of its queue in bytes; `None` for active queue management.
    pub queue_bytes: Option<f64>,
    /// Losses by chance, as a share.
    pub lost: f64,
    /// Ceiling of its flows in bit/s.
    pub ceiling_bps: f64,
    lines: String,
}

impl KnownLink {
    /// Links 1 to `count` of a seed. Each kind comes once in ten.
    pub fn generate(seed: u64, count: u64) -> Vec<Self> {
        (1..=count).zip(Kind::ALL.into_iter().cycle()).map(|(number, kind)| Self::one(seed, number, kind)).collect()
    }

    fn one(seed: u64, number: u64, kind: Kind) -> Self {
        let mut draw = Draw::of(seed, number);
        let (rate, delay_ms) = (draw.log(RATE), draw.log(DELAY_MS));
        let ceiling_bps = rate * draw.log(CEILING);
        let room = (rate * draw.log(QUEUE_S) / 8.0).max(9_000.0);
        let plain = format!("rate = \"{rate:.0} bps\"\n");
        let (mut lost, mut queue_bytes) = (0.0, Some(room));
        let mut delay = format!("delay = \"{delay_ms:.1} ms\"\n");
        let mut lines = match kind {
            Kind::Constant => plain,
            Kind::Steps => draw.steps(rate, STEPS, STEP_S, super::LENGTH),
            Kind::Radio => draw.steps(rate, FADES, FADE_S, super::LENGTH),
            Kind::Chance => {
                lost = draw.log((0.005, 0.1));
                plain + &format!("loss = {lost:.4}\n")
            }
            Kind::Clusters => {
                lost = draw.log((0.005, 0.1));
                let end = 1.0 / draw.log((2.0, 10.0));
                plain
                    + &format!("loss = {{ good_to_bad = {:.6}, bad_to_good = {end:.6} }}\n", end * lost / (1.0 - lost))
            }
            Kind::Policer => {
                queue_bytes = None;
                let burst = (rate * draw.log((0.05, 0.4)) / 8.0).max(6_000.0);
                format!(
                    "rate = \"{:.0} bps\"\npolicer = {{ rate = \"{rate:.0} bps\", burst = \"{burst:.0} B\" }}\n",
                    rate * draw.log((3.0, 8.0))
                )
            }
            Kind::DelayStep => {
                let more = delay_ms + draw.log((15.0, 150.0));
                delay = format!(
                    "delay.steps = [{{ at = \"0 s\", delay = \"{delay_ms:.1} ms\" }}, {{ at = \"25 s\", delay = \"{more:.1} ms\" }}]\n"
                );
                plain
            }
            Kind::Jitter => plain + &format!("jitter = {{ max = \"{:.1} ms\" }}\n", draw.log((5.0, 40.0))),
            Kind::Managed | Kind::Cubic => plain,
        };
        if kind == Kind::Managed {
            queue_bytes = None;
            lines += "queue = { discipline = \"codel\" }\n";
        } else {
            lines += &format!("queue = \"{room:.0} B\"\n");
        }
        lines.insert_str(0, &delay);
        if kind == Kind::DelayStep {
            lines += &format!("\n[links.access.reverse]\ndelay = \"{delay_ms:.1} ms\"\n");
        }
        if kind == Kind::Cubic {
            lines += "\n[tcp.download]\nalgorithm = \"cubic\"\nstart = \"20 s\"\nstop = \"40 s\"\n";
        }
        Self { number, kind, delay_ms, queue_bytes, lost, ceiling_bps, lines }
    }

    /// Its scenario with a controller. Errors: the controller does not exist, or has no such parameter.
    pub fn scenario(&self, controller: &str, registry: &Registry) -> Result<Scenario, InputError> {
        ScenarioFile::parse(&format!("link-{}", self.number), &self.text(controller), Path::new("."), registry)?
            .one(None, None, registry)
    }

    /// The text of its scenario under several controllers, with its seed.
    pub fn comparison(&self, controllers: &[String]) -> String {
        let names = controllers.iter().map(|c| format!("{c:?}")).collect::<Vec<_>>().join(", ");
        let head = format!("seed = {}\ncompare = [{names}]\n\n[links.access]", self.number);
        self.text("$controller").replacen("\n[links.access]", &head, 1)
    }

    /// The text of its scenario.
    fn text(&self, controller: &str) -> String {
        let (ceiling, length) = (self.ceiling_bps, super::LENGTH);
        format!(
            "title = \"Known link {}: {}\"\nduration = \"{length} s\"\nsample_interval = \"500 ms\"\n\n[links.access]\n{}\n\
             [rtp.{FLOW}]\ncontroller = \"{controller}\"\nfloor = \"50 kbps\"\nceiling = \"{ceiling:.0} bps\"\n\
             start_rate = \"300 kbps\"\nplayout_deadline = \"{:.0} ms\"\nsource = {{ model = \"perfect-frames\", fps = 30 }}\n",
            self.number,
            self.kind.name(),
            self.lines,
            self.delay_ms + 400.0,
        )
    }
}
