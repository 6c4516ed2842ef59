// The parts of UcxRdma without it: keys, what is exposed, peers, operations. Over shared memory, which does what a card
// would; a test says what else the card is like.
#include <sys/eventfd.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "transport/rdma/ucx_cards.hpp"
#include "transport/rdma/ucx_key.hpp"

namespace farsum {
namespace {

constexpr Rank itself = 0;

TEST(UcxKeyTest, arrives_as_it_was_sealed) {
  const UcxKey key{0x1000, 64, {std::byte{1}, std::byte{2}}};
  const std::optional<UcxKey> arrived = unsealed_key(sealed_key(key));
  ASSERT_TRUE(arrived.has_value());
  EXPECT_EQ(arrived->begin, key.begin);
  EXPECT_EQ(arrived->bytes, key.bytes);
  EXPECT_EQ(arrived->packed, key.packed);
}

TEST(UcxKeyTest, is_none_where_a_byte_is_missing_or_another) {
  const std::vector<std::byte> whole = sealed_key({0x1000, 64, {std::byte{1}}});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    EXPECT_FALSE(unsealed_key(std::span(whole).first(at)).has_value());
    std::vector<std::byte> other = whole;
    other[at] ^= std::byte{1};
    EXPECT_FALSE(unsealed_key(other).has_value());
  }
}

// What carries operations out where nobody waits.
class NoWork final : public CardWork {
 public:
  ThreadMutex& asking_mutex() override { return mutex_; }
  unsigned progress() override { return 0; }
  bool arm_asking() override { return false; }
  int asking_descriptor() const override { return -1; }

 private:
  ThreadMutex mutex_;
};

// A rank that reaches its own memory.
class UcxCardPartsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto library = UcxLibrary::load(ucx_library_for_tests());
    ASSERT_TRUE(library.is_ok());
    library_ = std::move(library.value());
    UcxOptions options;
    options.transports = "posix";
    options.use = UcxUse::memory;
    auto context = UcxContext::create(*library_, options);
    ASSERT_TRUE(context.is_ok()) << context.take_status().text();
    card_.context = std::move(context.value());
    card_.description = "posix/memory";
    auto serving = UcxServing::make(card_);
    ASSERT_TRUE(serving.is_ok());
    serving_ = std::move(serving.value());
    auto peers =
        UcxCardPeers::make(card_, [this](Rank rank, const std::string& why) { lost_.emplace_back(rank, why); });
    ASSERT_TRUE(peers.is_ok());
    peers_ = std::move(peers.value());
    exposed_ = std::make_unique<UcxExposed>(card_, UcxOwners::idle);
    operations_ = std::make_unique<UcxCardOperations>(card_, *peers_, waits_);
    memory_ = exposed_->expose(nullptr, 4096).value();
    peers_->introduce(itself, serving_->address());
    reached_ = peers_->reach(itself, memory_.key);
  }
  void TearDown() override {
    if (!peers_) return;
    peers_->give_up();
    until([this] { return operations_->under_way() == 0 && peers_->are_closed(); });
    operations_.reset();
    exposed_.reset();
    peers_.reset();
    serving_.reset();
  }

  template <class Condition>
  void until(Condition condition) {
    while (!condition()) {
      serving_->look_after();
      peers_->progress();
      operations_->take_in_unfinished();
      peers_->close_broken();
    }
  }
  void until_over(const CardCompletion& completion) {
    until([&completion] { return completion.pending.load(std::memory_order_acquire) == 0; });
    EXPECT_EQ(completion.failure.load(std::memory_order_relaxed), Code::ok);
  }
  std::uint64_t begin() const { return reinterpret_cast<std::uintptr_t>(memory_.memory); }
  std::uint64_t word() const {
    std::uint64_t word = 0;
    std::memcpy(&word, memory_.memory, sizeof word);
    return word;
  }
  // What was there.
  std::uint64_t fetch(CardUpdate update, std::uint64_t operand, std::uint64_t compare = 0) {
    CardCompletion over;
    std::uint64_t was = 0;
    EXPECT_TRUE(
        operations_->fetch(reached_, {begin(), 8}, update, operand, compare, reinterpret_cast<std::byte*>(&was), over)
            .is_ok());
    until_over(over);
    return was;
  }
  void flush() {
    CardCompletion over;
    EXPECT_TRUE(operations_->flush(itself, over).is_ok());
    until_over(over);
  }

  NoWork work_;
  CardWaits waits_{work_, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), 0};
  std::unique_ptr<UcxLibrary> library_;
  UcxCard card_;
  std::vector<std::pair<Rank, std::string>> lost_;
  std::unique_ptr<UcxServing> serving_;
  std::unique_ptr<UcxCardPeers> peers_;
  std::unique_ptr<UcxExposed> exposed_;
  std::unique_ptr<UcxCardOperations> operations_;
  CardMemory memory_;
  Rdma::Reached reached_ = 0;
};

TEST_F(UcxCardPartsTest, what_is_exposed_has_a_key_that_says_where_it_is) {
  const std::optional<UcxKey> key = unsealed_key(memory_.key);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->begin, begin());
  EXPECT_EQ(key->bytes, 4096U);
  EXPECT_FALSE(key->packed.empty());
  const std::optional<UcxKey> of_none = unsealed_key(exposed_->expose(nullptr, 0).value().key);
  ASSERT_TRUE(of_none.has_value());
  EXPECT_TRUE(of_none->packed.empty());
  exposed_->conceal(memory_);
}

TEST_F(UcxCardPartsTest, peers_are_found_that_were_introduced_and_memory_that_was_reached) {
  UcxCardReach* found = nullptr;
  EXPECT_EQ(peers_->find(1), nullptr);
  EXPECT_TRUE(peers_->find(reached_, begin(), 0, found).is_ok());
  EXPECT_EQ(peers_->find(itself)->endpoint, nullptr) << "nothing was asked yet";
  ASSERT_TRUE(peers_->find(reached_, begin(), 8, found).is_ok());
  EXPECT_EQ(found->peer, peers_->find(itself));
  EXPECT_NE(found->peer->endpoint, nullptr);
  EXPECT_EQ(peers_->any_memory_of(*found->peer), found);
  EXPECT_EQ(peers_->find(reached_, begin() + 4096, 1, found).code(), Code::range);
  EXPECT_EQ(peers_->find(peers_->reach(1, memory_.key), begin(), 8, found).code(), Code::argument);
  peers_->let_go(reached_);
  EXPECT_EQ(peers_->any_memory_of(*peers_->find(itself)), nullptr);
  EXPECT_EQ(peers_->find(reached_, begin(), 8, found).code(), Code::argument);
}

TEST_F(UcxCardPartsTest, peers_have_no_short_words_where_the_card_has_none) {
  UcxCardReach* found = nullptr;
  EXPECT_TRUE(peers_->find_word(reached_, {begin(), 4}, found).is_ok());
  card_.updates_short_words = false;
  const Status refused = peers_->find_word(reached_, {begin(), 4}, found);
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_EQ(refused.text(), "posix/memory updates words of 8 bytes only");
}

TEST_F(UcxCardPartsTest, a_peer_that_broke_is_told_of_once_and_no_more_asked) {
  UcxCardPeer& peer = *peers_->find(itself);
  ASSERT_TRUE(peers_->connect(peer).is_ok());
  peers_->note_broken(peer, "of a test");
  peers_->note_broken(peer, "again");
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].second, "the card's connection to rank 0 broke: of a test");
  peers_->close_broken();
  EXPECT_EQ(operations_->update(reached_, {begin(), 8}, CardUpdate::add, 1).code(), Code::peer_failed);
  CardCompletion over;
  EXPECT_TRUE(operations_->flush(itself, over).is_ok()) << "nothing was started";
}

TEST_F(UcxCardPartsTest, nobody_is_connected_once_the_job_is_over) {
  peers_->give_up();
  EXPECT_EQ(peers_->connect(*peers_->find(itself)).text(), "the job is over");
  peers_->note_broken(*peers_->find(itself), "of a test");
  EXPECT_TRUE(lost_.empty());
}

TEST_F(UcxCardPartsTest, operations_put_get_and_update) {
  const std::vector<std::byte> sent(4096, std::byte{3});
  std::vector<std::byte> got(4096);
  CardCompletion over;
  ASSERT_TRUE(operations_->put(reached_, begin(), sent, over).is_ok());
  until_over(over);
  flush();
  ASSERT_TRUE(operations_->get(reached_, begin(), got, over).is_ok());
  until_over(over);
  EXPECT_EQ(got, sent);
  const std::uint64_t before = word();
  ASSERT_TRUE(operations_->update(reached_, {begin(), 8}, CardUpdate::add, 5).is_ok());
  flush();
  EXPECT_EQ(word(), before + 5);
  EXPECT_EQ(fetch(CardUpdate::compare_and_swap, 7, before + 5), before + 5);
  EXPECT_EQ(fetch(CardUpdate::swap, 9), 7U);
}

TEST_F(UcxCardPartsTest, operations_on_bits_are_comparisons_where_the_card_fetches_none) {
  card_.fetches_bits = false;
  EXPECT_EQ(fetch(CardUpdate::add, 0b1100), 0U);
  EXPECT_EQ(fetch(CardUpdate::bit_or, 0b0011), 0b1100U);
  EXPECT_EQ(fetch(CardUpdate::bit_and, 0b0110), 0b1111U);
  EXPECT_EQ(fetch(CardUpdate::bit_xor, 0b0101), 0b0110U);
  EXPECT_EQ(word(), 0b0011U);
}

TEST_F(UcxCardPartsTest, a_flush_asks_for_data_where_the_cards_word_is_not_enough) {
  card_.confirms = true;
  ASSERT_TRUE(operations_->update(reached_, {begin(), 8}, CardUpdate::add, 5).is_ok());
  CardCompletion over;
  ASSERT_TRUE(operations_->flush(itself, over).is_ok());
  EXPECT_EQ(operations_->under_way(), 1U);
  until_over(over);
  EXPECT_EQ(word(), 5U);
  EXPECT_EQ(peers_->find(itself)->started, peers_->find(itself)->confirmed);
}

TEST_F(UcxCardPartsTest, a_fence_needs_a_flush_over_several_lanes_alone) {
  std::optional<Status> answer = operations_->fence(itself);
  ASSERT_TRUE(answer.has_value() && answer->is_ok()) << "nothing was started";
  ASSERT_TRUE(operations_->update(reached_, {begin(), 8}, CardUpdate::add, 5).is_ok());
  peers_->find(itself)->is_one_lane = true;
  answer = operations_->fence(itself);
  EXPECT_TRUE(answer.has_value() && answer->is_ok());
  peers_->find(itself)->is_one_lane = false;
  EXPECT_FALSE(operations_->fence(itself).has_value());
}

TEST_F(UcxCardPartsTest, what_is_under_way_ends_failed_when_all_is_ended) {
  card_.confirms = true;
  ASSERT_TRUE(operations_->update(reached_, {begin(), 8}, CardUpdate::add, 5).is_ok());
  CardCompletion over;
  ASSERT_TRUE(operations_->flush(itself, over).is_ok());
  peers_->give_up();
  operations_->take_in_unfinished();
  EXPECT_EQ(over.pending.load(std::memory_order_acquire), 0U);
  EXPECT_EQ(over.failure.load(std::memory_order_relaxed), Code::peer_failed);
  EXPECT_EQ(operations_->under_way(), 0U);
}

// Takes seconds: UCX starts several times.
TEST(UcxCardTest, is_chosen_by_trial_or_taken_as_it_is_for_owners_that_are_looked_after) {
  auto library = UcxLibrary::load(ucx_library_for_tests());
  ASSERT_TRUE(library.is_ok());
  UcxCardWish wish;
  wish.ucx.use = UcxUse::memory;
  wish.ucx.transports = "posix";
  auto tried = choose_card(*library.value(), wish);
  ASSERT_TRUE(tried.is_ok()) << tried.take_status().text();
  EXPECT_EQ(tried.value()->description, "posix/memory");
  EXPECT_FALSE(tried.value()->confirms);
  wish.ucx.transports = "tcp";
  auto refused = choose_card(*library.value(), wish);
  EXPECT_THAT(refused.take_status().text(), testing::HasSubstr("waits for the owner's program"));
  wish.owners = UcxOwners::looked_after;
  EXPECT_TRUE(choose_card(*library.value(), wish).is_ok());
}

}  // namespace
}  // namespace farsum
