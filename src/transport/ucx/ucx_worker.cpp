#include "transport/ucx/ucx_worker.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "transport/ucx/ucx_calls.hpp"
#include "transport/ucx/ucx_operations.hpp"
#include "transport/ucx/ucx_printed.hpp"
#include "transport/ucx/ucx_sockets.hpp"

namespace farsum {
namespace {

// Pieces up to this are joined in the send itself: UCX then passes them on within the call and lets go of them.
constexpr std::size_t joined_bytes = 512;

}  // namespace

struct UcxWorker::Link {
  Link(UcxWorker& owner, Endpoint endpoint) : worker(owner), id(endpoint) {}

  UcxWorker& worker;
  Endpoint id;
  ucp_ep_h handle = nullptr;
  UcxResource lane;
  std::size_t unsent = 0;
  bool broken = false;
  bool closing = false;
  bool closed = false;  // by UCX; on_closed also waits for the sends
};

struct UcxWorker::Send {
  Link* link = nullptr;
  std::uint64_t cookie = 0;
  std::array<ucp_dt_iov_t, most_pieces> pieces{};
  std::array<std::byte, joined_bytes> joined{};
};

// What UCX calls, always from within one of the calls made here.
struct UcxWorker::Callbacks {
  template <unsigned channel>
  static ucs_status_t on_message(void* argument, const void*, std::size_t header_bytes, void* data, std::size_t bytes,
                                 const ucp_am_recv_param_t* parameters) {
    // Farsum sends no header and asks for no rendezvous; whoever does is a stranger.
    if (header_bytes != 0 || (parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
    auto& worker = *static_cast<UcxWorker*>(argument);
    if (worker.ending_) return UCS_OK;
    worker.events_.on_message(channel, {static_cast<const std::byte*>(data), bytes});
    return UCS_OK;
  }

  static void on_sent(void* request, ucs_status_t status, void* argument) {
    auto* send = static_cast<Send*>(argument);
    Link& link = *send->link;
    UcxWorker& worker = link.worker;
    worker.calls_.request_free(request);
    worker.ended_.push_back({link.id, send->cookie, status == UCS_OK});
    worker.free_sends_.push_back(send);
    --link.unsent;
    if (status != UCS_OK) worker.note_broken(link);
    if (link.closed && link.unsent == 0) worker.closed_.push_back(link.id);
  }

  static void on_error(void* argument, ucp_ep_h, ucs_status_t) {
    auto& link = *static_cast<Link*>(argument);
    link.worker.note_broken(link);
  }

  static void on_closed(void* request, ucs_status_t, void* argument) {
    auto& link = *static_cast<Link*>(argument);
    link.worker.calls_.request_free(request);
    note_closed(link);
  }

  static void note_closed(Link& link) {
    link.closed = true;
    if (link.unsent == 0) link.worker.closed_.push_back(link.id);
  }
};

UcxWorker::UcxWorker(UcxContext& context, Events& events)
    : context_(context), calls_(context.calls()), events_(events) {}

Result<std::unique_ptr<UcxWorker>> UcxWorker::create(UcxContext& context, Events& events) {
  std::unique_ptr<UcxWorker> worker(new UcxWorker(context, events));
  if (Status status = worker->open(); !status.is_ok()) return status;
  return worker;
}

Status UcxWorker::open() {
  auto made = make_worker(context_);
  if (!made.is_ok()) return made.take_status();
  worker_ = std::move(made.value());

  constexpr std::array<ucp_am_recv_callback_t, channels> handlers = {Callbacks::on_message<1>, Callbacks::on_message<2>,
                                                                     Callbacks::on_message<3>};
  for (unsigned channel = 1; channel <= channels; ++channel) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = channel;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = handlers[channel - 1];
    handler.arg = this;
    const ucs_status_t status = calls_.worker_set_am_recv_handler(worker_.handle, &handler);
    if (status != UCS_OK) {
      return {Code::system, fmt::format("UCX: registering a message handler failed: {}", calls_.status_string(status))};
    }
  }
  return {};
}

UcxWorker::~UcxWorker() {
  if (worker_.handle == nullptr) return;
  ending_ = true;
  for (const auto& [id, link] : endpoints_) close(id);
  const auto is_closed = [](const auto& entry) { return entry.second->closed; };
  for (int i = 0; i < most_closing_rounds && !std::all_of(endpoints_.begin(), endpoints_.end(), is_closed); ++i) {
    calls_.worker_progress(worker_.handle);
  }
  end_worker(context_, worker_);
}

UcxWorker::Link* UcxWorker::find(Endpoint endpoint) const {
  const auto found = endpoints_.find(endpoint);
  return found == endpoints_.end() ? nullptr : found->second.get();
}

Result<UcxWorker::Endpoint> UcxWorker::connect(std::span<const std::byte> address) {
  auto link = std::make_unique<Link>(*this, next_endpoint_);
  auto endpoint = ucx_connect(context_, worker_.handle, address, {Callbacks::on_error, link.get()});
  if (!endpoint.is_ok()) return endpoint.take_status();
  link->handle = endpoint.value();
  link->lane = message_lane_in(printed_by([&](std::FILE* stream) { calls_.ep_print_info(link->handle, stream); }));
  endpoints_.emplace(next_endpoint_, std::move(link));
  return next_endpoint_++;
}

void UcxWorker::close(Endpoint endpoint) {
  Link* link = find(endpoint);
  if (link == nullptr || link->closing) return;
  link->closing = true;
  const ucs_status_ptr_t request = ucx_close(context_, link->handle, {Callbacks::on_closed, link});
  if (!UCS_PTR_IS_PTR(request)) Callbacks::note_closed(*link);
}

UcxResource UcxWorker::lane(Endpoint endpoint) const {
  const Link* link = find(endpoint);
  return link != nullptr ? link->lane : UcxResource();
}

std::size_t UcxWorker::piece_bytes(Endpoint endpoint) const { return piece_bytes_of(lane(endpoint).transport); }

UcxWorker::Send* UcxWorker::take_send() {
  if (free_sends_.empty()) return &sends_.emplace_back();
  Send* send = free_sends_.back();
  free_sends_.pop_back();
  return send;
}

UcxWorker::Sent UcxWorker::send(Endpoint endpoint, unsigned channel, std::span<const std::span<const std::byte>> pieces,
                                std::uint64_t cookie) {
  Link* link = find(endpoint);
  if (link == nullptr || link->broken || link->closing || pieces.size() > most_pieces) return Sent::failed;
  Send* send = take_send();
  send->link = link;
  send->cookie = cookie;

  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  parameters.cb.send = Callbacks::on_sent;
  parameters.user_data = send;
  const void* data = send->joined.data();
  std::size_t count = bytes;
  if (pieces.size() == 1 && bytes > joined_bytes) {
    data = pieces.front().data();
  } else if (bytes <= joined_bytes) {
    std::byte* end = send->joined.data();
    for (const auto& piece : pieces) {
      if (!piece.empty()) end = std::copy(piece.begin(), piece.end(), end);
    }
  } else {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      send->pieces[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};  // UCX only reads it
    }
    parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    parameters.datatype = ucp_dt_make_iov();
    data = send->pieces.data();
    count = pieces.size();
  }

  const ucs_status_ptr_t request = calls_.am_send_nbx(link->handle, channel, nullptr, 0, data, count, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    ++link->unsent;
    return Sent::started;
  }
  free_sends_.push_back(send);
  if (request == nullptr) return Sent::done;
  note_broken(*link);
  return Sent::failed;
}

void UcxWorker::note_broken(Link& link) {
  if (link.broken || link.closing) return;
  link.broken = true;
  broken_.push_back(link.id);
}

std::size_t UcxWorker::progress() {
  const unsigned events = calls_.worker_progress(worker_.handle);
  tell();
  return events;
}

void UcxWorker::tell() {
  // What the told one does may note more, for the next round.
  std::swap(ended_, telling_ended_);
  std::swap(broken_, telling_broken_);
  std::swap(closed_, telling_closed_);
  for (const Ended& ended : telling_ended_) events_.on_sent(ended.endpoint, ended.cookie, ended.left);
  for (const Endpoint endpoint : telling_broken_) events_.on_broken(endpoint);
  for (const Endpoint endpoint : telling_closed_) retire(endpoint);
  telling_ended_.clear();
  telling_broken_.clear();
  telling_closed_.clear();
}

void UcxWorker::retire(Endpoint endpoint) {
  endpoints_.erase(endpoint);
  events_.on_closed(endpoint);
}

Result<bool> UcxWorker::arm() {
  // What was noted outside of progress(), such as a send refused at once, must be told before anybody sleeps.
  if (!ended_.empty() || !broken_.empty() || !closed_.empty()) return false;
  const ucs_status_t status = calls_.worker_arm(worker_.handle);
  if (status == UCS_OK) return true;
  if (status == UCS_ERR_BUSY) return false;
  return Status(Code::system,
                fmt::format("UCX: arming the descriptor to sleep on failed: {}", calls_.status_string(status)));
}

Status UcxWorker::let_in_only(const std::vector<std::uint32_t>& hosts) {
  return farsum::let_in_only(hosts, worker_.listening);
}

void UcxWorker::mark_accepted_sockets() const { farsum::mark_accepted_sockets(worker_); }

}  // namespace farsum
