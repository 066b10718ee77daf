//! Addresses offered in-band: what is kept, what is refused, and that nothing is sent to them.

use super::two_paths::{Paths, plan_of};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_session::multipath::MAX_PATHS;
use weir_session::{Datagram, EndPlan, MAX_OFFERED, Outcome, PathConfig};
use weir_units::{Ecn, PathId, Timestamp};
use weir_wire::rtcp::App;
use weir_wire::rtcp::mprtcp::{Interface, InterfaceAddress, Writer};

fn call() -> Paths {
    let mut call = Paths::new(plan_of("gcc", "round-robin", 1_000), [(2_000, 10), (2_000, 10)]);
    call.run_until(Timestamp::from_secs(3));
    call
}

fn v4(n: u32) -> InterfaceAddress<'static> {
    InterfaceAddress::V4(Ipv4Addr::from(0xcb00_7100 + n))
}

/// An advertisement by a source, of these addresses at port 5,000.
fn advertisement<'a>(ssrc: u32, addresses: impl IntoIterator<Item = InterfaceAddress<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, ssrc, 11);
    for address in addresses {
        assert!(writer.interface(&Interface::new(5_000, address).expect("valid")));
    }
    writer.finish();
    out
}

/// Passes it to the sending end; returns the changes of its list.
fn receive(call: &mut Paths, bytes: &[u8]) -> u32 {
    match call.a.handle_datagram(call.now, &Datagram::new(bytes, Ecn::NotEct)) {
        Outcome::Rtcp(outcome) => outcome.offers,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_end_offers_its_addresses_and_the_other_one_has_them() {
    let mut call = call();
    let first: [SocketAddr; 2] = ["198.51.100.7:5000".parse().unwrap(), "[2001:db8::9]:6000".parse().unwrap()];
    call.b.rtcp().offer_addresses(&first);
    call.run_until(Timestamp::from_secs(8));
    assert_eq!(call.a.remote().offered_addresses(), first);
    assert_eq!((call.a.stats().counters().offers, call.a.stats().counters().interfaces_refused), (1, 0));
    // Repeated in case it was lost, and not without end.
    assert_eq!(call.a.stats().counters().interfaces_offered, 6);
    // An interface has disappeared.
    call.b.rtcp().offer_addresses(&first[1..]);
    call.run_until(Timestamp::from_secs(13));
    assert_eq!(call.a.remote().offered_addresses(), &first[1..]);
    assert!(call.b.remote().offered_addresses().is_empty());
    // More than a call can have paths.
    let many: Vec<SocketAddr> = (1..100u16).map(|port| SocketAddr::new(first[0].ip(), port)).collect();
    call.b.rtcp().offer_addresses(&many);
    call.run_until(Timestamp::from_secs(18));
    assert_eq!(call.a.remote().offered_addresses(), &many[..MAX_OFFERED]);
}

#[test]
fn ten_thousand_addresses_leave_eight_and_a_count() {
    let mut call = call();
    for n in 0..1_000u32 {
        let offered = advertisement(22, (0..10).map(|i| v4(n * 10 + i)));
        assert_eq!(receive(&mut call, &offered), 1);
        assert_eq!(call.a.remote().offered_addresses().len(), MAX_OFFERED);
    }
    assert_eq!(call.a.stats().counters().interfaces_offered, 10_000);
    assert_eq!(call.a.stats().counters().interfaces_refused, 2_000);
    assert_eq!(
        call.a.remote().offered_addresses()[0],
        SocketAddr::new(Ipv4Addr::from(0xcb00_7100 + 9_990).into(), 5_000)
    );
}

#[test]
fn restarts_of_ice_are_counted_with_the_addresses() {
    let mut call = call();
    let mut restarts = [0; MAX_PATHS];
    (restarts[1], restarts[MAX_PATHS - 1]) = (3, u16::MAX);
    call.b.rtcp().set_ice_restarts(restarts);
    call.b.rtcp().offer_addresses(&["198.51.100.7:5000".parse().unwrap()]);
    call.run_until(Timestamp::from_secs(8));
    assert_eq!(call.a.remote().ice_restarts(), restarts);
    assert_eq!(call.a.remote().offered_addresses().len(), 1);
    // A number never decreases, and only the other end's counts.
    let said = |ssrc: u32, path: u16, data: &[u8]| {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, ssrc, 11);
        writer.reports(path, |out| App { subtype: 0, ssrc, name: *b"WICE", data }.write_into(out));
        writer.finish();
        out
    };
    for (ssrc, path, data) in [
        (22, 1, &[0, 0, 0, 2][..]),
        (99, 1, &[0, 0, 0, 9]),
        (22, 300, &[0, 0, 0, 9]),
        (22, 1, &[0, 1, 0, 0]),
        (22, 1, &[]),
    ] {
        assert_eq!(receive(&mut call, &said(ssrc, path, data)), 0, "{ssrc} {path} {data:?}");
    }
    assert_eq!(call.a.remote().ice_restarts(), restarts);
    assert_eq!(receive(&mut call, &said(22, 1, &[0, 0, 0, 4])), 1);
    assert_eq!(call.a.remote().ice_restarts()[1], 4);
}

#[test]
fn a_forged_advertisement_moves_no_traffic() {
    let mut call = call();
    // Of another source: nothing is kept.
    assert_eq!(receive(&mut call, &advertisement(99, [v4(9)])), 0);
    assert!(call.a.remote().offered_addresses().is_empty());
    assert_eq!(call.a.stats().counters().interfaces_refused, 1);
    // In the other end's name: kept for the caller, and no path is added or changed by it.
    let before = [0, 1].map(|p| call.a.path(PathId::new(p)).and_then(|p| p.stats()).expect("a path").sent_packets);
    assert_eq!(receive(&mut call, &advertisement(22, [v4(9)])), 1);
    assert_eq!(receive(&mut call, &advertisement(22, [v4(9), v4(9)])), 0, "the same again");
    let from = call.sent[0].len();
    call.run_until(Timestamp::from_secs(6));
    assert!(call.a.path(PathId::new(2)).and_then(|p| p.stats()).is_none());
    assert!(call.sent[0][from..].iter().all(|(.., t)| t.path.index() < 2));
    let after = [0, 1].map(|p| call.a.path(PathId::new(p)).and_then(|p| p.stats()).expect("a path").sent_packets);
    assert!(after.iter().zip(before).all(|(a, b)| *a > b + 50), "{before:?}, {after:?}");
}

#[test]
fn addresses_to_which_no_media_can_go_are_refused() {
    let mut call = call();
    let bad = [
        InterfaceAddress::Name("media.example"),
        InterfaceAddress::V4(Ipv4Addr::UNSPECIFIED),
        InterfaceAddress::V4(Ipv4Addr::BROADCAST),
        InterfaceAddress::V4(Ipv4Addr::new(224, 0, 0, 1)),
        InterfaceAddress::V6(Ipv6Addr::UNSPECIFIED),
        InterfaceAddress::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
    ];
    assert_eq!(receive(&mut call, &advertisement(22, bad)), 0);
    assert_eq!((call.a.remote().offered_addresses().len(), call.a.stats().counters().interfaces_refused), (0, 6));
    assert_eq!(receive(&mut call, &advertisement(22, bad.into_iter().chain([v4(1)]))), 1);
    assert_eq!(call.a.remote().offered_addresses().len(), 1);
}

/// Feedback on a subflow on which this end does not send, though it receives there.
#[test]
fn feedback_on_a_path_without_a_sender_changes_nothing() {
    let other = call();
    let mut plan = plan_of("gcc", "round-robin", 1_000);
    plan.sending.truncate(1);
    plan.incoming[0].identity.ssrc = plan.sender.remote_ssrc;
    let mut sending = plan.sending.into_iter();
    let paths =
        plan.receiving.into_iter().map(|r| PathConfig { sending: sending.next(), receiving: Some(r), number: None });
    let (end, outgoing, incoming, group) = (plan.sender, plan.outgoing, plan.incoming, plan.group);
    let end = EndPlan { end, outgoing, incoming, paths: paths.collect(), group }.make(Timestamp::ZERO);
    let mut end = end.expect("sources of their own");
    let before = end.target();
    let mut passed = 0;
    for (at, bytes, t) in other.sent[1].iter().filter(|(.., t)| !t.is_rtp() && t.path.index() == 1) {
        let outcome = end.handle_datagram(*at, &Datagram { path: t.path, ..Datagram::new(bytes, Ecn::NotEct) });
        assert!(matches!(outcome, Outcome::Rtcp(_)), "{outcome:?}");
        passed += 1;
    }
    assert!(passed > 10, "{passed}");
    assert_eq!(end.target(), before);
}
