// The plain link of the twins, and what is written of each flow: one drop-tail queue, one capacity at a time, one propagation delay
// each way, no loss. Exact in time, in whole microseconds; sums of one instant are taken after its events.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using Micros = int64_t;
constexpr double kMicros = 1e6;
// UDP's and IPv4's header, which the link carries and the programs do not count.
constexpr int kBelowRtp = 28;

// Arguments, each NAME=VALUE.
class Arguments {
 public:
  Arguments(int count, char** given) {
    for (int i = 1; i < count; i++) {
      std::string argument = given[i];
      size_t equals = argument.find('=');
      if (equals == std::string::npos) {
        std::fprintf(stderr, "argument %d, `%s`, is not NAME=VALUE\n", i, given[i]);
        std::exit(2);
      }
      values_[argument.substr(0, equals)] = argument.substr(equals + 1);
    }
  }
  double number(const std::string& name, double otherwise) const {
    auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::atof(found->second.c_str());
  }
  // Numbers between commas; `A:B` has the second after the first.
  std::vector<double> numbers(const std::string& name) const {
    std::vector<double> all;
    auto found = values_.find(name);
    if (found == values_.end()) return all;
    std::string text = found->second;
    std::replace(text.begin(), text.end(), ':', ',');
    std::stringstream cells(text);
    for (std::string cell; std::getline(cells, cell, ',');) all.push_back(std::atof(cell.c_str()));
    return all;
  }

 private:
  std::map<std::string, std::string> values_;
};

// The clock and the events to come; those of one instant in the order in which they were set.
class Events {
 public:
  Micros now = 0;
  void at(Micros time, std::function<void()> then) { queue_.push({time, count_++, std::move(then)}); }
  void run(Micros end) {
    while (!queue_.empty() && queue_.top().time <= end) {
      auto then = queue_.top().then;
      now = queue_.top().time;
      queue_.pop();
      then();
    }
  }
  // Behind what this instant still causes.
  void last(std::function<void()> then, int behind = 4) {
    if (behind == 0) return then();
    at(now, [this, then, behind] { last(then, behind - 1); });
  }

 private:
  struct Event {
    Micros time;
    int64_t number;
    std::function<void()> then;
    bool operator<(const Event& o) const { return time != o.time ? time > o.time : number > o.number; }
  };
  std::priority_queue<Event> queue_;
  int64_t count_ = 0;
};

// A link of packets P, which have `wire`, their bytes on it.
template <class P>
class Link {
 public:
  Link(Events& events, const Arguments& a, std::function<void(P)> arrive)
      : events_(events), arrive_(std::move(arrive)), queue_bytes_(a.number("queue_bytes", 75000)), queue_ms_(a.number("queue_ms", 0)) {
    auto steps = a.numbers("rate");
    for (size_t i = 0; i + 1 < steps.size(); i += 2) steps_.push_back({steps[i] * kMicros, steps[i + 1]});
  }
  void send(P packet) {
    double limit = queue_ms_ > 0 ? rate() * queue_ms_ / 8e3 : queue_bytes_;
    if (bytes_ + packet.wire > limit) return;
    bytes_ += packet.wire;
    queue_.push_back(std::move(packet));
    if (queue_.size() == 1) serve();
  }

 private:
  double rate() const {
    double now = 2e6;
    for (auto& [from, rate] : steps_)
      if (events_.now >= from) now = rate;
    return now;
  }
  // The packet in transmission counts as queued.
  void serve() {
    Micros takes = std::llround(queue_.front().wire * 8 * kMicros / rate());
    events_.at(events_.now + takes, [this] {
      P packet = std::move(queue_.front());
      queue_.pop_front();
      bytes_ -= packet.wire;
      arrive_(std::move(packet));
      if (!queue_.empty()) serve();
    });
  }
  Events& events_;
  std::function<void(P)> arrive_;
  std::deque<P> queue_;
  double bytes_ = 0;
  double queue_bytes_, queue_ms_;
  std::vector<std::pair<double, double>> steps_;
};

// Means over half seconds of one flow, as in the recordings of twins/.
struct Row {
  double target = 0, payload = 0, delay = 0, delay_max = 0;
  int targets = 0, packets = 0;
  void arrived(double payload_bytes, Micros delay_us) {
    payload += payload_bytes;
    delay += delay_us / 1e3;
    delay_max = std::max(delay_max, delay_us / 1e3);
    packets++;
  }
};

// Writes the rows of flows F, which have `start`, `row` and `target()`. Targets are sampled each 50 ms.
template <class F>
void record(Events& events, std::vector<F*> flows) {
  constexpr Micros kRow = 500000, kSample = 50000;
  std::printf("time_s,flow,target_bps,goodput_bps,delay_ms,delay_max_ms\n");
  struct Recorder {
    Events& events;
    std::vector<F*> flows;
    void sample() {
      for (F* f : flows)
        if (events.now > f->start) f->row.target += f->target(), f->row.targets++;
      if (events.now % kRow == 0) write();
      events.at(events.now + kSample, [this] { events.last([this] { sample(); }); });
    }
    void write() {
      for (size_t i = 0; i < flows.size(); i++) {
        if (events.now <= flows[i]->start) continue;
        Row& r = flows[i]->row;
        int packets = std::max(1, r.packets);
        std::printf("%.1f,%zu,%.0f,%.0f,%.1f,%.1f\n", events.now / kMicros, i, r.target / std::max(1, r.targets),
                    r.payload * 8 * kMicros / kRow, r.delay / packets, r.delay_max);
        r = Row();
      }
    }
  };
  auto* recorder = new Recorder{events, std::move(flows)};
  events.at(kSample, [recorder] { recorder->events.last([recorder] { recorder->sample(); }); });
}
