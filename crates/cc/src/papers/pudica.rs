//! Pudica: frames that keep the bottleneck's queue empty at the next frame, by the share of the link that each finds in use.
//!
//! S. Wang and others, "Pudica: Toward Near-Zero Queuing Delay in Congestion Control for Cloud Gaming", NSDI 2024. The agent is the sender. In
//! the order of a frame's way:
//!
//! a frame is queued → its pace → probe packets after it → `probing` (the utilisation R that it and they have found) → `bitrate` (by the smoothed
//! utilisation and that of single frames) → target; `equations` has the numbered ones.
//!
//! | rule | source |
//! |---|---|
//! | R = (D - D_min) / L: a frame's delay from first departure to last arrival, the least delay of 10 s, the frame interval | section 4.1, equation 1 |
//! | a frame is sent in min(R, 1) / 1.25 of its interval, so that its last packet just waits | equation 2 |
//! | four packets without payload over the rest of the interval; what they wait beyond the frame and each other adds to R | equations 3 to 5 |
//! | smoothed R over 200 ms, each by what its frame's bitrate was and with three weights | equations 6 and 12 to 15 |
//! | up to 0.85: 0.3 of the way to 0.925, then wait until a frame of the new bitrate is reported | equations 7 and 8 |
//! | above: additive increase that grows by the frame, less 5 %, at once; from the beginning above one and each 5 s | equations 9 and 10 |
//! | a frame with R > 1, or one overdue, takes 15 % from the next frame alone | section 4.3 |
//! | three with R > 1: 0.85 of the rate received since, less what empties the queue in 200 ms; then the rate received, in one step | equation 11 |
//!
//! The paper has no code. For what it leaves open, the choices made:
//!
//! - L is measured: the mean time between frames of two packets and more that enter the queue; a thirtieth of a second before. Single packets
//!   beside such frames, as audio's, only count for the least delay.
//! - Of a source of single packets those of a sixtieth of a second count as one frame, which is late by its last packet's delay: it has no
//!   spread. What such a source finds is a queue, not a utilisation below one.
//! - The bitrate of a reported frame is of what arrived of it (section 6, *Handling packet losses*). Where nothing arrived, the frame counts
//!   as one with R > 1, and not for the smoothed R. Losses have no other effect.
//! - A probe is 21 bytes of RTP: a header, an extension and the count of padding. They take at most a twentieth of a frame's bytes, so
//!   that there are fewer at low rates. A frame with R below one waits for its probes' reports, or the next frame's.
//! - One increase at most doubles the bitrate; a step A is at most a quarter of it, of which the paper says that there are bounds: where
//!   this one acts, below a twelfth of B_max, steps grow with the bitrate, by which flows do not become alike. Each waits for its frame,
//!   as the paper's increase does. Where losses alone bring the smoothed R above one, only the decrease counts.
//! - B_max is the application's ceiling; the paper's was 50 Mbit/s. The logarithm is natural, of a rate of at least e Mbit/s.
//! - The queued bytes are those in flight without what the receiving rate explains over the least time of 10 s from a departure to its report.
//! - The rate after a drain is that of the window, but never below the drain's own. The window begins again.
//! - The first frame is paced at twice its interval's rate, none at more than 12.5 times.
//! - A frame is overdue two intervals after that least time.
//! - Half a second without a report (`feedback_timeout`) halves the bitrate.
//! - Rates include RTP's header.

mod bitrate;
mod config;
mod equations;
mod probing;

#[cfg(test)]
mod tests;

use crate::controller::{Controller, Limits, ProbeCluster, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket, TransportFeedback};
use crate::parts::feedback_timeout::FeedbackTimeout;
use crate::parts::recent_least::RecentLeast;
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use bitrate::Bitrate;
pub use config::Config;
use probing::Probing;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// RTP header with one extension, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);
/// Frame intervals beyond the least time to a report after which a frame is overdue. Weir's choice.
const OVERDUE: f64 = 2.0;

/// Pudica, sender side.
#[derive(Clone, Debug)]
pub struct Pudica {
    config: Config,
    limits: Limits,
    probing: Probing,
    bitrate: Bitrate,
    /// The least time of the window from a packet's departure to its report.
    least_report: RecentLeast,
    /// Bytes between encoder and pacer as the last frame entered.
    queued: DataSize,
    /// Utilisation of the last frame.
    utilisation: f64,
    probe_id: u32,
    is_probe_due: bool,
    silence: FeedbackTimeout,
    target: Target,
}

impl Pudica {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("pudica")?;
        let rate = start.limits.clamp(start.rate);
        let mut c = Self {
            config,
            limits: start.limits,
            probing: Probing::new(),
            bitrate: Bitrate::new(rate.as_bps_f64(), start.now),
            least_report: RecentLeast::default(),
            queued: DataSize::ZERO,
            utilisation: f64::NAN,
            probe_id: 0,
            is_probe_due: false,
            silence: FeedbackTimeout::new(config.feedback_timeout),
            target: Target::paced(rate, rate),
        };
        c.set_target();
        Ok(c)
    }

    fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        self.silence.on_feedback();
        if let Some(newest) = f.packets.iter().rev().find(|p| p.arrival.is_some()) {
            self.least_report.observe(f.now - newest.departure, f.now, self.config.delay_window);
        }
        for p in f.packets {
            self.probing.on_fate(&self.config, p, f.now);
            self.on_measured(f);
        }
        self.probing.on_report_end(f.now);
        self.on_measured(f);
        self.set_target();
    }

    /// Takes what frames have found.
    fn on_measured(&mut self, f: &TransportFeedback<'_>) {
        while let Some(m) = self.probing.take(&self.config) {
            self.utilisation = m.utilisation.min(MOST_SHOWN);
            let base = self.least_report.get().unwrap_or(TimeDelta::ZERO).as_secs_f64();
            let in_flight = f.bytes_in_flight.as_bytes() as f64;
            let queued = |receiving: f64| (in_flight - receiving / 8.0 * base).max(0.0);
            let greatest = self.limits.ceiling.as_bps_f64();
            self.bitrate.on_frame(&self.config, &m, queued, greatest, f.now);
            self.bound();
        }
    }

    fn bound(&mut self) {
        self.bitrate.bound(self.limits.floor.as_bps_f64(), self.limits.ceiling.as_bps_f64());
    }

    fn set_target(&mut self) {
        let bps = self.bitrate.next(&self.config);
        let media = self.limits.clamp(DataRate::from_bps_f64(bps));
        // A frame that is larger than its share of the bitrate takes no longer, nor does a queue.
        let frame = self.queued.as_bytes() as f64 * 8.0 / self.probing.interval();
        let pacing = DataRate::from_bps_f64(self.probing.pace() * bps.max(frame)).max(media);
        self.target = Target { overhead: RTP_HEADER, ..Target::paced(media, pacing) };
    }
}

/// Most that [`Controller::metrics`] shows of a frame's utilisation: where nothing has arrived it is infinite.
const MOST_SHOWN: f64 = 100.0;

impl Algorithm for Pudica {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            feedback: Some(FeedbackPlan {
                // Arrivals to 0.25 ms: those of RFC 8888, to 0.98 ms, are half of that late in the mean against the least, a frame and four
                // probes by 0.15 of an interval of 60 Hz.
                format: FeedbackFormat::TransportWide,
                // The paper's acknowledgements come with each packet (section 5.1).
                min_interval: TimeDelta::from_millis(5),
                max_interval: TimeDelta::from_millis(50),
                bandwidth_share: 0.05,
            }),
            params: Config::params(),
            ..Spec::new(
                "pudica",
                "Frames whose queue is gone before the next, by the share of the link that each finds in use",
                "Wang et al., NSDI 2024",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Pudica {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.silence.on_packet(packet.now);
        self.probing.on_sent(&self.config, packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(f) = cue {
            self.on_feedback(f);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.bound();
        self.set_target();
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.probing.on_queued(queue);
        self.queued = queue.queued;
        let usual = self.least_report.get();
        let wait = usual.map(|t| t + TimeDelta::from_secs_f64(OVERDUE * self.probing.interval()));
        let is_late = self.probing.next_delay(queue.now).zip(wait).is_some_and(|(delay, wait)| delay > wait);
        self.bitrate.on_encoded(is_late);
        self.set_target();
        true
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.is_probe_due |= self.probing.on_probe_due(now);
        if self.silence.expire(now) {
            self.bitrate.on_silence(now);
            self.bound();
            self.set_target();
        }
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        let probe = self.probing.next_probe().map(|at| (at, TimeoutReason::Probe));
        match (probe, self.silence.poll()) {
            (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
            (a, b) => a.or(b),
        }
    }
    fn poll_probe(&mut self, _: Timestamp) -> Option<ProbeCluster> {
        if !core::mem::take(&mut self.is_probe_due) {
            return None;
        }
        self.probe_id = self.probe_id.checked_add(1).unwrap_or(1);
        let rate = self.target.pacing_rate;
        Some(ProbeCluster { id: self.probe_id, rate, min_packets: 1, min_size: DataSize::ZERO })
    }
    fn target(&self) -> Target {
        self.target
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("utilisation", self.utilisation);
        out("smoothed_utilisation", self.bitrate.smoothed().unwrap_or(f64::NAN));
        out("pace", self.probing.pace());
        out("is_draining", f64::from(u8::from(self.bitrate.is_draining())));
        out("frame_interval_ms", self.probing.interval() * 1e3);
    }
}
