//! Radio links: the medium serves the queues of the stations.

use super::{Line, NOTHING, Packet, Verdict};
use crate::config::LinkConfig;
use crate::queue::{AnyQueue, Queue, Setup, Stations};
use crate::radio::{Air, Radio};
use std::collections::VecDeque;
use weir_units::Timestamp;

/// The queues and the medium of a radio link.
pub(super) fn radio_link<P>(
    radio: &Radio,
    config: &LinkConfig,
    setup: &Setup,
    seed: u64,
) -> (AnyQueue<P>, Option<Box<Air<P>>>) {
    let stations = Stations::new(&config.discipline, setup, radio.separates_stations());
    let air = Air::new(radio, &config.capacity, stations.len(), seed);
    (AnyQueue::Stations(Box::new(stations)), Some(Box::new(air)))
}

impl<P: Clone> Line<P> {
    // Out of line, so that it does not burden links without a radio.
    #[inline(never)]
    pub(super) fn push_to_station(
        &mut self,
        stations: &mut Stations<P>,
        now: Timestamp,
        packet: Packet<P>,
    ) -> Verdict<P> {
        self.now = self.now.max(now);
        self.serve_stations(stations);
        let mut packet = self.queued(packet);
        if let Some(reason) = self.impair(&mut packet) {
            return self.refuse(reason, packet);
        }
        if let Err(reason) = stations.admit(self.now, &mut packet, &mut self.ledger) {
            return self.refuse(reason, packet);
        }
        if let Some(air) = &mut self.air {
            air.on_arrival(self.now, stations.index(packet.flow()), stations);
        }
        stations.put(packet);
        self.serve_stations(stations);
        Verdict::Queued
    }

    /// Carries out every transmission that is due.
    #[inline(never)]
    pub(super) fn serve_stations(&mut self, stations: &mut Stations<P>) {
        let Some(mut air) = self.air.take() else { return };
        let mut sent = VecDeque::new();
        self.head = loop {
            let Some(start) = air.next_start(stations) else { break NOTHING };
            self.server.hold_until(start);
            if start > self.now || start == Timestamp::MAX {
                // Some time before the transmission, since the transmitter is held until then.
                break Timestamp::ZERO;
            }
            air.transmit(start, stations, &mut self.ledger, &mut sent);
            while let Some(s) = sent.pop_front() {
                self.launch(s.packet, s.start, s.end, s.lost);
            }
        };
        self.air = Some(air);
    }
}
