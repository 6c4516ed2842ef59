/* What TCP itself does between two hosts: the limit of one-sided operations over it. Answers are checked.
 *
 *   raw_tcp serve PORT                             answers callers one after the other, blocking, until its input ends
 *   raw_tcp call HOST PORT [--slice-us N]          round trips, then streams of several shapes, as JSON lines
 *
 * Round trip: 8 bytes there and back, the caller polls, the responder sleeps in the kernel; once more with a thread
 * that computes on the responder's processor; and so again with the caller computing for some milliseconds between two.
 * Stream: bytes by `write` of one size, read by `recv` of another, with the kernel's socket buffers or larger ones, up
 * to one byte of answer. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { most_chunk = 1 << 20, least_samples = 100, most_samples = 1 << 16, table_words = 1 << 21 };
enum { paused_samples = 21, mean_pause_us = 2000 };

/* What a caller asks for first. A stream is followed by the sum of its words, a round trip by the number plus one. */
typedef struct {
  uint64_t stream_bytes; /* 0: round trips until the connection ends */
  uint64_t read_bytes;
  uint64_t buffer_bytes; /* 0: the kernel's own */
  uint64_t checks;
  uint64_t computes; /* beside the round trips */
} Wish;

static uint64_t* chunk;
static double samples[most_samples];

static void fail(const char* what) {
  fprintf(stderr, "raw_tcp: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void wrong(const char* what) {
  printf("FAILED: wrong answer: %s\n", what);
  exit(1);
}

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void pin(int number) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int left = number % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- != 0) continue;
    CPU_ZERO(&allowed);
    CPU_SET(cpu, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
    return;
  }
}

static void set(int socket_number, int level, int name, int value) {
  if (setsockopt(socket_number, level, name, &value, sizeof value) != 0) fail("setsockopt");
}

/* SO_*BUFFORCE passes the administrator's limit; without the right to it the kernel's own sizes remain. */
static void enlarge(int socket_number, uint64_t bytes) {
  const int value = (int)bytes;
  if (bytes == 0) return;
  (void)setsockopt(socket_number, SOL_SOCKET, SO_SNDBUFFORCE, &value, sizeof value);
  (void)setsockopt(socket_number, SOL_SOCKET, SO_RCVBUFFORCE, &value, sizeof value);
}

static void send_all(int to, const void* bytes, size_t count) {
  for (const char* next = bytes; count != 0;) {
    const ssize_t sent = send(to, next, count, MSG_NOSIGNAL);
    if (sent < 0) fail("send");
    next += sent, count -= (size_t)sent;
  }
}

/* Whether they came, rather than the end of the connection. */
static int receive_all(int from, void* bytes, size_t count, int flags) {
  for (char* next = bytes; count != 0;) {
    const ssize_t got = recv(from, next, count, flags);
    if (got < 0 && errno == EAGAIN) continue;
    if (got <= 0) return 0;
    next += got, count -= (size_t)got;
  }
  return 1;
}

static uint64_t sum_of(const uint64_t* words, size_t bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes / sizeof *words; ++i) sum += words[i] * (i + 1);
  return sum;
}

static void compute_a_little(void) {
  volatile double value = 1;
  for (int i = 0; i < 1000; ++i) value = value * 0.999 + 1;
}

static int computes; /* until it is 0 */

static void* compute(void* ignored) {
  (void)ignored;
  while (__atomic_load_n(&computes, __ATOMIC_RELAXED)) compute_a_little();
  return NULL;
}

static void answer_round_trips(int caller, int beside_computing) {
  uint64_t number;
  pthread_t thread;
  computes = beside_computing;
  if (beside_computing && (errno = pthread_create(&thread, NULL, compute, NULL)) != 0) fail("a thread that computes");
  while (receive_all(caller, &number, sizeof number, 0)) {
    ++number;
    send_all(caller, &number, sizeof number);
  }
  __atomic_store_n(&computes, 0, __ATOMIC_RELAXED);
  if (beside_computing) pthread_join(thread, NULL);
}

static void answer_stream(int caller, const Wish* wish) {
  uint64_t sum = 0;
  for (uint64_t left = wish->stream_bytes; left != 0;) {
    const size_t next = left < wish->read_bytes ? left : wish->read_bytes;
    if (wish->checks) {
      if (!receive_all(caller, chunk, next, 0)) return;
      sum += sum_of(chunk, next);
      left -= next;
    } else {
      const ssize_t got = recv(caller, chunk, next, 0);
      if (got <= 0) return;
      left -= (uint64_t)got;
    }
  }
  send_all(caller, &sum, sizeof sum);
}

static void answer(int caller) {
  Wish wish;
  set(caller, IPPROTO_TCP, TCP_NODELAY, 1);
  while (receive_all(caller, &wish, sizeof wish, 0)) {
    if (wish.read_bytes == 0 || wish.read_bytes > most_chunk) return;
    enlarge(caller, wish.buffer_bytes);
    if (wish.stream_bytes == 0) {
      answer_round_trips(caller, wish.computes != 0);
    } else {
      answer_stream(caller, &wish);
    }
  }
}

static int serve(const char* port) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(listener, (struct sockaddr*)&here, sizeof here) != 0 || listen(listener, 8) != 0) fail("listen");
  printf("raw_tcp: listens\n");
  fflush(stdout);
  for (;;) {
    struct pollfd ready[] = {{.fd = listener, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    if (poll(ready, 2, -1) < 0) fail("poll");
    if (ready[1].revents != 0) return 0;
    const int caller = accept(listener, NULL, NULL);
    if (caller < 0) fail("accept");
    answer(caller);
    close(caller);
  }
}

static int reach(const char* host, const char* port) {
  const struct addrinfo wish = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* found;
  if (getaddrinfo(host, port, &wish, &found) != 0) fail("getaddrinfo");
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(server, found->ai_addr, found->ai_addrlen) != 0) fail("connect");
  freeaddrinfo(found);
  set(server, IPPROTO_TCP, TCP_NODELAY, 1);
  return server;
}

static int by_value(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static double median(size_t count) {
  qsort(samples, count, sizeof *samples, by_value);
  return samples[count / 2];
}

static uint64_t round_trip(int server, uint64_t number) {
  send_all(server, &number, sizeof number);
  if (!receive_all(server, &number, sizeof number, MSG_DONTWAIT)) fail("the responder has gone");
  return number;
}

/* Before each the caller computes, as lab-counter's ranks do between two numbers, for anything from none to twice
 * pause_us. */
static void measure_round_trips(const char* host, const char* port, long slice_us, int beside_computing,
                                long pause_us) {
  const Wish wish = {.read_bytes = 8, .computes = (uint64_t)beside_computing};
  const int server = reach(host, port);
  size_t count = 0;
  send_all(server, &wish, sizeof wish);
  for (uint64_t i = 0; i < 200; ++i) {
    if (round_trip(server, i) != i + 1) wrong("a round trip");
  }
  const double end = now_ns() + (double)slice_us * 1e3;
  const size_t least = pause_us == 0 ? least_samples : paused_samples;
  while ((now_ns() < end || count < least) && count < most_samples) {
    const double ready = now_ns() + (double)pause_us * 2e3 * (double)count / paused_samples;
    while (now_ns() < ready) compute_a_little();
    const double start = now_ns();
    if (round_trip(server, count) != count + 1) wrong("a round trip");
    samples[count++] = now_ns() - start;
  }
  close(server);
  const double middle = median(count);
  printf("{\"case\":\"round-trip-8%s\",\"ns\":%.1f,\"low\":%.1f,\"high\":%.1f,\"samples\":%zu}\n",
         pause_us != 0      ? "-drawn"
         : beside_computing ? "-computing"
                            : "",
         middle, samples[count / 4], samples[count * 3 / 4], count);
}

static uint64_t stream(int server, const Wish* wish, size_t write_bytes) {
  uint64_t sum, expected = 0;
  send_all(server, wish, sizeof *wish);
  for (uint64_t left = wish->stream_bytes; left != 0;) {
    const size_t next = left < write_bytes ? left : write_bytes;
    send_all(server, chunk, next);
    if (wish->checks) expected += sum_of(chunk, next);
    left -= next;
  }
  if (!receive_all(server, &sum, sizeof sum, 0)) fail("the responder has gone");
  if (sum != expected) wrong("the sum of a stream");
  return sum;
}

static void measure_stream(int server, size_t write_bytes, size_t read_bytes, size_t buffer_bytes, long slice_us) {
  Wish wish = {.stream_bytes = 4U << 20U,
               .read_bytes = read_bytes,
               .buffer_bytes = buffer_bytes,
               .checks = write_bytes == read_bytes};
  size_t count = 0;
  enlarge(server, buffer_bytes);
  stream(server, &wish, write_bytes);
  wish.checks = 0;
  wish.stream_bytes = 8U << 20U;
  const double end = now_ns() + (double)slice_us * 1e3;
  do {
    const double start = now_ns();
    stream(server, &wish, write_bytes);
    samples[count++] = (double)wish.stream_bytes * 1e3 / (now_ns() - start);
  } while (now_ns() < end && count < most_samples);
  printf(
      "{\"case\":\"stream\",\"write_bytes\":%zu,\"read_bytes\":%zu,\"buffer_bytes\":%zu,\"MB_per_s\":%.1f,\"samples\":%"
      "zu}\n",
      write_bytes, read_bytes, buffer_bytes, median(count), count);
}

/* One core's own updates of a table as large as net_rma's. */
static void measure_updates(long slice_us) {
  uint64_t* const table = calloc(table_words, sizeof *table);
  uint64_t state = 1;
  size_t count = 0;
  if (table == NULL) fail("calloc");
  for (size_t i = 0; i < table_words; ++i) table[i] = i;
  const double end = now_ns() + (double)slice_us * 1e3;
  do {
    const double start = now_ns();
    for (int i = 0; i < 4096; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      __atomic_fetch_xor(&table[(state >> 33U) % table_words], state, __ATOMIC_RELAXED);
    }
    samples[count++] = 4096e3 / (now_ns() - start);
  } while (now_ns() < end && count < most_samples);
  printf("{\"case\":\"lock-xor\",\"M_per_s\":%.2f,\"samples\":%zu}\n", median(count), count);
  free(table);
}

static void call(const char* host, const char* port, long slice_us) {
  const size_t writes[] = {16384, 65536, 262144, most_chunk};
  const size_t reads[] = {65536, 262144, most_chunk};
  const size_t buffers[] = {0, 4U << 20U};
  measure_round_trips(host, port, slice_us, 0, 0);
  measure_round_trips(host, port, slice_us, 1, 0);
  measure_round_trips(host, port, 0, 1, mean_pause_us);
  for (size_t buffer = 0; buffer < 2; ++buffer) {
    for (size_t write = 0; write < 4; ++write) {
      for (size_t read = 0; read < 3; ++read) {
        const int server = reach(host, port);
        measure_stream(server, writes[write], reads[read], buffers[buffer], slice_us / 4);
        close(server);
      }
    }
  }
  measure_updates(slice_us / 2);
  printf("raw_tcp: done\n");
}

int main(int count, char** words) {
  const int serves = count == 3 && strcmp(words[1], "serve") == 0;
  const int calls = count >= 4 && strcmp(words[1], "call") == 0;
  const int has_slice = count == 6 && strcmp(words[4], "--slice-us") == 0 && atol(words[5]) > 0;
  if (!serves && !(calls && (count == 4 || has_slice))) {
    fprintf(stderr, "raw_tcp serve PORT | raw_tcp call HOST PORT [--slice-us N]\n");
    return 2;
  }
  chunk = malloc(most_chunk);
  if (chunk == NULL) fail("malloc");
  for (size_t i = 0; i < most_chunk / sizeof *chunk; ++i) chunk[i] = i * 0x9E3779B97F4A7C15U;
  pin(serves ? 1 : 0);
  if (serves) return serve(words[2]);
  call(words[2], words[3], has_slice ? atol(words[5]) : 40000);
  return 0;
}
