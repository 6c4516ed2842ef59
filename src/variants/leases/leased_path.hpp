// Caller-computes at targets of other nodes, where no lock is held over the network: runs one LeasedUpdate after the
// other and waits for it.
#pragma once

#include <memory>

#include "protocol/origin/engine.hpp"
#include "transport/transport.hpp"
#include "window/executor.hpp"

namespace farsum {

class LeasedPath final : public Executor {
 public:
  // Both outlive it.
  LeasedPath(OriginEngine& engine, Transport& transport, const ExecutorServices& services)
      : engine_(engine), transport_(transport), services_(services) {}

  // An atomic operation; complete on return.
  Status run(const ExecutorCall& call) override;

 private:
  OriginEngine& engine_;
  Transport& transport_;
  ExecutorServices services_;
};

// Both outlive the window.
inline MakeExecutor make_leased_path(OriginEngine& engine, Transport& transport) {
  return [&engine, &transport](const ExecutorServices& services) {
    return std::make_unique<LeasedPath>(engine, transport, services);
  };
}

}  // namespace farsum
