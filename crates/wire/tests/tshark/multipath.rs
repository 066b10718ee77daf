//! Multipath RTP and RTCP, by the dissector in `tools/wireshark`.

use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_wire::rtcp::mprtcp::{Interface, InterfaceAddress, Writer};
use weir_wire::rtcp::{App, ReceiverReport, ReportBlock};
use weir_wire::rtp::mprtp::SubflowNumber;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/mprtp.lua");

/// A datagram of multipath RTCP with what `write` adds, after what `before` appends.
fn mprtcp(
    name: &'static str,
    before: impl FnOnce(&mut Vec<u8>),
    write: impl FnOnce(&mut Writer<'_>),
    fields: &[(&'static str, &[&'static str])],
) -> Case {
    let mut bytes = vec![];
    before(&mut bytes);
    let mut writer = Writer::new(&mut bytes, 22, 11);
    write(&mut writer);
    writer.finish();
    Case { name, port: RTP_PORT, bytes, fields: fields.iter().map(|(f, v)| (*f, v.to_vec())).collect() }
}

fn report(highest_sequence: u32) -> impl FnOnce(&mut Vec<u8>) {
    move |out| {
        let block = [ReportBlock { ssrc: 11, highest_sequence, ..ReportBlock::default() }];
        ReceiverReport { ssrc: 22, blocks: (&block).into(), extension: &[] }.write_into(out);
    }
}

fn check(subtype: u8) -> impl FnOnce(&mut Vec<u8>) {
    move |out| App { subtype, ssrc: 22, name: *b"WPCK", data: b"01234567" }.write_into(out)
}

fn cases() -> Vec<Case> {
    let numbers = [(1, 65_534), (2, 7)].map(|(subflow, sequence)| SubflowNumber { subflow, sequence }.to_data());
    let media = |name, sequence, data: &[u8; 5], fields| {
        let elements = [Element::new(6, data).expect("a sound element")];
        let header =
            Header { payload_type: 96, sequence, timestamp: 2, ssrc: 11, elements: &elements, ..Header::default() };
        rtp(name, header, &[9; 20], fields)
    };
    let one = |writer: &mut Writer<'_>| assert!(writer.reports(1, report(65_600)));
    let interfaces = |writer: &mut Writer<'_>| {
        let addresses = [
            InterfaceAddress::V4(Ipv4Addr::new(192, 0, 2, 7)),
            InterfaceAddress::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9)),
            InterfaceAddress::Name("host.example"),
            InterfaceAddress::Name("host.exampl"),
        ];
        for (address, port) in addresses.into_iter().zip(5_000..) {
            assert!(writer.interface(&Interface::new(port, address).expect("valid")));
        }
    };
    vec![
        // The first packet of multipath RTCP makes the dissector recognise the flow.
        mprtcp(
            "a report on one subflow",
            |_| (),
            one,
            &[
                ("mprtcp.sender_ssrc", &["0x00000016"]),
                ("mprtcp.media_ssrc", &["0x0000000b"]),
                ("mprtcp.type", &["0"]),
                ("mprtcp.block_length", &["8"]),
                ("mprtcp.subflow", &["1"]),
                ("rtcp.pt", &["201"]),
                ("rtcp.ssrc.ext_high", &["65600"]),
            ],
        ),
        media(
            "a packet",
            1,
            &numbers[0],
            &[("mprtp.mpid", &["0"]), ("mprtp.subflow", &["1"]), ("mprtp.fssn", &["65534"])],
        ),
        media("another", 2, &numbers[1], &[("rtp.seq", &["2"]), ("mprtp.subflow", &["2"]), ("mprtp.fssn", &["7"])]),
        mprtcp(
            "reports on two subflows",
            |_| (),
            |w| {
                assert!(w.reports(1, report(3)) && w.reports(2, report(4)));
            },
            &[("mprtcp.subflow", &["1", "2"]), ("rtcp.ssrc.ext_high", &["3", "4"])],
        ),
        mprtcp(
            "a challenge",
            |_| (),
            |w| assert!(w.reports(3, check(0))),
            &[
                ("mprtcp.subflow", &["3"]),
                ("mprtcp.check", &["0"]),
                ("mprtcp.check.octets", &["30:31:32:33:34:35:36:37"]),
                ("rtcp.app.name", &["WPCK"]),
            ],
        ),
        mprtcp("a response", |_| (), |w| assert!(w.reports(3, check(1))), &[("mprtcp.check", &["1"])]),
        mprtcp(
            "addresses after a receiver report",
            |out| ReceiverReport { ssrc: 22, ..ReceiverReport::default() }.write_into(out),
            interfaces,
            &[
                ("rtcp.pt", &["201"]),
                ("mprtcp.type", &["1", "2", "3", "3"]),
                ("mprtcp.port", &["5000", "5001", "5002", "5003"]),
                ("mprtcp.ipv4", &["192.0.2.7"]),
                ("mprtcp.ipv6", &["2001:db8::9"]),
                ("mprtcp.name", &["host.example", "host.exampl"]),
            ],
        ),
        rtcp_on_one_port(
            "plain RTCP in the same flow",
            report(5),
            &[("rtcp.ssrc.ext_high", &["5"]), ("mprtcp.type", &[])],
        ),
    ]
}

fn rtcp_on_one_port(
    name: &'static str,
    write: impl FnOnce(&mut Vec<u8>),
    fields: &[(&'static str, &[&'static str])],
) -> Case {
    let mut bytes = vec![];
    write(&mut bytes);
    Case { name, port: RTP_PORT, bytes, fields: fields.iter().map(|(f, v)| (*f, v.to_vec())).collect() }
}

fn script(more: &[&str]) -> Vec<String> {
    let script = ["-X".to_string(), format!("lua_script:{SCRIPT}")];
    script.into_iter().chain(more.iter().map(|s| s.to_string())).collect()
}

#[test]
fn the_lua_dissector_reads_multipath_rtp_and_rtcp() {
    let cases = cases();
    let Some(packets) = dissected(&cases, &script(&[])) else { return };
    let faults: Vec<_> = cases.iter().zip(&packets).flat_map(|(case, pdml)| faults_of(case, pdml)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn another_identifier_and_malformed_packets_are_read_too() {
    // A subflow of ten bytes' length in element 3, a block longer than its packet, and one of length zero.
    let element = Element::new(3, &[0x04, 0, 1, 0, 5]).expect("a sound element");
    let header = Header { payload_type: 96, ssrc: 11, elements: &[element], ..Header::default() };
    let bad = Element::new(3, &[0x14, 0, 1]).expect("a sound element");
    let cases = [
        rtp("element 3", header, &[1], &[("mprtp.subflow", &["1"]), ("mprtp.fssn", &["5"])]),
        rtp(
            "another MPID",
            Header { elements: &[bad], ..header },
            &[1],
            &[("mprtp.mpid", &["1"]), ("mprtp.subflow", &[])],
        ),
        rtcp_on_one_port(
            "a block longer than its packet",
            |out| out.extend([0x80, 211, 0, 3, 0, 0, 0, 22, 0, 0, 0, 11, 0, 9, 0, 1]),
            &[("mprtcp.sender_ssrc", &["0x00000016"]), ("mprtcp.subflow", &[])],
        ),
        rtcp_on_one_port(
            "a block of length zero",
            |out| out.extend([0x80, 211, 0, 3, 0, 0, 0, 22, 0, 0, 0, 11, 0, 0, 0, 1]),
            &[("mprtcp.block_length", &["0"]), ("mprtcp.subflow", &[])],
        ),
        rtcp_on_one_port("no blocks", |out| out.extend([0x80, 211, 0, 1, 0, 0, 0, 22]), &[("mprtcp.length", &["1"])]),
    ];
    let decode = format!("udp.port=={RTP_PORT},mprtp_mux");
    let Some(packets) = dissected(&cases, &script(&["-o", "mprtp.element_id:3", "-d", &decode])) else { return };
    let experts = ["", "mprtp.malformed", "mprtcp.malformed", "mprtcp.ignored", "mprtcp.malformed"];
    for ((case, pdml), expert) in cases.iter().zip(&packets).zip(experts) {
        for (field, want) in &case.fields {
            assert_eq!(values(pdml, field), *want, "{}: {field}", case.name);
        }
        let found =
            ["mprtp.malformed", "mprtcp.malformed", "mprtcp.ignored"].map(|e| pdml.contains(&format!("name=\"{e}\"")));
        assert_eq!(found.iter().filter(|f| **f).count(), usize::from(!expert.is_empty()), "{}", case.name);
        assert!(expert.is_empty() || pdml.contains(&format!("name=\"{expert}\"")), "{}: {expert}", case.name);
        assert!(!pdml.contains("Lua Error"), "{}", case.name);
    }
}
