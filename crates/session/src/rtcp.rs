//! RTCP packets written by an endpoint: compounds with SR or RR, SDES and XR, and the reports of receiver halves.

use crate::identity::FeedbackSsrcs;
use crate::statistics::BlockNumbers;
use weir_cc::Report;
use weir_cc::cue::NadaMode;
use weir_units::{DataSize, TimeDelta, Timestamp};
use weir_wire::ntp::{NtpTime, delta_to_compact};
use weir_wire::rtcp::xr::{Block, Blocks, DlrrEntry};
use weir_wire::rtcp::{
    Bye, NadaReport, Nadu, NaduEntry, RateLimit, ReceiverReport, Remb, ReportBlock, ScaledRate, Sdes, SdesChunk,
    SdesChunks, SdesItem, SdesItems, SdesType, SenderInfo, SenderReport, Tmmbr, Xr,
};

/// A compact NTP time received from the other end, and when, from which LSR and DLSR are computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub compact: u32,
    pub at: Timestamp,
}

impl Heard {
    /// The pair to echo: the time itself, and its age in 1/65,536 s.
    fn echo(heard: Option<Self>, now: Timestamp) -> (u32, u32) {
        heard.map_or((0, 0), |h| (h.compact, delta_to_compact(now.saturating_since(h.at))))
    }
}

/// The report block for the other end.
pub(crate) fn report_block(ssrc: u32, n: &BlockNumbers, last_sr: Option<Heard>, now: Timestamp) -> ReportBlock {
    let (last_sr, delay_since_last_sr) = Heard::echo(last_sr, now);
    ReportBlock {
        ssrc,
        fraction_lost: n.fraction_lost,
        cumulative_lost: n.cumulative_lost,
        highest_sequence: n.highest_sequence,
        jitter: n.jitter,
        last_sr,
        delay_since_last_sr,
    }
}

/// Most report blocks per packet (RFC 3550, section 6.4.1: a count of 5 bits).
const MAX_BLOCKS: usize = 31;

/// Lists from which compounds are assembled.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Blocks on the other end's streams.
    pub blocks: Vec<ReportBlock>,
    /// Source and sender information of this end's other sources: further streams, repair, retransmission.
    pub beside: Vec<(u32, SenderInfo)>,
    /// Sources that send a BYE.
    pub sources: Vec<u32>,
    /// A received packet without RED.
    pub without_red: Vec<u8>,
    chunks: Vec<u32>,
}

impl Scratch {
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.beside.clear();
        self.sources.clear();
    }
}

/// The contents of a regular compound, apart from the lists.
pub(crate) struct Compound<'a> {
    pub ssrc: u32,
    pub cname: &'a str,
    pub info: Option<SenderInfo>,
    /// Receiver reference time, sent by receivers that need the round-trip time (RFC 3611, section 4.4).
    pub reference: Option<NtpTime>,
    /// The other end's reference time to be answered: its SSRC, and when it was received.
    pub reference_heard: Option<(u32, Heard)>,
}

impl Compound<'_> {
    pub(crate) fn write_into(&self, lists: &mut Scratch, now: Timestamp, out: &mut Vec<u8>) {
        let ssrc = self.ssrc;
        let mut groups = lists.blocks.chunks(MAX_BLOCKS);
        let blocks = groups.next().unwrap_or_default().into();
        match self.info {
            Some(info) => SenderReport { ssrc, info, blocks, extension: &[] }.write_into(out),
            None => ReceiverReport { ssrc, blocks, extension: &[] }.write_into(out),
        }
        for blocks in groups {
            ReceiverReport { ssrc, blocks: blocks.into(), extension: &[] }.write_into(out);
        }
        // Other sources of the same end join its compound (RFC 8108, section 5.3). All reports are by the end's own
        // source, as in a reporting group (RFC 8861).
        for &(ssrc, info) in &lists.beside {
            SenderReport { ssrc, info, blocks: Default::default(), extension: &[] }.write_into(out);
        }
        let items = [SdesItem { kind: SdesType::CNAME, value: self.cname.as_bytes() }];
        let items = SdesItems::Own(&items);
        lists.chunks.clear();
        lists.chunks.push(ssrc);
        lists.chunks.extend(lists.beside.iter().map(|b| b.0));
        for sources in lists.chunks.chunks(MAX_CHUNKS) {
            let mut chunks = [SdesChunk { ssrc, items }; MAX_CHUNKS];
            for (chunk, &ssrc) in chunks.iter_mut().zip(sources) {
                chunk.ssrc = ssrc;
            }
            Sdes { chunks: SdesChunks::Own(&chunks[..sources.len()]) }.write_into(out);
        }
        if let Some(ntp) = self.reference {
            Xr { ssrc, blocks: Blocks::Own(&[Block::Rrtr(ntp)]) }.write_into(out);
        }
        if let Some((from, heard)) = self.reference_heard {
            let (last_rr, delay_since_last_rr) = Heard::echo(Some(heard), now);
            let entries = [DlrrEntry { ssrc: from, last_rr, delay_since_last_rr }];
            Xr { ssrc, blocks: Blocks::Own(&[Block::Dlrr((&entries).into())]) }.write_into(out);
        }
    }
}

/// Sources per SDES packet.
const MAX_CHUNKS: usize = 8;

/// The next packet to be decoded, for NADU.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct NextUnit {
    pub sequence: u16,
    /// Time until it is decoded, if known.
    pub playout_delay: Option<TimeDelta>,
}

/// Context in which a receiver half's reports are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportContext {
    pub ssrcs: FeedbackSsrcs,
    /// Whether the profile has feedback messages.
    pub is_avpf: bool,
    /// Bytes of headers of lower layers in each packet (RFC 5104, section 4.2.1.2).
    pub overhead: u32,
    pub next_unit: NextUnit,
}

/// Appends a receiver half's report; without feedback messages if the profile has none.
pub(crate) fn write_report(report: &Report, context: &ReportContext, out: &mut Vec<u8>) {
    let ReportContext { ssrcs, is_avpf, overhead, next_unit } = *context;
    let FeedbackSsrcs { sender: ssrc, media: remote_ssrc } = ssrcs;
    match *report {
        Report::Remb { .. } | Report::Tmmbr { .. } | Report::NextDataUnit { .. } if !is_avpf => {}
        Report::Remb { rate } => {
            Remb { sender_ssrc: ssrc, media_ssrc: 0, rate: ScaledRate::new(rate), sources: (&[remote_ssrc]).into() }
                .write_into(out)
        }
        Report::Tmmbr { rate } | Report::NextDataUnit { rate } => {
            let overhead = u16::try_from(overhead).unwrap_or(u16::MAX);
            let entries = [RateLimit { ssrc: remote_ssrc, max_rate: ScaledRate::new(rate), overhead }];
            Tmmbr { sender_ssrc: ssrc, media_ssrc: 0, entries: (&entries).into() }.write_into(out);
        }
        Report::Nada { mode, aggregate_delay, receive_rate } => NadaReport {
            sender_ssrc: ssrc,
            media_ssrc: remote_ssrc,
            gradual: mode == NadaMode::GradualUpdate,
            x_curr: aggregate_delay,
            r_recv: receive_rate,
        }
        .write_into(out),
    }
    if let Report::NextDataUnit { .. } = report {
        // The buffer is a model, with room for everything that arrives before the deadline.
        let free_buffer = DataSize::from_bytes(u64::MAX);
        let NextUnit { sequence: next_sequence, playout_delay } = next_unit;
        let unit = NaduEntry { ssrc: remote_ssrc, playout_delay, next_sequence, next_unit: 0, free_buffer };
        Nadu { sender_ssrc: ssrc, entries: (&[unit]).into() }.write_into(out);
    }
}

/// Appends a goodbye of an end's sources.
pub(crate) fn write_bye(sources: &[u32], reason: Option<&str>, out: &mut Vec<u8>) {
    Bye { sources: sources.into(), reason: reason.map(str::as_bytes) }.write_into(out);
}
