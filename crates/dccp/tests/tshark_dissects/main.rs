//! An independent dissector parses everything that connections send, and options that none sends by itself.

mod pair;
mod written;

use pair::{Fate, Pair, Sent};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;
use weir_dccp::connection::{Ccids, Config, State, reset_for};
use weir_dccp::option::DccpOption;
use weir_dccp::packet::{PROTOCOL, PacketType, PseudoHeader, ResetCode, ServiceCode, covered_checksum, parse};
use weir_dccp::queue::{QueueConfig, QueuePolicy};
use weir_units::{Ecn, TimeDelta};

fn config(ccid: u8) -> Config {
    Config {
        local_port: 50_004,
        remote_port: 50_006,
        service_code: ServiceCode::RTP_VIDEO,
        ccids: Ccids::both(ccid),
        queue: QueueConfig { capacity: 100, policy: QueuePolicy::Refuse },
        timestamps: true,
        seed: u64::from(ccid) * 1_000,
        ..Config::default()
    }
}

/// Ack Vectors, marks, losses, CRCs, partial coverage, both lengths of numbers; the server closes.
fn ccid_2() -> Pair {
    let config = Config {
        short_sequence_numbers: true,
        sequence_window: 200,
        checksum_coverage: 2,
        minimum_checksum_coverage: 1,
        data_checksum: true,
        ..config(2)
    };
    let mut pair = Pair::open(config.clone(), config);
    pair.link = |count, _| match count {
        c if c % 17 == 0 => Fate::Lost,
        c if c % 13 == 0 => Fate::Marked,
        c if c % 29 == 0 => Fate::Corrupted,
        _ => Fate::Passes,
    };
    pair.talk(200, 0);
    pair.talk(100, 1_000);
    pair.link = |_, _| Fate::Passes;
    let now = pair.now;
    pair.end(false).expect("open").close(now);
    pair.run(TimeDelta::from_secs(2));
    pair
}

/// CCID 3's feedback; a receiver that does not read, then signals that it is slow; the client closes.
fn ccid_3() -> Pair {
    let server = Config { receive_capacity: 8, ..config(3) };
    let mut pair = Pair::open(config(3), server);
    pair.link = |count, _| if count % 31 == 0 { Fate::Lost } else { Fate::Passes };
    pair.talk(200, 500);
    pair.server_reads = false;
    pair.talk(60, 500);
    pair.server_reads = true;
    pair.end(false).expect("open").set_slow_receiver(true);
    pair.talk(60, 500);
    pair.link = |_, _| Fate::Passes;
    let now = pair.now;
    pair.client.close(now);
    pair.run(TimeDelta::from_secs(2));
    pair
}

/// Init Cookies; an invalid packet, answered by a Sync; an end that aborts, and a Reset with text.
fn syncs_and_cookies() -> Pair {
    let config = Config { sequence_window: 32, ..config(2) };
    let mut pair = Pair::new(config.clone(), config);
    // The first Response is sent without a cookie and lost; the next answers the repeated Request.
    pair.link = |_, sent| {
        let p = parse(&sent.bytes, 0).expect("a packet");
        let cookie = p.options.iter().any(|o| matches!(o, Ok(DccpOption::InitCookie(_))));
        if p.header.packet_type == PacketType::Response && !cookie { Fate::Lost } else { Fate::Passes }
    };
    pair.run(TimeDelta::from_millis(20));
    pair.end(false).expect("a Request has come").set_init_cookies(&[b"a cookie", &[7; 30]]);
    pair.run(TimeDelta::from_secs(3));
    pair.send(false, b"hello", 0);
    pair.run(TimeDelta::from_secs(3));
    assert_eq!((pair.client.state(), pair.end(false).map(|s| s.state())), (State::Open, Some(State::Open)));
    // A duplicate: it is behind the server's window (a quarter of 32, or of 64 if it has widened), not yet behind the
    // client's.
    pair.talk(30, 0);
    let again = pair.log.iter().rev().filter(|s| s.by_client).nth(20).expect("packets").clone();
    pair.deliver(false, &again.bytes, again.beyond, again.ecn);
    pair.run(TimeDelta::from_secs(1));
    // One far outside it.
    let mut stray = pair.log.iter().rev().find(|s| s.by_client).expect("packets").clone();
    stray.bytes[11] ^= 0x40;
    pair.deliver(false, &stray.bytes, stray.beyond, Ecn::NotEct);
    pair.run(TimeDelta::from_secs(1));
    let now = pair.now;
    pair.client.abort(now);
    pair.flush();
    let mut text = Sent { by_client: false, at: now, bytes: vec![], ..stray.clone() };
    let of = parse(&stray.bytes, 0).expect("a packet");
    assert!(reset_for(&of, ResetCode::BAD_SERVICE_CODE, [0; 3], "no such service here", &mut text.bytes));
    pair.log.push(text);
    pair
}

fn capture(packets: &[Sent], v6: bool) -> Vec<u8> {
    let header = PcapHeader { datalink: DataLink::RAW, endianness: Endianness::Little, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).expect("memory");
    for sent in packets {
        let ends = if sent.by_client { (1, 2) } else { (2, 1) };
        let mut bytes = sent.bytes.clone();
        bytes.resize(bytes.len() + sent.beyond as usize, 0);
        let mut ip = vec![];
        let pseudo = if v6 {
            let [a, b] = [ends.0, ends.1].map(|n| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n));
            ip.extend([0x60, sent.ecn.bits() << 4, 0, 0]);
            ip.extend((bytes.len() as u16).to_be_bytes());
            ip.extend([PROTOCOL, 64]);
            ip.extend([a.octets(), b.octets()].concat());
            PseudoHeader::V6(a, b)
        } else {
            let [a, b] = [ends.0, ends.1].map(|n| Ipv4Addr::new(10, 0, 0, n as u8));
            ip.extend([0x45, sent.ecn.bits()]);
            ip.extend((20 + bytes.len() as u16).to_be_bytes());
            ip.extend([0, 0, 0x40, 0, 64, PROTOCOL, 0, 0]);
            ip.extend([a.octets(), b.octets()].concat());
            PseudoHeader::V4(a, b)
        };
        let sum = covered_checksum(&sent.bytes, sent.beyond as usize, &pseudo).expect("a packet");
        bytes[6..8].copy_from_slice(&sum.to_be_bytes());
        ip.extend(bytes);
        let time = Duration::from_nanos(sent.at.as_nanos().unsigned_abs());
        writer.write_packet(&PcapPacket::new(time, ip.len() as u32, &ip)).expect("memory");
    }
    writer.into_writer()
}

/// The last two hold short numbers.
const FIELDS: [&str; 27] = [
    "dccp.srcport",
    "dccp.dstport",
    "dccp.data_offset",
    "dccp.ccval",
    "dccp.cscov",
    "dccp.checksum.status",
    "dccp.type",
    "dccp.x",
    "dccp.seq_raw",
    "dccp.ack_raw",
    "dccp.service_code",
    "dccp.reset_code",
    "dccp.option_type",
    "dccp.feature_number",
    "dccp.ndp_count",
    "dccp.timestamp",
    "dccp.timestamp_echo",
    "dccp.elapsed_time",
    "dccp.checksum_data",
    "dccp.ack_vector.nonce_0",
    "dccp.data_dropped",
    "dccp.ccid3_loss_event_rate",
    "dccp.ccid3_receive_rate",
    "_ws.expert.message",
    "_ws.malformed",
    "dccp.seq",
    "dccp.ack",
];

/// The values of these fields by Weir's own parser. Padding is omitted.
fn expected(sent: &Sent) -> Vec<String> {
    let p = parse(&sent.bytes, sent.beyond).expect("a packet");
    let h = p.header;
    let number = |s: weir_dccp::packet::WireSequence| s.zero_extended().get().to_string();
    let options: Vec<_> = p.options.iter().map(|o| o.expect("an option")).collect();
    let list =
        |f: &dyn Fn(&DccpOption<'_>) -> Option<String>| options.iter().filter_map(f).collect::<Vec<_>>().join(",");
    use DccpOption as O;
    vec![
        h.source_port.to_string(),
        h.destination_port.to_string(),
        (header_len(sent) / 4).to_string(),
        h.ccval.to_string(),
        h.checksum_coverage.to_string(),
        // Good.
        "1".into(),
        h.packet_type.number().to_string(),
        u8::from(!h.sequence.is_short()).to_string(),
        number(h.sequence),
        h.acknowledgement.map_or_else(String::new, number),
        p.service_code.map_or_else(String::new, |c| c.0.to_string()),
        p.reset.map_or_else(String::new, |(c, _)| c.0.to_string()),
        list(&|o| Some(o.number().to_string())),
        list(&|o| match o {
            O::ChangeL(f, _) | O::ChangeR(f, _) | O::ConfirmL(f, _) | O::ConfirmR(f, _) => Some(f.0.to_string()),
            _ => None,
        }),
        list(&|o| if let O::NdpCount(n) = o { Some(n.to_string()) } else { None }),
        list(&|o| if let O::Timestamp(t) = o { Some(t.to_string()) } else { None }),
        list(&|o| if let O::TimestampEcho { echo, .. } = o { Some(echo.to_string()) } else { None }),
        list(&|o| match *o {
            O::ElapsedTime(t) | O::TimestampEcho { elapsed: t @ 1.., .. } => Some(t.to_string()),
            _ => None,
        }),
        list(&|o| if let O::DataChecksum(c) = o { Some(format!("0x{c:08x}")) } else { None }),
        list(&|o| if let O::AckVector { nonce: false, runs } = o { Some(hex(runs)) } else { None }),
        list(&|o| if let O::DataDropped(blocks) = o { Some(hex(blocks)) } else { None }),
        list(&|o| if let O::Ccid { number: 192, data } = o { Some(decimal(data)) } else { None }),
        list(&|o| if let O::Ccid { number: 194, data } = o { Some(decimal(data)) } else { None }),
        String::new(),
        String::new(),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn decimal(bytes: &[u8]) -> String {
    bytes.iter().fold(0u64, |n, &b| n << 8 | u64::from(b)).to_string()
}

fn header_len(sent: &Sent) -> usize {
    sent.bytes.len() - parse(&sent.bytes, sent.beyond).expect("a packet").data.len()
}

/// Tshark's fields of each packet; `None` if tshark is not installed.
fn tshark(file: &[u8]) -> Option<Vec<Vec<String>>> {
    let mut capture = tempfile::NamedTempFile::new().expect("a temporary file");
    std::io::Write::write_all(&mut capture, file).expect("written");
    let mut tshark = Command::new("tshark");
    tshark.args(["-o", "dccp.check_checksum:TRUE", "-o", "dccp.relative_sequence_numbers:FALSE"]);
    tshark.args(["-T", "fields", "-E", "separator=/t", "-r"]).arg(capture.path());
    FIELDS.iter().for_each(|f| {
        tshark.args(["-e", f]);
    });
    let Ok(out) = tshark.output() else {
        println!("tshark is not installed (apt-get install tshark): dissection not checked");
        return None;
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let rows: Vec<Vec<String>> = text.lines().map(|l| l.split('\t').map(str::to_owned).collect()).collect();
    assert!(!rows.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(rows)
}

/// Whether tshark agrees with Weir, packet by packet.
fn check(packets: &[Sent], v6: bool) {
    let Some(rows) = tshark(&capture(packets, v6)) else { return };
    assert_eq!(rows.len(), packets.len());
    let mut faults = vec![];
    for (i, (sent, mut row)) in packets.iter().zip(rows).enumerate() {
        row.resize(FIELDS.len(), String::new());
        for (short, raw) in [(FIELDS.len() - 1, 9), (FIELDS.len() - 2, 8)] {
            let number = row.remove(short);
            if row[raw].is_empty() {
                row[raw] = number;
            }
        }
        row[12] = row[12].split(',').filter(|o| *o != "0").collect::<Vec<_>>().join(",");
        for ((field, got), want) in FIELDS.iter().zip(row).zip(expected(sent)) {
            if got != want {
                faults.push(format!("packet {}: {field} is {got:?}, expected {want:?}: {:02x?}", i + 1, sent.bytes));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults[..faults.len().min(20)].join("\n"));
}

fn types_and_options(packets: &[Sent]) -> (BTreeSet<u8>, BTreeSet<u8>) {
    let parsed: Vec<_> = packets.iter().map(|s| parse(&s.bytes, s.beyond).expect("a packet")).collect();
    let options = parsed.iter().flat_map(|p| p.options.iter()).map(|o| o.expect("an option").number());
    (parsed.iter().map(|p| p.header.packet_type.number()).collect(), options.collect())
}

#[test]
fn tshark_reads_all_that_connections_send() {
    let mut all = vec![];
    for mut pair in [ccid_2(), ccid_3()] {
        assert!(pair.client.end().is_some() && pair.end(false).is_some_and(|s| s.end().is_some()));
        check(&pair.log, false);
        check(&pair.log, true);
        all.append(&mut pair.log);
    }
    let mut pair = syncs_and_cookies();
    check(&pair.log, false);
    all.append(&mut pair.log);

    let (types, options) = types_and_options(&all);
    assert_eq!(types, (0..10).collect());
    // All that Weir's connections send by themselves.
    let by_itself = [2, 32, 33, 34, 35, 36, 37, 38, 40, 41, 42, 43, 44, 192, 193, 194];
    assert_eq!(
        by_itself.iter().filter(|o| !options.contains(o)).collect::<Vec<_>>(),
        [&0; 0],
        "not sent: of {options:?}"
    );
}

#[test]
fn tshark_reads_every_option_on_every_type() {
    let packets = written::packets();
    let (types, options) = types_and_options(&packets);
    assert_eq!(types, (0..10).collect());
    let numbers =
        [&[1, 2, 3, 31][..], &[32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 127, 128, 192, 193, 194, 255]];
    assert_eq!(options, numbers.concat().into_iter().collect());
    check(&packets, false);
    check(&packets, true);
}
