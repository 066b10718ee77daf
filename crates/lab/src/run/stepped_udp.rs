//! UDP traffic with a variable rate.

use weir_sim::{Packet, udp};
use weir_units::Timestamp;

/// Constant-rate UDP with steps at given times: one source per step, the first packet at the step itself.
pub(crate) struct SteppedUdp {
    /// Start of each step and its source, in order.
    steps: Vec<(Timestamp, udp::Source)>,
    current: usize,
}

impl SteppedUdp {
    pub(crate) fn new(steps: Vec<(Timestamp, udp::Source)>) -> Self {
        Self { steps, current: 0 }
    }
    fn next_step(&self) -> Option<Timestamp> {
        self.steps.get(self.current + 1).map(|s| s.0)
    }
    fn source(&mut self) -> Option<&mut udp::Source> {
        self.steps.get_mut(self.current).map(|s| &mut s.1)
    }
}

impl weir_sim::Agent for SteppedUdp {
    fn on_start(&mut self, now: Timestamp) {
        while self.next_step().is_some_and(|at| at <= now) {
            self.current += 1;
        }
        if let Some(s) = self.source() {
            s.on_start(now);
        }
    }
    fn on_packet(&mut self, _: Timestamp, _: &Packet) {}
    fn on_timeout(&mut self, now: Timestamp) {
        if self.next_step().is_some_and(|at| at <= now) {
            self.on_start(now);
        } else if let Some(s) = self.source() {
            s.on_timeout(now);
        }
    }
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        let step = self.next_step();
        let packet = self.source().and_then(|s| s.poll_timeout());
        step.into_iter().chain(packet).min()
    }
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        self.source().is_some_and(|s| s.poll_transmit(now, packet))
    }
}
