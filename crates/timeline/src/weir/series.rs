//! Series of `weir run --series`: CSV (RFC 4180) with a row for each flow, or each link, and each interval.

use super::{Drawn, FLOW, LINK, add_targets, time};
use crate::input::{Input, Taken};
use crate::line::{self, Unread};
use crate::marks;
use crate::recording::Recording;
use crate::schema::Stop;
use crate::stats::{number, text};
use std::collections::BTreeSet;

/// The controller's target, in bit/s.
pub(super) const TARGET: &str = "target_bps";
/// The longest line, and most columns.
const MAX_LINE: usize = 64 << 10;
const MAX_COLUMNS: usize = 1_000;

const fn drawn(quantity: &'static str, name: &'static str, unit: f64) -> Drawn {
    Drawn { quantity, kind: FLOW, name, unit }
}

/// Quantities that are shown over time. The rate that arrived is not in the file: `goodput_bps` lacks what came too late, and repair packets.
pub(super) const DRAWN: [Drawn; 5] = [
    drawn("sent_kbps", "sent_bps", 1e-3),
    drawn("goodput_kbps", "goodput_bps", 1e-3),
    drawn("delay_ms", "delay_ms", 1.0),
    drawn("delay_max_ms", "delay_max_ms", 1.0),
    drawn("loss_percent", "loss", 100.0),
];

/// The fields of a line; `None`: a quote is open at its end.
pub(crate) fn fields(line: &str) -> Option<Vec<String>> {
    let (mut all, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    all.push(field);
    (!quoted).then_some(all)
}

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    let mut first = Vec::new();
    let stop = |offset, why: &str| Some(Stop { offset, why: why.into() });
    if let Taken::Cut(why) = input.line(MAX_LINE, &mut first) {
        return stop(0, &why);
    }
    let names = String::from_utf8_lossy(&first);
    let kind = if names.starts_with(marks::LINKS) { LINK } else { FLOW };
    let names = fields(&names).filter(|n| n.len() <= MAX_COLUMNS);
    let Some(names) = names else { return stop(0, "no list of at most 1000 columns") };
    let mut subjects = BTreeSet::new();
    let stop = line::each(input, out, MAX_LINE, |out, line| {
        let unread = || Unread::columns("series");
        let fields = fields(&String::from_utf8_lossy(line)).filter(|f| f.len() == names.len()).ok_or_else(unread)?;
        let [seconds, subject, values @ ..] = fields.as_slice() else { return Err(unread()) };
        let at = seconds.parse().ok().and_then(time).ok_or_else(unread)?;
        let is_new = subjects.insert(subject.clone());
        for (name, value) in names.iter().skip(2).zip(values).filter(|(_, v)| !v.is_empty()) {
            match value.parse::<f64>() {
                Ok(value) => number(out, at, (kind, subject, name), value),
                // Texts, such as the controller, are the same in all rows of a subject.
                Err(_) if is_new => text(out, at, (kind, subject, name), value),
                Err(_) => {}
            }
        }
        Ok(())
    });
    add_targets(out, (FLOW, TARGET), 1.0);
    stop
}

#[cfg(test)]
mod tests {
    use crate::why::curves;
    use crate::{Call, Format, read};

    const SERIES: &str = "time_s,flow,controller,target_bps,sent_bps,goodput_bps,delay_ms,loss,cc_slope\n\
        0.5,\"a,b\",gcc,1000000,900000,800000,30,0,0.25\n\
        1,\"a,b\",gcc,2000000,1900000,1800000,,0.5,\n\
        0.5,tcp,cubic,,5,6,,0,\n";

    #[test]
    fn each_number_of_a_flow_is_one_over_time_and_what_is_empty_is_absent() {
        let run = read("run", SERIES.as_bytes()).expect("series");
        assert_eq!((run.format, &run.stop, &run.damaged), (Format::WeirSeries, &None, &None));
        let of = |id: &str, name: &str| run.series.get(&("flow".into(), id.into(), name.into()));
        let points = |id: &str, name: &str| of(id, name).map(|s| s.points.iter().map(|p| p.1).collect::<Vec<_>>());
        assert_eq!(points("a,b", "sent_bps"), Some(vec![900_000.0, 1_900_000.0]));
        assert_eq!((points("a,b", "delay_ms"), points("tcp", "target_bps")), (Some(vec![30.0]), None));
        assert_eq!(of("tcp", "controller").map(|s| s.texts[0].1.as_str()), Some("cubic"));
        let targets: Vec<u64> = run.estimates.iter().map(|e| e.rate.as_bps()).collect();
        assert_eq!(targets, [1_000_000, 2_000_000]);
        let curves = curves(&Call::new(vec![run])).expect("times");
        let row = |name: &str| curves.column(name).map(|c| c.to_vec());
        assert_eq!(row("sent_kbps").map(|v| v[..2].to_vec()), Some(vec![900.0, 1_900.0]));
        assert_eq!(row("goodput_kbps").map(|v| v[1]), Some(1_800.0));
        assert_eq!(row("loss_percent").map(|v| v[1]), Some(50.0));
        assert!(row("arrived_kbps").is_none() && row("delay_ms").is_some_and(|v| v[0] == 30.0 && v[1].is_nan()));
    }

    #[test]
    fn damaged_and_cut_rows_are_said_and_the_others_read() {
        let with = |row: &str| read("run", format!("{SERIES}{row}").as_bytes()).expect("series");
        let damaged = with("1,x\n1,tcp,cubic,,7,8,,0,\n");
        assert_eq!(damaged.damaged.map(|d| d.offset), Some(SERIES.len() as u64));
        let cut = with("1,tcp,cub");
        assert!(cut.stop.is_some_and(|s| s.why.contains("cut") && s.offset == SERIES.len() as u64));
        for odd in
            ["-1,tcp,cubic,,7,8,,0,\n", "NaN,tcp,cubic,,7,8,,0,\n", "1,\"tcp,cubic,,7,8,,0,\n", "1e300,t,c,,7,8,,0,\n"]
        {
            assert!(with(&format!("{odd}1,tcp,cubic,,7,8,,0,\n")).damaged.is_some(), "{odd}");
        }
        let infinite = with("1,tcp,cubic,,inf,1e300,,0,\n");
        assert_eq!(infinite.faults.values().sum::<u64>(), 2, "{:?}", infinite.faults);
    }

    #[test]
    fn links_have_their_own_type() {
        let links = "time_s,link,capacity_bps,queue_bytes,queue_delay_ms,jain\n0.1,b,2000000,0,0,\n";
        let run = read("run", links.as_bytes()).expect("series");
        assert!(run.series.contains_key(&("link".into(), "b".into(), "capacity_bps".into())), "{run:?}");
        assert!(run.estimates.is_empty());
    }
}
