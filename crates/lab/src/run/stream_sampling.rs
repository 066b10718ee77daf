//! Shares of the target of a call's streams.

use crate::results::StreamSummary;
use crate::scenario::{RtpFlow, RtpStream};
use weir_media::AUDIO_CLOCK_HZ;
use weir_media::audio::AudioPlayoutStats;
use weir_media::audio::emodel::{self, CodecImpairment};
use weir_session::allocation::MediaKind;
use weir_session::{Endpoint, IncomingId, OutgoingId, OutgoingStats};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Mean time in a packet that was played.
fn packet_time_ms(audio: &AudioPlayoutStats) -> Option<f64> {
    let samples = audio.played_samples as f64 / f64::from(AUDIO_CLOCK_HZ);
    (audio.played > 0).then(|| 1e3 * samples / audio.played as f64)
}

/// The E-model's score of delay and concealed sound.
fn mos(audio: &AudioPlayoutStats) -> Option<f64> {
    let (delay, concealed) = (audio.delay.mean()?, audio.concealed_share()?);
    Some(emodel::mos(emodel::rating(delay, concealed, CodecImpairment::G711_PLC)))
}

/// Samples a call's streams and summarises their shares of the target.
#[derive(Clone, Default, Debug)]
pub(super) struct StreamSampler {
    totals: Vec<ShareTotals>,
    last: Option<Timestamp>,
}

#[derive(Clone, Copy, Default, Debug)]
struct ShareTotals {
    is_on: bool,
    on: TimeDelta,
    sampled: TimeDelta,
    switches: u32,
    /// Bits: the stream's rate over time.
    bits: f64,
    /// Frames made at the last time whose frames are played before the flow stops.
    frames_due: u64,
}

impl StreamSampler {
    /// Samples the sending end; passes each stream's rate on. Frames made by now are played before the flow stops if `plays`.
    pub(super) fn sample(&mut self, sender: &Endpoint, now: Timestamp, plays: bool) -> Vec<DataRate> {
        let since = self.last.map_or(TimeDelta::ZERO, |last| now - last);
        let is_first = self.last.replace(now).is_none();
        let ids: Vec<OutgoingId> = sender.stats().outgoing_ids().collect();
        self.totals.resize(ids.len(), ShareTotals::default());
        let mut rates = Vec::with_capacity(ids.len());
        for (totals, id) in self.totals.iter_mut().zip(ids) {
            let Some(OutgoingStats { is_on, rate, counters, .. }) = sender.stats().outgoing(id) else { continue };
            totals.switches += u32::from(!is_first && is_on != totals.is_on);
            totals.is_on = is_on;
            totals.sampled += since;
            totals.bits += rate.as_bps_f64() * since.as_secs_f64();
            if is_on {
                totals.on += since;
            }
            if plays {
                totals.frames_due = counters.frames;
            }
            rates.push(rate);
        }
        rates
    }

    /// The streams' summaries at the end.
    pub(super) fn finish(&self, rtp: &RtpFlow, sender: &Endpoint, receiver: &Endpoint) -> Vec<StreamSummary> {
        let outgoing: Vec<OutgoingId> = sender.stats().outgoing_ids().collect();
        let incoming: Vec<IncomingId> = receiver.stats().incoming_ids().collect();
        let all = rtp.streams.iter().zip(&self.totals).zip(outgoing.into_iter().zip(incoming));
        all.filter_map(|((stream, totals), (out, inc))| {
            let out = sender.stats().outgoing(out)?;
            let (sent, resent) = (out.counters, out.retransmission);
            let other = receiver.stats().incoming(inc)?;
            let seconds = totals.sampled.as_secs_f64().max(1e-9);
            // Receiver reports count copies as received (RFC 3550, section 6.4.1): they would hide losses.
            let (expected, received) = (other.expected, other.received.saturating_sub(other.counters.copies));
            let bytes = sent.bytes + sent.repair_bytes + resent.bytes;
            Some(StreamSummary {
                name: stream.name.clone(),
                media: stream.demand.media.name().into(),
                share_bps: totals.bits / seconds,
                sent_bps: bytes as f64 * 8.0 / seconds,
                packets: sent.packets + sent.repair_packets + resent.packets,
                loss: if expected > 0 { expected.saturating_sub(received) as f64 / expected as f64 } else { 0.0 },
                padding: sent.padding_bytes as f64 / bytes.max(1) as f64,
                on: totals.on.as_secs_f64() / seconds,
                switches: totals.switches,
                concealed: other.audio.and_then(|s| s.concealed_share()),
                packet_time_ms: other.audio.as_ref().and_then(packet_time_ms),
                mos: other.audio.as_ref().and_then(mos),
                longest_silence_s: other.audio.map(|s| s.longest_silence.as_secs_f64()),
                frames: None,
            })
        })
        .collect()
    }

    /// Frames of each stream whose playout time is before the end; `None` for audio, and without playout.
    pub(super) fn frames(&self, rtp: &RtpFlow) -> Vec<Option<u64>> {
        let plays = |s: &RtpStream| rtp.playout_deadline.is_some() && s.demand.media == MediaKind::Video;
        rtp.streams.iter().zip(&self.totals).map(|(s, t)| plays(s).then_some(t.frames_due)).collect()
    }
}
