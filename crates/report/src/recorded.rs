//! A run's flows as recorded calls: causes are found in Weir's own runs by the rules for calls of others.

use weir_lab::results::RunResult;
use weir_lab::run::{Capture, CapturePoint, CapturedPacket, RunError, RunOptions, run_with};
use weir_lab::scenario::Scenario;
use weir_lab::series::FlowSeries;
use weir_session::HeaderExtensions;
use weir_timeline::{Call, Direction, Estimate, EstimateKind, Observed};
use weir_units::{DataRate, Timestamp};

/// A flow of a run.
#[derive(Clone, Debug)]
pub struct RecordedFlow {
    /// Its name in the scenario.
    pub name: String,
    /// Packets as its sender and its receiver saw them, and its targets where the run kept series. Times are simulated ones.
    pub call: Call,
}

/// Recordings of one flow in the making.
struct Ends {
    name: String,
    sender: Observed,
    receiver: Observed,
}

impl Ends {
    fn add(&mut self, packet: &CapturedPacket<'_>) {
        let (end, sends) = match packet.at {
            CapturePoint::Sender => (&mut self.sender, packet.forward),
            _ => (&mut self.receiver, !packet.forward),
        };
        let direction = if sends { Direction::Sent } else { Direction::Received };
        end.datagram(packet.now, direction, packet.bytes, packet.bytes.len() + packet.payload as usize);
    }

    /// Targets where they change.
    fn add_targets(&mut self, series: &FlowSeries, time_s: &[f64]) {
        let mut last = f64::NAN;
        for (at, target) in time_s.iter().zip(&series.target_bps).filter(|(_, t)| t.is_finite()) {
            if *target == last {
                continue;
            }
            last = *target;
            let (at, rate) = (Timestamp::from_nanos((at * 1e9) as i64), DataRate::from_bps(target.max(0.0) as u64));
            self.sender.estimate(changed(at, rate));
        }
    }
}

fn changed(at: Timestamp, rate: DataRate) -> Estimate {
    Estimate { at, kind: EstimateKind::Target, rate, loss: None, detector: None }
}

/// Runs a scenario, and returns its result and its RTP flows over UDP as calls recorded at both ends.
///
/// # Errors
/// As [`weir_lab::run::run`].
pub fn run(
    scenario: &Scenario,
    seed: u64,
    options: &RunOptions<'_>,
) -> Result<(RunResult, Vec<RecordedFlow>), RunError> {
    let number = Some(HeaderExtensions::default().transport_sequence_id);
    let mut flows: Vec<Option<Ends>> = (scenario.flows.iter())
        .map(|flow| {
            let rtp = flow.rtp().filter(|rtp| rtp.dccp.is_none())?;
            let end = |end: &str| Observed::new(&format!("{}, {end}", flow.name), number);
            let mut sender = end("sender");
            sender.estimate(changed(Timestamp::ZERO + flow.start, rtp.start_rate));
            Some(Ends { name: flow.name.clone(), sender, receiver: end("receiver") })
        })
        .collect();
    let mut sink = |p: &CapturedPacket<'_>| {
        if let Some(Some(ends)) = flows.get_mut(p.flow) {
            ends.add(p);
        }
    };
    let result = run_with(scenario, seed, options, Some(Capture { at: CapturePoint::Ends, sink: &mut sink }))?;
    let recorded = flows.into_iter().flatten().map(|mut ends| {
        if let Some(series) = &result.series
            && let Some(flow) = series.flows.iter().find(|f| f.name == ends.name)
        {
            ends.add_targets(flow, &series.time_s);
        }
        RecordedFlow { name: ends.name, call: Call::new(vec![ends.sender.finish(), ends.receiver.finish()]) }
    });
    let recorded = recorded.collect();
    Ok((result, recorded))
}
