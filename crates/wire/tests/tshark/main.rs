//! An independent dissector parses one packet of every message type from a capture file.

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness};
use std::process::Command;
use std::time::Duration;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::{self, Packet, ScaledRate, ccfb, twcc, xr};
use weir_wire::rtp::{Header, extension::Element, extension::ntp_56, extension::ntp_64, write_padding};

mod xr_blocks;

const RTP_PORT: u16 = 5_004;
const RTCP_PORT: u16 = 5_005;

/// A datagram and the dissector's expected output: a field's name and its values in order.
struct Case {
    name: &'static str,
    port: u16,
    bytes: Vec<u8>,
    fields: Vec<(&'static str, Vec<&'static str>)>,
}

fn rtp(name: &'static str, header: Header<'_>, payload: &[u8], fields: &[(&'static str, &[&'static str])]) -> Case {
    let mut bytes = vec![];
    header.write_into(&mut bytes);
    bytes.extend_from_slice(payload);
    write_padding(&mut bytes, header.padding);
    Case { name, port: RTP_PORT, bytes, fields: fields.iter().map(|(f, v)| (*f, v.to_vec())).collect() }
}

fn rtcp(name: &'static str, packets: &[Packet<'_>], fields: &[(&'static str, &[&'static str])]) -> Case {
    let mut bytes = vec![];
    packets.iter().for_each(|p| p.write_into(&mut bytes));
    Case { name, port: RTCP_PORT, bytes, fields: fields.iter().map(|(f, v)| (*f, v.to_vec())).collect() }
}

fn rtp_cases() -> Vec<Case> {
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

fn report_cases() -> Vec<Case> {
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

fn feedback_cases() -> Vec<Case> {
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

fn congestion_cases() -> Vec<Case> {
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

/// The datagram in UDP over IPv4, for the raw link type.
fn ip_packet(case: &Case) -> Vec<u8> {
    let udp = (8 + case.bytes.len()) as u16;
    let mut p = vec![0x45, 0];
    p.extend_from_slice(&(20 + udp).to_be_bytes());
    p.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let sum: u32 = p.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    p[10..12].copy_from_slice(&checksum.to_be_bytes());
    for field in [case.port, case.port, udp, 0] {
        p.extend_from_slice(&field.to_be_bytes());
    }
    p.extend_from_slice(&case.bytes);
    p
}

/// The values of a field in a packet's PDML, in order.
fn values<'a>(pdml: &'a str, field: &str) -> Vec<&'a str> {
    let attribute = |line: &'a str, name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let lines = pdml.lines().filter(|l| l.contains(&format!("<field name=\"{field}\"")));
    lines.filter_map(|l| attribute(l, "show")).collect()
}

#[test]
fn tshark_reads_every_message() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("tshark is not installed (apt-get install tshark): dissection not checked");
        return;
    }
    let cases: Vec<Case> = [rtp_cases(), report_cases(), feedback_cases(), congestion_cases(), xr_blocks::xr_cases()]
        .into_iter()
        .flatten()
        .collect();
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    let header = PcapHeader { datalink: DataLink::RAW, endianness: Endianness::Little, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(file.as_file_mut(), header).expect("a header");
    for (i, case) in cases.iter().enumerate() {
        let packet = ip_packet(case);
        let packet = PcapPacket::new(Duration::from_millis(i as u64), packet.len() as u32, &packet);
        writer.write_packet(&packet).expect("a packet");
    }
    let out = Command::new("tshark")
        .args(["-d", &format!("udp.port=={RTP_PORT},rtp"), "-d", &format!("udp.port=={RTCP_PORT},rtcp")])
        .args(["-T", "pdml", "-r"])
        .arg(file.path())
        .output()
        .expect("tshark runs");
    let text = String::from_utf8_lossy(&out.stdout);
    let packets: Vec<&str> = text.split("<packet>").skip(1).collect();
    assert_eq!(packets.len(), cases.len(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut faults = vec![];
    for (case, pdml) in cases.iter().zip(packets) {
        let protocol = if case.port == RTP_PORT { "rtp" } else { "rtcp" };
        assert!(pdml.contains(&format!("<proto name=\"{protocol}\"")), "{} is not taken for {protocol}", case.name);
        if pdml.contains("_ws.malformed") || pdml.contains("Malformed") {
            faults.push(format!("{}: malformed", case.name));
        }
        if case.port == RTCP_PORT && values(pdml, "rtcp.length_check") != ["1"] {
            faults.push(format!("{}: the lengths do not add up", case.name));
        }
        for (field, want) in &case.fields {
            let got = values(pdml, field);
            if got != *want {
                faults.push(format!("{}: {field} is {got:?}, expected {want:?}", case.name));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
