// The rows of `farsum info --paths`.
#include "cli/info/info_paths.hpp"

#include <fmt/format.h>

namespace farsum::cli {

namespace {

constexpr const char* bulk_moves = "put, get";
constexpr const char* bulk_sums = "accumulate of many elements";
constexpr const char* atomics = "fetch_op, compare_and_swap, accumulate of one element";

constexpr const char* under_locks = "; done under the owner's stripe locks";
constexpr const char* agent_is_faster =
    "the owner's agent needs less time than copies by the kernel (farsum info --model)";

bool attach_works(const PathFacts& facts) {
  return facts.settings.attach != Permission::refuse && facts.attach.allowed_on_ask;
}

std::string why_attach(const PathFacts& facts) {
  if (facts.settings.attach == Permission::refuse) return "FARSUM_ATTACH=refuse is set";
  if (facts.attach.allowed) {
    return facts.yama < 0 ? "the kernel copies between processes of one user (no Yama here)"
                          : "the kernel copies between processes of one user";
  }
  if (facts.attach.allowed_on_ask) {
    return fmt::format("the kernel copies once the owner has allowed it, which Farsum does (Yama ptrace_scope {})",
                       facts.yama);
  }
  return fmt::format("the kernel refuses process_vm_readv between ranks ({}{})", facts.attach.refusal,
                     facts.yama > 0 ? fmt::format(", Yama ptrace_scope {}", facts.yama) : "");
}

void add_allocated(std::vector<PathRow>& rows) {
  rows.push_back({"allocated", "all", "direct", "every rank of the node has it mapped (memory file)"});
}

void add_adopted(const PathFacts& facts, std::vector<PathRow>& rows) {
  const char* memory = "adopted, dynamic";
  const std::string why = why_attach(facts);
  if (attach_works(facts)) {
    const bool bulk_by_copies = facts.model.user_bulk == cost::Way::attach;
    rows.push_back({memory, bulk_moves, cost::name_of(facts.model.user_bulk), bulk_by_copies ? why : agent_is_faster});
    rows.push_back({memory, bulk_sums, cost::name_of(facts.model.user_bulk),
                    bulk_by_copies ? why + under_locks : agent_is_faster});
    rows.push_back({memory, atomics, cost::name_of(facts.model.user_single),
                    facts.model.user_single == cost::Way::attach ? why + under_locks : agent_is_faster});
    return;
  }
  rows.push_back({memory, "all", "owner", why + "; data goes in messages to the owner's agent"});
}

void add_promoted(const PathFacts& facts, std::vector<PathRow>& rows) {
  const char* memory = "adopted, promoted";
  if (facts.settings.promotion == PromotionChoice::refuse) {
    rows.push_back({memory, "all", "-", "never promoted: FARSUM_PROMOTION=refuse is set"});
    return;
  }
  std::string threads = "with the program's other threads held meanwhile";
  if (facts.settings.hold_threads == Permission::refuse) {
    threads = "if the program has no other threads: FARSUM_HOLD_THREADS=refuse is set";
  } else if (!facts.held_threads_refusal.empty()) {
    threads = "if the program has no other threads, which cannot be held: " + facts.held_threads_refusal;
  }
  rows.push_back({memory, "all, on whole pages", "direct",
                  fmt::format("private anonymous pages from {} bytes are made shared in place while that pays, {}",
                              facts.settings.promote_least_bytes, threads)});
  rows.push_back({memory, "all, on its first and last page", "as adopted", "other data may lie on these pages"});
}

}  // namespace

std::vector<PathRow> explain_paths(const PathFacts& facts) {
  std::vector<PathRow> rows;
  add_allocated(rows);
  add_adopted(facts, rows);
  add_promoted(facts, rows);
  return rows;
}

std::string forced_path_note(const Settings& settings) {
  if (settings.path == PathChoice::automatic) return {};
  return fmt::format("FARSUM_PATH={} is set: that path is taken wherever the memory allows it, and the above elsewhere",
                     name_of(settings.path));
}

}  // namespace farsum::cli
