//! RFC 4340, section 18: an attacker that does not see the packets but knows addresses and ports cannot affect a
//! connection, except by chance hits of the windows (section 7.5.5), nor use an end to amplify traffic.

use crate::support;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use support::{Link, PEER, PORTS, client_config, datagram, drain, forge, listener, server_config};
use weir_dccp::connection::{Config, Connection, State};
use weir_dccp::listener::{Cookies, ListenerEvent};
use weir_dccp::packet::PacketType;
use weir_units::{Seq48, TimeDelta, Timestamp};

/// Numbers that there are: 2^48, and 2^24 of short ones.
const ALL: f64 = (1u64 << 48) as f64;
const ALL_SHORT: f64 = (1u64 << 24) as f64;

fn number(random: &mut Pcg64Mcg) -> Seq48 {
    Seq48::new(random.random())
}

/// A packet with numbers at random, and now and then some data.
fn blind(random: &mut Pcg64Mcg, to_server: bool, packet_type: PacketType) -> Vec<u8> {
    let data: &[u8] = if random.random::<u8>() < 64 { b"from the attacker" } else { b"" };
    forge(to_server, packet_type, number(random), number(random), &[], data)
}

/// The same with short numbers: a Data packet of 24 bits.
fn blind_short(random: &mut Pcg64Mcg, to_server: bool) -> Vec<u8> {
    let (source, destination) = if to_server { PORTS } else { (PORTS.1, PORTS.0) };
    let n = random.random::<u32>().to_be_bytes();
    let mut bytes = vec![0; 12];
    bytes[..2].copy_from_slice(&source.to_be_bytes());
    bytes[2..4].copy_from_slice(&destination.to_be_bytes());
    (bytes[4], bytes[8]) = (3, PacketType::Data.number() << 1);
    bytes[9..12].copy_from_slice(&n[1..]);
    bytes.extend_from_slice(b"from the attacker");
    bytes
}

/// Data every 5 ms from both ends for this many seconds, with this many blind packets of each type per millisecond to
/// both ends; returns the number of datagrams received.
fn call(link: &mut Link, random: &mut Pcg64Mcg, seconds: u64, blind_packets: u32) -> [usize; 2] {
    let before = [link.received[0].len(), link.received[1].len()];
    for ms in 0..seconds * 1_000 {
        if ms % 5 == 0 {
            let bytes = ms.to_be_bytes();
            assert!(link.send(true, &bytes) && link.send(false, &bytes), "the queue is full at {ms} ms");
        }
        for _ in 0..blind_packets {
            for packet_type in PacketType::ALL {
                for to_server in [true, false] {
                    let bytes = blind(random, to_server, packet_type);
                    link.inject(to_server, &bytes);
                }
            }
        }
        link.run_for(TimeDelta::from_millis(1));
    }
    link.run_for(TimeDelta::from_millis(500));
    [link.received[0].len() - before[0], link.received[1].len() - before[1]]
}

fn with_window(config: Config, window: u64) -> Config {
    Config { sequence_window: window, ..config }
}

#[test]
fn blind_packets_do_nothing_to_a_live_connection() {
    const SECONDS: u64 = 10;
    const WINDOW: u64 = 10_000;
    let run = |blind_packets| {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let config = |c| with_window(c, WINDOW);
        let mut link = Link::open(config(client_config()), config(server_config()));
        let arrived = call(&mut link, &mut random, SECONDS, blind_packets);
        assert_eq!((link.client.state(), link.server.state()), (State::Open, State::Open));
        (link, arrived)
    };
    let (mut calm, undisturbed) = run(0);
    let (mut link, arrived) = run(1);
    // Of ten types, one each per millisecond at both ends. The valid numbers are a window of 2^48, or fewer: any of
    // 200,000 packets hits in one of 140,000 runs, so it must not happen.
    let packets = SECONDS as f64 * 1_000.0 * 10.0 * 2.0;
    let by_chance = packets * WINDOW as f64 / ALL;
    assert!(by_chance < 1e-5, "{by_chance}");

    assert_eq!(arrived, undisturbed);
    assert!(arrived.iter().all(|&n| n == SECONDS as usize * 200));
    assert!(link.received.iter().flatten().all(|d| d.len() == 8), "data of the attacker's");
    for (attacked, at_peace) in
        [(link.client.counters(), calm.client.counters()), (link.server().counters(), calm.server().counters())]
    {
        // Those of the attacker, and the other end's Syncs about them, whose acknowledgements are invalid too.
        let invalid = attacked.sequence_invalid - at_peace.sequence_invalid - SECONDS * 1_000 * 10;
        assert!((8 * SECONDS..=8 * SECONDS + 12).contains(&invalid), "{invalid}");
        assert_eq!((attacked.unexpected, attacked.duplicates), (at_peace.unexpected, at_peace.duplicates));
        // Eight Syncs per second, and eight at once at the start.
        let syncs = attacked.syncs_sent - at_peace.syncs_sent;
        assert!((8 * SECONDS..=8 * SECONDS + 12).contains(&syncs), "{syncs}");
        assert!(attacked.rate_limited > 70_000, "{}", attacked.rate_limited);
    }
    // Only these Syncs, and a few acknowledgements that carry their numbers, were sent in addition.
    for end in 0..2 {
        let more = link.packets_sent[end].saturating_sub(calm.packets_sent[end]);
        assert!(more <= 250, "{more}");
    }
}

#[test]
fn short_numbers_let_through_what_the_window_says() {
    // Section 7.5.5: a Data packet with 24 bits is taken with a chance of W / 2^24.
    const WINDOW: u64 = 2_000;
    const PACKETS: u32 = 100_000;
    let config = |c| Config { short_sequence_numbers: true, ..with_window(c, WINDOW) };
    let mut link = Link::open(config(client_config()), config(server_config()));
    let mut random = Pcg64Mcg::seed_from_u64(2);
    for i in 0..PACKETS {
        let bytes = blind_short(&mut random, true);
        link.inject(true, &bytes);
        if i % 50 == 0 {
            link.run_for(TimeDelta::from_millis(1));
        }
    }
    let forged = link.received[1].iter().filter(|d| *d == b"from the attacker").count() as f64;
    let expected = f64::from(PACKETS) * WINDOW as f64 / ALL_SHORT;
    // 11.9 of a Poisson distribution: outside 2 to 28 in less than one of 2,000 draws.
    assert!((11.0..13.0).contains(&expected) && (2.0..=28.0).contains(&forged), "{forged} for {expected}");
    assert_eq!((link.client.state(), link.server.state()), (State::Open, State::Open));

    // Without short numbers none is accepted.
    let mut link = Link::open(with_window(client_config(), WINDOW), with_window(server_config(), WINDOW));
    for _ in 0..PACKETS {
        let bytes = blind_short(&mut random, true);
        link.inject(true, &bytes);
    }
    assert!(link.received[1].is_empty() && link.server().counters().syncs_sent == 0);
}

/// A forged DCCP-Data is accepted, `ahead` of the client's numbers, with W = 100; returns the time until the client's
/// data is received again.
fn held_up(ahead: u64) -> TimeDelta {
    const WINDOW: u64 = 100;
    let config = |c| Config { short_sequence_numbers: true, ..with_window(c, WINDOW) };
    let mut link = Link::open(config(client_config()), config(server_config()));
    let mut random = Pcg64Mcg::seed_from_u64(6);
    call(&mut link, &mut random, 1, 0);
    let newest = Seq48::new(link.newest_sent[0]);
    link.inject(true, &forge(true, PacketType::Data, newest.add(ahead), Seq48::default(), &[], b"from the attacker"));
    assert_eq!(link.received[1].last().map(Vec::as_slice), Some(&b"from the attacker"[..]));
    // One datagram every 20 ms per end; the queue may be full while nothing is acknowledged.
    let talk = |link: &mut Link, ticks: u32| {
        let before = link.received[1].len();
        for _ in 0..ticks {
            link.send(true, b"up");
            link.send(false, b"down");
            link.run_for(TimeDelta::from_millis(20));
        }
        assert_eq!((link.client.state(), link.server.state()), (State::Open, State::Open));
        link.received[1].len() - before
    };
    let start = link.now;
    while talk(&mut link, 1) == 0 {
        assert!(link.now - start < TimeDelta::from_secs(3_600), "for ever");
    }
    let held = link.now - start;
    talk(&mut link, 1_000);
    assert!(talk(&mut link, 500) > 490, "all is well again");
    held
}

#[test]
fn a_hit_holds_a_connection_up_but_does_not_end_it() {
    // Within a quarter of W the client's packets stay valid.
    assert!(held_up(20) <= TimeDelta::from_millis(100));
    // Beyond that they are not, nor are the client's SyncAcks (section 7.5.3: not below SWL), until its numbers have
    // advanced that far: minutes, at the pace of congestion control without acknowledgements. RFC 4340 has no recovery;
    // this is why short numbers are off unless requested.
    let held = held_up(75);
    assert!((TimeDelta::from_secs(1)..TimeDelta::from_secs(900)).contains(&held), "{held}");
}

/// Blind packets to both ends, 10,000 in total.
fn flood(link: &mut Link, random: &mut Pcg64Mcg) {
    for _ in 0..500 {
        for packet_type in PacketType::ALL {
            for to_server in [true, false] {
                let bytes = blind(random, to_server, packet_type);
                // A Request to a listening port makes a connection; that is no attack on this one.
                if packet_type != PacketType::Request || link.server.state() != State::Listen {
                    link.inject(to_server, &bytes);
                }
            }
        }
    }
}

#[test]
fn no_state_can_be_forced_while_opening_and_closing() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    // Opening: a flood before each step of the handshake.
    let mut link = Link::new(client_config(), server_config());
    let mut states = Vec::new();
    for _ in 0..6 {
        states.push((link.client.state(), link.server.state()));
        flood(&mut link, &mut random);
        assert_eq!(states.last(), Some(&(link.client.state(), link.server.state())), "blind packets change nothing");
        link.run_for(TimeDelta::from_millis(10));
    }
    states.dedup();
    let (request, part_open) = ((State::Request, State::Listen), (State::PartOpen, State::Respond));
    assert_eq!(states[0], request);
    assert!(states.contains(&(State::Request, State::Respond)) && states.contains(&part_open), "{states:?}");
    assert_eq!((link.client.state(), link.server.state()), (State::Open, State::Open), "{states:?}");

    // Closing by either side, a flood at each step.
    for from_client in [true, false] {
        let mut link = Link::open(client_config(), server_config());
        let now = link.now;
        if from_client {
            link.client.close(now)
        } else {
            link.server().close(now)
        }
        let mut states = Vec::new();
        for _ in 0..5 {
            states.push((link.client.state(), link.server.state()));
            flood(&mut link, &mut random);
            assert_eq!(states.last(), Some(&(link.client.state(), link.server.state())));
            link.run_for(TimeDelta::from_millis(10));
        }
        assert_eq!((link.client.state(), link.server.state()), (State::TimeWait, State::Closed), "{states:?}");
        assert_eq!(link.client.end().map(|e| e.reason), link.server().end().map(|e| e.reason));
    }
}

/// Ends that reply: in OPEN, TIMEWAIT and REQUEST.
fn targets() -> [(&'static str, bool, Connection); 4] {
    let open = Link::open(client_config(), server_config());
    let mut gone = Link::open(client_config(), server_config());
    let now = gone.now;
    gone.client.close(now);
    gone.run_for(TimeDelta::from_millis(100));
    let server = open.server.connection.expect("a connection");
    let request = Connection::connect(client_config(), now).expect("a configuration");
    [
        ("open client", false, open.client),
        ("open server", true, server),
        ("TIMEWAIT", false, gone.client),
        ("REQUEST", false, request),
    ]
}

#[test]
fn no_end_sends_more_than_comes() {
    const SECONDS: i64 = 20;
    for packet_type in PacketType::ALL {
        for (what, is_server, mut end) in targets() {
            let mut random = Pcg64Mcg::seed_from_u64(4);
            let start = Timestamp::from_secs(101);
            drain(&mut end, start);
            let (mut came, mut left, mut answers) = (0, 0, 0);
            for ms in 0..SECONDS * 1_000 {
                let now = start + TimeDelta::from_millis(ms);
                let bytes = blind(&mut random, is_server, packet_type);
                came += bytes.len();
                end.handle_datagram(now, &datagram(&bytes));
                // Without its timers: packets sent are replies.
                for sent in drain(&mut end, now) {
                    (left, answers) = (left + sent.len(), answers + 1);
                }
            }
            // Eight Syncs or Resets per second and eight at once; packets that the connection sends anyway are allowed.
            assert!(answers <= 8 * (SECONDS as usize + 2) + 8, "{what}, {packet_type}: {answers}");
            assert!(left * 10 < came, "{what}, {packet_type}: {left} of {came} bytes");
        }
    }
}

#[test]
fn a_listener_sends_no_more_than_comes() {
    for cookies in [Cookies::Never, Cookies::Always] {
        let mut l = listener(cookies);
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let (mut came, mut left, mut resets) = (0, 0, 0);
        let mut out = Vec::new();
        for i in 0..40_000i64 {
            let now = Timestamp::from_secs(100) + TimeDelta::from_micros(i * 100);
            let packet_type = PacketType::ALL[(i % 10) as usize];
            if packet_type == PacketType::Request {
                continue;
            }
            let bytes = blind(&mut random, true, packet_type);
            came += bytes.len();
            match l.handle_datagram(now, PEER, &datagram(&bytes), &mut out) {
                ListenerEvent::Reply => (left, resets) = (left + out.len(), resets + 1),
                ListenerEvent::Nothing => {}
                ListenerEvent::Accepted(_) => panic!("by a blind {packet_type}"),
            }
        }
        // 1,024 per second for four seconds, and as many at once.
        assert!(left <= came + 4_096 && resets <= 1_024 * 5, "{left} of {came} bytes, {resets} Resets");
        assert_eq!(l.half_open(), 0);

        // Requests from forged addresses: their Responses are less than three times as long, headers of IP and UDP included.
        let (mut came, mut left) = (0, 0);
        for i in 0..5_000u64 {
            let now = Timestamp::from_secs(200) + TimeDelta::from_millis(i as i64);
            let bytes = forge(true, PacketType::Request, number(&mut random), Seq48::default(), &[], &[]);
            came += bytes.len() + 28;
            if let ListenerEvent::Reply = l.handle_datagram(now, 1_000 + i, &datagram(&bytes), &mut out) {
                left += out.len() + 28;
            }
            assert!(l.half_open() <= 128);
        }
        assert!(left < came * 3, "{left} for {came}");
    }
}
