use super::*;
use crate::packet::ResetCode;
use OptionFault as F;
use weir_units::{TimeDelta, Timestamp};

fn read(bytes: &[u8], on: PacketType) -> Vec<Result<DccpOption<'_>, BadOption>> {
    Options::new(bytes, on).iter().collect()
}

fn on_ack(bytes: &[u8]) -> Vec<Result<DccpOption<'_>, BadOption>> {
    read(bytes, PacketType::Ack)
}

fn bad(number: u8, data: [u8; 2], fault: OptionFault) -> Result<DccpOption<'static>, BadOption> {
    Err(BadOption { number, data, fault })
}

const CCID: FeatureNumber = FeatureNumber::CCID;

/// Every option with hand-made bytes from the figures of RFC 4340.
const SAMPLES: &[(DccpOption<'static>, &[u8])] = &[
    (DccpOption::SlowReceiver, &[2]),
    (DccpOption::ChangeL(CCID, &[3, 2]), &[32, 5, 1, 3, 2]),
    (DccpOption::ChangeL(CCID, &[]), &[32, 3, 1]),
    (DccpOption::ConfirmL(CCID, &[2, 2, 3]), &[33, 6, 1, 2, 2, 3]),
    (DccpOption::ChangeR(FeatureNumber(200), &[1]), &[34, 4, 200, 1]),
    (DccpOption::ConfirmR(FeatureNumber(200), &[]), &[35, 3, 200]),
    (DccpOption::InitCookie(&[9, 8, 7]), &[36, 5, 9, 8, 7]),
    (DccpOption::NdpCount(0), &[37, 3, 0]),
    (DccpOption::NdpCount(255), &[37, 3, 255]),
    (DccpOption::NdpCount(256), &[37, 4, 1, 0]),
    (DccpOption::NdpCount(MAX_NDP_COUNT), &[37, 8, 255, 255, 255, 255, 255, 255]),
    (DccpOption::AckVector { nonce: false, runs: &[0, 192, 3, 64, 5] }, &[38, 7, 0, 192, 3, 64, 5]),
    (DccpOption::AckVector { nonce: true, runs: &[] }, &[39, 2]),
    (DccpOption::DataDropped(&[0, 160, 3, 162]), &[40, 6, 0, 160, 3, 162]),
    (DccpOption::Timestamp(0x0102_0304), &[41, 6, 1, 2, 3, 4]),
    (DccpOption::TimestampEcho { echo: 0x0102_0304, elapsed: 0 }, &[42, 6, 1, 2, 3, 4]),
    (DccpOption::TimestampEcho { echo: 0x0102_0304, elapsed: 0xffff }, &[42, 8, 1, 2, 3, 4, 255, 255]),
    (DccpOption::TimestampEcho { echo: 0x0102_0304, elapsed: 0x1_0000 }, &[42, 10, 1, 2, 3, 4, 0, 1, 0, 0]),
    (DccpOption::ElapsedTime(0), &[43, 4, 0, 0]),
    (DccpOption::ElapsedTime(0xffff), &[43, 4, 255, 255]),
    (DccpOption::ElapsedTime(0x1_0000), &[43, 6, 0, 1, 0, 0]),
    (DccpOption::DataChecksum(0xaa36_918a), &[44, 6, 0xaa, 0x36, 0x91, 0x8a]),
    (DccpOption::Ccid { number: 128, data: &[] }, &[128, 2]),
    (DccpOption::Ccid { number: 255, data: &[1] }, &[255, 3, 1]),
    (DccpOption::Unknown { number: 3, data: &[] }, &[3]),
    (DccpOption::Unknown { number: 31, data: &[] }, &[31]),
    (DccpOption::Unknown { number: 45, data: &[] }, &[45, 2]),
    (DccpOption::Unknown { number: 127, data: &[5, 6] }, &[127, 4, 5, 6]),
];

#[test]
fn every_option_both_ways() {
    let mut all = vec![];
    for (option, bytes) in SAMPLES {
        let mut out = vec![];
        assert!(option.write_into(&mut out));
        assert_eq!((&out[..], on_ack(bytes)), (*bytes, vec![Ok(*option)]));
        all.extend_from_slice(bytes);
        all.extend_from_slice(&[0, 0][..bytes.len() % 3 % 2]);
    }
    let options: Vec<_> = SAMPLES.iter().map(|(o, _)| Ok(*o)).collect();
    assert_eq!(on_ack(&all), options);
}

#[test]
fn longer_forms_than_needed_are_read() {
    let all = on_ack(&[37, 8, 0, 0, 0, 0, 0, 7, 43, 6, 0, 0, 0, 9, 42, 8, 0, 0, 0, 1, 0, 0]);
    let echo = DccpOption::TimestampEcho { echo: 1, elapsed: 0 };
    assert_eq!(all, [Ok(DccpOption::NdpCount(7)), Ok(DccpOption::ElapsedTime(9)), Ok(echo)]);
}

#[test]
fn a_wrong_length_for_its_number_takes_that_option_alone_away() {
    // RFC 4340, section 5.8: a Data Checksum of length 4 is ignored, the option after it is not.
    let wrong: &[&[u8]] = &[
        &[44, 4, 7, 8],
        &[44, 7, 7, 8, 0, 0, 0],
        &[41, 5, 7, 8, 0],
        &[41, 7, 7, 8, 0, 0, 0],
        &[42, 5, 7, 8, 9],
        &[42, 7, 7, 8, 0, 0, 0],
        &[42, 9, 7, 8, 0, 0, 0, 0, 0],
        &[42, 11, 7, 8, 0, 0, 0, 0, 0, 0, 0],
        &[43, 5, 7, 8, 0],
        &[43, 7, 7, 8, 0, 0, 0],
        &[37, 9, 7, 8, 0, 0, 0, 0, 0],
    ];
    for bytes in wrong {
        let bytes = [bytes, &[2][..]].concat();
        assert_eq!(on_ack(&bytes), [bad(bytes[0], [7, 8], F::Value), Ok(DccpOption::SlowReceiver)]);
    }
    for bytes in
        [[37, 2, 2], [43, 2, 2], [32, 2, 2], [33, 2, 2], [34, 2, 2], [35, 2, 2], [41, 2, 2], [42, 2, 2], [44, 2, 2]]
    {
        assert_eq!(on_ack(&bytes), [bad(bytes[0], [0, 0], F::Value), Ok(DccpOption::SlowReceiver)]);
    }
}

#[test]
fn a_nonsensical_length_takes_the_rest_away() {
    let cases: &[(&[u8], [u8; 2])] = &[
        (&[44], [0, 0]),
        (&[44, 0, 2, 2, 2], [2, 2]),
        (&[44, 1, 2, 2, 2, 2], [2, 2]),
        (&[44, 6, 9, 8, 7], [9, 8]),
        (&[44, 6, 9], [9, 0]),
        (&[200, 255, 1, 2, 3], [1, 2]),
        (&[45, 3], [0, 0]),
    ];
    for (bytes, data) in cases {
        let bytes = [&[2], *bytes].concat();
        assert_eq!(on_ack(&bytes), [Ok(DccpOption::SlowReceiver), bad(bytes[1], *data, F::Length)]);
    }
}

#[test]
fn where_options_may_stand() {
    // The "DCCP-Data?" column of RFC 4340, table 3, by number.
    let column = "YNY.............................NNNNNYNNNYYNY";
    for (number, yes) in (0u8..).zip(column.chars()).filter(|(_, c)| *c != '.') {
        assert_eq!(is_permitted(number, PacketType::Data), yes == 'Y', "{number} on DCCP-Data");
    }
    // Options about the acknowledged packet, and Init Cookie, are not permitted on Requests either; Mandatory and
    // Change are.
    let on_request: Vec<u8> = (0..=255).filter(|&n| !is_permitted(n, PacketType::Request)).collect();
    assert_eq!(on_request, [33, 35, 36, 38, 39, 40, 43]);
    for t in PacketType::ALL.into_iter().filter(|t| t.has_acknowledgement()) {
        assert!((0..=255).all(|n| is_permitted(n, t)), "{t}");
    }
}

#[test]
fn what_may_not_stand_there_is_passed_over() {
    let bytes = [38, 3, 0, 2, 1, 32, 4, 9, 7, 2];
    let passed_over = bad(32, [9, 7], F::NotPermitted);
    let reported = read(&bytes, PacketType::Data);
    assert_eq!(
        reported,
        [bad(38, [0, 0], F::NotPermitted), Ok(DccpOption::SlowReceiver), passed_over, Ok(DccpOption::SlowReceiver)]
    );
    // Mandatory is ignored on Data, so nothing there can reset a connection (section 7.5.5).
    assert!(Options::new(&bytes, PacketType::Data).entries().all(|e| !e.mandatory && e.due_reset().is_none()));
    // On a Request it is not, and options that are not permitted are not processed.
    let entries: Vec<_> = Options::new(&[1, 38, 3, 5, 2], PacketType::Request).entries().collect();
    assert_eq!(entries[0].option, bad(38, [5, 0], F::NotPermitted));
    assert_eq!(entries[0].due_reset(), Some((ResetCode::MANDATORY_ERROR, [38, 5, 0])));
    assert_eq!(entries[1].option, Ok(DccpOption::SlowReceiver));
}

#[test]
fn mandatory_by_the_rules_of_section_5_8_2() {
    fn entries(bytes: &[u8]) -> Vec<Entry<'_>> {
        Options::new(bytes, PacketType::Ack).entries().collect()
    }
    let reset = |bytes: &[u8]| entries(bytes).iter().find_map(Entry::due_reset);
    // It marks only the option right after it.
    let all = entries(&[2, 1, 45, 4, 6, 7, 2]);
    assert_eq!(all.iter().map(|e| e.mandatory).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!((all[1].due_reset(), all[1].reset_data()), (None, [45, 6, 7]));
    // "Mandatory Padding" is padding: the option after it is not mandatory.
    assert_eq!(entries(&[1, 0, 2, 1, 0]).iter().map(|e| e.mandatory).collect::<Vec<_>>(), [false]);
    // Followed by nothing, or by itself.
    let option_error = Some((ResetCode::OPTION_ERROR, [1, 0, 0]));
    assert_eq!((reset(&[2, 1]), reset(&[1, 1, 2, 2])), (option_error, option_error));
    assert_eq!(entries(&[1, 1, 2, 2]).len(), 1);
    // Data that cannot be read.
    assert_eq!(reset(&[1, 44, 4, 7, 8]), Some((ResetCode::MANDATORY_ERROR, [44, 7, 8])));
    assert_eq!(reset(&[1, 44, 200, 7, 8]), Some((ResetCode::MANDATORY_ERROR, [44, 7, 8])));
    assert_eq!(reset(&[44, 4, 7, 8]), None);
}

#[test]
fn what_is_too_long_is_not_written() {
    let long = [0; MAX_DATA + 1];
    let mut out = vec![];
    for option in [DccpOption::InitCookie(&long), DccpOption::ChangeL(CCID, &long[1..])] {
        assert!(!option.write_into(&mut out) && out.is_empty(), "{}", option.number());
    }
    assert!(DccpOption::ConfirmR(CCID, &long[2..]).write_into(&mut out));
    assert_eq!((out.len(), out[1]), (255, 255));
    // More than six bytes can express.
    out.clear();
    assert!(DccpOption::NdpCount(u64::MAX).write_into(&mut out));
    assert_eq!(on_ack(&out), [Ok(DccpOption::NdpCount(MAX_NDP_COUNT))]);
}

#[test]
fn times_are_in_units_of_ten_microseconds() {
    // 0.65535 s is the maximum of the short form; 42949.67294 s the greatest time of the long one (section 13.2).
    assert_eq!(ticks(TimeDelta::from_micros(655_359)), 0xffff);
    assert_eq!(ticks(TimeDelta::from_micros(655_360)), 0x1_0000);
    assert_eq!(ticks(TimeDelta::from_micros(42_949_672_949)), u32::MAX - 1);
    assert_eq!(ticks(TimeDelta::from_secs(50_000)), u32::MAX);
    assert_eq!(ticks(TimeDelta::from_micros(-20)), 0);
    assert_eq!(from_ticks(0x1_0000), TimeDelta::from_micros(655_360));
    // It wraps after about 11.9 hours.
    let wrap = TimeDelta::from_micros((1 << 32) * 10);
    let now = Timestamp::from_micros(1_234_567_899);
    assert_eq!((timestamp(now), timestamp(now + wrap)), (123_456_789, 123_456_789));
    assert!((wrap.as_secs_f64() / 3_600.0 - 11.9).abs() < 0.05);
}
