// The kernels of one instruction set. Included by kernels_*.cpp alone, each of which defines FARSUM_KERNEL_VECTOR_BYTES
// first.
//
// Everything here has internal linkage and calls no inline function of the standard library: the linker merges such
// functions by name, and would put AVX-512 code where a machine without it runs.

#include <type_traits>
#include <utility>

#include "ops/kernel_sets.hpp"
#include "ops/plain_kernels.hpp"

// A fused multiply-add would give other bits than the baseline kernels and the CPU-atomic path do.
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif

namespace farsum::ops {
namespace {

using Bytes = unsigned char;
using Size = std::size_t;

constexpr Size vector_bytes = FARSUM_KERNEL_VECTOR_BYTES;
constexpr Size smallest_vector_bytes = 16;
// Up to here a plain loop is faster than finding out how to do better.
constexpr Size short_count = 8;
// From here on it pays to bring the target to a vector boundary first.
constexpr Size aligning_bytes = 2048;

// Loads and stores at any alignment, of memory whose declared type is the user's business.
template <class T>
struct Loose {
  typedef T type __attribute__((aligned(1), may_alias));
};

template <class T, Size width>
struct VectorOf {
  typedef T type __attribute__((vector_size(width)));
  typedef T loose __attribute__((vector_size(width), aligned(1), may_alias));
};

template <class T>
[[gnu::always_inline]] inline T load(const void* from) {
  if constexpr (std::is_class_v<T>) {
    T value;
    __builtin_memcpy(&value, from, sizeof(T));
    return value;
  } else {
    return *static_cast<const typename Loose<T>::type*>(from);
  }
}

template <class T>
[[gnu::always_inline]] inline void store(void* to, T value) {
  if constexpr (std::is_class_v<T>) {
    __builtin_memcpy(to, &value, sizeof(T));
  } else {
    *static_cast<typename Loose<T>::type*>(to) = value;
  }
}

// A value that the compiler must take as it is: it can neither see where it came from nor fuse it into what follows.
template <class V>
[[gnu::always_inline]] inline V opaque(V value) {
  if constexpr (std::is_integral_v<V>) {
    asm("" : "+r"(value));
  } else if constexpr (std::is_same_v<V, long double>) {
    asm("" : "+t"(value));
  } else {
    asm("" : "+x"(value));
  }
  return value;
}

// ---- Operators. V is an element or a vector of elements; integers come as unsigned where they must wrap. ----

template <class V>
[[gnu::always_inline]] inline V product(V a, V b) {
  if constexpr (std::is_integral_v<V>) {
    return static_cast<V>(1ull * a * b);  // Two uint16_t would be multiplied as int, and overflow.
  } else {
    return a * b;
  }
}

template <class V>
[[gnu::always_inline]] inline V truth(V a) {
  if constexpr (std::is_integral_v<V>) {
    return static_cast<V>(a != 0);
  } else {
    return (V)(a != 0) & 1;  // A vector comparison gives all ones.
  }
}

struct Sum {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return static_cast<V>(t + x);
  }
};

struct ScaledSum {
  static constexpr bool uses_alpha = true;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V alpha) {
    return static_cast<V>(t + product(alpha, x));
  }
};

struct Prod {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return product(t, x);
  }
};

struct Min {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return ((x < t) | (t != t)) ? x : t;
  }
};

struct Max {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return ((x > t) | (t != t)) ? x : t;
  }
};

struct BitAnd {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return static_cast<V>(t & x);
  }
};

struct BitOr {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return static_cast<V>(t | x);
  }
};

struct BitXor {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return static_cast<V>(t ^ x);
  }
};

struct LogicalAnd {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return static_cast<V>(truth(t) & truth(x));
  }
};

struct LogicalOr {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return static_cast<V>(truth(t) | truth(x));
  }
};

struct LogicalXor {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return static_cast<V>(truth(t) ^ truth(x));
  }
};

// A register of complex numbers, real and imaginary parts in turn.
template <class V, int... lane>
[[gnu::always_inline]] inline V complex_product(V a, V b, std::integer_sequence<int, lane...>) {
  const V reals = __builtin_shufflevector(a, a, (lane & ~1)...);
  const V imaginaries = __builtin_shufflevector(a, a, (lane | 1)...);
  const V swapped = __builtin_shufflevector(b, b, (lane ^ 1)...);
  const V signs = {(lane % 2 == 0 ? -1 : 1)...};
  return reals * b + signs * (imaginaries * swapped);
}

template <class V>
[[gnu::always_inline]] inline V complex_product(V a, V b) {
  return complex_product(a, b, std::make_integer_sequence<int, sizeof(V) / sizeof(a[0])>{});
}

// The scalar form of the same. Each product is made opaque because GCC 12 fuses what looks like this into vfmaddsub,
// whatever it is told about contraction.
template <class R>
[[gnu::always_inline]] inline ComplexOf<R> complex_product(ComplexOf<R> a, ComplexOf<R> b) {
  return {opaque(a.real * b.real) - opaque(a.imaginary * b.imaginary),
          opaque(a.real * b.imaginary) + opaque(a.imaginary * b.real)};
}

struct ComplexScaledSum {
  static constexpr bool uses_alpha = true;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V alpha) {
    return t + complex_product(alpha, x);
  }
  template <class R>
  [[gnu::always_inline]] static ComplexOf<R> apply(ComplexOf<R> t, ComplexOf<R> x, ComplexOf<R> alpha) {
    const ComplexOf<R> scaled = complex_product(alpha, x);
    return {t.real + scaled.real, t.imaginary + scaled.imaginary};
  }
};

struct ComplexProd {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static V apply(V t, V x, V) {
    return complex_product(t, x);
  }
};

template <class Pair>
[[gnu::always_inline]] inline Pair locate(Pair t, Pair x, bool is_better, bool is_same) {
  if (is_better) return x;
  if (is_same && x.index < t.index) t.index = x.index;
  return t;
}

template <class V>
[[gnu::always_inline]] inline bool is_same(V a, V b) {
  return (a == b) | ((a != a) & (b != b));
}

struct MinLoc {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static ValueIndex<V> apply(ValueIndex<V> t, ValueIndex<V> x, ValueIndex<V>) {
    return locate(t, x, (x.value < t.value) | ((t.value != t.value) & (x.value == x.value)), is_same(t.value, x.value));
  }
};

struct MaxLoc {
  static constexpr bool uses_alpha = false;
  template <class V>
  [[gnu::always_inline]] static ValueIndex<V> apply(ValueIndex<V> t, ValueIndex<V> x, ValueIndex<V>) {
    return locate(t, x, (x.value > t.value) | ((t.value != t.value) & (x.value == x.value)), is_same(t.value, x.value));
  }
};

// ---- Loops ----

// Gives a loop of two buffers or three the two entry points of a kernel.
template <class Loop>
struct Entries {
  static void bulk(void* target, const void* operand, Size count, const void* alpha) {
    Loop::template run<false>(static_cast<Bytes*>(target), static_cast<const Bytes*>(operand), nullptr, count, alpha);
  }
  static void fetch(void* target, const void* operand, void* result, Size count, const void* alpha) {
    Loop::template run<true>(static_cast<Bytes*>(target), static_cast<const Bytes*>(operand),
                             static_cast<Bytes*>(result), count, alpha);
  }
};

template <class T, class Op>
[[gnu::always_inline]] inline T load_alpha(const void* alpha) {
  if constexpr (Op::uses_alpha) return load<T>(alpha);
  return T{};
}

// What a vector register holds: an element, or half of a complex one.
template <class T>
struct Lane {
  using type = T;
};
template <class R>
struct Lane<ComplexOf<R>> {
  using type = R;
};

template <class V, class T>
[[gnu::always_inline]] inline V fill(T value) {
  return value - V{};  // Not value + V{}, which would lose the sign of a negative zero.
}

template <class V, class R>
[[gnu::always_inline]] inline V fill(ComplexOf<R> value) {
  V filled;
  for (Size i = 0; i < sizeof(V) / sizeof(R); ++i) filled[i] = i % 2 == 0 ? value.real : value.imaginary;
  return filled;
}

// Elements that fit a vector register: the operator is written once for an element and for a vector of them.
template <class T, class Op>
struct VectorLoop {
  template <bool fetching>
  [[gnu::always_inline]] static void run(Bytes* target, const Bytes* operand, Bytes* result, Size count,
                                         const void* alpha) {
    if (count <= short_count) [[likely]] {
      one_by_one<fetching>(target, operand, result, count, load_alpha<T, Op>(alpha));
      return;
    }
    many<fetching>(target, operand, result, count, alpha);
  }

  template <bool fetching>
  [[gnu::noinline]] static void many(Bytes* target, const Bytes* operand, Bytes* result, Size count,
                                     const void* alpha_at) {
    const T alpha = load_alpha<T, Op>(alpha_at);
    Size left = count * sizeof(T);
    if (left >= aligning_bytes) {
      const Size head = -reinterpret_cast<std::uintptr_t>(target) % vector_bytes;
      if (head % sizeof(T) == 0) {
        one_by_one<fetching>(target, operand, result, head / sizeof(T), alpha);
        target += head, operand += head, left -= head;
        if constexpr (fetching) result += head;
      }
    }
    for (; left >= 4 * vector_bytes; left -= 4 * vector_bytes) {
      vectors<fetching, vector_bytes, 4>(target, operand, result, alpha);
    }
    for (; left >= vector_bytes; left -= vector_bytes)
      vectors<fetching, vector_bytes, 1>(target, operand, result, alpha);
    left = narrower<fetching, vector_bytes / 2>(target, operand, result, left, alpha);
    one_by_one<fetching>(target, operand, result, left / sizeof(T), alpha);
  }

  template <bool fetching>
  [[gnu::always_inline]] static void one_by_one(Bytes* target, const Bytes* operand, Bytes* result, Size count,
                                                T alpha) {
    for (Size i = 0; i < count; ++i) {
      asm("" : "+r"(i));  // Keeps the compiler from vectorising what is here for few elements.
      const T old = load<T>(target + i * sizeof(T));
      const T x = load<T>(operand + i * sizeof(T));
      if constexpr (fetching) store<T>(result + i * sizeof(T), old);
      store<T>(target + i * sizeof(T), Op::apply(old, x, alpha));
    }
  }

  // Applies the operator to `unroll` vectors and moves the pointers past them.
  template <bool fetching, Size width, Size unroll>
  [[gnu::always_inline]] static void vectors(Bytes*& target, const Bytes*& operand, Bytes*& result, T alpha) {
    using V = typename VectorOf<typename Lane<T>::type, width>::type;
    using LooseV = typename VectorOf<typename Lane<T>::type, width>::loose;
    const V alphas = fill<V>(alpha);
    V old[unroll], x[unroll];
    for (Size i = 0; i < unroll; ++i) {
      old[i] = *reinterpret_cast<const LooseV*>(target + i * width);
      x[i] = *reinterpret_cast<const LooseV*>(operand + i * width);
    }
    for (Size i = 0; i < unroll; ++i) {
      if constexpr (fetching) *reinterpret_cast<LooseV*>(result + i * width) = old[i];
      *reinterpret_cast<LooseV*>(target + i * width) = Op::apply(old[i], x[i], alphas);
    }
    target += unroll * width, operand += unroll * width;
    if constexpr (fetching) result += unroll * width;
  }

  // What a full vector is too wide for. Returns the bytes that are still left.
  template <bool fetching, Size width>
  [[gnu::always_inline]] static Size narrower(Bytes*& target, const Bytes*& operand, Bytes*& result, Size left,
                                              T alpha) {
    if constexpr (width >= smallest_vector_bytes) {
      if (left >= width) {
        vectors<fetching, width, 1>(target, operand, result, alpha);
        left -= width;
      }
      return narrower<fetching, width / 2>(target, operand, result, left, alpha);
    } else {
      return left;
    }
  }
};

// Pairs and long doubles: what the compiler makes of the plain loop.
template <class T, class Op>
struct ElementLoop {
  template <bool fetching>
  [[gnu::always_inline]] static void run(Bytes* target, const Bytes* operand, Bytes* result, Size count,
                                         const void* alpha_at) {
    const T alpha = load_alpha<T, Op>(alpha_at);
#if !defined(__clang__)
#pragma GCC ivdep
#endif
    for (Size i = 0; i < count; ++i) {
      const T old = load<T>(target + i * sizeof(T));
      const T x = load<T>(operand + i * sizeof(T));
      if constexpr (fetching) store<T>(result + i * sizeof(T), old);
      store<T>(target + i * sizeof(T), Op::apply(old, x, alpha));
    }
  }
};

// An element of two parts that the operator treats alike.
template <class Loop>
struct TwiceAsMany {
  template <bool fetching>
  [[gnu::always_inline]] static void run(Bytes* target, const Bytes* operand, Bytes* result, Size count,
                                         const void* alpha) {
    Loop::template run<fetching>(target, operand, result, 2 * count, alpha);
  }
};

// ---- Moving. What is moved is made opaque, or the compiler would see a copy and call memcpy, whose overlapping tails
// write some bytes twice. ----

template <Size width>
struct Chunk {
  using type = typename VectorOf<unsigned char, width>::type;
  using loose = typename VectorOf<unsigned char, width>::loose;
};
template <>
struct Chunk<8> {
  using type = std::uint64_t;
  using loose = Loose<type>::type;
};
template <>
struct Chunk<4> {
  using type = std::uint32_t;
  using loose = Loose<type>::type;
};
template <>
struct Chunk<2> {
  using type = std::uint16_t;
  using loose = Loose<type>::type;
};
template <>
struct Chunk<1> {
  using type = std::uint8_t;
  using loose = Loose<type>::type;
};

// Moves `unroll` chunks, each with one load and one store, and the pointers past them.
template <bool fetching, Size width, Size unroll>
[[gnu::always_inline]] inline void move_chunks(Bytes*& target, const Bytes*& operand, Bytes*& result) {
  using V = typename Chunk<width>::type;
  using LooseV = typename Chunk<width>::loose;
  V x[unroll], old[unroll];
  for (Size i = 0; i < unroll; ++i) {
    x[i] = opaque<V>(*reinterpret_cast<const LooseV*>(operand + i * width));
    if constexpr (fetching) old[i] = opaque<V>(*reinterpret_cast<const LooseV*>(target + i * width));
  }
  for (Size i = 0; i < unroll; ++i) {
    if constexpr (fetching) *reinterpret_cast<LooseV*>(result + i * width) = old[i];
    *reinterpret_cast<LooseV*>(target + i * width) = x[i];
  }
  target += unroll * width, operand += unroll * width;
  if constexpr (fetching) result += unroll * width;
}

// Moves fewer than 2 * width bytes in chunks of falling size. As the total is a multiple of the element's size, a power
// of two, no chunk cuts an element that fits one.
template <bool fetching, Size width>
[[gnu::always_inline]] inline void move_rest(Bytes*& target, const Bytes*& operand, Bytes*& result, Size left) {
  if (left & width) move_chunks<fetching, width, 1>(target, operand, result);
  if constexpr (width > 1) move_rest<fetching, width / 2>(target, operand, result, left);
}

template <bool fetching>
[[gnu::noinline]] void move_many(Bytes* target, const Bytes* operand, Bytes* result, Size left, Size element_bytes) {
  if (left >= aligning_bytes) {
    const Size head = -reinterpret_cast<std::uintptr_t>(target) % vector_bytes;
    if (head % element_bytes == 0) {
      move_rest<fetching, vector_bytes / 2>(target, operand, result, head);
      left -= head;
    }
  }
  for (; left >= 4 * vector_bytes; left -= 4 * vector_bytes)
    move_chunks<fetching, vector_bytes, 4>(target, operand, result);
  for (; left >= vector_bytes; left -= vector_bytes) move_chunks<fetching, vector_bytes, 1>(target, operand, result);
  move_rest<fetching, vector_bytes / 2>(target, operand, result, left);
}

// ---- Rows. The common lengths have loops of their own, without a branch on the length inside. ----

template <Size row_bytes>
void move_rows_of(Bytes* target, std::ptrdiff_t target_stride, const Bytes* operand, std::ptrdiff_t operand_stride,
                  Size rows) {
  constexpr Size width = row_bytes < vector_bytes ? row_bytes : vector_bytes;
  for (; rows != 0; --rows, target += target_stride, operand += operand_stride) {
    Bytes* to = target;
    const Bytes* from = operand;
    Bytes* none = nullptr;
    move_chunks<false, width, row_bytes / width>(to, from, none);
  }
}

void move_any_rows(Bytes* target, std::ptrdiff_t target_stride, const Bytes* operand, std::ptrdiff_t operand_stride,
                   Size row_bytes, Size rows) {
  for (; rows != 0; --rows, target += target_stride, operand += operand_stride) {
    Bytes* to = target;
    const Bytes* from = operand;
    Bytes* none = nullptr;
    Size left = row_bytes;
    for (; left >= 4 * vector_bytes; left -= 4 * vector_bytes) move_chunks<false, vector_bytes, 4>(to, from, none);
    for (; left >= vector_bytes; left -= vector_bytes) move_chunks<false, vector_bytes, 1>(to, from, none);
    move_rest<false, vector_bytes / 2>(to, from, none, left);
  }
}

void move_rows(void* target, std::ptrdiff_t target_stride, const void* operand, std::ptrdiff_t operand_stride,
               Size row_bytes, Size rows) {
  auto* to = static_cast<Bytes*>(target);
  const auto* from = static_cast<const Bytes*>(operand);
  switch (row_bytes) {
    case 4:
      return move_rows_of<4>(to, target_stride, from, operand_stride, rows);
    case 8:
      return move_rows_of<8>(to, target_stride, from, operand_stride, rows);
    case 16:
      return move_rows_of<16>(to, target_stride, from, operand_stride, rows);
    case 32:
      return move_rows_of<32>(to, target_stride, from, operand_stride, rows);
    case 64:
      return move_rows_of<64>(to, target_stride, from, operand_stride, rows);
    case 128:
      return move_rows_of<128>(to, target_stride, from, operand_stride, rows);
    default:
      return move_any_rows(to, target_stride, from, operand_stride, row_bytes, rows);
  }
}

template <Size element_bytes>
struct Replace {
  static constexpr Size chunk_bytes = element_bytes > smallest_vector_bytes ? smallest_vector_bytes : element_bytes;

  template <bool fetching>
  [[gnu::always_inline]] static void run(Bytes* target, const Bytes* operand, Bytes* result, Size count, const void*) {
    if (count <= short_count) [[likely]] {
      for (Size left = count * (element_bytes / chunk_bytes); left != 0; --left) {
        move_chunks<fetching, chunk_bytes, 1>(target, operand, result);
      }
      return;
    }
    move_many<fetching>(target, operand, result, count * element_bytes, element_bytes);
  }
};

// The fetching form is a replace of the result by the target.
template <Size element_bytes>
struct NoOp {
  template <bool fetching>
  [[gnu::always_inline]] static void run(Bytes* target, const Bytes*, Bytes* result, Size count, const void*) {
    if constexpr (fetching) Replace<element_bytes>::template run<false>(result, target, nullptr, count, nullptr);
  }
};

// ---- The table ----

template <Size bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = std::uint64_t;
};

template <class Loop>
struct Choice {
  using type = Entries<Loop>;
};

template <class T, class Op>
using RealLoop = std::conditional_t<std::is_same_v<T, long double>, ElementLoop<T, Op>, VectorLoop<T, Op>>;

template <class T, class Op>
using ComplexLoop =
    std::conditional_t<std::is_same_v<typename Lane<T>::type, long double>, ElementLoop<T, Op>, VectorLoop<T, Op>>;

template <Operator op, class Reals>
constexpr auto choose_complex() {
  using Real = decltype(Reals::real);
  if constexpr (op == Operator::sum)
    return Choice<TwiceAsMany<RealLoop<Real, Sum>>>{};
  else if constexpr (op == Operator::scaled_sum)
    return Choice<ComplexLoop<Reals, ComplexScaledSum>>{};
  else
    return Choice<ComplexLoop<Reals, ComplexProd>>{};
}

// What the sign of an integer does not matter to.
template <Operator op, Size bytes>
constexpr auto choose_unsigned() {
  using T = typename UnsignedOf<bytes>::type;
  if constexpr (op == Operator::sum)
    return Choice<VectorLoop<T, Sum>>{};
  else if constexpr (op == Operator::scaled_sum)
    return Choice<VectorLoop<T, ScaledSum>>{};
  else if constexpr (op == Operator::prod)
    return Choice<VectorLoop<T, Prod>>{};
  else if constexpr (op == Operator::band)
    return Choice<VectorLoop<T, BitAnd>>{};
  else if constexpr (op == Operator::bor)
    return Choice<VectorLoop<T, BitOr>>{};
  else if constexpr (op == Operator::bxor)
    return Choice<VectorLoop<T, BitXor>>{};
  else if constexpr (op == Operator::land)
    return Choice<VectorLoop<T, LogicalAnd>>{};
  else if constexpr (op == Operator::lor)
    return Choice<VectorLoop<T, LogicalOr>>{};
  else
    return Choice<VectorLoop<T, LogicalXor>>{};
}

template <ElementType type, Operator op>
constexpr auto choose() {
  using T = typename Element<type>::type;
  if constexpr (op == Operator::replace)
    return Choice<Replace<sizeof(T)>>{};
  else if constexpr (op == Operator::no_op)
    return Choice<NoOp<sizeof(T)>>{};
  else if constexpr (op == Operator::minloc)
    return Choice<ElementLoop<T, MinLoc>>{};
  else if constexpr (op == Operator::maxloc)
    return Choice<ElementLoop<T, MaxLoc>>{};
  else if constexpr (op == Operator::min)
    return Choice<RealLoop<T, Min>>{};
  else if constexpr (op == Operator::max)
    return Choice<RealLoop<T, Max>>{};
  else if constexpr (kind_of(type) == ElementKind::complex)
    return choose_complex<op, T>();
  else if constexpr (kind_of(type) != ElementKind::floating)
    return choose_unsigned<op, sizeof(T)>();
  else if constexpr (op == Operator::sum)
    return Choice<RealLoop<T, Sum>>{};
  else if constexpr (op == Operator::scaled_sum)
    return Choice<RealLoop<T, ScaledSum>>{};
  else
    return Choice<RealLoop<T, Prod>>{};
}

template <Size type_index, Size op_index>
consteval void fill_cell(KernelSet& set) {
  constexpr auto type = static_cast<ElementType>(type_index);
  constexpr auto op = static_cast<Operator>(op_index);
  if constexpr (legal(type, op) && is_plain(type, op)) {
    set.bulk_table[type_index][op_index] = &PlainKernel<type, op>::bulk;
    set.fetch_table[type_index][op_index] = &PlainKernel<type, op>::fetch;
  } else if constexpr (legal(type, op)) {
    using Kernel = typename decltype(choose<type, op>())::type;
    set.bulk_table[type_index][op_index] = &Kernel::bulk;
    set.fetch_table[type_index][op_index] = &Kernel::fetch;
  }
}

template <Size type_index, Size... op_index>
consteval void fill_row(KernelSet& set, std::index_sequence<op_index...>) {
  (fill_cell<type_index, op_index>(set), ...);
}

template <Size... type_index>
consteval void fill_rows(KernelSet& set, std::index_sequence<type_index...>) {
  (fill_row<type_index>(set, std::make_index_sequence<operator_count>{}), ...);
}

consteval KernelSet make_kernel_set(Isa isa, const char* name) {
  KernelSet set{isa, name, {}, {}, &move_rows};
  fill_rows(set, std::make_index_sequence<element_type_count>{});
  return set;
}

}  // namespace
}  // namespace farsum::ops
