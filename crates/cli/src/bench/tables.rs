//! Speeds as tables.

use crate::tables::{fold, table};
use weir_bench::document::grouped;
use weir_bench::ns3::Beside;
use weir_bench::report::{Report, Row};

pub(super) fn text(report: &Report) -> String {
    let tables = [
        rows(&report.rows, report.best_of),
        #[cfg(target_os = "linux")]
        loopback(&report.loopback),
    ];
    tables.concat()
}

fn rows(rows: &[Row], best_of: u32) -> String {
    let mut t = table(&["benchmark", "speed", "per", "goal", "ns-3.37", "Weir is", "+ monitor", "Weir is"], 1);
    for r in rows {
        let goal = r.goal.as_ref().map_or("-".to_owned(), |g| {
            let times = if g.times_ns3 { "x ns-3" } else { "" };
            let met = match g.met {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "?",
            };
            format!("{}{times}: {met}", grouped(g.value))
        });
        let ns3 = |f: fn(&Beside) -> String| r.ns3.as_ref().map_or("-".to_owned(), f);
        t.add_row([
            r.name.clone(),
            grouped(r.speed),
            r.unit.label().to_owned(),
            goal,
            ns3(|b| grouped(b.bare)),
            ns3(|b| format!("{:.0}x", b.times_bare)),
            ns3(|b| grouped(b.flow_monitor)),
            ns3(|b| format!("{:.0}x", b.times_flow_monitor)),
        ]);
    }
    let note = format!(
        "CPU time of one thread, the best of {best_of} after a warm-up. Beside ns-3: the same unit, bare and with its flow \
         monitor, measured just now. session: RTP and RTCP bytes, no metrics; run: with metrics; --json says more."
    );
    format!("{t}\n{}\n", fold(&note))
}

#[cfg(target_os = "linux")]
fn loopback(rows: &[weir_bench::report::Loopback]) -> String {
    let mut t = table(&["loopback, 1400 bytes", "datagrams/s", "Mbit/s", "CPU ns each", "lost %", "of TCP"], 1);
    for r in rows {
        let s = &r.speed;
        t.add_row([
            r.name.to_owned(),
            grouped(s.datagrams_per_s),
            grouped(s.goodput_bps / 1e6),
            grouped(s.cpu_ns_per_datagram),
            format!("{:.2}", 100.0 * s.loss),
            format!("{:.2}", r.times_tcp),
        ]);
    }
    let note = "By the clock, one after the other: the sender's threads on one core, the receiver's on another. CPU is of both \
                and the kernel; of TCP beside the kernel's with segments of 1400 bytes.";
    format!("{t}\n{}\n", fold(note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_bench::report::{Goal, Unit};

    #[test]
    fn the_table_is_narrow_and_states_which_goals_are_met() {
        let row = |met| Row {
            name: "controller-nada-receiver".into(),
            summary: String::new(),
            speed: 12_345_678.0,
            unit: Unit::Packets,
            simulated_s: 1.0,
            cpu_s: 1.0,
            simulated_s_per_cpu_s: 1.0,
            packets_per_cpu_s: None,
            bytes_per_call: None,
            goal: Some(Goal { value: 1.5e6, times_ns3: false, met }),
            ns3: Some(Beside { bare: 123_456.0, times_bare: 1e4, flow_monitor: 123_456.0, times_flow_monitor: 1e4 }),
        };
        let shown = rows(&[row(Some(true)), row(Some(false)), row(None)], 3);
        for part in ["1,500,000: met", "1,500,000: MISSED", "1,500,000: ?"] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
        assert!(shown.lines().all(|l| l.chars().count() < 120), "{shown}");
    }
}
