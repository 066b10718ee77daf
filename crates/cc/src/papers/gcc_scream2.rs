//! Google congestion control until a network marks packets, and SCReAM version 2 from then on: how libwebrtc supports L4S
//! beside its `goog_cc`.
//!
//! It follows libwebrtc's `GoogCcScreamNetworkController` of 2025 in its mode `only_after_ce` (field trial
//! `WebRTC-Bwe-ScreamV2`; read at marco-c/gecko-dev-comments-removed d985dd3, with the comments of its header and of
//! `goog_cc_factory.cc`):
//!
//! - Packets are ECT(1) throughout (`SupportsEcnAdaptation`), and feedback is that of RFC 8888, which reports marks.
//! - Both controllers see everything, and the target is that of [`Gcc`].
//! - With the first feedback that has a CE mark, the target is that of [`Scream`] for the rest of the call, and
//!   [`Gcc`] sees nothing more.
//!
//! [`Gcc`] itself does not respond to marks, there or here. Here each controller is the one of this crate: [`Scream`]
//! follows the draft and its authors' program, not libwebrtc's `scream_v2`. Left out is the mode `goog_cc_with_ect1`, in
//! which only the codepoint of packets changes with the first mark.

use crate::algorithms::gcc::{self, Gcc};
use crate::algorithms::scream::v2::{self as scream2, Scream};
use crate::controller::{Controller, Coupled, Limits, ProbeCluster, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket};
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};

/// GCC, then SCReAM version 2.
#[derive(Clone, Debug)]
pub struct GccScream2 {
    gcc: Gcc,
    scream: Scream,
    has_marks: bool,
}

impl GccScream2 {
    /// A controller at the start rate. Errors: see [`gcc::Config::check`] and [`scream2::Config::check`].
    pub fn new(gcc: gcc::Config, scream: scream2::Config, start: &Start) -> Result<Self, SetupError> {
        Ok(Self { gcc: Gcc::new(gcc, start)?, scream: Scream::new(scream, start)?, has_marks: false })
    }
}

/// Whether feedback has a packet with a CE mark.
fn is_marked(cue: &Cue<'_>) -> bool {
    matches!(cue, Cue::TransportFeedback(f) if f.packets.iter().any(|p| p.arrival.is_some() && p.ecn == Ecn::Ce))
}

impl Algorithm for GccScream2 {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            ecn: Ecn::Ect1,
            feedback: Some(FeedbackPlan {
                format: FeedbackFormat::CongestionControl,
                // libwebrtc's `CongestionControlFeedbackGenerator`, 2025: `min_send_delta`, `max_send_delta`; its bound of
                // 500 kbit/s for feedback hardly ever applies.
                min_interval: TimeDelta::from_millis(25),
                max_interval: TimeDelta::from_millis(500),
                bandwidth_share: 1.0,
            }),
            params: [gcc::Config::params(), scream2::Config::params()].concat(),
            ..Spec::new(
                "gcc-scream2",
                "GCC until the first L4S mark, then SCReAM version 2",
                "libwebrtc's GoogCcScreamNetworkController, 2025",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        let (of_gcc, of_scream) = (gcc::Config::params(), scream2::Config::params());
        let known = || of_gcc.iter().chain(&of_scream).map(|p| p.name);
        if let Some((unknown, _)) = setup.params.iter().find(|(n, _)| known().all(|k| k != n)) {
            return Err(SetupError::UnknownParam {
                controller: name.into(),
                name: unknown.clone(),
                known: known().collect(),
            });
        }
        let (gcc, scream): (Vec<_>, Vec<_>) =
            setup.params.iter().cloned().partition(|(n, _)| of_gcc.iter().any(|p| p.name == n));
        let gcc = gcc::Config::from_params(name, &gcc)?;
        let scream = scream2::Config::from_params(name, &scream)?;
        Ok(Pair::alone(Self::new(gcc, scream, &setup.start())?))
    }
}

impl Controller for GccScream2 {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.scream.on_packet_sent(packet);
        if !self.has_marks {
            self.gcc.on_packet_sent(packet);
        }
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        self.has_marks |= is_marked(cue);
        self.scream.on_cue(cue);
        if !self.has_marks {
            self.gcc.on_cue(cue);
        }
    }

    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.scream.on_limits(limits, now);
        if !self.has_marks {
            self.gcc.on_limits(limits, now);
        }
    }

    /// That of [`Gcc`] until the first mark; then the window of [`Scream`] is coupled.
    fn coupled_rate(&self) -> Option<DataRate> {
        if self.has_marks { None } else { self.gcc.coupled_rate() }
    }

    fn on_coupled(&mut self, coupled: &Coupled, now: Timestamp) {
        self.scream.on_coupled(coupled, now);
        if !self.has_marks {
            self.gcc.on_coupled(coupled, now);
        }
    }

    fn on_queue(&mut self, queue: &QueueState) -> bool {
        let scream = self.scream.on_queue(queue);
        let gcc = !self.has_marks && self.gcc.on_queue(queue);
        scream || gcc
    }

    fn on_timeout(&mut self, now: Timestamp) {
        let is_due = |c: &dyn Controller| c.poll_timeout().is_some_and(|(at, _)| at <= now);
        if is_due(&self.scream) {
            self.scream.on_timeout(now);
        }
        if !self.has_marks && is_due(&self.gcc) {
            self.gcc.on_timeout(now);
        }
    }

    fn target(&self) -> Target {
        if self.has_marks { self.scream.target() } else { self.gcc.target() }
    }

    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        let gcc = self.gcc.poll_timeout().filter(|_| !self.has_marks);
        gcc.into_iter().chain(self.scream.poll_timeout()).min_by_key(|t| t.0)
    }

    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        if self.has_marks { self.scream.poll_probe(now) } else { self.gcc.poll_probe(now) }
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("uses_scream2", f64::from(u8::from(self.has_marks)));
        self.gcc.metrics(out);
        self.scream.metrics(&mut |name, value| match name {
            // GCC has one of this name.
            "acked_bps" => out("scream2_acked_bps", value),
            _ => out(name, value),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::{PacketResult, TransportFeedback};
    use crate::testing::link::{Link, Reno, Second, run_with};
    use crate::testing::{Kbps, metric};
    use weir_units::{DataSize, RemoteTimestamp};

    const KBPS: Kbps = Kbps { floor: 100, start: 500, ceiling: 10_000 };
    const LINK: Link = Link { capacity: |_| 5_000, one_way: 25, feedback: 25, is_exact: true, ..Link::DEFAULT };

    fn both(params: &[(&str, f64)]) -> GccScream2 {
        KBPS.sender(params)
    }

    #[test]
    fn without_marks_it_is_gcc() {
        let of = |c: &mut dyn Controller| run_with(c, &LINK, 20, &mut Reno::between(8_000, 14_000));
        let mut gcc: Gcc = KBPS.sender(&[]);
        let mut unmarked = both(&[]);
        let seen = of(&mut unmarked);
        assert_eq!(seen, of(&mut gcc));
        assert_eq!(metric(&unmarked, "uses_scream2"), 0.0);
        assert!(seen[18].target > 1_000.0);
    }

    #[test]
    fn the_first_mark_hands_over_to_scream_for_good() {
        let mut gcc: Gcc = KBPS.sender(&[]);
        let mut scream: Scream = KBPS.sender(&[]);
        let mut both = both(&[]);
        let mut sent = 0;
        for step in 0..40 {
            let now = Timestamp::from_millis(25 * step);
            for c in [&mut gcc as &mut dyn Controller, &mut scream, &mut both] {
                for k in 0..3 {
                    let packet = SentPacket::media(now, sent + k, DataSize::from_bytes(1_000));
                    c.on_packet_sent(&SentPacket { bytes_in_flight: DataSize::from_bytes(1_000 * (k + 1)), ..packet });
                }
                let at = now + TimeDelta::from_millis(20);
                // Only the twentieth feedback has a mark.
                let ecn = if step == 20 { Ecn::Ce } else { Ecn::Ect1 };
                let results: Vec<_> = (0..3)
                    .map(|k| PacketResult {
                        sequence: sent + k,
                        departure: now,
                        arrival: Some(RemoteTimestamp::from_millis(25 * step + 10)),
                        size: DataSize::from_bytes(1_000),
                        ecn,
                        probe: 0,
                        was_lost: false,
                    })
                    .collect();
                let rtt = Some(TimeDelta::from_millis(20));
                let bytes_in_flight = DataSize::ZERO;
                let f = TransportFeedback { now: at, packets: &results, bytes_in_flight, rtt };
                c.on_cue(&Cue::TransportFeedback(f));
            }
            sent += 3;
            let expected = if step < 20 { gcc.target() } else { scream.target() };
            assert_eq!(both.target(), expected, "step {step}");
            assert_ne!(gcc.target(), scream.target());
        }
        assert_eq!(metric(&both, "uses_scream2"), 1.0);
        assert_eq!(both.poll_probe(Timestamp::from_secs(2)), None);
    }

    #[test]
    fn on_a_link_that_marks_the_queue_is_shorter_than_under_gcc() {
        let l4s = Link { marks_above_ms: 2.0, ..LINK };
        let run = |c: &mut dyn Controller| {
            let seen = run_with(c, &l4s, 40, &mut Reno::default());
            let mean = |f: fn(&Second) -> f64| seen[10..].iter().map(f).sum::<f64>() / 30.0;
            (mean(|s| s.received), mean(|s| s.queue), mean(|s| s.max_queue))
        };
        let (mut both, mut gcc) = (both(&[]), KBPS.sender::<Gcc>(&[]));
        let (rate, queue, longest) = run(&mut both);
        assert_eq!(metric(&both, "uses_scream2"), 1.0);
        assert!((3_000.0..=4_500.0).contains(&rate), "{rate}");
        assert!((0.1..=3.0).contains(&queue) && (1.0..=10.0).contains(&longest), "{queue} {longest}");
        let (rate, queue, _) = run(&mut gcc);
        assert!((4_500.0..=5_000.0).contains(&rate) && (10.0..=100.0).contains(&queue), "{rate} {queue}");
    }

    #[test]
    fn parameters_are_those_of_both() {
        let make = |params: &[(&str, f64)]| GccScream2::make("gcc-scream2", &KBPS.setup(params)).map(|_| ());
        assert_eq!(make(&[("beta", 0.7), ("max_queue_age", 50.0)]), Ok(()));
        let message = |params| make(params).expect_err("refused").to_string();
        let unknown = message(&[("alpha", 1.0)]);
        assert!(
            unknown.contains("`alpha`") && unknown.contains("beta") && unknown.contains("max_queue_age"),
            "{unknown}"
        );
        assert!(message(&[("beta", 2.0)]).contains("`beta` of controller `gcc-scream2`"));
        let names: Vec<_> = GccScream2::specs()[0].params.iter().map(|p| p.name).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "no name is used twice");
    }

    #[test]
    fn the_rate_is_coupled_until_the_first_mark_and_the_window_from_then_on() {
        let mut c = both(&[]);
        let rate = DataRate::from_kbps(300);
        c.on_coupled(&Coupled { rate: Some(rate), increase: 0.5 }, Timestamp::ZERO);
        assert_eq!((c.coupled_rate(), c.target().media_rate), (Some(rate), rate));
        c.has_marks = true;
        assert_eq!(c.coupled_rate(), None);
        assert!(c.target().window.is_some());
    }
}
