//! An independent dissector parses one packet of every message type from a capture file.

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness};
use std::process::Command;
use std::time::Duration;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::{self, Packet, ScaledRate, ccfb, twcc, xr};
use weir_wire::rtp::{Header, extension::Element, extension::ntp_56, extension::ntp_64, write_padding};

mod feedback;
mod multipath;
mod reports;
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

/// Reads the dissection of a capture of all cases, packet by packet, as PDML; `None` without a dissector.
fn dissected(cases: &[Case], args: &[String]) -> Option<Vec<String>> {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("tshark is not installed (apt-get install tshark): dissection not checked");
        return None;
    }
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    let header = PcapHeader { datalink: DataLink::RAW, endianness: Endianness::Little, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(file.as_file_mut(), header).expect("a header");
    for (i, case) in cases.iter().enumerate() {
        let packet = ip_packet(case);
        let packet = PcapPacket::new(Duration::from_millis(i as u64), packet.len() as u32, &packet);
        writer.write_packet(&packet).expect("a packet");
    }
    let out = Command::new("tshark").args(args).args(["-T", "pdml", "-r"]).arg(file.path()).output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout);
    let packets: Vec<String> = text.split("<packet>").skip(1).map(String::from).collect();
    assert_eq!(packets.len(), cases.len(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(packets)
}

/// Lists the differences of the dissection from the case.
fn faults_of(case: &Case, pdml: &str) -> Vec<String> {
    let mut faults = vec![];
    if pdml.contains("_ws.malformed") || pdml.contains("Malformed") {
        faults.push(format!("{}: malformed", case.name));
    }
    for (field, want) in &case.fields {
        let got = values(pdml, field);
        if got != *want {
            faults.push(format!("{}: {field} is {got:?}, expected {want:?}", case.name));
        }
    }
    faults
}

#[test]
fn tshark_reads_every_message() {
    let feedback = [feedback::feedback_cases(), feedback::congestion_cases()];
    let reports = [reports::rtp_cases(), reports::report_cases(), xr_blocks::xr_cases()];
    let cases: Vec<Case> = reports.into_iter().chain(feedback).flatten().collect();
    let ports = [(RTP_PORT, "rtp"), (RTCP_PORT, "rtcp")];
    let args = ports.into_iter().flat_map(|(port, name)| ["-d".into(), format!("udp.port=={port},{name}")]);
    let Some(packets) = dissected(&cases, &args.collect::<Vec<_>>()) else { return };
    let mut faults = vec![];
    for (case, pdml) in cases.iter().zip(packets) {
        let protocol = if case.port == RTP_PORT { "rtp" } else { "rtcp" };
        assert!(pdml.contains(&format!("<proto name=\"{protocol}\"")), "{} is not taken for {protocol}", case.name);
        if case.port == RTCP_PORT && values(&pdml, "rtcp.length_check") != ["1"] {
            faults.push(format!("{}: the lengths do not add up", case.name));
        }
        faults.extend(faults_of(case, &pdml));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
