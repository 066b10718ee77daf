//! Probing with forward error correction, around any controller: `NAME+fec`.
//!
//! M. Nagy et al., "Congestion Control using FEC for Conversational Multimedia Communication" (MMSys 2014), section 7:
//! the idea works "not only to the FBRA algorithm, but also to any other rate control algorithm. [...] For instance in
//! RRTCC, when it receives a TMMBR message for increasing the rate, it can allocate the difference in the current rate
//! and the new rate to FEC." The paper does not say what a step is and when it has succeeded; both are guesses made
//! here.

use crate::controller::{Controller, Coupled, Limits, ProbeCluster, RepairPlan, Target, TimeoutReason};
use crate::cue::{Cue, Fate, QueueState, SentPacket};
use crate::papers::fbra::probe::{self, Outcome, Probing};
use crate::parts::rtt;
use crate::spec::{Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Suffix of a controller's name that adds probing of its steps.
pub const SUFFIX: &str = "+fec";

crate::tunables! {
    /// Configuration of the probing; the inner controller has its own.
    pub struct Config {
        /// Fewest media packets per parity packet: the greatest step is its reciprocal (Nagy et al., section 4.2: 2).
        step_interval_min: u32 = 2.0, 2.0 => 100.0;
        /// Most media packets per parity packet: steps smaller than its reciprocal wait until they grow (Nagy et al.,
        /// section 4.2: 14).
        step_interval_max: u32 = 14.0, 2.0 => 100.0;
        /// Repair packets of a block: 1 is parity, more are Reed-Solomon at the same rate (Nagy et al., section 4.2: parity;
        /// section 7: stronger codes).
        step_repair: u32 = 1.0, 1.0 => 16.0;
        /// Time after which a step too small to probe is taken without one (guess: 2 s, in which most controllers that
        /// find room ask for 1/14).
        step_patience: TimeDelta = 2_000.0, 0.0 => 60_000.0;
        /// Least time from a failed probe to the next (guess: 500 ms).
        step_pause: TimeDelta = 500.0, 0.0 => 60_000.0;
        /// Share of packets lost in a probe's feedback that is tolerated (guess: 0).
        step_loss: f64 = 0.0, 0.0 => 1.0;
    }
}

/// A controller whose upward steps are first sent as FEC.
///
/// - The media rate follows the controller downwards at once, and FEC stops.
/// - A target that is lower only while frames wait in the RTP queue (as by RFC 8698, section 5.2.2) lowers the media rate
///   for that time, but decides on no probe.
/// - If the controller wants more, repair packets of about the difference are sent beside the media, one per 2 to 14
///   packets: parity, or Reed-Solomon blocks of as many times the length (`step_repair`). A smaller step waits until the controller has made it larger, or for at most the patience.
/// - Feedback on packets sent after the first parity packet decides. Without loss, and if the controller still asks for
///   it, the media takes the probed rate; otherwise FEC stops and the media rate stays.
/// - If no parity packets are sent, because the session has no code or the media pauses, the step is taken after the
///   patience, and the probe does not count.
/// - A controller that plans repair itself or counts its own probes is passed through.
pub struct FecProbing<C> {
    inner: C,
    /// Whether the inner controller is passed through, since it probes by itself.
    transparent: bool,
    config: Config,
    limits: Limits,
    media: DataRate,
    /// The inner controller's greatest target since the last cue or timeout: its target without the effect of frames in
    /// the RTP queue, if that has been empty since.
    greatest: DataRate,
    probing: Probing,
    probe_began: Timestamp,
    first_repair: Option<Timestamp>,
    waits_since: Option<Timestamp>,
    next_probe: Timestamp,
    rtt: TimeDelta,
}

/// Outcome of the open probe by a cue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProbeResult {
    /// Undecided.
    Open,
    Clean,
    Lossy,
}

/// The registry entry of a controller with probing around it.
pub(crate) fn spec(inner: &Spec) -> Spec {
    inner.wrapped(SUFFIX, "its steps upwards are probed with FEC", "Nagy et al., MMSys 2014", Config::params())
}

/// Separates the parameters of [`Config`] from a setup; the rest are the inner controller's.
pub(crate) fn split(setup: &Setup) -> Result<(Config, Setup), SetupError> {
    let (own, inner) = setup.split(&Config::params());
    Ok((Config::from_params(SUFFIX, &own)?, inner))
}

impl<C: Controller> FecProbing<C> {
    /// Wraps a controller made from the same start. Errors: see [`Config::check`].
    pub fn new(config: Config, inner: C, start: &Start) -> Result<Self, SetupError> {
        config.check(SUFFIX)?;
        let target = inner.target();
        let mut counts_itself = false;
        inner.metrics(&mut |name, _| counts_itself |= name == "fec_enabled");
        Ok(Self {
            transparent: counts_itself || target.repair != RepairPlan::Off,
            inner,
            config,
            limits: start.limits,
            media: target.media_rate,
            greatest: target.media_rate,
            probing: Probing::default(),
            probe_began: start.now,
            first_repair: None,
            waits_since: None,
            next_probe: start.now,
            rtt: TimeDelta::ZERO,
        })
    }

    fn result(&mut self, cue: &Cue<'_>) -> ProbeResult {
        let rtt = match cue {
            Cue::TransportFeedback(f) => f.rtt,
            Cue::ReportBlock(b) => b.rtt,
            Cue::NadaReport(n) => n.rtt,
            Cue::IntervalReport(i) => i.rtt,
            _ => None,
        };
        if let Some(rtt) = rtt {
            self.rtt = rtt::bounded(rtt);
        }
        let Some(first_repair) = self.first_repair else { return ProbeResult::Open };
        let (mut covers, mut lost, mut all) = (false, 0u64, 0u64);
        let mut count = |departure: Timestamp, is_lost: bool| {
            if departure >= self.probe_began {
                all += 1;
                lost += u64::from(is_lost);
            }
            covers |= departure > first_repair;
        };
        match cue {
            Cue::TransportFeedback(f) => f.packets.iter().for_each(|p| count(p.departure, p.arrival.is_none())),
            Cue::IntervalReport(i) => i.packets.iter().for_each(|p| count(p.departure, p.fate != Fate::Received)),
            // These cues do not name packets; they concern packets sent a round trip ago.
            _ if cue.now() - first_repair <= self.rtt => {}
            Cue::ReportBlock(b) => {
                let lossy = b.fraction_lost > self.config.step_loss;
                return if lossy { ProbeResult::Lossy } else { ProbeResult::Clean };
            }
            _ => return ProbeResult::Clean,
        }
        if lost as f64 > self.config.step_loss * all as f64 {
            ProbeResult::Lossy
        } else if covers {
            ProbeResult::Clean
        } else {
            ProbeResult::Open
        }
    }

    /// Applies the inner controller's target after a packet or a frame. A lower target may be the effect of the RTP queue
    /// and decides nothing before the next cue.
    fn watch(&mut self, now: Timestamp) {
        self.greatest = self.greatest.max(self.inner.target().media_rate);
        if self.greatest > self.media {
            self.decide(self.greatest, now, ProbeResult::Open);
        }
    }

    /// Applies the inner controller's target after a cue or a timeout, before which it was `before`.
    fn follow(&mut self, before: DataRate, now: Timestamp, result: ProbeResult) {
        let wanted = self.inner.target().media_rate;
        let mut level = wanted;
        if self.greatest > before
            && let Some(share) = self.greatest.ratio(before)
        {
            // The queue has not changed, so it lowers both targets by about the same share.
            level = DataRate::from_bps_f64(wanted.as_bps_f64() * share);
        }
        self.greatest = wanted;
        self.decide(level, now, result);
    }

    fn decide(&mut self, wanted: DataRate, now: Timestamp, result: ProbeResult) {
        if self.transparent || self.inner.target().repair != RepairPlan::Off {
            self.media = wanted;
        } else if wanted <= self.media {
            self.end(if wanted < self.media { Outcome::Failed } else { Outcome::Kept }, now);
            (self.media, self.waits_since) = (wanted, None);
        } else if let Some(interval) = self.probing.interval() {
            let probed = self.media + self.step(interval);
            if result == ProbeResult::Lossy || wanted < probed {
                self.end(Outcome::Kept, now);
            } else if result == ProbeResult::Clean {
                self.end(Outcome::Raised, now);
                self.media = self.limits.clamp(probed).min(wanted);
            } else if self.first_repair.is_none() && now - self.probe_began >= self.config.step_patience {
                self.probing.withdraw();
                self.media = wanted;
            }
        } else {
            self.consider(wanted, now);
        }
    }

    /// The rate of one parity packet per `interval` media packets of the same length.
    fn step(&self, interval: u8) -> DataRate {
        DataRate::from_bps(self.media.as_bps() / u64::from(interval.max(1)))
    }

    /// No probe is open and the controller wants a higher rate.
    fn consider(&mut self, wanted: DataRate, now: Timestamp) {
        let step = wanted.as_bps_f64() - self.media.as_bps_f64();
        let interval = libm::ceil(self.media.as_bps_f64() / step);
        let since = *self.waits_since.get_or_insert(now);
        let too_small = interval > f64::from(self.config.step_interval_max);
        if interval < 1.0 || (too_small && now - since >= self.config.step_patience) {
            // Without media there is nothing to protect.
            (self.media, self.waits_since) = (wanted, None);
        } else if !too_small && now >= self.next_probe {
            self.probing.start(libm::fmax(interval, f64::from(self.config.step_interval_min)) as u8);
            (self.probe_began, self.first_repair, self.waits_since) = (now, None, None);
        }
    }

    fn end(&mut self, outcome: Outcome, now: Timestamp) {
        if self.probing.interval().is_some() {
            if outcome != Outcome::Raised {
                self.next_probe = now + self.config.step_pause;
            }
            self.probing.judge(outcome);
            self.first_repair = None;
        }
    }
}

impl<C: Controller> Controller for FecProbing<C> {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.inner.on_packet_sent(packet);
        if packet.is_repair && self.probing.interval().is_some() {
            self.first_repair.get_or_insert(packet.now);
        }
        self.watch(packet.now);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        let before = self.inner.target().media_rate;
        self.inner.on_cue(cue);
        let result = self.result(cue);
        self.follow(before, cue.now(), result);
    }
    fn on_rtcp(&mut self, datagram: &[u8], now: Timestamp) -> bool {
        let before = self.inner.target().media_rate;
        let has_news = self.inner.on_rtcp(datagram, now);
        if has_news && self.inner.target().media_rate != before {
            self.follow(before, now, ProbeResult::Open);
        }
        has_news
    }
    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.inner.on_limits(limits, now);
        self.limits = limits;
        self.media = limits.clamp(self.media);
        self.greatest = self.inner.target().media_rate;
        self.follow(self.greatest, now, ProbeResult::Open);
    }
    fn coupled_rate(&self) -> Option<DataRate> {
        self.inner.coupled_rate()
    }
    fn on_coupled(&mut self, coupled: &Coupled, now: Timestamp) {
        let before = self.inner.target().media_rate;
        self.inner.on_coupled(coupled, now);
        self.follow(before, now, ProbeResult::Open);
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.inner.on_queue(queue);
        self.watch(queue.now);
        true
    }
    fn on_timeout(&mut self, now: Timestamp) {
        let before = self.inner.target().media_rate;
        self.inner.on_timeout(now);
        self.follow(before, now, ProbeResult::Open);
    }
    fn target(&self) -> Target {
        let inner = self.inner.target();
        if self.transparent || inner.repair != RepairPlan::Off {
            return inner;
        }
        let interval = self.probing.interval();
        let with_repair = interval.map_or(self.media, |n| self.media + self.step(n));
        Target {
            media_rate: self.media.min(inner.media_rate),
            pacing_rate: inner.pacing_rate.max(with_repair),
            repair: interval.map_or(RepairPlan::Off, |interval| probe::plan(interval, self.config.step_repair)),
            ..inner
        }
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.inner.poll_timeout()
    }
    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        self.inner.poll_probe(now)
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.inner.metrics(out);
        if !self.transparent {
            self.probing.metrics(out);
        }
    }
}

#[cfg(test)]
mod tests;
