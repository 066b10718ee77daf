use super::*;
use crate::rtcp::{Packet, raw_packets};
use crate::testing::hex;
use proptest::prelude::*;

fn written(message: Message<'_>) -> Vec<u8> {
    let mut out = vec![];
    Overlay { sender: 0x0102_0304, message }.write_into(&mut out);
    out
}

/// Content of a datagram of one packet.
fn read(bytes: &[u8]) -> Option<Overlay<'_>> {
    let raw = raw_packets(bytes).next()?.ok()?;
    match Packet::parse(&raw).ok()? {
        Packet::App(app) => Overlay::from_app(&app),
        _ => None,
    }
}

#[test]
fn messages_are_as_documented() {
    let (nonce, token) = (0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00);
    let join = written(Message::Join(Join { nonce, cookie: 5, degree: 7 }));
    assert_eq!(join, hex("80cc0007 01020304 4f564c59 1122334455667788 0000000000000005 00070000"));
    let challenge = written(Message::Challenge { nonce, cookie: 5 });
    assert_eq!(challenge, hex("81cc0006 01020304 4f564c59 1122334455667788 0000000000000005"));
    let assigned = written(Message::Assigned { token, serial: 9 });
    assert_eq!(assigned, hex("83cc0005 01020304 4f564c59 99aabbccddeeff00 00000009"));
    let broken = Broken { token, peer: 17, tree: 3, lost: Lost::Child, reason: Reason::Lossy };
    let broken = written(Message::Broken(broken));
    assert_eq!(broken, hex("84cc0006 01020304 4f564c59 99aabbccddeeff00 00000011 03010400"));
    assert_eq!(written(Message::Leave { token }), hex("85cc0004 01020304 4f564c59 99aabbccddeeff00"));
    assert_eq!(written(Message::Left { nonce }), hex("86cc0004 01020304 4f564c59 1122334455667788"));
    assert_eq!(written(Message::Check { nonce }), hex("87cc0004 01020304 4f564c59 1122334455667788"));
    assert_eq!(written(Message::Checked { token }), hex("88cc0004 01020304 4f564c59 99aabbccddeeff00"));
    let hop = Hop { ticket: token, tree: 4, code: 1, number: 0xfffe };
    for (kind, subtype) in HOP_KINDS.into_iter().zip(["89", "8a", "8b", "8c", "8d"]) {
        let expected = format!("{subtype}cc0005 01020304 4f564c59 99aabbccddeeff00 0401fffe");
        assert_eq!(written(Message::Hop(kind, hop)), hex(&expected));
    }
}

#[test]
fn an_assignment_is_as_documented() {
    let places = [
        Place { tree: 0, parent: 9, ticket: 1, address: "192.0.2.1:5004".parse().unwrap() },
        Place { tree: 1, parent: 10, ticket: 2, address: "[2001:db8::1]:5006".parse().unwrap() },
    ];
    let assign = Assign {
        nonce: 3,
        token: 4,
        key: [0xab; 16],
        serial: 5,
        node: 6,
        trees: 2,
        forwards: None,
        degree: 8,
        places: List::from(&places[..]),
    };
    let bytes = written(Message::Assign(assign));
    let expected = "82cc001d 01020304 4f564c59 0000000000000003 0000000000000004 abababababababababababababababab \
        00000005 00000006 02ff0008 \
        0000138c 00000009 0000000000000001 00000000000000000000ffffc0000201 \
        0100138e 0000000a 0000000000000002 20010db8000000000000000000000001";
    assert_eq!(bytes, hex(expected));
    assert_eq!(read(&bytes), Some(Overlay { sender: 0x0102_0304, message: Message::Assign(assign) }));
}

#[test]
fn other_names_subtypes_and_lengths_are_no_messages() {
    let good = written(Message::Leave { token: 1 });
    assert!(read(&good).is_some());
    let app = |subtype, name, data| Overlay::from_app(&App { subtype, ssrc: 1, name, data });
    assert_eq!(app(5, *b"OVLX", &[0; 8]), None);
    assert_eq!(app(14, OVERLAY_NAME, &[0; 12]), None);
    assert_eq!(app(31, OVERLAY_NAME, &[0; 12]), None);
    let zeros = [0; 48];
    for (subtype, size) in [(0, 20), (1, 16), (2, 44), (3, 12), (4, 16), (5, 8), (6, 8), (7, 8), (8, 8), (9, 12)] {
        assert!(app(subtype, OVERLAY_NAME, &zeros[..size]).is_some(), "{subtype}");
        assert_eq!(app(subtype, OVERLAY_NAME, &zeros[..size - 4]), None, "{subtype}");
        assert_eq!(app(subtype, OVERLAY_NAME, &zeros[..size + 4]), None, "{subtype}");
    }
    // Neither end of the hop.
    let mut neither = [0; 16];
    neither[13] = 2;
    assert_eq!(app(4, OVERLAY_NAME, &neither), None);
}

fn address() -> impl Strategy<Value = SocketAddr> {
    let v4 = any::<([u8; 4], u16)>().prop_map(SocketAddr::from);
    // IPv4-mapped addresses are written as IPv4.
    let v6 = any::<([u8; 16], u16)>().prop_map(|(ip, port)| SocketAddr::new(IpAddr::from(ip).to_canonical(), port));
    prop_oneof![v4, v6]
}

fn place() -> impl Strategy<Value = Place> {
    let numbers = (any::<u8>(), any::<u32>(), any::<u64>());
    (numbers, address()).prop_map(|((tree, parent, ticket), address)| Place { tree, parent, ticket, address })
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        sender: u32, wide: (u64, u64), narrow: (u32, u32), small: (u8, u8, u8, u16), key: [u8; 16],
        places in proptest::collection::vec(place(), 0..20),
    ) {
        let ((a, b), (c, d), (tree, other, code, number)) = (wide, narrow, small);
        let assign = Assign {
            nonce: a,
            token: b,
            key,
            serial: c,
            node: d,
            trees: tree,
            forwards: Some(other).filter(|t| *t != NO_TREE),
            degree: number,
            places: List::from(&places[..]),
        };
        let lost = if other & 1 == 0 { Lost::Parent } else { Lost::Child };
        let reason = Reason::from_code(code);
        let hop = Hop { ticket: a, tree, code, number };
        let mut messages = vec![
            Message::Join(Join { nonce: a, cookie: b, degree: number }),
            Message::Challenge { nonce: a, cookie: b },
            Message::Assign(assign),
            Message::Assigned { token: a, serial: c },
            Message::Broken(Broken { token: a, peer: c, tree, lost, reason }),
            Message::Leave { token: a },
            Message::Left { nonce: a },
            Message::Check { nonce: a },
            Message::Checked { token: a },
        ];
        messages.extend(HOP_KINDS.map(|kind| Message::Hop(kind, hop)));
        for message in messages {
            let mut out = vec![];
            Overlay { sender, message }.write_into(&mut out);
            prop_assert_eq!(read(&out), Some(Overlay { sender, message }));
        }
    }

    #[test]
    fn any_content_is_read_to_what_it_says_or_to_nothing(
        subtype in 0u8..32, ssrc: u32, data in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Some(overlay) = Overlay::from_app(&App { subtype, ssrc, name: OVERLAY_NAME, data: &data }) {
            let mut out = vec![];
            overlay.write_into(&mut out);
            prop_assert_eq!(out.len(), 12 + data.len());
            prop_assert_eq!(read(&out), Some(overlay));
        }
    }
}
