// The clock of mediasoup's worker: here that of the simulation.
#pragma once
#include <cstdint>

struct DepLibUV {
  static inline int64_t now_ms = 0;
  static uint64_t GetTimeMs() { return uint64_t(now_ms); }
  static int64_t GetTimeMsInt64() { return now_ms; }
};
