use super::*;
use weir_lab::results::{Fairness, FlowKind, FlowWindow, Rates, WindowSummary};

fn run(scenario: &str, condition: &str, controller: &str, seed: u64, utilisation: f64) -> RunResult {
    let flow = FlowSummary {
        name: "media".into(),
        controller: controller.into(),
        kind: FlowKind::Rtp,
        adapts: true,
        bottleneck: String::new(),
        start_s: 0.0,
        stop_s: 100.0,
        rates: Rates::default(),
        utilisation: Some(utilisation),
        utilisation_goodput: None,
        one_way_delay_ms: None,
        rtt_ms: None,
        loss: 0.0,
        discard: 0.0,
        packets: Default::default(),
        ramp_up_s: None,
        settling: vec![],
        rate_variation: None,
        burstiness: None,
        tail_goodput_bps: 0.0,
        playout_deadline_ms: None,
        frames: None,
        transfers: None,
        coded: None,
        quality: None,
        picture_quantiles: None,
        repair: None,
        probing: None,
        tripped: None,
        streams: vec![],
        multipath: None,
        internals: Default::default(),
    };
    let window = FlowWindow {
        name: "media".into(),
        generated_bps: 0.0,
        goodput_bps: 0.0,
        utilisation: Some(utilisation / 2.0),
        utilisation_goodput: None,
        one_way_delay_ms: None,
        loss: 0.0,
    };
    RunResult {
        scenario: scenario.into(),
        condition: condition.into(),
        controller: controller.into(),
        seed,
        duration_s: 100.0,
        flows: vec![flow],
        fairness: Fairness { tcp_share: Some(utilisation), ..Default::default() },
        queue: None,
        links: vec![],
        live: None,
        windows: vec![WindowSummary {
            label: "0-20s".into(),
            start_s: 0.0,
            end_s: 20.0,
            flows: vec![window],
            queue_delay_ms: vec![],
        }],
        rates_over_time: Default::default(),
        outline: Default::default(),
        series: None,
    }
}

fn published(scenario: &str, condition: &str, algorithm: &str, value: f64) -> Published {
    Published {
        paper: "p".into(),
        table: "1".into(),
        scenario: scenario.into(),
        condition: condition.into(),
        algorithm: algorithm.into(),
        metric: "utilisation".into(),
        unit: "percent".into(),
        value,
        sigma: None,
    }
}

fn paper() -> Paper {
    let check = |controller: &str| Check {
        scenario: "loss".into(),
        condition: Some("1%".into()),
        controller: controller.into(),
        metric: "utilisation".into(),
        ..Default::default()
    };
    let claim = |id: &str, checks| ClaimSpec {
        id: id.into(),
        statement: id.into(),
        source: "section 3".into(),
        criterion: "as stated".into(),
        checks,
    };
    Paper {
        name: "p".into(),
        published: vec![
            published("loss", "1%", "gcc", 85.0),
            published("steps", "0-20s", "gcc", 50.0),
            published("loss", "1%", "absent", 10.0),
        ],
        claims: vec![
            claim("holds", vec![Check { at_least: Some(0.8), above: vec!["nada".into()], ..check("gcc") }]),
            claim("fails", vec![Check { at_most: Some(0.8), ..check("gcc") }]),
            claim("unknown", vec![Check { below: vec!["absent".into()], ..check("gcc") }]),
            claim(
                "refuted",
                vec![
                    Check { below: vec!["absent".into()], ..check("gcc") },
                    Check { at_most: Some(0.1), ..check("gcc") },
                ],
            ),
            claim("falls", vec![Check { above_conditions: vec!["5%".into()], ..check("gcc") }]),
            claim("rises", vec![Check { below_conditions: vec!["5%".into()], ..check("gcc") }]),
        ],
        ..Default::default()
    }
}

fn runs() -> Vec<RunResult> {
    vec![
        run("p/loss", "1%", "gcc", 1, 0.8),
        run("p/loss", "1%", "gcc", 2, 0.9),
        run("p/loss", "5%", "gcc", 1, 0.1),
        run("p/loss", "1%", "nada", 1, 0.5),
        run("p/steps", "", "gcc", 1, 0.6),
    ]
}

#[test]
fn cells_find_their_runs() {
    let r = reproduce(&paper(), &runs());
    let [loss, steps, absent] = &r.cells[..] else { panic!("three cells") };
    assert!((loss.measured.expect("ran") - 85.0).abs() < 1e-9);
    assert!((loss.measured_sigma.expect("two runs") - 7.0710678).abs() < 1e-6);
    assert_eq!((loss.runs, steps.runs, absent.runs), (2, 1, 0));
    // The window of half the run's utilisation.
    assert!((steps.measured.expect("ran") - 30.0).abs() < 1e-9);
    assert_eq!((steps.measured_sigma, absent.measured), (None, None));
    // Student's t of one degree of freedom, 12.706, times sigma over the root of 2.
    assert!((loss.measured_ci95.expect("two runs") - 63.53).abs() < 0.01);
    let verdicts = [loss, steps, absent].map(|c| c.verdict);
    assert_eq!(verdicts, [Some(Verdict::Near), Some(Verdict::Far), None]);
}

#[test]
fn a_number_is_explained_by_the_runs_of_two_ends() {
    let end = |name: &str, place: &str, value: &str| End {
        name: name.into(),
        set: toml::from_str(&format!("\"{place}\" = \"{value}\"")).expect("TOML"),
        variants: vec![],
        scenario: None,
        controller: None,
    };
    let condition = Condition {
        id: "delay".into(),
        condition: "The delay of the link".into(),
        ends: [end("short", "links.a.delay", "1 ms"), end("long", "links.a.delay", "9 ms")],
        tables: vec!["1".into()],
        conditions: vec!["0-20s".into()],
        algorithms: vec![],
        ..Condition::default()
    };
    let paper = Paper { explained: vec![condition], ..paper() };
    let at_ends = |short: f64, long: f64| {
        let mut runs = runs();
        runs.push(run("p/steps~delay-1", "", "gcc", 1, short));
        runs.push(run("p/steps~delay-2", "", "gcc", 1, long));
        reproduce(&paper, &runs)
    };
    // 50 is published; the window has half of the run's utilisation, 30 as the scenario is.
    let enclosed = at_ends(0.2, 1.4);
    assert_eq!(enclosed.cells[1].verdict, Some(Verdict::Explained));
    let [cell] = &enclosed.explanations[0].cells[..] else { panic!("one number is far") };
    assert!((cell.measured - 30.0).abs() < 1e-9 && cell.explained);
    let ends = cell.at_ends.map(|v| v.expect("ran"));
    assert!((ends[0] - 10.0).abs() < 1e-9 && (ends[1] - 70.0).abs() < 1e-9);
    assert_eq!((enclosed.agreement.near, enclosed.agreement.explained), (1, 1));
    assert_eq!(at_ends(0.2, 0.7).cells[1].verdict, Some(Verdict::Far));
    assert_eq!(at_ends(0.9, 0.7).cells[1].verdict, Some(Verdict::Explained));
    // Without the runs of its ends a condition explains nothing.
    assert_eq!(reproduce(&paper, &runs()).cells[1].verdict, Some(Verdict::Far));
}

#[test]
fn claims_hold_fail_or_stay_open() {
    let r = reproduce(&paper(), &runs());
    let outcomes: Vec<Option<bool>> = r.claims.iter().map(|c| c.holds).collect();
    assert_eq!(outcomes, [Some(true), Some(false), None, Some(false), Some(true), Some(false)]);
    assert_eq!(r.claims[0].measured.len(), 2);
    assert_eq!((r.claims[0].measured[0].runs, r.claims[0].measured[1].value), (2, Some(0.5)));
}

#[test]
fn json_has_the_agreed_fields() {
    let json = serde_json::to_value(reproduce(&paper(), &runs())).expect("serialises");
    let mut fields: Vec<&str> = json["cells"][0].as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    let mut agreed = [
        "paper",
        "table",
        "scenario",
        "condition",
        "algorithm",
        "metric",
        "unit",
        "published",
        "published_sigma",
        "measured",
        "measured_sigma",
        "measured_ci95",
        "runs",
        "verdict",
    ];
    agreed.sort_unstable();
    assert_eq!(fields, agreed);
    assert!(json["claims"].is_array() && json["cells"][0]["published_sigma"].is_null());
}

#[test]
fn text_lines_up() {
    let text = reproduce(&paper(), &runs()).to_string();
    assert!(
        text.contains("loss      1%         gcc        utilisation, percent      85.00  85.00 ±7.07       +0.00  near"),
        "{text}"
    );
    assert!(text.contains("FAILS"), "{text}");
}

#[test]
fn shares_of_a_window() {
    let s = Shares(vec![400.0, 400.0, 1_000.0]);
    assert_eq!(s.late_comer_ratio(), Some(2.5));
    // 1800^2 / (3 * (2 * 160,000 + 1,000,000)) = 0.81818...
    assert!((s.jain().expect("three flows") - 9.0 / 11.0).abs() < 1e-12);
    assert_eq!((Shares(vec![1.0]).jain(), Shares(vec![1.0]).late_comer_ratio()), (None, None));
}

#[test]
fn an_even_share_may_be_that_of_the_tcp_flows_alone() {
    let mut r = run("loss", "", "gcc", 1, 0.5);
    let tcp = FlowSummary { name: "tcp".into(), kind: FlowKind::Tcp, ..r.flows[0].clone() };
    let udp = FlowSummary { name: "udp".into(), kind: FlowKind::Udp, ..tcp.clone() };
    r.flows.extend([tcp.clone(), tcp.clone(), tcp, udp]);
    // Four flows share: 1.2 of a quarter is 0.9 of a third.
    assert_eq!(run_value(&r, "tcp_fair_share_of_tcp"), None);
    r.fairness.tcp_fair_share = Some(1.2);
    let share = run_value(&r, "tcp_fair_share_of_tcp").expect("measured");
    assert!((share - 0.9).abs() < 1e-12, "{share}");
}

/// A condition whose second end makes the queue longer, for one algorithm or all.
fn queue(algorithms: &[&str], variants: &[&str]) -> Condition {
    let set: toml::Table = "\"links.l.queue\" = \"9 packets\"".parse().expect("TOML");
    let longer =
        End { name: "longer".into(), set, variants: variants.iter().map(|&v| v.into()).collect(), ..End::default() };
    Condition {
        id: "queue".into(),
        ends: [End { name: "as run".into(), ..End::default() }, longer],
        algorithms: algorithms.iter().map(|&a| a.into()).collect(),
        ..Condition::default()
    }
}

#[test]
fn orders_that_are_lost_name_the_end_that_keeps_them() {
    let lost = |explained: Condition, more: &[RunResult]| {
        let paper = Paper {
            published: vec![published("loss", "1%", "gcc", 85.0), published("loss", "1%", "nada", 95.0)],
            explained: vec![explained],
            ..paper()
        };
        let r = reproduce(&paper, &[runs(), more.to_vec()].concat());
        assert_eq!((r.agreement.orders, r.agreement.orders_kept), (1, 0));
        assert_eq!(r.agreement.orders_explained, r.lost_orders.iter().filter(|o| o.kept_at.is_some()).count());
        r.lost_orders[0].kept_at.clone()
    };
    // gcc has 0.85 as run, nada 0.5.
    let end = |algorithm: &str, condition: &str, value| run("p/loss~queue-2", condition, algorithm, 1, value);
    let kept = Some(["queue".to_owned(), "longer".to_owned()]);
    assert_eq!(lost(queue(&[], &[]), &[]), None);
    assert_eq!(lost(queue(&[], &[]), &[end("gcc", "1%", 0.6), end("nada", "1%", 0.7)]), kept);
    assert_eq!(lost(queue(&[], &[]), &[end("gcc", "1%", 0.7), end("nada", "1%", 0.6)]), None);
    // A condition of one algorithm leaves the other as run.
    assert_eq!(lost(queue(&["nada"], &[]), &[end("nada", "1%", 0.9)]), kept);
    assert_eq!(lost(queue(&["nada"], &[]), &[end("nada", "1%", 0.8)]), None);
    assert_eq!(lost(queue(&["nada"], &["2%"]), &[end("nada", "2%", 0.9)]), kept);
}

#[test]
fn claims_that_do_not_hold_are_tried_at_the_ends() {
    let tried = |explained: Condition, more: RunResult| {
        let r = reproduce(&Paper { explained: vec![explained], ..paper() }, &[runs(), vec![more]].concat());
        let claim = |id: &str| r.claims.iter().find(|c| c.id == id).expect("is there").clone();
        assert!(claim("holds").holds_at.is_none() && claim("unknown").holds_at.is_none());
        (claim("fails").holds, claim("fails").holds_at, claim("rises").holds_at)
    };
    let kept = Some(["queue".to_owned(), "longer".to_owned()]);
    // "fails" wants at most 0.8 of gcc at 1 %; "rises" wants more at 5 %, of which the end has no run.
    let at = |condition: &str, value| run("p/loss~queue-2", condition, "gcc", 1, value);
    assert_eq!(tried(queue(&[], &[]), at("1%", 0.7)), (Some(false), kept.clone(), None));
    assert_eq!(tried(queue(&[], &[]), at("1%", 0.05)), (Some(false), kept.clone(), kept.clone()));
    assert_eq!(tried(queue(&[], &[]), at("1%", 0.9)), (Some(false), None, None));
    assert_eq!(tried(queue(&[], &["2%"]), at("2%", 0.7)).1, kept);
}

#[test]
fn the_whole_paper_has_a_score_at_each_end() {
    // At 1 %, gcc has 85 of 85 as run, nada 50 of 95; in its window gcc has 30 of 50.
    let paper = Paper {
        published: vec![
            published("loss", "1%", "gcc", 85.0),
            published("loss", "1%", "nada", 95.0),
            published("steps", "0-20s", "gcc", 50.0),
        ],
        explained: vec![queue(&["nada"], &[])],
        ..paper()
    };
    assert_eq!(reproduce(&paper, &runs()).ends.len(), 1, "an end without runs has no score");
    let more = run("p/loss~queue-2", "1%", "nada", 1, 0.9);
    let r = reproduce(&paper, &[runs(), vec![more]].concat());
    let [as_run, longer] = &r.ends[..] else { panic!("two ends") };
    assert_eq!((as_run.as_run, as_run.covered, as_run.near, as_run.orders_kept), (true, 1, 1, 0));
    assert_eq!((longer.as_run, longer.covered, longer.near, longer.orders_kept), (false, 1, 2, 1));
    assert_eq!((longer.covered_near_as_run, longer.covered_near), (0, 1));
    // "holds" wants more of gcc than of nada, which the end reverses.
    let kept = r.claims.iter().filter(|c| c.holds == Some(true)).count();
    assert_eq!((as_run.claims_kept, longer.claims_kept), (kept, kept - 1));
}
