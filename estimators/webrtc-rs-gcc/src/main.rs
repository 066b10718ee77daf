//! The send-side bandwidth estimator of webrtc-rs (`Gcc` in the interceptor for congestion control of `rtc-interceptor`) behind Weir's
//! `exec:` protocol.
//!
//! The interceptor gets what a chain gives it: each packet that leaves, with its transport-wide number, and each datagram of RTCP. Time is
//! an argument. Left out: the chain's other interceptors. Weir numbers the packets, and paces at the target, as the library's pacer does.

#[path = "../../exec.rs"]
#[allow(dead_code, reason = "each adapter needs a part of it")]
mod exec;

use bytes::Bytes;
use exec::{Answer, Call, Sent};
use rtc_interceptor::{
    BandwidthEstimator, CongestionControlBuilder, CongestionControlInterceptor, Gcc, Interceptor, Packet,
    RTPHeaderExtension, StreamInfo, TaggedPacket,
};
use rtc_shared::TransportContext;
use sansio::Protocol;
use std::time::{Duration, Instant};

const TRANSPORT_CC: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
const EXTENSION: u8 = 1;
const SSRC: u32 = 1;
/// A fixed header with that extension.
const HEADER: usize = 20;

struct Adapter {
    inner: CongestionControlInterceptor<Gcc>,
    zero: Instant,
    ceiling_bps: f64,
    zeros: Bytes,
}

impl Adapter {
    fn new(call: Call) -> Self {
        let gcc = Gcc::new(call.start_bps as f64, call.floor_bps as f64, call.ceiling_bps as f64);
        let mut inner = CongestionControlBuilder::new(gcc).build();
        let extension = RTPHeaderExtension { uri: TRANSPORT_CC.into(), id: EXTENSION.into() };
        inner.bind_local_stream(&StreamInfo {
            ssrc: SSRC,
            rtp_header_extensions: vec![extension],
            ..StreamInfo::default()
        });
        let zero = Instant::now() - Duration::from_nanos(call.now_ns as u64);
        Self { inner, zero, ceiling_bps: call.ceiling_bps as f64, zeros: Bytes::from_static(&[0; 65_536]) }
    }

    fn tagged(&self, now_ns: i64, packet: Packet) -> TaggedPacket {
        let now = self.zero + Duration::from_nanos(now_ns as u64);
        TaggedPacket { now, transport: TransportContext::default(), message: packet.into() }
    }
}

impl exec::Estimator for Adapter {
    const RTCP: bool = true;

    fn sent(&mut self, now_ns: i64, p: &Sent) {
        let number = p.sequence as u16;
        let mut packet = rtc_rtp::Packet::default();
        packet.header.ssrc = SSRC;
        packet.header.sequence_number = number;
        packet
            .header
            .set_extension(EXTENSION, Bytes::copy_from_slice(&number.to_be_bytes()))
            .expect("an extension of 2 bytes fits");
        packet.payload = self.zeros.slice(..p.size_bytes.saturating_sub(HEADER).min(self.zeros.len()));
        let tagged = self.tagged(now_ns, Packet::Rtp(packet));
        // The pacer of a chain wakes it for each packet.
        let now = tagged.now;
        self.inner.handle_timeout(now).expect("it returns no error");
        self.inner.handle_write(tagged).expect("it returns no error");
        while self.inner.poll_write().is_some() {}
    }

    fn rtcp(&mut self, now_ns: i64, mut datagram: &[u8]) {
        match rtc_rtcp::packet::unmarshal(&mut datagram) {
            Ok(packets) => {
                let tagged = self.tagged(now_ns, Packet::Rtcp(packets));
                self.inner.handle_read(tagged).expect("it returns no error");
                while self.inner.poll_read().is_some() {}
            }
            Err(e) => eprintln!("RTCP: {e}"),
        }
    }

    /// Its own ceiling is that of the start.
    fn limits(&mut self, _: i64, _: u64, ceiling_bps: u64) {
        self.ceiling_bps = ceiling_bps as f64;
    }

    fn answer(&mut self, _: i64) -> Answer {
        let rate = self.inner.estimator().target_bitrate().min(self.ceiling_bps);
        Answer { media_bps: rate, pacing_bps: Some(rate), ..Answer::default() }
    }
}

fn main() -> std::io::Result<()> {
    exec::serve(concat!("rtc-interceptor ", env!("LIBRARY")), Adapter::new)
}
