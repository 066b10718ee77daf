//! A packet counts once, however often it arrives.

#![allow(clippy::unwrap_used)]

use crate::common::{Call, Fate, Link, call_plan};
use weir_cc::{Limits, Registry};
use weir_media::PerfectCodec;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// The rate sent in each second of a call over 1 Mbit/s, and what the receiver counts.
fn run(controller: &str, fate: fn() -> Fate) -> (Vec<u64>, u64, u64) {
    let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(4) };
    let source = PerfectCodec::frames(TimeDelta::from_millis(33), Timestamp::ZERO).into();
    let plan = call_plan(controller, limits, DataRate::from_kbps(300), source);
    let (a, b) = plan.into_ends(Timestamp::ZERO).unwrap();
    let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(1), move |_, _| fate()));
    let rates = (1..=20).map(|s| {
        c.run_until(Timestamp::from_secs(s));
        c.a.target().unwrap().media_rate.as_bps()
    });
    let rates = rates.collect();
    let counters = c.b.stats().receive_counters();
    (rates, counters.packets, counters.copies)
}

#[test]
fn each_packet_twice_changes_no_controller() {
    // These go by the losses of reports alone, in which a copy makes up for a loss (RFC 3550, A.3).
    let by_reports = ["linphone", "tfrc-rtcp"];
    for name in Registry::builtin().specs().map(|s| s.name.to_string()).filter(|n| !by_reports.contains(&&n[..])) {
        let name = &name[..];
        let once = run(name, || Fate::Pass);
        let twice = run(name, || Fate::Twice);
        assert_eq!((&once.0, once.1), (&twice.0, twice.1), "{name}");
        assert_eq!((once.2, twice.2), (0, twice.1), "{name}");
    }
}
