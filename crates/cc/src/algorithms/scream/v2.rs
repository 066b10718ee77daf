//! SCReAM version 2 (draft-ietf-ccwg-rfc8298bis, editors' copy of 10 August 2026).
//!
//! A reference window follows losses, CE marks in proportion to the share of marked packets (L4S, RFC 9331), and the
//! queue delay as if a delay above half of its target were marked. The media rate is the window over the round-trip
//! time. `network` turns feedback into the window, `media_rate` the window into a stream's rate and pacing. The session
//! holds the RTP queue, obeys the window, paces packets and discards old ones.
//!
//! [`Config`] follows the authors' program where it differs from the draft. Left out: the competing-flows compensation
//! (section 4.5.4, off in the program), the rate policer's bound (section 4.5.2, off in the program), and
//! frame_size_dev (section 4.4, a suggestion that the program does not follow).

mod config;
mod flight;
mod l4s;
mod media_rate;
mod network;
mod queue_delay;
mod window;

pub use config::Config;

use crate::controller::{Controller, Coupled, Limits, RepairPlan, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket};
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use media_rate::MediaRate;
use network::{MediaState, Network};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use window::Congestion;

/// The RTP queue is not discarded before this time (C++).
const NO_DISCARD_BEFORE: TimeDelta = TimeDelta::from_millis(250);
/// Factor of the rate while the base delay is measured again (draft, section 4.5.1) ...
const MEASURING_RATE: f64 = 0.5;
/// ... for this many round trips, at least this long (C++: 100 ms; draft, section 4.5.1: 200 ms).
const MEASURING_ROUND_TRIPS: i64 = 5;
const MEASURING_TIME: TimeDelta = TimeDelta::from_millis(100);

/// Interval of CCFB messages: at most 40 ms, as tested by the authors (draft, section 5), and a message at every second
/// one at low rates.
const FEEDBACK: FeedbackPlan = FeedbackPlan {
    format: FeedbackFormat::CongestionControl,
    min_interval: TimeDelta::from_millis(20),
    max_interval: TimeDelta::from_millis(40),
    bandwidth_share: 0.05,
};

/// SCReAM version 2, sender side, with one stream.
#[derive(Clone, Debug)]
pub struct Scream {
    config: Config,
    limits: Limits,
    network: Network,
    stream: MediaRate,
    discard_from: Timestamp,
    /// When a packet or feedback was last sent or received.
    moved_at: Timestamp,
    /// Bytes that may be in flight without feedback.
    stall_limit: DataSize,
    /// When the base delay was last measured again, and whether that goes on.
    measured_at: Timestamp,
    is_measuring: bool,
    loss_events: u64,
    ecn_events: u64,
    delay_events: u64,
    stalls: u64,
    /// Cached [`Controller::target`]: computed on each change, read with each packet.
    target: Target,
}

impl Scream {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("scream2")?;
        let mut scream = Self {
            config,
            limits: start.limits,
            network: Network::new(&config, start.now),
            stream: MediaRate::new(start.rate, start.limits, start.now),
            discard_from: start.now + NO_DISCARD_BEFORE,
            moved_at: start.now,
            stall_limit: DataSize::ZERO,
            measured_at: start.now,
            is_measuring: false,
            loss_events: 0,
            ecn_events: 0,
            delay_events: 0,
            stalls: 0,
            target: Target::paced(DataRate::ZERO, DataRate::ZERO),
        };
        scream.refresh(start.now);
        Ok(scream)
    }

    fn refresh(&mut self, now: Timestamp) {
        let factor = if self.is_measuring { MEASURING_RATE } else { 1.0 };
        let media_rate = self.limits.clamp(DataRate::from_bps_f64(self.stream.target() * factor));
        let age = self.config.max_queue_age;
        self.target = Target {
            media_rate,
            pacing_rate: self.stream.pacing_rate(&self.limits, &self.config),
            padding_rate: DataRate::ZERO,
            window: Some(self.limit()),
            max_queue_age: (now >= self.discard_from && age > TimeDelta::ZERO).then_some(age),
            repair: RepairPlan::Off,
            overhead: DataSize::ZERO,
            paces_payload: false,
        };
    }

    fn limit(&self) -> DataSize {
        self.network.limit(&self.config).max(self.stall_limit)
    }

    /// Where a queue seems to stand for long, the rate is halved for a few round trips and the base delay measured
    /// again (draft, section 4.5.1).
    fn measure_base(&mut self, now: Timestamp) {
        let c = &self.config;
        let share = self.network.queue_delay.standing() / c.qdelay_target.as_secs_f64();
        if c.standing_queue_share == 0.0 || share <= c.standing_queue_share {
            self.is_measuring = false;
        } else if self.is_measuring {
            let time = (self.network.srtt() * MEASURING_ROUND_TRIPS).max(MEASURING_TIME);
            if now - self.measured_at >= time {
                self.network.queue_delay.reset(c, now);
                self.is_measuring = false;
            }
        } else if now - self.measured_at > c.standing_queue_interval {
            (self.measured_at, self.is_measuring) = (now, true);
        }
    }

    /// When a full window lets more out without feedback.
    fn stall_at(&self) -> Option<Timestamp> {
        let full = self.network.in_flight().as_bytes() as f64 + self.network.mss() > self.limit().as_bytes() as f64;
        full.then(|| self.moved_at + self.config.stall_timeout)
    }
}

impl Algorithm for Scream {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            ecn: Ecn::Ect1,
            feedback: Some(FEEDBACK),
            params: Config::params(),
            ..Spec::new(
                "scream2",
                "self-clocked window with L4S and delay as a virtual mark, media rate from window over RTT",
                "draft-ietf-ccwg-rfc8298bis",
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
        let before = self.network.limit(&self.config);
        self.network.on_packet_sent(packet, &self.config);
        if self.network.limit(&self.config) != before {
            self.refresh(packet.now);
        }
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        let Cue::TransportFeedback(feedback) = cue else { return };
        if feedback.packets.is_empty() {
            return;
        }
        self.moved_at = feedback.now;
        self.stall_limit = DataSize::ZERO;
        let media = MediaState {
            target: self.stream.target(),
            highest: self.limits.ceiling.as_bps_f64(),
            has_new_frame: self.stream.has_new_frame(),
        };
        match self.network.on_feedback(feedback, &media, &self.config) {
            Some(Congestion::Loss) => self.loss_events += 1,
            Some(Congestion::Ecn) => self.ecn_events += 1,
            Some(Congestion::Delay) => self.delay_events += 1,
            None => {}
        }
        self.measure_base(feedback.now);
        self.stream.update(&self.network, &self.limits, &self.config);
        self.refresh(feedback.now);
    }

    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.limits = limits;
        self.stream.on_limits(&limits);
        self.refresh(now);
    }

    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        self.network.window.set_growth(coupled.increase);
    }

    #[inline]
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.stream.on_frame(queue, &self.config);
        self.refresh(queue.now);
        true
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.stall_at().is_some_and(|t| t <= now) {
            let room = DataSize::from_bytes(self.network.window.least() as u64);
            self.stall_limit = self.network.in_flight() + room;
            self.moved_at = now;
            self.stalls += 1;
        }
        self.refresh(now);
    }

    fn target(&self) -> Target {
        self.target
    }

    #[inline]
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.stall_at()?, TimeoutReason::FeedbackMissing))
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let (n, q) = (&self.network, &self.network.queue_delay);
        out("ref_wnd_bytes", n.window.size());
        out("ref_wnd_i_bytes", n.window.inflection());
        out("in_flight_bytes", n.in_flight().as_bytes() as f64);
        out("srtt_ms", n.srtt().as_millis_f64());
        out("qdelay_ms", q.current() * 1e3);
        out("qdelay_avg_ms", q.averaged() * 1e3);
        out("qdelay_min_avg_ms", q.standing() * 1e3);
        out("ref_wnd_delay_scale", q.window_scale(&self.config));
        out("l4s_alpha", n.marks.alpha());
        out("l4s_alpha_v", q.virtual_alpha(&self.config));
        out("loss_rate", n.loss_rate());
        out("reordering_window_ms", n.losses.window().as_millis_f64());
        out("acked_bps", n.acknowledged_rate().as_bps_f64());
        out("rate_adjust_factor", self.stream.adjustment());
        out("loss_events", self.loss_events as f64);
        out("ecn_events", self.ecn_events as f64);
        out("delay_events", self.delay_events as f64);
        out("stalls", self.stalls as f64);
    }
}
