//! Two ends of str0m, in RTP mode without its estimate, through a simulated link in virtual time.

#[path = "plain.rs"]
mod plain;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use str0m::format::Codec;
use str0m::media::MediaKind;
use str0m::net::{Protocol, Receive};
use str0m::rtp::{RtpWrite, Ssrc};
use str0m::{Candidate, Event, Input, Output, Rtc};
use weir_adapters::Settings;
use weir_adapters::str0m::Beside;
use weir_path::{Capacity, Departure, Limit, Link, LinkConfig, Packet, Schedule, Step, Verdict};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

const PAYLOAD: usize = 1_100;
const FRAME: Duration = Duration::from_micros(33_333);
const TICK: Duration = Duration::from_millis(1);
/// Most packets that wait for the pacer.
const QUEUE: usize = 200;

/// Results of one phase of the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    /// Payload received over capacity, in its second half.
    pub(crate) used: f64,
    /// Greatest time in the link, in its second half.
    pub(crate) delay_ms: f64,
    /// Packets dropped by the link.
    pub(crate) dropped: u32,
    /// At its end.
    pub(crate) target_kbps: f64,
}

fn address(n: u8) -> SocketAddr {
    ([10, 0, 0, n], 1_000).into()
}

/// An end that knows the other's address.
fn end(now: Instant, own: u8, other: u8) -> Rtc {
    let config =
        Rtc::builder().set_rtp_mode(true).enable_raw_packets(true).set_crypto_provider(plain::provider().into());
    let mut rtc = config.build(now);
    rtc.add_local_candidate(Candidate::host(address(own), "udp").expect("a candidate"));
    rtc.add_remote_candidate(Candidate::host(address(other), "udp").expect("a candidate"));
    rtc
}

/// Names, keys and one stream of video from the first to the second.
fn agree(sender: &mut Rtc, receiver: &mut Rtc, ssrc: Ssrc) {
    let mid = "vid".into();
    for (a, b) in [(true, false), (false, true)] {
        let (one, other): (&mut Rtc, &mut Rtc) = if a { (sender, receiver) } else { (receiver, sender) };
        let fingerprint = other.direct_api().local_dtls_fingerprint().clone();
        let names = other.direct_api().local_ice_credentials();
        let mut api = one.direct_api();
        api.set_remote_fingerprint(fingerprint);
        api.set_remote_ice_credentials(names);
        api.set_ice_controlling(!b);
        api.start_dtls(!b).expect("begun");
        api.declare_media(mid, MediaKind::Video);
    }
    sender.direct_api().declare_stream_tx(ssrc, None, mid, None);
    let mut api = receiver.direct_api();
    api.expect_stream_rx(ssrc, None, mid, None);
    api.enable_twcc_feedback();
}

/// One direction of the link.
struct Way {
    link: Link<Vec<u8>>,
    from: SocketAddr,
    to: SocketAddr,
    zero: Instant,
    dropped: u32,
    /// Greatest time in it since this was last taken.
    delay: TimeDelta,
    entered: VecDeque<Timestamp>,
}

impl Way {
    fn new(config: &LinkConfig, from: u8, to: u8, zero: Instant) -> Self {
        let link = Link::new(config, 1).expect("a link");
        let (from, to) = (address(from), address(to));
        Self { link, from, to, zero, dropped: 0, delay: TimeDelta::ZERO, entered: VecDeque::new() }
    }
    fn time(&self, now: Instant) -> Timestamp {
        Timestamp::ZERO + TimeDelta::from_nanos((now - self.zero).as_nanos() as i64)
    }

    /// Passes on what an end sends, until that end waits.
    fn take(&mut self, rtc: &mut Rtc, now: Instant, mut seen: impl FnMut(&Event)) {
        let at = self.time(now);
        loop {
            match rtc.poll_output().expect("goes on") {
                Output::Timeout(_) => return,
                Output::Event(event) => seen(&event),
                Output::Transmit(t) => {
                    let size = DataSize::from_bytes(t.contents.len() as u64 + 28);
                    let packet = Packet { item: t.contents.to_vec(), size, ecn: Ecn::NotEct, flow: 0 };
                    match self.link.push(at, packet) {
                        Verdict::Dropped(..) => self.dropped += 1,
                        _ => self.entered.push_back(at),
                    }
                }
            }
        }
    }

    /// Hands over packets that have left the link.
    fn give(&mut self, rtc: &mut Rtc, now: Instant) {
        let at = self.time(now);
        while let Some(departure) = self.link.pop(at) {
            let Departure::Delivered(d) = departure else { continue };
            // A drop-tail queue keeps the order.
            let entered = self.entered.pop_front().unwrap_or(at);
            self.delay = self.delay.max(d.at - entered);
            let contents = d.item.as_slice().try_into().expect("a datagram");
            let receive = Receive { proto: Protocol::Udp, source: self.from, destination: self.to, contents };
            rtc.handle_input(Input::Receive(now, receive)).expect("goes on");
        }
    }
}

/// A call of 30 frames a second under a controller; each phase has a length in s and a capacity in kbit/s.
pub(crate) fn run(controller: &str, phases: &[(u64, u64)]) -> Vec<Phase> {
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let zero = Instant::now();
    let mut at = TimeDelta::ZERO;
    let mut steps = Vec::new();
    for &(seconds, kbps) in phases {
        steps.push(Step { at, rate: DataRate::from_kbps(kbps) });
        at += TimeDelta::from_secs(seconds as i64);
    }
    let delay = TimeDelta::from_millis(25);
    let constant = LinkConfig::constant(DataRate::from_mbps(10), delay);
    let capacity = Capacity::Schedule(Schedule::new(steps, None).expect("in order"));
    let forward = LinkConfig { capacity, limit: Limit::Size(DataSize::from_bytes(60_000)), ..constant.clone() };
    let (mut forth, mut back) = (Way::new(&forward, 1, 2, zero), Way::new(&constant, 2, 1, zero));
    let ssrc: Ssrc = 7.into();
    let (mut sender, mut receiver) = (end(zero, 1, 2), end(zero, 2, 1));
    agree(&mut sender, &mut receiver, ssrc);
    let mut weir = Beside::new(controller, &Settings::default()).expect("a controller");
    let pt = sender.codec_config().params().iter().find(|p| p.spec().codec == Codec::Vp8).expect("VP8").pt();
    let (mut queue, mut sequence, mut frame_at) = (VecDeque::new(), 0u64, zero);
    let (mut connected, mut now) = (false, zero);
    let mut out = Vec::new();
    for &(seconds, kbps) in phases {
        let end = now + Duration::from_secs(seconds);
        let settled = now + Duration::from_secs(seconds) / 2;
        let mut bytes = 0;
        (forth.dropped, forth.delay) = (0, TimeDelta::ZERO);
        while now < end {
            now += TICK;
            if now <= settled {
                forth.delay = TimeDelta::ZERO;
            }
            if connected && now >= frame_at {
                frame_at = now + FRAME;
                let size = weir.rates().media_rate().as_bps_f64() * FRAME.as_secs_f64() / 8.0;
                let count = (size / PAYLOAD as f64).ceil().max(1.0);
                let packets = (1..=count as u32).map(|n| ((size / count) as usize, n == count as u32, now));
                queue.extend(packets.take(QUEUE.saturating_sub(queue.len())));
            }
            sender.handle_input(Input::Timeout(now)).expect("goes on");
            while let Some(&(len, marker, made)) = queue.front() {
                if weir.poll_write(now, len).is_err() {
                    break;
                }
                queue.pop_front();
                let time = ((made - zero).as_secs_f64() * 90e3) as u32;
                let packet = RtpWrite::new(pt, sequence.into(), time, now, vec![1u8; len]).marker(marker);
                sender.direct_api().stream_tx(&ssrc).expect("declared").write_rtp(packet);
                sequence += 1;
            }
            if weir.poll_timeout().is_some_and(|due| due <= now) {
                weir.on_timeout(now);
            }
            forth.take(&mut sender, now, |e| weir.on_event(now, e));
            forth.give(&mut receiver, now);
            receiver.handle_input(Input::Timeout(now)).expect("goes on");
            back.take(&mut receiver, now, |e| {
                if let Event::RtpPacket(p) = e
                    && now > settled
                {
                    bytes += p.payload.len();
                }
            });
            back.give(&mut sender, now);
            forth.take(&mut sender, now, |e| {
                connected |= matches!(e, Event::Connected);
                weir.on_event(now, e);
            });
        }
        out.push(Phase {
            used: bytes as f64 * 8.0 / (seconds as f64 / 2.0) / (kbps as f64 * 1e3),
            delay_ms: forth.delay.as_millis_f64(),
            dropped: forth.dropped,
            target_kbps: weir.rates().media_rate().as_kbps_f64(),
        });
    }
    out
}
