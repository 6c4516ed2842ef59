// Ranks as forked processes of a test, started as the launcher starts them: with FARSUM_RANK, FARSUM_SIZE and a node
// descriptor. What a rank expects is expected with gtest in its own process; the test fails when any rank's process
// does.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "farsum.h"

namespace farsum::test {

using Variables = std::map<std::string, std::string>;

struct Job {
  int ranks = 2;
  Variables settings;              // of all ranks
  std::vector<Variables> of_rank;  // on top, by rank; may be shorter
  bool starts = true;              // farsum_init before and farsum_finalize after the body
};

// Runs `body(rank)` in a process of each rank and waits for all.
void run_ranks(const Job& job, const std::function<void(int rank)>& body);
inline void run_ranks(int ranks, const std::function<void(int rank)>& body) {
  Job job;
  job.ranks = ranks;
  run_ranks(job, body);
}

// Of the world; called by a rank.
void barrier();

// The setting that chooses a path.
inline Variables path(const char* name) { return {{"FARSUM_PATH", name}}; }

// An object that the test's process and all its ranks see.
template <class Object>
class SharedWithRanks {
  static_assert(std::is_trivially_destructible_v<Object>);

 public:
  SharedWithRanks()
      : object_(new (mmap(nullptr, sizeof(Object), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                    Object{}) {}
  ~SharedWithRanks() { munmap(object_, sizeof(Object)); }
  SharedWithRanks(const SharedWithRanks&) = delete;
  SharedWithRanks& operator=(const SharedWithRanks&) = delete;
  Object& operator*() const { return *object_; }
  Object* operator->() const { return object_; }

 private:
  Object* object_;
};

// The sanitizer for undefined behaviour stops at values that need more bits than an enumeration of C++ has; C has no
// such limit.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool enumerators_may_be_unknown = false;
#else
inline constexpr bool enumerators_may_be_unknown = true;
#endif

// A number that is no enumerator, as a C program may pass it.
template <class Enum>
Enum unknown(int value) {
  static_assert(sizeof(Enum) == sizeof(int));
  Enum result;
  std::memcpy(&result, &value, sizeof value);
  return result;
}

// The status's name and, where it is a failure, the sentence.
std::string said(farsum_status status);

}  // namespace farsum::test

// A call that must go well, with what Farsum says where it does not.
#define EXPECT_FINE(call)                                                                  \
  do {                                                                                     \
    const farsum_status fine_status = (call);                                              \
    EXPECT_EQ(fine_status, FARSUM_OK) << #call << ": " << farsum::test::said(fine_status); \
  } while (false)
#define ASSERT_FINE(call)                                                                  \
  do {                                                                                     \
    const farsum_status fine_status = (call);                                              \
    ASSERT_EQ(fine_status, FARSUM_OK) << #call << ": " << farsum::test::said(fine_status); \
  } while (false)
// A call that must be refused with this status and a sentence that matches.
#define EXPECT_REFUSED(call, status, sentence)                          \
  do {                                                                  \
    const farsum_status refused_status = (call);                        \
    EXPECT_STREQ(farsum_status_name(refused_status), #status) << #call; \
    if (refused_status != FARSUM_OK) {                                  \
      EXPECT_THAT(farsum_last_error(), sentence) << #call;              \
    }                                                                   \
  } while (false)
