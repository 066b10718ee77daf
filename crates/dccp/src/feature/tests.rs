mod changes;

use super::*;
use crate::connection::Ccids;
use crate::option::DccpOption;
use crate::packet::PacketWriter;
use crate::packet::{Header, WireSequence, parse};

const CCID: FeatureNumber = FeatureNumber::CCID;

/// One end: its features, and its own network to the other.
struct End {
    features: Negotiation,
    sequence: Seq48,
    heard: Option<Seq48>,
    now: Timestamp,
}

/// A packet as it travels.
type Sent = Vec<u8>;

impl End {
    fn new(config: &Config, is_server: bool) -> Self {
        let features = Negotiation::new(config, is_server);
        let sequence = Seq48::new(if is_server { 9_000 } else { 100 });
        Self { features, sequence, heard: None, now: Timestamp::from_secs(1) }
    }
    fn send(&mut self, packet_type: PacketType) -> Sent {
        self.sequence = self.sequence.next();
        let header = Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type,
            sequence: WireSequence::Long(self.sequence),
            acknowledgement: packet_type.has_acknowledgement().then(|| WireSequence::Long(self.heard.expect("heard"))),
        };
        let mut out = Vec::new();
        let mut writer = PacketWriter::new(&mut out, &header);
        match packet_type {
            PacketType::Request | PacketType::Response => writer.service_code(crate::packet::ServiceCode(0)),
            _ => {}
        }
        self.features.write_options(self.now, packet_type, self.sequence, &mut writer);
        writer.finish();
        out
    }
    fn take(&mut self, packet: &Sent) -> Result<(), ResetCause> {
        let packet = parse(packet, 0).expect("what was written");
        let WireSequence::Long(sequence) = packet.header.sequence else { panic!("long") };
        let acknowledgement = packet.header.acknowledgement.map(|a| a.extend(Seq48::new(0)));
        self.heard = Some(self.heard.map_or(sequence, |h| h.max(sequence)));
        self.features.begin_packet(packet.header.packet_type, sequence, acknowledgement);
        let mut mandatory = false;
        for option in packet.options.iter() {
            let option = option.expect("what was written");
            self.features.on_option(&option, mandatory)?;
            mandatory = option == DccpOption::Mandatory;
        }
        Ok(())
    }
    /// Options of one received packet, with the next sequence number.
    fn receive(&mut self, options: &[DccpOption<'_>], mandatory: bool) -> Result<(), ResetCause> {
        let sequence = self.heard.map_or(Seq48::new(5_000), Seq48::next);
        self.heard = Some(sequence);
        self.features.begin_packet(PacketType::Ack, sequence, Some(self.sequence));
        options.iter().try_for_each(|o| self.features.on_option(o, mandatory))
    }
}

/// The bytes of a packet's options.
fn options(packet: &Sent) -> Vec<u8> {
    let parsed = parse(packet, 0).expect("what was written");
    let mut out = Vec::new();
    parsed.options.iter().for_each(|o| assert!(o.expect("what was written").write_into(&mut out)));
    out
}

fn handshake(client: &Config, server: &Config) -> Result<(End, End), ResetCause> {
    let (mut c, mut s) = (End::new(client, false), End::new(server, true));
    s.take(&c.send(PacketType::Request))?;
    c.take(&s.send(PacketType::Response))?;
    s.take(&c.send(PacketType::Ack))?;
    c.take(&s.send(PacketType::Ack))?;
    Ok((c, s))
}

fn with_ccids(send: &[u8], receive: &[u8]) -> Config {
    let ccids = Ccids { send: send.to_vec(), receive: receive.to_vec(), params: Vec::new() };
    // Without entries no CCID requires anything.
    Config { ccids, sequence_window: 100, registry: Arc::new(Registry::empty()), ..Config::default() }
}

fn cause(code: ResetCode, data: [u8; 3]) -> Result<(), ResetCause> {
    Err(ResetCause { code, data })
}

/// Options with which a server with these CCIDs answers one option of a client.
fn answer(server: &Config, option: DccpOption<'_>) -> Vec<u8> {
    let mut s = End::new(server, true);
    s.receive(&[option], false).expect("no reset");
    options(&s.send(PacketType::Ack))
}

#[test]
fn initial_values_are_those_of_table_4() {
    let n = Negotiation::new(&Config::default(), true);
    let initial = [(1, 2), (2, 0), (3, 100), (4, 0), (5, 2), (6, 0), (7, 0), (8, 0), (9, 0), (192, 0)];
    for (number, value) in initial {
        assert_eq!((n.local(FeatureNumber(number)), n.remote(FeatureNumber(number))), (value, value), "{number}");
    }
    assert_eq!((n.local(FeatureNumber(0)), n.local(FeatureNumber(10)), n.remote(FeatureNumber(128))), (0, 0, 0));
}

#[test]
fn examples_of_the_rfc() {
    // RFC 4340, section 6.5: the client's Change R(CCID, 2 3 1), the server's list 3 2 1.
    let server = with_ccids(&[3, 2, 1], &[2]);
    assert_eq!(answer(&server, DccpOption::ChangeR(CCID, &[2, 3, 1])), [33, 7, 1, 3, 3, 2, 1]);
    // Change L(Ack Ratio, 3) is confirmed by the value alone.
    let server = with_ccids(&[2], &[2]);
    assert_eq!(answer(&server, DccpOption::ChangeL(FeatureNumber::ACK_RATIO, &[0, 3])), [35, 5, 5, 0, 3]);
    // Change L(Sequence Window, 1024), of that section's encodings.
    let mut client = with_ccids(&[2, 3], &[2]);
    client.sequence_window = 1_024;
    let request = options(&End::new(&client, false).send(PacketType::Request));
    assert_eq!(request, [32, 5, 1, 2, 3, 34, 4, 1, 2, 32, 9, 3, 0, 0, 0, 0, 4, 0]);
    // Empty Confirm L(126).
    assert_eq!(answer(&server, DccpOption::ChangeR(FeatureNumber(126), &[1])), [33, 3, 126]);
    assert_eq!(answer(&server, DccpOption::ChangeL(FeatureNumber(126), &[1])), [35, 3, 126]);
}

#[test]
fn the_servers_order_goes_first() {
    let (c, s) = handshake(&with_ccids(&[2, 3], &[4, 2, 3]), &with_ccids(&[3, 4], &[3, 2])).expect("agreement");
    // The client sends by the server's receiving list; the server by its sending list.
    assert_eq!((c.features.ccids(), s.features.ccids()), (Some((3, 3)), Some((3, 3))));
    assert!(c.features.is_stable() && s.features.is_stable());
    let (c, s) = handshake(&with_ccids(&[2], &[4, 2]), &with_ccids(&[2, 4], &[3, 2])).expect("agreement");
    assert_eq!((c.features.ccids(), s.features.ccids()), (Some((2, 2)), Some((2, 2))));
}

#[test]
fn a_handshake_agrees_on_what_both_ends_want() {
    let client = Config {
        short_sequence_numbers: true,
        checksum_coverage: 3,
        data_checksum: true,
        sequence_window: 1_000,
        ..Config::default()
    };
    let server = Config {
        short_sequence_numbers: true,
        minimum_checksum_coverage: 2,
        sequence_window: 50_000,
        ..Config::default()
    };
    let (mut c, s) = handshake(&client, &server).expect("agreement");
    let both = |n| (c.features.local(n), c.features.remote(n));
    assert_eq!(both(FeatureNumber::SEQUENCE_WINDOW), (1_000, 50_000));
    assert_eq!(both(FeatureNumber::ALLOW_SHORT_SEQUENCE_NUMBERS), (1, 1));
    assert_eq!(both(FeatureNumber::MINIMUM_CHECKSUM_COVERAGE), (0, 2));
    assert_eq!(both(FeatureNumber::CHECK_DATA_CHECKSUM), (0, 1));
    // CCID 2 requires it of the data's receiver (RFC 4341, section 4).
    assert_eq!(both(FeatureNumber::SEND_ACK_VECTOR), (1, 1));
    for number in (1..=9).map(FeatureNumber) {
        let mirrored = (s.features.remote(number), s.features.local(number));
        assert_eq!((c.features.local(number), c.features.remote(number)), mirrored, "{number:?}");
    }
    assert!(c.features.is_stable() && s.features.is_stable());
    assert_eq!(c.features.poll_timeout(), None);
    let receive: Vec<_> = std::iter::from_fn(|| c.features.poll_changed()).collect();
    assert!(receive.contains(&Changed { number: FeatureNumber::SEQUENCE_WINDOW, location: Location::Remote }));
    assert!(receive.iter().all(|t| receive.iter().filter(|u| u == &t).count() == 1));
}

#[test]
fn without_a_shared_ccid_the_connection_is_reset() {
    // The client does not have CCID 2, so its Changes are mandatory (RFC 4340, section 10).
    let mut c = End::new(&with_ccids(&[3], &[3]), false);
    let request = c.send(PacketType::Request);
    assert_eq!(options(&request)[..5], [1, 32, 4, 1, 3]);
    let mut s = End::new(&with_ccids(&[2], &[2]), true);
    assert_eq!(s.take(&request), cause(ResetCode::MANDATORY_ERROR, [32, 1, 3]));
    // The server does not have it: it states so in its Response.
    let mut c = End::new(&with_ccids(&[2], &[2]), false);
    let mut s = End::new(&with_ccids(&[3], &[3]), true);
    s.take(&c.send(PacketType::Request)).expect("not mandatory");
    assert_eq!((s.features.ccids(), s.features.local(CCID)), (None, 2));
    let response = s.send(PacketType::Response);
    assert!(options(&response).windows(5).any(|w| w == [1, 32, 4, 1, 3]));
    assert_eq!(c.take(&response), cause(ResetCode::MANDATORY_ERROR, [32, 1, 3]));
}

#[test]
fn no_shared_value_leaves_the_old_one() {
    let server = with_ccids(&[2], &[2]);
    assert_eq!(answer(&server, DccpOption::ChangeR(CCID, &[9, 8])), [33, 5, 1, 2, 2]);
    // Values of two and more are reserved for Booleans; a list may contain them.
    let mut s = End::new(&server, true);
    s.receive(&[DccpOption::ChangeR(FeatureNumber::SEND_NDP_COUNT, &[7, 1, 0])], true).expect("0 is shared");
    assert_eq!(s.features.local(FeatureNumber::SEND_NDP_COUNT), 0);
}

#[test]
fn invalid_changes_get_empty_confirms() {
    let server = with_ccids(&[2], &[2]);
    let window = FeatureNumber::SEQUENCE_WINDOW;
    let invalid: [(DccpOption<'_>, &[u8]); 8] = [
        // A length that is not the feature's; values below 32 and above 2^46 - 1 (section 7.5.2).
        (DccpOption::ChangeL(window, &[0, 0, 0, 4, 0]), &[35, 3, 3]),
        (DccpOption::ChangeL(window, &[0, 0, 0, 0, 0, 31]), &[35, 3, 3]),
        (DccpOption::ChangeL(window, &[0x40, 0, 0, 0, 0, 0]), &[35, 3, 3]),
        (DccpOption::ChangeL(FeatureNumber::ACK_RATIO, &[0, 3, 0, 4]), &[35, 3, 5]),
        // The other end may not change it (section 6.3.2).
        (DccpOption::ChangeR(window, &[0, 0, 0, 0, 4, 0]), &[33, 3, 3]),
        (DccpOption::ChangeR(FeatureNumber::ACK_RATIO, &[0, 3]), &[33, 3, 5]),
        // No value at all (section 6.1).
        (DccpOption::ChangeL(window, &[]), &[35, 3, 3]),
        (DccpOption::ChangeR(CCID, &[]), &[33, 3, 1]),
    ];
    for (option, confirm) in invalid {
        assert_eq!(answer(&server, option), confirm, "{option:?}");
        let mut s = End::new(&server, true);
        let (DccpOption::ChangeL(f, v) | DccpOption::ChangeR(f, v)) = option else { panic!("a Change") };
        assert_eq!(
            s.receive(&[option], true),
            cause(ResetCode::MANDATORY_ERROR, [option.number(), f.0, v.first().copied().unwrap_or(0)])
        );
    }
    for (least, bytes) in [(32, [0, 0, 0, 0, 0, 32]), ((1 << 46) - 1, [0x3f, 0xff, 0xff, 0xff, 0xff, 0xff])] {
        let mut s = End::new(&server, true);
        s.receive(&[DccpOption::ChangeL(window, &bytes)], true).expect("valid");
        assert_eq!(s.features.remote(window), least);
    }
}

#[test]
fn unknown_features_are_counted_and_bounded() {
    let mut s = End::new(&with_ccids(&[2], &[2]), true);
    for number in 10..=127 {
        s.receive(&[DccpOption::ChangeL(FeatureNumber(number), &[1])], false).expect("no reset");
    }
    assert_eq!(s.features.unknown_features(), 118);
    assert_eq!(options(&s.send(PacketType::Ack)).len(), 3 * MAX_UNKNOWN);
    assert!(options(&s.send(PacketType::Ack)).is_empty());
    let r = s.receive(&[DccpOption::ChangeR(FeatureNumber(77), &[1, 2])], true);
    assert_eq!(r, cause(ResetCode::MANDATORY_ERROR, [34, 77, 1]));
    // Confirms of unknown features are ignored (section 6.6.7), as are those of no negotiation (6.6.8).
    s.receive(&[DccpOption::ConfirmL(FeatureNumber(77), &[1]), DccpOption::ConfirmR(CCID, &[9])], true)
        .expect("ignored");
    assert_eq!(s.features.local(CCID), 2);
}

#[test]
fn invalid_requests_are_refused() {
    let mut n = Negotiation::new(&Config::default(), false);
    assert!(!n.change(Location::Remote, FeatureNumber::SEQUENCE_WINDOW, &[100]));
    assert!(!n.change(Location::Local, FeatureNumber::SEQUENCE_WINDOW, &[31]));
    assert!(!n.change(Location::Local, FeatureNumber::ACK_RATIO, &[65_536]));
    assert!(!n.change(Location::Local, FeatureNumber(99), &[1]));
    assert!(!n.change(Location::Local, CCID, &[]) && !n.change(Location::Local, CCID, &[256]));
    assert!(!n.change(Location::Local, CCID, &[2; 17]));
}

#[test]
fn features_of_a_ccid_are_known_with_it_only() {
    let rate = FeatureNumber::SEND_LOSS_EVENT_RATE;
    // Of this end as the receiver of the other's data, whose CCID is 3, then 2.
    assert_eq!(answer(&with_ccids(&[2], &[2]), DccpOption::ChangeR(rate, &[1])), [33, 3, 192]);
    let (mut c, mut s) = handshake(&with_ccids(&[3], &[2]), &with_ccids(&[2], &[3, 2])).expect("agreement");
    assert!(c.features.change(Location::Remote, rate, &[1]));
    s.take(&c.send(PacketType::Ack)).expect("valid");
    assert_eq!(s.features.local(rate), 1);
    c.take(&s.send(PacketType::Ack)).expect("valid");
    assert_eq!((c.features.remote(rate), c.features.local(rate)), (1, 0));
    // With another CCID it restarts.
    s.receive(&[DccpOption::ChangeL(CCID, &[2])], false).expect("valid");
    assert_eq!((s.features.remote(CCID), s.features.local(rate)), (2, 0));
}

#[test]
fn it_is_small() {
    assert!(size_of::<Negotiation>() <= 1_024, "{}", size_of::<Negotiation>());
}

proptest::proptest! {
    /// Two ends eventually agree on everything despite loss, delay and duplicates.
    #[test]
    fn both_ends_agree_in_the_end(
        fates in proptest::collection::vec((0u8..6, proptest::bool::ANY), 1..60),
        lists in proptest::collection::vec((proptest::bool::ANY, proptest::bool::ANY, 0u8..4, 32u64..5_000), 0..12),
    ) {
        let config = with_ccids(&[2, 3, 4], &[2, 3, 4]);
        let (mut c, mut s) = handshake(&config, &config).expect("agreement");
        let mut late: Vec<(bool, Sent)> = Vec::new();
        let mut wishes = lists.into_iter();
        let all = [[2, 3, 4], [3, 4, 2], [4, 2, 3], [4, 3, 2]];
        for step in 0..400 {
            let fate = fates.get(step).copied().unwrap_or((5, step % 2 == 0));
            if step < fates.len() && let Some((at_client, local, list, window)) = wishes.next() {
                let end = if at_client { &mut c } else { &mut s };
                let location = if local { Location::Local } else { Location::Remote };
                end.features.change(location, CCID, &all[usize::from(list)]);
                end.features.change(Location::Local, FeatureNumber::SEQUENCE_WINDOW, &[window]);
            }
            let (from, to) = if fate.1 { (&mut c, &mut s) } else { (&mut s, &mut c) };
            from.now += TimeDelta::from_millis(300);
            let packet = from.send(PacketType::Ack);
            match fate.0 {
                0 | 1 => {}
                2 => late.push((fate.1, packet)),
                3 => (0..2).try_for_each(|_| to.take(&packet)).expect("no reset"),
                _ => to.take(&packet).expect("no reset"),
            }
            if fate.0 == 4 && let Some((to_server, packet)) = late.pop() {
                let to = if to_server { &mut s } else { &mut c };
                to.take(&packet).expect("no reset");
            }
        }
        proptest::prop_assert!(c.features.is_stable() && s.features.is_stable());
        for number in [CCID, FeatureNumber::SEQUENCE_WINDOW] {
            proptest::prop_assert_eq!(c.features.local(number), s.features.remote(number));
            proptest::prop_assert_eq!(c.features.remote(number), s.features.local(number));
        }
    }
}
