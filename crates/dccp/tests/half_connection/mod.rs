//! Both halves of a CCID without connections around them, for benches and the proof that they do not allocate.
#![allow(dead_code)]

pub(crate) mod rate;
pub(crate) mod window;

use weir_dccp::ccid::{
    Acknowledgement, CcidReceiver, CcidSender, ReceivedPacket, Receiver, Registry, Sender, SentPacket, Setup,
};
use weir_dccp::option::Options;
use weir_dccp::packet::{Header, PacketType, PacketWriter, WireSequence};
use weir_units::{DataSize, Ecn, Seq48, TimeDelta, Timestamp};

/// Round-trip time of the path.
pub(crate) const RTT: TimeDelta = TimeDelta::from_millis(50);
/// Application data of a packet.
pub(crate) const SIZE: DataSize = DataSize::from_bytes(1_200);

/// The half at the data's sender, and that at its receiver.
pub(crate) struct Halves {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

impl Halves {
    /// Of a built-in CCID, with these parameters.
    pub(crate) fn new(ccid: u8, params: &[(&str, f64)]) -> Self {
        let setup = Setup {
            now: Timestamp::ZERO,
            max_packet_size: SIZE,
            rtt: Some(RTT),
            ecn: true,
            ack_ratio: 2,
            params: params.iter().map(|&(name, value)| (name.into(), value)).collect(),
        };
        let registry = Registry::builtin();
        let spec = registry.get(ccid).expect("built in");
        Self {
            sender: (spec.sender)(&setup).expect("valid parameters"),
            receiver: (spec.receiver)(&setup).expect("valid parameters"),
        }
    }

    /// One of the sender's internals; NaN if it has none of this name.
    pub(crate) fn metric(&self, wanted: &str) -> f64 {
        let mut found = f64::NAN;
        self.sender.metrics(&mut |name, v| found = if name == wanted { v } else { found });
        found
    }

    /// Runs the sender's timer if it is due.
    pub(crate) fn run_timer(&mut self, now: Timestamp) {
        if self.sender.poll_timeout().is_some_and(|t| t <= now) {
            self.sender.on_timeout(now);
        }
    }

    /// A data packet of this number is sent, with more waiting behind it.
    pub(crate) fn send(&mut self, now: Timestamp, number: u64, packet_type: PacketType) {
        self.sender.on_packet_sent(&SentPacket {
            now,
            sequence: Seq48::new(number),
            packet_type,
            data: SIZE,
            header: DataSize::from_bytes(16),
            ecn: Ecn::Ect0,
            queued: SIZE,
        });
    }

    /// A data packet arrives.
    pub(crate) fn receive(&mut self, now: Timestamp, sequence: Seq48, ccval: u8) {
        self.receiver.on_packet(&ReceivedPacket {
            now,
            sequence,
            packet_type: PacketType::Data,
            data: SIZE,
            ecn: Ecn::Ect0,
            ccval,
            ndp_count: None,
            rtt: None,
            options: Options::new(&[], PacketType::Data),
        });
    }

    /// Writes an acknowledgement, replacing the contents of `out`; `more` adds options that are not the CCID's.
    pub(crate) fn write_ack(
        &mut self,
        now: Timestamp,
        own: Seq48,
        acknowledged: Seq48,
        out: &mut Vec<u8>,
        more: impl FnOnce(&mut PacketWriter<'_>),
    ) {
        out.clear();
        let header = Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Ack,
            sequence: WireSequence::Long(own),
            acknowledgement: Some(WireSequence::Long(acknowledged)),
        };
        let mut writer = PacketWriter::new(out, &header);
        self.receiver.write_options(now, &mut writer);
        more(&mut writer);
        writer.finish();
        self.receiver.on_ack_sent(now);
    }
}

/// An acknowledgement without options.
pub(crate) fn acknowledgement(now: Timestamp, own: Seq48, acknowledged: Seq48) -> Acknowledgement<'static> {
    Acknowledgement {
        now,
        sequence: own,
        packet_type: PacketType::Ack,
        ndp_count: None,
        acknowledged,
        ack_vector: &[],
        elapsed: None,
        echo_rtt: None,
        data_dropped: &[],
        slow_receiver: false,
        ecn: Ecn::NotEct,
        options: Options::new(&[], PacketType::Ack),
    }
}
