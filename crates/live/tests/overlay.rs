//! An overlay of eight nodes on this machine's sockets.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use weir_cc::Registry;
use weir_live::clock::Clock;
use weir_live::overlay::{OverlayApplication, run_focus, run_node};
use weir_live::udp::{UdpConfig, UdpPort};
use weir_session::overlay::{Delivered, Focus, FocusConfig, HopControl, Node, NodeConfig};
use weir_units::{DataRate, TimeDelta, Timestamp};
use weir_wire::rtp::extension::Element;
use weir_wire::rtp::mprtp::SubflowNumber;
use weir_wire::rtp::{Header, PacketView};

const NODES: usize = 8;
/// 100 packets a second of 1,000 bytes.
const INTERVAL: TimeDelta = TimeDelta::from_millis(10);
const PAYLOAD: usize = 1_000;
/// One node vanishes, and one leaves.
const VANISHES_AT: Timestamp = Timestamp::from_millis(2_500);
const LEAVES_AT: Timestamp = Timestamp::from_millis(2_000);
const ENDS_AT: Timestamp = Timestamp::from_millis(6_500);

fn port() -> (UdpPort, SocketAddr) {
    let port = UdpPort::new(UdpSocket::bind("127.0.0.1:0").expect("a port"), UdpConfig::default()).expect("usable");
    let address = port.local_addr().expect("bound");
    (port, address)
}

fn content(sequence: u16) -> Vec<u8> {
    (0..PAYLOAD).map(|k| (k as u16).wrapping_mul(31).wrapping_add(sequence) as u8).collect()
}

/// The role of one end.
#[derive(Default)]
struct Application {
    ends_at: Timestamp,
    leaves_at: Option<Timestamp>,
    /// The root's next packet.
    next: Option<(u16, Timestamp)>,
    arrived: BTreeMap<u16, Timestamp>,
    wrong: u32,
    left: bool,
}

impl OverlayApplication for Application {
    fn stops(&mut self, now: Timestamp) -> bool {
        now >= self.ends_at
    }
    fn on_packet(&mut self, packet: &Delivered, bytes: &[u8], now: Timestamp) {
        let sequence = packet.sequence as u16;
        let whole =
            PacketView::parse(bytes).is_ok_and(|v| v.payload() == content(sequence) && v.sequence() == sequence);
        self.wrong += u32::from(!whole);
        assert_eq!(self.arrived.insert(sequence, now), None, "a packet is delivered once");
    }
    fn on_turn(&mut self, node: &mut Node, now: Timestamp) -> Option<Timestamp> {
        if self.leaves_at.is_some_and(|at| at <= now) {
            self.leaves_at = None;
            node.leave(now);
        }
        self.left = node.has_left();
        while let Some((sequence, at)) = self.next.filter(|(_, at)| *at <= now) {
            let data = SubflowNumber { subflow: 0, sequence: 0 }.to_data();
            let elements = [Element::new(6, &data).expect("short")];
            let timestamp = u32::from(sequence) * 900;
            let mut packet = vec![];
            Header { payload_type: 96, sequence, timestamp, ssrc: 1, elements: &elements, ..Header::default() }
                .write_into(&mut packet);
            packet.extend(content(sequence));
            node.send(&packet, 0, now).expect("the root sends");
            self.next = Some((sequence + 1, at + INTERVAL));
        }
        self.next.map(|n| n.1).into_iter().chain(self.leaves_at).min()
    }
}

#[test]
fn eight_nodes_receive_the_stream_while_one_leaves_and_one_vanishes() {
    let clock = Clock::starting_now();
    let ((mut focus_port, focus_address), (mut root_port, root_address)) = (port(), port());
    let mut focus = Focus::new(FocusConfig::new(3, root_address, 6, [7; 32]));
    let control = HopControl::new(Arc::new(Registry::builtin()), "gcc", &[]).expect("built in");
    let config = |degree, seed| NodeConfig {
        seed,
        ntp_epoch: clock.ntp_epoch(),
        ..NodeConfig::new(focus_address, degree, DataRate::from_kbps(830), control.clone())
    };
    let mut root = Node::root(config(0, 100), &focus.root(), clock.now());
    let nodes: Vec<(Application, Node)> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut application = Application { ends_at: ENDS_AT, ..Application::default() };
            run_focus(&mut focus_port, &mut focus, &clock, &mut application).expect("runs");
        });
        scope.spawn(|| {
            let next = Some((60_000, clock.now()));
            let mut application = Application { ends_at: ENDS_AT, next, ..Application::default() };
            run_node(&mut root_port, &mut root, &clock, &mut application).expect("runs");
        });
        let running: Vec<_> = (0..NODES)
            .map(|k| {
                let mut application = Application {
                    ends_at: if k == 0 { VANISHES_AT } else { ENDS_AT },
                    leaves_at: (k == 1).then_some(LEAVES_AT),
                    ..Application::default()
                };
                let (clock, config) = (&clock, config(4, k as u64));
                scope.spawn(move || {
                    let (mut port, _) = port();
                    let mut node = Node::new(config, clock.now());
                    run_node(&mut port, &mut node, clock, &mut application).expect("runs");
                    (application, node)
                })
            })
            .collect();
        running.into_iter().map(|r| r.join().expect("no panic")).collect()
    });
    assert!(nodes[1].0.left, "it has left");
    let (from, to) = (Timestamp::from_millis(1_500), Timestamp::from_millis(5_500));
    let mut sent: Vec<u16> = nodes[2..]
        .iter()
        .flat_map(|(a, _)| &a.arrived)
        .filter(|(_, at)| (from..to).contains(*at))
        .map(|(s, _)| *s)
        .collect();
    sent.sort_unstable();
    sent.dedup();
    assert!((380..420).contains(&sent.len()), "{}", sent.len());
    let mut relayed = 0;
    for (application, node) in &nodes[2..] {
        assert!(node.join_time().is_some_and(|t| t < TimeDelta::from_secs(1)), "{:?}", node.join_time());
        assert!(node.is_connected());
        assert_eq!(application.wrong, 0, "the content is as sent");
        let missed = sent.iter().filter(|s| !application.arrived.contains_key(s)).count();
        assert!(missed <= 2, "{missed} missed: {:?}", node.counters());
        relayed += node.hop_counters().packets;
    }
    assert!(relayed > 500, "nodes relay: {relayed}");
    // The root sent about two copies of each tree, not eight.
    let copies = root.hop_counters().packets as f64 / root.counters().packets as f64;
    assert!((1.5..3.0).contains(&copies), "{copies}");
    let counters = focus.counters();
    assert_eq!((counters.joined, counters.left, counters.failed), (8, 1, 1));
}
