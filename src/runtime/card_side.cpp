#include "runtime/card_side.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace farsum {

void CardOffer::refuse(Code with, std::string_view because) noexcept {
  code = with;
  std::memcpy(why.data(), because.data(), std::min(because.size(), why.size() - 1));
}

std::string CardOffer::refusal() const { return {why.data(), strnlen(why.data(), why.size())}; }

CardParts::~CardParts() {
  for (const Rdma::Reached part : reached_) rdma_.let_go(part);
  if (is_exposed_) rdma_.conceal(own_);
}

Status CardParts::expose(std::byte* memory, std::uint64_t bytes) {
  Result<CardMemory> exposed = rdma_.expose(memory, bytes);
  if (!exposed.is_ok()) return exposed.take_status();
  own_ = std::move(exposed.value());
  is_exposed_ = true;
  return {};
}

CardOffer CardParts::offer() const {
  CardOffer offer;
  const std::span<const std::byte> address = rdma_.address();
  if (address.size() > offer.address.size() || own_.key.size() > offer.key.size()) {
    offer.refuse(Code::unsupported,
                 fmt::format("the card's address has {} bytes and its memory's key {}; {} and {} have room",
                             address.size(), own_.key.size(), offer.address.size(), offer.key.size()));
    return offer;
  }
  offer.memory = reinterpret_cast<std::uintptr_t>(own_.memory);
  offer.address_bytes = static_cast<std::uint32_t>(address.size());
  offer.key_bytes = static_cast<std::uint32_t>(own_.key.size());
  std::copy(address.begin(), address.end(), offer.address.begin());
  std::copy(own_.key.begin(), own_.key.end(), offer.key.begin());
  return offer;
}

void CardParts::reach(const std::vector<Rank>& ranks, const std::vector<CardOffer>& offers) {
  reached_.reserve(offers.size());
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const CardOffer& offer = offers[i];
    rdma_.introduce(ranks[i], std::span(offer.address).first(offer.address_bytes));
    reached_.push_back(rdma_.reach(ranks[i], std::span(offer.key).first(offer.key_bytes)));
    addresses_.push_back(offer.memory);
  }
}

Result<Rdma*> CardSide::open() {
  const MutexGuard lock(opening_);
  if (rdma_ != nullptr) return rdma_.get();
  if (!refusal_.is_ok()) return Status(refusal_.code(), refusal_.text());
  RdmaOptions options;
  options.rank = parts_.rank;
  options.on_lost = parts_.on_lost;
  Result<std::unique_ptr<Rdma>> opened = open_rdma(options, *parts_.settings);
  refusal_ = opened.is_ok() ? parts_.started(*opened.value()) : opened.take_status();
  if (!refusal_.is_ok()) return Status(refusal_.code(), refusal_.text());
  rdma_ = std::move(opened.value());
  return rdma_.get();
}

void CardSide::abandon() {
  const MutexGuard lock(opening_);
  if (rdma_ != nullptr) rdma_->abandon();
}

}  // namespace farsum
