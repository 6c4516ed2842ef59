// What UcxRdma keeps of peers, their memory and operations; for its own files.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "transport/rdma/ucx_rdma.hpp"
#include "transport/ucx/ucx_operations.hpp"

namespace farsum {

struct UcxRdma::Peer {
  Peer(UcxRdma& owner, Rank number) : rdma(owner), rank(number) {}

  UcxRdma& rdma;
  const Rank rank;
  std::vector<std::byte> address;  // empty: what was introduced is none
  ucp_ep* endpoint = nullptr;
  std::string refusal;  // why cards alone do not reach it
  std::string broken;   // why; empty: it is not
  bool is_one_lane = false;
  // How many operations were started, and how many of them a flush has seen through.
  std::uint64_t started = 0, confirmed = 0;
  bool closing = false;
  bool closed = false;
};

struct UcxRdma::Memory {
  Rank rank = 0;
  Peer* peer = nullptr;
  bool is_valid = false;  // what was given was a key
  std::uint64_t begin = 0, bytes = 0;
  std::vector<std::byte> packed;
  ucp_rkey* key = nullptr;
};

// UCX reads and writes the words here, so that the caller's are not touched after abandon().
struct UcxRdma::Operation {
  Peer* peer = nullptr;
  CardCompletion* completion = nullptr;  // may be null
  std::byte* result = nullptr;           // may be null
  std::uint8_t result_bytes = 0;
  bool is_under_way = false;
  bool is_flush = false;
  std::uint64_t flushes = 0;  // so many of the peer's operations
  // What follows is of a fetch that is done by comparing until what was there is known.
  bool compares = false;
  UcxReached reached;
  UcxWord word{};
  std::uint64_t change = 0;  // its operand

  std::uint64_t operand = 0;  // compared: what is taken to be there
  std::uint64_t reply = 0;
};

// The lock of whoever calls in.
class UcxRdma::Inside {
 public:
  explicit Inside(UcxRdma& rdma) : rdma_(rdma), lock_(rdma.mutex_) {}
  ~Inside() { rdma_.take_in_ended(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  UcxRdma& rdma_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace farsum
