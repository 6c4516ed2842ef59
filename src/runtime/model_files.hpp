// Files that measurements leave and jobs read: what holds for all of them, whatever is in them.
#pragma once

#include <optional>
#include <string>

#include "base/status.hpp"

namespace farsum {

// Of a file no longer than any of ours: its beginning, if it is longer. Nothing where it cannot be read.
std::optional<std::string> read_model_text(const std::string& path);
// Makes the folder where there is none. Whoever reads meanwhile has the old file or the new one, whole.
Status write_model_text(const std::string& folder, const std::string& path, const std::string& text);

}  // namespace farsum
