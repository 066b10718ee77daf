//! Calls through outages and heavy loss, as on real networks.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::toy::{Life, Toy, byte};
use common::{Call, Fate, Link, call_plan};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use weir_cc::Limits;
use weir_media::{ReceivedFrame, Source};
use weir_units::{DataRate, TimeDelta, Timestamp};

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// Loss in both directions.
#[derive(Clone, Default)]
struct Losing(Arc<AtomicU64>);

impl Losing {
    /// Loses this many of ten from now on.
    fn set(&self, of_ten: u64) {
        self.0.store(of_ten, Ordering::Relaxed);
    }
    fn rule(&self, salt: u64) -> impl FnMut(u64, &[u8]) -> Fate + 'static {
        let losing = self.clone();
        move |n, _| {
            if u64::from(byte(salt, n)) % 10 < losing.0.load(Ordering::Relaxed) { Fate::Lose } else { Fate::Pass }
        }
    }
}

/// A call of 2 Mbit/s under a controller.
fn call(controller: &str, losing: &Losing) -> (Call, Arc<Mutex<Life>>) {
    let limits = Limits { floor: DataRate::from_kbps(150), ceiling: DataRate::from_mbps(3) };
    let toy = Toy::new(TimeDelta::from_millis(40));
    let life = toy.life.clone();
    let source = Source::Custom(Box::new(toy));
    let mut plan = call_plan(controller, limits, DataRate::from_kbps(500), source);
    let stream = &mut plan.incoming[0];
    (stream.playout_deadline, stream.content) = (Some(TimeDelta::from_millis(400)), true);
    let (a, b) = plan.into_ends(Timestamp::ZERO).unwrap();
    let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(2), losing.rule(1)));
    c.back = Link::new(DataRate::from_mbps(10), losing.rule(2));
    (c, life)
}

/// Runs until `end` and returns the deadlines of frames played complete.
fn played(c: &mut Call, life: &Mutex<Life>, end: Timestamp) -> Vec<Timestamp> {
    let (mut frame, mut whole, mut offset) = (ReceivedFrame::default(), vec![], None);
    while c.now < end {
        let to = (c.now + TimeDelta::from_millis(20)).min(end);
        c.run_until(to);
        while let Some(e) = c.b.poll_playout(c.now) {
            if !c.b.take_frame(&e, &mut frame) {
                continue;
            }
            let id = life.lock().unwrap().id(&frame).unwrap();
            let own = life.lock().unwrap().frames[id as usize].0;
            let offset = *offset.get_or_insert(frame.rtp_timestamp.wrapping_sub(own));
            life.lock().unwrap().check(&frame, offset);
            if frame.whole {
                whole.push(e.at);
            }
        }
        let (_, kept) = c.b.stats().content_counters();
        assert!(kept.as_bytes() < 2_000_000 && c.a.stats().queue(c.now).0.as_bytes() < 8_000_000);
    }
    whole
}

fn between(times: &[Timestamp], from: i64, to: i64) -> usize {
    times.iter().filter(|&&t| (at(from)..at(to)).contains(&t)).count()
}

#[test]
fn media_returns_within_two_seconds_of_the_path() {
    for name in ["gcc", "nada", "scream", "fbra"] {
        let losing = Losing::default();
        let (mut c, life) = call(name, &losing);
        let before = played(&mut c, &life, at(20_000));
        assert!(between(&before, 10_000, 20_000) >= 245, "{name}");
        losing.set(10);
        let none = played(&mut c, &life, at(25_000));
        assert!(between(&none, 20_500, 25_000) == 0, "{name}");
        losing.set(0);
        let after = played(&mut c, &life, at(40_000));
        // At least one of the first two seconds, of which playout delay takes a half.
        assert!(after[0] <= at(27_000) && between(&after, 25_000, 27_000) >= 25, "{name}: {:?}", after[0]);
        assert!(between(&after, 30_000, 40_000) >= 230, "{name}: {}", between(&after, 30_000, 40_000));
        assert!(c.a.target().unwrap().media_rate >= DataRate::from_kbps(500), "{name}");
        assert_eq!((c.b.stats().counters().sources, c.b.stats().playout_stats().unwrap().unusable), (0, 0), "{name}");
    }
}

#[test]
fn media_returns_within_two_seconds_of_the_end_of_heavy_loss() {
    for name in ["gcc", "nada", "scream", "fbra"] {
        let losing = Losing::default();
        let (mut c, life) = call(name, &losing);
        played(&mut c, &life, at(20_000));
        losing.set(3);
        let during = played(&mut c, &life, at(30_000));
        assert!((10..=200).contains(&during.len()), "{name}: {}", during.len());
        losing.set(0);
        let after = played(&mut c, &life, at(45_000));
        assert!(after[0] <= at(32_000) && between(&after, 30_000, 32_000) >= 25, "{name}: {:?}", after[0]);
        assert!(between(&after, 35_000, 45_000) >= 230, "{name}: {}", between(&after, 35_000, 45_000));
    }
}
