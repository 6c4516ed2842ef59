// One UCP context: which transports and devices Farsum's workers may use, with a configuration that the job's own UCX
// variables cannot turn against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "transport/ucx/ucx_text.hpp"

struct ucp_context;

namespace farsum {

struct UcxCalls;
class UcxLibrary;

enum class UcxUse : std::uint8_t {
  messages,
  memory,  // that others put to, get from and update
};

struct UcxOptions {
  std::string transports = "^shm,self";  // UCX's TLS: ranks of one node never meet here
  std::string devices = "all";           // UCX's NET_DEVICES
  UcxUse use = UcxUse::messages;
  // Of memory:
  bool short_words = true;     // atomics on 4 bytes are wanted too
  bool is_infiniband = false;  // UCX warns of what is set for it where it is none
};

class UcxContext {
 public:
  // The library must outlive the context. Fails with Code::system, saying what was asked of UCX and what it answered.
  static Result<std::unique_ptr<UcxContext>> create(const UcxLibrary& library, const UcxOptions& options);
  ~UcxContext();
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;

  const UcxCalls& calls() const { return calls_; }
  ucp_context* handle() const { return handle_; }
  const std::vector<UcxResource>& resources() const { return resources_; }
  // Whether an endpoint may ask to be told of its peer's end: UCX's transports for one machine cannot.
  bool tells_of_failures() const;
  // Whether nothing of it leaves the machine, so that the processor does what a card would.
  bool stays_within_a_machine() const;
  // The network devices, each once.
  std::vector<std::string> devices() const;
  bool has_infiniband() const;
  // The transports and devices, as users name them: "tcp/eth0, tcp/lo".
  std::string description() const;
  // Whether UCX can destroy a worker some of whose own messages have not left: before 1.14 an assertion ends the
  // process where an answer waits for a connection that is still being made.
  bool ends_unfinished_workers() const { return ends_unfinished_workers_; }
  // UCX keeps it until the process ends: a worker of it was not destroyed.
  void leave() { is_left_ = true; }
  // The longest message that stays in one fragment whichever of the resources carries it.
  std::size_t piece_bytes() const;

 private:
  UcxContext(const UcxCalls& calls, ucp_context* handle) : calls_(calls), handle_(handle) {}

  const UcxCalls& calls_;
  ucp_context* handle_;
  bool ends_unfinished_workers_ = true;
  bool is_left_ = false;
  std::vector<UcxResource> resources_;
};

}  // namespace farsum
