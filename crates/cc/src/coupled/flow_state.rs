//! Flow state exchange (RFC 8699): flows of a group share the sum of the rates that their controllers calculate, by
//! priority.

use weir_units::{DataRate, TimeDelta, Timestamp};

/// How rates are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Division {
    /// An update sets the rates of all flows of the group (RFC 8699, section 5.3.1).
    Active,
    /// The same, and a decrease reduces the sum in proportion, at most once in two round-trip times (section 5.3.2).
    Conservative,
    /// An update sets the rate of its own flow only (appendix C, for testbeds).
    Passive,
}

impl Division {
    /// Names and divisions.
    pub const NAMED: [(&str, Self); 3] =
        [("active", Self::Active), ("conservative", Self::Conservative), ("passive", Self::Passive)];

    /// The division of a name in [`Self::NAMED`].
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(n, _)| *n == name).map(|(_, division)| division)
    }
}

/// A registered flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowNumber(u32);

/// A group of flows: those that share a bottleneck (the RFC's FGI).
pub type Group = u32;

/// A controller's report of its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Update {
    /// When.
    pub now: Timestamp,
    /// The rate that the controller has calculated (CC_R).
    pub rate: DataRate,
    /// The most that the application can send (DR); `None` if it could send more than any rate.
    pub desired: Option<DataRate>,
    /// Round-trip time of the flow, for [`Division::Conservative`].
    pub rtt: TimeDelta,
}

/// The exchange: all flows, and the sums of their groups.
#[derive(Clone, Debug)]
pub struct FlowStateExchange {
    division: Division,
    flows: Vec<Flow>,
    groups: Vec<GroupState>,
    next: u32,
}

/// Rates in bit/s.
#[derive(Clone, Copy, Debug)]
struct Flow {
    number: FlowNumber,
    group: Group,
    /// Above 0; `None` for a flow that has stopped and is removed by the next update (passive only).
    priority: Option<f64>,
    /// FSE_R.
    rate: f64,
    /// DR. The RFC gives a flow without limit its own rate, by which no flow could ever receive more than it had;
    /// infinite instead, as in the RFC's example (appendix C.1).
    desired: f64,
}

#[derive(Clone, Copy, Debug)]
struct GroupState {
    group: Group,
    /// S_CR, bit/s.
    sum: f64,
    /// TLO of the passive algorithm, bit/s.
    left_over: f64,
    /// Until when decreases are not applied again.
    hold: Option<Timestamp>,
}

impl FlowStateExchange {
    /// An exchange without flows.
    pub const fn new(division: Division) -> Self {
        Self { division, flows: Vec::new(), groups: Vec::new(), next: 0 }
    }

    /// Adds a flow with its controller's initial rate. A priority that is not a positive number counts as 1.
    pub fn register(&mut self, group: Group, priority: f64, rate: DataRate) -> FlowNumber {
        let number = FlowNumber(self.next);
        self.next = self.next.wrapping_add(1);
        let rate = rate.as_bps_f64();
        let priority = Some(if priority.is_finite() && priority > 0.0 { priority } else { 1.0 });
        let desired = if self.division == Division::Passive { rate } else { f64::INFINITY };
        self.flows.push(Flow { number, group, priority, rate, desired });
        self.group_mut(group).sum += rate;
        number
    }

    /// A flow has stopped. Its rate stays in the sum, so that the others take it with their next updates.
    pub fn deregister(&mut self, flow: FlowNumber) {
        let Some(index) = self.index_of(flow) else { return };
        if self.division == Division::Passive {
            (self.flows[index].priority, self.flows[index].desired) = (None, 0.0);
        } else {
            self.flows.remove(index);
        }
        self.drop_empty_groups();
    }

    /// Moves a flow to another group, with its rate: detection has found that it shares that group's bottleneck.
    pub fn set_group(&mut self, flow: FlowNumber, group: Group) {
        let Some(index) = self.index_of(flow) else { return };
        let (before, rate) = (self.flows[index].group, self.flows[index].rate);
        if before == group {
            return;
        }
        let old = self.group_mut(before);
        old.sum = (old.sum - rate).max(0.0);
        self.flows[index].group = group;
        self.group_mut(group).sum += rate;
        self.drop_empty_groups();
    }

    /// The rate that a flow is to use now; `None` for an unknown flow.
    pub fn rate(&self, flow: FlowNumber) -> Option<DataRate> {
        self.index_of(flow).map(|i| DataRate::from_bps_f64(self.flows[i].rate))
    }
    /// The sum of the rates calculated in a group (S_CR).
    pub fn sum(&self, group: Group) -> DataRate {
        self.groups.iter().find(|g| g.group == group).map_or(DataRate::ZERO, |g| DataRate::from_bps_f64(g.sum))
    }

    /// Divides a group's sum again, after a flow has stopped: the others need not wait for an update. Nothing with
    /// [`Division::Passive`], where each flow takes its part with its own update.
    pub fn share_out(&mut self, group: Group) {
        if self.division != Division::Passive && self.groups.iter().any(|g| g.group == group) {
            self.divide(group);
        }
    }

    /// A controller has calculated a new rate (UPDATE). The new rates, of this flow or of all flows of its group, are
    /// those of [`Self::rate`]. An unknown flow changes nothing.
    pub fn update(&mut self, flow: FlowNumber, update: Update) {
        let Some(index) = self.index_of(flow) else { return };
        let rate = update.rate.as_bps_f64();
        let desired = update.desired.map_or(f64::INFINITY, DataRate::as_bps_f64);
        match self.division {
            Division::Passive => self.update_passive(index, rate, desired),
            Division::Active | Division::Conservative => {
                self.flows[index].desired = desired;
                self.add_up(index, rate, &update);
                self.divide(self.flows[index].group);
            }
        }
    }

    /// Step (a) of the active algorithms.
    fn add_up(&mut self, index: usize, rate: f64, update: &Update) {
        let Flow { group, rate: before, .. } = self.flows[index];
        let conservative = self.division == Division::Conservative;
        let state = self.group_mut(group);
        if !conservative {
            state.sum = (state.sum + rate - before).max(0.0);
            return;
        }
        if state.hold.is_some_and(|until| update.now < until) {
            return;
        }
        let delta = rate - before;
        if delta < 0.0 {
            state.sum *= rate / before;
            state.hold = Some(update.now + update.rtt * 2);
        } else {
            state.sum += delta;
        }
    }

    /// Steps (b) to (d): divides the sum by priority, and no flow gets more than it desires.
    fn divide(&mut self, group: Group) {
        let sum = self.group_mut(group).sum;
        let mut priorities = 0.0;
        let mut count = 0;
        for f in self.flows.iter_mut().filter(|f| f.group == group) {
            priorities += f.priority.unwrap_or(0.0);
            f.rate = 0.0;
            count += 1;
        }
        let (mut left, mut divided) = (sum, 0.0);
        // Each pass but the last takes out a limited flow, so that rounding cannot prolong the loop.
        for _ in 0..=count {
            if left - divided <= 0.0 || priorities <= 0.0 {
                break;
            }
            divided = 0.0;
            for f in self.flows.iter_mut().filter(|f| f.group == group) {
                let Some(priority) = f.priority else { continue };
                if f.rate >= f.desired {
                    continue;
                }
                let share = left * priority / priorities;
                if share >= f.desired {
                    left -= f.desired;
                    f.rate = f.desired;
                    priorities -= priority;
                } else {
                    f.rate = share;
                    divided += share;
                }
            }
        }
    }

    /// Appendix C, step (3).
    fn update_passive(&mut self, index: usize, calculated: f64, new_desired: f64) {
        let Flow { number, group, rate: before, .. } = self.flows[index];
        let rates: f64 = self.flows.iter().filter(|f| f.group == group).map(|f| f.rate).sum();
        let delta = calculated - before;
        let desired = new_desired.min(calculated);
        (self.flows[index].rate, self.flows[index].desired) = (calculated, desired);
        self.flows.retain(|f| f.group != group || f.priority.is_some());
        let Some(index) = self.index_of(number) else { return };
        let priorities: f64 = self.flows.iter().filter(|f| f.group == group).filter_map(|f| f.priority).sum();
        let share = self.flows[index].priority.unwrap_or(0.0) / priorities;
        let state = self.group_mut(group);
        if delta > 0.0 {
            state.sum += delta;
        } else if delta < 0.0 {
            state.sum = rates + delta;
        }
        if desired < calculated {
            state.left_over += share * state.sum - desired;
        }
        let rate = new_desired.min(share * state.sum + state.left_over).max(0.0);
        if rate < new_desired && state.left_over > 0.0 {
            state.left_over = 0.0;
        }
        let flow = &mut self.flows[index];
        flow.desired = flow.desired.max(rate);
        flow.rate = rate;
    }

    fn index_of(&self, flow: FlowNumber) -> Option<usize> {
        self.flows.iter().position(|f| f.number == flow && f.priority.is_some())
    }

    fn group_mut(&mut self, group: Group) -> &mut GroupState {
        let index = self.groups.iter().position(|g| g.group == group).unwrap_or_else(|| {
            self.groups.push(GroupState { group, sum: 0.0, left_over: 0.0, hold: None });
            self.groups.len() - 1
        });
        &mut self.groups[index]
    }

    fn drop_empty_groups(&mut self) {
        let flows = &self.flows;
        self.groups.retain(|g| flows.iter().any(|f| f.group == g.group));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MBPS: f64 = 1e6;

    fn update(rate: f64, desired: Option<f64>) -> Update {
        let bps = |r: f64| DataRate::from_bps_f64(r * MBPS);
        Update { now: Timestamp::ZERO, rate: bps(rate), desired: desired.map(bps), rtt: TimeDelta::from_millis(100) }
    }
    fn mbps(fse: &FlowStateExchange, flow: FlowNumber) -> f64 {
        fse.rate(flow).unwrap().as_bps_f64() / MBPS
    }
    #[track_caller]
    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 0.005, "{got}, expected {expected}");
    }

    /// The toy example of RFC 8699, appendix C.1, step by step.
    #[test]
    fn the_passive_example_of_the_rfc() {
        let mut fse = FlowStateExchange::new(Division::Passive);
        let first = fse.register(1, 1.0, DataRate::from_mbps(1));
        for rate in 2..=10 {
            fse.update(first, update(f64::from(rate), None));
            close(mbps(&fse, first), rate.into());
        }
        assert_eq!(fse.sum(1), DataRate::from_mbps(10));
        let second = fse.register(1, 0.5, DataRate::from_mbps(1));
        assert_eq!(fse.sum(1), DataRate::from_mbps(11));
        fse.update(first, update(8.0, None));
        close(mbps(&fse, first), 6.0);
        assert_eq!(fse.sum(1), DataRate::from_mbps(9));
        fse.update(second, update(2.0, None));
        close(mbps(&fse, second), 3.333);
        assert_eq!(fse.sum(1), DataRate::from_mbps(10));
        // The application limits the first flow to 2 Mbit/s; the second takes what is left over.
        fse.update(first, update(7.0, Some(2.0)));
        close(mbps(&fse, first), 2.0);
        assert_eq!(fse.sum(1), DataRate::from_mbps(11));
        fse.update(second, update(4.333_333, None));
        close(mbps(&fse, second), 9.333);
        assert_eq!(fse.sum(1), DataRate::from_mbps(12));
        fse.deregister(first);
        assert_eq!(fse.rate(first), None);
        fse.update(second, update(7.333_333, None));
        close(mbps(&fse, second), 9.333);
        close(fse.sum(1).as_bps_f64() / MBPS, 9.333);
    }

    #[test]
    fn active_flows_share_the_sum_by_priority() {
        let mut fse = FlowStateExchange::new(Division::Active);
        let flows = [1.0, 2.0, 1.0].map(|p| fse.register(7, p, DataRate::from_mbps(1)));
        // The sum is 3, then 3 + 2 - 1 = 4: a quarter, a half, a quarter.
        fse.update(flows[0], update(2.0, None));
        for (flow, expected) in flows.iter().zip([1.0, 2.0, 1.0]) {
            close(mbps(&fse, *flow), expected);
        }
        // The second halves its 2: the sum is 3.
        fse.update(flows[1], update(1.0, None));
        for (flow, expected) in flows.iter().zip([0.75, 1.5, 0.75]) {
            close(mbps(&fse, *flow), expected);
        }
    }

    #[test]
    fn what_a_limited_flow_leaves_goes_to_the_others() {
        let mut fse = FlowStateExchange::new(Division::Active);
        let flows = [1.0, 1.0, 2.0].map(|p| fse.register(7, p, DataRate::from_mbps(2)));
        fse.update(flows[0], update(2.0, Some(0.5)));
        // 6 - 0.5, one third and two thirds.
        for (flow, expected) in flows.iter().zip([0.5, 5.5 / 3.0, 11.0 / 3.0]) {
            close(mbps(&fse, *flow), expected);
        }
        // All limited: the rest is not assigned.
        fse.update(flows[1], update(2.0, Some(1.0)));
        fse.update(flows[2], update(3.0, Some(1.0)));
        for (flow, expected) in flows.iter().zip([0.5, 1.0, 1.0]) {
            close(mbps(&fse, *flow), expected);
        }
    }

    #[test]
    fn the_conservative_sum_falls_in_proportion_and_then_waits_two_round_trips() {
        let mut fse = FlowStateExchange::new(Division::Conservative);
        let flows = [1.0, 1.0].map(|p| fse.register(7, p, DataRate::from_mbps(4)));
        fse.update(flows[0], update(2.0, None));
        // 8 * 2 / 4: as one flow that halves, where the active algorithm has 6.
        assert_eq!(fse.sum(7), DataRate::from_mbps(4));
        close(mbps(&fse, flows[1]), 2.0);
        let at = |ms, rate| Update { now: Timestamp::from_millis(ms), ..update(rate, None) };
        fse.update(flows[1], at(199, 1.0));
        assert_eq!(fse.sum(7), DataRate::from_mbps(4));
        fse.update(flows[1], at(200, 1.0));
        assert_eq!(fse.sum(7), DataRate::from_mbps(2));
        fse.update(flows[0], at(401, 2.0));
        assert_eq!(fse.sum(7), DataRate::from_mbps(3));
    }

    #[test]
    fn the_rate_of_a_flow_that_stops_goes_to_the_others() {
        let mut fse = FlowStateExchange::new(Division::Active);
        let flows = [1.0, 1.0].map(|p| fse.register(7, p, DataRate::from_mbps(2)));
        fse.deregister(flows[0]);
        close(mbps(&fse, flows[1]), 2.0);
        fse.share_out(7);
        close(mbps(&fse, flows[1]), 4.0);
        // Passive flows take their parts with their own updates.
        let mut passive = FlowStateExchange::new(Division::Passive);
        let flow = passive.register(7, 1.0, DataRate::from_mbps(2));
        passive.share_out(7);
        close(mbps(&passive, flow), 2.0);
    }

    #[test]
    fn groups_are_apart_and_a_flow_takes_its_rate_along() {
        let mut fse = FlowStateExchange::new(Division::Active);
        let [a, b] = [1, 2].map(|group| fse.register(group, 1.0, DataRate::from_mbps(3)));
        fse.update(a, update(1.0, None));
        close(mbps(&fse, a), 1.0);
        close(mbps(&fse, b), 3.0);
        fse.set_group(a, 2);
        assert_eq!((fse.sum(1), fse.sum(2)), (DataRate::ZERO, DataRate::from_mbps(4)));
        fse.update(b, update(3.0, None));
        close(mbps(&fse, a), 2.0);
        close(mbps(&fse, b), 2.0);
        fse.set_group(b, 5);
        assert_eq!((fse.sum(2), fse.sum(5)), (DataRate::from_mbps(2), DataRate::from_mbps(2)));
    }

    proptest! {
        /// For any updates, rates are finite, within what is desired, and their sum within the group's.
        #[test]
        fn rates_stay_within_their_sum(
            kind in 0u8..3, priorities in proptest::collection::vec(0.0f64..10.0, 1..6),
            updates in proptest::collection::vec((0usize..6, 0u64..20_000_000, proptest::option::of(0u64..20_000_000), 0u32..3), 0..60),
        ) {
            let division = [Division::Active, Division::Conservative, Division::Passive][usize::from(kind)];
            let mut fse = FlowStateExchange::new(division);
            let flows: Vec<_> = priorities.iter().map(|p| fse.register(0, *p, DataRate::from_kbps(500))).collect();
            let mut last = vec![None; flows.len()];
            for (i, (flow, rate, desired, group)) in updates.into_iter().enumerate() {
                let flow = flow % flows.len();
                if i % 7 == 3 {
                    fse.set_group(flows[flow], group);
                }
                let desired = desired.map(DataRate::from_bps);
                last[flow] = desired;
                let now = Timestamp::from_millis(i as i64 * 50);
                fse.update(flows[flow], Update { now, rate: DataRate::from_bps(rate), desired, rtt: TimeDelta::from_millis(60) });
                let own = fse.rate(flows[flow]).unwrap();
                prop_assert!(desired.is_none_or(|d| own <= d));
                if division != Division::Passive {
                    for group in 0..3 {
                        let sum: u64 = fse.flows.iter().filter(|f| f.group == group).map(|f| f.rate as u64).sum();
                        prop_assert!(sum <= fse.sum(group).as_bps() + 10, "{sum} of {:?}", fse.sum(group));
                    }
                }
                prop_assert!(fse.flows.iter().all(|f| f.rate.is_finite() && f.rate >= 0.0));
                prop_assert!(fse.groups.iter().all(|g| g.sum.is_finite() && g.sum >= 0.0));
            }
        }
    }
}
