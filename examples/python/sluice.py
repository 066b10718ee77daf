"""Sluice, a congestion controller for live media, written from docs/sluice-spec.md alone: to be read beside it, and as a check of it.

`Core` is the core of the specification's section 1.1, `Sluice`, at the end, the core with all extensions. Numbers are sections. State has
the names that it has there. Against the test vectors, from the repository's root:

    tools/sluice-vectors.py examples/python/sluice.py

In a program of your own, make a `Sluice` and call its methods as section 16.3 says. It needs no packages. It is there to be
read: calls run the controller in Rust, which is many times faster.
"""

from collections import deque, namedtuple
from math import exp, floor, log, sqrt
from types import SimpleNamespace as State

PACKET = 9600
START, GROW, HOLD, DRAIN, COMPETE, UNREPORTED, UNUSED, TRIAL, OWN = range(9)
FREE, CHANCE = "free", "chance"  # answers of section 9 beside TRIAL and OWN

PARAMETERS = dict(
    stall_share=0.27, mark_power=4, loss_power=12, fall_stalls=2.9, fall_packets=2,
    fall_noise=5, stall_window=2.8, jitter_window=14, residual_share=40, drain_stalls=4.8, growth=2,
    growth_first=1.67, growth_share=1.05, growth_uneven=1.01, growth_clumps=1.36, pacing_factor=1.5,
    pacing_start=2.2, pacing_settled=1, pacing_bursts=1.1, compete_share=0.45,
    compete_increase=1.2, compete_decrease=0.83, mark_weight=0.0625, mark_decrease=0.85, answer_share=0.04,
    answer_losses=30, answer_depth=0.7, answer_certainty=3, answer_doubt=1.5, answer_lost=0.006, answer_growth=0.02,
    drain_shallow=0.85)
PARAMETERS_MS = dict(
    queue_target=7.8, queue_slope=11.9, queue_least=5, queue_most=40, service_time=230, service_time_fall=14,
    fall_rise=3.9, base_window=10000, residual_most=40, noise_memory=120000, drain_time=122, burst_least=11,
    burst_time=10, burst_time_settled=20, compete_margin=16.4, compete_after=1200, compete_calm=200,
    answer_interval=8000, drain_interval=8000, drain_depth=30)

Change = namedtuple("Change", "at bits ref_bits rate ref")
Service = namedtuple("Service", "rate busy sending since")
Standing = namedtuple("Standing", "delay departure")
Gap = namedtuple("Gap", "gap size sending")
Stop = namedtuple("Stop", "g until sent")
Moment = namedtuple("Moment", "now departure sent delay service is_even")


def clamp(x, low, high):
    return min(max(x, low), high)


def lowest(*values):
    """The least value that is not none."""
    return min((v for v in values if v is not None), default=None)


def either(a, b):
    """`a ?? b`"""
    return b if a is None else a


def nearest(x):
    """`round` of section 2; Python's differs at halves."""
    return floor(x + 0.5)


class History:
    """5.4"""

    def __init__(self, rate):
        self.changes = deque([Change(0.0, 0.0, 0.0, rate, rate)], maxlen=128)

    def set(self, rate, ref, now):
        old = self.changes[-1]
        if (old.rate, old.ref) != (rate, ref):
            self.changes.append(Change(now, *self.totals(now), rate, ref))

    def before(self, t):
        return next((c for c in reversed(self.changes) if c.at <= t), self.changes[0])

    def totals(self, t):
        c = self.before(t)
        return c.bits + c.rate * (t - c.at), c.ref_bits + c.ref * (t - c.at)

    def sent(self, a, b):
        return self.totals(b)[0] - self.totals(a)[0]

    def mean(self, a, b):
        return None if a == b else self.sent(a, b) / (b - a)

    def ratio(self, a, b):
        x, y = (end - begin for begin, end in zip(self.totals(a), self.totals(b)))
        return x / y if x > 0 and y > 0 else 1

    def pieces(self, a, b):
        changes = list(self.changes)
        changes = changes[changes.index(self.before(a)):]
        times = [a] + [c.at for c in changes[1:]] + [b]
        return [(c.rate, end - begin) for c, begin, end in zip(changes, times, times[1:])]


class Base:
    """6.2"""

    def __init__(self):
        self.begin = 0
        self.forget()

    def forget(self):
        self.current = self.previous = None

    def get(self):
        return lowest(self.current, self.previous)

    def observe(self, delay, at, window):
        if self.current is None:
            self.begin = at
        elif at - self.begin > window:
            self.previous, self.current, self.begin = self.current, None, at
        self.current = lowest(self.current, delay)


class CoreSampler:
    """6, without extensions"""

    def __init__(self):
        self.base = Base()
        self.sent = self.last_queue = 0
        self.waited = 0.0015
        self.forget_last()

    def forget_last(self):
        self.last_arrival = self.last_departure = None

    def sample(self, now, start, packets, window, interval, waits):
        """None without a sample. `window` is in ns, `interval` that of the feedback before, `waits` a full queue's delay."""
        if not packets:
            return None
        m = State(
            received=0, lost=0, lost_waiting=0, revoked=0, unreported=0, marked=0, size=0, largest=0, elapsed=0,
            busy=State(time=0, size=0, packets=0, sending=0), gaps=State(sum=0, squares=0, count=0),
            least=0, least_departure=0, least_sent=0, last=0, most=0, is_same=False, first_departure=0, last_departure=0,
            begin=(packets[0].departure_ns - start) * 1e-9)
        at = packets[-1].departure_ns - start
        delays = [p.arrival_ns - p.departure_ns for p in packets if p.arrival_ns is not None]
        if delays:
            least, known = min(delays), self.base.get()
            if known is not None and (least - known) * 1e-9 > now - m.begin:
                self.base.forget()
                self.forget_last()
            self.base.observe(least, at, window)
        base = self.base.get()
        if base is None:
            return None
        m.base = base * 1e-9
        self.observe_packets(m, packets, start, base, waits)
        if m.received == 0:
            return None
        self.extend(m, now, interval, base, at, window)
        return m

    def observe_packets(self, m, packets, start, base, waits):
        for p in packets:
            self.sent += 8 * p.size
            if p.arrival_ns is None:
                m.lost += 1
                m.lost_waiting += self.last_queue > waits
                self.lose((p.departure_ns - start) * 1e-9, self.sent - 8 * p.size)
            else:
                delay = min((p.arrival_ns - p.departure_ns - base) * 1e-9, 10)
                self.observe_ordered(m, p, (p.departure_ns - start) * 1e-9, delay, 8 * p.size)

    def observe_ordered(self, m, p, departure, queue, served):
        """Steps 5 and 6 of 6.3."""
        self.last_queue = queue
        if m.received == 0:
            m.first_departure = departure
        if m.received == 0 or queue < m.least:
            m.least, m.least_departure, m.least_sent = queue, departure, self.sent
        m.last, m.last_departure, m.most = queue, departure, max(m.most, queue)
        m.received += 1
        m.marked += p.is_ce
        m.size += 8 * p.size
        m.largest = max(m.largest, 8 * p.size)
        if self.last_arrival is not None and self.last_arrival - p.arrival_ns > 3e9:
            self.forget_last()
        gap = -1 if self.last_arrival is None else (p.arrival_ns - self.last_arrival) * 1e-9
        if 0 <= gap < 10:
            m.elapsed += gap
            if queue >= max(self.waited, 0.5 * gap):
                sending = max(departure - self.last_departure, 0)
                self.serve(m, Gap(gap, served, sending), departure + queue, self.sent - 8 * p.size)
            else:
                self.serve_idle(m)
        self.last_departure = departure
        self.last_arrival = max(either(self.last_arrival, p.arrival_ns), p.arrival_ns)

    def add(self, m, g):
        m.busy.time += g.gap
        m.busy.size += g.size
        m.busy.packets += 1
        m.busy.sending += g.sending
        if g.gap < 0.1:
            m.gaps.sum += g.gap
            m.gaps.squares += g.gap * g.gap
            m.gaps.count += 1

    def serve(self, m, g, at, before):
        self.add(m, g)

    def serve_idle(self, m):
        """[STOP] A packet has not waited."""

    def lose(self, departure, before):
        """[STOP]"""

    def extend(self, m, now, interval, base, at, window):
        """For extensions: 6.5 to 6.7."""


class Core:
    """The controller without extensions. Its fields of state have the names of the specification."""

    is_competing = False
    weight = 1
    answer = (FREE, None)

    def __init__(self, start_ns, floor_bps, ceiling_bps, start_bps, params):
        values = {name: params.get(name, value) for name, value in PARAMETERS.items()}
        values.update({name: params.get(name, value) * 1e-3 for name, value in PARAMETERS_MS.items()})
        self.params = State(**values)
        self.start_ns = start_ns
        self.floor, self.ceiling = floor_bps, ceiling_bps
        self.history = History(max(min(start_bps, ceiling_bps), floor_bps))
        self.queue = State(expected=0, wanted=0)
        self.mode = START
        self.is_starting = True
        self.due = self.before_silence = None
        self.silent_since = 0
        self.now = self.share = 0
        self.used = self.arrived = 1
        self.m = self.rtt = None
        self.sampler = CoreSampler()
        self.timing = State(interval=0.05, rtt=0.1, path=None, newest=0, waiting_since=None, reported_at=0, lateness=0)
        self.use = State(
            sent=0, allowed=0, arrived=0, could_arrive=0, excess=0, burst=0, long_sent=0, long_allowed=0, lasting=0)
        self.steady = State(share=None, shared_at=0, error=0, erred_at=0)
        self.messages = deque(maxlen=32)
        self.stalls = State(sum=0, squares=0, count=0)
        self.falls = State(seen=None, none=0, newest=0)
        self.jitter = State(last=None, mean=0)
        self.reset_residual()
        self.view = State(
            service=None, capacity=None, steady=None, standing=Standing(0, 0), packet=0, busy=0, stall=0, jitter=0,
            noise=0, residual=0, marked=0, lost=0, is_classic=False, bound=None, asked=None)
        self.marks = State(marked=0, lost=0, cut_at=0)
        nothing = Moment(0, 0, 0, 0, None, False)
        self.drain = State(emptied_at=0, until=0, begun=0, then=None, peak=nothing, before=nothing, last=nothing)
        self.growth = State(rounds=0, grown_at=0)
        self.recovery = State(mean=0, weight=0, updated=0)
        self.forget_asked()

    @property
    def rate(self):
        return self.history.changes[-1].rate

    @property
    def reference(self):
        return self.history.changes[-1].ref

    def to_seconds(self, time_ns):
        return (time_ns - self.start_ns) * 1e-9

    def set(self, rate, reference):
        self.history.set(self.bounded(rate), reference, self.now)

    # Inputs and outputs (3, 5)

    def on_feedback(self, now_ns, packets, in_flight, rtt_ns):
        self.now = now = self.to_seconds(now_ns)
        window = self.params.base_window * 1e9 * (6 if self.is_competing else 1)
        self.sampler.waited = 0.0015 if self.view.bound is None else 0.003
        m = self.sampler.sample(now, self.start_ns, packets, window, self.timing.interval, self.queue.wanted + 0.05)
        if m is None:
            return
        self.m = m
        self.take_flight(in_flight)
        self.rtt = None if rtt_ns is None else clamp(rtt_ns * 1e-9, 0, 3)
        if self.before_silence is not None and now - self.silent_since > 1:
            self.pass_over()
            self.use.lasting = 0
        self.end_silence()
        self.update_way()
        self.update_use()
        self.update_timing()
        self.update_path()
        self.compare_notice()
        self.share = self.steady_share(self.cut(self.find_share()))
        self.answer = self.find_answer()
        expected = self.less_error(self.expected_queue(self.share))
        self.queue.expected, self.queue.wanted = expected, self.wanted_queue()
        if self.is_bounded():
            self.queue.expected = min(self.queue.expected, self.flight.data / max(self.share, 1000))
        self.decide()
        self.due = None if in_flight == 0 else now_ns + self.patience()

    def on_sent(self, now_ns, sequence, size):
        if self.due is None:
            self.now = self.timing.waiting_since = self.to_seconds(now_ns)
            self.due = now_ns + self.patience()

    def on_timeout(self, now_ns):
        self.now = now = self.to_seconds(now_ns)
        drain, timing = self.drain, self.timing
        if drain.then is not None and now >= drain.until:
            self.set(drain.then, drain.then)
            drain.then = None
        if self.due is not None and now_ns >= self.due:
            self.due = now_ns + 25_000_000
            q = now - self.awaited() - timing.rtt - timing.interval - timing.lateness
            q -= 0.08 if self.is_bounded() else 0
            if not (self.is_competing and q < 1) and not (self.is_bounded() and q <= self.queue.wanted):
                if self.before_silence is None:
                    self.before_silence, self.silent_since = either(drain.then, self.rate), now
                drain.then = None
                factor = clamp(1 + (self.queue.wanted - q) / self.params.drain_time, 0, 1)
                self.mode = UNREPORTED
                self.set(lowest(self.rate, self.view.capacity) * factor, self.reference)
                self.growth.rounds = 0
                self.forget_asked()

    def on_limits(self, now_ns, floor_bps, ceiling_bps):
        self.floor, self.ceiling = floor_bps, ceiling_bps
        self.bound_anew(now_ns)

    def bound_anew(self, now_ns):
        self.now = self.to_seconds(now_ns)
        self.set(self.rate, self.reference)

    def target(self):
        return nearest(self.media()), nearest(self.pacing())

    def timeout(self):
        ended = None if self.drain.then is None else self.start_ns + nearest(self.drain.until * 1e9) + 1000
        return lowest(ended, self.due)

    def internals(self):
        view = self.view
        return dict(
            mode=self.mode, capacity_bps=view.capacity, queue_ms=view.standing.delay * 1e3, busy_share=view.busy,
            queue_expected_ms=self.queue.expected * 1e3, queue_wanted_ms=self.queue.wanted * 1e3,
            use_share=self.used, burst_ms=self.use.burst * 1e3, rounds=self.growth.rounds,
            stall_ms=view.stall * 1e3, jitter_ms=view.jitter * 1e3, residual_ms=view.residual * 1e3,
            noise_ms=self.residual.noise * 1e3, marked=view.marked, mark_bound_bps=view.bound)

    def awaited(self):
        return either(self.timing.waiting_since, self.timing.newest)

    def patience(self):
        """7.2, in ns."""
        timing = self.timing
        span = self.awaited() + timing.rtt + 2 * timing.interval + 0.05 + timing.lateness - self.now
        return nearest(1e9 * clamp(span, 0.025, 10))

    # Times of feedback, and use (7)

    def end_silence(self):
        self.before_silence = None

    def update_way(self):
        timing = self.timing
        if self.rtt is not None:
            path = max(self.rtt - self.m.last, 0)
            if timing.path is None:
                timing.path = path
            elapsed = clamp(self.now - timing.reported_at, 0, 1)
            timing.path = min(path, timing.path + (1 - exp(-elapsed / 60)) * (path - timing.path))

    def loop(self):
        return either(self.timing.path, self.timing.rtt) + self.timing.interval

    def update_timing(self):
        timing, rtt = self.timing, self.rtt
        gap = clamp(self.now - timing.reported_at, 0, 1)
        if gap > 0.1 * timing.interval:
            timing.interval += 0.125 * (min(gap, 2 * timing.interval + 0.01) - timing.interval)
            timing.reported_at = self.now
        if rtt is not None:
            timing.rtt = max(rtt, min(timing.rtt + 0.125 * (rtt - timing.rtt), rtt + 0.2))
        timing.newest = max(timing.newest, self.m.last_departure)
        timing.waiting_since = None

    def update_use(self):
        use, m, newest = self.use, self.m, self.timing.newest
        allowed = self.history.sent(newest, m.last_departure)
        time = m.last_departure - newest
        if allowed > 0 and time > 0:
            every = 1 + m.unreported / (m.received + m.lost)
            sent = (m.size + m.lost * PACKET) * every
            keep = exp(-time / 0.1)
            use.sent = use.sent * keep + sent
            use.allowed = use.allowed * keep + allowed
            keep = exp(-time / max(0.1, self.loop() / 4))
            use.arrived = use.arrived * keep + m.size * every
            use.could_arrive = use.could_arrive * keep + allowed
            self.update_burst(newest, time, sent, allowed)
        if use.allowed > 0:
            self.used, self.arrived = min(use.sent / use.allowed, 2), min(use.arrived / use.could_arrive, 2)

    # Path (8)

    def recent(self, time=0.5):
        """Messages of the last 0.5 s, or less, newest first."""
        for message in reversed(self.messages):
            if self.m.last_departure - message.last_departure > min(time, 0.5):
                return
            yield message

    def served(self, least_time, least_packets):
        time = size = packets = sending = since = 0
        for message in self.recent():
            busy = message.busy
            time, size, packets = time + busy.time, size + busy.size, packets + busy.packets
            sending, since = sending + busy.sending, message.first_departure
            if time >= least_time and packets >= least_packets:
                break
        return Service(size / time, time, sending, since) if time > 1e-4 else None

    def busy_share(self):
        time = elapsed = 0
        for message in self.recent():
            time, elapsed = time + message.busy.time, elapsed + message.elapsed
            if elapsed >= 0.1:
                break
        return min(time / elapsed, 1) if elapsed > 0 else 0

    def standing(self, time):
        message = min(self.recent(time), key=lambda message: message.least)
        return Standing(message.least, message.least_departure)

    def update_path(self):
        params, view, m = self.params, self.view, self.m
        self.messages.append(m)
        stall = self.update_stall()
        jitter = self.update_jitter()
        noise = max(jitter - 0.4 * stall, 0)
        self.update_residual(jitter)
        residual = self.residual
        self.update_marks()
        window = min(max(params.stall_window * stall, params.jitter_window * noise), 0.2)
        time = 0.5 if self.use.burst > params.burst_least and self.weight >= 1 else params.service_time
        steady = self.served(max(time, window), 0)
        time, is_bursty = params.service_time_fall, self.use.burst > params.burst_least
        if is_bursty:
            self.judge_falls()
            time *= 4 ** self.falls.none
        newest = self.served(max(time, params.fall_stalls * stall), params.fall_packets)
        fall = None
        if steady is not None and newest is not None and newest.rate < steady.rate:
            rises = m.last > self.standing(0.15).delay + params.fall_rise + params.fall_noise * residual.noise
            if m.marked / m.received > 0.5 or (m.least > max(self.queue.wanted, window) and rises):
                fall = newest._replace(rate=max(newest.rate, steady.rate * min(newest.sending / newest.busy, 1)))
        if fall is not None and is_bursty and self.falls.seen is None:
            self.falls.seen = (self.falls.newest, steady.rate)
        view.service = either(fall, steady)
        view.capacity = None if view.service is None else view.service.rate
        view.steady = steady
        view.standing = self.standing(window)
        view.packet = view.packet + 0.125 * (m.largest - view.packet) if view.packet > 0 else m.largest
        view.busy = self.busy_share()
        view.stall, view.jitter, view.noise, view.residual = stall, jitter, noise, residual.delay

    def judge_falls(self):
        falls, departure = self.falls, self.m.last_departure
        falls.none *= exp(-max(departure - falls.newest, 0) / 20)
        falls.newest = max(falls.newest, departure)
        if falls.seen is None or departure - falls.seen[0] <= 0.3:
            return
        service = self.served(0.1, 0)
        if service is not None:
            falls.none = min(falls.none + 1, 3) if service.rate > 0.7 * falls.seen[1] else 0
        falls.seen = None

    def update_stall(self):
        stalls, gaps = self.stalls, self.m.gaps
        keep = exp(-gaps.sum)
        for name in ("sum", "squares", "count"):
            setattr(stalls, name, getattr(stalls, name) * keep + getattr(gaps, name))
        if stalls.sum <= 0 or stalls.count < 1:
            return 0
        return clamp(stalls.squares / stalls.sum - 1.5 * stalls.sum / stalls.count, 0, 0.5)

    def update_jitter(self):
        jitter, least = self.jitter, self.m.least
        a, b = jitter.last or (least, least)
        second = min(abs(least - 2 * b + a), 0.1)
        jitter.mean += (second / 2.449 - jitter.mean) / 32
        jitter.last = (b, least)
        return max(jitter.mean - 0.0015, 0)

    def reset_residual(self):
        self.residual = State(
            until=None, mean=None, sum=0, count=0, raw=0, newest=0, noise=0, delay=0, is_unknown=False)

    def update_residual(self, jitter):
        residual, params, m = self.residual, self.params, self.m
        if self.is_competing:
            self.reset_residual()
            return
        uneven = jitter if self.timing.interval < 0.12 else 0
        elapsed = max(m.last_departure - residual.newest, 0)
        residual.newest = max(residual.newest, m.last_departure)
        time = 1.5 if uneven > residual.raw else params.noise_memory
        residual.raw += (1 - exp(-elapsed / time)) * (uneven - residual.raw)
        if residual.until is not None:
            if m.last_departure >= residual.until - 0.04 and m.first_departure <= residual.until:
                residual.sum += m.least
                residual.count += 1
            if m.last_departure > residual.until:
                residual.until = None
                if residual.count > 0:
                    seen = residual.sum / residual.count
                    mean = either(residual.mean, seen)
                    residual.mean = mean + 0.5 * (seen - mean)
        steady = self.view.steady
        own = max(0.0007, 0.4 * self.view.packet / steady.rate) if steady is not None else 0.0007
        residual.noise = max(residual.raw - own, 0)
        residual.delay = min(
            1.4 * either(residual.mean, 0), params.residual_share * residual.noise, params.residual_most)
        residual.is_unknown = residual.mean is None and residual.noise > 0

    def update_marks(self):
        """8.5"""
        marks, view, m, weight = self.marks, self.view, self.m, self.params.mark_weight
        marks.marked += weight * (m.marked / m.received - marks.marked)
        lost = (m.lost - m.revoked) / (m.received + m.lost)
        marks.lost = max(marks.lost + weight * (lost - marks.lost), 0)
        is_l4s = view.bound is not None and m.marked / m.received > 0.5
        is_standing = m.least > max(0.005, 3 * PACKET / max(self.rate, 1000)) and not is_l4s
        self.update_l4s(0 if is_standing else m.marked)
        view.marked, view.lost = marks.marked, marks.lost
        view.is_classic = is_standing and m.marked > 0

    def cut(self, share):
        """8.5"""
        if not self.view.is_classic or self.timing.newest < self.marks.cut_at:
            return share
        self.marks.cut_at = self.now
        return share * self.params.mark_decrease

    def find_share(self):
        """8.8"""
        if self.view.service is None:
            return self.rate
        s = self.view.service.rate
        q = self.history.ratio(self.view.service.since, self.m.last_departure)
        if 0.8 <= q <= 1.25:
            return s / q ** 0.25
        p = s / max(q, 0.001)
        return min(max(self.reference, min(s, p)), max(s, p))

    def is_lasting(self):
        """[BURST] 7.3"""
        is_bursty = self.params.burst_least < self.use.burst < 0.05 and self.use.lasting > 0.95
        return is_bursty and self.weight >= 1 and not self.is_foreseen()

    def steady_share(self, share):
        """[BURST]"""
        steady, view = self.steady, self.view
        has_fallen = view.steady is not None and view.service.rate < view.steady.rate
        if not self.is_lasting() or has_fallen:
            steady.share = None
            return share
        used = min(self.use.long_sent / self.use.long_allowed, 2) if self.use.long_allowed > 0 else 1
        share /= sqrt(clamp(used, 0.9, 1.1))
        mean = share if steady.share is None else steady.share
        mean += (1 - exp(-clamp(self.now - steady.shared_at, 0, 0.25) / 1.5)) * (share - mean)
        steady.share, steady.shared_at = mean, self.now
        return mean

    # Queue (10)

    def less_error(self, expected):
        """[BURST]"""
        steady, standing = self.steady, self.view.standing.delay
        if not self.is_lasting():
            return expected
        weight = 1 - exp(-clamp(self.now - steady.erred_at, 0, 0.25) / 5)
        steady.erred_at = self.now
        if self.mode == HOLD and standing < self.queue.wanted + 0.016:
            steady.error += weight * (clamp(expected - standing, -0.1, 0.1) - steady.error)
        return max(expected - steady.error, 0)

    def expected_queue(self, share):
        f, r = min(self.arrived, 1.1), max(share, 1000)
        queue = self.view.standing.delay
        for rate, time in self.history.pieces(self.view.standing.departure, self.now):
            queue = max(queue + (rate * f / r - 1) * time, 0)
        return queue

    def wanted_queue(self):
        params, view, r = self.params, self.view, max(self.share, 1000)
        uneven = max(params.stall_share * view.stall, view.noise)
        lost = (1 - view.lost) ** params.loss_power
        if view.bound is not None:
            return (0.001 + view.packet / r + uneven) * lost + view.residual
        w = params.queue_target + params.queue_slope * log(4e6 * self.weight * self.weight / r)
        w = max(min(w, params.queue_most), params.queue_least)
        w = max(w, min(0.75 * view.packet / r, 0.15))
        return (w + uneven) * (1 - view.marked) ** params.mark_power * lost + view.residual

    # Mode (11.1)

    def step(self):
        """The mode, and the rates or none."""
        drain, params, view, now = self.drain, self.params, self.view, self.now
        standing, busy, wanted = view.standing.delay, view.busy, self.queue.wanted
        if self.is_starting and busy >= 0.6 and standing > wanted:
            self.is_starting = False
            drain.emptied_at = now - params.drain_interval + 0.5
        if standing < 0.002:
            drain.emptied_at = now
        was_competing = self.is_competing
        rate = self.compete()
        if rate is not None:
            drain.emptied_at = self.growth.grown_at = now
            drain.then = None
            self.growth.rounds = 1
            self.forget_asked()
            return COMPETE, (rate, rate)
        if was_competing:
            self.set(self.rate, self.rate)
            self.growth.grown_at = self.timing.newest
        is_doubtful = self.residual.is_unknown or (self.m.is_same and self.share < 0.75 * self.recovery.mean)
        self.observe_moment()
        if now < drain.until:
            return DRAIN, None
        interval = params.drain_interval * (0.125 if is_doubtful else 1)
        if not self.is_starting and (now - drain.emptied_at >= interval or self.joins()):
            return self.begin_drain()
        if view.bound is not None:
            is_held = standing > max(0.003, 2 * view.packet / max(self.share, 1000))
        else:
            is_held = (busy >= 0.6 and standing > 0.5 * wanted) or standing > wanted
        return self.hold() if is_held else self.grow()

    # Drains (12)

    def observe_moment(self):
        drain, now, view = self.drain, self.now, self.view
        moment = Moment(
            now, self.m.least_departure, self.m.least_sent, self.m.base + self.m.least,
            None if view.steady is None else view.steady.rate, self.residual.noise < 0.0012 and view.jitter < 0.0016)
        is_falling = moment.is_even and drain.last.delay - moment.delay > 0.001
        if is_falling and now < drain.until and now - drain.begun < 0.6:
            drain.until = max(drain.until, now + self.timing.interval + 0.03)
        if moment.delay > drain.peak.delay:
            drain.peak = moment
        elif now - drain.peak.now > 0.15:
            drain.before, drain.peak = drain.peak, moment
        drain.last = moment

    def joins(self):
        drain, last = self.drain, self.drain.last
        if not last.is_even or last.now - drain.emptied_at < 0.5 * self.params.drain_interval:
            return False
        p = drain.before if drain.before.delay > drain.peak.delay else drain.peak
        time, sent = last.departure - p.departure, last.sent - p.sent
        yielded = 0 if p.service is None else max(time - sent / p.service, 0)
        return p.delay - last.delay > 0.004 + yielded

    def begin_drain(self):
        drain, share, queue = self.drain, self.share, self.queue
        is_noisy = self.residual.noise >= 0.0012
        is_shallow = is_noisy and queue.expected <= queue.wanted
        sent = self.params.drain_shallow if is_shallow else 0.5
        drain.emptied_at = drain.begun = self.now
        drain.until = self.now + (min(queue.expected, 0.2) + self.params.drain_depth) / (1 - sent)
        drain.then = share if share > 0 else None
        self.growth.grown_at = self.residual.until = drain.until
        self.residual.sum = self.residual.count = 0
        self.forget_asked()
        return DRAIN, (sent * share, share)

    # Decision (13)

    def forget_asked(self):
        self.growth.asked, self.growth.is_refuted = None, False

    def known(self):
        return self.recovery.mean / self.recovery.weight if self.recovery.weight > 0 else 0

    def is_foreseen(self):
        return self.loop() > 0.4 and self.view.bound is None

    def foreseen(self):
        if not self.is_foreseen():
            return None
        return self.expected_queue(max(self.share, self.known()))

    def gain(self, queue, slower=1):
        view = self.view
        time = self.params.drain_time if view.bound is None else 0.06
        time = max(time + self.params.drain_stalls * max(view.stall, view.jitter), self.timing.interval)
        return clamp((self.queue.wanted - queue) / (slower * time), -1, 0.2)

    def limit(self):
        growth, known, foreseen = self.growth, self.known(), self.foreseen()
        if foreseen is None or self.is_starting or known <= 0:
            return None
        if foreseen > self.queue.wanted + 0.015 and growth.asked is None:
            growth.asked = self.now
        growth.is_refuted = growth.is_refuted or (growth.asked is not None and self.timing.newest > growth.asked)
        return None if growth.is_refuted else known * (1 + self.gain(foreseen - 0.03))

    def hold(self):
        view, share, now = self.view, self.share, self.now
        queue, foreseen = self.queue.expected, self.foreseen()
        most = self.queue.wanted + (0 if share < 0.75 * self.recovery.mean else 0.015)
        if foreseen is not None and view.standing.delay < most:
            share, queue = max(share, self.known()), foreseen
        corrected = share * (1 + self.gain(queue, 2 if self.is_lasting() else 1))
        if self.used < 0.7 and corrected > 0.5 * self.rate:
            return UNUSED, None
        elapsed = clamp(now - self.recovery.updated, 0, 0.25)
        self.recovery.updated = now
        self.recovery.mean += (1 - exp(-elapsed / 2)) * (share - self.recovery.mean)
        self.recovery.weight += (1 - exp(-elapsed / 2)) * (1 - self.recovery.weight)
        self.forget_asked()
        self.growth.rounds, self.growth.grown_at = 0, now
        return HOLD, (lowest(corrected, view.bound), lowest(share, view.bound))

    def grow(self):
        params, view, rate, growth = self.params, self.view, self.rate, self.growth
        if self.used < 0.6:
            return UNUSED, None
        mode = START if self.is_starting else GROW
        limit = self.limit()
        if self.timing.newest < growth.grown_at:
            return mode, (limit, self.known()) if limit is not None and limit < rate else None
        n = self.served(params.service_time_fall, 0)
        shown = n.rate if n is not None and n.busy > 0.003 and view.bound is None else None
        is_fast = self.is_starting or growth.rounds > 0 or (shown is not None and shown > 1.8 * rate)
        factor = params.growth if is_fast else params.growth_first
        if view.stall > 0.003 and view.busy >= 0.6:
            factor = min(factor, params.growth_clumps)
        most = None
        if shown is not None:
            trains = self.trains()
            if shown > 0.85 * trains:
                shown = max(shown, trains)
            if view.lost > 0.02:
                least = max(0.5 * rate, view.capacity)
            else:
                least = rate * (params.growth_uneven if view.stall > 0.003 else 1.03)
            most = max(params.growth_share * shown, least)
        growth.rounds += 1
        growth.grown_at = self.now
        r = max(rate * factor, sqrt(0.7 * rate * self.recovery.mean))
        r = lowest(max(lowest(lowest(r, most), limit), self.hint()), view.bound)
        return mode, (r, r)

    def decide(self):
        self.mode, rates = self.step()
        kind, value = self.answer
        if kind in (TRIAL, OWN) and (rates[0] if rates else self.rate) >= value:
            self.mode, rates = kind, (value, value)
        elif kind == CHANCE and self.mode in (START, GROW):
            r = max(rates[0] if rates else self.rate, value)
            rates = (r, r)
        if rates:
            self.set(*rates)

    # Bounds (14) and outputs (15)

    def bounded(self, rate):
        return max(min(rate, self.ceiling), self.floor)

    def media(self):
        return self.rate

    def pacing(self):
        if self.answer_bound() is not None and self.view.busy < 0.3:
            return self.rate * 2
        is_bursty = self.view.bound is None and not self.is_starting and self.use.burst > self.params.burst_least
        return self.rate * self.params.pacing_bursts if is_bursty else self.trains()

    def trains(self):
        params, view, rate = self.params, self.view, self.rate
        bound = self.answer_bound()
        is_settled = not self.is_starting and self.growth.rounds == 0 and view.stall < 0.001
        if view.bound is not None:
            factor = params.pacing_settled if is_settled else params.pacing_factor
            factor = params.pacing_start if self.is_starting else factor
            return max(rate, view.asked if rate > 0.95 * view.bound else min(rate * factor, view.asked))
        if (is_settled and view.marked > 0.2) or (bound is not None and rate > 0.95 * bound):
            return rate
        if self.is_starting:
            return max(rate * params.pacing_start, 5 * PACKET / params.burst_time)
        if is_settled:
            return max(rate * params.pacing_settled, 5 * PACKET / params.burst_time_settled)
        return max(rate * params.pacing_factor, 5 * PACKET / params.burst_time)

    def answer_bound(self):
        return self.answer[1] if self.answer[0] in (TRIAL, OWN) else None

    # What extensions add

    def update_burst(self, newest, time, sent, allowed):
        """[BURST]"""

    def update_l4s(self, marked):
        """[ECN]"""

    def is_bounded(self):
        """[STOP]"""
        return False

    def take_flight(self, in_flight):
        """[STOP]"""

    def compare_notice(self):
        """[NOTICE]"""

    def hint(self):
        return 0

    def pass_over(self):
        """[ANSWER]"""

    def find_answer(self):
        return self.answer

    def compete(self):
        return None


# Extensions


class Sampler(CoreSampler):
    """[HOLE], [LATE], [LONGER] and [STOP]"""

    def __init__(self):
        super().__init__()
        self.next = None
        self.held = State(received=0, marked=0, revoked=0, lateness=0, size=0, served=0)
        self.late = State(current=0, previous=0, begun=0, lateness=0, updated=0)
        self.longer = State(marks=deque(maxlen=24), sent=0, same=0, last=0, before=None, full=None)
        self.stops = State(pending=None, last=None, long=None, usual=None, full=None)

    def observe_packets(self, m, packets, start, base, waits):
        for i, p in enumerate(packets):
            self.look_for_hole(m, p)
            if p.arrival_ns is not None and is_overtaken(p, packets[i + 1:i + 9]):
                self.hold(p, min((p.arrival_ns - p.departure_ns - base) * 1e-9, 10))
            else:
                super().observe_packets(m, [p], start, base, waits)

    def observe_ordered(self, m, p, departure, queue, served):
        super().observe_ordered(m, p, departure, queue, served + self.held.served)
        self.held.served = 0

    def extend(self, m, now, interval, base, at, window):
        self.believe(m, now, self.release(m), interval)
        self.lengthen(m, base, at, window)

    def look_for_hole(self, m, p):
        """[HOLE] Step 1 of 6.3."""
        hole = 0 if self.next is None else max(p.sequence - self.next, 0)
        self.next = max(either(self.next, 0), p.sequence + 1)
        if hole > 0:
            m.unreported += hole
            self.sent += hole * 8 * p.size
            self.forget_last()

    def hold(self, p, queue):
        """[LATE] 6.4"""
        held, bits = self.held, 8 * p.size
        held.received += 1
        held.marked += p.is_ce
        held.size += bits
        held.served += bits
        self.sent += 0 if p.was_lost else bits
        if p.was_lost:
            held.revoked += 1
            held.lateness = max(held.lateness, queue)

    def release(self, m):
        """[LATE] 6.5; the result is the lateness."""
        held = self.held
        for name in ("received", "marked", "revoked", "size"):
            setattr(m, name, getattr(m, name) + getattr(held, name))
        self.held = State(received=0, marked=0, revoked=0, lateness=0, size=0, served=held.served)
        return held.lateness

    def believe(self, m, now, lateness, interval):
        """[LATE] 6.6"""
        late = self.late
        elapsed = max(now - late.updated, 0)
        late.updated = now
        late.lateness = max(late.lateness * exp(-elapsed / 60), min(lateness, 0.5))
        early = min(m.revoked, late.previous)
        late.previous -= early
        new = min(m.revoked - early, late.current)
        late.current += m.lost - new
        m.revoked -= early + new
        m.lost = 0
        if not late.lateness > 0.002:
            m.lost = late.current + late.previous
            late.current = late.previous = 0
        elif now - late.begun > 1.25 * late.lateness + 2 * interval:
            m.lost = late.previous
            late.previous, late.current, late.begun = late.current, 0, now
        m.lost_waiting = min(m.lost_waiting, m.lost)

    def lengthen(self, m, base, at, window):
        """[LONGER] 6.7"""
        longer = self.longest_constant(m)
        if longer is not None:
            self.base.forget()
            self.base.observe(base + nearest(longer * 1e9), at, window)
            m.least, m.last, m.most = (max(delay - longer, 0) for delay in (m.least, m.last, m.most))
        m.is_same = self.longer.same >= 0.2

    def longest_constant(self, m):
        """[LONGER] The part of the delay that is the path's, or none."""
        of, delay = self.longer, m.least
        of.sent += m.size
        of.same = 0
        previous, of.last = of.last, delay
        if of.before is None and delay > previous + 0.005:
            of.before = previous
        if of.before is not None and not delay > of.before + 0.003:
            of.before = None
        if m.lost > 0 and delay > 0.05:
            of.full = (m.last_departure, m.base + delay)
        if m.lost > 0 or m.unreported > 0 or delay < 0.003:
            of.marks.clear()
            return None
        newest = (m.last_departure, of.sent, delay)
        of.marks.append(newest)
        if of.before is None:
            return None
        if of.full is not None and newest[0] - of.full[0] <= 10 and m.base + delay > of.full[1] - 0.005:
            return None
        recent = []
        for mark in reversed(of.marks):
            if newest[0] - mark[0] > 0.5:
                break
            recent.append(mark)
        first = recent[-1]
        least, most = min(mark[2] for mark in recent), max(mark[2] for mark in recent)
        time, data = newest[0] - first[0], newest[1] - first[1]
        if most - least > 0.005 or len(recent) < 3 or time <= 0 or data <= 0:
            return None
        of.same = time
        bend = max(abs((mark[1] - first[1]) / (data / time) - (mark[0] - first[0])) for mark in recent)
        if bend < max(0.025, 10 * (most - least)):
            return None
        of.marks.clear()
        return least


    def serve(self, m, g, at, before):
        """[STOP] 6.8"""
        stops = self.stops
        if g.gap >= 0.6:
            stops.long = at
        pending = stops.pending
        if pending is not None and 8 * g.gap < pending.g.gap and g.gap < 0.9 * g.sending:
            stops.last, stops.pending = pending, None
        self.serve_idle(m)
        is_unusual = stops.usual is not None and 8 * stops.usual < g.gap
        stops.usual = g.gap
        if is_unusual and 0.1 <= g.gap < 0.3:
            stops.pending = Stop(g, at, before)
        else:
            self.add(m, g)

    def serve_idle(self, m):
        if self.stops.pending is not None:
            self.add(m, self.stops.pending.g)
            self.stops.pending = None

    def lose(self, departure, before):
        stops = self.stops
        if stops.last is not None and departure < stops.last.until:
            data = before - stops.last.sent
            if stops.full is not None and departure - stops.full[1] < 120:
                data = min(data, stops.full[0])
            stops.full = data, departure

    def room(self, now):
        full, long = self.stops.full, self.stops.long
        is_known = full is not None and now - full[1] < 120 and (long is None or now - long > 120)
        return full[0] if is_known else None


def is_overtaken(p, following):
    """[LATE] 6.4"""
    return p.was_lost or any(q.arrival_ns is not None and q.arrival_ns < p.arrival_ns for q in following)


class Count(namedtuple("Count", "received lost")):
    """Packets received and lost (9.1)."""

    @property
    def all(self):
        return self.received + self.lost

    def __add__(self, other):
        return Count(self.received + other.received, self.lost + other.lost)

    def __mul__(self, factor):
        return Count(self.received * factor, self.lost * factor)

    def lost_share(self):
        return clamp(self.lost / self.all, 0, 1) if self.all > 0 else 0

    def most_share(self):
        lost = max(self.lost, 0)
        return (lost + sqrt(lost)) / self.all if self.all > 0 else 0


NO_PACKETS = Count(0, 0)


def likelihood(high, low):
    r = low.all / max(high.all, 1)
    if r <= 0:
        return 0
    chance, own = r / (1 + r), (r / 3) / (1 + r / 3)
    return max(low.lost, 0) * log(own / chance) + high.lost * log((1 - own) / (1 - chance))


class Evidence:
    """Losses, and what arrives beside them (9.2)."""

    def __init__(self):
        self.reset()

    def reset(self, newest=0):
        self.counts = self.group = self.total = NO_PACKETS
        self.excess = self.size = self.time = self.messages = 0
        self.groups = self.packets = self.products = self.losses = 0
        self.newest = newest

    def observe(self, counts, least, m, needed):
        self.excess += counts.lost - least * counts.all
        if self.excess <= 0:
            self.reset(m.last_departure)
            return
        self.counts += counts
        self.group += counts
        if self.group.all >= 32:
            n, lost = self.group.all, self.group.lost
            self.total += self.group
            self.groups += 1
            self.packets += n * n
            self.products += n * lost
            self.losses += lost * lost
            self.group = NO_PACKETS
        if self.messages > 0 and m.last_departure > self.newest:
            self.size += m.size
            self.time += m.last_departure - self.newest
        self.messages += 1
        self.newest = max(self.newest, m.last_departure)
        if self.counts.lost > 2 * needed:
            for name in ("counts", "total", "groups", "packets", "products", "losses", "size", "time", "excess"):
                setattr(self, name, getattr(self, name) * 0.5)

    def rate(self):
        return self.size / self.time if self.time > 0 else None

    def dispersion(self):
        s = self.total.lost_share()
        i = s * (1 - s) * self.total.all
        if self.groups < 3 or i <= 0:
            return 1
        squares = self.losses - 2 * s * self.products + s * s * self.packets
        return clamp(squares / i * self.groups / (self.groups - 1), 1, 20)


class Bound:
    """A rate that losses without a queue bound (9.6)."""

    def __init__(self, rate, now):
        self.rate = self.most = self.same = rate
        self.since = self.clear_since = now
        self.excess = 0
        self.high = self.part = self.lossy = self.clean = NO_PACKETS
        self.dip_from = self.dip_until = now
        self.dip_low = self.dip_high = NO_PACKETS
        self.is_dip = False

    def rate_now(self):
        return self.rate * 0.8 if self.is_dip else self.rate

    def has_fallen(self):
        return self.rate <= 0.75 * self.most

    def dips(self, counts, sluice):
        """Whether a dip is on, or the message is of one."""
        begin, now = sluice.m.begin, sluice.now
        is_low = begin >= self.dip_from and (self.is_dip or begin < self.dip_until)
        if is_low:
            self.dip_low += counts
        else:
            self.dip_high = self.dip_high * (1 - min(counts.all / 400, 1)) + counts
        if self.is_dip and now >= self.dip_from + 0.5:
            self.is_dip, self.dip_until = False, now
            if self.dip_low.all > 200:
                self.dip_low, self.dip_high = self.dip_low * 0.5, self.dip_high * 0.5
        elif (not self.is_dip and not self.has_fallen() and self.dip_high.lost_share() < 0.1
              and now >= self.dip_until + 1):
            self.is_dip, self.dip_from = True, now
        return self.is_dip or is_low

    def observe(self, counts, dispersion, chance, is_own, sluice):
        """Whether the bound goes on."""
        params, now, u = sluice.params, sluice.now, sluice.rate
        self.part += counts
        if is_own and self.dips(counts, sluice):
            self.part, self.since = NO_PACKETS, now
            return True
        if self.has_ended(counts, dispersion, u, params):
            return False
        if not self.has_fallen():
            self.high = self.high * (1 - min(counts.all / (100 * dispersion), 1)) + counts
        if sluice.timing.newest < self.since or self.part.all < 1:
            return True
        beyond = self.part.lost / self.part.all - chance
        self.excess += (1 - exp(-self.part.all / 150)) * (beyond - self.excess)
        settled = params.answer_lost * clamp(1e6 / max(self.rate, 1), 0.4, 2)
        if self.excess > 0.5 * settled:
            self.clear_since = now
        c = now - self.clear_since
        growth = min(settled * (1 + c * c), params.answer_growth) if u * sluice.used > 0.85 * self.rate else 0
        moved = max(self.rate, u) * clamp(1 + growth - beyond / dispersion, 0.85, 1.5)
        self.rate = max(moved, min(max(self.rate, u), self.most * 0.7))
        self.most = max(self.most, self.rate)
        self.part, self.since = NO_PACKETS, now
        return now - self.clear_since < 10

    def has_ended(self, counts, dispersion, u, params):
        """Whether losses have ended at a rate that had them."""
        if (counts.lost > 0 and u > 1.25 * self.same) or u * 1.25 < self.same:
            self.same = u
            self.lossy = self.clean = NO_PACKETS
        if counts.lost > 0:
            left = 1 - min((counts + self.clean).all / 100, 1)
            self.lossy = self.lossy * left + self.clean + counts
            self.clean = NO_PACKETS
        else:
            self.clean += counts
        evidence = likelihood(self.lossy, self.clean) / dispersion
        return self.lossy.lost > 10 and evidence > 2 * params.answer_certainty


class Answer:
    """[ANSWER] Whether losses without a queue follow the rate (9)."""

    def __init__(self, sluice):
        self.sluice = sluice
        self.params = sluice.params
        self.evidence = Evidence()
        self.dispersion = self.chance = self.memory = self.updated = self.due = self.asked = self.passed_over = 0
        self.trial = self.bound = None
        self.is_own = False

    def observe(self):
        """9.3"""
        m, now = self.sluice.m, self.sluice.now
        counts = Count(m.received, m.lost - m.lost_waiting - m.revoked)
        self.updated = max(self.updated, now - 0.5)
        if self.sluice.is_competing:
            self.trial = self.bound = None
            self.evidence.reset()
            return FREE, None
        ended = None
        if self.trial is not None:
            ended = self.go_on(counts)
        else:
            self.watch(counts)
        self.updated = now
        if self.trial is not None:
            return TRIAL, self.trial.rate
        if ended is not None:
            return CHANCE, ended
        return (FREE, None) if self.bound is None else (OWN, self.bound.rate_now())

    def needed(self):
        return max(8 * self.dispersion, self.params.answer_losses)

    def is_enough(self):
        return self.evidence.messages >= 2 and self.evidence.counts.lost >= self.needed()

    def watch(self, counts):
        """9.4"""
        sluice, params, now = self.sluice, self.params, self.sluice.now
        elapsed = now - self.updated
        if self.bound is not None:
            goes_on = self.bound.observe(counts, self.dispersion, self.chance, self.is_own, sluice)
            if self.is_own and likelihood(self.bound.dip_high, self.bound.dip_low) > params.answer_certainty:
                self.chance = 0
            self.chance *= exp(-elapsed / self.memory)
            if not goes_on:
                self.bound = None
                self.is_own = False
        if sluice.view.standing.delay - sluice.queue.wanted > 0.05 or sluice.m.begin < self.passed_over:
            self.evidence.reset()
            return
        least = params.answer_share if self.bound is None else min(0.003, params.answer_share)
        self.evidence.observe(counts, least, sluice.m, self.needed())
        self.dispersion = max(self.evidence.dispersion(), 1 + (self.dispersion - 1) * exp(-elapsed / 60))
        if self.bound is not None:
            self.watch_bound()
            return
        high, arriving = self.evidence.counts, self.evidence.rate()
        is_known = high.lost_share() <= 2 * self.chance and now < self.due
        if high.lost_share() < params.answer_share or not self.is_enough() or is_known or arriving is None:
            return
        self.trial = State(
            rate=min(arriving * params.answer_depth, sluice.rate), before=sluice.rate, arrived=arriving, since=now,
            dispersion=self.dispersion, high=high, after=NO_PACKETS, low=NO_PACKETS)
        self.evidence.reset()

    def watch_bound(self):
        """9.4"""
        b, counts = self.bound, self.evidence.counts
        if not b.has_fallen():
            self.evidence.reset()
            return
        if not self.is_enough():
            return
        s = counts.lost_share()
        if s > 0.4:
            self.bound = Bound(lowest(self.evidence.rate(), b.rate), self.sluice.now)
        else:
            before = b.high.lost_share()
            left = max(1 - (1 - before) * 0.9 / 0.7, 0)
            if s < 0.5 * (before + left):
                b.most, b.high = b.rate, NO_PACKETS
                self.is_own = True
            else:
                self.chance = min(s, 0.05 if self.is_own else 0.4)
                self.memory = min(2 * self.memory, 240)
                self.free(1 if s > 0.1 else 0.5)
        self.evidence.reset()

    def go_on(self, counts):
        """9.5"""
        t, m, now, params = self.trial, self.sluice.m, self.sluice.now, self.params
        if m.begin < t.since:
            t.after = NO_PACKETS if m.lost > 0 else t.after + counts
            if likelihood(t.high, t.after) > params.answer_certainty:
                self.trial = None
                return t.before
            return None
        t.low += counts
        a = likelihood(t.high, t.low) / t.dispersion
        if -params.answer_doubt <= a <= params.answer_certainty and t.low.all <= 3 * t.high.all:
            return None
        self.trial = None
        self.memory = 30
        if a > 0.5 or (t.high + t.low).lost_share() > 0.4:
            self.chance = self.asked = 0
            self.is_own = True
            self.due = now + params.answer_interval
            self.bound = Bound(t.arrived, now)
            return None
        self.due = now + min(params.answer_interval * 2 ** self.asked, 64)
        self.asked = min(self.asked + 1, 8)
        self.chance = min(t.low.most_share(), 0.4)
        self.bound = Bound(t.before, now)
        self.free(1)
        return t.before

    def free(self, back):
        """9.6"""
        b, now = self.bound, self.sluice.now
        self.bound = Bound(b.rate + back * (b.most - b.rate), now)
        self.bound.clear_since = now - 2


class Competition:
    """[COMPETE] 11.2"""

    def __init__(self, sluice):
        self.sluice = sluice
        self.params = sluice.params
        self.contest = self.pressed_since = self.left = None
        self.lately = State(served=0, sent=0)
        self.cut_at = self.updated = self.peak = self.settled = self.banned_until = self.apart = 0

    def observe(self):
        """The rate, or none."""
        sluice, steady, now, lately = self.sluice, self.sluice.view.steady, self.sluice.now, self.lately
        departure = sluice.m.last_departure
        q = min(sluice.standing(0.07).delay, sluice.view.standing.delay)
        served = sent = source = None
        if steady is not None:
            served, sent = steady.rate, sluice.history.mean(steady.since, departure)
            source = served * (steady.busy / steady.sending) if steady.sending > 0 else None
        is_known = served is not None and sent is not None and served > 0 and sent > 0
        elapsed = clamp(now - self.updated, 0, 1)
        self.updated = now
        if is_known:
            k = exp(-elapsed / 0.5) if lately.served > 0 else 0
            self.lately = State(served=served + k * (lately.served - served), sent=sent + k * (lately.sent - sent))
        is_long = q > sluice.queue.wanted + self.params.compete_margin
        if self.contest is None:
            self.watch(q, is_long, departure, served)
        else:
            self.go_on(q, is_long, departure, (served, sent, source), is_known, elapsed)
        return None if self.contest is None else self.contest.rate

    def watch(self, q, is_long, departure, served):
        params, now, share = self.params, self.sluice.now, self.sluice.share
        if not (is_long and q > params.queue_most + params.compete_margin):
            self.apart, self.pressed_since = 0, None
            self.settled = self.settled + 0.05 * (share - self.settled) if self.settled > 0 else share
            return
        if self.pressed_since is None or q < 0.75 * self.peak:
            self.pressed_since, self.peak = None, q
        self.peak = max(self.peak, q)
        self.pressed_since = either(self.pressed_since, departure)
        if departure - self.pressed_since > params.compete_after and now > self.banned_until:
            is_again = self.left is not None and now - self.left.at < 10
            rate = max(self.left.rate if is_again else params.compete_share * self.settled, share)
            self.contest = State(
                rate=rate, begun=now, begun_with=self.lately, test_from=now + 0.15,
                test_before=served if served is not None and served > 0 else None, calm_since=None, served=[], sent=[])

    def fails(self, served, source):
        """Whether the link serves no more of more."""
        if served is None or source is None:
            return False
        before = self.contest.test_before
        is_shown = before is not None and source > 1.2 * before
        least = min(sqrt(source / before), 1.5) * before if is_shown else 0
        if served < max(least, 0.4 * source):
            return True
        if is_shown:
            self.contest.test_before = None
        return False

    def go_on(self, q, is_long, departure, rates, is_known, elapsed):
        served, sent, source = rates
        params, now, contest = self.params, self.sluice.now, self.contest
        rtt = either(self.sluice.rtt, self.sluice.timing.rtt)
        if departure > contest.test_from:
            is_first = contest.test_before is not None
            if self.fails(served, source):
                self.ban(8 * (now - contest.begun) if is_first else 0)
                return
            if now - contest.begun > 0.5 + rtt and self.is_apart():
                self.apart = min(self.apart + 1, 8)
                self.ban()
                return
        r = max(rtt, 0.01)
        if is_known:
            contest.served = [min(contest.served + [served]), max(contest.served + [served])]
            contest.sent = [min(contest.sent + [sent]), max(contest.sent + [sent])]
        if self.sluice.m.lost > 0 and q > self.sluice.queue.wanted and now - self.cut_at > r:
            contest.rate *= params.compete_decrease
            self.cut_at = now
            is_alone = False
            if contest.sent:
                x, y = (most / least - 1 for least, most in (contest.sent, contest.served))
                is_alone = x > 0.1 and y < 0.2 * x
            contest.served = contest.sent = []
            if is_alone:
                self.ban()
                return
        else:
            contest.rate += params.compete_increase * PACKET * elapsed / min(r, 0.5) ** 2
        if is_long:
            contest.calm_since = None
            return
        contest.calm_since = either(contest.calm_since, now)
        if now - contest.calm_since > params.compete_calm:
            self.left = State(at=now, rate=contest.rate)
            self.pressed_since = self.contest = None

    def is_apart(self):
        """Whether the service is this flow's own, whatever it sends."""
        before, lately = self.contest.begun_with, self.lately
        if before.served <= 0 or before.sent <= 0 or not lately.served < 0.75 * lately.sent:
            return False
        return lately.served / before.served - 1 < 0.2 * (lately.sent / before.sent - 1)

    def ban(self, least=0):
        self.banned_until = self.sluice.now + min(max(3 * 2 ** self.apart, least), 24)
        self.pressed_since = self.contest = None


class Sluice(Core):
    """The controller with all extensions."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.sampler = Sampler()
        self.requested = None
        self.l4s = State(alpha=0, updated=0)
        self.end_l4s()
        self.waiting = 0
        self.room = None
        self.flight = State(data=0, window=None, is_held=False)
        self.notice = State(capacity=0, at=0, exceeded=0, bound_from=0, hint_from=0)
        self.losses = Answer(self)
        self.competition = Competition(self)

    @property
    def is_competing(self):
        return self.competition.contest is not None

    def pass_over(self):
        """[ANSWER] 7.1"""
        self.losses.passed_over = self.now

    def find_answer(self):
        return self.losses.observe()

    def compete(self):
        return self.competition.observe()

    def internals(self):
        alpha = 0 if self.l4s.bound is None else self.l4s.alpha
        return dict(
            super().internals(), mark_alpha=alpha, answer_bound_bps=self.answer_bound(), chance=self.losses.chance,
            compete=int(self.is_competing))

    def on_request(self, now_ns, rate_bps):
        self.requested = rate_bps
        self.bound_anew(now_ns)

    def on_notice(self, now_ns, rate_bps):
        self.notice.capacity, self.notice.at = rate_bps, self.to_seconds(now_ns)
        self.bound_anew(now_ns)

    def on_coupled(self, now_ns, share):
        self.weight = clamp(share, 0.01, 1)

    def on_queue(self, now_ns, waiting):
        self.waiting = 8 * waiting
        self.bound_flight()

    # [STOP]

    def on_sent(self, now_ns, sequence, size):
        self.flight.data += 8 * size
        super().on_sent(now_ns, sequence, size)

    def on_feedback(self, now_ns, packets, in_flight, rtt_ns):
        super().on_feedback(now_ns, packets, in_flight, rtt_ns)
        self.bound_flight()

    def on_timeout(self, now_ns):
        super().on_timeout(now_ns)
        self.bound_flight()

    def bound_anew(self, now_ns):
        super().bound_anew(now_ns)
        self.bound_flight()

    def is_bounded(self):
        is_alone = not self.is_starting and not self.is_competing and self.view.bound is None
        return self.room is not None and is_alone

    def take_flight(self, in_flight):
        self.flight.data = 8 * in_flight
        self.room = self.sampler.room(self.now)

    def bound_flight(self):
        """15.3; the window in bytes is a floor of an eighth."""
        flight, timing = self.flight, self.timing
        is_full = flight.window is not None and flight.data >= 0.9 * flight.window
        flight.is_held = self.is_bounded() and (is_full or (flight.is_held and self.waiting > 0))
        flight.window = None
        if self.is_bounded():
            loop = either(timing.path, timing.rtt) + timing.interval
            time = loop + timing.lateness + self.queue.wanted + 0.02
            flight.window = max(max(self.rate, self.reference) * time, 4 * PACKET, 0.9 * self.room)

    def pacing(self):
        pacing = super().pacing()
        return max(pacing, self.rate + self.waiting / 0.1) if self.flight.is_held else pacing

    def media(self):
        """[ECN] [STOP] 15.2"""
        if self.view.bound is None and not self.flight.is_held:
            return self.rate
        return clamp(max(self.rate - self.waiting / 0.2, 0.5 * self.rate), self.floor, max(self.ceiling, self.floor))

    def end_silence(self):
        """[SILENCE] 7.1"""
        timing, m = self.timing, self.m
        timing.lateness *= exp(-max(self.now - timing.reported_at, 0) / 10)
        is_feedbacks = False
        if m.received > 4 * m.lost:
            late = self.now - self.awaited() - timing.rtt - timing.interval - m.most
            if late > timing.interval + 0.05:
                timing.lateness = max(timing.lateness, min(late, 0.5))
            is_feedbacks = late > m.most
        if self.before_silence is not None and is_feedbacks:
            self.set(self.before_silence, self.before_silence)
        self.before_silence = None

    def update_burst(self, newest, time, sent, allowed):
        """[BURST] 7.3"""
        use = self.use
        use.lasting += (1 - exp(-time / 5)) * ((use.burst > self.params.burst_least) - use.lasting)
        use.long_sent = use.long_sent * exp(-time / 3) + sent
        use.long_allowed = use.long_allowed * exp(-time / 3) + allowed
        before = self.history.mean(newest - 0.15, newest) * time
        if before / 1.25 <= allowed < before * 1.25:
            use.excess = use.excess * exp(-time / 0.3) + min(sent / allowed - 1, 100) * time
            use.burst += (1 - exp(-time / 2)) * (min(abs(use.excess), 0.2) - use.burst)
        else:
            use.excess = 0

    def end_l4s(self):
        """`alpha` and `updated` stay."""
        self.l4s = State(
            bound=None, alpha=self.l4s.alpha, updated=self.l4s.updated, knee=0, ask=0, asked_at=0, marked_at=0, cut_at=0,
            is_clear=False, cuts=0, marked=0, received=0, since=0)

    def update_l4s(self, marked):
        """[ECN] 8.6"""
        l4s, m, now, rate = self.l4s, self.m, self.now, self.rate
        newest = self.served(self.params.service_time_fall, self.params.fall_packets)
        shown = None if newest is None else newest.rate
        elapsed = clamp(now - l4s.updated, 0, 1)
        l4s.updated = now
        if l4s.bound is None:
            if marked > 0 and shown is not None and shown > 4e6:
                self.end_l4s()
                l4s = self.l4s
                l4s.bound = l4s.knee = min(rate, shown)
                l4s.marked_at = l4s.since = now
                self.show()
        else:
            self.move_bound(marked, shown, elapsed)
        self.view.bound = l4s.bound
        self.view.asked = None if l4s.bound is None else l4s.bound * (1 + l4s.ask)

    def show(self):
        """Packets sent from now on show what has changed."""
        l4s = self.l4s
        l4s.ask, l4s.asked_at, l4s.cut_at, l4s.is_clear = 0.03, self.now, self.now, False

    def move_bound(self, marked, shown, elapsed):
        l4s, m, now, rate = self.l4s, self.m, self.now, self.rate
        packet = PACKET / l4s.bound
        is_slow = shown is not None and shown < 4e6 and rate < 4e6
        is_other = now - l4s.marked_at > 10 or (marked == 0 and m.least > max(0.005, 3 * packet))
        if is_slow or is_other:
            l4s.bound = None
            return
        r = max(self.timing.rtt, 0.025)
        if 2 * rate > l4s.bound:
            l4s.bound += elapsed / r * (1 - marked / m.received) * self.weight * PACKET / r
        if marked > 0:
            l4s.marked_at = now
        if m.least > max(0.003, 2 * packet):
            l4s.bound = l4s.knee = lowest(l4s.bound, shown)
            self.show()
            return
        self.count_marks(marked)
        l4s.is_clear = l4s.is_clear or (marked == 0 and m.first_departure >= l4s.cut_at)
        if marked > 0:
            l4s.ask = 0.03
            if m.first_departure >= l4s.cut_at:
                l4s.knee = max(l4s.bound, (l4s.bound + l4s.knee) / 2)
                l4s.cuts = 1 if l4s.is_clear else l4s.cuts + 1
                rounds = clamp((now - l4s.cut_at) / r, 1, 2) if l4s.cuts > 2 else 1
                l4s.bound *= 1 - 0.5 * min(l4s.alpha * rounds, 1)
                self.show()
        elif m.first_departure >= l4s.asked_at and self.timing.newest - l4s.asked_at > 0.05 and rate > 0.95 * l4s.bound:
            is_past = l4s.bound > 1.05 * l4s.knee or (l4s.bound > l4s.knee and now - l4s.marked_at > 2)
            if is_past or (shown is not None and shown > 1.1 * l4s.bound):
                l4s.bound *= 1 + l4s.ask
                l4s.ask, l4s.asked_at = min(4 * l4s.ask, 1), now

    def count_marks(self, marked):
        l4s = self.l4s
        l4s.marked += marked
        l4s.received += self.m.received
        if self.timing.newest >= l4s.since:
            l4s.alpha += (l4s.marked / l4s.received - l4s.alpha) / 16
            l4s.marked, l4s.received, l4s.since = 0, 0, self.now

    # 14

    def bounded(self, rate):
        return max(lowest(rate, self.ceiling, self.requested, self.notice_bound()), self.floor)

    def is_noticed(self):
        return self.notice.capacity > 0 and self.now - self.notice.at <= 10

    def notice_bound(self):
        return 0.95 * self.notice.capacity if self.is_noticed() and self.now >= self.notice.bound_from else None

    def hint(self):
        return 0.9 * self.notice.capacity if self.is_noticed() and self.now >= self.notice.hint_from else 0

    def compare_notice(self):
        notice, view = self.notice, self.view
        if not self.is_noticed():
            return
        is_exceeded = view.capacity is not None and view.capacity > 1.25 * notice.capacity
        notice.exceeded += 0.1 * (is_exceeded - notice.exceeded)
        if notice.exceeded > 0.5:
            notice.bound_from = self.now + 10
            notice.exceeded = 0
        if view.standing.delay > self.queue.wanted + 0.05 and self.rate <= notice.capacity:
            notice.hint_from = self.now + 10
