//! The generated links: six kinds, alone and in company, by number and seed.

use super::JUDGED;
use crate::draw::Draw;
use serde::Serialize;
use std::fmt::Write as _;

/// Length of a run, s.
const RUN: f64 = 40.0;
/// Ranges of the draws, each uniform in its logarithm: rate in bit/s, delay one way in ms.
const RATE: (f64, f64) = (300e3, 10e6);
const DELAY_MS: (f64, f64) = (5.0, 100.0);
/// The flows' ceiling over the rate that the link carries, and their floor and start rate in bit/s.
const CEILING: (f64, f64) = (1.5, 4.0);
const FLOOR: f64 = 50e3;
const START: f64 = 300e3;
/// A policer's line rate over its own, and its burst in s of its rate; queues in packets; shares lost; losses in a cluster.
const LINE: (f64, f64) = (3.0, 10.0);
const BURST_S: (f64, f64) = (0.05, 0.5);
const SHORT: (f64, f64) = (2.0, 12.0);
const CHANCE: (f64, f64) = (0.01, 0.3);
const CLUSTER: (f64, f64) = (2.0, 30.0);
/// Time for which a radio link keeps its rate, s, and its rates over the mean one.
const FADE_S: (f64, f64) = (0.3, 4.0);
const FADES: (f64, f64) = (0.2, 2.0);
/// Least burst of a policer in bytes: a frame's packets.
const LEAST_BURST: f64 = 6_000.0;
/// Queue management, by name.
const MANAGED: [&str; 5] = ["codel", "fq-codel", "pie", "red", "dualpi2"];

/// How a link loses packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "HarmKind"))]
pub enum Kind {
    /// A token bucket drops the excess, without a queue.
    Policer,
    /// A queue of a few packets.
    ShortQueue,
    /// Active queue management.
    Managed,
    /// A rate that changes every few hundred milliseconds or seconds.
    Radio,
    /// A share of any rate.
    Chance,
    /// The same in clusters.
    Clusters,
}

impl Kind {
    /// All, in the order of the links' numbers.
    pub const ALL: [Self; 6] =
        [Self::Policer, Self::ShortQueue, Self::Managed, Self::Radio, Self::Chance, Self::Clusters];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policer => "policer",
            Self::ShortQueue => "short queue",
            Self::Managed => "AQM",
            Self::Radio => "radio",
            Self::Chance => "chance",
            Self::Clusters => "clusters",
        }
    }
}

/// Other senders on the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "HarmCompany"))]
pub enum Company {
    /// None.
    Alone,
    /// So many more flows of the same controller.
    Same(u32),
    /// A download under CUBIC.
    Cubic,
}

impl Company {
    /// Its name in tables.
    pub fn name(self) -> String {
        match self {
            Self::Alone => "alone".into(),
            Self::Same(count) => format!("{count} more"),
            Self::Cubic => "CUBIC".into(),
        }
    }
}

/// A generated link.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "HarmLink"))]
pub struct Link {
    /// Its number, from 1, which is also the seed of its runs.
    pub number: u64,
    /// How it loses packets.
    pub kind: Kind,
    /// Other senders over it.
    pub company: Company,
    /// The rate that it carries, in bit/s.
    pub rate_bps: f64,
    /// Delay one way in ms.
    pub delay_ms: f64,
    /// The flows' ceiling in bit/s.
    pub ceiling_bps: f64,
    /// Its rate, queue and losses as a scenario has them.
    #[serde(skip)]
    lines: String,
}

impl Link {
    /// Links 1 to `count` of a seed. Each kind comes once in six.
    pub fn generate(seed: u64, count: u64) -> Vec<Self> {
        (1..=count).zip(Kind::ALL.into_iter().cycle()).map(|(number, kind)| Self::one(seed, number, kind)).collect()
    }

    fn one(seed: u64, number: u64, kind: Kind) -> Self {
        let mut draw = Draw::of(seed, number);
        let (rate_bps, delay_ms) = (draw.log(RATE), draw.log(DELAY_MS));
        let ceiling_bps = rate_bps * draw.log(CEILING);
        let company = match draw.below(4) {
            0 | 1 => Company::Alone,
            2 => Company::Same(1 + draw.below(4)),
            _ => Company::Cubic,
        };
        let lines = lines(kind, rate_bps, &mut draw);
        Self { number, kind, company, rate_bps, delay_ms, ceiling_bps, lines }
    }

    /// Its scenario (TOML) with a controller. With `fixed`, in bit/s, the judged flow has that rate instead; its company is the same.
    pub fn scenario(&self, controller: &str, fixed: Option<f64>) -> String {
        let judged = if fixed.is_some() { "fixed" } else { controller };
        let [floor, ceiling, start] = fixed.map_or([FLOOR, self.ceiling_bps, START.min(self.ceiling_bps)], |r| [r; 3]);
        let mut text = format!(
            "title = \"Generated link {}: {}, {}\"\nduration = \"{RUN} s\"\nsample_interval = \"500 ms\"\n\n\
             [links.access]\ndelay = \"{:.1} ms\"\n{}\n[rtp.{JUDGED}]\ncontroller = \"{judged}\"\n\
             floor = \"{floor:.0} bps\"\nceiling = \"{ceiling:.0} bps\"\nstart_rate = \"{start:.0} bps\"\n",
            self.number,
            self.kind.name(),
            self.company.name(),
            self.delay_ms,
            self.lines,
        );
        match self.company {
            Company::Alone => {}
            Company::Same(count) => {
                let _ = write!(
                    text,
                    "\n[rtp.company]\ncount = {count}\ncontroller = \"{controller}\"\nfloor = \"{FLOOR:.0} bps\"\n\
                     ceiling = \"{:.0} bps\"\n",
                    self.ceiling_bps
                );
            }
            Company::Cubic => text += "\n[tcp.download]\nalgorithm = \"cubic\"\n",
        }
        text
    }
}

/// The lines of a link beside its delay.
fn lines(kind: Kind, rate: f64, draw: &mut Draw) -> String {
    let plain = |rate: f64, queue: &str| format!("rate = \"{rate:.0} bps\"\nqueue = {queue}\n");
    match kind {
        Kind::Policer => {
            let line = rate * draw.log(LINE);
            let burst = (rate * draw.log(BURST_S) / 8.0).max(LEAST_BURST);
            plain(line, "\"300 ms\"") + &format!("policer = {{ rate = \"{rate:.0} bps\", burst = \"{burst:.0} B\" }}\n")
        }
        Kind::ShortQueue => plain(rate, &format!("\"{:.0} packets\"", draw.log(SHORT))),
        Kind::Managed => {
            let name = MANAGED[draw.below(MANAGED.len() as u32) as usize];
            plain(rate, &format!("{{ discipline = \"{name}\" }}"))
        }
        Kind::Radio => draw.steps(rate, FADES, FADE_S, RUN) + "queue = \"400 ms\"\n",
        Kind::Chance => plain(rate, "\"200 ms\"") + &format!("loss = {:.4}\n", draw.log(CHANCE)),
        Kind::Clusters => {
            let (share, end) = (draw.log(CHANCE), 1.0 / draw.log(CLUSTER));
            let begin = end * share / (1.0 - share);
            plain(rate, "\"200 ms\"") + &format!("loss = {{ good_to_bad = {begin:.6}, bad_to_good = {end:.6} }}\n")
        }
    }
}
