//! Named links; a test verifies that each has its stated properties.

pub mod umts;

use crate::queue::{Discipline, drop_tail};
use crate::{
    Capacity, GilbertElliott, Jitter, JitterShape, Limit, LinkConfig, Loss, Opportunities, Reordering, Schedule, Step,
    TokenBucket,
};
use weir_units::{DataRate, DataSize, TimeDelta};

/// A named link: one direction.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    make: fn() -> LinkConfig,
}

impl Preset {
    /// Its configuration.
    pub fn config(&self) -> LinkConfig {
        (self.make)()
    }
}

/// All presets.
pub const ALL: [Preset; 20] = [
    Preset {
        name: "rmcat",
        summary: "2 Mbit/s, 100 ms, drop-tail queue of 75,000 bytes (300 ms): the link of the RMCAT comparison",
        make: rmcat,
    },
    Preset {
        name: "rmcat-steps",
        summary: "rmcat with a capacity of 2, 1.5, 1, 0.5, 1 and 1.5 Mbit/s in turn, 20 s each",
        make: rmcat_steps,
    },
    Preset { name: "loss-1", summary: "rmcat with 1 % of packets lost independently", make: || lossy(0.01) },
    Preset { name: "loss-5", summary: "rmcat with 5 % of packets lost independently", make: || lossy(0.05) },
    Preset { name: "bursty", summary: "rmcat with 2 % of packets lost in runs of 5 on average", make: bursty },
    Preset { name: "ecn", summary: "rmcat that marks capable packets above 20 ms of queue", make: ecn },
    Preset { name: "bufferbloat", summary: "1 Mbit/s, 20 ms, a queue of 2 s: an old access uplink", make: bufferbloat },
    Preset {
        name: "policed",
        summary: "10 Mbit/s, 20 ms, a policer of 1.5 Mbit/s with a burst of 25,000 bytes: a plan that limits video",
        make: policed,
    },
    Preset {
        name: "cellular",
        summary: "3 Mbit/s on average between 0.6 and 8, with an outage of 0.5 s, 30 ms, a queue of 250,000 bytes",
        make: cellular,
    },
    Preset {
        name: "wifi",
        summary: "20 Mbit/s, 5 ms and jitter of 5 ms deviation to 30 ms without reordering, a queue of 100 packets",
        make: wifi,
    },
    Preset {
        name: "satellite",
        summary: "10 Mbit/s, 270 ms, 0.1 % loss, a queue of 300 ms: geostationary",
        make: satellite,
    },
    Preset {
        name: "reordering",
        summary: "10 Mbit/s, 20 ms, 5 % of packets 15 ms late and overtaken, 1 % duplicated",
        make: reordering,
    },
    Preset { name: "3g-excellent", summary: "3G: 155 to 470 kbit/s, 60 ms, 0.5 % loss", make: umts::excellent },
    Preset { name: "3g-good", summary: "3G: three quarters of 3g-excellent's capacity", make: umts::good },
    Preset { name: "3g-fair", summary: "3G: half of 3g-excellent's capacity", make: umts::fair },
    Preset { name: "3g-poor", summary: "3G: 30 to 300 kbit/s, mostly near 100", make: umts::poor },
    Preset {
        name: "3g-elevator",
        summary: "3g-excellent with a fade to 30 kbit/s between 20 and 42 s",
        make: umts::elevator,
    },
    Preset {
        name: "3g-mobile",
        summary: "3g-excellent, 3g-poor and 3g-elevator in turn, 60 s each: figure 4.2 of Singh's dissertation",
        make: umts::mobile_link,
    },
    Preset {
        name: "slow-link",
        summary: "192, 96 and 128 kbit/s in turn, 20 s each, 60 ms: figure 4.2 of Singh's dissertation",
        make: umts::slow_link,
    },
    Preset { name: "outage", summary: "rmcat with an outage of 2 s in every 10 s", make: outage },
];

/// The preset of this name.
pub fn by_name(name: &str) -> Option<Preset> {
    ALL.into_iter().find(|p| p.name == name)
}

fn rmcat() -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(2), TimeDelta::from_millis(100));
    c.limit = Limit::Size(DataSize::from_bytes(75_000));
    c
}

/// A repeating schedule from whole milliseconds and kbit/s.
fn repeated(steps: &[(i64, u64)], period_ms: i64) -> Capacity {
    let step = |&(ms, kbps)| Step { at: TimeDelta::from_millis(ms), rate: DataRate::from_kbps(kbps) };
    let schedule = Schedule::new(steps.iter().map(step).collect(), Some(TimeDelta::from_millis(period_ms)));
    Capacity::Schedule(schedule.expect("the presets' schedules are sound"))
}

fn rmcat_steps() -> LinkConfig {
    let mut c = rmcat();
    let steps = [(0, 2_000), (20_000, 1_500), (40_000, 1_000), (60_000, 500), (80_000, 1_000), (100_000, 1_500)];
    c.capacity = repeated(&steps, 120_000);
    c
}

fn lossy(share: f64) -> LinkConfig {
    let mut c = rmcat();
    c.loss = Loss::Independent { share };
    c
}

fn bursty() -> LinkConfig {
    let mut c = rmcat();
    c.loss = Loss::GilbertElliott(GilbertElliott::bursts(0.02, 5.0));
    c
}

fn ecn() -> LinkConfig {
    let mut c = rmcat();
    let ecn_threshold = Limit::Time(TimeDelta::from_millis(20));
    c.discipline = Discipline::DropTail(drop_tail::Config { ecn_threshold });
    c
}

fn bufferbloat() -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(1), TimeDelta::from_millis(20));
    c.limit = Limit::Time(TimeDelta::from_secs(2));
    c
}

/// Flach et al., "An Internet-wide analysis of traffic policing" (SIGCOMM 2016), find policers far below the line's rate with
/// bursts that fill them at once; the numbers are chosen here.
fn policed() -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis(20));
    c.limit = Limit::Time(TimeDelta::from_millis(300));
    c.policer = Some(TokenBucket { rate: DataRate::from_kbps(1_500), burst: DataSize::from_bytes(25_000) });
    c
}

fn cellular() -> LinkConfig {
    let trace = Opportunities::parse(include_str!("../data/cellular.mahi"), "cellular.mahi");
    let mut c = LinkConfig::constant(DataRate::ZERO, TimeDelta::from_millis(30));
    c.capacity = Capacity::Opportunities(trace.expect("the bundled trace is sound"));
    c.limit = Limit::Size(DataSize::from_bytes(250_000));
    c
}

fn wifi() -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(20), TimeDelta::from_millis(5));
    c.limit = Limit::Packets(100);
    let shape = JitterShape::Normal { deviation: TimeDelta::from_millis(5), bound: 3.0 };
    c.jitter = Some(Jitter { shape, may_reorder: false });
    c
}

fn satellite() -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis(270));
    c.limit = Limit::Time(TimeDelta::from_millis(300));
    c.loss = Loss::Independent { share: 0.001 };
    c
}

fn reordering() -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis(20));
    c.limit = Limit::Packets(100);
    c.reordering = Some(Reordering { share: 0.05, extra: TimeDelta::from_millis(15) });
    c.duplication = 0.01;
    c
}

fn outage() -> LinkConfig {
    let mut c = rmcat();
    c.capacity = repeated(&[(0, 2_000), (8_000, 0)], 10_000);
    c
}
