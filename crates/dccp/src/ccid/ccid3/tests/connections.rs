//! CCIDs 3, 4 and 248 between two connections.

use super::net::within;
use crate::connection::tests::harness::{Link, Pair, Side, config};
use crate::connection::{Ccids, Config};
use crate::option::DccpOption;
use crate::packet::PacketType;
use crate::queue::Message;
use weir_cc::tcp::{Equation, TcpFlow};
use weir_units::{DataRate, DataSize, TimeDelta};

const SIZE: u32 = 1_000;
const STEP: TimeDelta = TimeDelta::from_millis(20);

fn pair(ccids: Ccids, link: Link) -> Pair {
    Pair::open(Config { ccids, ..config() }, link)
}

/// Keeps the queues of these ends full for this time.
fn pour(pair: &mut Pair, from: &[Side], seconds: i64) {
    for _ in 0..seconds * 50 {
        for &side in from {
            let now = pair.now;
            let message = Message { payload: SIZE, ..Message::default() };
            while pair.end(side).queue().len() < 200 {
                pair.end(side).send(now, &message).expect("room");
            }
        }
        pair.run(STEP);
    }
}

fn data_of(pair: &Pair, from: Side) -> usize {
    pair.log.iter().filter(|s| s.from == from && s.packet_type.is_data()).count()
}

#[test]
fn ccid_3_takes_the_rate_of_the_equation() {
    let link = Link { loss: 0.01, ..Link::default() };
    let mut p = pair(Ccids::both(3), link);
    assert_eq!(p.client.ccids(), Some((3, 3)));
    pour(&mut p, &[Side::Client], 20);
    p.log.clear();
    pour(&mut p, &[Side::Client], 40);
    let tcp = TcpFlow::new(DataSize::from_bytes(SIZE.into()), TimeDelta::from_millis(40));
    let expected = tcp.throughput(Equation::Full, 0.01).expect("bounded").as_bps_f64();
    let sent = data_of(&p, Side::Client) as f64 * f64::from(SIZE) * 8.0 / 40.0;
    // Losses within a round trip of 11 packets are one event, so a little more.
    within(sent / expected, 0.85..=1.3);
    let rate = p.client.rate().map_or(0.0, DataRate::as_bps_f64);
    within(rate / expected, 0.5..=2.0);
    within(p.client.rtt().map_or(0.0, TimeDelta::as_millis_f64), 39.9..=45.0);
    assert_eq!(p.client.counters().bad_options + p.server().counters().bad_options, 0);
    assert_eq!(p.client.counters().sequence_invalid + p.server().counters().unexpected, 0);
}

#[test]
fn feedback_is_sent_once_per_round_trip_with_all_options() {
    let mut p = pair(Ccids::both(3), Link::default());
    // No loss, so a low limit on the input.
    for _ in 0..500 {
        let now = p.now;
        p.client.send(now, &Message { payload: SIZE, ..Message::default() }).expect("room");
        p.run(TimeDelta::from_millis(10));
    }
    let acks: Vec<_> = p.log.iter().filter(|s| s.from == Side::Server).collect();
    // 5 s by 40 ms.
    within(acks.len() as f64, 80.0..=130.0);
    for ack in &acks {
        assert_eq!(ack.packet_type, PacketType::Ack);
        let options = ack.options();
        let has = |wanted: &dyn Fn(&DccpOption<'_>) -> bool| options.iter().any(wanted);
        assert!(has(&|o| matches!(o, DccpOption::ElapsedTime(_))));
        for (number, len) in [(192, 4), (193, 10), (194, 4)] {
            let right = |o: &DccpOption<'_>| matches!(o, DccpOption::Ccid { number: n, data } if *n == number && data.len() == len);
            assert!(has(&right), "{number} in {options:?}");
        }
    }
    assert!(p.log.iter().filter(|s| s.from == Side::Client).all(|s| s.packet_type.is_data()));
}

#[test]
fn data_both_ways_do_not_disturb_each_other() {
    let link = Link { loss: 0.01, jitter: TimeDelta::from_micros(500), ..Link::default() };
    let mut p = pair(Ccids::both(3), link);
    pour(&mut p, &[Side::Client, Side::Server], 20);
    p.log.clear();
    pour(&mut p, &[Side::Client, Side::Server], 40);
    let (there, back) = (data_of(&p, Side::Client) as f64, data_of(&p, Side::Server) as f64);
    within(there / back, 0.75..=1.33);
    // About as much as one way alone: lost acknowledgements are recognised by NDP Counts.
    within(there * f64::from(SIZE) * 8.0 / 40.0, 1.7e6..=3.1e6);
}

#[test]
fn marks_count_as_losses() {
    let link = Link { marks: 0.01, ..Link::default() };
    let mut p = pair(Ccids::both(3), link);
    pour(&mut p, &[Side::Client], 20);
    p.log.clear();
    pour(&mut p, &[Side::Client], 40);
    within(data_of(&p, Side::Client) as f64 * f64::from(SIZE) * 8.0 / 40.0, 1.7e6..=3.1e6);
    // All but the packets in flight.
    let (came, sent) = (p.server().counters().data_received, p.client.counters().data_sent);
    assert!((sent - 30..=sent).contains(&came), "{came} of {sent}");
}

#[test]
fn other_ccids_work_beside_it_and_in_its_place() {
    let link = Link { loss: 0.005, ..Link::default() };
    for (send, receive) in [(3, 2), (2, 3), (4, 4), (248, 248), (4, 3)] {
        let client =
            Config { ccids: Ccids { send: vec![send], receive: vec![receive], params: Vec::new() }, ..config() };
        let ports = (client.remote_port, client.local_port);
        let ccids = Ccids { send: vec![receive], receive: vec![send], params: Vec::new() };
        let server = Config { ccids, local_port: ports.0, remote_port: ports.1, seed: 5, ..client.clone() };
        let mut p = Pair::with(client, server, link);
        p.run(TimeDelta::from_secs(2));
        assert_eq!(p.client.ccids(), Some((send, receive)));
        pour(&mut p, &[Side::Client, Side::Server], 20);
        let (there, back) = (data_of(&p, Side::Client), data_of(&p, Side::Server));
        // A hundred a second with CCID 4.
        let least = |ccid| if ccid == 4 { 1_500..=2_100 } else { 3_000..=20_000 };
        assert!(least(send).contains(&there) && least(receive).contains(&back), "{send}: {there}, {receive}: {back}");
        assert_eq!(p.client.counters().bad_options + p.server().counters().bad_options, 0);
    }
}

#[test]
fn the_experimental_number_is_used_only_where_both_ask_for_it() {
    let client = Config { ccids: Ccids { send: vec![248, 3], receive: vec![248, 3], params: Vec::new() }, ..config() };
    let ports = (client.remote_port, client.local_port);
    let server = Config { ccids: Ccids::both(3), local_port: ports.0, remote_port: ports.1, seed: 5, ..client.clone() };
    let mut p = Pair::with(client, server, Link::default());
    p.run(TimeDelta::from_secs(2));
    assert_eq!(p.client.ccids(), Some((3, 3)));
}
