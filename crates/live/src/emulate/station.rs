//! Devices on the path that send datagrams of their own, as base stations do.

use super::header::{Host, udp};
use super::{Emulator, EmulatorError, Gate, Network};
use crate::tun::Side;
use weir_path::{Capacity, LinkConfig};
use weir_sim::{AgentId, Observer};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// A device beside the path of a flow.
pub(super) struct Station {
    gate: AgentId,
    /// The host whose address its datagrams bear, and the one that gets them.
    from: Host,
    to: Host,
    port: u16,
}

impl<O: Observer> Emulator<O> {
    /// Adds a device beside the path of flow `flow`. Its datagrams arrive after `delay` at the flow's host of the side `to`, and bear
    /// the address of the flow's other host and the port `port` twice: the end takes them as its peer's. Observers see them as packets of
    /// a flow beyond the last one. Returns the number to announce with.
    ///
    /// Errors: the flow is not there.
    pub fn add_station(&mut self, flow: usize, to: Side, port: u16, delay: TimeDelta) -> Result<usize, EmulatorError> {
        let end = self.gates.get(2 * flow + to.index()).copied();
        let (Some(end), Ok(number)) = (end, u16::try_from(flow)) else {
            return Err(EmulatorError::Route { flow });
        };
        let Network { sim, stations, .. } = &mut self.network;
        let way = LinkConfig { capacity: Capacity::Unlimited, ..LinkConfig::constant(DataRate::ZERO, delay) };
        let way = sim
            .add_link(&way)
            .map_err(|source| EmulatorError::Link { link: format!("notices to flow {flow}"), source })?;
        // Of agents in pairs, the side of the sender decides where a packet leaves.
        let pair = [0, 1].map(|_| sim.add_agent(Gate::default(), Timestamp::ZERO));
        let gate = pair[to.other().index()];
        sim.set_route(gate, &[way], end);
        stations.push(Station { gate, from: Host { side: to.other(), number }, to: Host { side: to, number }, port });
        Ok(stations.len() - 1)
    }
}

impl<O: Observer> Network<O> {
    /// Sends a datagram of a device. A number that [`Emulator::add_station`] did not return is ignored.
    pub fn announce(&mut self, station: usize, payload: &[u8]) {
        let Some(s) = self.stations.get(station) else { return };
        let (from, to, port) = (s.from, s.to, s.port);
        self.sim.with_agent(s.gate, |gate, _| udp(from, to, port, payload, &mut gate.packet));
    }
}
