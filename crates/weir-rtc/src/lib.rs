//! Congestion control for live audio and video over RTP: the libraries of Weir under one name.
//!
//! Nothing here opens a socket, reads a clock or starts a thread. Your program does, and passes in datagrams or events
//! with their times; it gets back datagrams, rates and the time of the next wakeup. The same code therefore runs in a
//! simulator, on sockets and in a browser, and the same input always gives the same output.
//!
//! # What to take
//!
//! | you have | you want | take |
//! |---|---|---|
//! | an RTP stack | to know how fast to encode and send | a [`cc::Flow`]: packets and reports in, rates out; with a [`cc::Pacer`] if your stack has none |
//! | a controller of your own | to have it in all of these | [`cc::Controller`] and [`cc::Algorithm`], added to a [`cc::Registry`] |
//! | an RTP stack | to read and write feedback | [`wire`]: [`wire::rtcp::twcc`], [`wire::rtcp::ccfb`], REMB and the rest |
//! | an RTP stack | to repair losses without retransmission | [`fec`], with the headers of [`wire::fec`] |
//! | sockets and an encoder | both ends of a call | [`session`]: an endpoint takes frames and datagrams and joins all of the above |
//! | a codec | payload formats, playout, a source to test with | [`media`] |
//!
//! [`units`] has the times, rates and sizes shared by all of them. A rate cannot be added to a size, nor a receiver's
//! clock subtracted from the sender's.
//!
//! # A controller in an RTP stack
//!
//! A [`cc::Flow`] is a controller with the packets that it waits for. Three calls suffice: one when a packet is sent,
//! one when feedback is received, and one to read the rates. The example `embed` of `weir-cc` adds a pacer, probes,
//! timeouts, and feedback in a format of one's own.
//!
//! ```
//! use weir_rtc::cc::algorithms::{Gcc, GccConfig};
//! use weir_rtc::cc::cue::SentPacket;
//! use weir_rtc::cc::{Flow, Limits, ReportedPacket, Start};
//! use weir_rtc::units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
//! use weir_rtc::wire::rtcp::{Packet, parse_compound, twcc};
//!
//! // Parameters have names, and are checked here.
//! let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(3) };
//! let start = Start { limits, rate: DataRate::from_kbps(500), now: Timestamp::ZERO };
//! let mut flow = Flow::new(Gcc::new(GccConfig::default(), &start)?, start.now);
//!
//! // Packets leave: a second of 500 kbit/s.
//! for sequence in 0..62 {
//!     let now = Timestamp::from_millis(16 * sequence);
//!     flow.on_sent(SentPacket::media(now, sequence as u64, DataSize::from_bytes(1_000)));
//! }
//!
//! // The receiver has had them 20 ms later each, and says so in RTCP.
//! let arrival = |sequence: i64| Timestamp::from_millis(16 * sequence + 20);
//! let mut message = twcc::Builder::new(1, 2, 0, 0, arrival(0));
//! (0..62).for_each(|sequence| assert!(message.push(sequence as u16, Some(arrival(sequence)))));
//! let mut rtcp = Vec::new();
//! message.finish_into(&mut rtcp);
//!
//! // The message arrives: bytes become reports.
//! let now = Timestamp::from_millis(1_040);
//! for packet in parse_compound(&rtcp) {
//!     let Packet::Twcc(feedback) = packet? else { continue };
//!     let reference = feedback.reference_time();
//!     let reported: Vec<_> = feedback.statuses().map(|(sequence, since)| ReportedPacket {
//!         sequence: u64::from(sequence), // a call of more than 65,536 packets unwraps them
//!         arrival: since.map(|since| reference + since),
//!         ecn: Ecn::NotEct,
//!     }).collect();
//!     // This format does not say how long the newest packet waited for its report.
//!     flow.on_reports(now, &reported, |_| TimeDelta::ZERO);
//! }
//! assert_eq!(flow.rtt(), Some(TimeDelta::from_millis(64)));
//! assert_eq!(flow.bytes_in_flight(), DataSize::ZERO);
//!
//! // And the answer.
//! let target = flow.target();
//! assert!(target.media_rate >= DataRate::from_kbps(500) && target.pacing_rate > target.media_rate);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # By name
//!
//! If the choice of a controller is a setting, [`cc::Flow::by_name`] or [`cc::Registry`] makes it by name, and its [`cc::Spec`] has its
//! requirements on the session: the feedback and reports that it uses, its ECN codepoint, the transport.
//!
//! ```
//! use weir_rtc::cc::{Controller, FeedbackFormat, Limits, Registry, Setup};
//! use weir_rtc::units::{DataRate, Ecn, Timestamp};
//!
//! let registry = Registry::builtin();
//! let spec = registry.get("nada").expect("built in");
//! assert_eq!(spec.feedback.map(|plan| plan.format), Some(FeedbackFormat::CongestionControl));
//! assert_eq!(spec.ecn, Ecn::Ect0);
//!
//! let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(3) };
//! let params = vec![("prio".into(), 2.0)];
//! let setup = Setup { limits, start_rate: DataRate::from_kbps(500), now: Timestamp::ZERO, seed: 1, params };
//! let pair = registry.make("nada", &setup)?;
//! assert_eq!(pair.sender.target().media_rate, DataRate::from_kbps(500));
//! assert!(pair.receiver.is_none(), "its receiver only sends RFC 8888 feedback");
//!
//! let unknown = registry.make("nadda", &setup).map(|_| ()).unwrap_err();
//! assert_eq!(unknown.to_string(), "no controller is named `nadda`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use weir_cc as cc;
pub use weir_fec as fec;
pub use weir_media as media;
pub use weir_session as session;
pub use weir_units as units;
pub use weir_wire as wire;

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
