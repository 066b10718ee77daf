use super::*;
use crate::controller::{Limits, Target};
use crate::cue::{Cue, EstimateKind, QueueState, ReceiverEstimate, SentPacket};
use crate::testing::link::assert_between;
use crate::testing::{Kbps, metric};
use crate::{Pair, Registry, Sender};
use weir_units::{DataRate, DataSize, Timestamp};

const CALL: Kbps = Kbps { floor: 50, start: 1_000, ceiling: 20_000 };

/// A controller with a rate set by the test, of payload alone, paced at 2.5 times that.
struct Obedient(DataRate);

impl Controller for Obedient {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::ReceiverEstimate(e) = cue {
            self.0 = e.rate;
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.0 = limits.clamp(self.0);
    }
    fn target(&self) -> Target {
        let window = Some(DataSize::from_bytes(30_000));
        Target { window, ..Target::paced(self.0, DataRate::from_bps(self.0.as_bps() / 2 * 5)) }
    }
}

fn queue(ms: i64, age: i64) -> QueueState {
    let kilobyte = DataSize::from_bytes(1_000);
    QueueState {
        now: Timestamp::from_millis(ms),
        added: kilobyte,
        queued: kilobyte,
        oldest_age: TimeDelta::from_millis(age),
    }
}

#[test]
fn packets_and_padding_leave_at_the_inner_rate_and_its_window_stays() {
    let mut c = fill(Config::default(), Obedient(DataRate::from_kbps(1_000)), &CALL.start()).expect("valid");
    let t = c.target();
    assert_eq!((t.media_rate, t.pacing_rate), (DataRate::from_kbps(1_000), DataRate::from_kbps(1_000)));
    assert_eq!((t.padding_rate, t.window), (DataRate::ZERO, Some(DataSize::from_bytes(30_000))));
    assert!(t.paces_payload);
    c.on_queue(&queue(0, 0));
    c.on_queue(&queue(33, 0));
    assert_eq!(c.target().padding_rate, DataRate::from_kbps(1_000));
    let rate = DataRate::from_kbps(3_000);
    c.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate {
        now: Timestamp::from_millis(40),
        rate,
        kind: EstimateKind::Remb,
    }));
    assert_eq!((c.target().padding_rate, c.target().pacing_rate), (rate, rate));
    // 8.25 ms before the next frame of 33 ms.
    let (at, _) = c.poll_timeout().expect("the end of padding");
    assert_eq!(at, Timestamp::from_micros(57_750));
    c.on_timeout(at);
    assert_eq!(c.target().padding_rate, DataRate::ZERO);
    // A packet that waited for longer than 33 ms: the encoder gets the floor.
    c.on_queue(&queue(66, 34));
    assert_eq!((c.target().media_rate, c.target().padding_rate), (DataRate::from_kbps(50), DataRate::ZERO));
    // Media at its ceiling needs no padding.
    c.on_queue(&queue(99, 0));
    c.on_limits(Limits { floor: DataRate::from_kbps(50), ceiling: rate }, Timestamp::from_millis(99));
    assert_eq!((c.target().media_rate, c.target().padding_rate), (rate, DataRate::ZERO));
}

#[test]
fn frames_that_take_too_long_leave_the_encoder_less_of_the_rate() {
    let mut c = fill(Config::default(), Obedient(DataRate::from_kbps(1_000)), &CALL.start()).expect("valid");
    let (mut sequence, size) = (0, DataSize::from_bytes(1_000));
    // A frame of two packets each 100 ms, sent 49 and 66 ms after it: twice the time that it may take.
    for k in 0..21 {
        let now = |after: i64| Timestamp::from_millis(100 * k + after);
        c.on_queue(&QueueState { added: size * 2, queued: size * 2, ..queue(100 * k, 0) });
        for (after, queued) in [(49, size), (66, DataSize::ZERO)] {
            c.on_packet_sent(&SentPacket { queued, ..SentPacket::media(now(after), sequence, size) });
            sequence += 1;
        }
        let rate = DataRate::from_kbps(1_000);
        c.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now: now(70), rate, kind: EstimateKind::Remb }));
    }
    // Each second a quarter of the way to a half: 1, 0.875; then the service time at the smaller target.
    assert_between("alpha, %", 100.0 * metric(&c, "vidaptive_alpha"), 75.0, 82.0);
    assert_eq!(c.target().pacing_rate, DataRate::from_kbps(1_000));
    assert_between("media, kbit/s", c.target().media_rate.as_kbps_f64(), 750.0, 820.0);
}

#[test]
fn every_name_has_its_companion_and_each_parameter_its_half() {
    let registry = Registry::builtin();
    for spec in registry.specs() {
        let with = registry.get(&format!("{}+vidaptive", spec.name)).expect("each");
        assert_eq!((with.feedback, with.reports), (spec.feedback, spec.reports));
        assert_eq!(with.params.len(), spec.params.len() + Config::params().len());
        registry.make(&with.name, &CALL.setup(&[])).map(|_| ()).expect("valid");
    }
    assert_eq!(registry.specs().len(), registry.filled_specs().len());
    assert!(registry.get("gcc+vidaptive+vidaptive").is_none());
    let make = |name: &str, params: &[(&str, f64)]| {
        registry.make(name, &CALL.setup(params)).map(|Pair { sender, .. }: Pair<Sender, _>| sender.target())
    };
    assert!(make("gcc+vidaptive", &[("fill_pause", 50.0), ("loss_v2", 1.0)]).is_ok());
    for (name, value) in [("fill_pause", 0.0), ("fill_percentile", 2.0), ("unknown", 1.0)] {
        assert!(make("gcc+vidaptive", &[(name, value)]).is_err(), "{name}");
    }
    assert!(make("gcc", &[("fill_pause", 50.0)]).is_err());
}
