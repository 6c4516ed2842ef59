// What an owner answers to an origin that computes under leases: grants, what is refused of a put, and nonsense.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "hostile.hpp"
#include "ops/kernels.hpp"
#include "targets.hpp"
#include "variants/leases/leased_update.hpp"

namespace farsum::fuzz {
namespace {

constexpr Rank lease_owner = 1;

// Answers what is open in the order, with the codes and the contents of the input. None is longer than was asked for:
// the engine trusts its transport in that, and a link refuses such replies (link_ends_test.cpp).
class InputAnswers final : public MuteTransport {
 public:
  explicit InputAnswers(Reader& input) : input_(input) {}

  Capabilities capabilities(Rank) const override {
    return {.separate_replies = true, .max_message_bytes = room_bytes, .max_reply_bytes = room_bytes};
  }
  std::optional<std::uint64_t> try_post(Rank, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options) override {
    demand(head.size() + body.size() <= room_bytes && options.reply_capacity <= room_bytes);
    open_.push_back({posted_, options.reply_capacity});
    return posted_++;
  }
  std::size_t poll_replies(Rank from, ReplyHandler& handler) override {
    if (input_.empty() || open_.empty()) return 0;
    const std::uint8_t how = input_.byte();
    const auto which = open_.begin() + static_cast<std::ptrdiff_t>((how >> 4) % open_.size());
    const Asked asked = *which;
    open_.erase(which);
    const std::vector<std::byte> reply = made_reply(how, asked.reply_capacity);
    handler.on_reply(from, asked.ticket, code_of(how), reply);
    return 1;
  }

 private:
  static constexpr std::size_t room_bytes = 512;
  struct Asked {
    std::uint64_t ticket;
    std::size_t reply_capacity;
  };

  static Code code_of(std::uint8_t how) {
    constexpr Code codes[] = {Code::ok, Code::ok, Code::ok,      Code::pending,
                              Code::ok, Code::ok, Code::pending, Code::argument};
    return codes[how & 7];
  }
  // A number, which names a lease or counts what is refused, and as many of the lowest bits behind it; or anything.
  std::vector<std::byte> made_reply(std::uint8_t how, std::size_t capacity) {
    const std::uint64_t number = input_.byte();
    if ((how & 8) != 0) return input_.bytes(std::min<std::size_t>(number * 2, capacity));
    std::vector<std::byte> reply(capacity);
    const std::uint64_t words[] = {number, number < 64 ? (std::uint64_t{1} << number) - 1 : ~std::uint64_t{0}};
    if (!reply.empty()) std::memcpy(reply.data(), words, std::min(sizeof words, reply.size()));
    return reply;
  }

  Reader& input_;
  std::vector<Asked> open_;
  std::uint64_t posted_ = 0;
};

constexpr std::size_t most_elements = 240, buffer_margin_bytes = 64;
constexpr std::byte buffer_margin{0xa5};

// The program's memory between margins that nobody may touch.
struct Buffer {
  explicit Buffer(std::uint64_t size) : memory(size + 2 * buffer_margin_bytes, buffer_margin) {
    std::fill_n(begin(), size, std::byte{});
  }
  std::byte* begin() { return memory.data() + buffer_margin_bytes; }
  bool margins_are_whole() const {
    const auto is_margin = [](std::byte one) { return one == buffer_margin; };
    return std::all_of(memory.begin(), memory.begin() + buffer_margin_bytes, is_margin) &&
           std::all_of(memory.end() - buffer_margin_bytes, memory.end(), is_margin);
  }

  std::vector<std::byte> memory;
};

// Of all kinds that are computed.
std::optional<Operation> operation_of(Reader& input) {
  Operation operation;
  operation.kind = static_cast<OperationKind>(2 + input.byte() % 3);
  operation.type = static_cast<ops::ElementType>(input.byte() % ops::element_type_count);
  operation.op = static_cast<ops::Operator>(input.byte() % ops::operator_count);
  const bool swaps = operation.kind == OperationKind::compare_and_swap;
  if (!computes(operation) || (!swaps && !ops::legal(operation.type, operation.op))) return std::nullopt;
  static constexpr std::byte alpha[ops::largest_element_bytes] = {};
  operation.alpha = alpha;
  const std::uint64_t elements = swaps ? 1 : 1 + input.byte() % most_elements;
  operation.bytes = elements * ops::size_of(operation.type);
  return operation;
}

}  // namespace

void lease_reply(Input input) {
  Reader reader(input);
  std::optional<Operation> operation = operation_of(reader);
  if (!operation) return;
  const std::uint64_t size = ops::size_of(operation->type);
  // In two stretches, or one.
  const std::uint64_t first = reader.byte() % 2 == 0 ? operation->bytes : operation->bytes / size / 2 * size;
  std::vector<ops::Piece> pieces = {{0, first},
                                    {static_cast<std::int64_t>(first + 8 * size), operation->bytes - first}};
  std::erase_if(pieces, [](const ops::Piece& piece) { return piece.bytes == 0; });
  Buffer operand(operation->bytes), result(operation->bytes), compare(size);
  operation->operand = operand.begin();
  operation->compare = compare.begin();
  if (operation->kind != OperationKind::accumulate) operation->result = result.begin();
  operation->target_layout = ops::LayoutView::indexed(pieces);

  InputAnswers transport(reader);
  OriginEngine::Options options;
  options.peers = 2;
  OriginEngine engine(options, transport);
  Outstanding outstanding;
  const LeasedUpdate::Way way = {&engine, &ops::kernels_for_this_machine(), transport.capabilities(lease_owner),
                                 lease_owner, 1};
  LeasedUpdate update(way, *operation, outstanding);
  bool is_finished = update.advance();
  for (; !is_finished && !reader.empty(); is_finished = update.advance()) engine.progress(lease_owner);
  // Whoever still waits is told that the owner is lost.
  engine.fail_peer(lease_owner);
  demand(is_finished || update.advance());
  demand(is_finished || update.code() != Code::ok);
  demand(update.bytes_left_to_owner() <= operation->bytes);
  demand(operand.margins_are_whole() && result.margins_are_whole() && compare.margins_are_whole());
  demand(outstanding.count.load() == 0 && outstanding.borrowing.load() == 0);
}

std::vector<std::vector<std::uint8_t>> lease_replies() {
  // kind, type, operator, elements less one (not of a compare-and-swap), stretches; then of each reply: which and how,
  // number, with 8 in how so many pairs of bytes
  return {
      {0, 9, 1, 4, 0, 0, 1, 0, 0},
      // two of nine are refused, then none
      {1, 9, 1, 8, 1, 0, 1, 0, 2, 0, 0},
      // four pieces, of which three elements each are refused twice, so that the owner computes them
      {0, 9, 1, 200, 1, 0, 1, 0, 2, 0, 3, 0, 4, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0},
      // out of turn; what is refused of two pieces is put again, and not answered
      {0, 9, 1, 200, 1, 0, 1, 16, 1, 0, 3, 0, 3, 0, 3, 0, 3, 0, 0, 0, 0},
      // revoked, and asked for again
      {2, 9, 0, 0, 0, 1, 3, 0, 0, 2, 0, 0},
      // shorter than they should be: a lease without contents, then less than what names one
      {0, 11, 1, 100, 0, 8, 4, 1, 2, 3, 4, 5, 6, 7, 8, 8, 200, 1, 2, 3}};
}

}  // namespace farsum::fuzz
