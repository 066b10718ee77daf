//! Vidaptive: Copa with a sender that is never idle, since padding fills what the encoder leaves, and an encoder that gets a share of its rate.
//!
//! P. Karimi and others, "Vidaptive: Efficient and Responsive Rate Control for Real-Time Video on Variable Networks", arXiv 2309.16869. Of the
//! paper only the abstract was at hand; the rules and numbers are those that the crate `vidaptive` 0.1.0 (ShaJaPas/vidaptive at
//! 07ef2b9) gives for it:
//!
//! | rule | source |
//! |---|---|
//! | packets leave at the congestion controller's rate, within its window; padding where no media is queued | README, *Pacing*, *Backlog filler* |
//! | no padding in the last 8.25 ms before a frame is expected, nor once media reaches its highest bitrate | README, *Dummy filler* |
//! | the encoder gets alpha of the rate; each second alpha moves by a quarter to P / X | README, *Target bitrate*; `encoder_ctrl/alpha.rs` |
//! | X: the 90th percentile of frames' service times, each by rate over target; P: 33 ms | `encoder_ctrl/alpha.rs`, `config.rs` |
//! | a frame's service: from when its first packet is at the queue's head until its last is sent | README, *Frame service time* |
//! | no frame is encoded while the oldest packet has waited for more than 33 ms | README, *Encoder pause* |
//!
//! The congestion controller is [`Copa`] with its default parameters, as in the paper's evaluation. The choices made:
//!
//! - The rate is Copa's window over its standing round trip. A controller cannot stop an encoder here: in a pause it gets the floor.
//! - Padding packets are the session's, with 255 bytes of payload; the crate's have up to 200.
//! - The highest bitrate of media is the application's ceiling.
//! - The frame interval is the time between the last two frames.

mod config;
mod headroom;

#[cfg(test)]
mod tests;

use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket};
use crate::papers::copa::{Config as CopaConfig, Copa};
use crate::parts::sent_frames::SentFrames;
use crate::spec::{Algorithm, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
pub use config::Config;
use headroom::Headroom;
use std::collections::VecDeque;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Longer times between two frames are pauses of the source.
const LONGEST_INTERVAL: TimeDelta = TimeDelta::from_millis(250);

/// Vidaptive, sender side.
#[derive(Clone, Debug)]
pub struct Vidaptive {
    config: Config,
    limits: Limits,
    copa: Copa,
    headroom: Headroom,
    frames: SentFrames,
    /// When each frame that is not sent entered the queue, with the rate and the target of its encoding; none in a pause.
    encoded: VecDeque<(Timestamp, Option<[f64; 2]>)>,
    serving: Option<Serving>,
    /// When the last media packet was sent.
    last_end: Timestamp,
    last_frame: Option<Timestamp>,
    /// When padding stops for the next frame; `None` while it has.
    pads_until: Option<Timestamp>,
    is_paused: bool,
    target: Target,
}

/// A frame of which packets have been sent.
#[derive(Clone, Copy, Debug)]
struct Serving {
    queued_at: Timestamp,
    /// When its first packet was at the head of the queue.
    from: Timestamp,
    encoded: Option<[f64; 2]>,
}

/// Most frames between encoder and pacer whose targets are remembered.
const MAX_FRAMES: usize = 256;

impl Vidaptive {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("vidaptive")?;
        let copa = Copa::new(CopaConfig::default(), start)?;
        let target = copa.target();
        let mut c = Self {
            config,
            limits: start.limits,
            copa,
            headroom: Headroom::new(start.now),
            frames: SentFrames::new(),
            encoded: VecDeque::with_capacity(MAX_FRAMES),
            serving: None,
            last_end: start.now,
            last_frame: None,
            pads_until: None,
            is_paused: false,
            target,
        };
        c.set_target();
        Ok(c)
    }

    /// The congestion controller's rate, in bit/s: Copa paces at twice of it.
    fn rate(&self) -> f64 {
        self.copa.target().pacing_rate.as_bps_f64() / 2.0
    }

    fn set_target(&mut self) {
        let copa = self.copa.target();
        let rate = self.rate();
        let wanted = if self.is_paused { DataRate::ZERO } else { DataRate::from_bps_f64(self.headroom.alpha() * rate) };
        let media_rate = self.limits.clamp(wanted);
        let pacing_rate = DataRate::from_bps_f64(rate).max(media_rate);
        let pads = self.pads_until.is_some() && !self.is_paused && media_rate < self.limits.ceiling;
        let padding_rate = if pads { pacing_rate } else { DataRate::ZERO };
        self.target = Target { media_rate, pacing_rate, padding_rate, ..copa };
    }

    /// A media packet has been sent: the next one of a frame, or the first of another.
    fn on_media(&mut self, packet: &SentPacket) {
        let Some(queued_at) = self.frames.newest().map(|f| f.queued_at) else { return };
        if self.serving.is_none_or(|s| s.queued_at != queued_at) {
            self.on_served();
            while self.encoded.front().is_some_and(|e| e.0 < queued_at) {
                self.encoded.pop_front();
            }
            let encoded = self.encoded.front().filter(|e| e.0 == queued_at).and_then(|e| e.1);
            self.serving = Some(Serving { queued_at, from: queued_at.max(self.last_end), encoded });
        }
        self.last_end = packet.now;
        if packet.queued.is_zero() {
            self.on_served();
        }
    }

    /// The last media packet was its frame's last.
    fn on_served(&mut self) {
        let Some(frame) = self.serving.take() else { return };
        if let Some([rate, target]) = frame.encoded {
            self.headroom.on_frame(self.last_end.saturating_since(frame.from), rate, target, self.last_end);
        }
    }
}

impl Algorithm for Vidaptive {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        let copa = Copa::specs().remove(0);
        vec![Spec {
            feedback: copa.feedback,
            params: Config::params(),
            ..Spec::new(
                "vidaptive",
                "Copa with padding where the encoder leaves room, and an encoder that gets what lets frames leave in time",
                "Karimi et al., arXiv 2309.16869, by the crate vidaptive 0.1.0",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Vidaptive {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.copa.on_packet_sent(packet);
        let is_media = !(packet.is_padding || packet.is_repair || packet.is_retransmission);
        self.frames.on_sent(packet);
        if is_media {
            self.on_media(packet);
        }
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        self.copa.on_cue(cue);
        if let Cue::TransportFeedback(f) = cue {
            self.headroom.update(&self.config, f.now);
        }
        self.set_target();
    }
    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.limits = limits;
        self.copa.on_limits(limits, now);
        self.set_target();
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        let encoded = [self.rate(), self.target.media_rate.as_bps_f64()];
        if self.encoded.len() == MAX_FRAMES {
            self.encoded.pop_front();
        }
        self.encoded.push_back((queue.now, (!self.is_paused).then_some(encoded)));
        self.copa.on_queue(queue);
        self.frames.on_queued(queue.added, queue.now);
        let passed = self.last_frame.map(|last| queue.now.saturating_since(last)).filter(|t| *t <= LONGEST_INTERVAL);
        self.last_frame = Some(queue.now);
        self.pads_until = passed.map(|t| queue.now + (t - self.config.withhold).max(TimeDelta::from_micros(1)));
        self.is_paused = queue.oldest_age > self.config.pause;
        self.set_target();
        true
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.pads_until.is_some_and(|until| until <= now) {
            self.pads_until = None;
            self.set_target();
        }
    }
    fn target(&self) -> Target {
        self.target
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.pads_until?, TimeoutReason::RateUpdate))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("alpha", self.headroom.alpha());
        out("rate_bps", self.rate());
        out("is_paused", f64::from(u8::from(self.is_paused)));
        self.copa.metrics(out);
    }
}
