#include "transport/sim/sim_transport.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "transport/sim/sim_world.hpp"

namespace farsum {

namespace {

constexpr std::uint32_t no_channel = 0xffff'ffff;

// A caller of the simulator broke the transport contract: the run has no meaning from here on.
void require(bool condition, const char* sentence) {
  if (condition) return;
  std::fprintf(stderr, "farsum simulator: %s\n", sentence);
  std::abort();
}

}  // namespace

struct SimTransport::Request {
  enum class State : std::uint8_t { flying, arrived, deferred, replied, ready, handed_over };
  State state = State::flying;
  Code code = Code::ok;
  std::size_t message_bytes = 0;
  std::size_t reply_bytes = 0;
  std::vector<std::byte> storage;  // the message, then room for the reply

  std::span<const std::byte> message() const { return {storage.data(), message_bytes}; }
  std::span<std::byte> reply_room() { return {storage.data() + message_bytes, storage.size() - message_bytes}; }
  bool awaits_reply() const { return state == State::flying || state == State::arrived || state == State::deferred; }
};

// The requests of one sender to one receiver that are not handed back yet, oldest first.
struct SimTransport::Channel {
  Rank from = 0;
  Rank to = 0;
  std::deque<Request> requests;
  std::uint64_t first_ticket = 0;  // of requests.front()
  std::uint64_t next_to_arrive = 0;
  std::uint64_t next_to_serve = 0;
  std::deque<std::uint64_t> ready;  // tickets whose replies have come, in that order
  std::size_t held_messages = 0;
  std::size_t held_bytes = 0;
  std::deque<std::vector<std::byte>> letters;  // that the receiver was not handed yet
  SimTime last_arrival_ns = 0;
  SimTime last_letter_ns = 0;
  SimTime last_reply_ns = 0;
  bool is_put_off = false;  // the next request to serve was answered `again`
  bool is_cut = false;      // the sender died; what still flies is lost

  std::uint64_t next_ticket() const { return first_ticket + requests.size(); }
  Request& at(std::uint64_t ticket) { return requests[ticket - first_ticket]; }
};

// A transfer under way.
struct SimTransport::Copy {
  Rank peer = 0;
  std::uint64_t remote_address = 0;
  std::byte* into = nullptr;        // of a read
  const std::byte* from = nullptr;  // of a write
  std::size_t bytes = 0;
  std::uint64_t cookie = 0;
  Transfer how = Transfer::done;
};

SimTransport::SimTransport(SimWorld& world, Rank rank) : world_(world), rank_(rank) {}
SimTransport::~SimTransport() = default;

Capabilities SimTransport::capabilities(Rank /*peer*/) const {
  const SimOptions& options = world_.options();
  return {.transfers = options.transfers,
          .late_replies = options.late_replies,
          .separate_replies = true,
          .keeps = options.keeps,
          .max_message_bytes = options.max_message_bytes,
          .max_reply_bytes = options.max_reply_bytes,
          .max_letter_bytes = options.max_letter_bytes};
}

SimTransport::Channel* SimTransport::find_channel_to(Rank peer) const {
  if (peer >= out_index_.size() || out_index_[peer] == no_channel) return nullptr;
  return out_[out_index_[peer]].get();
}

SimTransport::Channel& SimTransport::channel_to(Rank peer) {
  if (Channel* const known = find_channel_to(peer)) return *known;
  if (out_index_.empty()) out_index_.assign(world_.rank_count(), no_channel);
  out_index_[peer] = static_cast<std::uint32_t>(out_.size());
  out_.push_back(std::make_unique<Channel>());
  Channel& channel = *out_.back();
  channel.from = rank_;
  channel.to = peer;
  world_.transport(peer).in_.push_back(&channel);
  return channel;
}

std::optional<std::uint64_t> SimTransport::try_post(Rank peer, std::span<const std::byte> head,
                                                    std::span<const std::byte> body, const PostOptions& options) {
  const SimOptions& limits = world_.options();
  const std::size_t message_bytes = head.size() + body.size();
  const std::size_t bytes = message_bytes + options.reply_capacity;
  if (peer >= world_.rank_count()) return std::nullopt;
  if (message_bytes > limits.max_message_bytes || options.reply_capacity > limits.max_reply_bytes) return std::nullopt;
  Channel& channel = channel_to(peer);
  if (channel.held_messages + 1 > limits.pair_messages || channel.held_bytes + bytes > limits.pair_bytes)
    return std::nullopt;

  Request request;
  request.message_bytes = message_bytes;
  request.storage.resize(bytes);
  if (!head.empty()) std::memcpy(request.storage.data(), head.data(), head.size());
  if (!body.empty()) std::memcpy(request.storage.data() + head.size(), body.data(), body.size());
  const std::uint64_t ticket = channel.next_ticket();
  channel.requests.push_back(std::move(request));
  ++channel.held_messages;
  channel.held_bytes += bytes;
  send_request(channel, ticket);
  return ticket;
}

void SimTransport::send_request(Channel& channel, std::uint64_t ticket) {
  if (!world_.is_alive(channel.to)) {
    send_reply(channel, channel.at(ticket), ticket, Code::peer_failed, 0, world_.draw(world_.options().death_notice));
    return;
  }
  // One nanosecond apart at least, so that no tie can turn the order of a pair round.
  channel.last_arrival_ns = std::max(channel.last_arrival_ns + 1, world_.now_ns() + world_.draw_message_latency());
  world_.events().schedule_at(
      channel.last_arrival_ns, world_.transport(channel.to),
      {.kind = SimEventKind::request_comes, .rank = channel.to, .peer = rank_, .detail = ticket});
}

// Answers of one channel keep their order, except those given late, which may overtake and be overtaken.
void SimTransport::send_reply(Channel& channel, Request& request, std::uint64_t ticket, Code code,
                              std::size_t reply_bytes, SimTime after_ns) {
  const bool is_late = request.state == Request::State::deferred;
  SimTime at_ns = world_.now_ns() + after_ns + world_.draw_message_latency();
  if (!is_late) {
    at_ns = std::max(channel.last_reply_ns + 1, at_ns);
    channel.last_reply_ns = at_ns;
  }
  request.state = Request::State::replied;
  request.code = code;
  request.reply_bytes = reply_bytes;
  world_.events().schedule_at(
      at_ns, world_.transport(channel.from),
      {.kind = SimEventKind::reply_comes, .rank = channel.from, .peer = channel.to, .detail = ticket});
}

void SimTransport::request_comes(Rank from, std::uint64_t ticket) {
  Channel& channel = *world_.transport(from).find_channel_to(rank_);
  if (channel.is_cut || !world_.is_alive(rank_)) return;
  Request& request = channel.at(ticket);
  require(request.state == Request::State::flying && ticket == channel.next_to_arrive,
          "a request arrived out of order");
  request.state = Request::State::arrived;
  world_.events().note(request.message_bytes);
  ++channel.next_to_arrive;
  if (channel.next_to_arrive - channel.next_to_serve == 1) waiting_.push_back(&channel);
  world_.wake_agent(rank_);
}

void SimTransport::reply_comes(Rank from, std::uint64_t ticket) {
  if (!world_.is_alive(rank_)) return;
  Channel& channel = *find_channel_to(from);
  Request& request = channel.at(ticket);
  require(request.state == Request::State::replied, "a reply arrived twice");
  request.state = Request::State::ready;
  world_.events().note(request.reply_bytes);
  if (channel.ready.empty()) replied_.push_back(from);
  channel.ready.push_back(ticket);
  world_.wake_origin(rank_);
}

std::size_t SimTransport::poll_replies(Rank peer, ReplyHandler& handler) {
  Channel* const channel = find_channel_to(peer);
  if (channel == nullptr || channel->ready.empty()) return 0;
  replied_.erase(std::find(replied_.begin(), replied_.end(), peer));
  std::size_t count = 0;
  while (!channel->ready.empty()) {
    const std::uint64_t ticket = channel->ready.front();
    channel->ready.pop_front();
    // The request leaves the channel before the handler runs, which may post anew.
    Request request = std::move(channel->at(ticket));
    channel->at(ticket).state = Request::State::handed_over;
    --channel->held_messages;
    channel->held_bytes -= request.storage.size();
    while (!channel->requests.empty() && channel->requests.front().state == Request::State::handed_over) {
      channel->requests.pop_front();
      ++channel->first_ticket;
    }
    ++count;
    handler.on_reply(peer, ticket, request.code, request.reply_room().first(request.reply_bytes));
  }
  return count;
}

// Letters overtake requests and are overtaken by them.
bool SimTransport::try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) {
  const SimOptions& limits = world_.options();
  require(to < world_.rank_count() && to != rank_ && limits.max_letter_bytes != 0, "a letter goes where none can");
  require(header.size() + body.size() <= limits.max_letter_bytes, "a letter is longer than they may be");
  if (!world_.is_alive(to)) return true;
  Channel& channel = channel_to(to);
  if (channel.letters.size() == limits.pair_letters) return false;
  std::vector<std::byte> letter(header.begin(), header.end());
  letter.insert(letter.end(), body.begin(), body.end());
  channel.letters.push_back(std::move(letter));
  channel.last_letter_ns = std::max(channel.last_letter_ns + 1, world_.now_ns() + world_.draw_message_latency());
  world_.events().schedule_at(channel.last_letter_ns, world_.transport(to),
                              {.kind = SimEventKind::letter_comes, .rank = to, .peer = rank_, .detail = 0});
  return true;
}

void SimTransport::letter_comes(Rank from) {
  Channel& channel = *world_.transport(from).find_channel_to(rank_);
  if (channel.is_cut || !world_.is_alive(rank_)) return;
  letters_here_.push_back(&channel);
  world_.wake_agent(rank_);
}

void SimTransport::hand_over_letters() {
  while (!letters_here_.empty()) {
    Channel& channel = *letters_here_.front();
    letters_here_.pop_front();
    require(letter_handler_ != nullptr, "a letter has come and nobody is to be handed it");
    world_.events().note(channel.letters.front().size());
    letter_handler_->on_letter(channel.from, channel.letters.front());
    channel.letters.pop_front();
  }
}

// Senders are taken in an order drawn anew for every request. Those whose request must wait move behind `active`, out
// of this call.
std::size_t SimTransport::poll_requests(RequestHandler& handler, std::size_t budget) {
  hand_over_letters();
  std::size_t finished = 0;
  std::size_t active = waiting_.size();
  SimTime after_ns = 0;
  while (finished < budget && active > 0) {
    const std::size_t chosen = world_.random().below(active);
    Channel& channel = *waiting_[chosen];
    after_ns += world_.draw(world_.options().service);
    const Served served = serve_next(channel, handler, after_ns);
    if (served.kind == Served::Kind::again) {
      std::swap(waiting_[chosen], waiting_[--active]);
      continue;
    }
    ++finished;
    if (channel.next_to_serve == channel.next_to_arrive) {
      std::swap(waiting_[chosen], waiting_[--active]);
      std::swap(waiting_[active], waiting_.back());
      waiting_.pop_back();
    }
  }
  return finished;
}

Served SimTransport::serve_next(Channel& channel, RequestHandler& handler, SimTime after_ns) {
  const std::uint64_t ticket = channel.next_to_serve;
  Request& request = channel.at(ticket);
  const Served served = handler.on_request(channel.from, request.message(), request.reply_room(),
                                           {.peer = channel.from, .ticket = ticket});
  world_.events().note(static_cast<std::uint64_t>(served.kind));
  put_off_ -= channel.is_put_off ? 1 : 0;
  channel.is_put_off = served.kind == Served::Kind::again;
  put_off_ += channel.is_put_off ? 1 : 0;
  switch (served.kind) {
    case Served::Kind::again:
      return served;
    case Served::Kind::later:
      require(world_.options().late_replies, "a request was answered `later` where late replies are switched off");
      request.state = Request::State::deferred;
      break;
    case Served::Kind::done:
      require(served.reply_bytes <= request.reply_room().size(), "a reply is larger than its room");
      send_reply(channel, request, ticket, served.code, served.reply_bytes, after_ns);
      break;
  }
  ++channel.next_to_serve;
  return served;
}

void SimTransport::complete(ReplyToken token, Code code, std::span<const std::byte> reply) {
  Channel* const channel = world_.transport(token.peer).find_channel_to(rank_);
  require(channel != nullptr && token.ticket >= channel->first_ticket && token.ticket < channel->next_ticket(),
          "complete() names a request that does not exist");
  Request& request = channel->at(token.ticket);
  require(request.state == Request::State::deferred, "complete() names a request that was not answered `later`");
  require(reply.size() <= request.reply_room().size(), "a late reply is larger than its room");
  if (!reply.empty()) std::memcpy(request.reply_room().data(), reply.data(), reply.size());
  send_reply(*channel, request, token.ticket, code, reply.size(), world_.draw(world_.options().service));
}

void SimTransport::fail_outstanding(Channel& channel) {
  const SimTime notice_ns = world_.draw(world_.options().death_notice);
  for (std::uint64_t ticket = channel.first_ticket; ticket < channel.next_ticket(); ++ticket) {
    Request& request = channel.at(ticket);
    if (request.awaits_reply()) send_reply(channel, request, ticket, Code::peer_failed, 0, notice_ns);
  }
}

void SimTransport::on_own_death() {
  for (Channel* const channel : in_) fail_outstanding(*channel);
  for (const std::unique_ptr<Channel>& channel : out_) channel->is_cut = world_.random().once_in(2);
  waiting_.clear();
  letters_here_.clear();
}

Transfer SimTransport::read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) {
  return start_copy(
      {.peer = peer, .remote_address = remote_address, .into = into.data(), .bytes = into.size(), .cookie = cookie});
}

Transfer SimTransport::write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                             std::uint64_t cookie) {
  return start_copy(
      {.peer = peer, .remote_address = remote_address, .from = from.data(), .bytes = from.size(), .cookie = cookie});
}

Transfer SimTransport::start_copy(const Copy& copy) {
  if (!world_.options().transfers) return Transfer::refused;
  if (!world_.is_alive(copy.peer)) return Transfer::peer_dead;
  if (copy.peer == rank_) return copy_own_memory(copy);
  std::uint64_t slot = copies_.size();
  if (free_copies_.empty()) {
    copies_.push_back(copy);
  } else {
    slot = free_copies_.back();
    free_copies_.pop_back();
    copies_[slot] = copy;
  }
  const SimRange latency = world_.options().transfer_latency;
  const SimTime bytes_ns = copy.bytes * world_.options().transfer_ns_per_kib / 1024;
  const SimTime first_ns = world_.now_ns() + world_.draw(latency) + bytes_ns;
  const SimTime rest_ns = world_.options().torn_transfers ? first_ns + world_.draw(latency) : first_ns;
  if (world_.options().torn_transfers) {
    world_.events().schedule_at(first_ns, *this,
                                {.kind = SimEventKind::copy_first, .rank = rank_, .peer = copy.peer, .detail = slot});
  }
  // Later by one, so that the second half comes second.
  world_.events().schedule_at(rest_ns + 1, *this,
                              {.kind = SimEventKind::copy_rest, .rank = rank_, .peer = copy.peer, .detail = slot});
  return Transfer::started;
}

// A process copies its own memory at once: a caller may hold a lock meanwhile.
Transfer SimTransport::copy_own_memory(const Copy& copy) {
  if (world_.memory().is_forbidden(rank_, copy.remote_address, copy.bytes)) return Transfer::bad_address;
  if (copy.into != nullptr) std::memcpy(copy.into, reinterpret_cast<const std::byte*>(copy.remote_address), copy.bytes);
  if (copy.from != nullptr) std::memcpy(reinterpret_cast<std::byte*>(copy.remote_address), copy.from, copy.bytes);
  return Transfer::done;
}

void SimTransport::copy_part(std::uint64_t slot, std::size_t begin, std::size_t end) {
  Copy& copy = copies_[slot];
  // A dead rank's own buffers may be gone.
  if (!world_.is_alive(rank_)) return;
  if (!world_.is_alive(copy.peer)) {
    copy.how = Transfer::peer_dead;
  } else if (world_.memory().is_forbidden(copy.peer, copy.remote_address, copy.bytes)) {
    copy.how = Transfer::bad_address;
  } else if (copy.into != nullptr) {
    std::memcpy(copy.into + begin, reinterpret_cast<const std::byte*>(copy.remote_address) + begin, end - begin);
  } else if (copy.from != nullptr) {
    std::memcpy(reinterpret_cast<std::byte*>(copy.remote_address) + begin, copy.from + begin, end - begin);
  }
}

void SimTransport::end_copy(std::uint64_t slot) {
  const Copy copy = copies_[slot];
  free_copies_.push_back(slot);
  if (!world_.is_alive(rank_)) return;
  require(transfer_handler_ != nullptr, "a transfer has ended and nobody is to be told");
  transfer_handler_->on_transfer(copy.cookie, copy.how);
  if (has_requests()) world_.wake_agent(rank_);
  world_.wake_origin(rank_);
}

void SimTransport::on_event(const SimEvent& event) {
  switch (event.kind) {
    case SimEventKind::request_comes:
      request_comes(event.peer, event.detail);
      break;
    case SimEventKind::reply_comes:
      reply_comes(event.peer, event.detail);
      break;
    case SimEventKind::letter_comes:
      letter_comes(event.peer);
      break;
    case SimEventKind::copy_first:
      copy_part(event.detail, 0, copies_[event.detail].bytes / 2);
      break;
    case SimEventKind::copy_rest:
      copy_part(event.detail, world_.options().torn_transfers ? copies_[event.detail].bytes / 2 : 0,
                copies_[event.detail].bytes);
      world_.events().schedule_at(
          world_.now_ns() + world_.draw(world_.options().transfer_latency) + world_.transfer_wake(rank_), *this,
          {.kind = SimEventKind::transfer_ends, .rank = rank_, .peer = event.peer, .detail = event.detail});
      break;
    case SimEventKind::transfer_ends:
      end_copy(event.detail);
      break;
    case SimEventKind::call:
    case SimEventKind::agent_turn:
    case SimEventKind::origin_turn:
      require(false, "an event reached the wrong rank");
      break;
  }
}

}  // namespace farsum
