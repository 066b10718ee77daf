// A packet that has been sent, without the library's packets of RTP, and the names that its headers take from others of its own.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>

#define Log(...)
#define Warning(...)
#define UltraDebug(...)
#define FD_INVALID -1

struct PacketStats {
  using shared = std::shared_ptr<PacketStats>;
  uint32_t transportWideSeqNum = 0, size = 0;
  uint64_t time = 0;
  bool mark = false, rtx = false, probing = false;
};
