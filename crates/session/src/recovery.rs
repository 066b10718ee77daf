//! The receiver's half of repair: a window over received media and repair packets.

use crate::arrivals::ArrivalLog;
use crate::identity::ParityFormat;
use crate::repair_format::{self, Format, ProtectedStream, ReceivedRepair};
use crate::statistics::{ReceiveStatistics, Sequenced};
use weir_fec::{RepairCounts, RepairWindow, WindowLimits};
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::fec::{Octets, parity};

/// Whether a receiver repairs losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RepairReception {
    /// No repair: repair packets belong to an unknown source.
    Off,
    /// From the first repair packet on. Nothing is kept before, so that a call without repair has no cost.
    #[default]
    WhenSeen,
    /// From the beginning of the call.
    Always,
}

/// Repair packets received, and their results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RepairReceiveCounters {
    /// Repair packets received and counted in their stream's statistics.
    pub packets: u64,
    /// Their RTP bytes: headers and payload.
    pub bytes: u64,
    /// Repair packets that do not parse, or protect another source.
    pub malformed: u64,
    /// Recovered strings that are not packets, because of forged or damaged repair packets.
    pub bad_recovered: u64,
    /// Counters of the window.
    pub window: RepairCounts,
}

#[derive(Debug)]
pub(crate) struct RepairReceiver {
    window: RepairWindow,
    pub stats: ReceiveStatistics,
    /// Arrivals of the repair stream, if feedback uses the streams' own numbers.
    pub log: Option<ArrivalLog>,
    pub counters: RepairReceiveCounters,
    format: ParityFormat,
    scratch: Vec<u8>,
    packet: Vec<u8>,
}

/// A recovered packet: header bytes and the payload bytes present, and the number of zeros that follow.
pub(crate) struct Rebuilt {
    pub sequence: u64,
    /// To be returned with [`RepairReceiver::recycle`].
    pub bytes: Vec<u8>,
    pub zeros: u32,
}

impl RepairReceiver {
    /// A receiver that keeps packets for `age`.
    pub(crate) fn new(age: TimeDelta, clock_rate: u32, log: Option<ArrivalLog>) -> Self {
        let limits = WindowLimits { age, ..WindowLimits::default() };
        Self {
            window: RepairWindow::new(limits),
            stats: ReceiveStatistics::new(clock_rate),
            log,
            counters: RepairReceiveCounters::default(),
            format: ParityFormat::default(),
            scratch: Vec::new(),
            packet: Vec::new(),
        }
    }

    /// The same with parity in this format.
    pub(crate) fn with_parity(mut self, format: ParityFormat) -> Self {
        self.format = format;
        self
    }

    pub(crate) fn counters(&self) -> RepairReceiveCounters {
        RepairReceiveCounters { window: self.window.counts(), ..self.counters }
    }

    /// A media packet of the valid stream has arrived.
    pub(crate) fn on_media(&mut self, now: Timestamp, sequence: u64, bytes: &[u8], zeros: u32) {
        // Longer than the codes' length field: not protected.
        if let Ok(symbol) = repair_format::protected(bytes, zeros, self.format, &mut self.scratch) {
            self.window.on_source(now, sequence, symbol);
        }
    }

    /// A repair packet has arrived. `protected` is called with its number and the packets that it protects. Returns its size; `None`
    /// if its stream does not count it, or the media's has.
    pub(crate) fn on_repair(
        &mut self,
        now: Timestamp,
        packet: ReceivedRepair<'_>,
        media: ProtectedStream,
        ecn: Ecn,
        mut protected: impl FnMut(u64, &weir_fec::Coverage),
    ) -> Option<DataSize> {
        let (rtp, zeros) = (packet.rtp, packet.payload.zeros);
        if packet.format == Format::UlpFec {
            // Its number is the media's, and has been counted there.
            self.counters.packets += 1;
            self.counters.bytes += (rtp.header_len() + rtp.payload().len()) as u64 + u64::from(zeros);
            let number = self.counters.packets;
            let window = &mut self.window;
            let read = repair_format::read(packet, media, &mut self.scratch, |repair| {
                protected(number, &repair.coverage);
                window.on_repair(now, repair);
            });
            self.counters.malformed += u64::from(read.is_err());
            return None;
        }
        let Sequenced::Valid(number) = self.stats.on_sequence(rtp.sequence()) else { return None };
        self.stats.on_arrival(now, rtp.timestamp());
        let size = (rtp.header_len() + rtp.payload().len()) as u64 + u64::from(rtp.padding()) + u64::from(zeros);
        self.counters.packets += 1;
        self.counters.bytes += size;
        if let Some(log) = &mut self.log {
            log.on_packet(number, now, ecn);
        }
        let window = &mut self.window;
        let read = repair_format::read(packet, media, &mut self.scratch, |repair| {
            protected(number, &repair.coverage);
            window.on_repair(now, repair);
        });
        self.counters.malformed += u64::from(read.is_err());
        Some(DataSize::from_bytes(size))
    }

    /// The next recovered packet.
    pub(crate) fn poll(&mut self, media_ssrc: u32) -> Option<Rebuilt> {
        let (sequence, zeros) = loop {
            let recovered = self.window.poll_recovered()?;
            let sequence = recovered.sequence;
            let string = Octets { bytes: recovered.symbol.bytes, zeros: recovered.symbol.zeros };
            self.packet.clear();
            match parity::rebuild_into(string, sequence as u16, media_ssrc, &mut self.packet) {
                Ok(zeros) => break (sequence, zeros),
                Err(_) => self.counters.bad_recovered += 1,
            }
        };
        Some(Rebuilt { sequence, bytes: core::mem::take(&mut self.packet), zeros })
    }
    /// Returns the buffer of a recovered packet for reuse.
    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        self.packet = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protection::{RepairChoice, RepairSender};
    use proptest::prelude::*;
    use weir_fec::{Importance, Scheme};
    use weir_wire::rtp::{Header, PacketView, extension::Element, write_padding};

    /// A packet with an extension, `len` bytes of payload, and occasionally padding.
    fn packet(sequence: u64, len: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let data = [sequence as u8; 3];
        let elements = [Element::new(5, &data).unwrap()];
        let padding = if sequence % 5 == 3 { 4 } else { 0 };
        let header = Header {
            payload_type: 96,
            marker: sequence.is_multiple_of(3),
            sequence: sequence as u16,
            timestamp: (sequence / 3 * 3_000) as u32,
            ssrc: 7,
            elements: if sequence.is_multiple_of(2) { &elements } else { &[] },
            padding,
            ..Header::default()
        };
        header.write_into(&mut out);
        out.extend((0..len).map(|i| (i as u64 * 31 + sequence) as u8));
        write_padding(&mut out, padding);
        out
    }

    proptest! {
        /// For any losses, recovered packets are byte for byte those sent, and a group with one loss is recovered.
        #[test]
        fn recovered_packets_equal_the_sent_ones(
            shape in (2u8..20, 1u8..8, any::<bool>(), any::<bool>()),
            lens in proptest::collection::vec(0usize..1_300, 60),
            lost in proptest::collection::vec(any::<bool>(), 60),
            rare in 1usize..5,
        ) {
            let (k, m, parity, draft) = shape;
            // The extension of every second packet counts as zeros then.
            let format = if draft { ParityFormat::FlexFec03 { zeroed: [5, 0] } } else { ParityFormat::FlexFec };
            let scheme = if parity { Scheme::Parity { interval: k } } else { Scheme::ReedSolomon { n: k + m, repair: m } };
            let sender = RepairSender::new(RepairChoice::Fixed(scheme.into()), 500, 7);
            let receiver = RepairReceiver::new(TimeDelta::from_secs(1), 90_000, None);
            let (mut sender, mut receiver) = (sender.with_parity(format), receiver.with_parity(format));
            let now = Timestamp::ZERO;
            // Across the wrap of sequence numbers.
            let first = 131_050u64;
            let lost: Vec<bool> = lost.iter().enumerate().map(|(i, &l)| l && i > 0 && i % rare == 0).collect();
            let sent: Vec<_> = lens.iter().enumerate().map(|(i, &len)| packet(first + i as u64, len)).collect();
            let (mut got, mut highest, mut number) = (vec![], 0, 0u16);
            for (i, bytes) in sent.iter().enumerate() {
                let sequence = first + i as u64;
                sender.on_media(sequence, bytes, 0, Importance::Other, false);
                if !lost[i] {
                    highest = sequence;
                    receiver.on_media(now, sequence, bytes, 0);
                }
                while let Some(p) = sender.pop() {
                    let csrcs: &[u32] = if p.format == Format::FlexFec { &[7] } else { &[] };
                    let mut out = vec![];
                    Header { payload_type: 97, sequence: number, ssrc: 8, csrcs, ..Header::default() }.write_into(&mut out);
                    out.extend_from_slice(&p.bytes);
                    number += 1;
                    let view = PacketView::parse(&out).unwrap();
                    let packet = ReceivedRepair { format: p.format, rtp: &view, payload: Octets { bytes: view.payload(), zeros: p.zeros } };
                    receiver.on_repair(now, packet, ProtectedStream { ssrc: 7, highest }, Ecn::NotEct, |_, _| {});
                }
                while let Some(r) = receiver.poll(7) {
                    let mut want = sent[(r.sequence - first) as usize].clone();
                    if draft && r.sequence.is_multiple_of(2) {
                        want[17..20].fill(0);
                    }
                    prop_assert!(r.bytes.len() + r.zeros as usize == want.len() && want.starts_with(&r.bytes));
                    prop_assert!(want[r.bytes.len()..].iter().all(|&b| b == 0));
                    got.push(r.sequence - first);
                }
            }
            let (group, most) = (usize::from(k), if parity { 1 } else { usize::from(m) });
            for (g, losses) in lost.chunks_exact(group).enumerate() {
                let all: Vec<_> = (0..group).filter(|&i| losses[i]).map(|i| (g * group + i) as u64).collect();
                let back = all.iter().filter(|s| got.contains(s)).count();
                prop_assert_eq!(back, if all.len() <= most { all.len() } else { 0 }, "group {}", g);
            }
            let c = receiver.counters();
            prop_assert_eq!((c.malformed, c.bad_recovered, c.window.rejected, c.window.inconsistent), (0, 0, 0, 0));
        }
    }
}
