// Memory of other ranks over UCX: it joins the parts, and knows which of them are one thread's at a time. One worker
// asks, driven by whoever waits, under one lock; another serves, driven by the agent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/thread_mutex.hpp"
#include "transport/rdma.hpp"
#include "transport/rdma/card_waits.hpp"
#include "transport/rdma/ucx_card.hpp"
#include "transport/rdma/ucx_card_operations.hpp"
#include "transport/rdma/ucx_card_peers.hpp"
#include "transport/rdma/ucx_exposed.hpp"
#include "transport/rdma/ucx_serving.hpp"
#include "transport/ucx/ucx_library.hpp"

namespace farsum {

class UcxRdma final : public Rdma, private CardWork {
 public:
  struct Options {
    RdmaOptions job;
    UcxCardWish card;
    std::string library;  // FARSUM_UCX_LIBRARY
    std::uint64_t spin_ns = 20'000;
  };

  static Result<std::unique_ptr<UcxRdma>> create(Options options);
  ~UcxRdma() override;

  std::string description() const override { return card_->description; }
  std::span<const std::byte> address() const override { return serving_->address(); }
  Result<CardMemory> expose(std::byte* memory, std::uint64_t bytes) override { return exposed_.expose(memory, bytes); }
  void conceal(const CardMemory& memory) override { exposed_.conceal(memory); }

  void introduce(Rank peer, std::span<const std::byte> address) override;
  Reached reach(Rank peer, std::span<const std::byte> key) override;
  void let_go(Reached memory) override;

  Status put(Reached memory, std::uint64_t address, std::span<const std::byte> from,
             CardCompletion& completion) override;
  Status get(Reached memory, std::uint64_t address, std::span<std::byte> into, CardCompletion& completion) override;
  Status update(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand) override;
  Status fetch(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
               std::byte* result, CardCompletion& completion) override;
  Status fence(Rank peer) override;
  Status flush(Rank peer, CardCompletion& completion) override;
  Status wait(const CardCompletion& completion, FunctionRef<Status()> look) override {
    return waits_.wait(completion, look);
  }
  int descriptor() const override { return serving_->descriptor(); }
  Result<bool> arm() override { return serving_->arm(); }
  void look_after() override { serving_->look_after(); }
  void abandon() override;

 private:
  struct Parts {
    std::unique_ptr<UcxLibrary> library;
    std::unique_ptr<const UcxCard> card;
    std::unique_ptr<UcxServing> serving;
    std::unique_ptr<UcxCardPeers> peers;
    int bell = -1;
  };
  class Inside;

  UcxRdma(const Options& options, Parts parts);
  static Status make(const Options& options, Parts& parts);
  void take_in_ended();
  void close_all();

  // CardWork's.
  ThreadMutex& asking_mutex() override { return mutex_; }
  unsigned progress() override;
  bool arm_asking() override { return peers_->arm(); }
  int asking_descriptor() const override { return peers_->descriptor(); }

  const std::unique_ptr<UcxLibrary> library_;
  const std::unique_ptr<const UcxCard> card_;
  const std::unique_ptr<UcxServing> serving_;
  // Guards peers and operations, and so every call to UCX for the worker that asks.
  ThreadMutex mutex_;
  std::unique_ptr<UcxCardPeers> peers_;
  UcxExposed exposed_;
  CardWaits waits_;
  UcxCardOperations operations_;
};

}  // namespace farsum
