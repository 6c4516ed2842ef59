// Cards of UCX keep the contract of cards: over memory that the processor reaches as a card would, and over TCP, where
// UCX has the owner's agent do what a card would, so that operations end later and elsewhere.
#include <memory>
#include <vector>

#include "transport/rdma/ucx_cards.hpp"
#include "transport/rdma_contract.hpp"

namespace farsum {
namespace {

class UcxCardsUnderTest final : public CardsUnderTest {
 public:
  bool open(const std::string& transports) {
    for (Rank rank = 0; rank < card_ranks; ++rank) {
      UcxRdma::Options options = cards_over(transports);
      options.job.rank = rank;
      auto made = UcxRdma::create(options);
      if (!made.is_ok()) {
        EXPECT_EQ(std::getenv("FARSUM_TEST_UCX_MUST_WORK"), nullptr) << made.take_status().text();
        return false;
      }
      cards_.push_back(std::move(made.value()));
    }
    for (const auto& card : cards_) {
      for (Rank peer = 0; peer < card_ranks; ++peer) card->introduce(peer, cards_[peer]->address());
      if (transports == "tcp") agents_.push_back(std::make_unique<CardAgent>(*card));
    }
    return true;
  }
  ~UcxCardsUnderTest() override {
    for (const auto& card : cards_) card->abandon();
    agents_.clear();
  }

  Rdma& at(Rank rank) override { return *cards_[rank]; }
  void until_over(Rank rank, const CardCompletion& completion) override {
    EXPECT_TRUE(cards_[rank]->wait(completion, nothing_to_look_for).is_ok());
  }
  bool serves_threads() const override { return true; }

 private:
  std::vector<std::unique_ptr<UcxRdma>> cards_;
  std::vector<std::unique_ptr<CardAgent>> agents_;
};

CardsFactory over(const char* name, const char* transports) {
  return {name, [transports] {
            auto made = std::make_unique<UcxCardsUnderTest>();
            return made->open(transports) ? std::move(made) : nullptr;
          }};
}

INSTANTIATE_TEST_SUITE_P(ucx, RdmaContract,
                         testing::Values(over("posix", "posix"), over("sysv", "sysv"), over("posix_self", "posix,self"),
                                         over("tcp", "tcp")),
                         cards_name);

}  // namespace
}  // namespace farsum
