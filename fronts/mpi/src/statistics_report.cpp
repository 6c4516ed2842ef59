// The end of a run: every rank turns its numbers into lines of words between tabs, rank 0 adds them up and prints them.
//
//   W id name flavor bytes                                   a window
//   O id call path count bytes spent_ns waited_ns own_count own_bytes peer_count peer_bytes network_count network_bytes
//                                                             what was done on it
//   C call operator type elements count spent_ns             collective calls
//   M windows                                                windows that the engine made
//   S sentence                                               what was left to the library, and why
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "front.hpp"
#include "setting.h"
#include "statistics.hpp"
#include "statistics_data.hpp"

namespace farsum::mpi {
namespace {

// ---- one rank's lines ----

std::string cleaned(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  }
  return text;
}

const char* name_of(MPI_Op op) {
  if (op == MPI_OP_NULL) return "-";
  const BasicOp* basic = Front::get().datatypes.op(op);
  if (basic == nullptr) return "user's";
  switch (basic->op) {
    case FARSUM_SUM:
      return "sum";
    case FARSUM_SCALED_SUM:
      return "scaled sum";
    case FARSUM_PROD:
      return "prod";
    case FARSUM_MIN:
      return "min";
    case FARSUM_MAX:
      return "max";
    case FARSUM_MINLOC:
      return "minloc";
    case FARSUM_MAXLOC:
      return "maxloc";
    case FARSUM_BAND:
      return "band";
    case FARSUM_BOR:
      return "bor";
    case FARSUM_BXOR:
      return "bxor";
    case FARSUM_LAND:
      return "land";
    case FARSUM_LOR:
      return "lor";
    case FARSUM_LXOR:
      return "lxor";
    case FARSUM_REPLACE:
      return "replace";
    case FARSUM_NO_OP:
      return "no_op";
  }
  return "?";
}

std::string name_of(MPI_Datatype type, const char* call) {
  if (type == MPI_DATATYPE_NULL) return std::string_view(call) == "Barrier" ? "-" : "derived";
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  if (library().Type_get_name(type, name, &length) != MPI_SUCCESS || length == 0) return "predefined";
  return name;
}

std::string name_of_live(MPI_Win handle) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  return library().Win_get_name(handle, name, &length) == MPI_SUCCESS ? name : "";
}

}  // namespace

std::string Statistics::take_lines() {
  std::ostringstream out;
  const std::lock_guard lock(mutex_);
  for (const auto& record : all_) {
    const std::lock_guard record_lock(record->mutex);
    if (record->handle != MPI_WIN_NULL) record->name = name_of_live(record->handle);
    out << "W\t" << record->id << '\t' << cleaned(record->name) << '\t' << record->flavor << '\t' << record->bytes
        << '\n';
    record->bytes = 0;  // counted
    for (const auto& [key, tally] : std::exchange(record->operations, {})) {
      out << "O\t" << record->id << '\t' << key.first << '\t' << key.second << '\t' << tally.count << '\t'
          << tally.bytes << '\t' << tally.spent_ns << '\t' << tally.waited_ns << '\t' << tally.own_count << '\t'
          << tally.own_bytes << '\t' << tally.peer_count << '\t' << tally.peer_bytes << '\t' << tally.network_count
          << '\t' << tally.network_bytes << '\n';
    }
  }
  std::erase_if(all_, [this](const auto& record) { return record->handle == MPI_WIN_NULL && record != memory_; });
  for (const auto& [key, tally] : std::exchange(collectives_, {})) {
    const auto& [call, op, type, elements] = key;
    out << "C\t" << call << '\t' << name_of(op) << '\t' << cleaned(name_of(type, call)) << '\t' << elements << '\t'
        << tally.count << '\t' << tally.spent_ns << '\n';
  }
  return out.str();
}

namespace {

// ---- all ranks' numbers on rank 0 ----

struct WindowSum {
  std::string name;
  std::string flavor;
  std::uint64_t bytes = 0;
  std::map<std::pair<std::string, std::string>, Tally> operations;

  std::uint64_t spent_ns() const {
    std::uint64_t sum = 0;
    for (const auto& [key, tally] : operations) sum += tally.spent_ns;
    return sum;
  }
};

struct Sums {
  int ranks = 0;
  std::map<std::uint64_t, WindowSum> windows;  // 0: memory without a window
  std::map<std::tuple<std::string, std::string, std::string, std::uint64_t>, Tally> collectives;
  std::uint64_t windows_made = 0;
  std::uint64_t reads_answered = 0;
  std::uint64_t blocks_fetched = 0;
  std::uint64_t peers = 0, endpoints = 0, connections = 0, peer_bytes = 0, strangers = 0, refused = 0;
  std::set<std::string> sentences;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; std::getline(in, word, '\t');) words.push_back(word);
  return words;
}

std::uint64_t number(const std::string& word) { return std::strtoull(word.c_str(), nullptr, 10); }

void add_line(const std::string& line, Sums& sums) {
  const std::vector<std::string> words = split(line);
  if (words.size() < 2) return;
  if (words[0] == "W" && words.size() == 5) {
    WindowSum& window = sums.windows[number(words[1])];
    window.name = words[2];
    window.flavor = words[3];
    window.bytes += number(words[4]);
  } else if (words[0] == "O" && words.size() == 14) {
    sums.windows[number(words[1])].operations[{words[2], words[3]}].add(
        {number(words[4]), number(words[5]), number(words[6]), number(words[7]), number(words[8]), number(words[9]),
         number(words[10]), number(words[11]), number(words[12]), number(words[13])});
  } else if (words[0] == "C" && words.size() == 7) {
    sums.collectives[{words[1], words[2], words[3], number(words[4])}].add({number(words[5]), 0, number(words[6]), 0});
  } else if (words[0] == "M") {
    sums.windows_made += number(words[1]);
  } else if (words[0] == "R" && words.size() == 3) {
    sums.reads_answered += number(words[1]);
    sums.blocks_fetched += number(words[2]);
  } else if (words[0] == "N" && words.size() == 7) {
    std::uint64_t* const counts[] = {&sums.peers,      &sums.endpoints, &sums.connections,
                                     &sums.peer_bytes, &sums.strangers, &sums.refused};
    for (std::size_t i = 0; i < std::size(counts); ++i) *counts[i] += number(words[i + 1]);
  } else if (words[0] == "S") {
    sums.sentences.insert(words[1]);
  }
}

// Gathers every rank's text; only rank 0 gets it.
std::string gather(const std::string& mine, int rank, int ranks) {
  const int bytes = static_cast<int>(mine.size());
  std::vector<int> sizes(static_cast<std::size_t>(ranks));
  std::vector<int> starts(static_cast<std::size_t>(ranks));
  library().Gather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  int total = 0;
  for (std::size_t i = 0; i < sizes.size() && rank == 0; ++i) {
    starts[i] = total;
    total += sizes[i];
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  library().Gatherv(mine.data(), bytes, MPI_BYTE, all.data(), sizes.data(), starts.data(), MPI_BYTE, 0, MPI_COMM_WORLD);
  return all;
}

// ---- the tables ----

class Table {
 public:
  explicit Table(std::vector<std::string> titles, std::size_t left_columns) : left_columns_(left_columns) {
    rows_.push_back(std::move(titles));
  }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string text() const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line = "farsum:";
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string room(widths[i] - row[i].size(), ' ');
        line += "  " + (i < left_columns_ ? row[i] + room : room + row[i]);
      }
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  std::size_t left_columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string mean_us(const Tally& tally) {
  return fixed(static_cast<double>(tally.spent_ns) / static_cast<double>(tally.count) / 1e3, 3);
}

std::string seconds(std::uint64_t ns) { return fixed(static_cast<double>(ns) / 1e9, 4); }

// Of calls that name no target, or several, nothing.
std::string to_itself(const Tally& tally) {
  return tally.own_count + tally.peer_count == 0 ? "" : std::to_string(tally.own_count);
}

std::string over_network(const Tally& tally) {
  return tally.own_count + tally.peer_count == 0 ? "" : std::to_string(tally.network_count);
}

void add_rows(Table& table, const std::string& title, const WindowSum& window) {
  using Row = std::pair<std::pair<std::string, std::string>, Tally>;
  std::vector<Row> rows(window.operations.begin(), window.operations.end());
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.second.spent_ns > b.second.spent_ns; });
  bool first = true;
  for (const auto& [key, tally] : rows) {
    table.add({first ? title : "", first ? window.flavor : "", key.first, key.second,
               first && window.bytes != 0 ? std::to_string(window.bytes) : "", std::to_string(tally.count),
               to_itself(tally), over_network(tally), std::to_string(tally.bytes), mean_us(tally),
               seconds(tally.spent_ns), seconds(tally.waited_ns)});
    first = false;
  }
}

// In the order of creation.
std::string title_of(std::size_t number, const WindowSum& window) {
  return "#" + std::to_string(number) + (window.name.empty() ? "" : " " + window.name);
}

std::string window_table(const Sums& sums) {
  constexpr std::size_t shown = 20;
  Table table({"window", "flavor", "operation", "path", "memory B", "count", "to itself", "to other hosts", "bytes",
               "mean us", "total s", "waited s"},
              4);
  std::vector<std::pair<std::string, const WindowSum*>> windows;
  std::size_t number = 0;
  for (const auto& [id, window] : sums.windows) {
    if (!window.operations.empty()) windows.emplace_back(id == 0 ? "(none)" : title_of(++number, window), &window);
  }
  std::stable_sort(windows.begin(), windows.end(),
                   [](const auto& a, const auto& b) { return a.second->spent_ns() > b.second->spent_ns(); });
  WindowSum others;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (i < shown) {
      add_rows(table, windows[i].first, *windows[i].second);
      continue;
    }
    others.bytes += windows[i].second->bytes;
    for (const auto& [key, tally] : windows[i].second->operations) others.operations[key].add(tally);
  }
  if (windows.size() > shown) add_rows(table, std::to_string(windows.size() - shown) + " others", others);
  return table.text();
}

std::string elements(std::uint64_t lowest) {
  if (lowest < 2) return std::to_string(lowest);
  return std::to_string(lowest) + "-" + std::to_string(2 * lowest - 1);
}

std::string collective_table(const Sums& sums) {
  Table table({"collective", "operator", "type", "elements", "calls", "mean us", "total s"}, 3);
  for (const auto& [key, tally] : sums.collectives) {
    const auto& [call, op, type, lowest] = key;
    table.add({call, op, type, elements(lowest), std::to_string(tally.count), mean_us(tally), seconds(tally.spent_ns)});
  }
  return table.text();
}

void print(const Sums& sums) {
  std::string out = "farsum: one-sided calls of " + std::to_string(sums.ranks) +
                    " ranks: counts, bytes and times are sums over the ranks; to itself: calls whose target is the "
                    "caller; to other hosts: over the network; waited: in calls that wait for others\n" +
                    window_table(sums);
  if (!sums.collectives.empty()) out += "farsum: collective calls\n" + collective_table(sums);
  if (sums.blocks_fetched != 0) {
    out += "farsum: " + std::to_string(sums.reads_answered) +
           " reads of other hosts were answered from copies, for which " + std::to_string(sums.blocks_fetched) +
           " blocks of 16 KiB were fetched (FARSUM_READ_AGE)\n";
  }
  if (sums.peers != 0) {
    out += "farsum: network: " + std::to_string(sums.peers) + " peers of all ranks, " + std::to_string(sums.endpoints) +
           " connections open of " + std::to_string(sums.connections) + " made, " +
           std::to_string(sums.peer_bytes / sums.peers) +
           " bytes kept for a peer; dropped: " + std::to_string(sums.strangers) + " frames of strangers, " +
           std::to_string(sums.refused) + " bad ones\n";
  }
  std::fputs(out.c_str(), stderr);
}

// ---- the file ----

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;  // control characters were taken out by `cleaned`
  }
  return out + "\"";
}

void write_file(const char* path, const Sums& sums) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) {
    std::fprintf(stderr, "farsum: the statistics could not be written to %s (FARSUM_MPI_STATS_FILE)\n", path);
    return;
  }
  std::fprintf(file,
               "{\"kind\":\"run\",\"ranks\":%d,\"windows\":%zu,\"reads_answered\":%" PRIu64
               ",\"blocks_fetched\":%" PRIu64 ",\"network_peers\":%" PRIu64 ",\"network_endpoints\":%" PRIu64
               ",\"network_connections\":%" PRIu64 ",\"network_peer_bytes\":%" PRIu64 ",\"network_strangers\":%" PRIu64
               ",\"network_refused\":%" PRIu64 "}\n",
               sums.ranks, sums.windows.size() - sums.windows.count(0), sums.reads_answered, sums.blocks_fetched,
               sums.peers, sums.endpoints, sums.connections, sums.peer_bytes, sums.strangers, sums.refused);
  std::size_t number = 0;
  for (const auto& [id, window] : sums.windows) {
    const std::size_t mine = id == 0 ? 0 : ++number;
    for (const auto& [key, tally] : window.operations) {
      std::fprintf(
          file,
          "{\"kind\":\"operation\",\"window\":%zu,\"name\":%s,\"flavor\":%s,\"window_bytes\":%" PRIu64
          ",\"operation\":%s,\"path\":%s,\"count\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"total_ns\":%" PRIu64
          ",\"waited_ns\":%" PRIu64 ",\"own_count\":%" PRIu64 ",\"own_bytes\":%" PRIu64 ",\"peer_count\":%" PRIu64
          ",\"peer_bytes\":%" PRIu64 ",\"network_count\":%" PRIu64 ",\"network_bytes\":%" PRIu64 "}\n",
          mine, quoted(window.name).c_str(), quoted(window.flavor).c_str(), window.bytes, quoted(key.first).c_str(),
          quoted(key.second).c_str(), tally.count, tally.bytes, tally.spent_ns, tally.waited_ns, tally.own_count,
          tally.own_bytes, tally.peer_count, tally.peer_bytes, tally.network_count, tally.network_bytes);
    }
  }
  for (const auto& [key, tally] : sums.collectives) {
    const auto& [call, op, type, lowest] = key;
    std::fprintf(file,
                 "{\"kind\":\"collective\",\"operation\":%s,\"operator\":%s,\"type\":%s,\"elements_at_least\":%" PRIu64
                 ",\"count\":%" PRIu64 ",\"total_ns\":%" PRIu64 "}\n",
                 quoted(call).c_str(), quoted(op).c_str(), quoted(type).c_str(), lowest, tally.count, tally.spent_ns);
  }
  for (const std::string& sentence : sums.sentences) {
    std::fprintf(file, "{\"kind\":\"left_to_library\",\"sentence\":%s}\n", quoted(sentence).c_str());
  }
  std::fclose(file);
}

void say_what_was_not_taken_over(const Sums& sums) {
  for (const std::string& sentence : sums.sentences)
    std::fprintf(stderr, "farsum: in this run: %s\n", sentence.c_str());
  if (sums.windows_made != 0 || !sums.sentences.empty()) return;
  std::fprintf(
      stderr,
      "farsum: this program made no window. %s Builds of Global Arrays or NWChem with ARMCI_NETWORK=MPI-PR or MPI-TS "
      "use "
      "two-sided messages only: one on ARMCI-MPI, such as Debian's nwchem-openmpi or nwchem-mpich, uses windows\n",
      Front::get().ranks.node_is_crowded() ? "Its ranks are more than the processors here, so barriers were Farsum's, "
                                             "and ranks that waited in MPICH let "
                                             "others run."
                                           : "Its ranks have a processor each, so that Farsum changed nothing.");
}

}  // namespace

namespace {

// What the ranks of engines that have ended brought to this one.
struct Collected {
  std::mutex mutex;
  std::string lines;
  int ranks = 0;

  static Collected& get() {
    static auto* const collected = new Collected;
    return *collected;
  }
};

bool report_wanted() { return farsum_mpi_setting_is_on("FARSUM_MPI_LAUNCHED") != 0 || statistics_wanted(); }

std::string take_lines() {
  Front& front = Front::get();
  std::string mine = statistics_wanted() ? Statistics::get().take_lines() : "";
  mine += "M\t" + std::to_string(front.windows_made.exchange(0, std::memory_order_relaxed)) + "\n";
  farsum_statistics done = {};
  done.struct_bytes = sizeof done;
  const bool is_read = farsum_statistics_read(&done) == FARSUM_OK;
  if (is_read && done.network_peers != 0) {
    mine += "N";
    for (const std::uint64_t count : {done.network_peers, done.network_endpoints, done.network_connections,
                                      done.network_peer_bytes, done.network_strangers, done.network_refused})
      mine += "\t" + std::to_string(count);
    mine += "\n";
  }
  if (is_read && done.blocks_fetched != 0)
    mine += "R\t" + std::to_string(done.reads_answered) + "\t" + std::to_string(done.blocks_fetched) + "\n";
  for (const std::string& sentence : front.notices.said()) mine += "S\t" + cleaned(sentence) + "\n";
  return mine;
}

void report(const std::string& lines, int ranks) {
  std::istringstream all(lines);
  Sums sums;
  sums.ranks = ranks;
  for (std::string line; std::getline(all, line);) add_line(line, sums);
  if (farsum_mpi_setting_is_on("FARSUM_MPI_STATS") != 0) print(sums);
  const char* path = std::getenv("FARSUM_MPI_STATS_FILE");
  if (path != nullptr && *path != '\0') write_file(path, sums);
  say_what_was_not_taken_over(sums);
}

// All ranks' texts one after the other, on the first rank of the engine's context; "" elsewhere.
std::string gather_by_engine(const std::string& mine, int rank, int ranks) {
  const std::uint64_t bytes = mine.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(ranks));
  if (!Front::get().ranks.gather(&bytes, sizes.data(), sizeof bytes)) return "";
  const std::size_t room = *std::max_element(sizes.begin(), sizes.end());
  std::string padded = mine;
  padded.resize(room);
  std::string everything(room * sizes.size(), '\0');
  if (!Front::get().ranks.gather(padded.data(), everything.data(), room) || rank != 0) return "";
  std::string all;
  for (std::size_t i = 0; i < sizes.size(); ++i) all.append(everything, i * room, sizes[i]);
  return all;
}

}  // namespace

void collect_at_engines_end() {
  if (!report_wanted()) return;
  int rank = 0;
  const int ranks = Front::get().ranks.size();
  farsum_rank(farsum_world(), &rank);
  const std::string all = gather_by_engine(take_lines(), rank, ranks);
  if (rank != 0) return;
  Collected& collected = Collected::get();
  const std::lock_guard lock(collected.mutex);
  collected.lines += all;
  collected.ranks = std::max(collected.ranks, ranks);
}

void report_at_last_session() {
  Collected& collected = Collected::get();
  const std::lock_guard lock(collected.mutex);
  if (!collected.lines.empty()) report(std::exchange(collected.lines, {}), collected.ranks);
}

void report_at_end() {
  if (!report_wanted()) return;
  int rank = 0;
  int ranks = 1;
  library().Comm_rank(MPI_COMM_WORLD, &rank);
  library().Comm_size(MPI_COMM_WORLD, &ranks);
  // What an engine of sessions brought here before MPI_Init was called counts too.
  const std::string all = gather(Collected::get().lines + take_lines(), rank, ranks);
  if (rank == 0) report(all, ranks);
}

}  // namespace farsum::mpi
