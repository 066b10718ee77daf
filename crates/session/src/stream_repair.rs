//! Reed-Solomon repair of one RTP stream for stacks of their own: packets in, repair packets out, and back.
//!
//! On the wire it is the repair of this crate's sessions: media is unchanged, and repair packets are RTP of a payload type and
//! source of their own, with the payload ID of RFC 6865 ([`Kind::Repair`](crate::Kind::Repair) of a call).

use crate::protection::{RepairChoice, RepairSender};
use crate::recovery::{RepairReceiveCounters, RepairReceiver};
use crate::repair_format::{Format, ProtectedStream, ReceivedRepair};
use weir_fec::{Importance, Scheme, SchemeError};
use weir_units::{Ecn, SeqUnwrapper, TimeDelta, Timestamp};
use weir_wire::Error;
use weir_wire::fec::Octets;
use weir_wire::rtp::{Header, PacketView};

/// Number of the first repair packet, so that it wraps early (RFC 3550, section 5.1, asks for a random one, which the caller's
/// source has).
const FIRST: u64 = 1 << 16;

/// The source and payload type of repair packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepairSource {
    /// SSRC, other than the media's.
    pub ssrc: u32,
    /// Payload type, other than the media's.
    pub payload_type: u8,
}

/// Makes repair packets for the first source that it sees.
#[derive(Debug)]
pub struct StreamProtector {
    inner: RepairSender,
    source: RepairSource,
    media: Option<u32>,
    numbers: SeqUnwrapper,
    next: u64,
    /// RTP time of the newest packet protected.
    timestamp: u32,
}

impl StreamProtector {
    /// A protector with blocks of `n` packets, of which `repair` are repair packets.
    ///
    /// # Errors
    /// Not 1 to 255 packets, or no room for media.
    pub fn new(n: u8, repair: u8, source: RepairSource) -> Result<Self, SchemeError> {
        let scheme = Scheme::reed_solomon(n, repair)?;
        let inner = RepairSender::new(RepairChoice::Fixed(scheme.into()), FIRST, 0);
        Ok(Self { inner, source, media: None, numbers: SeqUnwrapper::new(), next: FIRST, timestamp: 0 })
    }

    /// Sets the blocks from the next on.
    ///
    /// # Errors
    /// As [`Self::new`]; the blocks stay as they were.
    pub fn set_blocks(&mut self, n: u8, repair: u8) -> Result<(), SchemeError> {
        self.inner.choose(RepairChoice::Fixed(Scheme::reed_solomon(n, repair)?.into()))
    }

    /// Protects a packet that is sent; packets of other sources than the first are not.
    ///
    /// # Errors
    /// It is no RTP packet.
    pub fn on_packet(&mut self, packet: &[u8]) -> Result<(), Error> {
        let view = PacketView::parse(packet)?;
        if self.media.is_none() {
            self.media = Some(view.ssrc());
            self.inner.set_media_ssrc(view.ssrc());
        }
        if self.media == Some(view.ssrc()) {
            self.timestamp = view.timestamp();
            let sequence = self.numbers.unwrap(view.sequence());
            self.inner.on_media(sequence, packet, 0, Importance::Other, false);
        }
        Ok(())
    }

    /// Completes the open block as it is, with proportionally fewer repair packets: the stream ends or pauses.
    pub fn flush(&mut self) {
        self.inner.complete();
    }

    /// The next repair packet to be sent.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        let repair = self.inner.pop()?;
        let RepairSource { ssrc, payload_type } = self.source;
        let (sequence, timestamp) = (self.next as u16, self.timestamp);
        self.next += 1;
        let mut out = Vec::with_capacity(12 + repair.bytes.len() + repair.zeros as usize);
        Header { payload_type, sequence, timestamp, ssrc, ..Header::default() }.write_into(&mut out);
        out.extend_from_slice(&repair.bytes);
        out.resize(out.len() + repair.zeros as usize, 0);
        self.inner.recycle(repair.bytes);
        Some(out)
    }

    /// Packets protected so far.
    pub fn protected(&self) -> u64 {
        self.inner.protected
    }
}

/// Recovers lost packets of the first source that it sees.
#[derive(Debug)]
pub struct StreamRepairer {
    inner: RepairReceiver,
    payload_type: u8,
    media: Option<u32>,
    numbers: SeqUnwrapper,
}

impl StreamRepairer {
    /// A repairer that knows repair packets by their payload type and keeps packets for `age`.
    pub fn new(payload_type: u8, age: TimeDelta) -> Self {
        // The clock rate of repair packets is that of video; it counts for jitter alone, which nobody reads.
        let inner = RepairReceiver::new(age, 90_000, None);
        Self { inner, payload_type, media: None, numbers: SeqUnwrapper::new() }
    }

    /// A packet has arrived; whether it is media, to be passed on.
    ///
    /// # Errors
    /// It is no RTP packet.
    pub fn on_packet(&mut self, now: Timestamp, packet: &[u8]) -> Result<bool, Error> {
        let view = PacketView::parse(packet)?;
        if view.payload_type() == self.payload_type {
            // Before the first media packet there is nothing to which its numbers could be close.
            if let (Some(ssrc), Some(highest)) = (self.media, self.numbers.highest()) {
                let received =
                    ReceivedRepair { format: Format::ReedSolomon, rtp: &view, payload: Octets::new(view.payload()) };
                let media = ProtectedStream { ssrc, highest };
                // Packets that do not parse are counted.
                let _ = self.inner.on_repair(now, received, media, Ecn::NotEct, |_, _| {});
            }
            return Ok(false);
        }
        if *self.media.get_or_insert(view.ssrc()) == view.ssrc() {
            let sequence = self.numbers.unwrap(view.sequence());
            self.inner.on_media(now, sequence, packet, 0);
        }
        Ok(true)
    }

    /// The next recovered packet.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        let rebuilt = self.inner.poll(self.media?)?;
        let mut out = rebuilt.bytes.clone();
        out.resize(out.len() + rebuilt.zeros as usize, 0);
        self.inner.recycle(rebuilt.bytes);
        Some(out)
    }

    /// Counters of packets received and recovered.
    pub fn counters(&self) -> RepairReceiveCounters {
        self.inner.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: RepairSource = RepairSource { ssrc: 9, payload_type: 97 };

    fn media(sequence: u16, ssrc: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let timestamp = u32::from(sequence) * 3_000;
        Header { payload_type: 96, sequence, timestamp, ssrc, marker: true, ..Header::default() }.write_into(&mut out);
        out.extend((0..200 + sequence % 50).map(|i| i.wrapping_mul(7).wrapping_add(sequence) as u8));
        out
    }

    #[test]
    fn blocks_lose_as_many_packets_as_they_have_repair_and_come_back_whole() {
        let mut sender = StreamProtector::new(12, 2, SOURCE).expect("blocks");
        let mut receiver = StreamRepairer::new(97, TimeDelta::from_secs(1));
        let now = Timestamp::ZERO;
        let sent: Vec<Vec<u8>> = (0..35u16).map(|i| media(65_530u16.wrapping_add(i), 7)).collect();
        let mut recovered = Vec::new();
        for (i, packet) in sent.iter().enumerate() {
            sender.on_packet(packet).expect("RTP");
            // Another source passes unprotected.
            sender.on_packet(&media(5, 8)).expect("RTP");
            // Of the first block two are lost, of the second three, and of the last, which is cut short, one.
            if ![3, 4, 11, 12, 13, 33].contains(&i) {
                assert_eq!(receiver.on_packet(now, packet), Ok(true));
            }
            if i + 1 == sent.len() {
                sender.flush();
            }
            while let Some(repair) = sender.poll() {
                assert_eq!(receiver.on_packet(now, &repair), Ok(false));
            }
            recovered.extend(std::iter::from_fn(|| receiver.poll()));
        }
        assert_eq!(recovered, [sent[3].clone(), sent[4].clone(), sent[33].clone()]);
        assert_eq!(sender.protected(), 35);
        // Two a block, and the last block's five packets have proportionally fewer.
        let c = receiver.counters();
        assert_eq!((c.packets, c.malformed, c.bad_recovered, c.window.recovered), (7, 0, 0, 3));
    }

    #[test]
    fn hostile_packets_recover_nothing_and_do_no_harm() {
        let mut receiver = StreamRepairer::new(97, TimeDelta::from_secs(1));
        assert!(receiver.on_packet(Timestamp::ZERO, &[0x80; 5]).is_err());
        let mut forged = Vec::new();
        Header { payload_type: 97, sequence: 1, ssrc: 9, ..Header::default() }.write_into(&mut forged);
        forged.extend([0xff; 40]);
        // Before media, and after it.
        assert_eq!(receiver.on_packet(Timestamp::ZERO, &forged), Ok(false));
        assert_eq!(receiver.on_packet(Timestamp::ZERO, &media(1, 7)), Ok(true));
        for sequence in 2..40u16 {
            forged[2..4].copy_from_slice(&sequence.to_be_bytes());
            forged[12 + usize::from(sequence) % 8] = sequence as u8;
            assert_eq!(receiver.on_packet(Timestamp::ZERO, &forged), Ok(false));
        }
        assert_eq!(receiver.poll(), None);
        assert!(StreamProtector::new(10, 10, SOURCE).is_err());
    }
}
