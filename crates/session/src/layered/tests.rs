use super::*;
use proptest::prelude::*;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A receiver behind a link that carries `carried` layers; whatever is more loses every second packet of all layers.
struct Bench {
    receiver: LayeredReceiver,
    now: i64,
    sequence: u16,
    carried: u8,
    announced: Vec<(i64, u8)>,
}

impl Bench {
    fn new(config: LayeredConfig, carried: u8) -> Self {
        let receiver = LayeredReceiver::new(config, at(0));
        Self { receiver, now: 0, sequence: 0, carried, announced: Vec::new() }
    }
    fn run(&mut self, until_ms: i64) {
        while self.now < until_ms {
            self.now += 20;
            self.sequence = self.sequence.wrapping_add(1);
            self.receiver.handle_timeout(at(self.now));
            while let Some(action) = self.receiver.poll_action() {
                if let LayerAction::Announce(layer) = action {
                    self.announced.push((self.now, layer));
                }
            }
            let level = self.receiver.level();
            for layer in 1..=level {
                if level <= self.carried || self.sequence.is_multiple_of(2) {
                    self.receiver.on_packet(layer, self.sequence, at(self.now));
                }
            }
        }
    }
}

#[test]
fn a_receiver_finds_the_layers_that_its_link_carries() {
    for carried in 1..=5 {
        let mut b = Bench::new(LayeredConfig::new(6, 7), carried);
        b.run(300_000);
        let c = b.receiver.counters();
        let level = b.receiver.level();
        assert!(level == carried || level == carried + 1, "{level} of {carried}, {c:?}");
        assert!(c.experiments - c.drops + 1 == u64::from(level), "{c:?}");
        let share = c.lost as f64 / (c.lost + c.received) as f64;
        assert!(c.drops >= 2 && share < 0.01, "{share} {c:?}");
    }
    let mut b = Bench::new(LayeredConfig::new(6, 7), 6);
    b.run(300_000);
    assert_eq!((b.receiver.level(), b.receiver.counters().drops), (6, 0));
}

#[test]
fn a_layer_that_fails_is_tried_more_and_more_rarely() {
    let mut b = Bench::new(LayeredConfig::new(2, 3), 1);
    b.run(600_000);
    let gaps: Vec<i64> = b.announced.windows(2).map(|w| w[1].0 - w[0].0).collect();
    // Interval: 5 s, then 10, 20, 40 and 60: each at least half of it, at most 2.5 times, and the drop before.
    for (gap, interval) in gaps.iter().zip([10, 20, 40, 60, 60, 60]) {
        assert!((500 * interval..=2_500 * interval + 20_000).contains(gap), "{gap} ms of {interval} s: {gaps:?}");
    }
    assert!((5..=25).contains(&gaps.len()), "{gaps:?}");
}

#[test]
fn a_loss_during_another_s_experiment_teaches_without_an_own_one() {
    let config = LayeredConfig::new(3, 1);
    let mut taught = LayeredReceiver::new(config.clone(), at(0));
    taught.on_packet(1, 1, at(10));
    taught.on_announcement(2, at(100));
    taught.on_packet(1, 5, at(200));
    assert_eq!((taught.counters().learned, taught.counters().lost, taught.level()), (1, 3, 1));
    // The next own experiment is at least 5 s away: half of 10 s.
    assert!(taught.poll_timeout().is_some_and(|t| t > at(200)));
    let mut first = None;
    for ms in (200..60_000).step_by(20) {
        taught.handle_timeout(at(ms));
        taught.on_packet(1, (ms / 20) as u16, at(ms));
        if taught.level() > 1 {
            first = first.or(Some(ms));
        }
    }
    assert!(first.is_some_and(|ms| ms >= 5_200), "{first:?}");
    let mut alone = LayeredReceiver::new(LayeredConfig { learns: false, ..config }, at(0));
    alone.on_packet(1, 1, at(10));
    alone.on_announcement(2, at(100));
    alone.on_packet(1, 5, at(200));
    assert_eq!((alone.counters().learned, alone.counters().ignored), (0, 1));
}

#[test]
fn endless_announcements_delay_and_do_not_stop() {
    let mut r = LayeredReceiver::new(LayeredConfig::new(3, 5), at(0));
    let mut reached = None;
    for ms in (0..600_000).step_by(20) {
        r.handle_timeout(at(ms));
        // Of a layer that all have, so that each experiment of ours is put off.
        r.on_announcement(2, at(ms));
        for layer in 1..=r.level() {
            r.on_packet(layer, (ms / 20) as u16, at(ms));
        }
        if r.level() == 3 {
            reached = reached.or(Some(ms));
        }
    }
    // Five timers of 2.5 to 12.5 s for the third layer, after the second.
    assert!(reached.is_some_and(|ms| (12_000..200_000).contains(&ms)), "{reached:?}");
}

#[test]
fn what_does_not_belong_is_counted() {
    let mut r = LayeredReceiver::new(LayeredConfig::new(3, 1), at(0));
    assert_eq!((r.poll_action(), r.poll_action()), (Some(LayerAction::Join(1)), None));
    r.on_packet(0, 1, at(1));
    r.on_packet(2, 1, at(1));
    r.on_packet(1, 1, at(1));
    r.on_packet(1, 1, at(1));
    r.on_packet(1, 0, at(1));
    for layer in [0, 1, 4, 255] {
        r.on_announcement(layer, at(2));
    }
    assert_eq!((r.counters().ignored, r.counters().received, r.counters().heard), (8, 1, 0));
    // A leap is one loss, not 30,000.
    r.on_packet(1, 30_000, at(3));
    assert_eq!(r.counters().lost, 1);
}

proptest! {
    #[test]
    fn no_input_breaks_it(steps in prop::collection::vec((0u8..4, 0u8..20, any::<u16>(), 0i64..5_000), 0..400)) {
        let mut r = LayeredReceiver::new(LayeredConfig::new(5, 1), at(0));
        let (mut now, mut joined) = (0, 0i32);
        for (kind, layer, sequence, passed) in steps {
            now += passed;
            match kind {
                0 => r.on_packet(layer, sequence, at(now)),
                1 => r.on_announcement(layer, at(now)),
                _ => r.handle_timeout(at(now)),
            }
            while let Some(action) = r.poll_action() {
                match action {
                    LayerAction::Join(_) => joined += 1,
                    LayerAction::Leave(_) => joined -= 1,
                    LayerAction::Announce(_) => {}
                }
            }
            prop_assert_eq!(joined, i32::from(r.level()));
            prop_assert!((1..=5).contains(&r.level()));
            prop_assert!(r.poll_timeout().is_none_or(|t| kind < 2 || t > at(now)));
        }
    }
}
