// The logging of mediasoup's worker, without its log. Errors are the callers' to see.
#pragma once
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#define MS_DEBUG_TAG(...)
#define MS_DEBUG_DEV(...)
#define MS_WARN_TAG(...)
#define MS_WARN_DEV(...)
#define MS_DUMP(...)
#define MS_ERROR(...) (std::fprintf(stderr, __VA_ARGS__), std::fputc('\n', stderr))
#define MS_THROW_ERROR(text, ...) throw std::runtime_error(text)
#define MS_ASSERT(condition, ...)                            \
  do {                                                       \
    if (!(condition)) MS_ERROR(__VA_ARGS__), std::abort();   \
  } while (false)
