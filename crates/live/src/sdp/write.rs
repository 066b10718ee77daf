//! Descriptions as text.

use super::{Description, Extension, Feedback, Payload, Setup};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sdp_types::{Connection, Media, MediaType, Origin, Session, TransportProto};
use weir_dccp::packet::ServiceCode;
use weir_media::RTP_CLOCK_HZ;

impl Description {
    /// The description as SDP.
    pub fn to_sdp(&self) -> String {
        let ip = self.address.ip();
        let mut session = Session::new(Origin::with_ip_addr(self.session, 1, ip), "weir");
        let proto = match (&self.dccp, self.keys.is_empty()) {
            (Some(_), _) => "UDP/DCCP/RTP/AVPF",
            (None, true) => "RTP/AVPF",
            (None, false) => "RTP/SAVPF",
        };
        let numbers: Vec<_> = self.payloads.iter().map(|p| p.0.to_string()).collect();
        let mut m = Media::new(MediaType::Video, self.address.port(), TransportProto::RtpAvpf, numbers.join(" "));
        m.proto = proto.into();
        m.add_connection(Connection::from_ip_addr(ip));
        let mut add = |name: &str, value: String| m.add_attribute_with_value(name, value);
        for (pt, payload) in &self.payloads {
            let (name, fmtp) = match payload {
                Payload::Video(codec, fmtp) => (codec.name(), fmtp.clone()),
                Payload::Retransmission(of) => ("rtx", Some(format!("apt={of}"))),
                // RFC 8627, section 5.1.1: the time that repair packets may span, in microseconds.
                Payload::FlexFec => ("flexfec", Some("repair-window=1000000".into())),
                Payload::ReedSolomon => ("x-weir-rs", None),
            };
            add("rtpmap", format!("{pt} {name}/{RTP_CLOCK_HZ}"));
            if let Some(fmtp) = fmtp {
                add("fmtp", format!("{pt} {fmtp}"));
            }
            if matches!(payload, Payload::Video(..)) {
                for (f, value) in Feedback::ALL.iter().filter(|(f, _)| self.feedback.contains(f)) {
                    // RFC 8888, section 6: it is of all payload types.
                    let which = if *f == Feedback::CongestionControl { "*".into() } else { pt.to_string() };
                    add("rtcp-fb", format!("{which} {value}"));
                }
            }
        }
        for (id, extension) in &self.extensions {
            if let Some((_, uri)) = Extension::ALL.iter().find(|(e, _)| e == extension) {
                add("extmap", format!("{id} {uri}"));
            }
        }
        if let Some(dccp) = &self.dccp {
            add("dccp-service-code", ServiceCode::RTP_VIDEO.to_string());
            add("dccp-port", dccp.port.to_string());
            if let Some((_, setup)) = Setup::ALL.iter().find(|(s, _)| *s == dccp.setup) {
                add("setup", (*setup).into());
            }
            add("connection", "new".into());
        }
        for (tag, key) in self.keys.iter().filter(|_| self.dccp.is_none()) {
            add("crypto", format!("{tag} {} inline:{}", key.suite().name(), STANDARD.encode(key.bytes())));
        }
        if let Some(ssrc) = self.ssrc {
            let cname = self.cname.as_deref().unwrap_or("weir");
            for other in [Some(ssrc), self.retransmission_ssrc, self.repair_ssrc].into_iter().flatten() {
                add("ssrc", format!("{other} cname:{cname}"));
            }
            // RFC 5576, section 4.2, and RFC 5956, section 4.3.
            for (semantics, other) in [("FID", self.retransmission_ssrc), ("FEC-FR", self.repair_ssrc)] {
                if let Some(other) = other {
                    add("ssrc-group", format!("{semantics} {ssrc} {other}"));
                }
            }
        }
        if let Some(controller) = &self.controller {
            add("x-weir-controller", controller.clone());
        }
        m.add_attributes_from_strs([self.direction.name(), "rtcp-rsize"]);
        if self.rtcp_mux {
            m.add_attributes_from_strs(["rtcp-mux"]);
        }
        session.medias.push(m);
        let mut text = Vec::new();
        // Memory takes everything.
        let _ = session.write(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}
