//! Rows whose time is far from all others: one wrong time would make the call as long as it is away, and hide all the rest.

use crate::recording::Recording;
use weir_units::Timestamp;

/// Least time between a stray and the rest, in ns: as in a fit, no packet is on its way for a minute. A pause is no longer than the call
/// around it.
const FAR: i64 = 60_000_000_000;
/// Of how many rows of the rest a group of strays is less than one: more of them are a part of the call.
const FEW: u64 = 20;

/// Rows near each other, in order of time.
#[derive(Clone, Copy)]
struct Group {
    from: i64,
    to: i64,
    rows: u64,
}

/// Leaves out rows far from the rest, and counts them. Settings that were logged long before keep their times: no span is taken of them.
pub(crate) fn leave_out(out: &mut Recording) {
    let Some((from, to)) = out.span() else { return };
    if (to - from).as_nanos() <= FAR {
        return;
    }
    let kept = near(&groups(&times(out)));
    let is_near = |at: Timestamp| {
        let at = at.as_nanos();
        let next = kept.partition_point(|g| g.to < at);
        kept.get(next).is_some_and(|g| g.from <= at)
    };
    let mut strays = 0u64;
    let mut keep = |at: Timestamp| {
        let near = is_near(at);
        strays += u64::from(!near);
        near
    };
    out.packets.retain(|r| keep(r.at));
    out.rtcp.retain(|r| keep(r.at));
    out.estimates.retain(|r| keep(r.at));
    for series in out.series.values_mut() {
        series.points.retain(|p| keep(p.0));
    }
    if strays == 0 {
        return;
    }
    // Tables without a part in the span, of the same wrong times.
    let (first, last) = (kept.first().map_or(0, |g| g.from - FAR), kept.last().map_or(0, |g| g.to + FAR));
    let mut keep = |at: Timestamp| {
        let near = (first..=last).contains(&at.as_nanos());
        strays += u64::from(!near);
        near
    };
    out.reported.retain(|r| keep(r.at));
    out.blocks.retain(|r| keep(r.at));
    out.frames.retain(|r| keep(r.at));
    out.probes.retain(|r| keep(r.at));
    out.limited.retain(|r| keep(r.at));
    out.other.retain(|r| keep(r.at));
    out.repairs.retain(|r| keep(r.at));
    out.faults_of("rows of a time far from all others", strays);
}

/// The times of all rows that a span is taken of, in order.
fn times(of: &Recording) -> Vec<i64> {
    let packets = of.packets.iter().map(|r| r.at);
    let others = of.rtcp.iter().map(|r| r.at).chain(of.estimates.iter().map(|r| r.at));
    let points = of.series.values().flat_map(|s| s.points.iter().map(|p| p.0));
    let mut times: Vec<i64> = packets.chain(others).chain(points).map(Timestamp::as_nanos).collect();
    times.sort_unstable();
    times
}

fn groups(times: &[i64]) -> Vec<Group> {
    let near = times.chunk_by(|a, b| b.saturating_sub(*a) <= FAR);
    near.map(|g| Group { from: g[0], to: g[g.len() - 1], rows: g.len() as u64 }).collect()
}

/// The groups of a call: the one with most rows, those that are not few beside it, and those that are no further from the next of these
/// than the first of them is long.
fn near(groups: &[Group]) -> Vec<Group> {
    let Some(core) = (0..groups.len()).max_by_key(|i| groups[*i].rows) else { return vec![] };
    let most = groups[core];
    let reach = (most.to - most.from).max(FAR);
    let is_part = |g: &Group, gap: i64| gap <= reach || g.rows.saturating_mul(FEW) >= most.rows;
    let mut kept = vec![most];
    for g in groups[..core].iter().rev() {
        if is_part(g, kept[0].from.saturating_sub(g.to)) {
            kept.insert(0, *g);
        }
    }
    for g in &groups[core + 1..] {
        let last = kept[kept.len() - 1];
        if is_part(g, g.from.saturating_sub(last.to)) {
            kept.push(*g);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use crate::{Recording, read};

    /// A log of 36 s, 100 packets a second, some of whose times are moved by so many ms.
    fn log(moved: impl Fn(u64) -> i64) -> Recording {
        let line = |i: u64| {
            let at = 1_700_000_000_000 + i as i64 * 10 + moved(i);
            format!("{at},102,7,{},0,false,1200,0,{i},1\n", i % 65_536)
        };
        let text: String = (0..3_600).map(line).collect();
        read("log", text.as_bytes()).expect("a log")
    }

    fn seconds(of: &Recording) -> f64 {
        of.span().map_or(0.0, |(from, to)| (to - from).as_secs_f64())
    }

    const DAYS: i64 = 30 * 86_400_000;

    #[test]
    fn a_wrong_time_makes_no_call_of_days_and_is_counted() {
        for by in [-DAYS, DAYS, 90_000] {
            let one = log(|i| if i == 1_800 { by } else { 0 });
            assert!((35.0..37.0).contains(&seconds(&one)), "{}", seconds(&one));
            assert_eq!((one.packets.len(), one.faults.values().sum::<u64>()), (3_599, 1), "{:?}", one.faults);
        }
        // Several, each far from the others.
        let some = log(|i| if i % 900 == 5 { DAYS * (i as i64 / 900 - 2) } else { 0 });
        assert!((35.0..37.0).contains(&seconds(&some)), "{}", seconds(&some));
        assert_eq!(some.packets.len(), 3_597);
    }

    #[test]
    fn a_pause_a_second_call_and_statistics_each_few_minutes_stay() {
        // 30 s, a pause of 25 s and 6 s more; then the same with a pause of an hour.
        for pause in [25_000, 3_600_000] {
            let paused = log(|i| if i < 3_000 { 0 } else { pause });
            assert_eq!((paused.packets.len(), paused.faults.len()), (3_600, 0));
        }
        let line = |i: u64| {
            let stats = r#"{"O":{"type":"outbound-rtp","bytesSent":1}}"#;
            format!("{{\"epoch_ms\":{},\"stats\":{stats}}}\n", 1_700_000_000_000 + i * 300_000)
        };
        let text: String = (0..100).map(line).collect();
        let slow = read("stats", text.as_bytes()).expect("statistics");
        assert_eq!((slow.series.values().map(|s| s.points.len()).sum::<usize>(), slow.faults.len()), (100, 0));
    }

    #[test]
    fn a_line_of_statistics_with_a_wrong_time_is_left_out() {
        let line = |i: u64| {
            let at = 1_700_000_000_000 + i * 1_000 + if i == 20 { 86_400_000 } else { 0 };
            format!("{{\"epoch_ms\":{at},\"stats\":{{\"O\":{{\"type\":\"outbound-rtp\",\"bytesSent\":{i}}}}}}}\n")
        };
        let text: String = (0..40).map(line).collect();
        let one = read("stats", text.as_bytes()).expect("statistics");
        assert!((38.0..40.0).contains(&seconds(&one)), "{}", seconds(&one));
        assert_eq!(one.faults.values().sum::<u64>(), 1, "{:?}", one.faults);
    }
}
