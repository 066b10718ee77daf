//! NDTC: frames that arrive within a share of their interval, by what their own packet trains tell of the path.
//!
//! P.-L. Ageneau, G. Armitage and S. Danahy, "Network Delivery Time Control", draft-ageneau-ccwg-ndtc, in the authors' repository
//! (paullouisageneau/draft-ageneau-ccwg-ndtc) at d0799cf of July 2026. The agent is the sender. In the order of a frame's way:
//!
//! a frame is queued → its send duration, dithered → `sent_frames` (packets sent, and their reports) → `fdace` (regression of receive over
//! send durations: available capacity) and `congestion` (additive increase, multiplicative decrease) → size of the next frames → target.
//!
//! | rule | source |
//! |---|---|
//! | frames take 0.6 of the interval to arrive, and half of that to be sent | *General Principle* |
//! | available capacity from the regression's line where it meets that of equal durations, less a margin for its error | *FDACE* |
//! | frames of one packet, small ones and those with losses tell nothing of the capacity | *FDACE* |
//! | 0.7 of the size after a loss, 40 bytes more a frame otherwise, 400 where only marks were seen | *Combined AIMD Congestion Control* |
//! | send duration between half of the receive duration and all of it, by the slope; dithered by half of itself | *Adaptive Frame Pacer* |
//! | at least 2,000 bytes a frame, so that it has two packets | *Encoder Target Frame Size* |
//!
//! At 30 frames a second the last rule is 480 kbit/s, below which NDTC answers to nothing, as the draft says; `min_target` changes it.
//!
//! For what the draft leaves open, the choices made:
//!
//! - The frame interval is measured: the mean time between frames of two packets and more that enter the queue; a thirtieth of a second before.
//!   One controller serves a path, so that all streams' frames count as one stream's; packets of audio are frames of one packet.
//! - A source whose frames are all single packets gives no estimate of the capacity, and stays where it began, below the bound by losses.
//! - Sizes include RTP's header, as the draft permits; the target's overhead is taken from the encoder's rate.
//! - The pacer has a rate and no delay: a frame begins at once. The draft's alignment delay, which evens the arrival of last packets, is left out.
//! - A frame still queued when the next one comes shares that one's interval, rather than leaving at once.
//! - Missing feedback is half a second without a report (`feedback_timeout`); the circuit breaker is the session's.
//! - Reports come at each 10 to 50 ms. The resolution of RFC 8888's arrival times, 0.98 ms, is within the draft's least precision of 1 ms.
//! - A loss that a later report revokes has had its effect; it is not undone.

mod config;
mod congestion;
mod fdace;

#[cfg(test)]
mod tests;

use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket, TransportFeedback};
use crate::parts::feedback_timeout::FeedbackTimeout;
use crate::parts::sent_frames::{Frame, SentFrames};
use crate::parts::split_mix;
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
pub use config::Config;
use congestion::Congestion;
use fdace::Fdace;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// RTP header with one extension, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);
/// Frame interval before two frames have been seen.
const USUAL_INTERVAL: f64 = 1.0 / 30.0;
/// Bounds of a frame interval, in seconds: 250 frames a second, and what is longer than four a second is a pause.
const INTERVALS: core::ops::RangeInclusive<f64> = 0.004..=0.25;
/// Weight of a new frame interval in the mean.
const INTERVAL_WEIGHT: f64 = 1.0 / 16.0;

/// NDTC, sender side.
#[derive(Clone, Debug)]
pub struct Ndtc {
    config: Config,
    limits: Limits,
    /// TFRAME, in seconds.
    interval: f64,
    last_frame: Option<Timestamp>,
    frames: SentFrames,
    fdace: Fdace,
    congestion: Congestion,
    /// TARGET as left by the estimate of capacity, in bytes.
    estimated: f64,
    /// TARGET after both bounds, in bytes.
    size: f64,
    /// SLOPE after both bounds.
    slope: f64,
    /// Rate at which the newest frame leaves, in bytes a second.
    pacing: f64,
    random: u64,
    silence: FeedbackTimeout,
    target: Target,
}

impl Ndtc {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("ndtc")?;
        let rate = start.limits.clamp(start.rate);
        let size = rate.as_bps_f64() / 8.0 * USUAL_INTERVAL;
        let mut c = Self {
            config,
            limits: start.limits,
            interval: USUAL_INTERVAL,
            last_frame: None,
            frames: SentFrames::new(),
            fdace: Fdace::default(),
            congestion: Congestion::new(start.limits.ceiling.as_bps_f64() / 8.0 * USUAL_INTERVAL),
            estimated: size,
            size,
            slope: 1.0,
            pacing: 0.0,
            random: 0,
            silence: FeedbackTimeout::new(config.feedback_timeout),
            target: Target::paced(rate, rate),
        };
        c.pacing = size / c.send_duration();
        c.set_target();
        Ok(c)
    }

    /// The same with a seed for the dithering.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.random = seed;
        self
    }

    /// TRECV, in seconds.
    fn receive_duration(&self) -> f64 {
        self.config.receive_share * self.interval
    }
    /// TSEND, in seconds.
    fn send_duration(&self) -> f64 {
        self.config.send_share * self.receive_duration()
    }
    /// MAX_TARGET: the application's ceiling, in bytes a frame.
    fn max_size(&self) -> f64 {
        self.limits.ceiling.as_bps_f64() / 8.0 * self.interval
    }
    /// CMAX: the size at which the pacer's greatest rate would fill the receive duration.
    fn congestion_max(&self) -> f64 {
        self.estimated / self.config.send_share
    }

    /// All packets of a frame are reported.
    fn on_frame(&mut self, frame: &Frame, now: Timestamp) {
        if let Some((send, receive)) = frame.durations(self.config.min_length(), 3.0 * self.interval) {
            self.fdace.on_sample(&self.config, send, receive);
            self.estimated = (self.receive_duration() * self.fdace.available()).min(self.max_size());
        }
        self.congestion.on_frame(&self.config, frame, self.congestion_max(), now);
        self.combine();
    }

    /// Bounds the estimate by what congestion allows.
    fn combine(&mut self) {
        let most = self.congestion_max();
        let least = self.config.min_target.as_bytes() as f64;
        self.size = self.estimated.min(self.congestion.size(most)).max(least);
        self.slope = self.fdace.slope().min(self.congestion.slope(most, self.config.send_share));
    }

    fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        self.silence.on_feedback();
        for p in f.packets {
            while let Some(frame) = self.frames.take_before(p.sequence) {
                self.on_frame(&frame, f.now);
            }
            self.frames.on_fate(p);
        }
        if let Some(frame) = self.frames.take_reported() {
            self.on_frame(&frame, f.now);
        }
        self.set_target();
    }

    /// A frame of several packets had entered the queue at `at`.
    fn on_interval(&mut self, at: Timestamp) {
        let passed = self.last_frame.map(|last| at.saturating_since(last).as_secs_f64());
        if let Some(passed) = passed.filter(|s| INTERVALS.contains(s)) {
            self.interval += INTERVAL_WEIGHT * (passed - self.interval);
        }
        self.last_frame = Some(at);
    }

    /// A frame has entered the queue: its send duration (*Adaptive Frame Pacer*).
    fn on_new_frame(&mut self, q: &QueueState) {
        let send = self.send_duration();
        let dither = self.config.dither * send * (draw(&mut self.random) * 2.0 - 1.0);
        let pace = self.slope * (send + dither) + (1.0 - self.slope) * self.receive_duration();
        // A queue leaves within a frame interval.
        let least = q.queued.as_bytes() as f64 / self.interval;
        self.pacing = (self.size / pace).max(least);
        self.set_target();
    }

    fn set_target(&mut self) {
        let media = self.limits.clamp(DataRate::from_bps_f64(self.size * 8.0 / self.interval));
        let pacing = DataRate::from_bps_f64(self.pacing * 8.0).max(media);
        self.target = Target { overhead: RTP_HEADER, ..Target::paced(media, pacing) };
    }
}

/// A number from 0 to 1.
fn draw(state: &mut u64) -> f64 {
    (split_mix::next(state) >> 11) as f64 / (1u64 << 53) as f64
}

impl Algorithm for Ndtc {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            ecn: Ecn::Ect1,
            feedback: Some(FeedbackPlan {
                format: FeedbackFormat::CongestionControl,
                min_interval: TimeDelta::from_millis(10),
                max_interval: TimeDelta::from_millis(50),
                bandwidth_share: 0.05,
            }),
            params: Config::params(),
            ..Spec::new(
                "ndtc",
                "Frames that arrive in 0.6 of their interval, by the regression of receive over send durations",
                "draft-ageneau-ccwg-ndtc, July 2026",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        let ndtc = Self::new(Config::from_params(name, &setup.params)?, &setup.start())?;
        Ok(Pair::alone(ndtc.with_seed(setup.seed)))
    }
}

impl Controller for Ndtc {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.silence.on_packet(packet.now);
        if let Some(queued_at) = self.frames.on_sent(packet) {
            self.on_interval(queued_at);
        }
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(f) = cue {
            self.on_feedback(f);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.congestion.on_greatest(self.max_size());
        self.set_target();
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.frames.on_queued(queue.added, queue.now);
        self.on_new_frame(queue);
        true
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.expire(now) {
            self.congestion.on_silence(&self.config, self.congestion_max(), now);
            self.combine();
            self.set_target();
        }
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.silence.poll()
    }
    fn target(&self) -> Target {
        self.target
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("capacity_bps", self.fdace.available() * 8.0);
        out("slope", self.fdace.slope());
        out("frame_bytes", self.size);
        out("congestion_bytes", self.congestion.size(self.congestion_max()));
        out("frame_interval_ms", self.interval * 1e3);
    }
}
