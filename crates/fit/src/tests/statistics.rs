//! Links from statistics once a second.

use super::*;

/// One line of `getStats()` of the sending end: bytes and packets sent, packets that the receiver misses, sum and count of round trips.
fn statistics_line(t: usize, bytes: f64, packets: f64, lost: f64, rtt: (f64, u32)) -> String {
    let (total, count) = rtt;
    format!(
        "{{\"epoch_ms\": {}, \"stats\": {{\"o\": {{\"id\": \"o\", \"type\": \"outbound-rtp\", \"bytesSent\": {bytes}, \"packetsSent\": {packets}, \
         \"framesEncoded\": {}, \"targetBitrate\": 2500000}}, \"r\": {{\"id\": \"r\", \"type\": \"remote-inbound-rtp\", \"packetsLost\": {lost}, \
         \"totalRoundTripTime\": {total}, \"roundTripTimeMeasurements\": {count}}}}}}}\n",
        1_700_000_000_000_u64 + t as u64 * 1_000,
        t * 30,
    )
}

/// The same of the receiving end.
fn receiver_line(t: usize, packets: f64, lost: f64) -> String {
    format!(
        "{{\"epoch_ms\": {}, \"stats\": {{\"i\": {{\"id\": \"i\", \"type\": \"inbound-rtp\", \"bytesReceived\": {}, \"packetsReceived\": {packets}, \
         \"packetsLost\": {lost}}}}}}}\n",
        1_700_000_000_000_u64 + t as u64 * 1_000,
        packets * 1_000.0,
    )
}

#[test]
fn statistics_show_the_capacity_while_more_is_sent_than_arrives() {
    // 2 Mbit/s of 1,000 bytes; from 10 to 20 s the link carries half, with .3 s in its queue.
    let (mut text, mut packets, mut lost, mut total) = (String::new(), 0.0, 0.0, 0.0);
    let mut received = String::new();
    for t in 0..40 {
        let narrow = (10..20).contains(&t);
        text += &statistics_line(t, packets * 1_000.0, packets, lost, (total, t as u32));
        received += &receiver_line(t, packets - lost, lost);
        packets += 250.0;
        lost += if narrow { 125.0 } else { 0.0 };
        total += if narrow { 0.34 } else { 0.04 };
    }
    let sender = weir_timeline::read("sender", text.as_bytes()).expect("statistics");
    let receiver = weir_timeline::read("receiver", received.as_bytes()).expect("statistics");
    assert_eq!(fit(&Call::new(vec![receiver.clone()])), Err(FitError::ReceiverAlone));
    let alone = fit(&Call::new(vec![sender.clone()])).expect("a fit");
    assert!(
        alone.capacity.known_share() == 0.0 && alone.unknown.iter().any(|u| u.contains("repaired")),
        "{:?}",
        alone.unknown
    );
    let found = fit(&Call::new(vec![sender, receiver])).expect("a fit");
    assert_eq!(found.evidence, Evidence::Statistics);
    assert!(found.rtt_ms.is_some_and(|ms| (ms - 40.0).abs() < 1e-6), "{:?}", found.rtt_ms);
    assert!((0.2..0.3).contains(&found.capacity.known_share()), "{}", found.capacity.known_share());
    // 125 packets a second of 1,000 bytes and 62 of headers.
    let known: Vec<f64> = found.capacity.served_bps.iter().flatten().copied().collect();
    assert!(known.iter().all(|r| (r / 1.062e6 - 1.0).abs() < 0.01), "{known:?}");
    let room = found.queue.limit_bytes.expect("it overflowed");
    assert!((room / (0.3 * 1.062e6 / 8.0) - 1.0).abs() < 0.02, "{room}");
    assert_eq!((found.loss.by_queue, found.loss.by_chance), (1_250, 0), "{:?}", found.loss);
    assert!(found.source.ceiling_is_logged && found.source.ceiling_bps == 2.5e6 && found.source.fps == 30.0);
    assert!(found.unknown.iter().any(|u| u.contains("a second hides them")), "{:?}", found.unknown);
    let registry = weir_cc::Registry::builtin();
    for draw in [None, Some(0), Some(1)] {
        found.scenario("Coarse", &["gcc".to_owned()], draw).open("coarse", &registry).expect("a scenario");
    }
}

#[test]
fn statistics_of_a_steady_second_are_a_bound_alone_and_a_longer_round_trip_is_a_path() {
    let link = Link { rate: &|_| 5e6, delay: &|t| if t < 10.0 { 0.03 } else { 0.08 }, room: 1e9, loses: NONE };
    let call = call(&|_| 0.8e6, &link);
    let found = fit_by_seconds(&call).expect("a fit");
    assert_eq!(found.capacity.known_share(), 0.0);
    let [_, there] = &found.base[..] else { panic!("{:?}", found.base) };
    assert!((there.more_ms - 25.0).abs() < 1.0 && (there.from_s - 10.0).abs() < 1.1, "{there:?}");
    assert_eq!(found.base, found.back);
    assert!(found.unknown.iter().any(|u| u.starts_with("which way")), "{:?}", found.unknown);
    assert_eq!(found.loss.by_chance + found.loss.by_queue, 0);
}

#[test]
fn losses_at_one_rate_are_a_policers_and_others_are_chance() {
    let text = |share: &dyn Fn(usize) -> f64, sent: &dyn Fn(usize) -> f64| {
        let (mut text, mut packets, mut lost) = (String::new(), 0.0, 0.0);
        for t in 0..30 {
            text += &statistics_line(t, packets * 1_000.0, packets, lost, (t as f64 * 0.04, t as u32));
            packets += sent(t);
            lost += sent(t) * share(t);
        }
        let recording = weir_timeline::read("stats", text.as_bytes()).expect("statistics");
        fit(&Call::new(vec![recording])).expect("a fit")
    };
    let sent = |t: usize| if t.is_multiple_of(3) { 110.0 } else { 150.0 };
    let found = text(&|t| if t % 3 == 0 { 0.0 } else { 0.2 }, &sent);
    let policer = found.policer.expect("a policer");
    assert!((policer.rate_bps / (120.0 * 1_062.0 * 8.0) - 1.0).abs() < 0.01, "{policer:?}");
    let found = text(&|t| if t < 10 { 0.0 } else { 0.1 }, &|t| 60.0 + 20.0 * (t % 4) as f64);
    assert_eq!(found.policer, None);
    let share = found.loss.steps.last().map_or(0.0, |s| s.share);
    assert!((share - 0.1).abs() < 0.01 && found.loss.steps[0].share == 0.0, "{:?}", found.loss);
}
