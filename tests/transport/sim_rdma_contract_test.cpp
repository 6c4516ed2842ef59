// The simulator's cards keep the contract of cards.
#include <memory>
#include <vector>

#include "rdma_contract.hpp"
#include "transport/sim/sim_rdma.hpp"

namespace farsum {
namespace {

class SimCardsUnderTest final : public CardsUnderTest {
 public:
  explicit SimCardsUnderTest(std::uint64_t seed) : world_(seed, card_ranks) {
    for (Rank rank = 0; rank < card_ranks; ++rank) cards_.push_back(std::make_unique<SimRdma>(world_, rank));
  }

  Rdma& at(Rank rank) override { return *cards_[rank]; }
  void until_over(Rank rank, const CardCompletion& completion) override {
    EXPECT_TRUE(cards_[rank]->wait(completion, [] { return Status(); }).is_ok());
  }
  bool serves_threads() const override { return false; }

 private:
  SimWorld world_;
  std::vector<std::unique_ptr<SimRdma>> cards_;
};

CardsFactory of_seed(const char* name, std::uint64_t seed) {
  return {name, [seed] { return std::make_unique<SimCardsUnderTest>(seed); }};
}

INSTANTIATE_TEST_SUITE_P(sim, RdmaContract, testing::Values(of_seed("one", 1), of_seed("two", 2), of_seed("three", 3)),
                         cards_name);

}  // namespace
}  // namespace farsum
