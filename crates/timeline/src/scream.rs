//! Traces of Ericsson's SCReAM programs (`scream_bw_test_tx -log`, `scream_sender -log`): a line for each report with the controller's numbers.
//!
//! Columns of `ScreamTx::getDetailedLogItemList` (`code/ScreamTx.h` of EricssonResearch/scream): time, queue delay and round-trip time in s,
//! window and bytes in flight, a flag, rate sent by all streams, stream, sequence number, bytes acknowledged and marked, rates of the
//! coder, sent, acknowledged, lost and marked of the stream, marker, target, delay of the RTP queue in s; behind it what the program adds.
//! Packets and their sizes are not in it.

use crate::columns::{COLUMNS, columns, is_header};
use crate::input::Input;
use crate::line::{self, Unread};
use crate::recording::Recording;
use crate::schema::{Clock, Estimate, EstimateKind, Stop};
use std::collections::BTreeMap;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Type of the numbers in [`Recording::series`]; their object is the stream.
pub(crate) const KIND: &str = "scream";
/// The longest line, and most streams.
const MAX_LINE: usize = 4096;
const MAX_STREAMS: usize = 64;
/// Seconds that are taken for Unix time (`-ntp`), from 2001 on; others count from the program's start.
const UNIX: f64 = 1e9;
/// Columns that are kept, with their names.
const KEPT: [(usize, &str); 9] = [
    (1, "queueDelay"),
    (2, "rtt"),
    (3, "cwnd"),
    (4, "bytesInFlight"),
    (6, "rateTransmittedAll"),
    (12, "rateTransmitted"),
    (13, "rateAcked"),
    (14, "rateLost"),
    (18, "rtpQueueDelay"),
];

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    let mut targets = BTreeMap::new();
    line::each(input, out, MAX_LINE, |out, line| match columns(&String::from_utf8_lossy(line)) {
        Some(columns) => {
            row(out, &columns, &mut targets);
            Ok(())
        }
        None if is_header(line) => Ok(()),
        None => Err(Unread::columns("trace")),
    })
}

fn row(out: &mut Recording, columns: &[f64; COLUMNS], targets: &mut BTreeMap<u32, u64>) {
    if columns[0] >= UNIX {
        out.clock = Clock::Utc;
    }
    let at = Timestamp::ZERO + TimeDelta::from_secs_f64(columns[0].min(9e9));
    let stream = columns[7] as u32;
    if !targets.contains_key(&stream) && targets.len() >= MAX_STREAMS {
        return out.fault("lines of more streams than are kept");
    }
    let target = columns[17].max(0.0) as u64;
    if targets.insert(stream, target) != Some(target) && out.room(1) {
        let rate = DataRate::from_bps(targets.values().sum());
        out.estimates.push(Estimate { at, kind: EstimateKind::Target, rate, loss: None, detector: None });
    }
    for (i, name) in KEPT {
        if out.room(1) {
            let series = out.series.entry((KIND.into(), stream.to_string(), name.into())).or_default();
            series.points.push((at, columns[i]));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::why::curves;
    use crate::{Call, Clock, EstimateKind, Format, read};

    const TRACE: &str = "0.0268,0.0000,0.0253, 12500,1274,0,0,0,1,1274,0,0,0,0,0,0,1,1753594,0.000 1\n\
        1.1236,0.0006,0.0258, 10301,5100,0,900000,0,5,2974,0,0,880000,870000,8800,0,1,1279580,0.058, 1\n\
        2.1383,0.0010,0.0250, 10301,5871,0,900000,0,9,3076,0,0,880000,870000,0,0,1,1279580,0.053\n";

    #[test]
    fn a_line_is_a_report_with_the_controllers_numbers() {
        let trace = read("trace", TRACE.as_bytes()).expect("a trace");
        assert_eq!((trace.format, trace.clock, trace.stop.is_none()), (Format::Scream, Clock::Unknown, true));
        let targets: Vec<_> = trace.estimates.iter().map(|e| (e.at.as_millis(), e.kind, e.rate.as_bps())).collect();
        assert_eq!(targets, [(26, EstimateKind::Target, 1_753_594), (1123, EstimateKind::Target, 1_279_580)]);
        let of = |name: &str| &trace.series[&("scream".to_owned(), "0".to_owned(), name.to_owned())].points;
        assert_eq!((of("rtt")[1].1, of("cwnd")[2].1, of("rtpQueueDelay")[0].1), (0.0258, 10_301.0, 0.0));
        let call = Call::new(vec![trace]);
        let curves = curves(&call).expect("numbers over time");
        let last = |name: &str| curves.column(name).and_then(<[f64]>::last).copied();
        assert_eq!((last("sent_kbps"), last("arrived_kbps")), (Some(900.0), Some(870.0)));
        assert_eq!((last("rtt_ms"), last("delay_ms")), (Some(25.0), Some(1.0)));
        assert_eq!(curves.column("loss_percent").map(|c| c[2]), Some(1.0));
    }

    #[test]
    fn lists_of_columns_unix_times_and_cut_lines_are_known() {
        let header = format!("\"Time [s]\",\"Estimated queue delay [s]\",\"RTT [s]\"\n{TRACE}");
        assert_eq!(read("trace", header.as_bytes()).expect("a trace").estimates.len(), 2);
        let unix = TRACE.replace("0.0268", "1790000000.026800").lines().next().map(str::to_owned).expect("a line");
        assert_eq!(read("trace", unix.as_bytes()).expect("a trace").clock, Clock::Utc);
        let cut = read("trace", &TRACE.as_bytes()[..TRACE.len() - 40]).expect("a trace");
        assert!(cut.stop.expect("cut").why.contains("cut"));
        assert!(read("no trace", "1.0,2.0,3.0,4,5\n".as_bytes()).is_err());
    }
}
