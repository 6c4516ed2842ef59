// The sentences of a window's errors: which call, which window and rank, what became of it. They are made of what stays
// as it is while the window lives, so that any thread may ask.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "memory/apply.hpp"
#include "memory/atomicity.hpp"
#include "memory/stripes.hpp"
#include "transport/transport.hpp"

namespace farsum {

const char* call_name(OperationKind kind);
// "rank 3 of the job died", with what is known of it.
std::string fate_of(const Liveness* liveness, Rank rank);
// " after rank 3 of the job died" where another rank's death came before that of `dead`; else nothing. Tells the others
// of it.
std::string cause_of_death(const Liveness* liveness, Rank dead);
// What became of the rank whose end made a message fail, behind a colon; empty where none of `ranks` is known to be
// gone.
std::string name_the_dead(const Liveness* liveness, const std::vector<Rank>& ranks);
// What an owner's answer means, as part of a sentence.
const char* explain_code(Code code);

class WindowTexts {
 public:
  // `ranks` of the job by rank of the group; both references outlive it. `liveness` may be null.
  WindowTexts(WindowId id, const std::string& name, const std::vector<Rank>& ranks, const Liveness* liveness)
      : id_(id), name_(name), ranks_(ranks), liveness_(liveness) {}

  // "farsum_put: window 3 'name', rank 5", and the same without a rank.
  std::string where(const char* call, std::uint32_t target) const;
  std::string of_window(const char* call) const;
  // Why an epoch cannot begin or end.
  Status refuse(const char* call, const char* why) const;
  // What came of an operation under a stripe's lock, of a copy between processes, of what an owner was asked for.
  Status applied(Applied applied, const AtomicDomain& domain, std::uint64_t offset, const char* call,
                 std::uint32_t target) const;
  struct Moved {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    const std::string& missing;  // what of them is not there, as part of a sentence; may be empty
  };
  Status transferred(Transfer how, const char* call, std::uint32_t target, const Moved& moved) const;
  Status answered(std::uint32_t target, const char* call, Code code,
                  const char* whose = "the owner's agent answered") const;

 private:
  WindowId id_;
  const std::string& name_;
  const std::vector<Rank>& ranks_;
  const Liveness* liveness_;
};

}  // namespace farsum
