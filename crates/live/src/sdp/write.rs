//! Descriptions as text.

use super::ice::ice_lines;
use super::multipath::interface_lines;
use super::simulcast::{rid_values, simulcast_value};
use super::{Description, Extension, Feedback, MediaSection, MediaTransport, Payload, Section, Setup};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::{Display, Write as _};
use std::net::IpAddr;
use weir_dccp::packet::ServiceCode;
use weir_media::RTP_CLOCK_HZ;
use weir_session::Label;
use weir_session::allocation::MediaKind;

/// Lines that end with CRLF (RFC 8866, section 5).
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, kind: char, value: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{kind}={value}\r\n");
    }
    fn attribute(&mut self, name: &str, value: impl Display) {
        self.add('a', format_args!("{name}:{value}"));
    }
    fn address(&mut self, ip: IpAddr) {
        self.add('c', format_args!("IN {} {ip}", family(ip)));
    }
}

fn family(ip: IpAddr) -> &'static str {
    if ip.is_ipv6() { "IP6" } else { "IP4" }
}

fn names(labels: &[Label]) -> String {
    labels.iter().map(|l| format!(" {l}")).collect()
}

impl Description {
    /// The transport shared by bundled sections: that of the first that has one.
    fn shared(&self) -> Option<&MediaTransport> {
        self.media().find_map(|m| m.transport.as_ref())
    }

    /// The description as SDP.
    pub fn to_sdp(&self) -> String {
        let shared = self.shared();
        let ip = shared.map_or(IpAddr::from([0; 4]), |t| t.address.ip());
        let mut out = Lines::default();
        out.add('v', 0);
        out.add('o', format_args!("- {} 1 IN {} {ip}", self.session, family(ip)));
        out.add('s', "weir");
        out.add('t', "0 0");
        if !self.bundle.is_empty() {
            out.attribute("group", format_args!("BUNDLE{}", names(&self.bundle)));
        }
        for section in &self.sections {
            match section {
                Section::Refused(r) => {
                    out.add('m', format_args!("{} 0 {} {}", r.media, r.protocol, r.formats));
                    out.address(ip);
                    if let Some(mid) = r.mid {
                        out.attribute("mid", mid);
                    }
                }
                Section::Media(m) => {
                    let transport = m.transport.as_ref().or(shared);
                    let port = transport.map_or(0, |t| t.address.port());
                    let is_only = m.transport.is_none() && self.is_bundle_only;
                    self.write(&mut out, m, transport, if is_only { 0 } else { port });
                    if is_only {
                        out.add('a', "bundle-only");
                    }
                }
            }
        }
        out.0
    }

    fn write(&self, out: &mut Lines, m: &MediaSection, transport: Option<&MediaTransport>, port: u16) {
        let protocol = match transport {
            Some(t) if t.dccp.is_some() => "UDP/DCCP/RTP/AVPF",
            Some(t) if !t.keys.is_empty() => "RTP/SAVPF",
            _ => "RTP/AVPF",
        };
        let media = if m.kind == MediaKind::Audio { "audio" } else { "video" };
        let numbers: String = m.payloads.iter().map(|p| format!(" {}", p.0)).collect();
        out.add('m', format_args!("{media} {port} {protocol}{numbers}"));
        if let Some(t) = transport {
            out.address(t.address.ip());
        }
        if let Some(mid) = m.mid {
            out.attribute("mid", mid);
        }
        write_payloads(out, m);
        for (id, extension) in &m.extensions {
            if let Some((_, uri)) = Extension::ALL.iter().find(|(e, _)| e == extension) {
                out.attribute("extmap", format_args!("{id} {uri}"));
            }
        }
        if let Some(own) = &m.transport {
            write_transport(out, own);
        }
        self.write_sources(out, m);
        for (direction, encodings) in [("send", &m.send), ("recv", &m.receive)] {
            rid_values(direction, encodings).for_each(|value| out.attribute("rid", value));
        }
        if let Some(value) = simulcast_value(&m.send, &m.receive) {
            out.attribute("simulcast", value);
        }
        if let Some(controller) = self.controller.as_ref().filter(|_| m.transport.is_some()) {
            out.attribute("x-weir-controller", controller);
        }
        out.add('a', m.direction.name());
        out.add('a', "rtcp-rsize");
        if m.transport.as_ref().is_some_and(|t| t.rtcp_mux) {
            out.add('a', "rtcp-mux");
        }
    }

    fn write_sources(&self, out: &mut Lines, m: &MediaSection) {
        let Some(ssrc) = m.sources.media else { return };
        let cname = self.cname.as_deref().unwrap_or("weir");
        for other in [Some(ssrc), m.sources.retransmission, m.sources.repair].into_iter().flatten() {
            out.attribute("ssrc", format_args!("{other} cname:{cname}"));
        }
        // RFC 5576, section 4.2, and RFC 5956, section 4.3.
        for (semantics, other) in [("FID", m.sources.retransmission), ("FEC-FR", m.sources.repair)] {
            if let Some(other) = other {
                out.attribute("ssrc-group", format_args!("{semantics} {ssrc} {other}"));
            }
        }
    }
}

fn write_payloads(out: &mut Lines, m: &MediaSection) {
    let clock_hz = if m.kind == MediaKind::Audio { weir_media::AUDIO_CLOCK_HZ } else { RTP_CLOCK_HZ };
    for (pt, payload) in &m.payloads {
        let (map, fmtp) = match payload {
            Payload::Video(codec, fmtp) => (format!("{}/{clock_hz}", codec.name()), fmtp.clone()),
            Payload::Audio(codec, fmtp) => (codec.rtpmap(), fmtp.clone()),
            Payload::Retransmission(of) => (format!("rtx/{clock_hz}"), Some(format!("apt={of}"))),
            // RFC 8627, section 5.1.1: the time that repair packets may span, in microseconds.
            Payload::FlexFec => (format!("flexfec/{clock_hz}"), Some("repair-window=1000000".into())),
            Payload::ReedSolomon => (format!("x-weir-rs/{clock_hz}"), None),
            // The longest window that the session takes.
            Payload::Rlc => (format!("x-weir-rlc/{clock_hz}"), Some("window=256".into())),
        };
        out.attribute("rtpmap", format_args!("{pt} {map}"));
        if let Some(fmtp) = fmtp {
            out.attribute("fmtp", format_args!("{pt} {fmtp}"));
        }
        if payload.codec().is_some() {
            for (f, value) in Feedback::ALL.iter().filter(|(f, _)| m.feedback.contains(f)) {
                // RFC 8888, section 6: it is of all payload types. Capacity vectors are of the path too.
                let of_all = matches!(f, Feedback::CongestionControl | Feedback::CapacityVector);
                let which = if of_all { "*".into() } else { pt.to_string() };
                out.attribute("rtcp-fb", format_args!("{which} {value}"));
            }
        }
    }
}

fn write_transport(out: &mut Lines, t: &MediaTransport) {
    if let Some(interfaces) = &t.interfaces {
        interface_lines(interfaces).iter().for_each(|line| out.add('a', line));
    }
    if let Some(ice) = &t.ice {
        ice_lines(ice).iter().for_each(|line| out.add('a', line));
    }
    if let Some(dccp) = &t.dccp {
        out.attribute("dccp-service-code", ServiceCode::RTP_VIDEO);
        out.attribute("dccp-port", dccp.port);
        if let Some((_, setup)) = Setup::ALL.iter().find(|(s, _)| *s == dccp.setup) {
            out.attribute("setup", setup);
        }
        out.attribute("connection", "new");
    }
    for (tag, key) in t.keys.iter().filter(|_| t.dccp.is_none()) {
        out.attribute("crypto", format_args!("{tag} {} inline:{}", key.suite().name(), STANDARD.encode(key.bytes())));
    }
}
