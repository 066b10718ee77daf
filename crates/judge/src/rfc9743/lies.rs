//! Receivers that lie: a controller whose feedback was made otherwise than it arrived.
//!
//! `hidden-queue/NAME` is NAME with a receiver that reports all packets as equally long under way; `hidden-loss/NAME` reports lost
//! packets as received (RFC 9743, section 7.6; for TCP "optimistic acknowledgements"); `hidden-both/NAME` does both; `false-loss/NAME`
//! reports each third packet as lost; `asks-for-all/NAME` asks for 1 Gbit/s in each message, and `asks-for-nothing/NAME` for nothing. They change per-packet feedback and
//! loss in reports; the session's circuit breaker, which is off here, would see true reports.

use weir_cc::cue::{
    EstimateKind, PacketResult, QueueState, ReceiverEstimate, ReportBlock, SentPacket, TransportFeedback,
};
use weir_cc::tunable::SetupError;
use weir_cc::{Controller, Coupled, Cue, Entry, Limits, Pair, ProbeCluster, Registry, Sender, Target, TimeoutReason};
use weir_units::{DataRate, RemoteTimestamp, TimeDelta, Timestamp};

/// A receiver's lie: concealed queues or losses, forged losses or requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lie {
    HiddenQueue,
    HiddenLoss,
    HiddenBoth,
    FalseLoss,
    AsksForAll,
    AsksForNothing,
}

impl Lie {
    const ALL: [Self; 6] = [
        Self::HiddenQueue,
        Self::HiddenLoss,
        Self::HiddenBoth,
        Self::FalseLoss,
        Self::AsksForAll,
        Self::AsksForNothing,
    ];

    /// The part before a controller's name.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::HiddenQueue => "hidden-queue/",
            Self::HiddenLoss => "hidden-loss/",
            Self::HiddenBoth => "hidden-both/",
            Self::FalseLoss => "false-loss/",
            Self::AsksForAll => "asks-for-all/",
            Self::AsksForNothing => "asks-for-nothing/",
        }
    }

    const fn hides_queue(self) -> bool {
        matches!(self, Self::HiddenQueue | Self::HiddenBoth)
    }
    const fn hides_loss(self) -> bool {
        matches!(self, Self::HiddenLoss | Self::HiddenBoth)
    }
    const fn asks(self) -> Option<DataRate> {
        match self {
            Self::AsksForAll => Some(DataRate::from_bps(1_000_000_000)),
            Self::AsksForNothing => Some(DataRate::ZERO),
            _ => None,
        }
    }
}

/// A registry with all controllers also under receivers that lie.
pub(super) fn with_lies(honest: &Registry) -> Registry {
    let mut registry = honest.clone();
    for lie in Lie::ALL {
        let honest = honest.clone();
        registry.add_family(lie.prefix(), move |name| {
            let plain = name.strip_prefix(lie.prefix()).unwrap_or(name).to_owned();
            let unknown = || SetupError::UnknownController { name: name.into() };
            let spec = honest.get(&plain).ok_or_else(unknown)?.clone();
            let honest = honest.clone();
            Ok(Entry::new(spec, move |_, setup| {
                let pair = honest.make(&plain, setup)?;
                let sender = Sender::Custom(Box::new(Deceived::new(pair.sender, lie)));
                Ok(Pair { sender, receiver: pair.receiver })
            }))
        });
    }
    registry
}

/// A controller that is lied to.
struct Deceived {
    inner: Sender,
    lie: Lie,
    /// Departure and arrival of the first packet reported.
    first: Option<(Timestamp, RemoteTimestamp)>,
    least_rtt: Option<TimeDelta>,
    packets: Vec<PacketResult>,
}

impl Deceived {
    const fn new(inner: Sender, lie: Lie) -> Self {
        Self { inner, lie, first: None, least_rtt: None, packets: Vec::new() }
    }

    fn feedback(&mut self, f: &TransportFeedback<'_>) {
        self.packets.clear();
        self.packets.extend_from_slice(f.packets);
        if self.first.is_none() {
            self.first = f.packets.iter().find_map(|p| Some((p.departure, p.arrival?)));
        }
        if self.lie == Lie::FalseLoss {
            self.packets.iter_mut().filter(|p| p.sequence.is_multiple_of(3)).for_each(|p| p.arrival = None);
        }
        let mut rtt = f.rtt;
        if let Some((from, to)) = self.first {
            if self.lie.hides_loss() {
                // These were reported as received when they were lost.
                self.packets.retain(|p| !p.was_lost);
                let mut last = None;
                for p in &mut self.packets {
                    p.arrival = p.arrival.or(last).or(Some(to + (p.departure - from)));
                    last = p.arrival;
                }
            }
            if self.lie.hides_queue() {
                let received = self.packets.iter_mut().filter(|p| p.arrival.is_some());
                received.for_each(|p| p.arrival = Some(to + (p.departure - from)));
                self.least_rtt = match (self.least_rtt, rtt) {
                    (Some(least), Some(new)) => Some(least.min(new)),
                    (least, new) => least.or(new),
                };
                rtt = rtt.and(self.least_rtt);
            }
        }
        let packets = std::mem::take(&mut self.packets);
        self.inner.on_cue(&Cue::TransportFeedback(TransportFeedback { packets: &packets, rtt, ..*f }));
        self.packets = packets;
        if let Some(rate) = self.lie.asks() {
            self.inner.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now: f.now, rate, kind: EstimateKind::Tmmbr }));
        }
    }
}

impl Controller for Deceived {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.inner.on_packet_sent(packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::TransportFeedback(f) => self.feedback(f),
            Cue::ReportBlock(r) if self.lie.hides_loss() => {
                self.inner.on_cue(&Cue::ReportBlock(ReportBlock { fraction_lost: 0.0, cumulative_lost: 0, ..*r }));
            }
            other => self.inner.on_cue(other),
        }
    }
    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.inner.on_limits(limits, now);
    }
    fn coupled_rate(&self) -> Option<DataRate> {
        self.inner.coupled_rate()
    }
    fn on_coupled(&mut self, coupled: &Coupled, now: Timestamp) {
        self.inner.on_coupled(coupled, now);
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.inner.on_queue(queue)
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.inner.on_timeout(now);
    }
    fn target(&self) -> Target {
        self.inner.target()
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.inner.poll_timeout()
    }
    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        self.inner.poll_probe(now)
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.inner.metrics(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;
    use weir_lab::run::{RunOptions, run};
    use weir_lab::scenario::ScenarioFile;

    const LINK: &str = "title = 't'\nduration = '20 s'\n[links.l]\nrate = '1 Mbps'\ndelay = '25 ms'\nqueue = '300 ms'\n\
                        [rtp.v]\ncontroller = '$controller'\nceiling = '4 Mbps'\n";

    /// Mean rate sent, share lost and mean delay.
    fn under(controller: &str) -> (f64, f64, f64) {
        let registry = with_lies(&Registry::builtin());
        let file = ScenarioFile::parse("t", LINK, Path::new("."), &registry).expect("sound");
        let scenario = file.scenario(None, Some(controller), &registry).expect("known");
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
        let flow = run(&scenario, 1, &options).expect("runs").flows.remove(0);
        (flow.rates.sent_bps, flow.loss, flow.one_way_delay_ms.expect("arrived").mean)
    }

    #[test]
    fn a_hidden_queue_grows_and_hidden_losses_go_on() {
        let (honest, queue, both) = (under("gcc"), under("hidden-queue/gcc"), under("hidden-both/gcc"));
        assert!(queue.2 > 2.0 * honest.2 && queue.1 > honest.1, "{honest:?} {queue:?}");
        assert!(both.0 > 2.0 * honest.0 && both.1 > 0.3, "{honest:?} {both:?}");
    }

    #[test]
    fn who_asks_for_all_gets_no_more_and_who_asks_for_nothing_the_floor() {
        let (honest, all, nothing) = (under("sluice"), under("asks-for-all/sluice"), under("asks-for-nothing/sluice"));
        assert_eq!(honest, all);
        assert!(nothing.0 < 0.3 * honest.0, "{honest:?} {nothing:?}");
    }

    #[test]
    fn false_losses_slow_a_call_down() {
        let (honest, forged) = (under("gcc"), under("false-loss/gcc"));
        assert!(forged.0 < 0.7 * honest.0 && forged.1 == 0.0, "{honest:?} {forged:?}");
    }

    #[test]
    fn an_unknown_controller_is_refused() {
        assert!(with_lies(&Registry::builtin()).find("hidden-queue/nobody").is_err());
    }
}
