//! A sender half under operations, and its session's work.

use super::*;

impl Harness {
    pub(super) fn new(spec: &Spec, setup: &Setup) -> Result<Self, TestCaseError> {
        let pair = REGISTRY.make(&spec.name, setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut h = Self {
            controller: pair.sender,
            limits: setup.limits,
            now: setup.now,
            history: SentHistory::new(),
            flight: BTreeMap::new(),
            next: setup.seed % 100_000,
            first_unreported: setup.seed % 100_000,
            last_reports: Vec::new(),
            unreported: Vec::new(),
            last_interval: Vec::new(),
            pending_probe: None,
            names: Vec::new(),
            clock: OtherClock::default(),
            trace: Trace::default(),
        };
        h.controller.metrics(&mut |name, _| h.names.push(name));
        h.check()?;
        Ok(h)
    }

    pub(super) fn advance(&mut self, us: u32) {
        self.now += TimeDelta::from_micros(i64::from(us));
    }

    pub(super) fn apply(&mut self, op: Op) -> Checked {
        match op {
            Op::Send { gap_us, size, kind, queued } => {
                self.advance(gap_us);
                self.poll_probes()?;
                self.send(size, kind, queued);
            }
            Op::Interval { .. } => self.interval(op),
            Op::NextUnit { sequence, playout_ns } => {
                let playout_delay = playout_ns.map(TimeDelta::from_nanos);
                let unit = NextDataUnit { now: self.now, next_sequence: sequence, playout_delay };
                self.controller.on_cue(&Cue::NextDataUnit(unit));
            }
            Op::Feedback { .. } => self.feedback(op)?,
            Op::ReportBlock { fraction_lost, cumulative_lost, expected, jitter_ns, rtt } => {
                let block = ReportBlock {
                    now: self.now,
                    fraction_lost: f64::from(fraction_lost) / 256.0,
                    cumulative_lost: i64::from(cumulative_lost),
                    highest_sequence: self.next,
                    expected: u64::from(expected),
                    jitter: TimeDelta::from_nanos(jitter_ns),
                    rtt: self.rtt(rtt),
                };
                self.controller.on_cue(&Cue::ReportBlock(block));
            }
            Op::Estimate { bps, tmmbr } => {
                let kind = if tmmbr { EstimateKind::Tmmbr } else { EstimateKind::Remb };
                let estimate = ReceiverEstimate { now: self.now, rate: DataRate::from_bps(bps), kind };
                self.controller.on_cue(&Cue::ReceiverEstimate(estimate));
            }
            Op::Nada { ramp_up, delay_ns, bps, rtt } => {
                let report = NadaReport {
                    now: self.now,
                    mode: if ramp_up { NadaMode::AcceleratedRampUp } else { NadaMode::GradualUpdate },
                    aggregate_delay: TimeDelta::from_nanos(delay_ns),
                    receive_rate: DataRate::from_bps(bps),
                    rtt: self.rtt(rtt),
                };
                self.controller.on_cue(&Cue::NadaReport(report));
            }
            Op::Transport { bps, smoothed, rtt } => {
                let (rate, smoothed) = (DataRate::from_bps(bps), DataRate::from_bps(smoothed));
                let reported = TransportRate { now: self.now, rate, smoothed, rtt: self.rtt(rtt) };
                self.controller.on_cue(&Cue::TransportRate(reported));
            }
            Op::Rejected { packets } => {
                self.controller.on_cue(&Cue::SendRejected(SendRejected { now: self.now, packets }));
            }
            Op::Queue { added, behind, age_ns } => {
                let (added, behind) = (DataSize::from_bytes(u64::from(added)), DataSize::from_bytes(u64::from(behind)));
                let oldest_age = TimeDelta::from_nanos(age_ns);
                self.controller.on_queue(&QueueState { now: self.now, added, queued: added + behind, oldest_age });
            }
            Op::Limits { floor, ceiling } => {
                self.limits = Limits { floor: DataRate::from_bps(floor), ceiling: DataRate::from_bps(ceiling) };
                self.controller.on_limits(self.limits, self.now);
            }
            Op::Clock { step_ms, ppm, granularity_us } => self.clock.change(self.now, step_ms, ppm, granularity_us),
            Op::Timeout { late_us } => {
                // A deadline beyond any run, from an absurd round-trip time, is never reached.
                let at = self.controller.poll_timeout().map(|t| t.0).filter(|&t| t - self.now < REACHABLE);
                if let Some(at) = at {
                    self.now = self.now.max(at) + TimeDelta::from_micros(i64::from(late_us));
                    self.controller.on_timeout(self.now);
                    let next = self.controller.poll_timeout();
                    prop_assert!(next.is_none_or(|(t, _)| t > self.now), "{next:?} is not after {:?}", self.now);
                }
            }
            Op::Silence { ms } => self.now += TimeDelta::from_millis(i64::from(ms)),
            Op::GiveUp { age_ms } => {
                let before = self.now - TimeDelta::from_millis(i64::from(age_ms));
                self.history.give_up_before(before);
                self.flight.retain(|_, p| p.0 >= before);
            }
        }
        self.check()
    }

    pub(super) fn interval(&mut self, op: Op) {
        let Op::Interval { again, gap_us, lost, discarded, repaired, delays_ns, rtt } = op else { return };
        self.advance(gap_us);
        if !again {
            self.last_interval = std::mem::take(&mut self.unreported);
        }
        for (k, p) in self.last_interval.iter_mut().enumerate() {
            let is = |mask: u64| mask >> (k % 64) & 1 == 1;
            p.fate = match (is(lost), is(discarded)) {
                (true, _) => Fate::Lost,
                (_, true) => Fate::Discarded,
                _ => Fate::Received,
            };
            p.repaired = p.fate != Fate::Received && is(repaired);
        }
        let ns = TimeDelta::from_nanos;
        let one_way_delay = delays_ns.map(|(a, b, c)| OneWayDelay { min: ns(a), mean: ns(b), last: ns(c) });
        let rtt = self.rtt(rtt);
        let report = IntervalReport { now: self.now, packets: &self.last_interval, one_way_delay, rtt };
        self.controller.on_cue(&Cue::IntervalReport(report));
    }

    pub(super) fn send(&mut self, size: u16, kind: Kind, queued: u32) {
        let probe = self.pending_probe.map_or(0, |p| p.0);
        self.pending_probe = self.pending_probe.filter(|p| p.1 > 1).map(|(id, left)| (id, left - 1));
        let mut packet = SentPacket {
            is_padding: kind == Kind::Padding,
            is_repair: kind == Kind::Repair,
            probe,
            queued: DataSize::from_bytes(u64::from(queued)),
            ..SentPacket::media(self.now, self.next, DataSize::from_bytes(u64::from(size)))
        };
        self.history.on_sent(&packet);
        packet.bytes_in_flight = self.history.bytes_in_flight();
        self.controller.on_packet_sent(&packet);
        self.flight.insert(self.next, (self.now, u64::from(size)));
        if kind == Kind::Media {
            self.unreported.push(IntervalPacket {
                sequence: self.next,
                departure: self.now,
                size: packet.size,
                fate: Fate::Received,
                repaired: false,
            });
        }
        self.next += 1;
    }

    pub(super) fn rtt(&self, rtt: Rtt) -> Option<TimeDelta> {
        match rtt {
            Rtt::Absent => None,
            Rtt::Measured => Some(TimeDelta::from_millis(80)),
            Rtt::Absurd(ns) => Some(TimeDelta::from_nanos(ns)),
        }
    }

    pub(super) fn feedback(&mut self, op: Op) -> Checked {
        let Op::Feedback { reports, gap_us, loss, ecn, jitter_us, absurd, rtt } = op else { return Ok(()) };
        self.advance(gap_us);
        let report = |i: u64, sequence: u64, at: Timestamp| {
            let jitter = i64::from(jitter_us) * (i as i64 % 3);
            let arrival =
                RemoteTimestamp::from_nanos(if absurd == 0 { self.clock.read(at).as_nanos() } else { absurd });
            let arrival = arrival + TimeDelta::from_micros(jitter);
            let ecn = if ecn >> (i % 64) & 1 == 1 { Ecn::Ce } else { Ecn::Ect0 };
            ReportedPacket { sequence, arrival: (loss >> (i % 64) & 1 == 0).then_some(arrival), ecn }
        };
        let batch: Vec<_> = match reports {
            Reports::True | Reports::Reordered => {
                let reported = (self.first_unreported..self.next).zip(0u64..);
                let mut all: Vec<_> = reported.map(|(s, i)| report(i, s, self.now)).collect();
                self.first_unreported = self.next;
                if matches!(reports, Reports::Reordered) {
                    all.reverse();
                }
                all
            }
            Reports::Duplicate => self.last_reports.clone(),
            Reports::Late => {
                let from = self.next.saturating_sub(u64::from(jitter_us % 3_000));
                (from..from + 20).zip(0u64..).map(|(s, i)| report(i, s, self.now)).collect()
            }
            Reports::Forged => (0..8).map(|i| report(i, loss.rotate_left(8 * i as u32), self.now)).collect(),
            Reports::Empty => Vec::new(),
        };
        self.model_resolve(&batch);
        let mut packets = Vec::new();
        self.history.resolve(batch.iter().copied(), &mut packets);
        self.last_reports = batch;
        let feedback = TransportFeedback {
            now: self.now,
            packets: &packets,
            bytes_in_flight: self.history.bytes_in_flight(),
            rtt: self.rtt(rtt),
        };
        self.controller.on_cue(&Cue::TransportFeedback(feedback));
        prop_assert!(packets.windows(2).all(|w| w[0].sequence < w[1].sequence), "each once, in send order");
        Ok(())
    }

    /// Reported packets leave the flight, and so do all packets sent before the first of them.
    pub(super) fn model_resolve(&mut self, batch: &[ReportedPacket]) {
        let remembered = self.next - self.history.len() as u64..self.next;
        let known = || batch.iter().map(|r| r.sequence).filter(|s| remembered.contains(s));
        let Some(lowest) = known().min() else { return };
        known().for_each(|s| {
            self.flight.remove(&s);
        });
        self.flight = self.flight.split_off(&lowest);
    }

    pub(super) fn poll_probes(&mut self) -> Checked {
        for n in 0.. {
            let Some(p) = self.controller.poll_probe(self.now) else { break };
            prop_assert!(n < MAX_PROBES_AT_ONCE, "a flood of probes");
            prop_assert!(p.id != 0 && p.rate > DataRate::ZERO, "{p:?}");
            self.trace.probes.push((p.id, p.rate.as_bps()));
            self.pending_probe = Some((p.id, p.min_packets.clamp(1, 20)));
        }
        Ok(())
    }

    pub(super) fn check(&mut self) -> Checked {
        let flight = self.flight.values().map(|p| p.1).sum::<u64>();
        prop_assert_eq!(self.history.bytes_in_flight().as_bytes(), flight, "bytes in flight are conserved");
        let t = self.controller.target();
        prop_assert_eq!(t, self.controller.target(), "asking twice changes nothing");
        prop_assert_eq!(self.limits.clamp(t.media_rate), t.media_rate, "inside {:?}", self.limits);
        prop_assert!(t.media_rate == DataRate::ZERO || t.pacing_rate > DataRate::ZERO, "{t:?} never sends");
        prop_assert!(t.window.is_none_or(|w| !w.is_zero()), "{t:?} never sends");
        prop_assert!(t.max_queue_age.is_none_or(|a| a > TimeDelta::ZERO), "{t:?} discards everything");
        match t.repair {
            RepairPlan::Parity { interval } => prop_assert!(interval >= 2, "{t:?}"),
            RepairPlan::ReedSolomon { block, repair } => prop_assert!(repair < block, "{t:?}"),
            _ => {}
        }
        self.trace.targets.push(t);
        let (mut at, mut wrong) = (0, None);
        let mut probes = [0.0; 4];
        let (names, metrics) = (&self.names, &mut self.trace.metrics);
        self.controller.metrics(&mut |name, value| {
            if names.get(at) != Some(&name) || value.is_infinite() {
                wrong.get_or_insert((name, value));
            }
            at += 1;
            metrics.push(value.to_bits());
            let counts = ["fec_enabled", "fec_raised", "fec_kept", "fec_failed"];
            counts.iter().position(|&c| c == name).into_iter().for_each(|k| probes[k] = value);
        });
        let [enabled, ended @ ..] = probes;
        let open = enabled - ended.iter().sum::<f64>();
        prop_assert!(open == 0.0 || open == 1.0, "one probe at a time, each ends in one way: {probes:?}");
        prop_assert!(wrong.is_none() && at == names.len(), "metric {wrong:?}, {at} of {}", names.len());
        Ok(())
    }
}
