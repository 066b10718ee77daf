//! SCReAM version 1 (RFC 8298).
//!
//! Two loops, separate so that several streams can share a path: `network` turns feedback into a congestion window, and
//! `media_rate` turns the RTP queue and the network's events into a stream's rate. The session does the rest of the
//! RFC's sender: it holds the RTP queue, obeys the window, paces packets and discards old ones.
//!
//! [`Config`] gives the constants of the public C++ implementation where they differ. Features of it without a basis in
//! the RFC are left out: window growth limited to 1.25 times the throughput and shrinkage to a quarter, and the blend of
//! peak and mean flight.
//!
//! Each round trip with a loss costs a fifth of the window and a tenth of the rate (RFC 8298, section 4.1.1.1), so that
//! random loss of 1 % leaves little: 205 of 4,000 kbit/s by
//! `weir compare --scenario pathologies/one-in-a-hundred-lost --controllers scream --runs 1`.

mod config;
mod events;
mod media_rate;
mod network;
mod rtp_queue;
mod target_delay;
mod trend;
mod window;

pub use config::Config;

use crate::controller::{Controller, Coupled, Limits, RepairPlan, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket};
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use events::Congestion;
use media_rate::{MediaRate, NetworkState};
use network::Network;
use rtp_queue::RtpQueue;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The RTP queue is not discarded before this time, since there is no throughput to compare it with (C++, one second).
const NO_DISCARD_BEFORE: TimeDelta = TimeDelta::from_secs(1);

/// Pacing rate of packets that are not paced.
const UNPACED: DataRate = DataRate::from_mbps(10_000);
/// Interval of CCFB messages.
///
/// RFC 8298, section 4.2.2: fb_int = 1 / min(50, max(2.5, rate_media / 10,000)), so 20 to 400 ms. Within these bounds
/// that is a message per 10,000 bits of media. A message at this rate, with UDP and IPv4 headers, has about 60 bytes,
/// hence the 5 %. RFC 8888, section 4, calls feedback once per frame an upper bound and 50 to 200 ms workable, and
/// refers to the algorithm's specification, which is followed.
const FEEDBACK: FeedbackPlan = FeedbackPlan {
    format: FeedbackFormat::CongestionControl,
    min_interval: TimeDelta::from_millis(20),
    max_interval: TimeDelta::from_millis(400),
    bandwidth_share: 0.05,
};

/// SCReAM version 1, sender side, with one stream.
#[derive(Clone, Debug)]
pub struct Scream {
    config: Config,
    limits: Limits,
    network: Network,
    stream: MediaRate,
    queue: RtpQueue,
    next_adjust: Timestamp,
    discard_from: Timestamp,
    may_discard: bool,
    /// When a packet or feedback was last sent or received.
    moved_at: Timestamp,
    /// Bytes that may be in flight without feedback.
    stall_limit: DataSize,
    loss_events: u64,
    ecn_events: u64,
    stalls: u64,
    /// Cached [`Controller::target`]: computed on each change, read with each packet.
    target: Target,
    /// Whether it was written since the last frame.
    has_news: bool,
    /// Bytes that may be in flight: the window, or more where it has stalled.
    limit: DataSize,
}

impl Scream {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("scream")?;
        let mut scream = Self {
            config,
            limits: start.limits,
            network: Network::new(&config, start.now),
            stream: MediaRate::new(start.rate, start.limits, start.now),
            queue: RtpQueue::default(),
            next_adjust: start.now + config.rate_adjust_interval,
            discard_from: start.now + NO_DISCARD_BEFORE,
            may_discard: false,
            moved_at: start.now,
            stall_limit: DataSize::ZERO,
            loss_events: 0,
            ecn_events: 0,
            stalls: 0,
            target: Target::paced(DataRate::ZERO, DataRate::ZERO),
            has_news: true,
            limit: DataSize::ZERO,
        };
        scream.refresh();
        Ok(scream)
    }

    fn refresh(&mut self) {
        let media_rate = self.limits.clamp(self.stream.target());
        // Before the first round-trip time only the start rate is known.
        let pacing = self.network.pacing_rate(self.config.pacing_head_room).unwrap_or(media_rate);
        let is_paced = self.network.trend.average() > self.config.pace_from || self.config.pace_from <= 0.0;
        let pacing = if is_paced { self.in_ticks(pacing) } else { UNPACED };
        let age = self.config.max_queue_age;
        self.limit = self.network.limit().max(self.stall_limit);
        self.has_news = true;
        self.target = Target {
            media_rate,
            pacing_rate: pacing.max(self.config.rate_pace_min),
            padding_rate: DataRate::ZERO,
            window: Some(self.limit),
            max_queue_age: (self.may_discard && age > TimeDelta::ZERO).then_some(age),
            repair: RepairPlan::Off,
            overhead: DataSize::ZERO,
            paces_payload: false,
        };
    }

    /// The pacing rate with which packets are whole ticks of the sender's timer apart.
    fn in_ticks(&self, rate: DataRate) -> DataRate {
        let tick = self.config.send_timer.as_secs_f64();
        if tick <= 0.0 {
            return rate;
        }
        let bits = 8.0 * self.network.window.mss();
        let ticks = libm::ceil(bits / rate.as_bps_f64().max(1.0) / tick).max(1.0);
        DataRate::from_bps_f64(bits / (ticks * tick))
    }

    /// When a full window lets more out without feedback.
    #[inline]
    fn stall_at(&self) -> Option<Timestamp> {
        let full = self.network.in_flight() + self.config.mss > self.limit;
        full.then(|| self.moved_at + self.config.stall_timeout)
    }
}

impl Algorithm for Scream {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            feedback: Some(FEEDBACK),
            params: Config::params(),
            ..Spec::new(
                "scream",
                "self-clocked window on queue delay, loss and ECN, with media rate control; near its floor at 1 % of random loss \
                 (205 of 4,000 kbit/s), by its rules",
                "RFC 8298",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Scream {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.moved_at = packet.now;
        if self.network.on_packet_sent(packet) {
            self.refresh();
        }
        self.stream.on_packet_sent(packet.size);
        self.queue.on_packet_sent(packet);
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        let Cue::TransportFeedback(feedback) = cue else { return };
        let outcome = self.network.on_feedback(feedback, &self.config);
        if feedback.packets.is_empty() {
            self.limit = self.network.limit().max(self.stall_limit);
            return;
        }
        self.moved_at = feedback.now;
        self.stall_limit = DataSize::ZERO;
        self.stream.on_acknowledged(outcome.acknowledged, feedback.now);
        if let Some(event) = outcome.congestion {
            match event {
                Congestion::Loss => self.loss_events += 1,
                Congestion::Ecn => self.ecn_events += 1,
            }
            self.stream.on_congestion(event, feedback.now, &self.limits, &self.config);
            // "exit": this reaction replaces the regular adjustment.
            self.next_adjust = feedback.now + self.config.rate_adjust_interval;
        }
        self.refresh();
    }

    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.stream.on_limits(&limits);
        self.refresh();
    }

    /// The media rate, which is below the window most of the time: a group's windows alone do not hold it to one flow's
    /// share.
    fn coupled_rate(&self) -> Option<DataRate> {
        Some(self.stream.target())
    }

    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        self.network.window.set_growth(coupled.increase);
        self.stream.couple(coupled.rate, coupled.increase, &self.limits);
        self.refresh();
    }

    #[inline]
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.stream.on_frame(queue.added);
        self.queue.on_frame(queue);
        std::mem::take(&mut self.has_news)
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.stall_at().is_some_and(|t| t <= now) {
            // MIN_CWND every half second is close to RATE_PACE_MIN. RFC 8888, section 5, requires a reaction to lost
            // feedback; out of fast increase the media rate falls to what is still sent.
            self.network.window.end_fast_increase(now);
            self.stall_limit = self.network.in_flight() + self.network.window.min();
            self.moved_at = now;
            self.stalls += 1;
        }
        if now >= self.next_adjust {
            self.next_adjust = now + self.config.rate_adjust_interval;
            self.may_discard = now >= self.discard_from;
            let network = NetworkState {
                fast_increase: self.network.window.is_fast_increase(),
                trend: self.network.trend.trend(),
                trend_memory: self.network.trend.memory(),
            };
            self.stream.adjust(now, &network, self.queue.size(), &self.limits, &self.config);
        }
        self.refresh();
    }

    fn target(&self) -> Target {
        self.target
    }

    #[inline]
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        let adjust = (self.next_adjust, TimeoutReason::RateUpdate);
        let stall = self.stall_at().map(|t| (t, TimeoutReason::FeedbackMissing));
        Some(stall.filter(|s| s.0 < adjust.0).unwrap_or(adjust))
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let n = &self.network;
        out("cwnd_bytes", n.window.cwnd().as_bytes() as f64);
        out("in_flight_bytes", n.in_flight().as_bytes() as f64);
        out("max_in_flight_bytes", n.window.max_bytes_in_flight().as_bytes() as f64);
        out("srtt_ms", n.srtt().map_or(f64::NAN, TimeDelta::as_millis_f64));
        out("qdelay_ms", n.queue_delay().as_millis_f64());
        out("qdelay_target_ms", n.target_delay.get().as_millis_f64());
        out("qdelay_fraction_avg", n.trend.average());
        out("qdelay_trend", n.trend.trend());
        out("qdelay_trend_mem", n.trend.memory());
        out("in_fast_increase", f64::from(u8::from(n.window.is_fast_increase())));
        out("loss_event_rate", n.events.loss_event_rate());
        out("reordering_window_ms", n.losses.window().as_millis_f64());
        out("rtp_queue_bytes", self.queue.size().as_bytes() as f64);
        self.stream.metrics(out);
        out("loss_events", self.loss_events as f64);
        out("ecn_events", self.ecn_events as f64);
        out("stalls", self.stalls as f64);
    }
}

#[cfg(test)]
mod tests;
