//! An estimator's process that decides on pacing, windows or repair alone, over one of Weir's controllers, which decides on the rate.

use crate::Remote;
use crate::process::Traffic;
use weir_cc::cue::{QueueState, SentPacket};
use weir_cc::{Controller, Cue, Limits, ProbeCluster, Sender, Target, TimeoutReason};
use weir_units::{DataRate, Timestamp};

/// Both, and the rates of the target that the process knows.
pub(crate) struct Over {
    base: Sender,
    remote: Remote,
    known: Option<(DataRate, DataRate)>,
}

impl Over {
    /// The process receives the target at once.
    pub(crate) fn new(base: Sender, remote: Remote, now: Timestamp) -> Self {
        let mut out = Self { base, remote, known: None };
        out.tell(now);
        out
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.remote.traffic()
    }

    /// Tells the process the target, if it is another.
    fn tell(&mut self, now: Timestamp) {
        let target = self.base.target();
        let rates = Some((target.media_rate, target.pacing_rate));
        if self.known != rates {
            self.known = rates;
            self.remote.on_target(&target, now);
        }
    }
}

impl Controller for Over {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.base.on_packet_sent(packet);
        self.remote.on_packet_sent(packet);
        self.tell(packet.now);
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        self.base.on_cue(cue);
        self.remote.on_cue(cue);
        self.tell(cue.now());
    }

    fn on_rtcp(&mut self, datagram: &[u8], now: Timestamp) -> bool {
        self.base.on_rtcp(datagram, now);
        self.remote.on_rtcp(datagram, now);
        self.tell(now);
        true
    }

    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.base.on_limits(limits, now);
        self.remote.on_limits(limits, now);
        self.tell(now);
    }

    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.base.on_queue(queue);
        self.remote.on_queue(queue);
        self.tell(queue.now);
        true
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.base.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.base.on_timeout(now);
        }
        self.remote.on_timeout(now);
        self.tell(now);
    }

    fn target(&self) -> Target {
        self.remote.over(self.base.target())
    }

    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.base.poll_timeout().into_iter().chain(self.remote.poll_timeout()).min_by_key(|(at, _)| *at)
    }

    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        self.base.poll_probe(now).or_else(|| self.remote.poll_probe(now))
    }
}
