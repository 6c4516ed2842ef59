#include "transport/ucx/ucx_connections.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace farsum {
namespace {

// Called by the one thread at a time that writes the counter. Relaxed: nothing is ordered by a count.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

}  // namespace

// The wire to one peer. One connection at a time: the next begins when the last has ended.
class UcxConnections::Connection final : public link::Wire {
 public:
  enum class State {
    none,
    to_open,
    open,
    unopened,  // UCX would not connect; the link is told that it is broken, and closes it
    to_close,
    closing,
  };
  struct Frame {
    link::FrameId id = 0;
    std::array<std::span<const std::byte>, 2> pieces;
    std::size_t count = 0;
    bool given = false;  // to UCX
  };

  Connection(UcxConnections& owner, Rank rank, std::span<const std::byte> fixed_address)
      : connections(owner), peer(rank), address(fixed_address.begin(), fixed_address.end()) {}

  void send(link::FrameId id, std::uint32_t, std::span<const std::span<const std::byte>> pieces) override {
    Frame frame;
    frame.id = id;
    frame.count = std::min(pieces.size(), frame.pieces.size());
    std::copy_n(pieces.begin(), frame.count, frame.pieces.begin());
    out.push_back(frame);
    if (state == State::open) give(out.size() - 1);
  }

  void connect(std::uint32_t new_epoch, std::span<const std::byte> to) override {
    epoch = new_epoch;
    if (!to.empty()) address.assign(to.begin(), to.end());
    state = State::to_open;
    connections.due_.push_back(this);
  }

  void disconnect(std::uint32_t) override {
    state = State::to_close;
    connections.due_.push_back(this);
  }

  // Hands a frame to UCX; true where it is gone from `out`. One that is refused stays: the connection is broken.
  bool give(std::size_t which) {
    Frame& frame = out[which];
    const auto pieces = std::span(frame.pieces).first(frame.count);
    const UcxWorker::Sent sent = connections.worker_->send(endpoint, connections.channel_, pieces, frame.id);
    frame.given = sent == UcxWorker::Sent::started;
    if (sent != UcxWorker::Sent::failed) {
      add(connections.counters_.frames_sent, 1);
      for (const auto& piece : pieces) add(connections.counters_.bytes_sent, piece.size());
    }
    if (sent != UcxWorker::Sent::done) return false;
    connections.sent_.push_back({this, frame.id, true});
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(which));
    return true;
  }

  void note_sent(link::FrameId id, bool ok) {
    const auto found =
        std::find_if(out.begin(), out.end(), [id](const Frame& frame) { return frame.given && frame.id == id; });
    if (found == out.end()) return;
    out.erase(found);
    connections.sent_.push_back({this, id, ok});
  }

  UcxConnections& connections;
  const Rank peer;
  std::vector<std::byte> address;
  State state = State::none;
  std::uint32_t epoch = 0;
  UcxWorker::Endpoint endpoint = 0;  // 0 where there is none
  std::string refusal;               // why UCX would not connect the last time; empty: it did
  std::vector<Frame> out;            // in the order in which they were sent
};

UcxConnections::UcxConnections(Owner& owner, unsigned channel) : owner_(owner), channel_(channel) {}
UcxConnections::~UcxConnections() = default;

Result<std::unique_ptr<UcxConnections>> UcxConnections::create(UcxContext& context, Owner& owner, unsigned channel) {
  std::unique_ptr<UcxConnections> made(new UcxConnections(owner, channel));
  auto worker = UcxWorker::create(context, *made);
  if (!worker.is_ok()) return worker.take_status();
  made->worker_ = std::move(worker.value());
  return made;
}

link::Wire& UcxConnections::wire(Rank peer, std::span<const std::byte> address) {
  std::unique_ptr<Connection>& connection = connections_[peer];
  if (!connection) connection = std::make_unique<Connection>(*this, peer, address);
  return *connection;
}

std::uint64_t UcxConnections::bytes_of_peer() {
  return sizeof(decltype(connections_)::value_type) + sizeof(Connection);
}

std::string UcxConnections::refusal(Rank peer) const {
  const auto found = connections_.find(peer);
  return found == connections_.end() ? std::string() : found->second->refusal;
}

UcxConnections::Connection* UcxConnections::connection_of(UcxWorker::Endpoint endpoint) const {
  const auto found = by_endpoint_.find(endpoint);
  return found == by_endpoint_.end() ? nullptr : found->second;
}

std::size_t UcxConnections::progress() noexcept {
  const std::size_t events = worker_->progress();
  dispatch();
  return events;
}

void UcxConnections::dispatch() noexcept {
  while (dispatch_once()) {
  }
}

bool UcxConnections::dispatch_once() {
  if (due_.empty() && sent_.empty() && broken_.empty() && ended_.empty()) return false;
  // What the links answer comes into the first vectors and waits for the next round.
  std::swap(due_, dispatching_due_);
  std::swap(sent_, dispatching_sent_);
  std::swap(broken_, dispatching_broken_);
  std::swap(ended_, dispatching_ended_);
  for (Connection* connection : dispatching_due_) {
    if (connection->state == Connection::State::to_open) open(*connection);
    if (connection->state == Connection::State::to_close) close(*connection);
  }
  for (const Sent& sent : dispatching_sent_) owner_.on_sent(sent.connection->peer, sent.id, sent.ok);
  for (const Connection* connection : dispatching_broken_) owner_.on_broken(connection->peer, connection->epoch);
  for (Connection* connection : dispatching_ended_) end(*connection);
  dispatching_due_.clear();
  dispatching_sent_.clear();
  dispatching_broken_.clear();
  dispatching_ended_.clear();
  return true;
}

void UcxConnections::open(Connection& connection) {
  auto endpoint = worker_->connect(connection.address);
  if (!endpoint.is_ok()) {
    connection.refusal = endpoint.take_status().text();
    connection.state = Connection::State::unopened;
    broken_.push_back(&connection);
    return;
  }
  connection.refusal.clear();
  connection.endpoint = endpoint.value();
  connection.state = Connection::State::open;
  add(counters_.endpoints, 1);
  add(counters_.connections, 1);
  by_endpoint_[connection.endpoint] = &connection;
  for (std::size_t which = 0; which < connection.out.size();) {
    if (!connection.give(which)) ++which;
  }
}

void UcxConnections::close(Connection& connection) {
  connection.state = Connection::State::closing;
  if (connection.endpoint == 0) {
    ended_.push_back(&connection);
  } else {
    worker_->close(connection.endpoint);
  }
}

// Nothing is with UCX any more: what is still here never left.
void UcxConnections::end(Connection& connection) {
  if (connection.endpoint != 0) add(counters_.endpoints, std::uint64_t(0) - 1);
  connection.endpoint = 0;
  connection.state = Connection::State::none;
  const std::vector<Connection::Frame> left = std::exchange(connection.out, {});
  for (const Connection::Frame& frame : left) owner_.on_sent(connection.peer, frame.id, false);
  owner_.on_disconnected(connection.peer, connection.epoch);
}

void UcxConnections::on_message(unsigned, std::span<const std::byte> message) {
  add(counters_.frames_received, 1);
  add(counters_.bytes_received, message.size());
  owner_.on_frame(message);
}

void UcxConnections::on_sent(UcxWorker::Endpoint endpoint, std::uint64_t cookie, bool left) {
  if (Connection* connection = connection_of(endpoint)) connection->note_sent(cookie, left);
}

void UcxConnections::on_broken(UcxWorker::Endpoint endpoint) {
  if (Connection* connection = connection_of(endpoint)) broken_.push_back(connection);
}

void UcxConnections::on_closed(UcxWorker::Endpoint endpoint) {
  Connection* connection = connection_of(endpoint);
  if (connection == nullptr) return;
  by_endpoint_.erase(endpoint);
  ended_.push_back(connection);
}

}  // namespace farsum
