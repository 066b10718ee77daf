//! Recordings of a program's own ten starts.

use weir_lab::scenario::InputError;
use weir_units::TimeDelta;

/// By start, each flow's rate in each second. The file has a row for each start and second: the number of the start, from 0;
/// the second, from 0; and each flow's mean rate in bit/s, in the order of the flows, 0 before it begins. Errors: the heading is
/// another, or a row is missing, out of order or no numbers.
pub(super) fn read(
    name: &str,
    text: &str,
    flows: usize,
    duration: TimeDelta,
    starts: u32,
) -> Result<Vec<Vec<Vec<f64>>>, InputError> {
    let bad = |line: usize, what: &str| InputError::whole(name, format!("line {} {what}", line + 1));
    let heading: String = (0..flows).fold("start,second".into(), |head, i| format!("{head},flow{i}_bps"));
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, head)| head != heading) {
        return Err(bad(0, &format!("is not the heading `{heading}`")));
    }
    let seconds = duration.as_secs_f64().round() as usize;
    let mut all = Vec::new();
    for start in 0..starts {
        let mut rates = vec![Vec::with_capacity(seconds); flows];
        for second in 0..seconds {
            let expected = format!("should be second {second} of start {start}");
            let (i, line) = lines.next().ok_or_else(|| InputError::whole(name, format!("the end {expected}")))?;
            let row = line.strip_prefix(&format!("{start},{second},")).ok_or_else(|| bad(i, &expected))?;
            let cells: Option<Vec<f64>> = row
                .split(',')
                .map(|cell| cell.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0))
                .collect();
            let cells = cells.filter(|c| c.len() == flows);
            let cells = cells.ok_or_else(|| bad(i, &format!("has not {flows} rates of 0 and more")))?;
            rates.iter_mut().zip(cells).for_each(|(flow, rate)| flow.push(rate));
        }
        all.push(rates);
    }
    match lines.next() {
        Some((i, _)) => Err(bad(i, "is after the last start's end")),
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<Vec<Vec<f64>>>, String> {
        read("x", text, 2, TimeDelta::from_secs(2), 1).map_err(|e| e.to_string())
    }

    #[test]
    fn rates_are_by_start_flow_and_second() {
        let read = of("start,second,flow0_bps,flow1_bps\n0,0,5,0\n0,1,6,1\n").expect("sound");
        assert_eq!(read, [[[5.0, 6.0], [0.0, 1.0]]]);
    }

    #[test]
    fn faults_are_named_with_their_lines() {
        for (rows, fault) in [
            ("0,0,5,0\n", "the end should be second 1 of start 0"),
            ("0,1,5,0\n", "line 2 should be second 0 of start 0"),
            ("0,0,5\n", "line 2 has not 2 rates"),
            ("0,0,5,-1\n", "line 2 has not 2 rates"),
            ("0,0,5,x\n", "line 2 has not 2 rates"),
            ("0,0,5,0\n0,1,5,0\n1,0,5,0\n", "line 4 is after the last"),
        ] {
            let error = of(&format!("start,second,flow0_bps,flow1_bps\n{rows}")).expect_err(fault);
            assert!(error.contains(fault), "{error}");
        }
        let error = of("start,second\n").expect_err("a heading without flows");
        assert!(error.contains("line 1 is not the heading"), "{error}");
    }
}
