//! SQP: each frame is a packet train, sent in a share of its interval, and the rate moves to a share of what the trains find.
//!
//! D. Ray and others, "SQP: Congestion Control for Low-Latency Interactive Video Streaming", arXiv 2207.11857. Of the paper only the abstract was at
//! hand; equations and numbers are those of an implementation that names the paper's symbols and defaults: LapseLove/Python-tquic at
//! dc11911, `src/congestion_control/sqp.rs`. In the order of a frame's way:
//!
//! a frame is queued → paced at m · B → `trains` (its span, above the least one-way delay) → `equations` (the sample S, the step of B) → target.
//!
//! | rule | source |
//! |---|---|
//! | a frame leaves at m = 2 times the bitrate B, which is what the encoder gets | `pacing_rate`; the abstract: "frame-coupled, paced packet trains" |
//! | S = F γ / (R_end - S_start - Δ_min + (R_end - R_start) (γ - 1)), γ = F_max / F, F_max = B · interval | `on_ack` |
//! | Δ_min: the least delay of two smoothed round trips | `set_window`; the abstract: "adaptive one-way delay measurement" |
//! | B + δ (r (T S / B - 1) - (B / (T S) - 1)) after each frame, with δ = 320 kbit/s, r = 0.25, T = 0.9 | `on_ack`, `SQPConfig` |
//!
//! That program has acknowledgements of QUIC and takes half of a round trip for the one-way delay. Here S_start is a departure, R_start and
//! R_end are arrivals by feedback, as its names say. For what it leaves open, the choices made:
//!
//! - F is what arrived of a frame, so that losses lower S by their share. Nothing else answers to losses.
//! - The interval is measured: the mean time between frames of two packets and more that enter the queue; a thirtieth of a second before. Single
//!   packets beside such frames, as audio's, count for the least delay alone.
//! - S is at most m · B: a train sent at that rate shows no more. A least delay from after the frame would otherwise make S infinite or negative.
//! - Where a frame's first packet is lost, it counts as arrived at the least delay.
//! - A source of single packets makes no trains: those of a sixtieth of a second count as one, sent at m · B, that waited as long
//!   as its last packet did beyond the least delay of 10 s. Two round trips would take a standing queue for an empty one, since such a
//!   source never lets the queue run empty as frames do.
//! - Nothing of a frame arrived: half of the bitrate counts as S. So does half a second without a report (`feedback_timeout`).
//! - Rates include RTP's header.
//!
//! Δ_min has the transmission of a packet in it, so that S of a frame of n packets on an idle link is n / (n - 1) of the capacity. Frames of
//! up to ten packets therefore fill the link, and a queue of a packet or two stays; larger ones leave a tenth of it.

mod config;
mod equations;
mod trains;

#[cfg(test)]
mod tests;

use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket, TransportFeedback};
use crate::parts::feedback_timeout::FeedbackTimeout;
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
pub use config::Config;
use equations::{sample, step};
use trains::{Train, Trains};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// RTP header with one extension, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);
/// S as a share of the bitrate where nothing of a frame arrived, or no report comes. Weir's choice.
const NOTHING: f64 = 0.5;
/// Least bitrate to go on from, in bit/s: the step's ratios need one.
const LEAST: f64 = 1_000.0;

/// SQP, sender side.
#[derive(Clone, Debug)]
pub struct Sqp {
    config: Config,
    limits: Limits,
    trains: Trains,
    /// B, in bit/s.
    bandwidth: f64,
    /// S of the last frame, in bit/s.
    sample: f64,
    silence: FeedbackTimeout,
    target: Target,
}

impl Sqp {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("sqp")?;
        let rate = start.limits.clamp(start.rate);
        let mut c = Self {
            config,
            limits: start.limits,
            trains: Trains::new(),
            bandwidth: rate.as_bps_f64().max(LEAST),
            sample: f64::NAN,
            silence: FeedbackTimeout::new(config.feedback_timeout),
            target: Target::paced(rate, rate),
        };
        c.set_target();
        Ok(c)
    }

    fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        self.silence.on_feedback();
        self.trains.on_report(f.rtt);
        for p in f.packets {
            self.trains.on_fate(&self.config, p, f.now);
            self.on_trains();
        }
        self.trains.on_report_end(f.now);
        self.on_trains();
        self.set_target();
    }

    fn on_trains(&mut self) {
        while let Some(train) = self.trains.take() {
            let greatest = self.config.pacing * self.bandwidth;
            let found = match train {
                Train::Arrived { interval, received, span, receive } => {
                    sample(self.bandwidth * interval, received.max(1) as f64 * 8.0, span, receive, greatest)
                }
                Train::Single { interval, arrived, queue } => {
                    // F_max at m · B, and then the queue.
                    let span = interval / self.config.pacing + queue;
                    (arrived * self.bandwidth * interval / span).min(greatest)
                }
                Train::Lost => NOTHING * self.bandwidth,
            };
            self.on_sample(found);
        }
    }

    fn on_sample(&mut self, found: f64) {
        self.sample = found;
        self.set_bandwidth(self.bandwidth + step(&self.config, self.bandwidth, found));
    }

    fn set_bandwidth(&mut self, bps: f64) {
        self.bandwidth = self.limits.clamp_bps(bps).max(LEAST);
    }

    fn set_target(&mut self) {
        let media = self.limits.clamp(DataRate::from_bps_f64(self.bandwidth));
        let pacing = DataRate::from_bps_f64(self.config.pacing * self.bandwidth).max(media);
        self.target = Target { overhead: RTP_HEADER, ..Target::paced(media, pacing) };
    }
}

impl Algorithm for Sqp {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            feedback: Some(FeedbackPlan {
                // Arrivals to 0.25 ms: RFC 8888's, to 0.98 ms, are a tenth of a train that is sent in half of an interval of 60 Hz.
                format: FeedbackFormat::TransportWide,
                // The program's acknowledgements are QUIC's, of every second packet.
                min_interval: TimeDelta::from_millis(5),
                max_interval: TimeDelta::from_millis(50),
                bandwidth_share: 0.05,
            }),
            params: Config::params(),
            ..Spec::new(
                "sqp",
                "Frames as packet trains at twice the bitrate, which moves to 0.9 of what they find",
                "Ray et al., arXiv 2207.11857, by LapseLove/Python-tquic",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Sqp {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.silence.on_packet(packet.now);
        self.trains.on_sent(packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(f) = cue {
            self.on_feedback(f);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.set_bandwidth(self.bandwidth);
        self.set_target();
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.trains.on_queued(queue);
        false
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.expire(now) {
            self.set_bandwidth(NOTHING * self.bandwidth);
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
        out("sample_bps", self.sample);
        out("bandwidth_bps", self.bandwidth);
        out("frame_interval_ms", self.trains.interval() * 1e3);
        out("least_delay_window_ms", self.trains.window(&self.config).as_millis_f64());
    }
}
