//! An emulated link between a call and its socket: the links of `weir_path`, in real time, one chain a direction.

use bytes::Bytes;
use serde::Serialize;
use std::net::SocketAddr;
use weir_lab::scenario::NetworkText;
use weir_path::{Capacity, ConfigError, Departure, Link, LinkConfig, Loss, Packet, Verdict};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Packets inside a direction; further ones are dropped. Bounds the memory of links without a queue limit.
const MAX_INSIDE: usize = 20_000;

/// The links of both directions, in the order in which packets cross them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkPlan {
    /// From this end to the browser.
    pub forward: Vec<LinkConfig>,
    /// From the browser to this end.
    pub reverse: Vec<LinkConfig>,
    /// Fixes random draws.
    pub seed: u64,
    /// The same links as text of a scenario file, if they come from one.
    pub network: Option<NetworkText>,
}

impl LinkPlan {
    /// The links of this plan, if there is one and it is wanted, and such a share of packets lost at random before them, both ways.
    /// `None` where nothing is left.
    pub(super) fn changed(plan: Option<&Self>, change: LinkChange) -> Option<Self> {
        let mut plan = plan.filter(|_| change.is_on).cloned();
        if change.loss > 0.0 {
            let plain = LinkConfig::constant(DataRate::ZERO, TimeDelta::ZERO);
            let loss = Loss::Independent { share: change.loss };
            let lossy = LinkConfig { capacity: Capacity::Unlimited, loss, ..plain };
            let plan = plan.get_or_insert_default();
            plan.forward.insert(0, lossy.clone());
            plan.reverse.insert(0, lossy);
        }
        plan
    }
}

/// The link between the ends while a call runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkChange {
    /// Whether packets pass the emulated link, if the service has one.
    pub is_on: bool,
    /// Share of packets that is lost in addition, both ways.
    pub loss: f64,
}

/// A datagram inside a link.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    pub(super) address: SocketAddr,
    pub(super) bytes: Bytes,
    entered: Timestamp,
}

/// One direction.
pub(super) struct Chain {
    links: Vec<Link<Inside>>,
    /// Their times begin here.
    zero: Timestamp,
    /// Bytes of UDP and IP headers.
    overhead: u64,
    /// Since the last sample.
    sum: Sum,
}

/// Counts of a direction since the last sample.
#[derive(Clone, Copy, Default)]
struct Sum {
    delivered: u64,
    bytes: u64,
    dropped: u64,
    delay: TimeDelta,
}

/// Counts of a direction of the link in a tenth of a second, units in the names.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSample {
    /// Least capacity of its links at the end; `None` if none has a limit.
    pub capacity_bps: Option<f64>,
    /// Bytes that have left it, with UDP's and IP's headers.
    pub delivered_bps: f64,
    /// Mean time that packets spent in it, propagation included.
    pub delay_ms: Option<f64>,
    /// Packets dropped.
    pub dropped: u64,
}

impl Chain {
    pub(super) fn new(links: &[LinkConfig], seed: u64, zero: Timestamp, v6: bool) -> Result<Self, ConfigError> {
        let link = |(config, n): (&LinkConfig, u64)| Link::new(config, seed.wrapping_add(n));
        let links = links.iter().zip(0..).map(link).collect::<Result<_, _>>()?;
        Ok(Self { links, zero, overhead: if v6 { 48 } else { 28 }, sum: Sum::default() })
    }

    fn local(&self, now: Timestamp) -> Timestamp {
        Timestamp::ZERO + now.saturating_since(self.zero)
    }

    /// A datagram enters.
    pub(super) fn push(&mut self, now: Timestamp, address: SocketAddr, ecn: Ecn, bytes: &[u8]) {
        let size = DataSize::from_bytes(bytes.len() as u64 + self.overhead);
        let now = self.local(now);
        let item = Inside { address, bytes: Bytes::copy_from_slice(bytes), entered: now };
        self.enter(0, now, Packet { item, size, ecn, flow: 0 });
    }

    fn enter(&mut self, link: usize, now: Timestamp, packet: Packet<Inside>) {
        let Some(link) = self.links.get_mut(link).filter(|l| l.packets_inside() < MAX_INSIDE) else {
            self.sum.dropped += 1;
            return;
        };
        if let Verdict::Dropped(..) = link.push(now, packet) {
            self.sum.dropped += 1;
        }
    }

    /// The next datagram that has left by now: when, its address, its ECN field.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<(Timestamp, Ecn, Inside)> {
        let now = self.local(now);
        for n in 0..self.links.len() {
            while let Some(departure) = self.links[n].pop(now) {
                match departure {
                    Departure::Dropped(_) => self.sum.dropped += 1,
                    Departure::Delivered(d) if n + 1 == self.links.len() => {
                        self.sum.delivered += 1;
                        self.sum.bytes += d.size.as_bytes();
                        self.sum.delay += d.at - d.item.entered;
                        return Some((self.zero + (d.at - Timestamp::ZERO), d.ecn, d.item));
                    }
                    Departure::Delivered(d) => {
                        self.enter(n + 1, d.at, Packet { item: d.item, size: d.size, ecn: d.ecn, flow: 0 });
                    }
                }
            }
        }
        None
    }

    /// When something may leave a link next.
    pub(super) fn next_event(&mut self) -> Timestamp {
        let next = self.links.iter_mut().filter_map(Link::next_event).min();
        next.map_or(Timestamp::MAX, |at| self.zero + (at - Timestamp::ZERO))
    }

    /// Returns its counts since the last sample, `interval` ago.
    pub(super) fn sample(&mut self, now: Timestamp, interval: TimeDelta) -> LinkSample {
        let (at, sum) = (self.local(now), std::mem::take(&mut self.sum));
        let capacity = self.links.iter().map(|l| l.capacity_at(at)).min();
        let delivered = DataRate::from_size_over(DataSize::from_bytes(sum.bytes), interval);
        LinkSample {
            capacity_bps: capacity.filter(|c| c.as_bps() < u64::MAX).map(DataRate::as_bps_f64),
            delivered_bps: delivered.map_or(0.0, DataRate::as_bps_f64),
            delay_ms: (sum.delivered > 0).then(|| sum.delay.as_millis_f64() / sum.delivered as f64),
            dropped: sum.dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_take_the_time_of_all_links_and_steps_count_from_the_beginning() {
        let ms = TimeDelta::from_millis;
        let first = LinkConfig::constant(DataRate::from_kbps(800), ms(10));
        let second = LinkConfig::constant(DataRate::from_kbps(400), ms(20));
        let zero = Timestamp::from_secs(100);
        let mut chain = Chain::new(&[first, second], 1, zero, false).expect("valid");
        let to: SocketAddr = "127.0.0.1:9".parse().expect("an address");
        // 972 bytes and 28 of headers: 10 ms and 20 ms of transmission.
        chain.push(zero, to, Ecn::NotEct, &[7; 972]);
        assert!(chain.pop(zero + ms(59)).is_none());
        let (at, _, inside) = chain.pop(zero + ms(100)).expect("there");
        assert_eq!((at, inside.address, inside.bytes.len()), (zero + ms(60), to, 972));
        assert!(chain.pop(zero + ms(200)).is_none() && chain.next_event() == Timestamp::MAX);
        let seen = chain.sample(zero + ms(200), ms(200));
        let expected = LinkSample { capacity_bps: Some(4e5), delivered_bps: 4e4, delay_ms: Some(60.0), dropped: 0 };
        assert_eq!(seen, expected);
    }
}
