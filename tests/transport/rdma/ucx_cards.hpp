// Cards of UCX for tests: ranks of one process, with a thread for each that looks after them as its agent would.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/rdma/ucx_rdma.hpp"
#include "transport/ucx/two_workers.hpp"

namespace farsum {

class CardAgent {
 public:
  explicit CardAgent(Rdma& card) : card_(card), end_(eventfd(0, EFD_CLOEXEC)), thread_([this] { run(); }) {}
  ~CardAgent() {
    eventfd_write(end_, 1);
    thread_.join();
    close(end_);
  }
  CardAgent(const CardAgent&) = delete;
  CardAgent& operator=(const CardAgent&) = delete;

 private:
  void run() {
    std::array<pollfd, 2> both = {{{end_, POLLIN, 0}, {card_.descriptor(), POLLIN, 0}}};
    while (both[0].revents == 0) {
      card_.look_after();
      const auto armed = card_.arm();
      if (armed.is_ok() && !armed.value()) continue;
      poll(both.data(), both.size(), -1);
    }
  }

  Rdma& card_;
  const int end_;
  std::thread thread_;
};

// Over TCP, where UCX does in the owner's look_after() what a card would do.
inline UcxRdma::Options cards_over(const std::string& transports) {
  UcxRdma::Options options;
  options.card.ucx.transports = transports;
  options.library = ucx_library_for_tests();
  if (transports == "tcp") options.card.owners = UcxOwners::looked_after;
  return options;
}

inline constexpr auto nothing_to_look_for = [] { return Status(); };

}  // namespace farsum
