//! Base stations in the emulator: they announce their link's capacity to the ends of calls, as in the simulator.

use super::observer::LiveObserver;
use std::ops::Range;
use weir_lab::run::parts::LinkStation;
use weir_lab::scenario::Scenario;
use weir_live::emulate::{Emulator, EmulatorError, Network};
use weir_live::tun::Side;
use weir_report::pcap::RTP_PORT;
use weir_units::Timestamp;

/// A base station with its number in the emulator.
pub(super) struct LiveStation {
    station: LinkStation,
    number: usize,
    /// While its flow runs.
    runs: Range<Timestamp>,
    notice: Vec<u8>,
}

impl LiveStation {
    /// Those of a scenario.
    pub(super) fn all(
        scenario: &Scenario,
        seed: u64,
        emulator: &mut Emulator<LiveObserver>,
    ) -> Result<Vec<Self>, EmulatorError> {
        let mut add = |station: LinkStation| {
            let to = if station.to_receiver { Side::Right } else { Side::Left };
            let number = emulator.add_station(station.flow, to, RTP_PORT, station.delay)?;
            let flow = &scenario.flows[station.flow];
            let runs = Timestamp::ZERO + flow.start..Timestamp::ZERO + flow.stop;
            Ok(Self { station, number, runs, notice: Vec::new() })
        };
        LinkStation::all(scenario, seed).into_iter().map(&mut add).collect()
    }

    /// Measures the link and announces its capacity, when either is due.
    pub(super) fn step(&mut self, now: Timestamp, network: &mut Network<LiveObserver>) {
        if !self.runs.contains(&now) || now < self.station.next_measurement() {
            return;
        }
        let queue = network.link(self.station.link).queue_size(now);
        self.station.measure(now, queue);
        self.notice.clear();
        if self.station.poll_transmit(now, &mut self.notice) {
            network.announce(self.number, &self.notice);
        }
    }
}
