#include "transport/rdma/ucx_rdma.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace farsum {

// The lock of whoever calls in.
class UcxRdma::Inside {
 public:
  explicit Inside(UcxRdma& rdma) : rdma_(rdma), lock_(rdma.mutex_) {}
  ~Inside() { rdma_.take_in_ended(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  UcxRdma& rdma_;
  MutexGuard lock_;
};

Result<std::unique_ptr<UcxRdma>> UcxRdma::create(Options options) {
  options.card.ucx.use = UcxUse::memory;
  Parts parts;
  if (Status status = make(options, parts); !status.is_ok()) return status;
  return std::unique_ptr<UcxRdma>(new UcxRdma(options, std::move(parts)));
}

Status UcxRdma::make(const Options& options, Parts& parts) {
  auto library = UcxLibrary::load(options.library);
  if (!library.is_ok()) return library.take_status();
  parts.library = std::move(library.value());
  auto card = choose_card(*parts.library, options.card);
  if (!card.is_ok()) return card.take_status();
  parts.card = std::move(card.value());
  auto peers = UcxCardPeers::make(*parts.card, options.job.on_lost);
  if (!peers.is_ok()) return peers.take_status();
  parts.peers = std::move(peers.value());
  auto serving = UcxServing::make(*parts.card);
  if (!serving.is_ok()) return serving.take_status();
  parts.serving = std::move(serving.value());
  parts.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (parts.bell >= 0) return {};
  return {Code::system, fmt::format("cannot make an event descriptor: {}", std::strerror(errno))};
}

UcxRdma::UcxRdma(const Options& options, Parts parts)
    : library_(std::move(parts.library)),
      card_(std::move(parts.card)),
      serving_(std::move(parts.serving)),
      peers_(std::move(parts.peers)),
      exposed_(*card_, options.card.owners),
      waits_(*this, parts.bell, options.spin_ns),
      operations_(*card_, *peers_, waits_) {}

// UCX may call operations back while the worker that asks ends.
UcxRdma::~UcxRdma() {
  abandon();
  peers_.reset();
}

void UcxRdma::introduce(Rank peer, std::span<const std::byte> address) {
  const MutexGuard lock(mutex_);
  peers_->introduce(peer, address);
}

Rdma::Reached UcxRdma::reach(Rank peer, std::span<const std::byte> key) {
  const MutexGuard lock(mutex_);
  return peers_->reach(peer, key);
}

void UcxRdma::let_go(Reached memory) {
  const MutexGuard lock(mutex_);
  peers_->let_go(memory);
}

Status UcxRdma::put(Reached memory, std::uint64_t address, std::span<const std::byte> from,
                    CardCompletion& completion) {
  const Inside inside(*this);
  return operations_.put(memory, address, from, completion);
}

Status UcxRdma::get(Reached memory, std::uint64_t address, std::span<std::byte> into, CardCompletion& completion) {
  const Inside inside(*this);
  return operations_.get(memory, address, into, completion);
}

Status UcxRdma::update(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand) {
  const Inside inside(*this);
  return operations_.update(memory, word, update, operand);
}

Status UcxRdma::fetch(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
                      std::byte* result, CardCompletion& completion) {
  const Inside inside(*this);
  return operations_.fetch(memory, word, update, operand, compare, result, completion);
}

Status UcxRdma::flush(Rank peer, CardCompletion& completion) {
  const Inside inside(*this);
  return operations_.flush(peer, completion);
}

Status UcxRdma::fence(Rank peer) {
  {
    const Inside inside(*this);
    if (std::optional<Status> answer = operations_.fence(peer)) return std::move(*answer);
  }
  CardCompletion completion;
  Status status = flush(peer, completion);
  if (status.is_ok()) status = wait(completion, [] { return Status(); });
  if (!status.is_ok()) return status;
  // Relaxed: wait() has acquired it.
  if (completion.failure.load(std::memory_order_relaxed) == Code::ok) return {};
  return {Code::peer_failed, fmt::format("the card's connection to rank {} broke", peer)};
}

void UcxRdma::take_in_ended() {
  operations_.take_in_unfinished();
  peers_->close_broken();
}

// UCX works no more once the job is over.
unsigned UcxRdma::progress() {
  if (peers_->has_given_up()) return 0;
  const unsigned found = peers_->progress();
  take_in_ended();
  return found;
}

void UcxRdma::close_all() {
  peers_->give_up();
  for (int i = 0; i < most_closing_rounds; ++i) {
    if (operations_.under_way() == 0 && peers_->are_closed()) return;
    peers_->progress();
    take_in_ended();
  }
}

void UcxRdma::abandon() {
  const Inside inside(*this);
  if (peers_->has_given_up()) return;
  close_all();
  // UCX works no more from here on, so what it has not ended it does not touch either.
  operations_.end_all();
}

}  // namespace farsum
