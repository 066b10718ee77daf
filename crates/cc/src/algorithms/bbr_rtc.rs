//! BBR as a controller of media: bandwidth and least round-trip time, measured from per-packet feedback, set the media
//! rate, the pacing rate, padding while probing, and a window.
//!
//! It follows libwebrtc's `BbrNetworkController`, a controller beside `goog_cc` from 2018 until 2020, itself after
//! Chromium's BBR 1 for QUIC (`modules/congestion_controller/bbr`, read at jbg/libwebrtc 9de73a3 for `bandwidth_sampler`,
//! 61ea56b for `rtt_stats`, 1185f3a for `windowed_filter`, and for the controller at johnson-li/webrtc a85b0f1, a fork of
//! 2020 that adds a log). In the order of a feedback message:
//!
//! `sampler` (a sample for each packet received) → `max_filter` → `network` (least round-trip time, STARTUP, DRAIN,
//! PROBE_BW by `cycle`, PROBE_RTT, with `recovery` and `aggregation`) → target.
//!
//! | of the target | rule | source |
//! |---|---|---|
//! | `media_rate` | the bandwidth, at most the pacing rate; the start rate before the first sample | `CreateRateUpdate` |
//! | `pacing_rate` | bandwidth times the state's gain, at least the floor | `CalculatePacingRate`, `CreateRateUpdate` |
//! | `padding_rate` | the pacing rate in STARTUP and in the first phase of a cycle | `pad_window` |
//! | `window` | bandwidth-delay product times the state's gain, or less in recovery | `GetCongestionWindow` |
//! | both rates | less media for a backlog; faster pacing and no media while much is queued | `rtp_queue` |
//! | `overhead` | RTP's header | Weir: pacing at the bandwidth has to carry headers too |
//!
//! libwebrtc has dropped it. Measurements of it find more rate than under GCC beside TCP, as much alone, and too high an
//! estimate on slow links with long queues ("Investigating WebRTC BBR as an alternative to GCC for live video streaming",
//! COMSNETS 2025, abstract).
//!
//! Differences from libwebrtc:
//!
//! - The flight before a packet, not with it, decides whether the path was empty, as in the draft (draft-ietf-ccwg-bbr,
//!   editors' copy of 2026, section "Transmitting a data packet") and in the sampler's comments. libwebrtc passes the flight
//!   with the packet, so that the rule never applies and the first round trip has no sample.
//! - A packet without a sample changes nothing. In libwebrtc it is a sample of zero.
//! - The first phase of a cycle is drawn by the session's seed. libwebrtc's seed is a constant.
//! - The ceiling bounds media and padding, not pacing. libwebrtc paces at the ceiling too, where a backlog stays until the
//!   queue's limit of 2 s: three of four packets of a call at 2 of 10 Mbit/s are later than a playout of 300 ms.
//! - The media rate is less, by a tenth at most, while frames wait behind others. libwebrtc's pacer bounds the queue by 2 s, and it stands
//!   at a second, since media at the bandwidth leaves nothing to drain it: `pathologies/mute`, variant `none`.
//! - `aggregation_gain` takes effect. libwebrtc reads its parameter and does not apply it.
//! - Left out, since they never take effect in libwebrtc: options for application-limited flows
//!   (`probe_rtt_skipped_if_similar_rtt`, `probe_rtt_disabled_if_app_limited`; it never calls `OnApplicationLimited`),
//!   `max_ack_height_window_multiplier`, and the weight of the round-trip time's variation, a constant zero.
//!
//! As there, ECN marks, receiver reports and a receiver's limits are not used, and the model does not change without
//! feedback. The window then closes, and lets a packet out from time to time, which libwebrtc's pacer does
//! (`ShouldSendKeepalive`); the session's guard lowers the rate.

mod aggregation;
mod config;
mod cycle;
mod max_filter;
mod network;
mod recovery;
mod rtp_queue;
mod sampler;

#[cfg(test)]
mod tests;

use crate::controller::{Controller, Coupled, Limits, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket};
use crate::spec::{Algorithm, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
pub use config::Config;
use network::{Mode, Network};
use rtp_queue::RtpQueue;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// RTP header with the extension for transport-wide numbers, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);

/// The largest packet (libwebrtc's `kMaxPacketSize`).
const PACKET: DataSize = DataSize::from_bytes(1_452);

/// BBR for media, sender side.
#[derive(Clone, Debug)]
pub struct BbrRtc {
    config: Config,
    network: Network,
    limits: Limits,
    start: DataRate,
    started: Timestamp,
    queue: RtpQueue,
    last_sent: Timestamp,
    /// Bytes that may be in flight although the window is full.
    keepalive: DataSize,
    /// The target by the path alone, and with the queue's effect: the latter is read with each packet.
    by_path: Target,
    target: Target,
}

impl BbrRtc {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("bbr-rtc")?;
        let none = Target::paced(DataRate::ZERO, DataRate::ZERO);
        let mut bbr = Self {
            config,
            network: Network::new(config, start.now),
            limits: start.limits,
            start: start.rate,
            started: start.now,
            queue: RtpQueue::new(config.queue_limit),
            last_sent: start.now,
            keepalive: DataSize::ZERO,
            by_path: none,
            target: none,
        };
        bbr.set_target();
        Ok(bbr)
    }

    /// The same with a seed for the phase in which cycles begin, so that flows probe at different times.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.network.seed(seed, self.started);
        self.set_target();
        self
    }

    fn set_target(&mut self) {
        let c = &self.config;
        let pacing = self.network.pacing_rate();
        let base = if c.pacing_as_target { pacing } else { self.network.used_bandwidth().unwrap_or(self.start) };
        let share = if self.network.mode() == Mode::ProbeRtt { c.encoder_gain_probe_rtt } else { c.encoder_gain };
        let media = scale(base, share).min(pacing);
        self.by_path = Target {
            window: Some(self.network.window().max(self.keepalive)),
            padding_rate: if self.network.is_probing() { self.limits.clamp(pacing) } else { DataRate::ZERO },
            overhead: RTP_HEADER,
            // The ceiling is one of media: at a pacing rate that it bounds too, a backlog would never shrink.
            ..Target::paced(self.limits.clamp(media), pacing.max(self.limits.floor))
        };
        self.apply_queue();
    }

    /// When a full window lets a packet out.
    fn keepalive_at(&self) -> Option<Timestamp> {
        let is_full = self.network.in_flight() + PACKET > self.network.window();
        is_full.then(|| self.last_sent + self.config.keepalive)
    }

    /// Paces faster for a long queue, and lets the encoder pause for one beyond the limit.
    #[inline]
    fn apply_queue(&mut self) {
        self.target = self.by_path;
        self.target.pacing_rate = self.by_path.pacing_rate.max(self.queue.drain_rate());
        self.target.media_rate = self.limits.clamp(self.queue.beside_backlog(self.by_path.media_rate));
        if self.queue.exceeds_limit(self.by_path.pacing_rate) {
            self.target.media_rate = self.limits.clamp(DataRate::ZERO);
        }
    }
}

fn scale(rate: DataRate, gain: f64) -> DataRate {
    DataRate::from_bps_f64(rate.as_bps_f64() * gain)
}

fn times(size: DataSize, gain: f64) -> DataSize {
    DataSize::from_bytes((size.as_bytes() as f64 * gain) as u64)
}

impl Algorithm for BbrRtc {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            // It does not respond to marks, so its packets must not invite them (RFC 3168, section 6).
            ecn: Ecn::NotEct,
            feedback: Some(FeedbackPlan::LIBWEBRTC),
            params: Config::params(),
            ..Spec::new(
                "bbr-rtc",
                "BBR for media: bandwidth and least round-trip time set rate, pacing, padding and window",
                "libwebrtc's BbrNetworkController, 2018 to 2020; draft-ietf-ccwg-bbr",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        let bbr = Self::new(Config::from_params(name, &setup.params)?, &setup.start())?;
        Ok(Pair::alone(bbr.with_seed(setup.seed)))
    }
}

impl Controller for BbrRtc {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.network.on_sent(packet);
        self.queue.on_sent(packet.queued);
        self.last_sent = packet.now;
        if self.keepalive.is_zero() {
            self.apply_queue();
        } else {
            self.keepalive = DataSize::ZERO;
            self.set_target();
        }
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(f) = cue {
            self.network.on_feedback(f);
            self.keepalive = DataSize::ZERO;
            self.set_target();
        }
    }

    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.set_target();
    }

    fn coupled_rate(&self) -> Option<DataRate> {
        Some(self.limits.clamp(self.network.used_bandwidth().unwrap_or(self.start)))
    }

    /// The group's rate replaces the bandwidth, which goes on being measured: what is sent decides it within some rounds.
    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        self.network.couple(coupled);
        self.set_target();
    }

    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.queue.on_frame(queue);
        self.apply_queue();
        true
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.keepalive_at().is_some_and(|at| at <= now) {
            self.keepalive = self.network.in_flight() + PACKET;
            self.last_sent = now;
            self.set_target();
        }
    }

    fn target(&self) -> Target {
        self.target
    }

    #[inline]
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.keepalive_at()?, TimeoutReason::FeedbackMissing))
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let n = &self.network;
        let mode = match n.mode() {
            Mode::Startup => 0.0,
            Mode::Drain => 1.0,
            Mode::ProbeBw => 2.0,
            Mode::ProbeRtt => 3.0,
        };
        out("mode", mode);
        out("bandwidth_bps", n.bandwidth().map_or(f64::NAN, DataRate::as_bps_f64));
        out("min_rtt_ms", n.min_rtt().map_or(f64::NAN, TimeDelta::as_millis_f64));
        out("pacing_gain", n.pacing_gain());
        out("window_bytes", n.window().as_bytes() as f64);
        out("rounds", n.rounds() as f64);
        out("in_recovery", f64::from(u8::from(n.is_recovering())));
    }
}
