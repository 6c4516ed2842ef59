#include "transport/rdma/ucx_rdma.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/rdma/ucx_rdma_parts.hpp"
#include "transport/rdma/ucx_trial.hpp"
#include "transport/ucx/ucx_calls.hpp"
#include "transport/ucx/ucx_operations.hpp"
#include "transport/ucx/ucx_sealed.hpp"

namespace farsum {
namespace {

constexpr std::size_t trial_bytes = 262'144;

// What precedes UCX's own key.
struct KeyHead {
  std::uint64_t address;
  std::uint64_t bytes;
};

}  // namespace

UcxRdma::UcxRdma(Options options) : options_(std::move(options)) {}

Result<std::unique_ptr<UcxRdma>> UcxRdma::create(Options options) {
  options.ucx.use = UcxUse::memory;
  std::unique_ptr<UcxRdma> rdma(new UcxRdma(std::move(options)));
  if (Status status = rdma->open(); !status.is_ok()) return status;
  return rdma;
}

Status UcxRdma::open() {
  auto library = UcxLibrary::load(options_.library);
  if (!library.is_ok()) return library.take_status();
  library_ = std::move(library.value());
  if (Status refused = choose_card(); !refused.is_ok()) return refused;
  return make_workers();
}

Status UcxRdma::look_first() const {
  if (options_.first_look.empty()) return {};
  UcxOptions options = options_.ucx;
  options.transports = options_.first_look;
  auto context = UcxContext::create(*library_, options);
  if (!context.is_ok()) return {Code::unsupported, context.take_status().text()};
  const auto& found = context.value()->resources();
  if (std::any_of(found.begin(), found.end(), [](const UcxResource& one) { return one.transport != "tcp"; })) return {};
  return {Code::unsupported,
          fmt::format("UCX {} finds no card that reaches memory by itself: there is only {}, and over TCP the owner's "
                      "program does what a card would",
                      library_->version_text(), context.value()->description())};
}

// One card, for cards of one host are not atomic to each other: the first that does it all.
Status UcxRdma::choose_card() {
  if (Status refused = look_first(); !refused.is_ok()) return refused;
  auto context = UcxContext::create(*library_, options_.ucx);
  if (!context.is_ok()) return {Code::unsupported, context.take_status().text()};
  if (options_.owners == Owners::looked_after) {
    context_ = std::move(context.value());
    description_ = context_->description();
    return {};
  }
  UcxOptions options = options_.ucx;
  options.is_infiniband = context.value()->has_infiniband();
  std::vector<std::string> devices = context.value()->devices();
  if (devices.empty()) devices.push_back(options.devices);
  context.value().reset();
  std::string refusals;
  for (const std::string& device : devices) {
    options.devices = device;
    for (const bool short_words : {true, false}) {
      options.short_words = short_words;
      const Status refused = try_out(options);
      if (refused.is_ok()) return {};
      if (refused.code() != Code::unsupported) return {refused.code(), refused.text()};
      if (short_words) refusals += (refusals.empty() ? "" : "; ") + refused.text();
    }
  }
  return {Code::unsupported,
          fmt::format("UCX {} finds no card that reaches memory by itself: {}", library_->version_text(), refusals)};
}

Status UcxRdma::try_out(const UcxOptions& options) {
  auto context = UcxContext::create(*library_, options);
  if (!context.is_ok()) return {Code::unsupported, context.take_status().text()};
  auto memory = UcxMemory::map(*context.value(), nullptr, trial_bytes);
  if (!memory.is_ok()) return memory.take_status();
  auto tried =
      try_everything(*context.value(), memory.value(), options.short_words ? UcxWords::of_4_and_8 : UcxWords::of_8);
  if (!tried.is_ok()) return tried.take_status();
  memory.value() = {};
  context_ = std::move(context.value());
  updates_short_words_ = options.short_words;
  fetches_bits_ = tried.value().fetches_bits;
  confirms_ = !context_->stays_within_a_machine();
  const UcxResource& card = tried.value().card;
  tells_lanes_ = !card.transport.empty();
  description_ = tells_lanes_ ? fmt::format("{}/{}", card.transport, card.device) : context_->description();
  return {};
}

Status UcxRdma::make_workers() {
  bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell_ < 0) return {Code::system, fmt::format("cannot make an event descriptor: {}", std::strerror(errno))};
  auto asking = make_worker(*context_);
  if (!asking.is_ok()) return asking.take_status();
  asking_ = std::move(asking.value());
  auto serving = make_worker(*context_);
  if (!serving.is_ok()) return serving.take_status();
  serving_ = std::move(serving.value());
  address_ = sealed(UcxSeal::address, serving_.address);
  if (address_.size() > most_address_bytes) {
    return {Code::unsupported,
            fmt::format("UCX: an address over {} has {} bytes, and {} are the most; fewer devices in "
                        "FARSUM_NET_DEVICES make it shorter",
                        description_, address_.size(), most_address_bytes)};
  }
  return {};
}

UcxRdma::~UcxRdma() {
  abandon();
  for (const auto& [id, memory] : reached_) {
    if (memory->key != nullptr) context_->calls().rkey_destroy(memory->key);
  }
  exposed_.clear();
  if (asking_.handle != nullptr) end_worker(*context_, asking_);
  if (serving_.handle != nullptr) end_worker(*context_, serving_);
  if (bell_ >= 0) ::close(bell_);
}

Result<std::vector<std::byte>> UcxRdma::key_of(const UcxMemory& memory) const {
  const KeyHead head{reinterpret_cast<std::uintptr_t>(memory.bytes().data()), memory.bytes().size()};
  const auto* begin = reinterpret_cast<const std::byte*>(&head);
  std::vector<std::byte> content(begin, begin + sizeof head);
  if (head.bytes != 0) {
    auto key = memory.key();
    if (!key.is_ok()) return key.take_status();
    content.insert(content.end(), key.value().begin(), key.value().end());
  }
  std::vector<std::byte> whole = sealed(UcxSeal::key, content);
  if (whole.size() > most_key_bytes) {
    return Status(Code::unsupported, fmt::format("UCX: a key to memory over {} has {} bytes, and {} are the most",
                                                 context_->description(), whole.size(), most_key_bytes));
  }
  return whole;
}

Result<CardMemory> UcxRdma::expose(std::byte* memory, std::uint64_t bytes) {
  Exposed exposed;
  if (bytes != 0) {
    auto mapped = UcxMemory::map(*context_, memory, bytes);
    if (!mapped.is_ok()) return mapped.take_status();
    exposed.memory = std::move(mapped.value());
    if (options_.owners == Owners::idle) {
      // The memory is only read: the program may be writing to its own.
      auto tried = try_reading(*context_, exposed.memory);
      if (!tried.is_ok()) {
        return Status(
            Code::unsupported,
            fmt::format("{} does not reach {} bytes of {} by itself: {}", description_, bytes,
                        memory == nullptr ? "its own memory" : "the program's memory", tried.take_status().text()));
      }
    }
    memory = exposed.memory.bytes().data();
  }
  auto key = key_of(exposed.memory);
  if (!key.is_ok()) return key.take_status();
  exposed.told = {memory, bytes, std::move(key.value())};
  const std::lock_guard<std::mutex> lock(exposing_);
  exposed_.push_back(std::move(exposed));
  return exposed_.back().told;
}

void UcxRdma::conceal(const CardMemory& memory) {
  const std::lock_guard<std::mutex> lock(exposing_);
  const auto found = std::find_if(exposed_.begin(), exposed_.end(), [&memory](const Exposed& exposed) {
    return exposed.told.memory == memory.memory && exposed.told.key == memory.key;
  });
  if (found != exposed_.end()) exposed_.erase(found);
}

void UcxRdma::introduce(Rank peer, std::span<const std::byte> address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& known = peers_[peer];
  if (known) return;
  known = std::make_unique<Peer>(*this, peer);
  if (const auto content = unsealed(UcxSeal::address, address)) known->address.assign(content->begin(), content->end());
}

Rdma::Reached UcxRdma::reach(Rank peer, std::span<const std::byte> key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto memory = std::make_unique<Memory>();
  const auto known = peers_.find(peer);
  memory->rank = peer;
  memory->peer = known == peers_.end() ? nullptr : known->second.get();
  const auto content = unsealed(UcxSeal::key, key);
  KeyHead head{};
  if (content && content->size() >= sizeof head) {
    std::memcpy(&head, content->data(), sizeof head);
    memory->is_valid = true;
    memory->begin = head.address;
    memory->bytes = head.bytes;
    memory->packed.assign(content->begin() + sizeof head, content->end());
  }
  reached_.emplace(next_reached_, std::move(memory));
  return next_reached_++;
}

void UcxRdma::let_go(Reached memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = reached_.find(memory);
  if (found == reached_.end()) return;
  if (found->second->key != nullptr) context_->calls().rkey_destroy(found->second->key);
  reached_.erase(found);
}

}  // namespace farsum
