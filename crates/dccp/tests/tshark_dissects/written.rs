//! Hand-made packets: each option on each type that permits it, short and long.

use super::pair::Sent;
use weir_dccp::option::{DccpOption, FeatureNumber};
use weir_dccp::packet::{Coverage, Header, PacketType, PacketWriter, ResetCode, ServiceCode, WireSequence};
use weir_units::{Ecn, Seq48, Timestamp};

const CCID: FeatureNumber = FeatureNumber::CCID;

const OPTIONS: &[DccpOption<'static>] = &[
    DccpOption::SlowReceiver,
    DccpOption::ChangeL(CCID, &[3, 2]),
    DccpOption::ChangeL(FeatureNumber::SEQUENCE_WINDOW, &[0, 0, 0, 0, 1, 0]),
    DccpOption::ConfirmL(FeatureNumber::ACK_RATIO, &[0, 3]),
    DccpOption::ChangeR(FeatureNumber::SEND_ACK_VECTOR, &[1]),
    DccpOption::ConfirmR(FeatureNumber::SEND_LOSS_EVENT_RATE, &[]),
    DccpOption::InitCookie(&[1, 2, 3, 4, 5, 6, 7]),
    DccpOption::NdpCount(0),
    DccpOption::NdpCount(300),
    DccpOption::NdpCount(0x0102_0304_0506),
    DccpOption::AckVector { nonce: false, runs: &[0, 192, 3, 64, 5] },
    DccpOption::AckVector { nonce: true, runs: &[63] },
    DccpOption::DataDropped(&[0, 160, 3, 162]),
    DccpOption::Timestamp(0xfedc_ba98),
    DccpOption::TimestampEcho { echo: 0x0102_0304, elapsed: 0 },
    DccpOption::TimestampEcho { echo: 0x8102_0304, elapsed: 0xffff },
    DccpOption::TimestampEcho { echo: 5, elapsed: 0x1_0000 },
    DccpOption::ElapsedTime(50_000),
    DccpOption::ElapsedTime(u32::MAX),
    DccpOption::DataChecksum(0xaa36_918a),
    DccpOption::Ccid { number: 128, data: &[1, 2, 3] },
    DccpOption::Ccid { number: 192, data: &[0, 0, 0x27, 0x10] },
    DccpOption::Ccid { number: 193, data: &[3, 0, 0, 9, 0x80, 0, 1, 0, 0, 9] },
    DccpOption::Ccid { number: 194, data: &[0, 1, 0x86, 0xa0] },
    DccpOption::Ccid { number: 255, data: &[7] },
    DccpOption::Unknown { number: 3, data: &[] },
    DccpOption::Unknown { number: 31, data: &[] },
    DccpOption::Unknown { number: 45, data: &[1] },
    DccpOption::Unknown { number: 127, data: &[1, 2] },
];

/// One packet: its options, and this much data.
fn packet(packet_type: PacketType, short: bool, coverage: u8, options: &[DccpOption<'_>], data: &[u8]) -> Sent {
    let form = |n| if short { WireSequence::short(Seq48::new(n)) } else { WireSequence::Long(Seq48::new(n)) };
    let header = Header {
        source_port: 50_004,
        destination_port: 50_006,
        ccval: packet_type.number(),
        checksum_coverage: Coverage(coverage).fitting(data.len()).0,
        packet_type,
        sequence: form(0xf102_0304_0506),
        acknowledgement: packet_type.has_acknowledgement().then(|| form(0x0a0b_0c8d_0e0f)),
    };
    let mut bytes = vec![];
    let mut w = PacketWriter::new(&mut bytes, &header);
    match packet_type {
        PacketType::Request | PacketType::Response => w.service_code(ServiceCode::RTP_AUDIO),
        PacketType::Reset => w.reset(ResetCode::OPTION_ERROR, [44, 1, 2]),
        _ => {}
    }
    options.iter().for_each(|o| assert!(w.option(o), "room for {}", o.number()));
    w.finish();
    bytes.extend_from_slice(data);
    Sent { at: Timestamp::ZERO, by_client: true, bytes, beyond: 0, ecn: Ecn::NotEct }
}

pub(crate) fn packets() -> Vec<Sent> {
    let mut all = vec![];
    for t in PacketType::ALL {
        for short in [false, true].into_iter().filter(|s| !s || t.may_be_short()) {
            let allowed: Vec<_> = OPTIONS.iter().copied().filter(|o| o.permitted_on(t)).collect();
            all.push(packet(t, short, 0, &[], b"text"));
            all.extend(allowed.iter().map(|o| packet(t, short, 0, &[*o], b"abc")));
            // All together, and mandatory where permitted.
            all.push(packet(t, short, 0, &allowed, b""));
            if DccpOption::Mandatory.permitted_on(t) {
                all.extend(allowed.iter().map(|o| packet(t, short, 0, &[DccpOption::Mandatory, *o], b"")));
            }
            all.extend((0..16).map(|coverage| packet(t, short, coverage, &[], &[0xa5; 61])));
        }
    }
    all
}
