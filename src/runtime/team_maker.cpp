#include "runtime/team_maker.hpp"

#include <utility>

namespace farsum {

Group::Means TeamMaker::make(GroupPlaces places, std::uint32_t my_rank) const {
  Group::Means means;
  const std::uint32_t degree = reduce_degree(places.nodes());
  means.post = make_post(places, my_rank, LetterPost::Use::group);
  means.carried_post = make_post(places, my_rank, LetterPost::Use::carried);
  means.team = std::make_unique<GroupTeam>(std::move(places), my_rank, means.post.get(), parts_.waiter);
  const ReductionMeans of_reductions{.kernels = parts_.kernels,
                                     .order = parts_.reduce_order,
                                     .peers = &parts_.peer_memory,
                                     .degree = degree,
                                     .splits = trees_.splits,
                                     .pieces = &trees_};
  means.reductions = std::make_unique<GroupReductions>(*means.team, my_rank, of_reductions, parts_.waiter);
  return means;
}

std::unique_ptr<LetterPost> TeamMaker::make_post(const GroupPlaces& places, std::uint32_t my_rank,
                                                 LetterPost::Use use) const {
  if (places.is_one_node() || places.here.front() != my_rank) return nullptr;
  return std::make_unique<LetterPost>(parts_.desk, parts_.exchange, places, use, parts_.waiter.own_events(),
                                      use == LetterPost::Use::window ? 0 : reduce_degree(places.nodes()));
}

}  // namespace farsum
