//! Feedback through the C interface: RTCP as bytes gives what structs give, and both what Rust gives.
#![expect(unsafe_code, reason = "the functions are those of C")]

use weir_capi::border::{controller as c, fec, general};
use weir_capi::failure::Status;
use weir_capi::types::{PacketReport, SentPacket, Setup, Statistics, Target, WEIR_NO_WINDOW, WEIR_SENT_HAS_RTP};
use weir_cc::cue::{self, Cue, Fate, IntervalPacket, IntervalReport, OneWayDelay, TransportFeedback};
use weir_cc::{Controller, Limits, Registry, ReportedPacket, SentHistory};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::xr::{Block, Blocks, RleBlock, Xr};
use weir_wire::rtcp::{OneWayDelayReport, Packet, ReceiverReport, ReportBlock, ccfb, twcc};

const MS: i64 = 1_000_000;
const SSRC: u32 = 77;

fn setup() -> Setup {
    Setup {
        size: size_of::<Setup>() as u32,
        rtp_clock_hz: 0,
        floor_bps: 100_000,
        ceiling_bps: 3_000_000,
        start_bps: 300_000,
        now_ns: 0,
        seed: 1,
        ntp_zero: 5 << 32,
    }
}

fn made(name: &std::ffi::CStr) -> u64 {
    let mut handle = 0;
    // SAFETY: all pointers are to values of this function.
    let status = unsafe { c::weir_controller_new(name.as_ptr(), std::ptr::null(), &setup(), &mut handle) };
    assert_eq!(status, Status::Ok);
    handle
}

/// A packet every 10 ms, which queues ever longer in the first half and is lost now and then.
fn arrival(n: i64) -> Option<i64> {
    (n % 23 != 7).then_some(10 * n + 30 + if n < 400 { n / 4 } else { 0 })
}

fn send(handle: u64, n: i64) {
    let packet = SentPacket {
        size: size_of::<SentPacket>() as u32,
        flags: WEIR_SENT_HAS_RTP,
        now_ns: 10 * n * MS,
        bytes: 1_000,
        probe: 0,
        queued_bytes: 0,
        ssrc: SSRC,
        rtp_sequence: (n as u16).wrapping_add(65_000),
        transport_number: 0,
    };
    let mut number = 0;
    // SAFETY: as above.
    assert_eq!(unsafe { c::weir_controller_sent(handle, &packet, &mut number) }, Status::Ok);
    assert_eq!(number, n as u64);
}

fn target(handle: u64) -> Target {
    let mut t = Target {
        size: size_of::<Target>() as u32,
        overhead_bytes: 0,
        media_bps: 0,
        pacing_bps: 0,
        padding_bps: 0,
        window_bytes: 0,
        max_queue_age_ns: 0,
        repair: 9,
        repair_block: 0,
        repair_packets: 0,
    };
    // SAFETY: as above.
    assert_eq!(unsafe { c::weir_controller_target(handle, &mut t) }, Status::Ok);
    t
}

fn rtcp(handle: u64, now: i64, bytes: &[u8]) -> Status {
    // SAFETY: as above.
    unsafe { c::weir_controller_rtcp(handle, now, bytes.as_ptr(), bytes.len()) }
}

/// Packets between one sent and its report: longer than any of them is on its way.
const LAG: i64 = 20;

/// Rates after each of 80 reports on ten packets; `report` gets the first packet's number and the time.
fn rates(handle: u64, mut report: impl FnMut(i64, i64)) -> Vec<u64> {
    let mut rates = Vec::new();
    (0..LAG).for_each(|n| send(handle, n));
    for first in (0..800).step_by(10) {
        (first + LAG..first + LAG + 10).for_each(|n| send(handle, n));
        let now = 10 * (first + LAG + 10) * MS;
        report(first, now);
        rates.push(target(handle).media_bps);
    }
    assert_eq!(general::weir_free(handle), Status::Ok);
    rates
}

fn by_structs(name: &std::ffi::CStr) -> Vec<u64> {
    let handle = made(name);
    rates(handle, |first, now| {
        let one = |n| PacketReport {
            number: n as u64,
            arrival_ns: arrival(n).unwrap_or(0) * MS,
            received: u8::from(arrival(n).is_some()),
            ecn: 0,
            reserved: [0; 6],
        };
        let all: Vec<PacketReport> = (first..first + 10).map(one).collect();
        let size = size_of::<PacketReport>();
        // SAFETY: as above.
        let status = unsafe { c::weir_controller_feedback(handle, now, all.as_ptr(), all.len(), size, -1) };
        assert_eq!(status, Status::Ok);
    })
}

#[test]
fn structs_give_what_rust_gives() {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(3) };
    let (start_rate, now, params) = (DataRate::from_kbps(300), Timestamp::ZERO, Vec::new());
    let setup = weir_cc::Setup { limits, start_rate, now, seed: 1, params };
    let mut controller = Registry::builtin().make("gcc", &setup).expect("built in").sender;
    let (mut history, mut results, mut rates) = (SentHistory::new(), Vec::new(), Vec::new());
    for first in (0..800).step_by(10) {
        for n in if first == 0 { 0 } else { first + LAG }..first + LAG + 10 {
            let size = DataSize::from_bytes(1_000);
            let mut packet = cue::SentPacket::media(Timestamp::from_millis(10 * n), n as u64, size);
            history.on_sent(&packet);
            packet.bytes_in_flight = history.bytes_in_flight();
            controller.on_packet_sent(&packet);
        }
        let now = Timestamp::from_millis(10 * (first + LAG + 10));
        let reported = (first..first + 10).map(|n| ReportedPacket {
            sequence: n as u64,
            arrival: arrival(n).map(RemoteTimestamp::from_millis),
            ecn: Ecn::NotEct,
        });
        history.resolve(reported, &mut results);
        let rtt = results.iter().rfind(|r| r.arrival.is_some()).map(|r| now - r.departure);
        let bytes_in_flight = history.bytes_in_flight();
        controller.on_cue(&Cue::TransportFeedback(TransportFeedback { now, packets: &results, bytes_in_flight, rtt }));
        rates.push(controller.target().media_rate.as_bps());
    }
    assert_eq!(by_structs(c"gcc"), rates);
    let (least, most) = (rates.iter().min().expect("80"), rates.iter().max().expect("80"));
    assert!(*least >= 100_000 && *most <= 3_000_000 && least < most, "{least} {most}");
}

#[test]
fn transport_wide_bytes_give_what_structs_give() {
    let handle = made(c"gcc");
    let bytes = rates(handle, |first, now| {
        let at = |n| arrival(n).map(Timestamp::from_millis);
        let reference = (first..first + 10).find_map(at).expect("most arrive");
        let mut message = twcc::Builder::new(1, SSRC, (first / 10) as u8, first as u16, reference);
        (first..first + 10).for_each(|n| assert!(message.push(n as u16, at(n))));
        let mut out = Vec::new();
        message.finish_into(&mut out);
        assert_eq!(rtcp(handle, now, &out), Status::Ok);
    });
    // A lost packet at the end of a message is not in it, so that its loss is known later.
    let structs = by_structs(c"gcc");
    assert_eq!(bytes.len(), structs.len());
    let close = bytes.iter().zip(&structs).filter(|(a, b)| a == b).count();
    assert!(close >= 70, "{close} of 80: {bytes:?} {structs:?}");
}

#[test]
fn rfc_8888_bytes_give_rates_a_round_trip_time_and_marks() {
    let handle = made(c"scream2");
    rates(handle, |first, now| {
        let report = Timestamp::from_nanos(now - 20 * MS);
        let compact = NtpTime::at(report, NtpTime::from_bits(9 << 32)).compact();
        let mut out = Vec::new();
        let mut writer = ccfb::Writer::new(&mut out, 1, report, compact);
        assert!(writer.stream(SSRC, (first as u16).wrapping_add(65_000)));
        for n in first..first + 10 {
            assert!(writer.push(arrival(n).map(|at| (Ecn::Ect0, Timestamp::from_millis(at)))));
        }
        writer.finish();
        assert_eq!(rtcp(handle, now, &out), Status::Ok);
        let mut s = Statistics {
            size: size_of::<Statistics>() as u32,
            reserved: 0,
            rtt_ns: 0,
            bytes_in_flight: 1,
            sent: 0,
            unknown: 1,
            late: 1,
            duplicate: 1,
            unreported: 1,
            malformed: 1,
        };
        // SAFETY: as above.
        assert_eq!(unsafe { c::weir_controller_statistics(handle, &mut s) }, Status::Ok);
        assert_eq!((s.unknown, s.late, s.duplicate, s.unreported, s.malformed), (0, 0, 0, 0, 0));
        let in_flight = 1_000 * LAG as u64;
        assert_eq!((s.bytes_in_flight, s.sent), (in_flight, (first + LAG + 10) as u64));
        // The way there, without the wait at the receiver, and 20 ms back; offsets have steps of 1/1024 s.
        let last = (first..first + 10).rfind(|n| arrival(*n).is_some()).expect("most arrive");
        let there = arrival(last).expect("it did") - 10 * last;
        let expected = ((there + 20) * MS) as f64;
        assert!((s.rtt_ns as f64 - expected).abs() < 2e6, "{} {expected}", s.rtt_ns);
        assert!(target(handle).window_bytes != WEIR_NO_WINDOW);
    });
}

#[test]
fn receiver_reports_reduce_a_rate_and_others_sources_are_ignored() {
    let handle = made(c"rtcp-aimd");
    let before = target(handle).media_bps;
    send(handle, 0);
    let report = |ssrc, second: i64| {
        // A sender report left a second ago; the receiver waited 0.9 s.
        let now = Timestamp::from_millis(1_000 * second);
        let last_sr = NtpTime::at(now - TimeDelta::from_secs(1), NtpTime::from_bits(5 << 32)).compact();
        let delay_since_last_sr = 58_982;
        let highest_sequence = 100 * second as u32;
        let block = ReportBlock {
            ssrc,
            fraction_lost: 64,
            cumulative_lost: 25 * second as i32,
            highest_sequence,
            jitter: 90,
            last_sr,
            delay_since_last_sr,
        };
        let mut out = Vec::new();
        let blocks = [block];
        Packet::ReceiverReport(ReceiverReport { ssrc: 1, blocks: (&blocks[..]).into(), extension: &[] })
            .write_into(&mut out);
        assert_eq!(rtcp(handle, 1_000 * second * MS, &out), Status::Ok);
    };
    (1..5).for_each(|s| report(SSRC + 1, s));
    assert_eq!(target(handle).media_bps, before, "another source's");
    (5..9).for_each(|s| report(SSRC, s));
    assert!(target(handle).media_bps < before);
    // Half a message: an error, counted, and what came before it is applied.
    assert_eq!(rtcp(handle, 9_000 * MS, &[0x81, 201, 0, 7, 1]), Status::Malformed);
    assert_eq!(general::weir_free(handle), Status::Ok);
}

/// A packet's fate on a path that loses some and delivers some too late.
fn fate(n: i64) -> Fate {
    match n {
        n if n % 23 == 7 => Fate::Lost,
        n if n % 31 == 5 => Fate::Discarded,
        _ => Fate::Received,
    }
}

#[test]
fn run_lengths_and_delays_in_bytes_give_what_rust_gives() {
    const INTERVAL: i64 = 20;
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(3) };
    let (start_rate, now, params) = (DataRate::from_kbps(300), Timestamp::ZERO, Vec::new());
    let setup = weir_cc::Setup { limits, start_rate, now, seed: 1, params };
    let mut oracle = Registry::builtin().make("fbra", &setup).expect("built in").sender;
    let (handle, mut history, mut rates) = (made(c"fbra"), SentHistory::new(), Vec::new());
    let size = DataSize::from_bytes(1_000);
    for n in 0..2_000 {
        send(handle, n);
        let mut packet = cue::SentPacket::media(Timestamp::from_millis(10 * n), n as u64, size);
        history.on_sent(&packet);
        packet.bytes_in_flight = history.bytes_in_flight();
        oracle.on_packet_sent(&packet);
        if (n + 1) % INTERVAL != 0 || n < LAG {
            continue;
        }
        let (first, end, now) = (n + 1 - LAG - INTERVAL, n + 1 - LAG, Timestamp::from_millis(10 * n + 5));
        let number = |n: i64| (n as u16).wrapping_add(65_000);
        // Whole units of NTP's compact form, 2^-16 s; the queue grows in the first half of every four seconds.
        let unit = |n: i64| TimeDelta::from_nanos(n * 1_000_000_000 / 65_536);
        let delay = 1_024 * (1 + if n % 400 < 200 { n % 400 / 20 } else { 0 });
        let delays = [unit(1_024), unit(delay), unit(delay + 1_024)];
        let (mut a, mut b, mut out) = (vec![], vec![], vec![]);
        let loss = RleBlock::encode(SSRC, number(first), 0, (first..end).map(|n| fate(n) != Fate::Lost), 320, &mut a);
        let late =
            RleBlock::encode(SSRC, number(first), 0, (first..end).map(|n| fate(n) == Fate::Discarded), 320, &mut b);
        let blocks = [Block::LossRle(loss), Block::DiscardRle { early: false, trace: late }];
        Xr { ssrc: 1, blocks: Blocks::Own(&blocks) }.write_into(&mut out);
        let [min, mean, latest] = delays;
        let (begin, after) = (number(first), number(end));
        let report = OneWayDelayReport { sender_ssrc: 1, media_ssrc: SSRC, begin, end: after, min, mean, latest };
        Packet::OneWayDelay(report).write_into(&mut out);
        assert_eq!(rtcp(handle, now.as_nanos(), &out), Status::Ok);
        // Twice, as the network may.
        assert_eq!(rtcp(handle, now.as_nanos(), &out), Status::Ok);
        let one = |n: i64| {
            let (sequence, departure) = (n as u64, Timestamp::from_millis(10 * n));
            IntervalPacket { sequence, departure, size, fate: fate(n), repaired: false }
        };
        let all: Vec<_> = (first..end).map(one).collect();
        let one_way_delay = Some(OneWayDelay { min, mean, last: latest });
        for packets in [&all[..], &[]] {
            oracle.on_cue(&Cue::IntervalReport(IntervalReport { now, packets, one_way_delay, rtt: None }));
        }
        assert_eq!(target(handle).media_bps, oracle.target().media_rate.as_bps(), "after packet {n}");
        rates.push(target(handle).media_bps);
    }
    let (least, most) = (rates.iter().min().expect("many"), rates.iter().max().expect("many"));
    assert!(*least >= 100_000 && *most <= 3_000_000 && least < most, "{least} {most}");
    assert_eq!(general::weir_free(handle), Status::Ok);
}

#[test]
fn a_decoder_follows_block_numbers_over_their_end() {
    let (mut encoder, mut decoder) = (0, 0);
    // SAFETY: as above.
    unsafe {
        assert_eq!(fec::weir_fec_encoder_new(1, 1, &mut encoder), Status::Ok);
        assert_eq!(fec::weir_fec_decoder_new(1, 1_000 * MS, &mut decoder), Status::Ok);
    }
    // Blocks of one packet, of which every other one is lost.
    let mut buffer = [0; 32];
    for n in 0..1_000u32 {
        let (mut length, packet) = (0, n.to_be_bytes());
        // The upper 24 bits of a payload ID are the block's number: begin near its end.
        let moved = &((n + 0xff_ff00) & 0xff_ffff).to_be_bytes()[1..];
        let now = i64::from(n) * MS;
        let into = buffer.as_mut_ptr();
        // SAFETY: as above.
        unsafe {
            assert_eq!(fec::weir_fec_encoder_source(encoder, packet.as_ptr(), 4, into, 32, &mut length), Status::Ok);
        }
        assert_eq!(length, 10);
        let mut source = buffer;
        source[4..7].copy_from_slice(moved);
        // SAFETY: as above.
        unsafe {
            assert_eq!(fec::weir_fec_encoder_repair(encoder, into, 32, &mut length), Status::Ok);
        }
        buffer[..3].copy_from_slice(moved);
        let mut inside = 0;
        // SAFETY: as above.
        unsafe {
            if n % 2 == 0 {
                assert_eq!(fec::weir_fec_decoder_source(decoder, now, source.as_ptr(), 10, &mut inside), Status::Ok);
            }
            assert_eq!(fec::weir_fec_decoder_repair(decoder, now, buffer.as_ptr(), length), Status::Ok);
            let recovered = fec::weir_fec_decoder_recovered(decoder, buffer.as_mut_ptr(), 32, &mut length);
            assert_eq!(recovered, if n % 2 == 0 { Status::None } else { Status::Ok }, "block {n}");
        }
        assert!(n % 2 == 0 || buffer[..length] == packet, "block {n}");
    }
    assert_eq!([general::weir_free(encoder), general::weir_free(decoder)], [Status::Ok; 2]);
}
