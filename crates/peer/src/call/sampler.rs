//! Counts of a call's thread, and its samples.

use super::Totals;
use super::ends::Ends;
use super::samples::{INTERVAL, Sample};
use crate::transport::Transport;
use weir_session::Endpoint;
use weir_units::{DataRate, DataSize, PathId, TimeDelta, Timestamp};

/// Time over which rates are measured.
const WINDOW: TimeDelta = TimeDelta::from_millis(500);

/// CPU time of this thread, ms, where the kernel counts it.
fn cpu_ms() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(counts.split(' ').next()?.parse::<u64>().ok()? / 1_000_000)
}

/// Bytes of the last half second.
#[derive(Default)]
struct Meter {
    parts: std::collections::VecDeque<(Timestamp, u64)>,
    now: u64,
}

impl Meter {
    fn add(&mut self, bytes: usize) {
        self.now += bytes as u64;
    }
    /// The rate at the end of an interval.
    fn turn(&mut self, now: Timestamp) -> f64 {
        self.parts.push_back((now, std::mem::take(&mut self.now)));
        while self.parts.front().is_some_and(|(at, _)| now - *at >= WINDOW) {
            self.parts.pop_front();
        }
        let bytes = self.parts.iter().map(|(_, b)| b).sum();
        let time = (INTERVAL * self.parts.len() as i64).min(WINDOW);
        DataRate::from_size_over(DataSize::from_bytes(bytes), time).map_or(0.0, DataRate::as_bps_f64)
    }
}

/// Feedback since the last sample.
#[derive(Default)]
struct Reported {
    /// The newest packet counted.
    newest: Option<u64>,
    received: u64,
    lost: u64,
    /// Sum of one-way delays, by two clocks.
    delays_ms: f64,
    least_ms: Option<f64>,
}

/// Counts a call's packets, and makes its samples.
#[derive(Default)]
pub(super) struct Sampler {
    sent: Meter,
    received: Meter,
    reported: Reported,
    pub(super) totals: Totals,
}

impl Sampler {
    /// A packet of RTP was sent, of this length with SRTP's tag.
    pub(super) fn on_sent(&mut self, length: usize) {
        self.totals.packets_sent += 1;
        self.totals.bytes_sent += length as u64;
        self.sent.add(length);
    }

    /// A packet of RTP was received, of this length after decryption.
    pub(super) fn on_received(&mut self, length: usize) {
        self.totals.packets_received += 1;
        self.totals.bytes_received += length as u64;
        self.received.add(length);
    }

    /// The session has read feedback.
    pub(super) fn on_reports(&mut self, endpoint: &Endpoint) {
        let reported = &mut self.reported;
        for p in endpoint.path(PathId::FIRST).map_or(&[][..], |p| p.reported_packets()) {
            if reported.newest.is_some_and(|n| p.sequence <= n) {
                continue;
            }
            reported.newest = Some(p.sequence);
            let Some(arrival) = p.arrival else {
                reported.lost += 1;
                continue;
            };
            let delay = (arrival.as_nanos() - p.departure.as_nanos()) as f64 / 1e6;
            reported.received += 1;
            reported.delays_ms += delay;
            reported.least_ms = Some(reported.least_ms.map_or(delay, |least: f64| least.min(delay)));
        }
    }

    /// The sample of an interval, and the controller's internal values.
    pub(super) fn sample(
        &mut self,
        now: Timestamp,
        ends: Option<&mut Ends>,
        transport: &Transport,
    ) -> (Sample, Vec<(&'static str, f64)>) {
        let mut sample =
            Sample { sent_bps: self.sent.turn(now), received_bps: self.received.turn(now), ..Sample::default() };
        let mut internals = Vec::new();
        let r = &mut self.reported;
        let all = r.received + r.lost;
        self.totals.reported_received += r.received;
        self.totals.reported_lost += r.lost;
        sample.loss = (all > 0).then(|| r.lost as f64 / all as f64);
        sample.delay_ms = r.least_ms.filter(|_| r.received > 0).map(|least| r.delays_ms / r.received as f64 - least);
        (r.received, r.lost, r.delays_ms) = (0, 0, 0.0);
        if let Some(ends) = ends {
            let e = &ends.endpoint;
            sample.target_bps = e.target().map(|t| t.media_rate.as_bps_f64());
            sample.rtt_ms = e.stats().rtt().map(TimeDelta::as_millis_f64);
            sample.queue_ms = e.stats().queue(now).1.as_millis_f64();
            e.stats().metrics(&mut |name, value| internals.push((name, value)));
            let t = &mut self.totals;
            let sent = e.stats().send_counters();
            t.frames_sent = sent.frames;
            (t.fec_sent, t.fec_bytes_sent) = (sent.repair_packets, sent.repair_bytes);
            let repair = e.stats().repair_counters();
            (t.fec_received, t.fec_recovered) = (repair.packets, repair.window.recovered);
            t.retransmitted = e.stats().retransmission_counters().packets;
            t.recovered = e.stats().nack_counters().recovered;
            t.key_frame_requests = e.stats().picture_counters().key_requests;
            if let Some(sound) = &ends.sound {
                t.audio_sent = sound.sent(e);
                (t.audio_decoded, t.audio_concealed) = (sound.heard.decoded, sound.heard.concealed);
                t.audio_audible = sound.heard.audible;
                // Frames of audio are counted apart.
                t.frames_sent = t.frames_sent.saturating_sub(t.audio_sent);
            }
            if let Some(receiving) = &ends.receiving {
                (t.frames_decoded, t.frames_damaged) = receiving.decoded();
            }
        }
        let (ice, srtp, refused) = transport.counters();
        self.totals.refused = srtp.refused + refused.early + refused.bad_records;
        self.totals.strangers = ice.refused + refused.strangers + refused.unknown;
        self.totals.cpu_ms = cpu_ms();
        (sample, internals)
    }
}
