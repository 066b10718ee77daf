//! Faults of a file, and their positions.

use super::*;
use proptest::prelude::*;

#[test]
fn errors_state_position_fault_and_remedy() {
    let add = |lines: &str| format!("{SMALL}{lines}\n");
    let tcp = |fields: &str| add(&format!("[tcp.x]\nalgorithm = \"vegas\"\n{fields}"));
    let change = |from: &str, to: &str| {
        assert!(SMALL.contains(from), "{from}");
        SMALL.replace(from, to)
    };
    let nada = |lines: &str| SMALL.replace("$controller", "nada") + lines;
    let cases: Vec<(String, &[&str])> = vec![
        ("".into(), &["missing field `title`"]),
        // The field that is there is not the one at fault.
        ("duration = \"10 s\"".into(), &["test.toml:1:1: missing field `title`"]),
        ("title = 3".into(), &["test.toml:1:9", "title", "invalid type: integer"]),
        ("title = \"x".into(), &["test.toml:1:"]),
        ("\u{feff}\0".into(), &["test.toml"]),
        (change("duration = \"10 s\"\n", ""), &["missing field `duration`"]),
        (change("10 s", "10 sec"), &["test.toml:3:12", "duration", "expected a time", "did you mean \"10 s\"?"]),
        (change("\"10 s\"", "10"), &["duration", "invalid type: integer `10`", "a time with its unit"]),
        (change("10 s", "0 s"), &["duration", "above zero"]),
        (
            change("10 s", "6000 min") + "[rtp.v]\ncontroller = \"fixed\"\nrates = 1",
            &["rtp.v.rates", "unknown field `rates`"],
        ),
        (
            change("rate = ", "rat = "),
            &["links.bottleneck.rat", "test.toml:6:1", "unknown field `rat`", "did you mean `rate`?"],
        ),
        (change("rate = \"2 Mbps\"\n", ""), &["links.bottleneck", "missing field `rate`"]),
        (change("2 Mbps", "2 Mbs"), &["links.bottleneck.rate", "expected a rate", "did you mean \"2 Mbps\"?"]),
        (change("2 Mbps", "0 Mbps"), &["links.bottleneck.rate", "above zero"]),
        (change("\"2 Mbps\"", "2"), &["links.bottleneck.rate", "unlimited", "found 2"]),
        (change("\"2 Mbps\"", "{ stpes = [] }"), &["did you mean `steps`?"]),
        (change("\"2 Mbps\"", "{ steps = [] }"), &["at least one step"]),
        (
            change("\"2 Mbps\"", "{ pattern = \"good-grand\" }"),
            &["no pattern is named \"grand\"", "excellent, good, fair"],
        ),
        (
            change("\"2 Mbps\"", "{ pattern = \"poor\", repeat = \"9 s\" }"),
            &["a pattern has neither `format` nor `repeat`"],
        ),
        (
            change("\"2 Mbps\"", "\"unlimited\"\nassist = { notifies = \"sender\" }"),
            &["links.bottleneck.assist", "no capacity to report"],
        ),
        (
            change("\"2 Mbps\"", "\"2 Mbps\"\nassist = { notifies = \"both\", interval = \"0 s\" }"),
            &["assist.interval", "above zero"],
        ),
        (change("\"2 Mbps\"", "{ }"), &["exactly one of `steps`, `trace` and `pattern`"]),
        (
            nada("clock.receiver = { drift = \"80\" }"),
            &["rtp.video.clock.receiver.drift", "a drift of up to 10000 ppm", "found \"80\""],
        ),
        (nada("clock.sender = { drift = \"-20000 ppm\" }"), &["clock.sender.drift", "found \"-20000 ppm\""]),
        (nada("clock.sender = { granularity = \"0 s\" }"), &["clock.sender.granularity", "above zero"]),
        (nada("clock.reciever = {}"), &["unknown field `reciever`", "did you mean `receiver`?"]),
        (
            nada("clock.sender = { steps = [{ at = \"2 s\", by = \"-1 s\" }, { at = \"1 s\", by = \"1 s\" }] }"),
            &["later than the previous one"],
        ),
        (
            nada("clock.sender = { steps = [{ at = \"2 s\", by = \"1\" }] }"),
            &["steps", "expected a time with its unit"],
        ),
        (
            nada("clock.sender = {}").replace("\"nada\"", "\"ccid2\""),
            &["rtp.video.clock", "runs over DCCP", "leave `clock` out"],
        ),
        (change("\"2 Mbps\"", "{ steps = [{ at = \"1 s\", rate = \"1 Mbps\" }] }"), &["first step must be at \"0 s\""]),
        (
            change(
                "\"2 Mbps\"",
                "{ steps = [{ at = \"0 s\", rate = \"1 Mbps\" }, { at = \"0 s\", rate = \"1 Mbps\" }] }",
            ),
            &["links.bottleneck.rate.steps[1]", "later than the previous one"],
        ),
        (
            change("\"2 Mbps\"", "{ steps = [{ at = \"0 s\", rate = \"1 Mbps\" }], repeat = \"0 s\" }"),
            &["after the last step"],
        ),
        (
            change("\"2 Mbps\"", "{ steps = [{ at = \"0 s\", rate = \"0 bps\" }] }"),
            &["at least one step must have a rate above zero"],
        ),
        (
            change("\"2 Mbps\"", "{ trace = \"nowhere.csv\" }"),
            &["links.bottleneck.rate.trace", "nowhere.csv: there is no such file"],
        ),
        (
            change("\"2 Mbps\"", "{ trace = \"a.txt\", format = \"cvs\" }"),
            &["unknown value `cvs`", "did you mean `csv`?"],
        ),
        (change("50 ms", "-50 ms"), &["links.bottleneck.delay", "expected a time"]),
        (change("[links.bottleneck]", "[links.\"bottle neck\"]"), &["cannot be a name", "letters, digits"]),
        (change("[links.bottleneck]", "[link.bottleneck]"), &["unknown field `link`", "did you mean `links`?"]),
        (
            add("[links.other]\nrate = \"1 Mbps\"\ndelay = \"1 ms\""),
            &["links.other", "only a parking lot", "topology = \"parking-lot\""],
        ),
        (
            change("delay = ", "loss = 1.5\ndelay = "),
            &["links.bottleneck.loss", "probability between 0 and 1, found 1.5"],
        ),
        (change("delay = ", "loss = \"5%\"\ndelay = "), &["links.bottleneck.loss", "a probability such as 0.01"]),
        (change("delay = ", "loss = nan\ndelay = "), &["links.bottleneck.loss", "between 0 and 1"]),
        (change("delay = ", "loss = { good_to_bad = 0.1 }\ndelay = "), &["missing field `bad_to_good`"]),
        (change("delay = ", "loss_place = \"egres\"\ndelay = "), &["unknown value `egres`", "did you mean `egress`?"]),
        (change("delay = ", "queue = \"0 B\"\ndelay = "), &["links.bottleneck.queue", "above zero"]),
        (change("delay = ", "queue = 75000\ndelay = "), &["links.bottleneck.queue", "\"50 packets\"", "`discipline`"]),
        (
            change("delay = ", "queue = { discipline = \"coddle\" }\ndelay = "),
            &[
                "links.bottleneck.queue.discipline",
                "test.toml:7:24",
                "no queue discipline is named",
                "did you mean `codel`?",
            ],
        ),
        (
            change("delay = ", "queue = { discipline = 5 }\ndelay = "),
            &["links.bottleneck.queue.discipline", "the name of a discipline in quotes", "drop-tail, codel"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", tarket = \"5 ms\" }\ndelay = "),
            &["links.bottleneck.queue.tarket", "`codel` has no parameter `tarket`", "did you mean `target`?"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", target = \"0 ms\" }\ndelay = "),
            &["links.bottleneck.queue.target", "between 0.001 ms and 10000 ms, found 0 ms", "RFC 8289, section 4.3"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", target = 5 }\ndelay = "),
            &["links.bottleneck.queue.target", "expected a time with its unit"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", ecn = 2 }\ndelay = "),
            &["links.bottleneck.queue.ecn", "expected true or false"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", ecn = \"yes\" }\ndelay = "),
            &["links.bottleneck.queue.ecn", "expected true or false"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", limit = \"0 B\" }\ndelay = "),
            &["links.bottleneck.queue.limit", "above zero"],
        ),
        (change("delay = ", "queue = { target = \"5 ms\" }\ndelay = "), &["`drop-tail` has no parameter `target`"]),
        (
            change("delay = ", "queue = { discipline = \"codel\" }\necn_threshold = \"9 ms\"\ndelay = "),
            &["links.bottleneck.ecn_threshold", "`codel` has no threshold", "leave `ecn_threshold` out"],
        ),
        (
            change("\"2 Mbps\"", "\"unlimited\"\nqueue = { discipline = \"codel\" }"),
            &["links.bottleneck.queue.discipline", "no queue for a discipline", "give the link a `rate`"],
        ),
        (
            change("\"2 Mbps\"", "\"unlimited\"\necn_threshold = \"9 ms\""),
            &["links.bottleneck.ecn_threshold", "no queue that could be marked"],
        ),
        (
            change("delay = ", "reverse = { reverse = { } }\ndelay = "),
            &["links.bottleneck.reverse.reverse", "unknown field `reverse`"],
        ),
        (
            change("delay = ", "reverse = { los = 0.1 }\ndelay = "),
            &["links.bottleneck.reverse.los", "did you mean `loss`?"],
        ),
        (
            change("delay = ", "jitter = { max = \"10 ms\", sigma = \"0 ms\" }\ndelay = "),
            &["links.bottleneck.jitter", "sigma"],
        ),
        (change("delay = ", "jitter = { }\ndelay = "), &["links.bottleneck.jitter", "missing field `max`"]),
        (
            change("delay = ", "jitter = \"30 ms\"\ndelay = "),
            &["links.bottleneck.jitter", "string \"30 ms\", expected a table such as { max = \"30 ms\" }"],
        ),
        (
            change("delay = ", "reorder = 0.1\ndelay = "),
            &["links.bottleneck.reorder", "expected a table such as { probability = 0.01, delay = \"20 ms\" }"],
        ),
        (
            change("delay = ", "policer = \"2 Mbps\"\ndelay = "),
            &["links.bottleneck.policer", "expected a table such as { rate = \"2 Mbps\", burst = \"50 kB\" }"],
        ),
        (
            change("delay = ", "reverse = \"2 Mbps\"\ndelay = "),
            &["links.bottleneck.reverse", "expected a table such as { rate = \"500 kbps\" }"],
        ),
        (
            change("2 Mbps", "2 MB"),
            &["links.bottleneck.rate", "rates are in bits, and a byte has 8: \"16 Mbps\" is as much as 2 MB"],
        ),
        (change("10 s", "10"), &["duration", "found \"10\", which has no unit"]),
        (add("feedback = \"100 ms\""), &["rtp.video.feedback", "a table such as { interval = \"100 ms\" }"]),
        (add("pauses = 3"), &["rtp.video.pauses", "expected a list in [ ]"]),
        (add("ecn = 1"), &["rtp.video.ecn", "expected true or false"]),
        (add("count = \"two\""), &["rtp.video.count", "expected a whole number"]),
        (
            change("delay = ", "jitter = { max = \"1 ms\", steps = [{ at = \"0 s\", max = \"1 ms\" }] }\ndelay = "),
            &["links.bottleneck.jitter", "`max` or `steps`, not both"],
        ),
        (
            change("delay = ", "jitter = { max = \"1 ms\", repeat = \"1 s\" }\ndelay = "),
            &["links.bottleneck.jitter", "`repeat` belongs to `steps`"],
        ),
        (
            change("\"50 ms\"", "{ steps = [{ at = \"1 s\", delay = \"50 ms\" }] }"),
            &["links.bottleneck.delay.steps[0]", "the first step must be at \"0 s\""],
        ),
        (change("\"50 ms\"", "50"), &["links.bottleneck.delay", "a time such as \"50 ms\", or a table with `steps`"]),
        (
            change("delay = ", "loss = { steps = [{ at = \"0 s\", loss = 2 }] }\ndelay = "),
            &["links.bottleneck.loss.steps[0].loss", "between 0 and 1, found 2"],
        ),
        (
            change("delay = ", "loss = { steps = [{ at = \"0 s\", loss = { steps = [] } }] }\ndelay = "),
            &["links.bottleneck.loss.steps[0].loss.steps", "no steps of its own"],
        ),
        (
            change("delay = ", "loss = { good_to_bad = 0.1, steps = [] }\ndelay = "),
            &["links.bottleneck.loss.good_to_bad", "a loss in each of them"],
        ),
        (
            change("delay = ", "loss = { steps = [{ at = \"0 s\", loss = 0 }], repeat = \"0 s\" }\ndelay = "),
            &["links.bottleneck.loss.repeat", "after the last step"],
        ),
        (
            change("delay = ", "ecn = { bleach = 7 }\ndelay = "),
            &["links.bottleneck.ecn.bleach", "between 0 and 1, found 7"],
        ),
        (
            change("delay = ", "policer = { rate = \"0 bps\", burst = \"1 kB\" }\ndelay = "),
            &["links.bottleneck.policer.rate", "above zero"],
        ),
        (
            change("delay = ", "shaper = { rate = \"1 Mbps\", burst = \"0 B\" }\ndelay = "),
            &["links.bottleneck.shaper.burst", "above zero"],
        ),
        (
            change("delay = ", "shaper = { rate = \"1 Mbps\" }\ndelay = "),
            &["links.bottleneck.shaper", "missing field `burst`"],
        ),
        (
            change("$controller", "naba"),
            &["rtp.video.controller", "test.toml:9:14", "no controller is named `naba`", "did you mean `nada`?"],
        ),
        (
            change("title = ", "format = 2\ntitle = "),
            &["test.toml:2:10", "format 2: this Weir reads formats up to 1", "weir --version"],
        ),
        (change("title = ", "format = \"1\"\ntitle = "), &["format", "a whole number from 1 to 1"]),
        (change("$controller", "$controler"), &["did you mean `$controller`?"]),
        (change("[\"fixed\"]", "[\"fixd\"]"), &["compare[0]", "did you mean `fixed`?"]),
        (change("[\"fixed\"]", "[]"), &["compare", "nothing to compare"]),
        (
            nada("params = { xreff = 3 }"),
            &["rtp.video.params.xreff", "controller `nada` has no parameter `xreff`", "did you mean `xref`?"],
        ),
        (
            nada("params = { xref = -3 }"),
            &["rtp.video.params.xref", "between 0.1 and 1000 (unit: ms), found -3", "XREF"],
        ),
        (nada("params = { xref = \"3 Mbps\" }"), &["rtp.video.params.xref", "expected a time"]),
        (nada("params = { kappa = \"3 ms\" }"), &["rtp.video.params.kappa", "a plain number"]),
        (nada("params = { kappa = nan }"), &["rtp.video.params.kappa", "between 0.001 and 10"]),
        (nada("params = { kappa = {} }"), &["rtp.video.params.kappa", "between 0.001 and 10"]),
        (add("[controllers.nadda]"), &["controllers.nadda", "did you mean `nada`?"]),
        (add("floor = \"2 Mbps\""), &["rtp.video.floor", "no higher than the ceiling"]),
        (
            add("ceiling = \"2 Mbps\"\nstart_rate = \"50 Mbps\""),
            &[
                "rtp.video.start_rate",
                "`start_rate` is 50000 kbit/s, above the ceiling of 2000 kbit/s",
                "raise `ceiling`",
            ],
        ),
        (
            add(
                "streams = [{ name = \"a\", encodings = [{ least = \"500 kbps\", most = \"1 Mbps\" }, { least = \"100 kbps\", most = \"200 kbps\" }] }]",
            ),
            &["rtp.video.streams[0].encodings[1]", "`most` is 200 kbit/s after 1000 kbit/s", "order of their rates"],
        ),
        (add("floor = \"0 bps\""), &["rtp.video.floor", "above zero"]),
        (add("start = \"20 s\""), &["rtp.video.start", "would start at"]),
        (add("payload = \"4 B\""), &["rtp.video.payload", "between 16 and 65000 bytes"]),
        (add("count = 1000000"), &["rtp.video.count", "no more than 100000"]),
        (add("count = -1"), &["rtp.video.count"]),
        (add("path = [\"botleneck\"]"), &["rtp.video.path[0]", "did you mean `bottleneck`?"]),
        (add("path = []"), &["rtp.video.path", "at least one link"]),
        (add("path = [\"bottleneck\", \"bottleneck\"]"), &["rtp.video.path[1]", "neighbouring links"]),
        (add("access_delay = \"1 ms\""), &["only flows of a dumbbell"]),
        (add("source = \"perfect-frame\""), &["rtp.video.source", "did you mean `perfect-frames`?"]),
        (add("source = { fps = 30 }"), &["rtp.video.source", "needs a `model`"]),
        (add("source = { model = \"perfect-packets\", fps = 30 }"), &["rtp.video.source.fps", "has no option `fps`"]),
        (add("source = { model = \"perfect-frames\", fps = 0 }"), &["rtp.video.source.fps", "between 1 and 1000"]),
        (add("source = { model = \"trace\" }"), &["needs a `file`"]),
        (
            add("source = { model = \"trace\", file = \"nowhere\" }"),
            &["rtp.video.source.file", "there is no such file"],
        ),
        (add("pauses = [{ from = \"3 s\", to = \"2 s\" }]"), &["rtp.video.pauses[0]", "`from` before `to`"]),
        (
            add("pauses = [{ from = \"1 s\", to = \"2 s\", media_clock = \"1\" }]"),
            &["rtp.video.pauses[0].media_clock", "no unit"],
        ),
        (add("adaptive_playout = true"), &["rtp.video.adaptive_playout", "give the flow one, such as \"400 ms\""]),
        (
            add("feedback = { interval = \"0 ms\" }").replace("$controller", "nada"),
            &["rtp.video.feedback.interval", "above zero"],
        ),
        (
            add("feedback = { interval = \"1 ms\", max_interval = \"1 ms\" }").replace("$controller", "nada"),
            &["rtp.video.feedback.max_interval", "both bounds"],
        ),
        (add("[tcp.bulk]"), &["tcp.bulk", "missing field `algorithm`"]),
        (
            add("[tcp.bulk]\nalgorithm = \"reno\""),
            &["tcp.bulk.algorithm", "unknown value `reno`", "did you mean `newreno`?"],
        ),
        (add("[tcp.web]\nalgorithm = \"cubic\"\nsize = \"1 MB\""), &["tcp.web", "both `size` and `idle`"]),
        (
            add("[tcp.web]\nalgorithm = \"cubic\"\nsize = { uniform = [\"2 MB\", \"1 MB\"] }\nidle = \"1 s\""),
            &["tcp.web.size", "lesser value first"],
        ),
        (
            add("[tcp.web]\nalgorithm = \"cubic\"\nsize = { pareto = { mean = \"2 MB\", shape = 1 } }\nidle = \"1 s\""),
            &["tcp.web.size.pareto.shape", "between 1.01 and 100"],
        ),
        (add("[udp.cross]\nrate = \"unlimited\""), &["udp.cross.rate", "needs a rate"]),
        (add("[udp.x]\nrate = \"1 Mbps\"\nhurst = 0.8"), &["udp.x.hurst", "their means"]),
        (
            add("[udp.x]\nrate = \"1 Mbps\"\non = \"1 s\"\noff = \"1 s\"\nhurst = 1.0"),
            &["udp.x.hurst", "between 0.51 and 0.99"],
        ),
        (tcp("max_window = 0"), &["tcp.x.max_window", "1 to 16000 segments, found 0"]),
        (tcp("initial_window = 2000"), &["tcp.x.initial_window", "1 to 1000 segments"]),
        (tcp("min_rto = \"2 min\""), &["tcp.x.min_rto", "at most 60 s"]),
        (tcp("loss_detection = \"rack\"\nsack = false"), &["tcp.x.loss_detection", "leave `sack` out"]),
        (tcp("rate = \"0 bps\""), &["tcp.x.rate", "above zero"]),
        (tcp("rate = \"1 Mbps\"\nsize = \"1 MB\""), &["tcp.x.rate", "`size`", "leave `rate` out"]),
        (tcp("arrivals = 30"), &["tcp.x.arrivals", "need a `size`", "pareto"]),
        (tcp("size = \"1 MB\"\narrivals = -1"), &["tcp.x.arrivals", "above 0", "found -1"]),
        (tcp("size = \"1 MB\"\narrivals = 3\nidle = \"1 s\""), &["tcp.x.arrivals", "leave one of them out"]),
        (tcp("size = \"1 MB\"\narrivals = 3\npersistent = true"), &["tcp.x.persistent", "`size` and `idle`"]),
        (add("[tcp.video]\nalgorithm = \"cubic\""), &["two flows are named `video`"]),
        (change("[rtp.video]\ncontroller = \"$controller\"\n", ""), &["at least one flow"]),
        (
            add("[[windows]]\nname = \"a\"\nfrom = \"0 s\"\nto = \"11 s\""),
            &["windows[0]", "no later than the run's end"],
        ),
        (change("compare = ", "bottleneck = \"botleneck\"\ncompare = "), &["bottleneck", "did you mean `bottleneck`?"]),
        (
            change("compare = ", "sample_interval = \"1 us\"\ncompare = "),
            &["sample_interval", "more than 5000000 points"],
        ),
        (add("[variants]\nname = \"a\""), &["variants", "[[variants]]"]),
        (
            change("delay = ", "preset = \"buffrebloat\"\ndelay = "),
            &["links.bottleneck.preset", "no preset is named `buffrebloat`", "did you mean `bufferbloat`?"],
        ),
        (change("delay = ", "wifi = { }\ncellular = { }\ndelay = "), &["links.bottleneck.cellular", "not both"]),
        (
            change("delay = ", "wifi = { contenders = 1, busy = 0.1 }\ndelay = "),
            &["links.bottleneck.wifi.busy", "full queues or a load", "leave `contenders` or `busy` out"],
        ),
        (
            change("delay = ", "wifi = { error_rate = 5 }\ndelay = "),
            &["links.bottleneck", "wifi.error_rate is 5: expected a share between 0 and 1"],
        ),
        (change("delay = ", "wifi = { contender = 1 }\ndelay = "), &["did you mean `contenders`?"]),
        (
            change("delay = ", "wifi = { stations = \"each-flow\" }\nreverse = { }\ndelay = "),
            &["links.bottleneck", "no `reverse`", "leave `reverse` or `stations` out"],
        ),
        (
            change("delay = ", "cellular = { users = 1.5 }\ndelay = "),
            &["links.bottleneck.cellular.users", "whole number of users, found 1.5"],
        ),
        (
            change("delay = ", "cellular = { users = 5000 }\ndelay = "),
            &["links.bottleneck", "cellular.users is 5000: expected a number between 0 and 1000"],
        ),
        (
            change("rate = \"2 Mbps\"", "rate = \"unlimited\"\ncellular = { }"),
            &["links.bottleneck", "rate is unlimited: expected a rate"],
        ),
        (
            add("[udp.x]\nrate = \"1 Mbps\"\ndscp = \"AF14\""),
            &["udp.x.dscp", "no code point is named `AF14`", "did you mean"],
        ),
        (add("[[variants]]\nlinks.bottleneck.loss = 0.1"), &["variants[0]", "needs a `name`"]),
        (
            add("[[variants]]\nname = \"a\"\nlinks.bottleneck.los = 0.1"),
            &["variants[0].links.bottleneck.los", "did you mean `loss`?"],
        ),
        (add("[[variants]]\nname = \"a\"\nlinks.botleneck.loss = 0.1"), &["missing field `rate`"]),
        (add("[[variants]]\nname = \"a\"\n[[variants]]\nname = \"a\""), &["two variants are named \"a\""]),
        (add("[[variants]]\nname = \"a\"\ntitle = \"b\""), &["variants[0].title", "of the whole file"]),
        (
            add("[[matrix]]\nset = \"links.bottleneck.loss\"\nvalues = [0, 7]"),
            &["matrix[0].values[1]", "between 0 and 1, found 7"],
        ),
        (
            add("[[matrix]]\nset = \"links.botleneck.loss\"\nvalues = [0]"),
            &["matrix[0].set", "did you mean `bottleneck`?"],
        ),
        (add("[[matrix]]\nset = \"title.x\"\nvalues = [0]"), &["matrix[0].set", "one field of the scenario"]),
        (add("[[matrix]]\nset = \"seed\"\nvalues = [0]\nnames = []"), &["matrix[0].names", "expected 1 names"]),
        (add("[[matrix]]\nset = \"seed\"\nvalue = [0]"), &["matrix[0].value", "did you mean `values`?"]),
    ];
    for (text, parts) in cases {
        let e = match parse(&text) {
            Ok(_) => panic!("read without error:\n{text}"),
            Err(e) => e,
        };
        let shown = format!("{e}\n{}", e.help_text().unwrap_or_default());
        for part in parts {
            assert!(shown.contains(part), "`{part}` is not in\n{shown}\nfor\n{text}");
        }
    }
}

#[test]
fn errors_draw_the_line() {
    let e = parse(&SMALL.replace("2 Mbps", "2 Mbs")).expect_err("wrong unit");
    assert_eq!(e.position(), Some((6, 8)));
    assert_eq!(e.field_path(), Some("links.bottleneck.rate"));
    let mut drawn = String::new();
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
    handler.render_report(&mut drawn, &e).expect("draws");
    assert!(drawn.contains("rate = \"2 Mbs\"") && drawn.contains("test.toml:6:8"), "{drawn}");
}

#[test]
fn names_near_ones_where_nothing_is_found() {
    let registry = Registry::builtin();
    let e = ScenarioFile::open("responsivness", &registry).expect_err("mistyped");
    assert!(e.help_text().is_some_and(|h| h.contains("responsiveness")), "{e}");
    let e = ScenarioFile::open("nowhere/x.toml", &registry).expect_err("no file");
    assert!(e.to_string().contains("there is no such file"), "{e}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Any byte of a valid file changed, or a piece of it removed or duplicated: an answer, never a panic.
    #[test]
    fn mangled_files_do_not_panic(cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "\\PC{0,6}|[\\[\\]{}=\"0-9.,\\n-]{0,4}"), 1..4)) {
        let mut text = SMALL.to_owned() + "[tcp.x]\nalgorithm = \"cubic\"\n[[matrix]]\nset = \"seed\"\nvalues = [1, 2]\n[[variants]]\nname = \"v\"\nlinks.bottleneck.loss = { good_to_bad = 0.1, bad_to_good = 0.2 }\n";
        for (at, len, with) in cuts {
            let floor = |mut i: usize| { while !text.is_char_boundary(i) { i -= 1 } i };
            let start = floor(at.index(text.len() + 1));
            let end = floor((start + len).min(text.len())).max(start);
            text.replace_range(start..end, &with);
        }
        if let Err(e) = parse(&text) {
            let mut drawn = String::new();
            let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
            prop_assert!(handler.render_report(&mut drawn, &e).is_ok());
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }
}
