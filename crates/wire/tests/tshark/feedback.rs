//! Feedback messages, those of congestion control too.

use super::*;

pub(super) fn feedback_cases() -> Vec<Case> {
    let (sender_ssrc, media_ssrc) = (1, 2);
    let nack = [rtcp::NackEntry { first: 100, following: 0b101 }];
    let sli = [rtcp::SliEntry { first: 5, number: 9, picture_id: 33 }];
    let fir = [rtcp::FirEntry { ssrc: 2, sequence: 9 }];
    let limits = [rtcp::RateLimit { ssrc: 2, max_rate: ScaledRate::new(DataRate::from_bps(262_142)), overhead: 40 }];
    let limits = (&limits).into();
    let sources = [0x11, 0x22];
    let remb = rtcp::Remb {
        sender_ssrc,
        media_ssrc: 0,
        rate: ScaledRate::new(DataRate::from_mbps(1)),
        sources: (&sources).into(),
    };
    let rpsi =
        rtcp::Rpsi { sender_ssrc, media_ssrc, payload_type: 96, bit_string: &[0xab, 0xcd, 0xe0], unused_bits: 4 };
    vec![
        rtcp(
            "NACK",
            &[Packet::Nack(rtcp::Nack { sender_ssrc, media_ssrc, entries: (&nack).into() })],
            &[
                ("rtcp.pt", &["205"]),
                ("rtcp.rtpfb.fmt", &["1"]),
                ("rtcp.senderssrc", &["0x00000001"]),
                ("rtcp.mediassrc", &["0x00000002"]),
                // The dissector lists the packets of the bit mask under the same name.
                ("rtcp.rtpfb.nack_pid", &["100", "101", "103"]),
                ("rtcp.rtpfb.nack_blp", &["0x0005"]),
            ],
        ),
        rtcp(
            "RTCP-SR-REQ",
            &[Packet::SrRequest(rtcp::SrRequest { sender_ssrc, media_ssrc })],
            &[
                ("rtcp.pt", &["205"]),
                ("rtcp.rtpfb.fmt", &["5"]),
                ("rtcp.senderssrc", &["0x00000001"]),
                ("rtcp.mediassrc", &["0x00000002"]),
            ],
        ),
        rtcp(
            "PLI",
            &[Packet::Pli(rtcp::Pli { sender_ssrc, media_ssrc })],
            &[("rtcp.pt", &["206"]), ("rtcp.psfb.fmt", &["1"]), ("rtcp.mediassrc", &["0x00000002"])],
        ),
        rtcp(
            "SLI",
            &[Packet::Sli(rtcp::Sli { sender_ssrc, media_ssrc, entries: (&sli).into() })],
            &[
                ("rtcp.psfb.fmt", &["2"]),
                ("rtcp.psfb.fir.sli.first", &["5"]),
                ("rtcp.psfb.fir.sli.number", &["9"]),
                ("rtcp.psfb.fir.sli.picture_id", &["33"]),
            ],
        ),
        rtcp("RPSI", &[Packet::Rpsi(rpsi)], &[("rtcp.psfb.fmt", &["3"]), ("rtcp.fci", &["1c:60:ab:cd:e0:00:00:00"])]),
        rtcp(
            "FIR",
            &[Packet::Fir(rtcp::Fir { sender_ssrc, media_ssrc: 0, entries: (&fir).into() })],
            &[
                ("rtcp.psfb.fmt", &["4"]),
                ("rtcp.psfb.fir.fci.ssrc", &["0x00000002"]),
                ("rtcp.psfb.fir.fci.csn", &["9"]),
            ],
        ),
        rtcp(
            "TMMBR",
            &[Packet::Tmmbr(rtcp::Tmmbr { sender_ssrc, media_ssrc: 0, entries: limits })],
            &[
                ("rtcp.rtpfb.fmt", &["3"]),
                ("rtcp.rtpfb.tmmbr.fci.ssrc", &["0x00000002"]),
                ("rtcp.rtpfb.tmmbr.fci.exp", &["1"]),
                ("rtcp.rtpfb.tmmbr.fci.mantissa", &["131071"]),
                ("rtcp.rtpfb.tmmbr.fci.measuredoverhead", &["40"]),
            ],
        ),
        rtcp(
            "TMMBN",
            &[Packet::Tmmbn(rtcp::Tmmbn { sender_ssrc, media_ssrc: 0, entries: limits })],
            &[("rtcp.rtpfb.fmt", &["4"]), ("rtcp.rtpfb.tmmbr.fci.mantissa", &["131071"])],
        ),
        rtcp(
            "REMB",
            &[Packet::Remb(remb)],
            &[
                ("rtcp.psfb.fmt", &["15"]),
                ("rtcp.psfb.remb.identifier", &["REMB"]),
                ("rtcp.psfb.remb.fci.number_ssrcs", &["2"]),
                ("rtcp.psfb.remb.fci.br_exp", &["2"]),
                ("rtcp.psfb.remb.fci.br_mantissa", &["250000"]),
                ("rtcp.psfb.remb.fci.ssrc", &["0x00000011", "0x00000022"]),
            ],
        ),
    ]
}

pub(super) fn congestion_cases() -> Vec<Case> {
    let start = Timestamp::from_millis(960);
    let mut twcc = twcc::Builder::new(1, 2, 9, 100, start);
    for (sequence, ms) in [(100, 0), (101, 10), (104, 5), (105, 200)] {
        assert!(twcc.push(sequence, Some(start + TimeDelta::from_millis(ms))));
    }
    let mut message = vec![];
    assert!(twcc.finish_into(&mut message));
    let Some(Ok(twcc)) = rtcp::parse_compound(&message).next() else { panic!("not read") };

    let mut report = vec![];
    let mut writer = ccfb::Writer::new(&mut report, 1, Timestamp::from_secs(1), 0x8000);
    assert!(writer.stream(2, 100));
    assert!(writer.push(Some((Ecn::Ce, Timestamp::from_millis(500)))));
    writer.finish();
    let Some(Ok(ccfb)) = rtcp::parse_compound(&report).next() else { panic!("not read") };

    let echoes = [xr::DlrrEntry { ssrc: 5, last_rr: 6, delay_since_last_rr: 7 }];
    let blocks = [
        xr::Block::Rrtr(NtpTime::from_bits(0x1000_0000_8000_0000)),
        xr::Block::Dlrr((&echoes).into()),
        xr::Block::Other(xr::RawBlock { block_type: 200, type_specific: 3, body: &[0, 0, 0, 9] }),
    ];
    vec![
        rtcp(
            "TWCC",
            &[twcc],
            &[
                ("rtcp.rtpfb.fmt", &["15"]),
                ("rtcp.rtpfb.transportcc.baseseq", &["100"]),
                ("rtcp.rtpfb.transportcc.statuscount", &["6"]),
                ("rtcp.rtpfb.transportcc.reftime", &["15"]),
                ("rtcp.rtpfb.transportcc.pktcount", &["9"]),
                // 0, 10, -5 and 195 ms in units of 250 us, each relative to the one before.
                ("rtcp.rtpfb.transportcc.recv_delta", &["0x00", "0x28", "0xffec", "0x030c"]),
            ],
        ),
        // tshark 4.0 does not support CCFB: it shows the first stream as the media source, and the rest as bytes.
        rtcp(
            "CCFB",
            &[ccfb],
            &[
                ("rtcp.pt", &["205"]),
                ("rtcp.rtpfb.fmt", &["11"]),
                ("rtcp.mediassrc", &["0x00000002"]),
                ("rtcp.fci", &["00:64:00:01:e2:00:00:00:00:00:80:00"]),
            ],
        ),
        rtcp(
            "XR",
            &[Packet::Xr(rtcp::Xr { ssrc: 4, blocks: xr::Blocks::Own(&blocks) })],
            &[
                ("rtcp.pt", &["207"]),
                ("rtcp.senderssrc", &["0x00000004"]),
                ("rtcp.xr.bt", &["4", "5", "200"]),
                ("rtcp.xr.bs", &["0", "0", "3"]),
                ("rtcp.xr.bl", &["2", "3", "1"]),
                ("rtcp.ssrc.identifier", &["0x00000005"]),
                ("rtcp.xr.lrr", &["6"]),
                ("rtcp.xr.dlrr", &["7"]),
            ],
        ),
    ]
}
