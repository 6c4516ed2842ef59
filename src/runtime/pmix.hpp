// The little of PMIx that wire-up needs, and the cards' way through it. The library is found at run time
// (pmix_client.cpp) and nothing of it is seen outside; where its headers were missing at build time, pmix_absent.cpp
// says so.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"

namespace farsum {

// A connection to the launcher's PMIx server, which ends with the object. No call waits longer than it is told to.
class Pmix {
 public:
  using Patience = std::chrono::milliseconds;
  Pmix() = default;
  Pmix(const Pmix&) = delete;
  Pmix& operator=(const Pmix&) = delete;
  virtual ~Pmix() = default;

  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  virtual Status publish(const std::string& key, const void* data, std::size_t bytes) = 0;
  // Waits until every rank of the job has come here; pending when some have not in time.
  virtual Status fence(Patience patience) = 0;
  // What a rank has published; empty when nothing, or not in time.
  virtual std::vector<std::byte> look_up(std::uint32_t rank, const std::string& key, Patience patience) = 0;
};

// unsupported where there is no PMIx library, system when its server does not answer.
Result<std::unique_ptr<Pmix>> open_pmix(const Settings& settings);

// Such as "OpenPMIx 4.2.2", or why there is none.
std::string describe_pmix(const Settings& settings);

// Gathers everybody's bytes in rank order, as often as all ranks ask for it. Names the ranks that did not come.
class PmixExchange {
 public:
  PmixExchange(std::unique_ptr<Pmix> pmix, Pmix::Patience patience) : pmix_(std::move(pmix)), patience_(patience) {}
  Status gather(const void* mine, void* all, std::size_t bytes);

 private:
  std::unique_ptr<Pmix> pmix_;
  Pmix::Patience patience_;
  std::uint32_t round_ = 0;
};

}  // namespace farsum
