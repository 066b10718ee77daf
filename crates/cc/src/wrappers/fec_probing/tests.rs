use super::*;
use crate::cue::TransportFeedback;
use crate::cue::{EstimateKind, IntervalPacket, IntervalReport, PacketResult, ReceiverEstimate, ReportBlock};
use crate::testing::REPORT;
use crate::{Pair, Registry, Sender};
use weir_units::{DataSize, Ecn, RemoteTimestamp};

/// A controller with a target set by the test, which it lowers by a twentieth while frames are queued.
struct Obedient(DataRate, bool);

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
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.1 = !queue.queued.is_zero();
        true
    }
    fn target(&self) -> Target {
        let rate = if self.1 { DataRate::from_bps(self.0.as_bps() / 20 * 19) } else { self.0 };
        Target::paced(rate, self.0)
    }
}

fn setup(params: &[(&str, f64)]) -> Setup {
    Setup {
        limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(9_000) },
        start_rate: DataRate::from_kbps(1_000),
        now: Timestamp::ZERO,
        seed: 1,
        params: params.iter().map(|&(n, v)| (n.into(), v)).collect(),
    }
}
fn registry() -> Registry {
    let mut registry = Registry::builtin();
    registry.register(Spec::new("obedient", "", ""), |_, setup| {
        Ok(Pair::alone(Sender::Custom(Box::new(Obedient(setup.start_rate, false)))))
    });
    registry
}

struct Call(Sender);

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

impl Call {
    fn new() -> Self {
        Self(registry().make("obedient+fec", &setup(&[])).expect("registered").sender)
    }
    fn wants(&mut self, ms: i64, kbps: u64) {
        let rate = DataRate::from_kbps(kbps);
        self.0.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now: at(ms), rate, kind: EstimateKind::Remb }));
    }
    fn send(&mut self, ms: i64, is_repair: bool) {
        self.0.on_packet_sent(&SentPacket { is_repair, ..SentPacket::media(at(ms), 0, DataSize::from_bytes(1_000)) });
    }
    /// Feedback on packets sent at these times, of which the last `lost` did not arrive.
    fn feedback(&mut self, ms: i64, departures: &[i64], lost: usize) {
        let arrived = departures.len() - lost;
        let packets: Vec<_> = (departures.iter().enumerate())
            .map(|(k, &d)| PacketResult {
                sequence: k as u64,
                departure: at(d),
                arrival: (k < arrived).then_some(RemoteTimestamp::ZERO),
                size: DataSize::from_bytes(1_000),
                ecn: Ecn::NotEct,
                probe: 0,
                was_lost: false,
            })
            .collect();
        let now = at(ms);
        let rtt = Some(TimeDelta::from_millis(100));
        let bytes_in_flight = DataSize::ZERO;
        self.0.on_cue(&Cue::TransportFeedback(TransportFeedback { now, packets: &packets, bytes_in_flight, rtt }));
    }
    fn queue(&mut self, ms: i64, bytes: u64) {
        let queued = DataSize::from_bytes(bytes);
        self.0.on_queue(&QueueState { now: at(ms), added: queued, queued, oldest_age: TimeDelta::ZERO });
    }
    fn block(&mut self, ms: i64, fraction_lost: f64) {
        self.0.on_cue(&Cue::ReportBlock(ReportBlock {
            now: at(ms),
            fraction_lost,
            expected: 0,
            rtt: Some(TimeDelta::from_millis(100)),
            ..REPORT
        }));
    }
    /// Media rate in kbit/s and media packets per parity packet, 0 for none.
    fn now(&self) -> (f64, u8) {
        let t = self.0.target();
        let interval = if let RepairPlan::Parity { interval } = t.repair { interval } else { 0 };
        let with_repair = t.media_rate.as_bps() + t.media_rate.as_bps().checked_div(interval.into()).unwrap_or(0);
        assert!(t.pacing_rate.as_bps() >= with_repair, "{t:?}");
        (t.media_rate.as_kbps_f64(), interval)
    }
    /// Enabled, raised, kept, failed.
    fn counts(&self) -> Vec<f64> {
        let mut counts = Vec::new();
        self.0.metrics(&mut |name, v| counts.extend((name != "fec_interval").then_some(v)));
        counts
    }
}

#[test]
fn a_step_goes_to_fec_first_and_to_media_when_it_has_proved_itself() {
    let mut c = Call::new();
    assert_eq!(c.now(), (1_000.0, 0));
    c.wants(0, 1_100);
    assert_eq!((c.now(), c.counts()), ((1_000.0, 10), vec![1.0, 0.0, 0.0, 0.0]));
    // Before a parity packet, and on packets up to it, feedback has no effect.
    c.send(5, false);
    c.feedback(105, &[0, 5], 0);
    c.send(10, true);
    c.feedback(110, &[5, 10], 0);
    assert_eq!(c.now(), (1_000.0, 10));
    c.send(20, false);
    c.feedback(120, &[11], 0);
    assert_eq!((c.now(), c.counts()), ((1_100.0, 0), vec![1.0, 1.0, 0.0, 0.0]));
}

#[test]
fn steps_are_between_a_half_and_a_fourteenth() {
    let interval = |kbps| {
        let mut c = Call::new();
        c.wants(0, kbps);
        c.now().1
    };
    assert_eq!([1_072, 1_071, 1_001, 1_334, 1_333, 1_500, 5_000].map(interval), [14, 0, 0, 3, 4, 2, 2]);
    // 60 % is limited to a half; the remaining fifteenth has to wait.
    let mut c = Call::new();
    c.wants(0, 1_600);
    c.send(10, true);
    c.feedback(120, &[20], 0);
    assert_eq!(c.now(), (1_500.0, 0));
    c.send(130, false);
    c.send(2_129, false);
    assert_eq!(c.now(), (1_500.0, 0));
    c.send(2_130, false);
    assert_eq!((c.now(), c.counts()), ((1_600.0, 0), vec![1.0, 1.0, 0.0, 0.0]));
    // The waiting step grows until it can be probed.
    c.wants(3_000, 1_700);
    assert_eq!(c.now(), (1_600.0, 0));
    c.wants(3_100, 1_720);
    assert_eq!(c.now(), (1_600.0, 14));
}

#[test]
fn loss_keeps_the_rate_and_rests() {
    let mut c = Call::new();
    c.wants(0, 1_100);
    c.send(10, true);
    // Losses of packets sent before the probe do not count.
    c.feedback(50, &[-10, -5], 2);
    assert_eq!(c.now(), (1_000.0, 10));
    c.feedback(120, &[5, 20], 1);
    assert_eq!((c.now(), c.counts()), ((1_000.0, 0), vec![1.0, 0.0, 1.0, 0.0]));
    c.send(619, false);
    assert_eq!(c.now(), (1_000.0, 0));
    c.send(620, false);
    assert_eq!(c.now(), (1_000.0, 10));
}

#[test]
fn follows_the_controller_down_at_once() {
    // Below the media rate; at it; above it, but below the probed rate; at the probed rate.
    for (kbps, now, counts) in [
        (900, (900.0, 0), [1.0, 0.0, 0.0, 1.0]),
        (1_000, (1_000.0, 0), [1.0, 0.0, 1.0, 0.0]),
        (1_099, (1_000.0, 0), [1.0, 0.0, 1.0, 0.0]),
        (1_100, (1_000.0, 10), [1.0, 0.0, 0.0, 0.0]),
    ] {
        let mut c = Call::new();
        c.wants(0, 1_100);
        c.wants(10, kbps);
        assert_eq!((c.now(), c.counts()), (now, counts.to_vec()), "{kbps}");
    }
    let mut c = Call::new();
    let ceiling = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(700) };
    c.0.on_limits(ceiling, at(0));
    assert_eq!(c.now(), (700.0, 0));
    let floor = Limits { floor: DataRate::from_kbps(2_000), ceiling: DataRate::from_kbps(3_000) };
    c.0.on_limits(floor, at(0));
    assert_eq!(c.now(), (2_000.0, 0));
}

#[test]
fn a_target_lowered_for_queued_frames_ends_no_probe() {
    let mut c = Call::new();
    c.wants(0, 1_100);
    c.send(10, true);
    c.queue(20, 9_000);
    assert_eq!(c.now(), (1_000.0, 10), "1,045 is still more than the media rate");
    c.send(25, false);
    // The decision comes while frames are queued.
    c.feedback(120, &[25], 0);
    assert_eq!((c.now(), c.counts()), ((1_045.0, 0), vec![1.0, 1.0, 0.0, 0.0]));
    c.queue(130, 0);
    assert_eq!(c.now(), (1_100.0, 0));
    c.queue(140, 9_000);
    assert_eq!(c.now(), (1_045.0, 0), "at once");
    // Less is asked for while frames are queued: 950 of 1,000.
    c.wants(150, 1_000);
    assert_eq!(c.now(), (950.0, 0));
    // The queue never empties: what it lowers then counts.
    c.wants(250, 1_000);
    c.queue(260, 0);
    assert_eq!((c.now(), c.counts()[0]), ((950.0, 0), 1.0));
}

#[test]
fn without_parity_packets_the_step_is_taken_and_does_not_count() {
    let mut c = Call::new();
    c.wants(0, 1_100);
    c.send(1_999, false);
    assert_eq!(c.now(), (1_000.0, 10));
    c.send(2_000, false);
    assert_eq!((c.now(), c.counts()), ((1_100.0, 0), vec![0.0; 4]));
}

#[test]
fn reports_without_packets_decide_a_round_trip_after_the_first_parity_packet() {
    for (ms, loss, now) in
        [(110, 0.0, (1_000.0, 10)), (111, 0.0, (1_100.0, 0)), (110, 0.5, (1_000.0, 10)), (111, 0.01, (1_000.0, 0))]
    {
        let mut c = Call::new();
        c.wants(0, 1_100);
        c.send(10, true);
        c.block(ms, loss);
        assert_eq!(c.now(), now, "{ms} ms, {loss}");
    }
    for (fate, now) in [(Fate::Received, (1_100.0, 0)), (Fate::Lost, (1_000.0, 0)), (Fate::Discarded, (1_000.0, 0))] {
        let mut c = Call::new();
        c.wants(0, 1_100);
        c.send(10, true);
        let (departure, size) = (at(20), DataSize::from_bytes(1_000));
        let packets = [IntervalPacket { sequence: 0, departure, size, fate, repaired: false }];
        let report = IntervalReport { now: at(130), packets: &packets, one_way_delay: None, rtt: None };
        c.0.on_cue(&Cue::IntervalReport(report));
        assert_eq!(c.now(), now, "{fate:?}");
    }
}

#[test]
fn every_name_has_its_companion() {
    let registry = registry();
    for spec in registry.specs() {
        let name = format!("{}+fec", spec.name);
        let with = registry.get(&name).expect("each");
        assert_eq!((with.feedback, with.reports), (spec.feedback, spec.reports));
        assert_eq!(with.params.len(), spec.params.len() + Config::params().len());
        registry.make(&name, &setup(&[])).map(|_| ()).expect("valid");
    }
    assert_eq!(registry.specs().len(), registry.probing_specs().len());
    assert!(registry.get("gcc+fec+fec").is_none() && registry.get("+fec").is_none());
    // Registering again replaces the `+fec` entry too.
    let mut twice = registry.clone();
    let again = registry.get("obedient").expect("registered").clone();
    twice.register(again, |_, setup| Ok(Pair::alone(Sender::Custom(Box::new(Obedient(setup.start_rate, false))))));
    assert_eq!(twice.probing_specs().len(), registry.probing_specs().len());
    // Each parameter reaches its own half.
    let make = |name: &str, params: &[(&str, f64)]| registry.make(name, &setup(params)).map(|p| p.sender.target());
    let target = make("fixed+fec", &[("pacing_factor", 3.0), ("step_interval_max", 5.0)]).expect("both known");
    assert_eq!(target.pacing_rate, DataRate::from_kbps(3_000));
    for (name, value) in [("step_interval_max", 1.0), ("pacing_factor", 0.0), ("unknown", 1.0)] {
        assert!(make("fixed+fec", &[(name, value)]).is_err(), "{name}");
    }
    assert!(make("fixed", &[("step_interval_max", 5.0)]).is_err());
}

#[test]
fn a_controller_that_probes_itself_is_left_alone() {
    let registry = registry();
    let run = |name| {
        let mut drive = crate::drive::Drive::new(&registry, name, Some(37)).expect("valid");
        (0..200).for_each(|_| drive.step());
        drive.checksum()
    };
    assert_eq!(run("fbra"), run("fbra+fec"));
    assert_ne!(run("gcc"), run("gcc+fec"));
}
