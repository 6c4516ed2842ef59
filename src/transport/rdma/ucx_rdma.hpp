// Memory of other ranks over UCX. One worker asks, driven by whoever waits, under one lock; another serves, driven by
// the agent, so that the ends of this rank's own operations do not wake its agent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "os/event_count.hpp"
#include "transport/rdma.hpp"
#include "transport/rdma/ucx_memory.hpp"
#include "transport/ucx/ucx_bare_worker.hpp"
#include "transport/ucx/ucx_context.hpp"
#include "transport/ucx/ucx_library.hpp"

struct ucp_ep;
struct ucp_rkey;

namespace farsum {

struct UcxEnd;

class UcxRdma final : public Rdma {
 public:
  enum class Owners : std::uint8_t {
    idle,          // what they expose is reached while they do nothing, or create() fails
    looked_after,  // tests: over what has UCX do it in the owner's look_after()
  };
  struct Options {
    RdmaOptions job;
    UcxOptions ucx;
    // More transports: where UCX finds but TCP among them, the others are not asked for, of whose lack it would
    // complain.
    std::string first_look;
    std::string library;  // FARSUM_UCX_LIBRARY
    std::uint64_t spin_ns = 20'000;
    Owners owners = Owners::idle;
  };

  static Result<std::unique_ptr<UcxRdma>> create(Options options);
  ~UcxRdma() override;

  std::string description() const override { return description_; }
  std::span<const std::byte> address() const override { return address_; }
  Result<CardMemory> expose(std::byte* memory, std::uint64_t bytes) override;
  void conceal(const CardMemory& memory) override;

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
  Status wait(const CardCompletion& completion, FunctionRef<Status()> look) override;
  int descriptor() const override { return serving_.event_descriptor; }
  Result<bool> arm() override;
  void look_after() override;
  void abandon() override;

 private:
  struct Peer;
  struct Memory;
  struct Operation;
  struct Callbacks;
  struct Exposed {
    CardMemory told;
    UcxMemory memory;
  };
  class Inside;

  explicit UcxRdma(Options options);
  Status open();
  Status look_first() const;
  Status choose_card();
  Status try_out(const UcxOptions& options);
  Status make_workers();
  Result<std::vector<std::byte>> key_of(const UcxMemory& memory) const;

  Status find(Reached memory, std::uint64_t address, std::uint64_t bytes, Memory*& found);
  Status find_word(Reached memory, CardWord word, Memory*& found);
  Status prepare(Memory& memory);
  Status connect(Peer& peer);
  Status look_at_lanes(Peer& peer) const;
  Operation& take(Peer& peer, CardCompletion* completion);
  template <class Start>
  Status begin(Operation& operation, Start start);
  template <class Start>
  Status begin_counted(Operation& operation, Start start);
  void end(Operation& operation, bool went_well);
  void note_broken(Peer& peer, const std::string& why);
  void close(Peer& peer);
  void confirm(Operation& operation);
  static bool has_answer(const Operation& operation);
  void* compare_until_known(Operation& operation, UcxEnd end);
  void compare_again(Operation& operation);
  void take_in_ended();
  void close_all();
  unsigned progress();

  bool spin(const CardCompletion& completion);
  Status sleep(const CardCompletion& completion, FunctionRef<Status()> look);
  void nap(const CardCompletion& completion);
  void watch(const CardCompletion& completion);
  bool doze(const CardCompletion& completion);

  const Options options_;
  std::unique_ptr<UcxLibrary> library_;
  std::unique_ptr<UcxContext> context_;
  UcxBareWorker asking_;
  std::vector<std::byte> address_;  // sealed
  std::string description_;
  bool updates_short_words_ = true;
  bool fetches_bits_ = true;  // by itself
  bool tells_lanes_ = false;  // what UCX prints of an endpoint is understood
  bool confirms_ = false;     // a card's word that it wrote is not enough: the owner's loads might come before
  int bell_ = -1;             // wakes the watcher

  std::mutex serving_mutex_;
  UcxBareWorker serving_;

  std::mutex exposing_;  // orders what is exposed; UCX sees to its own
  std::vector<Exposed> exposed_;

  // Guards what follows, and every call to UCX for the worker that asks.
  std::mutex mutex_;
  std::unordered_map<Rank, std::unique_ptr<Peer>> peers_;
  std::unordered_map<Reached, std::unique_ptr<Memory>> reached_;
  Reached next_reached_ = 1;
  std::list<Operation> operations_;  // never shrinks: as many as were ever under way at once
  std::vector<Operation*> free_operations_;
  // These wait until UCX has returned: operations that need another step, endpoints to be closed.
  std::vector<Operation*> unfinished_;
  std::vector<Peer*> broken_;
  std::size_t under_way_ = 0;
  bool abandoned_ = false;
  // One of those who sleep does so on UCX's descriptor, the others until something has ended.
  bool is_watched_ = false;
  bool watcher_sleeps_ = false;

  EventCount ended_;  // changes with every operation that is over, and when the watcher leaves
};

}  // namespace farsum
