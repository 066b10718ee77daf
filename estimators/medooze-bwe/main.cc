// The sender's bandwidth estimator of Medooze's media server behind Weir's `exec:` protocol in its binary form.
//
// It is called as the server's transport calls it: for each packet sent, each transport-wide feedback and each report block. The time is an
// argument of each function. Numbers are little-endian, and so has to be the machine.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "SendSideBandwidthEstimation.h"

namespace {

struct Head { uint32_t length, count; uint64_t turn; };
struct Event { uint8_t kind, flags; uint16_t small; uint32_t number; int64_t now_ns; };
struct Sent { uint64_t sequence, size, queued, in_flight; };
struct Packet { uint64_t sequence; int64_t sent_ns, arrived_ns; uint32_t size, probe, flags, unused; };
struct Body {
  uint32_t flags;
  uint16_t overhead_bytes;
  uint8_t repair[2];
  double media_bps, pacing_bps, padding_bps;
  uint64_t window_bytes;
  int64_t max_queue_age_ns, timer_ns;
};
static_assert(sizeof(Body) == 56 && sizeof(Packet) == 40);

enum Kind { SENT = 1, FEEDBACK = 2, REPORT = 3, RTCP = 8 };
// Bytes of an event of each kind, without a feedback's packets and the bytes of a datagram.
constexpr size_t SIZES[] = {0, 48, 32, 64, 24, 40, 32, 16, 16};
enum Carries { PADDING = 1, RETRANSMISSION = 3 };
constexpr uint32_t ARRIVED = 1;
constexpr uint32_t MOST = 64 << 20;
// The library takes times of zero for none.
constexpr int64_t ZERO_NS = 3600 * INT64_C(1000000000);
// Where a report block has its round-trip time, and its flag.
constexpr size_t RTT_AT = 56;

int64_t field(const std::string& line, const char* name) {
  const size_t at = line.find(name);
  if (at == std::string::npos) throw std::runtime_error(std::string("no ") + name);
  return std::strtoll(line.c_str() + at + std::strlen(name), nullptr, 10);
}

uint64_t us(int64_t ns) { return uint64_t((ZERO_NS + ns) / 1000); }

// By the version a packet is shared or a reference.
template <typename E>
auto pass(E& estimator, const PacketStats::shared& packet, int) -> decltype(estimator.SentPacket(packet)) {
  estimator.SentPacket(packet);
}
template <typename E>
auto pass(E& estimator, const PacketStats::shared& packet, long) -> decltype(estimator.SentPacket(*packet)) {
  estimator.SentPacket(*packet);
}

class Estimator : RemoteRateEstimator::Listener {
 public:
  explicit Estimator(int64_t start) : rate_(double(start)) { estimator_.SetListener(this); }

  void sent(const Event& e, const Sent& s) {
    const auto packet = std::make_shared<PacketStats>();
    packet->transportWideSeqNum = uint16_t(s.sequence);
    packet->size = uint32_t(s.size);
    packet->time = us(e.now_ns);
    packet->probing = e.small == PADDING;
    packet->rtx = e.small == RETRANSMISSION;
    pass(estimator_, packet, 0);
  }

  // The counter of a transport-wide feedback; the event made of it follows.
  void rtcp(const uint8_t* bytes, size_t length) {
    for (size_t at = 0; at + 4 <= length; at += 4 * (1 + size_t(bytes[at + 2] << 8 | bytes[at + 3])))
      if (bytes[at + 1] == 205 && (bytes[at] & 31) == 15 && at + 20 <= length) counter_ = bytes[at + 19];
  }

  void feedback(const Event& e, const std::vector<Packet>& packets) {
    std::map<uint32_t, uint64_t> times;
    for (const Packet& p : packets) {
      const uint64_t number = uint16_t(packets.front().sequence) + (p.sequence - packets.front().sequence);
      times[uint32_t(number)] = p.flags & ARRIVED ? us(p.arrived_ns) : 0;
    }
    estimator_.ReceivedFeedback(counter_, times, us(e.now_ns));
  }

  void round_trip(const Event& e, int64_t rtt_ns) { estimator_.UpdateRTT(us(e.now_ns), uint32_t(rtt_ns / 1000000)); }

  double rate() const { return rate_; }

 private:
  void onTargetBitrateRequested(uint32_t bitrate) override { rate_ = bitrate; }

  SendSideBandwidthEstimation estimator_;
  uint8_t counter_ = 0;
  double rate_;
};

template <typename T>
T read(const std::vector<char>& body, size_t at) {
  T out;
  if (at + sizeof out > body.size()) throw std::runtime_error("a turn is cut");
  std::memcpy(&out, body.data() + at, sizeof out);
  return out;
}

void take(Estimator& estimator, const std::vector<char>& body) {
  for (size_t at = 0; at < body.size();) {
    const Event e = read<Event>(body, at);
    if (e.kind == 0 || e.kind > RTCP) throw std::runtime_error("an event of an unknown kind");
    const size_t begin = at;
    at += SIZES[e.kind];
    if (e.kind == SENT) estimator.sent(e, read<Sent>(body, begin + sizeof e));
    if (e.kind == REPORT && e.flags & 1) estimator.round_trip(e, read<int64_t>(body, begin + RTT_AT));
    if (e.kind == RTCP) {
      if (at + e.number > body.size()) throw std::runtime_error("a turn is cut");
      estimator.rtcp(reinterpret_cast<const uint8_t*>(body.data() + at), e.number);
      at += (e.number + 7) / 8 * 8;
    }
    if (e.kind == FEEDBACK) {
      std::vector<Packet> packets(e.number);
      for (Packet& p : packets) p = read<Packet>(body, at), at += sizeof p;
      estimator.feedback(e, packets);
    }
  }
}

void call() {
  std::string line;
  for (int c; (c = std::getchar()) != EOF && c != '\n';) line.push_back(char(c));
  if (line.empty()) return;
  Estimator estimator(field(line, "\"start_bps\":"));
  std::printf("{\"turn\":0,\"media_bps\":%.17g,\"about\":{\"version\":2,\"name\":\"medooze-bwe " LIBRARY
              "\",\"form\":\"binary\",\"events\":[\"sent\",\"feedback\",\"report\",\"rtcp\"],\"answers\":[\"feedback\"]}}\n",
              estimator.rate());
  std::fflush(stdout);
  std::vector<char> body;
  for (Head head; std::fread(&head, sizeof head, 1, stdin) == 1;) {
    if (head.length > MOST) throw std::runtime_error("a turn is too long");
    body.resize(head.length);
    if (std::fread(body.data(), 1, body.size(), stdin) != body.size()) throw std::runtime_error("a turn is cut");
    take(estimator, body);
    Body out = {};
    out.media_bps = estimator.rate();
    const Head answer = {sizeof out, 0, head.turn};
    std::fwrite(&answer, sizeof answer, 1, stdout);
    std::fwrite(&out, sizeof out, 1, stdout);
    std::fflush(stdout);
  }
}

}  // namespace

int main() {
  try {
    call();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
