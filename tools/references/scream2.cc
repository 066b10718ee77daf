// Flows of Ericsson's SCReAM, version 2, over the link: the library's sender and receiver with frames of the target's size. Arguments as
// goog_cc.cc's, without padding. Its clock has steps of 1/65,536 s.
#include <memory>

#include "RtpQueue.h"
#include "ScreamRx.h"
#include "ScreamTx.h"
#include "plain_link.h"

// The library's queue frees discarded packets by this function of the program's; packets have no contents here.
void packet_free(void*, uint32_t) {}

namespace {
constexpr Micros kFrame = 40000;    // 25 a second
constexpr int kFrameShare = 200;    // bits per byte, times frames a second
constexpr int kPayload = 1000;      // bytes of a packet's payload at most
constexpr int kRtp = 12;            // bytes of RTP's header
constexpr uint32_t kSsrc = 10;
constexpr Micros kOrigin = 1000000;  // the library takes zero for "not set"
// Between looks for feedback that is due by time.
constexpr Micros kLook = 1000;
constexpr int kReportBytes = 2000;

Events events;
uint32_t ntp() { return uint32_t((events.now + kOrigin) * 65536 / 1000000); }
float seconds() { return float((events.now + kOrigin) / kMicros); }

struct Packet {
  int flow = 0;
  int size = 0;
  int wire = 0;
  uint16_t number = 0;
  bool marker = false;
  uint32_t timestamp = 0;
  Micros sent = 0;
};

class Flow {
 public:
  const Micros start;
  Row row;
  Flow(int id, Micros start, Micros extra, const Arguments& a, Link<Packet>& link)
      : start(start), id_(id), delay_(Micros(a.number("delay_ms", 100) * 1e3) + extra), link_(link), receiver_(kSsrc + 1) {
    sender_.registerNewStream(&queue_, kSsrc, 1.0f, a.number("floor", 150e3), a.number("start_rate", 300e3), a.number("ceiling", 3e6));
    events.at(start, [this] {
      frame();
      look();
    });
  }
  double target() { return target_; }
  void arrive(Packet p) {
    events.at(events.now + delay_, [this, p] {
      row.arrived(p.size - kRtp, events.now - p.sent);
      receiver_.receive(ntp(), nullptr, kSsrc, p.size, p.number, 0, p.marker, p.timestamp);
      report();
    });
  }

 private:
  void frame() {
    target_ = sender_.getTargetBitrate(ntp(), kSsrc);
    int bytes = 0;
    uint32_t timestamp = uint32_t(events.now * 9 / 100);
    for (int left = std::max(1, int(target_ / kFrameShare)); left > 0; left -= kPayload) {
      int size = std::min(left, kPayload) + kRtp;
      queue_.push(nullptr, size, kSsrc, number_++, left <= kPayload, seconds(), timestamp);
      bytes += size;
    }
    queue_.setSizeOfLastFrame(bytes);
    sender_.newMediaFrame(ntp(), kSsrc, bytes, true);
    events.at(events.now + kFrame, [this] { frame(); });
    pump();
  }
  void wake_in(float after) {
    Micros time = events.now + std::max<Micros>(20, Micros(after * kMicros));
    wake_ = time;
    events.at(time, [this, time] {
      if (wake_ == time) pump();
    });
  }
  void pump() {
    wake_ = -1;
    uint32_t ssrc = 0;
    float after = sender_.isOkToTransmit(ntp(), ssrc);
    while (after == 0) {
      Packet p;
      void* contents = nullptr;
      float waited = queue_.getDelay(seconds());
      if (!queue_.sendPacket(&contents, p.size, ssrc, p.number, p.marker, p.timestamp)) return;
      p.flow = id_;
      p.sent = events.now;
      p.wire = p.size + kBelowRtp;
      link_.send(p);
      after = sender_.addTransmitted(ntp(), kSsrc, p.size, p.number, p.marker, waited, p.timestamp);
      if (after == 0) after = sender_.isOkToTransmit(ntp(), ssrc);
    }
    if (after > 0) wake_in(after);
  }
  void look() {
    report();
    events.at(events.now + kLook, [this] { look(); });
  }
  // Feedback as in the library's own simulation (scream_v_a.cpp).
  void report() {
    bool due = ntp() - receiver_.getLastFeedbackT() > receiver_.getRtcpFbInterval() || receiver_.checkIfFlushAck();
    std::vector<unsigned char> bytes(kReportBytes);
    int size = 0;
    if (!receiver_.isFeedback(ntp()) || !due || !receiver_.createStandardizedFeedback(ntp(), false, bytes.data(), size)) return;
    events.at(events.now + delay_, [this, bytes, size]() mutable {
      sender_.incomingStandardizedFeedback(ntp(), bytes.data(), size);
      pump();
    });
  }

  int id_;
  Micros delay_;
  Link<Packet>& link_;
  RtpQueue queue_;
  ScreamV2Tx sender_;
  ScreamRx receiver_;
  double target_ = 0;
  uint16_t number_ = 0;
  Micros wake_ = -1;
};
}  // namespace

int main(int count, char** given) {
  Arguments a(count, given);
  std::vector<Flow*> flows;
  Link<Packet> link(events, a, [&](Packet p) { flows[p.flow]->arrive(p); });
  auto extra = a.numbers("extra_ms");
  for (int i = 0; i < a.number("flows", 1); i++) {
    Micros start = Micros(a.number("stagger_s", 0) * i * kMicros) + Micros(a.number("later", 0)) * i * kFrame;
    flows.push_back(new Flow(i, start, i < int(extra.size()) ? Micros(extra[i] * 1e3) : 0, a, link));
  }
  record(events, flows);
  events.run(Micros(a.number("duration_s", 120) * kMicros));
}
