//! The sender's half of repair: an encoder over the media packets as they are sent, and a queue of repair packets.
//!
//! Repair packets are a separate RTP stream (as in RFC 8627), with its own source, sequence numbers and reports. They
//! are sent right after the media packet that completes them, through the pacer like any other. While a call sends
//! media only, RTP and transport-wide sequence numbers coincide and nothing is stored; from the first repair packet
//! on, `session::sent` stores both.

use crate::frame_repair::{ByFrames, FramePacket, FrameRepair};
use crate::identity::ParityFormat;
use crate::repair_format::{self, Format, RepairOf};
use crate::sent::SentStream;
use std::collections::VecDeque;
use weir_cc::RepairPlan;
use weir_cc::cue::PacketResult;
use weir_fec::{Encoder, Importance, Protection, Repair, Scheme, SchemeError};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Most repair packets queued: two of the largest Reed-Solomon blocks; beyond that the oldest are dropped.
const MAX_WAITING: usize = 512;

/// Source of repair packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RepairChoice {
    /// The controller's target.
    #[default]
    Controller,
    /// This scheme, regardless of the controller; [`Protection::Off`] disables repair.
    Fixed(Protection),
    /// As many repair packets as in the controller's target, each over a window of so many media packets that slides
    /// ([`Scheme::Rlc`]): a code that knows no blocks for plans that do.
    Sliding {
        /// Media packets of a window; more where a plan has fewer repair packets.
        window: u8,
    },
    /// By a policy that decides at the end of each frame, and when packets are sent again.
    ByFrames(FrameRepair),
}

/// Most packets in a group of ULPFEC: its mask reaches over 48, among which are repair packets and padding.
const MOST_IN_RED: u8 = 40;

/// A controller's plan as a code. Parity over 1 to 110 packets, the range of a mask; in FlexFEC-03 it is 109.
fn protection_of(plan: RepairPlan, format: ParityFormat) -> Protection {
    let longest = match format {
        ParityFormat::FlexFec => 110,
        ParityFormat::FlexFec03 { .. } => 109,
        ParityFormat::UlpFec(_) => MOST_IN_RED,
    };
    match plan {
        RepairPlan::Parity { interval } | RepairPlan::Standby { interval } => {
            Scheme::Parity { interval: interval.clamp(1, longest) }.into()
        }
        RepairPlan::ReedSolomon { .. } | RepairPlan::BlockStandby { .. } if format != ParityFormat::FlexFec => {
            Protection::Off
        }
        RepairPlan::ReedSolomon { block, repair } | RepairPlan::BlockStandby { block, repair } => {
            Scheme::ReedSolomon { n: block, repair }.into()
        }
        // The plan is of a kind that this version does not know.
        _ => Protection::Off,
    }
}

/// The plan's rate by a sliding-window code.
fn sliding(plan: RepairPlan, window: u8) -> Protection {
    let (sources, repairs) = match plan {
        RepairPlan::Parity { interval } | RepairPlan::Standby { interval } => (interval.max(1), 1),
        RepairPlan::ReedSolomon { block, repair } => (block.saturating_sub(repair).max(1), repair),
        _ => return Protection::Off,
    };
    Scheme::rlc(window.max(sources), sources, repairs).ok().into()
}

/// A queued repair packet: its payload; the RTP header is added when it is sent.
#[derive(Debug)]
pub(crate) struct RepairPacket {
    pub bytes: Vec<u8>,
    /// Zero bytes that follow, carried as a length only.
    pub zeros: u32,
    pub format: Format,
}

impl RepairPacket {
    /// The payload's size, in RED with its header; in FlexFEC including that of the CSRC in its RTP header.
    pub(crate) fn size(&self) -> u64 {
        let csrc = if self.format == Format::FlexFec { 4 } else { 0 };
        csrc + self.bytes.len() as u64 + u64::from(self.zeros)
    }
}

/// Makes and queues repair packets.
#[derive(Debug)]
pub(crate) struct RepairSender {
    choice: RepairChoice,
    plan: RepairPlan,
    /// None before the first plan: most calls have none.
    encoder: Option<Box<Encoder>>,
    /// Beside the encoder, which then protects nothing.
    by_frames: Option<Box<ByFrames>>,
    /// Whether blocks are made and not sent ([`RepairPlan::BlockStandby`]), and the media packets of those that were not.
    keeps_blocks: bool,
    kept: u64,
    active: bool,
    media_ssrc: u32,
    format: ParityFormat,
    /// Source block number of Reed-Solomon, and the first packet of the last block.
    block: (u32, u64),
    waiting: VecDeque<RepairPacket>,
    waiting_size: u64,
    /// The packet being sent.
    popped: Option<RepairPacket>,
    spare: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    /// The repair stream as sent.
    pub stream: SentStream,
    /// Media packets under a scheme.
    pub protected: u64,
    /// Repair packets not sent: no room, or a coverage that the format cannot express.
    pub dropped: u64,
    /// Plans that no code supports.
    pub refused: u64,
}

impl RepairSender {
    pub(crate) fn new(choice: RepairChoice, first_sequence: u64, media_ssrc: u32) -> Self {
        let mut s = Self {
            choice,
            plan: RepairPlan::Off,
            encoder: None,
            by_frames: None,
            keeps_blocks: false,
            kept: 0,
            active: false,
            media_ssrc,
            format: ParityFormat::default(),
            block: (0, 0),
            waiting: VecDeque::new(),
            waiting_size: 0,
            popped: None,
            spare: Vec::new(),
            scratch: Vec::new(),
            stream: SentStream::new(first_sequence, true),
            protected: 0,
            dropped: 0,
            refused: 0,
        };
        s.refused += u64::from(s.apply().is_err());
        s
    }

    /// The same with parity in this format.
    pub(crate) fn with_parity(mut self, format: ParityFormat) -> Self {
        self.format = format;
        if format != ParityFormat::FlexFec && self.by_frames.take().is_some() {
            self.active = false;
        }
        self
    }

    /// Media has another source from now on. Packets sent by the old one are left unprotected.
    pub(crate) fn set_media_ssrc(&mut self, ssrc: u32) {
        self.media_ssrc = ssrc;
        self.discard_all();
    }

    /// Whether media is currently protected, or a group is kept for a later probe.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Whether padding is protected too, since a Reed-Solomon block covers consecutive packets, as a window does that slides.
    pub(crate) fn wants_padding(&self) -> bool {
        matches!(self.protection(), Protection::Equal(Scheme::ReedSolomon { .. } | Scheme::Rlc { .. }))
    }

    /// Returns the protection that the encoder applies.
    fn protection(&self) -> Protection {
        self.encoder.as_ref().map_or(Protection::Off, |e| e.protection())
    }

    /// Applies the controller's plan.
    pub(crate) fn follow(&mut self, plan: RepairPlan) {
        if plan != self.plan {
            self.plan = plan;
            self.refused += u64::from(!matches!(self.choice, RepairChoice::Fixed(_)) && self.apply().is_err());
            self.queue_completed();
        }
    }

    /// Sets who decides and what, from the next packet on.
    pub(crate) fn choose(&mut self, choice: RepairChoice) -> Result<(), SchemeError> {
        let before = core::mem::replace(&mut self.choice, choice);
        if before != choice {
            self.by_frames = None;
        }
        self.apply().inspect_err(|_| self.choice = before)
    }

    fn apply(&mut self) -> Result<(), SchemeError> {
        let protection = match self.choice {
            RepairChoice::Controller => protection_of(self.plan, self.format),
            RepairChoice::Fixed(protection) => protection,
            RepairChoice::Sliding { window } if self.format == ParityFormat::FlexFec => sliding(self.plan, window),
            RepairChoice::Sliding { .. } | RepairChoice::ByFrames(_) => Protection::Off,
        };
        self.begin_by_frames();
        let by_plan = !matches!(self.choice, RepairChoice::Fixed(_));
        let is_standby = by_plan && matches!(self.plan, RepairPlan::Standby { .. });
        if self.encoder.is_none() && protection == Protection::Off {
            self.active = self.by_frames.is_some();
            return Ok(());
        }
        let keeps_blocks = self.choice == RepairChoice::Controller
            && protection != Protection::Off
            && matches!(self.plan, RepairPlan::BlockStandby { .. });
        let encoder = self.encoder.get_or_insert_default();
        encoder.set_standby(is_standby);
        encoder.set_protection(protection)?;
        if self.keeps_blocks && !keeps_blocks {
            self.kept -= encoder.open() as u64;
            encoder.flush();
        } else if keeps_blocks && !self.keeps_blocks {
            encoder.abandon();
        }
        self.keeps_blocks = keeps_blocks;
        self.active = protection != Protection::Off || self.by_frames.is_some();
        if protection == Protection::Off {
            // A group cut short would still cost what was just switched off.
            encoder.abandon();
        }
        Ok(())
    }

    /// Begins with a policy of frames, or ends it. Formats for other programs have no packets for it.
    fn begin_by_frames(&mut self) {
        match self.choice {
            RepairChoice::ByFrames(choice) if self.format == ParityFormat::FlexFec => {
                self.by_frames.get_or_insert_with(|| Box::new(ByFrames::new(choice)));
            }
            _ => self.by_frames = None,
        }
    }

    /// Whether a policy of frames decides.
    pub(crate) fn is_by_frames(&self) -> bool {
        self.by_frames.is_some()
    }

    /// A packet of media was sent, with `zeros` payload bytes not in `packet`, and a policy of frames decides.
    pub(crate) fn on_frame_packet(&mut self, of: FramePacket, packet: &[u8], zeros: u32) {
        let Ok(symbol) = repair_format::protected(packet, zeros, self.format, &mut self.scratch) else { return };
        let Some(by_frames) = &mut self.by_frames else { return };
        by_frames.on_packet(of, symbol);
        self.protected += 1;
        self.queue_by_frames(of.now);
    }

    /// These packets are going to be sent again. Returns the bytes of repair packets that go with them.
    pub(crate) fn on_resent(&mut self, sequences: &[u64], now: Timestamp) -> u64 {
        let Some(by_frames) = &mut self.by_frames else { return 0 };
        by_frames.on_resent(sequences, now);
        let before = self.waiting_size;
        self.queue_by_frames(now);
        self.waiting_size.saturating_sub(before)
    }

    /// A report of this fraction lost was received.
    pub(crate) fn on_report(&mut self, lost: f64, rtt: Option<TimeDelta>, now: Timestamp) {
        if let Some(by_frames) = &mut self.by_frames {
            by_frames.on_report(lost, rtt, now);
        }
    }

    /// Feedback of any stream's packets, in the order in which they were sent, of which a policy of frames learns.
    pub(crate) fn on_results(&mut self, results: &[PacketResult]) {
        if let Some(by_frames) = &mut self.by_frames {
            by_frames.on_results(results);
        }
    }

    /// Internal values of a policy of frames, by name.
    pub(crate) fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if let Some(by_frames) = &self.by_frames {
            by_frames.metrics(out);
        }
    }

    /// Later frames have pictures of so many pixels.
    pub(crate) fn set_pixels(&mut self, pixels: u32) {
        if let Some(by_frames) = &mut self.by_frames {
            by_frames.set_pixels(pixels);
        }
    }

    /// The rate that media and repair packets share.
    pub(crate) fn set_rate(&mut self, rate: DataRate) {
        if let Some(by_frames) = &mut self.by_frames {
            by_frames.set_rate(rate);
        }
    }

    /// Share of the rate that a policy of frames takes at least.
    pub(crate) fn share(&self) -> f64 {
        self.by_frames.as_ref().map_or(0.0, |b| b.share())
    }

    /// Queues what the policy of frames has ordered.
    fn queue_by_frames(&mut self, now: Timestamp) {
        let Some(mut by_frames) = self.by_frames.take() else { return };
        while let Some(repair) = by_frames.poll(now) {
            self.queue(&repair);
        }
        self.by_frames = Some(by_frames);
        self.drop_excess();
    }

    /// A media packet was sent, with `zeros` payload bytes not in `packet`. Repair packets that it completes are queued
    /// for [`Self::pop`]. Groups of key frames end with the frame.
    pub(crate) fn on_media(
        &mut self,
        sequence: u64,
        packet: &[u8],
        zeros: u32,
        importance: Importance,
        ends_key_frame: bool,
    ) {
        // Longer than the length field allows: sent without protection.
        let Ok(symbol) = repair_format::protected(packet, zeros, self.format, &mut self.scratch) else { return };
        let Some(encoder) = &mut self.encoder else { return };
        encoder.push(sequence, symbol, importance);
        self.kept += u64::from(self.keeps_blocks);
        if ends_key_frame && matches!(encoder.protection(), Protection::ByImportance { .. }) {
            encoder.flush();
        }
        self.queue_completed();
    }

    /// Completes the open block as it is.
    pub(crate) fn complete(&mut self) {
        let Some(encoder) = &mut self.encoder else { return };
        encoder.flush();
        self.queue_completed();
    }

    /// Queues the repair packets that the encoder has completed.
    fn queue_completed(&mut self) {
        let Some(mut encoder) = self.encoder.take() else { return };
        self.protected = encoder.counts().protected.saturating_sub(self.kept);
        while let Some(repair) = encoder.poll_repair() {
            if self.keeps_blocks {
                continue;
            }
            let base = repair.coverage.base();
            if self.block.1 != base {
                self.block = (weir_wire::fec::reed_solomon::Field::default().next_block(self.block.0), base);
            }
            self.queue(&repair);
        }
        self.encoder = Some(encoder);
        self.drop_excess();
    }

    /// Queues a repair packet.
    fn queue(&mut self, repair: &Repair<'_>) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        let masks = matches!(self.choice, RepairChoice::ByFrames(_));
        let of = RepairOf { media_ssrc: self.media_ssrc, block: self.block.0, parity: self.format, masks };
        match repair_format::write(repair, of, &mut bytes) {
            Some((format, zeros)) => {
                let packet = RepairPacket { bytes, zeros, format };
                self.waiting_size += packet.size();
                self.waiting.push_back(packet);
            }
            None => {
                self.dropped += 1;
                self.spare.push(bytes);
            }
        }
    }

    fn drop_excess(&mut self) {
        while self.waiting.len() > MAX_WAITING
            && let Some(oldest) = self.pop()
        {
            self.dropped += 1;
            self.recycle(oldest.bytes);
        }
    }

    /// The next repair packet.
    #[inline]
    pub(crate) fn front(&self) -> Option<&RepairPacket> {
        self.waiting.front()
    }
    /// Bytes queued.
    pub(crate) fn waiting_size(&self) -> u64 {
        self.waiting_size
    }
    /// Sets the next repair packet aside for [`Self::take_popped`]; returns its payload's size.
    pub(crate) fn pop_next(&mut self) -> u64 {
        self.popped = self.pop();
        self.popped.as_ref().map_or(0, |p| p.bytes.len() as u64 + u64::from(p.zeros))
    }
    /// The packet set aside.
    pub(crate) fn take_popped(&mut self) -> Option<RepairPacket> {
        self.popped.take()
    }
    /// Takes the next repair packet; its buffer is returned with [`Self::recycle`].
    pub(crate) fn pop(&mut self) -> Option<RepairPacket> {
        let packet = self.waiting.pop_front()?;
        self.waiting_size -= packet.size();
        Some(packet)
    }
    /// Discards and counts all queued packets.
    pub(crate) fn discard_all(&mut self) {
        while let Some(p) = self.pop() {
            self.dropped += 1;
            self.recycle(p.bytes);
        }
        if let Some(encoder) = &mut self.encoder {
            encoder.abandon();
        }
        if let Some(by_frames) = &mut self.by_frames {
            by_frames.clear();
        }
    }
    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MAX_WAITING {
            self.spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtp::Header;

    /// Passes so many media packets on, and returns how many repair packets wait behind them.
    fn sender() -> impl FnMut(&mut RepairSender, u64) -> usize {
        let mut sequence = 100_000;
        move |s, count| {
            for _ in 0..count {
                let mut out = vec![];
                Header { sequence: sequence as u16, ssrc: 7, ..Header::default() }.write_into(&mut out);
                s.on_media(sequence, &out, 100, Importance::Other, false);
                sequence += 1;
            }
            s.waiting.len()
        }
    }

    #[test]
    fn a_probe_after_standby_begins_with_the_parity_of_the_packets_just_sent() {
        let mut s = RepairSender::new(RepairChoice::Controller, 500, 7);
        s.follow(RepairPlan::Standby { interval: 14 });
        assert!(s.is_active());
        let mut send = sender();
        assert_eq!((send(&mut s, 20), s.protected), (0, 0));
        s.follow(RepairPlan::Parity { interval: 7 });
        // The second group had six packets.
        assert_eq!((s.waiting.len(), s.protected), (1, 6));
        assert_eq!([send(&mut s, 6), send(&mut s, 1), send(&mut s, 7)], [1, 2, 3]);
        s.follow(RepairPlan::Standby { interval: 14 });
        assert_eq!((send(&mut s, 30), s.protected, s.dropped), (3, 20, 0));
        s.follow(RepairPlan::Off);
        assert!(!s.is_active());
        // From off there is nothing to send at once.
        send(&mut s, 5);
        s.follow(RepairPlan::Parity { interval: 7 });
        assert_eq!(s.waiting.len(), 3);
    }

    #[test]
    fn a_probe_by_blocks_begins_with_the_repair_of_the_packets_just_sent() {
        let standby = RepairPlan::BlockStandby { block: 30, repair: 2 };
        let mut s = RepairSender::new(RepairChoice::Controller, 500, 7);
        s.follow(standby);
        let mut send = sender();
        // A block of 28 and 20 of the next.
        assert_eq!((send(&mut s, 48), s.protected, s.is_active()), (0, 0, true));
        s.follow(RepairPlan::ReedSolomon { block: 15, repair: 2 });
        assert_eq!((s.waiting.len(), s.protected), (2, 20));
        assert_eq!([send(&mut s, 12), send(&mut s, 1), send(&mut s, 5)], [2, 4, 4]);
        // A block that is open as the probe ends is dropped.
        s.follow(standby);
        assert_eq!((send(&mut s, 60), s.protected, s.dropped), (4, 20 + 18, 0));
        s.follow(RepairPlan::Off);
        assert_eq!((s.is_active(), s.waiting.len()), (false, 4));
    }

    #[test]
    fn a_key_frame_waits_for_no_packet_of_another_under_unequal_protection() {
        let of = |interval| Some(Scheme::Parity { interval });
        let unequal = Protection::ByImportance { key: of(2), reference: of(5), other: None };
        for (protection, expected) in [(unequal, [3, 3, 4]), (Scheme::Parity { interval: 2 }.into(), [2, 7, 10])] {
            let mut s = RepairSender::new(RepairChoice::Fixed(protection), 500, 7);
            let mut sequence = 100_000;
            let mut send = |s: &mut RepairSender, count: u64, importance, key| {
                for i in 0..count {
                    let mut out = vec![];
                    Header { sequence: sequence as u16, ssrc: 7, ..Header::default() }.write_into(&mut out);
                    s.on_media(sequence, &out, 100, importance, key && i + 1 == count);
                    sequence += 1;
                }
                s.waiting.len()
            };
            // Five packets of a key frame, ten that nothing refers to, and five of a reference frame.
            let made = [
                send(&mut s, 5, Importance::Key, true),
                send(&mut s, 10, Importance::Other, false),
                send(&mut s, 5, Importance::Reference, false),
            ];
            assert_eq!((made, s.dropped), (expected, 0));
        }
    }
}
