#pragma once
#include <absl/strings/string_view.h>

namespace absl {
inline bool StartsWith(string_view text, string_view begin) { return text.substr(0, begin.size()) == begin; }
}  // namespace absl
