// Debian's NWChem as one case: water's energy and frequencies, the whole command from start to end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/lab.hpp"

namespace bench {

class NwchemWater {
 public:
  // `folder` holds farsum.
  NwchemWater(std::string folder, std::int64_t cap_ms);
  ~NwchemWater();
  NwchemWater(const NwchemWater&) = delete;
  NwchemWater& operator=(const NwchemWater&) = delete;

  // Whether this machine has a build for the library.
  [[nodiscard]] static bool is_here(const std::string& library);

  struct Run {
    std::optional<double> seconds;  // empty: it ended badly, or with a wrong energy
    std::string reason;             // why
    std::string errors;
  };
  // `through`: the words by which each rank is started.
  [[nodiscard]] Run run(const std::string& library, Side side, int ranks, const std::vector<std::string>& through);

 private:
  [[nodiscard]] Outcome start(const std::string& library, Side side, int ranks,
                              const std::vector<std::string>& through) const;
  // The energy of one rank without Farsum, which sends nothing to anybody.
  [[nodiscard]] double reference();

  std::string folder_;
  std::int64_t cap_ms_;
  std::string scratch_;
  std::optional<double> reference_;
};

}  // namespace bench
