//! RTP, and reports with their descriptions and goodbyes.

use super::*;

pub(super) fn rtp_cases() -> Vec<Case> {
    let plain = Header {
        payload_type: 96,
        marker: true,
        sequence: 4_660,
        timestamp: 90_000,
        ssrc: 0x0102_0304,
        ..Header::default()
    };
    let level = [0x85];
    let elements = [Element::new(1, &level).expect("a sound element")];
    let csrcs = [7, 8];
    let instant = NtpTime::from_bits(0x0102_0304_0506_0708);
    let (long, short) = (ntp_64(instant), ntp_56(instant));
    let ntp = [Element::new(4, &long), Element::new(6, &short)].map(|e| e.expect("a sound element"));
    vec![
        rtp(
            "RTP",
            plain,
            &[1, 2, 3],
            &[
                ("rtp.version", &["2"]),
                ("rtp.p_type", &["96"]),
                ("rtp.marker", &["1"]),
                ("rtp.seq", &["4660"]),
                ("rtp.timestamp", &["90000"]),
                ("rtp.ssrc", &["0x01020304"]),
                ("rtp.ext", &["0"]),
                ("rtp.payload", &["01:02:03"]),
            ],
        ),
        rtp(
            "RTP with one-byte extensions, CSRCs and padding",
            Header {
                csrcs: &csrcs,
                transport_sequence: Some((5, 0xabcd)),
                abs_send_time: Some((3, 0x06_0000)),
                elements: &elements,
                padding: 6,
                ..plain
            },
            &[9],
            &[
                ("rtp.cc", &["2"]),
                ("rtp.csrc.item", &["0x00000007", "0x00000008"]),
                ("rtp.ext.profile", &["0xbede"]),
                ("rtp.ext.len", &["3"]),
                ("rtp.ext.rfc5285.id", &["5", "3", "1"]),
                ("rtp.ext.rfc5285.len", &["2", "3", "1"]),
                ("rtp.ext.rfc5285.data", &["ab:cd", "06:00:00", "85"]),
                ("rtp.padding.count", &["6"]),
                ("rtp.payload", &["09"]),
            ],
        ),
        rtp(
            "RTP with NTP timestamps",
            Header { elements: &ntp, ..plain },
            &[],
            &[
                ("rtp.ext.len", &["5"]),
                ("rtp.ext.rfc5285.id", &["4", "6"]),
                ("rtp.ext.rfc5285.len", &["8", "7"]),
                ("rtp.ext.rfc5285.data", &["01:02:03:04:05:06:07:08", "02:03:04:05:06:07:08"]),
            ],
        ),
        rtp(
            "RTP with two-byte extensions",
            Header { transport_sequence: Some((20, 0xabcd)), elements: &elements, ..plain },
            &[],
            &[("rtp.ext.rfc5285.id", &["20", "1"]), ("rtp.ext.rfc5285.data", &["ab:cd", "85"])],
        ),
    ]
}

pub(super) fn report_cases() -> Vec<Case> {
    let block = rtcp::ReportBlock {
        ssrc: 0x11,
        fraction_lost: 64,
        cumulative_lost: -2,
        highest_sequence: 0x0001_0010,
        jitter: 85,
        last_sr: 0xb705_2000,
        delay_since_last_sr: 65_536,
    };
    let info = rtcp::SenderInfo {
        ntp: NtpTime::from_bits(0x1000_0000_8000_0000),
        rtp_timestamp: 1_234,
        packets: 7,
        octets: 4_660,
    };
    let blocks = [block];
    let items = [
        rtcp::SdesItem { kind: rtcp::SdesType::CNAME, value: b"a@b" },
        rtcp::SdesItem { kind: rtcp::SdesType::TOOL, value: b"weir" },
    ];
    let chunks = [rtcp::SdesChunk { ssrc: 1, items: rtcp::SdesItems::Own(&items) }];
    let sdes = Packet::Sdes(rtcp::Sdes { chunks: rtcp::SdesChunks::Own(&chunks) });
    let delay = rtcp::OneWayDelayReport {
        sender_ssrc: 1,
        media_ssrc: 2,
        begin: 16,
        end: 32,
        min: TimeDelta::from_millis(250),
        mean: TimeDelta::from_millis(500),
        latest: TimeDelta::from_secs(1),
    };
    let buffers = [rtcp::NaduEntry {
        ssrc: 2,
        playout_delay: Some(TimeDelta::from_millis(300)),
        next_sequence: 4_660,
        next_unit: 17,
        free_buffer: DataSize::from_bytes(640),
    }];
    let (sources, nada) = (
        [1, 2],
        rtcp::NadaReport {
            sender_ssrc: 1,
            media_ssrc: 2,
            gradual: true,
            x_curr: TimeDelta::from_micros(10_250),
            r_recv: DataRate::from_mbps(1),
        },
    );
    vec![
        rtcp(
            "SR and SDES",
            &[
                Packet::SenderReport(rtcp::SenderReport { ssrc: 1, info, blocks: (&blocks).into(), extension: &[] }),
                sdes,
            ],
            &[
                ("rtcp.pt", &["200", "202"]),
                ("rtcp.senderssrc", &["0x00000001"]),
                ("rtcp.timestamp.ntp.msw", &["268435456"]),
                ("rtcp.timestamp.ntp.lsw", &["2147483648"]),
                ("rtcp.timestamp.rtp", &["1234"]),
                ("rtcp.sender.packetcount", &["7"]),
                ("rtcp.sender.octetcount", &["4660"]),
                ("rtcp.ssrc.identifier", &["0x00000011", "0x00000001"]),
                ("rtcp.ssrc.fraction", &["64"]),
                ("rtcp.ssrc.cum_nr", &["-2"]),
                ("rtcp.ssrc.ext_high", &["65552"]),
                ("rtcp.ssrc.jitter", &["85"]),
                ("rtcp.ssrc.lsr", &["3070566400"]),
                ("rtcp.ssrc.dlsr", &["65536"]),
                ("rtcp.sdes.text", &["a@b", "weir"]),
            ],
        ),
        rtcp(
            "RR",
            &[Packet::ReceiverReport(rtcp::ReceiverReport { ssrc: 9, blocks: (&blocks).into(), extension: &[] }), sdes],
            &[("rtcp.pt", &["201", "202"]), ("rtcp.ssrc.jitter", &["85"])],
        ),
        rtcp(
            "BYE",
            &[Packet::Bye(rtcp::Bye { sources: (&sources).into(), reason: Some(b"done") })],
            &[
                ("rtcp.pt", &["203"]),
                ("rtcp.ssrc.identifier", &["0x00000001", "0x00000002"]),
                ("rtcp.sdes.text", &["done"]),
            ],
        ),
        rtcp(
            "NADA",
            &[Packet::Nada(nada)],
            &[
                ("rtcp.pt", &["204"]),
                ("rtcp.app.subtype", &["0"]),
                ("rtcp.app.name", &["NADA"]),
                ("rtcp.app.data", &["00:00:00:02:80:00:28:0a:00:0f:42:40"]),
            ],
        ),
        rtcp(
            "one-way delay",
            &[Packet::OneWayDelay(delay)],
            &[
                ("rtcp.pt", &["204"]),
                ("rtcp.app.name", &["OWD "]),
                ("rtcp.app.data", &["00:00:00:02:00:10:00:20:00:00:40:00:00:00:80:00:00:01:00:00"]),
            ],
        ),
        rtcp(
            "NADU",
            &[Packet::Nadu(rtcp::Nadu { sender_ssrc: 1, entries: (&buffers).into() })],
            &[
                ("rtcp.pt", &["204"]),
                ("rtcp.app.name", &["PSS0"]),
                ("rtcp.app.data", &["00:00:00:02:01:2c:12:34:00:11:00:0a"]),
            ],
        ),
    ]
}
