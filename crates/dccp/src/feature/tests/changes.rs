//! Changes while a connection is open: order, repetition and answers.

use super::*;

/// A client that has sent Change L(CCID, 3 2) and Change R(CCID, 2).
fn changing() -> End {
    let mut c = End::new(&with_ccids(&[3, 2], &[2]), false);
    c.send(PacketType::Request);
    c
}

#[test]
fn wrong_confirms_reset_the_connection() {
    // 2 is not the server's choice of the lists 3 2 and 3 2; 9 is on no list; the empty one is for features that all
    // know.
    for bytes in [&[2, 3, 2][..], &[9, 3, 9], &[9], &[]] {
        let first = bytes.first().copied().unwrap_or(0);
        let r = changing().receive(&[DccpOption::ConfirmR(CCID, bytes)], false);
        assert_eq!(r, cause(ResetCode::OPTION_ERROR, [35, 1, first]), "{bytes:?}");
    }
    for (bytes, value) in [(&[3, 3, 2][..], 3), (&[2, 2, 3], 2), (&[2, 9], 2), (&[3], 3)] {
        let mut c = changing();
        c.receive(&[DccpOption::ConfirmR(CCID, bytes)], false).expect("valid");
        assert_eq!(c.features.local(CCID), value, "{bytes:?}");
    }
    // An optional feature may be refused: the value stays (section 6.6.7).
    let config = Config { data_checksum: true, ..with_ccids(&[2], &[2]) };
    let mut c = End::new(&config, false);
    c.send(PacketType::Request);
    c.receive(&[DccpOption::ConfirmL(FeatureNumber::CHECK_DATA_CHECKSUM, &[])], false).expect("not required");
    assert_eq!(c.features.remote(FeatureNumber::CHECK_DATA_CHECKSUM), 0);
    c.send(PacketType::Request);
    let mut c = End::new(&Config { sequence_window: 200, ..config }, false);
    c.send(PacketType::Request);
    let r = c.receive(&[DccpOption::ConfirmR(FeatureNumber::SEQUENCE_WINDOW, &[0, 0, 0, 0, 0, 201])], false);
    assert_eq!(r, cause(ResetCode::OPTION_ERROR, [35, 3, 0]));
}

#[test]
fn options_out_of_order_are_ignored() {
    let mut s = End::new(&with_ccids(&[2, 3], &[2, 3]), true);
    let window = |w: &'static [u8; 6]| DccpOption::ChangeL(FeatureNumber::SEQUENCE_WINDOW, w);
    s.features.begin_packet(PacketType::Ack, Seq48::new(50), Some(Seq48::new(1)));
    s.features.on_option(&window(&[0, 0, 0, 0, 1, 0]), false).expect("valid");
    // Several in one packet are processed in order.
    s.features.on_option(&window(&[0, 0, 0, 0, 2, 0]), false).expect("valid");
    assert_eq!(s.features.remote(FeatureNumber::SEQUENCE_WINDOW), 512);
    for sequence in [50, 49, 3] {
        s.features.begin_packet(PacketType::Ack, Seq48::new(sequence), Some(Seq48::new(1)));
        s.features.on_option(&window(&[0, 0, 0, 0, 1, 0]), false).expect("ignored");
        // Mandatory does not change that (section 6.6.9).
        s.features.on_option(&window(&[0, 0, 0, 0, 0, 1]), true).expect("ignored");
        assert_eq!(s.features.remote(FeatureNumber::SEQUENCE_WINDOW), 512);
    }
    s.features.begin_packet(PacketType::Data, Seq48::new(60), None);
    s.features.on_option(&window(&[0, 0, 0, 0, 1, 0]), false).expect("not on DCCP-Data");
    s.features.begin_packet(PacketType::Ack, Seq48::new(51), Some(Seq48::new(1)));
    s.features.on_option(&window(&[0, 0, 0, 0, 3, 0]), false).expect("valid");
    assert_eq!(s.features.remote(FeatureNumber::SEQUENCE_WINDOW), 768);
}

#[test]
fn a_confirm_of_an_older_change_is_ignored() {
    let mut c = changing();
    let first = c.sequence;
    assert!(c.features.change(Location::Local, CCID, &[2, 3]), "a new list while CHANGING");
    // UNSTABLE: everything about it is ignored until the new list was sent.
    c.receive(&[DccpOption::ConfirmR(CCID, &[3, 3, 2]), DccpOption::ChangeR(CCID, &[3])], false).expect("ignored");
    assert_eq!(c.features.local(CCID), 2);
    let again = c.send(PacketType::Ack);
    assert!(options(&again).starts_with(&[32, 5, 1, 2, 3]));
    c.features.begin_packet(PacketType::Ack, Seq48::new(6_000), Some(first));
    c.features.on_option(&DccpOption::ConfirmR(CCID, &[3, 3, 2]), false).expect("ignored");
    assert_eq!(c.features.local(CCID), 2);
    c.features.begin_packet(PacketType::Data, Seq48::new(6_001), None);
    c.features.begin_packet(PacketType::Ack, Seq48::new(6_002), Some(c.sequence));
    c.features.on_option(&DccpOption::ConfirmR(CCID, &[3, 3, 2]), false).expect("valid");
    assert_eq!(c.features.local(CCID), 3);
}

#[test]
fn simultaneous_changes_agree() {
    let (mut c, mut s) = handshake(&with_ccids(&[2, 3], &[2, 3]), &with_ccids(&[2, 3], &[2, 3])).expect("agreement");
    assert!(c.features.change(Location::Remote, CCID, &[2, 3, 1]));
    assert!(s.features.change(Location::Local, CCID, &[3, 2, 1]));
    // The third example of section 6.5; 2 is the client's value, so only the server has to request.
    let (a, b) = (c.send(PacketType::Ack), s.send(PacketType::Ack));
    c.take(&b).expect("valid");
    s.take(&a).expect("valid");
    let (a, b) = (c.send(PacketType::Ack), s.send(PacketType::Ack));
    c.take(&b).expect("valid");
    s.take(&a).expect("valid");
    assert_eq!((c.features.remote(CCID), s.features.local(CCID)), (3, 3));
}

#[test]
fn changes_go_again_and_more_seldom() {
    let (mut c, mut s) = handshake(&Config::default(), &Config::default()).expect("agreement");
    let rtt = TimeDelta::from_millis(50);
    c.features.set_rtt(rtt);
    c.now += TimeDelta::from_secs(10);
    assert!(!c.features.pending(c.now));
    assert!(c.features.change(Location::Local, FeatureNumber::ACK_RATIO, &[7]));
    assert!(c.features.pending(c.now));
    c.send(PacketType::DataAck);
    let mut wait = rtt * 2;
    for _ in 0..12 {
        let due = c.features.poll_timeout().expect("not answered");
        assert_eq!(due, c.now + wait);
        // It is added to packets sent anyway, which does not move the timer.
        c.now = due - TimeDelta::from_millis(1);
        assert_eq!(options(&c.send(PacketType::Ack)), [32, 5, 5, 0, 7]);
        assert!(!c.features.pending(c.now));
        c.now = due;
        assert!(options(&c.send(PacketType::Data)).is_empty());
        assert_eq!(options(&c.send(PacketType::Sync)), [32, 5, 5, 0, 7]);
        wait = (wait * 2).min(TimeDelta::from_secs(64));
    }
    assert_eq!(wait, TimeDelta::from_secs(64));
    c.now = c.features.poll_timeout().expect("not answered");
    s.take(&c.send(PacketType::Ack)).expect("valid");
    assert!(options(&s.send(PacketType::Sync)).is_empty(), "no Confirm on a Sync");
    c.take(&s.send(PacketType::Ack)).expect("valid");
    assert_eq!((c.features.local(FeatureNumber::ACK_RATIO), s.features.remote(FeatureNumber::ACK_RATIO)), (7, 7));
    assert_eq!(c.features.poll_timeout(), None);
}

#[test]
fn answers_alone_are_not_sent_more_than_once_a_round_trip() {
    let (_, mut s) = handshake(&Config::default(), &Config::default()).expect("agreement");
    s.now += TimeDelta::from_secs(10);
    let mut sent = 0;
    for i in 0..1_000u64 {
        let ratio = (i as u16 + 1).to_be_bytes();
        s.receive(&[DccpOption::ChangeL(FeatureNumber::ACK_RATIO, &ratio)], false).expect("valid");
        if s.features.pending(s.now) {
            assert!(!options(&s.send(PacketType::Ack)).is_empty());
            sent += 1;
        }
        s.now += TimeDelta::from_millis(1);
    }
    // 1 s of round trips of 200 ms, and the first at once.
    assert!((5..=6).contains(&sent), "{sent}");
}
