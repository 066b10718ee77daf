//! An overlay on a network of delays and random loss, without queues.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use weir_cc::Registry;
use weir_session::overlay::{Focus, FocusConfig, HopControl, Node, NodeConfig, Outgoing, Received};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtp::Header;
use weir_wire::rtp::extension::Element;
use weir_wire::rtp::mprtp::SubflowNumber;

/// Interval of the stream's packets, and their payload: 100 packets a second, 0.8 Mbit/s of payload.
pub(crate) const INTERVAL: TimeDelta = TimeDelta::from_millis(10);
const PAYLOAD: u32 = 1_000;
pub(crate) const RATE: DataRate = DataRate::from_kbps(850);

#[derive(Clone, Debug)]
struct InFlight {
    to: SocketAddr,
    from: SocketAddr,
    bytes: Vec<u8>,
    payload: u32,
}

pub(crate) struct Member {
    pub(crate) node: Node,
    pub(crate) address: SocketAddr,
    /// Whether it has vanished.
    pub(crate) gone: bool,
    delay: TimeDelta,
    /// When each packet arrived, by its 16-bit number.
    pub(crate) arrived: BTreeMap<u16, Timestamp>,
}

pub(crate) struct Network {
    pub(crate) now: Timestamp,
    pub(crate) focus: Focus,
    /// The root, then the nodes in the order of joining.
    pub(crate) members: Vec<Member>,
    at: BTreeMap<SocketAddr, usize>,
    flying: BTreeMap<(Timestamp, u64), InFlight>,
    order: u64,
    rng: Pcg64Mcg,
    loss: f64,
    control: HopControl,
    /// When each of the root's packets was sent; the next one is sent at the second time.
    pub(crate) sent: BTreeMap<u16, Timestamp>,
    next: Timestamp,
    sequence: u16,
    pub(crate) config: fn(&mut NodeConfig),
    buffer: Vec<u8>,
}

pub(crate) fn address(n: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n as u32)), 5_000)
}
const FOCUS: usize = 0xffff;
/// The first packet's number, close to the wrap.
const FIRST: u16 = 65_300;

/// An RTP packet of the stream with an empty subflow number.
pub(crate) fn rtp(sequence: u16) -> Vec<u8> {
    let data = SubflowNumber { subflow: 0, sequence: 0 }.to_data();
    let elements = [Element::new(6, &data).expect("short")];
    let timestamp = u32::from(sequence.wrapping_sub(FIRST)) * 900;
    let mut out = vec![];
    Header { payload_type: 96, sequence, timestamp, ssrc: 1, elements: &elements, ..Header::default() }
        .write_into(&mut out);
    out
}

impl Network {
    pub(crate) fn new(trees: u8, root_degree: u16, loss: f64, seed: u64) -> Self {
        let control = HopControl::new(Arc::new(Registry::builtin()), "gcc", &[]).expect("built in");
        let focus = Focus::new(FocusConfig::new(trees, address(0), root_degree, [seed as u8; 32]));
        let mut network = Self {
            now: Timestamp::ZERO,
            focus,
            members: Vec::new(),
            at: BTreeMap::new(),
            flying: BTreeMap::new(),
            order: 0,
            rng: Pcg64Mcg::seed_from_u64(seed),
            loss,
            control,
            sent: BTreeMap::new(),
            next: Timestamp::ZERO,
            sequence: FIRST,
            config: |_| {},
            buffer: Vec::new(),
        };
        let config = network.node_config(0);
        let root = Node::root(config, &network.focus.root(), Timestamp::ZERO);
        network.add(root);
        network
    }

    fn node_config(&mut self, degree: u16) -> NodeConfig {
        let mut config = NodeConfig::new(address(FOCUS), degree, RATE, self.control.clone());
        config.seed = self.rng.random();
        (self.config)(&mut config);
        config
    }

    /// Makes the root again, with the present configuration.
    pub(crate) fn remake_root(&mut self) {
        let config = self.node_config(0);
        self.members[0].node = Node::root(config, &self.focus.root(), Timestamp::ZERO);
    }

    fn add(&mut self, node: Node) -> usize {
        let index = self.members.len();
        let delay = TimeDelta::from_micros(self.rng.random_range(2_000..20_000));
        self.at.insert(address(index), index);
        self.members.push(Member { node, address: address(index), gone: false, delay, arrived: BTreeMap::new() });
        index
    }

    /// A node joins now.
    pub(crate) fn join(&mut self, degree: u16) -> usize {
        let config = self.node_config(degree);
        let node = Node::new(config, self.now);
        let index = self.add(node);
        self.act(index, |node, now| node.handle_timeout(now));
        index
    }

    pub(crate) fn act(&mut self, index: usize, act: impl FnOnce(&mut Node, Timestamp)) {
        act(&mut self.members[index].node, self.now);
        self.pump(index);
    }

    fn delay(&self, address: SocketAddr) -> TimeDelta {
        self.at.get(&address).map_or(TimeDelta::from_millis(10), |i| self.members[*i].delay)
    }

    fn fly(&mut self, from: SocketAddr, out: Outgoing, bytes: &[u8]) {
        assert_eq!(out.size.as_bytes(), bytes.len() as u64 + u64::from(out.payload));
        if self.rng.random::<f64>() < self.loss {
            return;
        }
        let at = self.now + self.delay(from) + self.delay(out.to);
        self.order += 1;
        let packet = InFlight { to: out.to, from, bytes: bytes.to_vec(), payload: out.payload };
        self.flying.insert((at, self.order), packet);
    }

    fn pump(&mut self, index: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            buffer.clear();
            let member = &mut self.members[index];
            let Some(out) = member.node.poll_transmit(self.now, &mut buffer) else { break };
            let from = member.address;
            self.fly(from, out, &buffer);
        }
        let member = &mut self.members[index];
        while let Some(delivered) = member.node.poll_delivered() {
            let before = member.arrived.insert(delivered.sequence as u16, self.now);
            assert_eq!(before, None, "a packet is delivered once");
            let (bytes, payload) = member.node.packet(delivered.sequence).expect("it is kept");
            assert_eq!(bytes.len() as u64 + u64::from(payload), delivered.size.as_bytes());
            // All but the subflow number is as sent.
            let original = rtp(delivered.sequence as u16);
            assert_eq!((&bytes[..18], &bytes[22..], payload), (&original[..18], &original[22..], PAYLOAD));
        }
        self.buffer = buffer;
    }

    fn pump_focus(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            buffer.clear();
            let Some(out) = self.focus.poll_transmit(self.now, &mut buffer) else { break };
            self.fly(address(FOCUS), out, &buffer);
        }
        self.buffer = buffer;
    }

    /// Runs for this long.
    pub(crate) fn run(&mut self, time: TimeDelta) {
        let end = self.now + time;
        loop {
            let timers = self.members.iter_mut().enumerate().filter(|(_, m)| !m.gone);
            let timer = timers.filter_map(|(i, m)| Some((m.node.poll_timeout(self.now)?, i))).min();
            let focus = self.focus.poll_timeout().unwrap_or(Timestamp::MAX);
            let flying = self.flying.first_key_value().map_or(Timestamp::MAX, |(k, _)| k.0);
            let at = flying.min(self.next).min(focus).min(timer.map_or(Timestamp::MAX, |t| t.0));
            if at > end {
                break;
            }
            self.now = self.now.max(at);
            if flying == at {
                let (_, packet) = self.flying.pop_first().expect("there is one");
                self.deliver(&packet);
            } else if self.next == at {
                let sequence = self.sequence;
                self.sequence = sequence.wrapping_add(1);
                self.next = at + INTERVAL;
                self.sent.insert(sequence, at);
                self.act(0, |root, now| root.send(&rtp(sequence), PAYLOAD, now).expect("it can be sent"));
            } else if focus == at {
                self.focus.handle_timeout(self.now);
                self.pump_focus();
                let due = self.focus.poll_timeout();
                assert!(due.is_none_or(|at| at > self.now), "the focus wants time {due:?} at {:?}", self.now);
            } else if let Some((_, index)) = timer {
                self.act(index, |node, now| node.handle_timeout(now));
                let due = self.members[index].node.poll_timeout(self.now);
                assert!(due.is_none_or(|at| at > self.now), "{index} wants time {due:?} at {:?}", self.now);
            }
        }
        self.now = end;
    }

    fn deliver(&mut self, packet: &InFlight) {
        if packet.to == address(FOCUS) {
            self.focus.handle_datagram(packet.from, &packet.bytes, self.now);
            return self.pump_focus();
        }
        let Some(&index) = self.at.get(&packet.to) else { return };
        if self.members[index].gone {
            return;
        }
        let InFlight { from, bytes, payload, .. } = packet;
        let received = Received { from: *from, bytes, payload: *payload, ecn: Ecn::NotEct };
        self.act(index, |node, now| node.handle_datagram(&received, now));
    }

    /// Members other than the root that are there.
    pub(crate) fn present(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().skip(1).filter(|m| !m.gone)
    }

    /// Numbers of the packets sent between two times.
    pub(crate) fn sent_between(&self, from: Timestamp, to: Timestamp) -> BTreeSet<u16> {
        self.sent.iter().filter(|(_, at)| (from..to).contains(*at)).map(|(s, _)| *s).collect()
    }

    /// Checks that all trees of the nodes themselves lead to the root, and that each forwards in one tree.
    pub(crate) fn check_trees(&self, trees: u8) {
        let by_id: BTreeMap<u32, &Member> = self.present().map(|m| (m.node.id(), m)).collect();
        for member in self.present() {
            let hops: BTreeSet<u8> = member.node.hops().map(|(_, tree, _)| tree).collect();
            assert!(hops.iter().all(|t| Some(*t) == member.node.forwards()), "it forwards in one tree");
            for tree in 0..trees {
                let (mut at, mut count) = (member.node.id(), 0);
                while at != 0 {
                    let (parent, place) = by_id[&at].node.parent(tree).expect("it has a parent");
                    assert_eq!(self.focus.forest().parent(at, tree), Some(parent), "the focus knows it");
                    assert!(self.at.contains_key(&place));
                    (at, count) = (parent, count + 1);
                    assert!(count <= self.members.len(), "a cycle in tree {tree}");
                }
            }
        }
    }
}
