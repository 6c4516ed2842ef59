// Messages to an owner's agent, right and wrong, from two senders beside a rank of its node that locks in memory.
#include <cstring>
#include <deque>
#include <memory>
#include <optional>

#include "hostile.hpp"
#include "protocol/owner/service.hpp"
#include "targets.hpp"
#include "variants/leases/lease_service.hpp"

namespace farsum::fuzz {
namespace {

// Every token that was answered `later` is completed once.
class Answers final : public MuteTransport {
 public:
  void complete(ReplyToken token, Code, std::span<const std::byte>) override {
    demand(token.ticket < is_open.size() && is_open[token.ticket]);
    is_open[token.ticket] = false;
  }

  std::vector<bool> is_open;
};

constexpr WindowId window = 1;
constexpr Rank owner = 0;
constexpr std::size_t part_bytes = 512, margin_bytes = 256;
constexpr std::byte margin{0xa5};

// Memory between margins that nobody may touch.
struct Part {
  alignas(cache_line_bytes) std::byte memory[2 * margin_bytes + part_bytes];
  alignas(SharedLockState) std::byte shared[8192] = {};
  StripeLock stripes[2] = {};
  RankWindow own;

  Part() {
    std::memset(memory, static_cast<int>(margin), sizeof memory);
    WindowSharedShape shape;
    shape.ranks = 3;
    shape.notification_slots = 2;
    shape.most_regions = 1;
    shape.locks = 2;
    demand(shape.rank_bytes() <= sizeof shared);
    own = RankWindow(shared, shape);
  }
  std::shared_ptr<Exposure> exposure() {
    auto made = std::make_shared<Exposure>();
    ExposedRegion region;
    region.bytes = part_bytes;
    region.memory = memory + margin_bytes;
    region.domain.locks = stripes;
    region.domain.mask = 1;
    made->regions.push_back(region);
    made->notifications = own.notifications();
    made->notification_slots = 2;
    made->own = own;
    made->ranks = {0, 1, 2};
    return made;
  }
  bool margins_are_whole() const {
    for (std::size_t i = 0; i < margin_bytes; ++i) {
      if (memory[i] != margin || memory[margin_bytes + part_bytes + i] != margin) return false;
    }
    return true;
  }
};

std::vector<std::byte> message_of(Reader& input, Rank from, std::uint64_t sequence) {
  wire::MessageHeader header;
  header.kind = static_cast<wire::MessageKind>(input.byte() % 12);
  const std::uint8_t shape = input.byte();
  header.operation = static_cast<OperationKind>(shape & 7);
  header.flags = static_cast<std::uint8_t>(shape >> 3 & 0xf);
  header.type = static_cast<ops::ElementType>(input.byte() & 31);
  header.op = static_cast<ops::Operator>(input.byte() & 31);
  header.window = (shape & 0x80) != 0 ? input.byte() : window;
  header.sequence = sequence;
  const bool is_put = header.kind == wire::MessageKind::lease_put;
  const bool is_operation = header.kind == wire::MessageKind::operate || header.kind == wire::MessageKind::scatter ||
                            header.kind == wire::MessageKind::lease;
  header.offset = is_operation ? 4u * input.byte() : is_put ? input.byte() : from;
  header.bytes = is_operation || is_put || header.kind == wire::MessageKind::team ? input.byte() : 0;
  const std::uint8_t odd = input.byte();
  if ((odd & 1) != 0) header.layout_bytes = input.byte();
  if ((odd & 2) != 0) header.slot = input.byte();
  if ((odd & 4) != 0) header.offset = ~std::uint64_t{0} - input.byte();
  if ((odd & 8) != 0) header.sequence += input.byte();
  if (is_put && (odd & 64) != 0) header.flags = wire::flag_last;
  if (header.kind == wire::MessageKind::team && (odd & 64) != 0) header.flags = wire::flag_more;
  if ((odd & 128) != 0) {
    header.flags = input.byte();
    if ((input.byte() & 1) != 0) header.wire_version = wire::version + 1;
  }
  std::vector<std::byte> message(sizeof header);
  std::memcpy(message.data(), &header, sizeof header);
  const bool has_body =
      header.bytes != 0 && (header.flags & wire::flag_pull) == 0 && header.kind != wire::MessageKind::lease;
  const std::size_t body_bytes =
      (odd & 16) != 0 ? input.byte()
                      : header.layout_bytes + (has_body ? header.bytes : 0) *
                                                  (header.operation == OperationKind::compare_and_swap ? 2 : 1);
  const std::vector<std::byte> body = input.padded_bytes(body_bytes);
  message.insert(message.end(), body.begin(), body.end());
  if ((odd & 32) != 0) message.resize(input.byte());
  return message;
}

using Bytes = std::vector<std::uint8_t>;

Bytes one_behind_the_other(std::initializer_list<Bytes> messages) {
  Bytes all;
  for (const Bytes& message : messages) all.insert(all.end(), message.begin(), message.end());
  return all;
}

}  // namespace

void owner_message(Input bytes) {
  Reader input(bytes);
  const auto part = std::make_unique<Part>();
  ExposureTable exposures;
  exposures.set(window, part->exposure());
  TargetService::Options options;
  options.kernels = &ops::kernels_for_this_machine();
  std::uint64_t now_ns = 0;
  LeaseService* leases = nullptr;
  options.make_leases = [&](OperationApplier& applier) {
    auto made = std::make_unique<LeaseService>(applier, LeaseTable::Options{.pool_bytes = 700},
                                               [&now_ns] { return now_ns += 2'000'000; });
    leases = made.get();
    return made;
  };
  TargetService service(options, exposures);
  Answers answers;
  service.attach(answers);
  SharedLock<HolderDead> lock = part->own.lock_view(nullptr);
  bool holds_in_memory = false;
  std::uint64_t sequences[3] = {1, 1, 1};
  while (!input.empty()) {
    const std::uint8_t step = input.byte();
    if (step < 32) {
      holds_in_memory = holds_in_memory ? !lock.unlock(owner + 1, LockMode::exclusive)
                                        : lock.try_lock(owner + 1, LockMode::exclusive);
    } else if (step < 64) {
      service.grant_waiting();
    } else {
      const Rank from = 1 + step % 2;
      const std::vector<std::byte> message = message_of(input, from, sequences[from]);
      std::vector<std::byte> room(step & 0x40 ? 512 : 8);
      const ReplyToken token{from, answers.is_open.size()};
      answers.is_open.push_back(true);
      const Served served = service.on_request(from, message, room, token);
      // No stripe is held and nothing is pulled: what cannot be served now is over the room for parked messages.
      if (served.kind != Served::Kind::later) answers.is_open.back() = false;
      if (served.kind == Served::Kind::again) break;
      demand(served.reply_bytes <= room.size());
      // A message that holds together has been counted, whatever was answered.
      if (wire::sequence_of(message) == sequences[from]) ++sequences[from];
    }
    demand(part->margins_are_whole());
  }
  if (holds_in_memory) demand(lock.unlock(owner + 1, LockMode::exclusive));
  service.grant_waiting();
  for (const Rank sender : {1u, 2u}) demand(service.forget(sender));
  demand(leases->leases().size() == 0 && leases->leases().used_bytes() == 0);
  demand(!service.has_waiting() && lock.try_lock(owner + 1, LockMode::exclusive));
  demand(part->margins_are_whole());
}

std::vector<std::vector<std::uint8_t>> owner_messages() {
  using wire::MessageKind;
  const auto kind = [](MessageKind value) { return static_cast<std::uint8_t>(value); };
  // step, kind, shape, type, operator, (offset, bytes of an operation), odd, body
  return {{200, kind(MessageKind::operate), 0, 0, 0, 4, 4, 0, 1, 2, 3, 4},
          {200, kind(MessageKind::operate), 1, 0, 0, 4, 8, 0},
          {200, kind(MessageKind::scatter), 2, 3, 0, 0, 8, 16, 16, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
          {0,
           200,
           kind(MessageKind::lock),
           0x40,
           0,
           0,
           0,
           200,
           kind(MessageKind::operate),
           0,
           0,
           0,
           4,
           2,
           0,
           1,
           2,
           200,
           kind(MessageKind::unlock),
           0x40,
           0,
           0,
           0,
           0,
           40},
          {200, kind(MessageKind::lock), 0, 0, 0, 0, 201, kind(MessageKind::lock), 0x40, 0, 0, 0, 200,
           kind(MessageKind::unlock), 0, 0, 0, 0, 40},
          {200, kind(MessageKind::post), 0, 0, 0, 0, 201, kind(MessageKind::complete), 0, 0, 0, 0},
          // no_op fetched and put back
          one_behind_the_other({{200, kind(MessageKind::lease), 3, 3, 14, 4, 8, 0},
                                {200, kind(MessageKind::lease_put), 0, 3, 0, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}}),
          // changed by another meanwhile; what is refused is put once more
          one_behind_the_other(
              {{200, kind(MessageKind::lease), 3, 9, 14, 4, 16, 0},
               {201, kind(MessageKind::operate), 0, 0, 0, 4, 4, 0, 1, 2, 3, 4},
               {200, kind(MessageKind::lease_put), 0, 9, 0, 1, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8},
               {200, kind(MessageKind::lease_put), 0, 9, 0, 1, 8, 64, 1, 2, 3, 4, 5, 6, 7, 8}}),
          {200, kind(MessageKind::team), 0, 0, 0, 3, 0, 1, 2, 3, 200, kind(MessageKind::life), 0, 0, 0, 0}};
}

}  // namespace farsum::fuzz
