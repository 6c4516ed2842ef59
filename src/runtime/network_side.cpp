#include "runtime/network_side.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "protocol/messages.hpp"
#include "runtime/link_models.hpp"

namespace farsum {
namespace {

// Lists the addresses of the devices that are up, but for the loopback; as many as there is room for.
void list_hosts(std::span<std::uint32_t> hosts) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  std::size_t count = 0;
  for (const ifaddrs* at = list; at != nullptr && count < hosts.size(); at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP) continue;
    hosts[count++] = reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr;
  }
  freeifaddrs(list);
}

}  // namespace

Status NetworkSide::start() {
  const MutexGuard lock(starting_);
  if (network_ == nullptr) {
    if (Status status = open(); !status.is_ok()) return status;
  }
  return refusal_.is_ok() ? Status() : Status(refusal_.code(), refusal_.text());
}

Status NetworkSide::open() {
  NetworkOptions options;
  options.rank = parts_.rank;
  options.ranks = parts_.ranks;
  options.secret = parts_.secret;
  options.on_lost = [this](Rank rank, const std::string& why) {
    parts_.remote_nodes->lose(rank, why);
    parts_.watch->declare_dead(rank);
  };
  options.on_hand_over = parts_.look_after;
  Result<std::unique_ptr<Network>> opened = open_network(options, *parts_.settings);
  if (!opened.is_ok()) return opened.take_status();
  network_ = std::move(opened.value());
  parts_.route->add_network(*network_);
  // Release: whoever finds it finds it whole.
  running_.store(network_.get(), std::memory_order_release);
  refusal_ = parts_.started(*network_);
  return {};
}

NetworkCard NetworkSide::refusal(const Status& why) const {
  NetworkCard card;
  card.rank = parts_.rank;
  card.node = parts_.node;
  card.code = why.code();
  std::memcpy(card.address.data(), why.text().data(), std::min(why.text().size(), card.address.size() - 1));
  return card;
}

NetworkCard NetworkSide::card() {
  if (Status status = start(); !status.is_ok()) return refusal(status);
  NetworkCard card = versioned_card();
  card.rank = parts_.rank;
  card.node = parts_.node;
  card.machine = own_machine_number();
  list_hosts(card.hosts);
  const std::span<const std::byte> address = network_->address();
  if (address.size() > card.address.size()) {
    return refusal({Code::unsupported,
                    fmt::format("the network's address of this rank has {} bytes; {} have room (fewer transports in "
                                "FARSUM_NET_TLS make it shorter)",
                                address.size(), card.address.size())});
  }
  card.address_bytes = static_cast<std::uint32_t>(address.size());
  std::memcpy(card.address.data(), address.data(), address.size());
  return card;
}

Status NetworkSide::introduce(std::span<const NetworkCard> cards) {
  // One after the other: the hosts that are let in become more only.
  const MutexGuard lock(introducing_);
  for (const NetworkCard& card : cards) {
    if (has_own_layout(card) && parts_.remote_nodes->reaches(card.rank)) continue;
    if (std::string refusal = refusal_of(card, parts_.ranks); !refusal.empty())
      return {Code::unsupported, std::move(refusal)};
  }
  if (Status status = start(); !status.is_ok()) return status;
  std::vector<const NetworkCard*> strangers;
  std::vector<std::uint32_t> hosts = parts_.remote_nodes->hosts();
  // Nodes of one host that differ in their names only.
  hosts.push_back(htonl(INADDR_LOOPBACK));
  for (const NetworkCard& card : cards) {
    if (parts_.remote_nodes->reaches(card.rank)) continue;
    strangers.push_back(&card);
    std::copy_if(card.hosts.begin(), card.hosts.end(), std::back_inserter(hosts),
                 [](std::uint32_t host) { return host != 0; });
  }
  if (strangers.empty()) return {};
  if (Status status = network_->let_in_only(hosts); !status.is_ok()) return status;
  for (const NetworkCard* card : strangers) {
    network_->introduce(card->rank, std::span(card->address).first(card->address_bytes));
    parts_.remote_nodes->add(*card);
  }
  return {};
}

// The network tells the agent each time: those who looked after it since the last are the ones who go to sleep now.
void NetworkSide::hand_over() {
  if (Network* const network = this->network()) network->hand_over();
}

void NetworkSide::look_after() {
  Network* const network = this->network();
  if (network == nullptr) return;
  network->tick();
  parts_.engine->progress_unattended();
  parts_.waiters->notify_all();
}

bool NetworkSide::is_unattended(Network::Threads threads) const {
  Network* const network = this->network();
  return network != nullptr && network->is_unattended(threads);
}

std::uint64_t NetworkSide::next_deadline_ns() const {
  Network* const network = this->network();
  return network == nullptr ? Network::never : network->next_deadline_ns();
}

void NetworkSide::close(RequestHandler& handler) {
  if (Network* const network = this->network()) network->close(handler);
}

// ---- how the ranks of other nodes are ----

void NetworkSide::take_answer(Question& question) {
  parts_.engine->progress(question.rank);
  if (!question.is_open || !question.state.done.load(std::memory_order_acquire)) return;
  question.is_open = false;
  std::uint32_t dead = 0;
  std::memcpy(&dead, question.answer.data(), sizeof dead);
  if (question.state.code.load(std::memory_order_relaxed) != Code::ok || dead == 0) return;
  parts_.remote_nodes->lose(dead - 1, "it died, as its node tells");  // unless another reason is known
  parts_.watch->declare_dead(dead - 1);
}

// One rank of each node at a time, as often as it takes for a link's silence to be noticed in time.
void NetworkSide::ask_remote_nodes() {
  const std::uint64_t timeout_ns = parts_.settings->net_timeout_s * 1'000'000'000;
  if (network() == nullptr || timeout_ns == 0 || !asking_.try_lock()) return;
  const MutexGuard lock(asking_, std::adopt_lock);
  for (Question& question : questions_) take_answer(question);
  if (monotonic_ns() - asked_at_ns_ < timeout_ns / 6) return;
  asked_at_ns_ = monotonic_ns();
  network()->expect_receipts();
  const std::vector<Rank> ranks = parts_.remote_nodes->one_of_each_node();
  for (std::size_t at = questions_.size(); at < ranks.size(); ++at) questions_.emplace_back(ranks[at]);
  for (Question& question : questions_) {
    if (question.is_open) continue;
    question.state.done.store(false, std::memory_order_relaxed);
    wire::MessageHeader header;
    header.kind = wire::MessageKind::life;
    question.is_open = parts_.engine->submit_control(question.rank, header, {}, question.outstanding, &question.state,
                                                     question.answer);
  }
}

}  // namespace farsum
