//! An independent dissector parses the FEC formats that it supports: RED, and the header of interleaved parity, whose
//! layout is that of SMPTE 2022-1. It supports neither ULPFEC nor FlexFEC.

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness};
use std::process::Command;
use std::time::Duration;
use weir_wire::fec::Octets;
use weir_wire::fec::interleaved::Repair;
use weir_wire::fec::parity::Recovery;
use weir_wire::fec::red::{Block, Blocks, Red};
use weir_wire::rtp::Header;

const PORT: u16 = 5_004;
const RED: u8 = 99;
/// The payload type that the dissector is configured to parse as parity.
const PARITY: u8 = 96;

/// An RTP packet and the dissector's expected output: a field's name and its values in order.
type Case = (Vec<u8>, Vec<(&'static str, &'static str)>);

fn red() -> Case {
    let redundant = [
        Block { payload_type: 7, timestamp_offset: 320, data: Octets::new(&[1, 2, 3]) },
        Block { payload_type: 8, timestamp_offset: 16_383, data: Octets::new(&[4]) },
    ];
    let red = Red { redundant: Blocks::Own(&redundant), payload_type: 5, primary: Octets::new(&[9, 9]) };
    let mut bytes = vec![];
    Header { payload_type: RED, sequence: 1, ssrc: 2, ..Header::default() }.write_into(&mut bytes);
    assert_eq!(red.write_into(&mut bytes), Some(0));
    let fields = vec![
        ("rtp.p_type", "99,7,8,5"),
        ("rtp.follow", "1,1,0"),
        ("rtp.timestamp-offset", "320,16383"),
        ("rtp.block-length", "3,1"),
        // The whole payload, then the blocks.
        ("rtp.payload", "8705000388fffc0105010203040909,010203,04,0909"),
    ];
    (bytes, fields)
}

fn parity() -> Case {
    let repair = Repair {
        payload_type: PARITY,
        sequence: 0x0102,
        timestamp: 3,
        ssrc: 4,
        recovery: Recovery { flags: 0x00a1, timestamp: 0x0b0c_0d0e, length: 0x0f10 },
        base: 1_234,
        columns: 10,
        rows: 5,
        payload: Octets::new(&[0xab, 0xcd]),
    };
    let mut bytes = vec![];
    assert_eq!(repair.write_into(&mut bytes), Some(0));
    let fields = vec![
        ("rtp.p_type", "96"),
        ("rtp.marker", "1"),
        ("2dparityfec.snbase_low", "1234"),
        ("2dparityfec.lr", "0x0f10"),
        ("2dparityfec.e", "1"),
        ("2dparityfec.ptr", "0x21"),
        ("2dparityfec.mask", "0x000000"),
        ("2dparityfec.tsr", "0x0b0c0d0e"),
        ("2dparityfec.x", "0"),
        ("2dparityfec.d", "0"),
        ("2dparityfec.type", "0"),
        ("2dparityfec.index", "0"),
        ("2dparityfec.offset", "10"),
        ("2dparityfec.na", "5"),
        ("2dparityfec.snbase_ext", "0"),
        ("2dparityfec.payload", "abcd"),
    ];
    (bytes, fields)
}

/// The datagram in UDP over IPv4 without checksums, for the raw link type.
fn ip_packet(datagram: &[u8]) -> Vec<u8> {
    let udp = (8 + datagram.len()) as u16;
    let mut p = vec![0x45, 0];
    p.extend_from_slice(&(20 + udp).to_be_bytes());
    p.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    [PORT, PORT, udp, 0].iter().for_each(|field| p.extend_from_slice(&field.to_be_bytes()));
    p.extend_from_slice(datagram);
    p
}

#[test]
fn tshark_reads_red_and_interleaved_parity() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("tshark is not installed (apt-get install tshark): dissection not checked");
        return;
    }
    for (bytes, fields) in [red(), parity()] {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let header = PcapHeader { datalink: DataLink::RAW, endianness: Endianness::Little, ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(file.as_file_mut(), header).expect("a header");
        let packet = ip_packet(&bytes);
        writer.write_packet(&PcapPacket::new(Duration::ZERO, packet.len() as u32, &packet)).expect("a packet");
        let out = Command::new("tshark")
            .args(["-d", &format!("udp.port=={PORT},rtp"), "-d", &format!("rtp.pt=={RED},rtp_rfc2198")])
            .args(["-o", "2dparityfec.enable:TRUE", "-T", "fields", "-E", "separator=;", "-E", "aggregator=,"])
            .args(fields.iter().chain(&[("_ws.malformed", "")]).flat_map(|(name, _)| ["-e", name]))
            .arg("-r")
            .arg(file.path())
            .output()
            .expect("tshark runs");
        let text = String::from_utf8_lossy(&out.stdout);
        let got: Vec<&str> = text.trim_end_matches('\n').split(';').collect();
        let mut want: Vec<&str> = fields.iter().map(|(_, value)| *value).collect();
        want.push("");
        assert_eq!(got, want, "{fields:?}\n{}", String::from_utf8_lossy(&out.stderr));
    }
}
