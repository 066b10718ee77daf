//! A pacer that is never idle, around a controller: padding, the encoder's share of the rate, and its pause.

use super::config::Config;
use super::headroom::Headroom;
use crate::controller::{Controller, Coupled, Limits, ProbeCluster, RepairPlan, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket};
use crate::parts::sent_frames::SentFrames;
use crate::spec::Start;
use crate::tunable::SetupError;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Longer times between two frames are pauses of the source.
const LONGEST_INTERVAL: TimeDelta = TimeDelta::from_millis(250);
/// Most frames between encoder and pacer whose targets are remembered.
const MAX_FRAMES: usize = 256;

/// The facts about an inner controller that its target alone does not state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    /// Its rate in bit/s, by its target and the rate that it shares with coupled flows.
    pub(super) rate: fn(&Target, Option<DataRate>) -> f64,
    /// Names of alpha, the rate and the pause among the metrics; others than the inner controller's.
    pub(super) metrics: [&'static str; 3],
}

/// Any controller: its rate is the one of its path, without what a queue of frames takes from it, or what it gives its encoder.
const ANY: Inner = Inner {
    rate: |target, of_path| of_path.unwrap_or(target.media_rate).as_bps_f64(),
    metrics: ["vidaptive_alpha", "vidaptive_rate_bps", "vidaptive_is_paused"],
};

/// A controller whose rate is sent whatever the encoder makes.
///
/// - Packets leave at the inner controller's rate, and padding at that rate where no media is queued: not just before a frame is expected, nor
///   once media has its ceiling. Its window, repair and probes stay as they are.
/// - The encoder gets alpha of the rate, so that most frames leave in time, and the floor while the oldest packet is too old.
/// - A controller whose rate is of payload alone has its packets paced so; one that plans repair packets keeps its pacing.
#[derive(Clone, Debug)]
pub struct Filled<C> {
    config: Config,
    limits: Limits,
    inner: C,
    about: Inner,
    headroom: Headroom,
    /// Whether there is feedback on each packet: alpha then moves with it, else with any cue.
    by_packet: bool,
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

impl<C: Controller> Filled<C> {
    /// Around any controller made from the same start. Errors: see [`Config::check`].
    pub fn around(config: Config, inner: C, start: &Start) -> Result<Self, SetupError> {
        config.check("vidaptive")?;
        Ok(Self::with(config, inner, ANY, start))
    }

    pub(super) fn with(config: Config, inner: C, about: Inner, start: &Start) -> Self {
        let target = inner.target();
        let mut c = Self {
            config,
            limits: start.limits,
            inner,
            about,
            headroom: Headroom::new(start.now),
            by_packet: false,
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
        c
    }

    fn rate(&self) -> f64 {
        (self.about.rate)(&self.inner.target(), self.inner.coupled_rate())
    }

    fn set_target(&mut self) {
        let inner = self.inner.target();
        let rate = (self.about.rate)(&inner, self.inner.coupled_rate());
        let wanted = if self.is_paused { DataRate::ZERO } else { DataRate::from_bps_f64(self.headroom.alpha() * rate) };
        let media_rate = self.limits.clamp(wanted);
        let paced = if inner.repair == RepairPlan::Off { DataRate::from_bps_f64(rate) } else { inner.pacing_rate };
        let pacing_rate = paced.max(media_rate);
        let padding_rate = if self.pads_until.is_none() || self.is_paused {
            DataRate::ZERO
        } else if media_rate < self.limits.ceiling {
            pacing_rate
        } else {
            inner.padding_rate
        };
        let paces_payload = inner.paces_payload || inner.overhead == DataSize::ZERO;
        self.target = Target { media_rate, pacing_rate, padding_rate, paces_payload, ..inner };
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

impl<C: Controller> Controller for Filled<C> {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.inner.on_packet_sent(packet);
        let is_media = !(packet.is_padding || packet.is_repair || packet.is_retransmission);
        self.frames.on_sent(packet);
        if is_media {
            self.on_media(packet);
        }
        self.set_target();
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        self.inner.on_cue(cue);
        let is_of_packets = matches!(cue, Cue::TransportFeedback(_));
        self.by_packet |= is_of_packets;
        if is_of_packets || !self.by_packet {
            self.headroom.update(&self.config, cue.now());
        }
        self.set_target();
    }
    fn on_rtcp(&mut self, datagram: &[u8], now: Timestamp) -> bool {
        let has_news = self.inner.on_rtcp(datagram, now);
        if has_news {
            self.set_target();
        }
        has_news
    }
    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.limits = limits;
        self.inner.on_limits(limits, now);
        self.set_target();
    }
    fn coupled_rate(&self) -> Option<DataRate> {
        self.inner.coupled_rate()
    }
    fn on_coupled(&mut self, coupled: &Coupled, now: Timestamp) {
        self.inner.on_coupled(coupled, now);
        self.set_target();
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        let encoded = [self.rate(), self.target.media_rate.as_bps_f64()];
        if self.encoded.len() == MAX_FRAMES {
            self.encoded.pop_front();
        }
        self.encoded.push_back((queue.now, (!self.is_paused).then_some(encoded)));
        self.inner.on_queue(queue);
        self.frames.on_queued(queue.added, queue.now);
        let passed = self.last_frame.map(|last| queue.now.saturating_since(last)).filter(|t| *t <= LONGEST_INTERVAL);
        self.last_frame = Some(queue.now);
        self.pads_until = passed.map(|t| queue.now + (t - self.config.withhold).max(TimeDelta::from_micros(1)));
        self.is_paused = queue.oldest_age > self.config.pause;
        self.set_target();
        true
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.inner.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.inner.on_timeout(now);
        }
        if self.pads_until.is_some_and(|until| until <= now) {
            self.pads_until = None;
        }
        self.set_target();
    }
    fn target(&self) -> Target {
        self.target
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        let own = self.pads_until.map(|until| (until, TimeoutReason::RateUpdate));
        match (self.inner.poll_timeout(), own) {
            (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
            (a, b) => a.or(b),
        }
    }
    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        self.inner.poll_probe(now)
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let [alpha, rate, is_paused] = self.about.metrics;
        out(alpha, self.headroom.alpha());
        out(rate, self.rate());
        out(is_paused, f64::from(u8::from(self.is_paused)));
        self.inner.metrics(out);
    }
}
