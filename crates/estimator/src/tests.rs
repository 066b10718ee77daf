//! Faults of estimators, each with its message. The programs are those of a POSIX shell.

use super::*;
use crate::process::Budgets;
use std::time::Duration;
use weir_cc::{Controller as _, Cue};
use weir_units::DataSize;

/// The first answer of a sound estimator.
const HELLO: &str = r#"{"turn":0,"media_bps":500000,"about":{"version":1,"name":"mine"}}"#;

fn quick() -> Budgets {
    Budgets { start: Duration::from_secs(5), turn: Duration::from_secs(2) }
}

/// Starts a shell script.
fn start(script: &str) -> Result<(Remote, Faults), Fault> {
    let command = format!("sh -c {}", shlex::try_quote(script).expect("no NUL in it"));
    let faults = Faults::default();
    let budgets = Budgets { start: Duration::from_secs(4), ..quick() };
    Ok((Remote::start_within(budgets, "it", &command, &nominal(), faults.clone())?, faults))
}

fn refused(script: &str) -> String {
    start(script).err().expect("a fault").to_string()
}

/// Faults of a script that answers the first turn well, and the target that is left.
fn later(script: &str) -> (String, DataRate) {
    let (mut remote, faults) = start(&format!("read l; echo '{HELLO}'; {script}")).expect("it begins well");
    assert_eq!(remote.target().media_rate, DataRate::from_kbps(500));
    let now = Timestamp::from_secs(1);
    let (bytes_in_flight, rtt) = (DataSize::ZERO, None);
    let feedback = weir_cc::cue::TransportFeedback { now, packets: &[], bytes_in_flight, rtt };
    remote.on_cue(&Cue::TransportFeedback(feedback));
    (faults.take().join("; "), remote.target().media_rate)
}

#[test]
fn a_program_that_is_none_is_named() {
    let command = |c: &str| Remote::start("it", c, &nominal(), Faults::default()).err().expect("a fault").to_string();
    assert!(command("/no/such/program --fast").contains("`/no/such/program` does not start"));
    assert!(command("").contains("is no command"));
    assert!(command("mine 'without an end").contains("is no command"));
}

#[test]
fn first_answers_have_to_be_in_the_protocol() {
    for (script, expected) in [
        ("echo broken >&2; exit 3", ["turn 0", "exit status: 3", "broken"]),
        ("exec sleep 100", ["no answer to turn 0", "killed", "flushed"]),
        ("exec yes", ["turn 0 cannot be read", "begins with `y`", "line 1"]),
        ("exec cat /dev/zero", ["turn 0", "longer than", "bytes"]),
        (r#"printf '{"turn":0'"#, ["it ended", "turn 0", "exit status: 0"]),
        (r#"echo '{"turn":0,"media_bps":1}'"#, ["about", "version", "name"]),
        (
            r#"echo '{"turn":0,"media_bps":1,"about":{"version":9,"name":"x"}}'"#,
            ["about.version = 9", "expected 1", "turn 0"],
        ),
        (r#"echo '{"turn":0,"media_bps":1,"about":{"version":1,"name":""}}'"#, ["about.name", "1 to 100", "turn 0"]),
        (r#"echo '{"turn":0,"media_bps":NaN,"about":{"version":1,"name":"x"}}'"#, ["turn 0", "cannot be read", "NaN"]),
        (r#"echo '{"turn":0,"rate":1}'"#, ["unknown field `rate`", "media_bps", "turn 0"]),
    ] {
        let said = refused(script);
        assert!(expected.iter().all(|e| said.contains(e)), "{script}: {said}");
    }
}

#[test]
fn a_fault_in_mid_call_leaves_the_flow_at_its_floor() {
    let answer = |rest: &str| format!("read l; echo '{{\"turn\":1,{rest}}}'; read l");
    for (script, expected) in [
        ("read l; echo why >&2; kill -9 $$".to_owned(), ["it, 1.000 s", "signal: 9", "why"]),
        ("exec sleep 100".into(), ["turn 1", "no answer", "2 s"]),
        ("read l; echo '{\"turn\":0,\"media_bps\":1}'; read l".into(), ["it answers turn 0", "turn 1", "in order"]),
        (answer("\"media_bps\":-5"), ["media_bps = -5", "0 to 1e12", "turn 1"]),
        (answer("\"media_bps\":1e13"), ["media_bps = 10000000000000", "0 to 1e12", "turn 1"]),
        (answer("\"media_bps\":1e400"), ["turn 1", "cannot be read", "out of range"]),
        (answer("\"media_bps\":1,\"timer_ns\":1000000000"), ["timer_ns = 1000000000", "later", "1000000000"]),
        (answer("\"media_bps\":1,\"max_queue_age_ns\":0"), ["max_queue_age_ns", "more than 0", "turn 1"]),
        (
            answer("\"media_bps\":1,\"probes\":[{\"id\":0,\"rate_bps\":1,\"min_packets\":1,\"min_bytes\":1}]"),
            ["probes", "id", "above 0"],
        ),
    ] {
        let (said, target) = later(&script);
        assert!(expected.iter().all(|e| said.contains(e)), "{script}: {said}");
        assert_eq!(target, nominal().limits.floor, "{script}");
    }
}

#[test]
fn rates_outside_the_limits_are_limited_and_later_events_are_ignored_after_a_fault() {
    let (said, target) = later(r#"read l; echo '{"turn":1,"media_bps":9e9}'; read l"#);
    assert_eq!((said.as_str(), target), ("", nominal().limits.ceiling));
    let (mut remote, faults) = start(&format!("read l; echo '{HELLO}'")).expect("it begins well");
    for second in 1..4 {
        remote.on_limits(nominal().limits, Timestamp::from_secs(second));
    }
    assert_eq!(faults.take().len(), 1);
    assert_eq!(remote.poll_timeout(), None);
}

#[test]
fn errors_repeat_little_of_a_process_and_no_control_characters() {
    let name = "x".repeat(5_000);
    let said = refused(&format!("printf '{{\"turn\":0,\"{name}\":1}}\\n'"));
    assert!(said.contains("unknown field") && said.len() < 1_000, "{} bytes", said.len());
    let said = refused("printf '\\033[2Jcleared\\n' >&2; exit 1");
    assert!(said.contains("cleared") && !said.contains('\u{1b}'), "{said:?}");
    let said = refused("printf '\\033[2J{\\n'");
    assert!(said.contains("cannot be read") && !said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn only_names_that_were_typed_start_a_program() {
    let words = ["--controllers", "gcc,exec:python3 mine.py", "--controller=exec:./other"].map(String::from);
    let permits = Permits::of_words(words);
    assert_eq!(permits, Permits::these(["exec:python3 mine.py", "exec:./other"]));
    let one = Permits::of_words(["exec:sh -c 'echo 1,2'".to_owned()]);
    assert_eq!(one, Permits::these(["exec:sh -c 'echo 1,2'", "exec:sh -c 'echo 1"]));
}

#[test]
fn checks_find_clocks_and_deaf_estimators() {
    // A rate from the process's number differs between two runs.
    let clock = format!(
        "read l; echo '{HELLO}'; n=1; while read l; do echo \"{{\\\"turn\\\":$n,\\\"media_bps\\\":$(( 400000 + $$ % 9973 ))}}\"; n=$((n+1)); done"
    );
    let checked = check(&format!("sh -c {}", shlex::try_quote(&clock).expect("no NUL"))).expect("it answers");
    assert_eq!(checked.name, "mine");
    let [finding] = &checked.findings[..] else { panic!("{:?}", checked.findings) };
    assert!(finding.is_fault && finding.text.contains("a clock or a random number of its own"), "{finding:?}");
    let deaf = "read l; echo '{\"turn\":0,\"media_bps\":300000,\"about\":{\"version\":1,\"name\":\"deaf\"}}'; n=1; \
                while read l; do echo \"{\\\"turn\\\":$n,\\\"media_bps\\\":300000}\"; n=$((n+1)); done";
    let checked = check(&format!("sh -c {}", shlex::try_quote(deaf).expect("no NUL"))).expect("it answers");
    assert!(
        checked.findings.iter().any(|f| !f.is_fault && f.text.contains("never left the start rate")),
        "{checked:?}"
    );
    assert!(checked.events > 1_000 && checked.us_per_event > 0.0, "{checked:?}");
}
