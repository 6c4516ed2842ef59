// A queue whose elements keep the number they got when they were pushed: 0, 1, 2, ... It reuses its room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace farsum::link {

// References are valid until the next push_back.
template <class Value>
class Fifo {
 public:
  std::uint64_t begin() const { return begin_; }  // number of the front
  std::uint64_t end() const { return end_; }      // number of the next to be pushed
  bool empty() const { return begin_ == end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  bool holds(std::uint64_t number) const { return number >= begin_ && number < end_; }

  Value& operator[](std::uint64_t number) { return slots_[number & (slots_.size() - 1)]; }
  const Value& operator[](std::uint64_t number) const { return slots_[number & (slots_.size() - 1)]; }
  Value& front() { return (*this)[begin_]; }
  Value& back() { return (*this)[end_ - 1]; }
  const Value& back() const { return (*this)[end_ - 1]; }

  // The next `more` elements need no memory; where there is none, nothing has changed.
  void make_room(std::size_t more = 1) {
    while (size() + more > slots_.size()) grow();
  }
  Value& push_back(Value value) {
    make_room();
    Value& slot = (*this)[end_++];
    slot = std::move(value);
    return slot;
  }
  void pop_front() { (*this)[begin_++] = Value(); }
  void clear() {
    while (!empty()) pop_front();
  }

 private:
  void grow() {
    std::vector<Value> more(slots_.empty() ? 4 : 2 * slots_.size());
    for (std::uint64_t number = begin_; number != end_; ++number) {
      more[number & (more.size() - 1)] = std::move((*this)[number]);
    }
    slots_ = std::move(more);
  }

  std::vector<Value> slots_;  // a power of two of them
  std::uint64_t begin_ = 0, end_ = 0;
};

}  // namespace farsum::link
