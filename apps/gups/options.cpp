#include "options.hpp"

#include <map>

#include <CLI/CLI.hpp>

#include "../common/command_line.hpp"

namespace gups {

namespace {

constexpr const char* description =
    "HPCC RandomAccess over one-sided calls (paper 4): random 64-bit words of a table spread over the ranks are "
    "updated.\n"
    "At most 1024 updates of a rank are looked ahead, un-flushed ones included; the table is verified afterwards.\n\n"
    "  gmp         get, modify, put in two lock epochs; may lose updates, HPCC allows 1 % wrong words\n"
    "  gmp-mutex   the same under a mutex of the target\n"
    "  accumulate  one accumulate per update\n"
    "  aggregated  the same with FARSUM_PATH=aggregated: gathered per target into one message\n"
    "  direct      one accumulate per update in a window that promises single elements: bare processor atomics\n"
    "  batched     one accumulate per target with the list of up to 1024 offsets\n"
    "  card        one accumulate per update in a window that is declared network-only: the card's atomics; not in "
    "all\n";

constexpr const char* example =
    "Example:\n"
    "  farsum run -n 2 build/bin/gups --way direct,batched --log2-words 24 --baseline --repeat 5\n\n"
    "The exit code is 0 when the table is right (gmp: at most 1 % wrong words), 1 when not, 2 for bad options.";

constexpr const char* every_way = "all";

const std::map<std::string, Way>& ways() {
  static const std::map<std::string, Way> names = {{"gmp", Way::gmp},
                                                   {"gmp-mutex", Way::gmp_mutex},
                                                   {"accumulate", Way::accumulate},
                                                   {"aggregated", Way::aggregated},
                                                   {"direct", Way::direct},
                                                   {"batched", Way::batched},
                                                   {"card", Way::card}};
  return names;
}

std::vector<std::string> way_choices() {
  std::vector<std::string> choices;
  for (const auto& [name, way] : ways()) choices.push_back(name);
  choices.emplace_back(every_way);
  return choices;
}

struct Words {
  std::vector<std::string> ways = {every_way};
  std::string op = "xor";
  std::string epochs = "one";
  std::string memory = "allocated";
};

void take_words(const Words& words, Options& options) {
  for (const std::string& name : words.ways) {
    if (name == every_way) {
      options.ways = {Way::gmp, Way::gmp_mutex, Way::accumulate, Way::aggregated, Way::direct, Way::batched};
      break;
    }
    options.ways.push_back(ways().at(name));
  }
  options.op = words.op == "xor" ? FARSUM_BXOR : FARSUM_SUM;
  options.epochs = words.epochs == "one" ? Epochs::one : Epochs::per_update;
  options.memory = words.memory == "allocated" ? Memory::allocated : Memory::adopted;
}

void declare(CLI::App& parser, Words& words, Options& options) {
  parser.add_option("--way", words.ways, "one of the ways above or all; several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember(way_choices()))
      ->capture_default_str();
  parser.add_option("--op", words.op, "the update: xor or sum")
      ->check(CLI::IsMember({"xor", "sum"}))
      ->capture_default_str();
  parser
      .add_option("--log2-words", options.log2_words, "logarithm of the table's size in 8-byte words, over all ranks")
      ->check(CLI::Range(0, 40))
      ->capture_default_str();
  parser.add_option("--updates", options.updates, "updates over all ranks; 0: four per word, as HPCC")
      ->capture_default_str();
  parser.add_option("--batch", options.batch, "updates of a rank between two flushes")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1024}))
      ->capture_default_str();
  parser
      .add_option("--aggregate", options.aggregate,
                  "aggregated: updates gathered per target; 0: half an even share of the batch")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  parser
      .add_option("--epochs", words.epochs,
                  "accumulate: one epoch with flushes, or one epoch per-update (paper 4, fig. 1b)")
      ->check(CLI::IsMember({"one", "per-update"}))
      ->capture_default_str();
  parser.add_option("--memory", words.memory, "of the table: allocated by Farsum, or adopted from the program's heap")
      ->check(CLI::IsMember({"allocated", "adopted"}))
      ->capture_default_str();
  parser.add_option("--path", options.path, "sets FARSUM_PATH (aggregated sets its own)")
      ->check(CLI::IsMember(apps::path_choices()));
  parser.add_flag("--baseline", options.baseline,
                  "time a bare 'lock xor' loop on the same table in turn, and give the ratio");
  parser.add_option("--repeat", options.repeat, "runs of each way; the median is given")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  parser.add_flag("--json", options.json, "print one JSON document instead of the table");
  parser.add_flag("--quiet", options.quiet, "no progress on stderr");
}

}  // namespace

const char* way_name(Way way) {
  for (const auto& [name, value] : ways()) {
    if (value == way) return name.c_str();
  }
  return "unknown";
}

const char* op_name(farsum_op op) { return op == FARSUM_BXOR ? "xor" : "sum"; }

bool is_atomic(Way way) { return way != Way::gmp; }

std::optional<int> read_options(int argc, char** argv, Options& options) {
  Words words;
  CLI::App parser(description, "gups");
  parser.footer(example);
  declare(parser, words, options);
  if (const std::optional<int> code = apps::parse_options(parser, argc, argv)) return code;
  take_words(words, options);
  return std::nullopt;
}

}  // namespace gups
