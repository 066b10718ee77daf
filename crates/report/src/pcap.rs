//! A run's packets as a pcapng file: IPv4 and UDP headers with valid checksums around the real RTP and RTCP bytes, IP
//! headers around DCCP.
//!
//! Every flow is first announced by a SAP packet with an SDP description (RFC 2974, RFC 8866), so that Wireshark and
//! tshark dissect RTP and RTCP on its port (both on one, RFC 5761) without further options.

mod dccp;

pub use dccp::{DccpPacket, dccp_to_ip};

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgBlock};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;
use weir_dccp::packet::{PseudoHeader, ServiceCode};
use weir_units::{Ecn, Timestamp};

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// UDP's number as an IP protocol.
const UDP: u8 = 17;
/// Largest UDP payload that an IPv4 packet holds.
const MAX_PAYLOAD: usize = 65_535 - IP_HEADER - UDP_HEADER;
/// Port of both ends of every flow, as IANA has registered it for RTP.
pub const RTP_PORT: u16 = 5004;
/// Port and group of session announcements (RFC 2974, section 3).
const SAP_PORT: u16 = 9875;
const SAP_GROUP: Ipv4Addr = Ipv4Addr::new(224, 2, 127, 254);

/// Direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the media sender.
    Forward,
    /// From the media receiver.
    Reverse,
}

/// How a payload that exists as a length only is written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Payload {
    /// Not at all: the captured length is below the original length.
    #[default]
    Snapped,
    /// As zeros.
    Zeros,
}

/// The form in which a datagram is written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum PacketKind {
    /// UDP, unchanged: RTP and RTCP.
    #[default]
    Udp,
    /// DCCP over UDP, written without UDP (see [`dccp_to_ip`]).
    Dccp,
}

/// One datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// When it passed the point of capture, in simulated time.
    pub now: Timestamp,
    /// The flow: the sender is 10.0.x.y and the receiver 10.1.x.y, x.y being this number plus one.
    pub flow: u16,
    /// Its direction.
    pub direction: Direction,
    /// Its form.
    pub kind: PacketKind,
    /// The UDP payload's bytes, as far as they exist.
    pub bytes: &'a [u8],
    /// The UDP payload's length; bytes missing in `bytes` count as zeros.
    pub length: usize,
    /// The ECN field.
    pub ecn: Ecn,
}

/// An RTP flow for its announcement.
#[derive(Clone, Copy, Debug)]
pub struct Announcement<'a> {
    /// See [`Datagram::flow`].
    pub flow: u16,
    /// Its name.
    pub name: &'a str,
    /// The form of its packets. Dissectors look for RTP in UDP only.
    pub kind: PacketKind,
    /// Its RTP payload type.
    pub payload_type: u8,
}

/// The system's error, if it is one: the library's own text is about reading.
fn cause(e: &PcapError) -> String {
    match e {
        PcapError::IoError(e) => e.to_string(),
        e => e.to_string(),
    }
}

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PcapFileError {
    /// The underlying writer failed.
    #[error("cannot write the capture: {}", cause(.0))]
    Write(#[from] PcapError),
    /// A payload too long for an IP packet.
    #[error("a datagram of {length} bytes does not fit into an IP packet (at most {max})")]
    TooLong {
        /// Its bytes.
        length: usize,
        /// The maximum.
        max: usize,
    },
}

/// Writes one capture. Times are simulated ones, counted from 1 January 1970, to the nanosecond.
pub struct PcapWriter<W: Write> {
    out: PcapNgWriter<W>,
    payload: Payload,
    buffer: Vec<u8>,
    packets: u16,
}

impl<W: Write> PcapWriter<W> {
    /// A capture that begins with its headers, which have `title` as a comment. The writer should be buffered.
    pub fn new(out: W, title: &str, payload: Payload) -> Result<Self, PcapFileError> {
        Self::on("simulated", out, title, payload)
    }

    /// As [`Self::new`], with packets captured at an interface of this name.
    pub fn on(interface: &str, out: W, title: &str, payload: Payload) -> Result<Self, PcapFileError> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::UserApplication(Cow::Borrowed("weir")),
                SectionHeaderOption::Comment(Cow::Owned(title.to_owned())),
            ],
            ..Default::default()
        };
        let mut out = PcapNgWriter::with_section_header(out, section)?;
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            // Without this option readers take times as microseconds.
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(interface)),
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        out.write_block(&interface.into_block())?;
        Ok(Self { out, payload, buffer: Vec::with_capacity(2_048), packets: 0 })
    }

    /// Announces an RTP flow by SAP and SDP, before its first packet.
    pub fn announce(&mut self, now: Timestamp, a: &Announcement<'_>) -> Result<(), PcapFileError> {
        let Announcement { flow, payload_type, .. } = *a;
        let (over, attributes) = match a.kind {
            PacketKind::Udp => ("", String::new()),
            // RFC 5762, section 5.
            PacketKind::Dccp => {
                ("DCCP/", format!("a=dccp-service-code:{}\r\na=setup:passive\r\n", ServiceCode::RTP_VIDEO))
            }
        };
        let media = format!(
            "m=video {RTP_PORT} {over}RTP/AVPF {payload_type}\r\na=rtpmap:{payload_type} x-simulated/90000\r\n\
             a=rtcp-mux\r\na=rtcp-rsize\r\n{attributes}"
        );
        self.announce_media(now, flow, a.name, &media)
    }

    /// Announces an RTP flow whose media are described by `media`: lines of SDP from `m=` on, with [`RTP_PORT`], each with its line
    /// end.
    pub fn announce_media(&mut self, now: Timestamp, flow: u16, name: &str, media: &str) -> Result<(), PcapFileError> {
        let [sender, receiver] = [address(flow, Direction::Forward), address(flow, Direction::Reverse)];
        let ip = |a: [u8; 4]| format!("{}.{}.{}.{}", a[0], a[1], a[2], a[3]);
        // A line end would end the description's line.
        let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let sdp = format!(
            "v=0\r\no=- {flow} 1 IN IP4 {}\r\ns={name}\r\nc=IN IP4 {}\r\nt=0 0\r\n{media}",
            ip(sender),
            ip(receiver)
        );
        // Version 1, IPv4, announcement, no authentication (RFC 2974, section 6).
        let mut sap = vec![0x20, 0];
        sap.extend(flow.to_be_bytes());
        sap.extend(sender);
        sap.extend(b"application/sdp\0");
        sap.extend(sdp.as_bytes());
        let (from, to) = (SocketAddrV4::new(sender.into(), SAP_PORT), SocketAddrV4::new(SAP_GROUP, SAP_PORT));
        self.udp(now, &UdpPacket { from, to, bytes: &sap, length: sap.len(), ecn: Ecn::NotEct })
    }

    /// Writes one datagram.
    pub fn packet(&mut self, d: &Datagram<'_>) -> Result<(), PcapFileError> {
        let [sender, receiver] = [address(d.flow, Direction::Forward), address(d.flow, Direction::Reverse)];
        let (src, dst) = match d.direction {
            Direction::Forward => (sender, receiver),
            Direction::Reverse => (receiver, sender),
        };
        let length = d.length.max(d.bytes.len());
        match d.kind {
            PacketKind::Udp => {
                let [from, to] = [src, dst].map(|a| SocketAddrV4::new(a.into(), RTP_PORT));
                self.udp(d.now, &UdpPacket { from, to, bytes: d.bytes, length, ecn: d.ecn })
            }
            PacketKind::Dccp => {
                let addresses = PseudoHeader::V4(src.into(), dst.into());
                self.dccp(d.now, &DccpPacket { addresses, ecn: d.ecn, bytes: d.bytes, length })
            }
        }
    }

    /// Writes a DCCP packet between any two addresses.
    pub fn dccp(&mut self, now: Timestamp, packet: &DccpPacket<'_>) -> Result<(), PcapFileError> {
        self.packets = self.packets.wrapping_add(1);
        let length = dccp_to_ip(packet, self.packets, self.payload, &mut self.buffer)?;
        write_ip(&mut self.out, now, &self.buffer, length as u32)
    }

    /// Flushes and returns the writer.
    pub fn finish(self) -> Result<W, PcapFileError> {
        let mut out = self.out.into_inner();
        out.flush().map_err(PcapError::IoError)?;
        Ok(out)
    }

    fn udp(&mut self, now: Timestamp, packet: &UdpPacket<'_>) -> Result<(), PcapFileError> {
        let UdpPacket { from, to, bytes, length, ecn } = *packet;
        if length > MAX_PAYLOAD {
            return Err(PcapFileError::TooLong { length, max: MAX_PAYLOAD });
        }
        let total = (IP_HEADER + UDP_HEADER + length) as u16;
        let udp_length = (UDP_HEADER + length) as u16;
        self.packets = self.packets.wrapping_add(1);
        let b = &mut self.buffer;
        b.clear();
        let (source, destination) = (*from.ip(), *to.ip());
        Ipv4Header { source, destination, protocol: UDP, total, identification: self.packets, ecn }.write_into(b);
        b.extend(from.port().to_be_bytes());
        b.extend(to.port().to_be_bytes());
        b.extend(udp_length.to_be_bytes());
        // Zeros that are not written do not change the sum (RFC 768: pseudo-header, header and payload).
        let pseudo = [&source.octets()[..], &destination.octets(), &[0, UDP], &udp_length.to_be_bytes()].concat();
        let udp_sum = match checksum(&[&pseudo, &b[IP_HEADER..], bytes]) {
            0 => 0xffff,
            sum => sum,
        };
        b.extend(udp_sum.to_be_bytes());
        b.extend(bytes);
        if self.payload == Payload::Zeros {
            b.resize(usize::from(total), 0);
        }
        write_ip(&mut self.out, now, b, u32::from(total))
    }

    /// Writes an IP packet unchanged.
    pub fn ip(&mut self, now: Timestamp, packet: &[u8]) -> Result<(), PcapFileError> {
        write_ip(&mut self.out, now, packet, packet.len() as u32)
    }
}

fn write_ip<W: Write>(out: &mut PcapNgWriter<W>, now: Timestamp, b: &[u8], length: u32) -> Result<(), PcapFileError> {
    let block = EnhancedPacketBlock {
        interface_id: 0,
        timestamp: Duration::from_nanos(now.as_nanos().max(0).unsigned_abs()),
        original_len: length,
        data: Cow::Borrowed(b),
        options: vec![],
    };
    out.write_block(&Block::EnhancedPacket(block))?;
    Ok(())
}

/// A UDP datagram to be written.
struct UdpPacket<'a> {
    from: SocketAddrV4,
    to: SocketAddrV4,
    /// Its payload, or the beginning of the payload.
    bytes: &'a [u8],
    /// Bytes of the whole payload.
    length: usize,
    ecn: Ecn,
}

/// An IPv4 header without options: time to live 64, don't fragment (RFC 791).
struct Ipv4Header {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    /// Bytes of the packet, this header included.
    total: u16,
    identification: u16,
    ecn: Ecn,
}

impl Ipv4Header {
    fn write_into(&self, b: &mut Vec<u8>) {
        let start = b.len();
        b.extend([0x45, self.ecn.bits()]);
        b.extend(self.total.to_be_bytes());
        b.extend(self.identification.to_be_bytes());
        b.extend([0x40, 0, 64, self.protocol, 0, 0]);
        b.extend(self.source.octets());
        b.extend(self.destination.octets());
        let sum = checksum(&[&b[start..]]);
        b[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
    }
}

fn address(flow: u16, end: Direction) -> [u8; 4] {
    let [x, y] = flow.wrapping_add(1).to_be_bytes();
    [10, u8::from(end == Direction::Reverse), x, y]
}

/// The Internet checksum (RFC 1071) of concatenated parts; all but the last have even lengths.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::PcapNgReader;

    /// A sender report of SSRC 0x11223344 (RFC 3550, section 6.4.1).
    const SR: [u8; 28] =
        [0x80, 200, 0, 6, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5];
    /// An RTP header of payload type 96, sequence number 7 and the same SSRC.
    const RTP: [u8; 12] = [0x80, 96, 0, 7, 0, 0, 0, 90, 0x11, 0x22, 0x33, 0x44];

    fn capture(payload: Payload) -> Vec<u8> {
        let mut w = PcapWriter::new(Vec::new(), "a test", payload).expect("memory");
        let at = Timestamp::from_millis;
        let udp = Announcement { flow: 0, name: "camera\r\nx", kind: PacketKind::Udp, payload_type: 96 };
        w.announce(at(0), &udp).expect("memory");
        let d = Datagram {
            now: at(1_500),
            flow: 0,
            direction: Direction::Forward,
            kind: PacketKind::Udp,
            bytes: &RTP,
            length: 1_012,
            ecn: Ecn::Ect1,
        };
        w.packet(&d).expect("memory");
        w.packet(&Datagram { bytes: &SR, length: 28, ..d }).expect("memory");
        // A picture loss indication alone, reduced-size.
        let pli = [0x81, 206, 0, 2, 0, 0, 0, 9, 0x11, 0x22, 0x33, 0x44];
        w.packet(&Datagram { bytes: &pli, length: 12, direction: Direction::Reverse, ..d }).expect("memory");
        w.finish().expect("memory")
    }

    #[test]
    fn lengths_and_checksums() {
        let read = |file: &[u8]| {
            let mut reader = PcapNgReader::new(file).expect("a capture");
            let mut packets = Vec::new();
            while let Some(block) = reader.next_block() {
                if let Block::EnhancedPacket(p) = block.expect("whole") {
                    packets.push((p.timestamp, p.original_len, p.data.to_vec()));
                }
            }
            packets
        };
        let (snapped, zeros) = (read(&capture(Payload::Snapped)), read(&capture(Payload::Zeros)));
        assert_eq!(snapped.len(), 4);
        let (time, original, data) = &snapped[1];
        assert_eq!((*time, *original, data.len()), (Duration::from_millis(1_500), 1_040, 40));
        assert_eq!(zeros[1].2.len(), 1_040);
        assert_eq!(data[1], 0b01, "ECT(1)");
        // The sum over a valid header, checksum included, is zero (RFC 1071).
        let full = &zeros[1].2;
        assert_eq!(checksum(&[&full[..20]]), 0);
        assert_eq!(checksum(&[&full[12..20], &[0, 17], &full[24..26], &full[20..]]), 0);
        assert_eq!(data[..28], full[..28]);
    }

    #[test]
    fn too_long_a_datagram_is_an_error() {
        let mut w = PcapWriter::new(Vec::new(), "", Payload::Snapped).expect("memory");
        let d = Datagram {
            now: Timestamp::ZERO,
            flow: 0,
            direction: Direction::Forward,
            kind: PacketKind::Udp,
            bytes: &RTP,
            length: 70_000,
            ecn: Ecn::NotEct,
        };
        let dccp = Datagram { kind: PacketKind::Dccp, ..d };
        assert!(matches!(w.packet(&dccp), Err(PcapFileError::TooLong { length: 70_000, max: 65_515 })));
        assert!(matches!(w.packet(&d), Err(PcapFileError::TooLong { length: 70_000, .. })));
    }

    #[test]
    fn tshark_dissects_without_options() {
        for payload in [Payload::Snapped, Payload::Zeros] {
            let dir = tempfile::tempdir().expect("a folder");
            let file = dir.path().join("run.pcapng");
            std::fs::write(&file, capture(payload)).expect("written");
            let fields =
                ["frame.time_epoch", "ip.src", "ip.dst", "frame.len", "rtp.seq", "rtcp.pt", "udp.checksum.status"];
            let mut tshark = std::process::Command::new("tshark");
            tshark.arg("-r").arg(&file).args(["-T", "fields", "-E", "separator=|"]);
            tshark.args(["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
            for f in fields {
                tshark.args(["-e", f]);
            }
            let Ok(out) = tshark.output() else {
                println!("skipped: no tshark on this machine");
                return;
            };
            let text = String::from_utf8_lossy(&out.stdout);
            let lines: Vec<&str> = text.lines().skip(1).collect();
            // Status 1 is a valid checksum; that of a truncated packet cannot be checked (2).
            let status = if payload == Payload::Zeros { 1 } else { 2 };
            assert_eq!(
                lines,
                [
                    format!("1.500000000|10.0.0.1|10.1.0.1|1040|7||{status}"),
                    "1.500000000|10.0.0.1|10.1.0.1|56||200|1".into(),
                    "1.500000000|10.1.0.1|10.0.0.1|40||206|1".into(),
                ],
                "{}",
                String::from_utf8_lossy(&out.stderr)
            );
        }
    }
}
