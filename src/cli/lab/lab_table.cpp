// The comparison and its layout.
#include "cli/lab/lab_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>

namespace farsum::cli {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

using Labels = std::map<std::string, std::string>;

struct Measured {
  Labels labels;
  std::vector<std::pair<std::string, double>> values;
};

// A plain number that is the same in every record is an option of the program, not a result.
bool is_parameter(const std::vector<LabRecord>& all, const std::string& key) {
  std::set<double> values;
  for (const LabRecord& record : all) {
    if (record.contains(key) && record[key].is_number_float()) values.insert(record[key].get<double>());
  }
  return all.size() > 1 && values.size() == 1;
}

std::vector<LabRecord> without_parameters(std::vector<LabRecord> records) {
  std::set<std::string> parameters;
  for (const LabRecord& record : records) {
    for (const auto& [key, value] : record.items()) {
      if (value.is_number_float() && is_parameter(records, key)) parameters.insert(key);
    }
  }
  for (LabRecord& record : records) {
    for (const std::string& key : parameters) record.erase(key);
  }
  return records;
}

// Says what ran, not what was measured; differs between libraries.
bool is_heading(const std::string& key) {
  return key == "program" || key == "abi" || key == "library" || key == "ranks";
}

Measured take_apart(const LabRecord& record) {
  Measured measured;
  for (const auto& [key, value] : record.items()) {
    if (is_heading(key)) continue;
    if (value.is_number_float()) {
      measured.values.emplace_back(key, value.get<double>());
    } else if (value.is_object() && value.contains("median") && value["median"].is_number()) {
      measured.values.emplace_back(key, value["median"].get<double>());
    } else if (value.is_string()) {
      measured.labels[key] = value.get<std::string>();
    } else if (value.is_primitive()) {
      measured.labels[key] = value.dump();
    }
  }
  return measured;
}

std::string label_of(const Labels& labels, const std::string& name) {
  const auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

std::string note_of(const Measured& measured) {
  std::string note;
  for (const auto& [name, value] : measured.labels)
    note += fmt::format("{}{}: {}", note.empty() ? "" : ", ", name, value);
  return note;
}

// The names of labels whose values differ between records that were measured.
std::vector<std::string> telling_labels(const std::vector<Measured>& all) {
  std::map<std::string, std::set<std::string>> values;
  std::vector<std::string> order;
  for (const Measured& measured : all) {
    if (measured.values.empty()) continue;
    for (const auto& [name, unused] : measured.labels) {
      if (values.try_emplace(name).second) order.push_back(name);
    }
  }
  for (const Measured& measured : all) {
    if (measured.values.empty()) continue;
    for (const std::string& name : order) values[name].insert(label_of(measured.labels, name));
  }
  std::erase_if(order, [&](const std::string& name) { return values[name].size() < 2; });
  return order;
}

std::string number(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4g}", value); }

std::string ratio(const LabRow& row) {
  if (std::isnan(row.without) || std::isnan(row.with) || row.without == 0) return "-";
  return fmt::format("{:.3g}", row.with / row.without);
}

}  // namespace

std::vector<LabRecord> lab_records(const std::string& output) {
  std::vector<LabRecord> records;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    LabRecord record = LabRecord::parse(line, nullptr, false);
    if (record.is_object()) records.push_back(std::move(record));
  }
  return records;
}

LabTable compare_lab_records(const std::vector<LabRecord>& without, const std::vector<LabRecord>& with) {
  std::vector<LabRecord> records = without;
  records.insert(records.end(), with.begin(), with.end());
  std::vector<Measured> all;
  for (const LabRecord& record : without_parameters(std::move(records))) all.push_back(take_apart(record));
  LabTable table;
  table.label_names = telling_labels(all);
  std::map<std::pair<std::vector<std::string>, std::string>, std::size_t> place;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_with = i >= without.size();
    if (all[i].values.empty()) {
      const std::string note = note_of(all[i]);
      if (std::find(table.notes.begin(), table.notes.end(), note) == table.notes.end()) table.notes.push_back(note);
    }
    std::vector<std::string> labels;
    for (const std::string& name : table.label_names) labels.push_back(label_of(all[i].labels, name));
    for (const auto& [measure, value] : all[i].values) {
      const auto [found, is_new] = place.try_emplace({labels, measure}, table.rows.size());
      if (is_new) table.rows.push_back({labels, measure, nothing, nothing});
      LabRow& row = table.rows[found->second];
      (is_with ? row.with : row.without) = value;
    }
  }
  return table;
}

std::string print_lab_table(const LabTable& table) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> head = table.label_names;
  head.insert(head.end(), {"measure", "without", "with", "with/without"});
  cells.push_back(head);
  for (const LabRow& row : table.rows) {
    std::vector<std::string> line = row.labels;
    line.insert(line.end(), {row.measure, number(row.without), number(row.with), ratio(row)});
    cells.push_back(std::move(line));
  }
  std::vector<std::size_t> widths(head.size(), 0);
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  const std::size_t words = table.label_names.size() + 1;
  std::string text;
  for (const auto& line : cells) {
    std::string printed;
    for (std::size_t i = 0; i < line.size(); ++i) {
      printed += i < words ? fmt::format("{:<{}}  ", line[i], widths[i]) : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    text += printed.substr(0, printed.find_last_not_of(' ') + 1) + "\n";
  }
  for (const std::string& note : table.notes) text += note + "\n";
  return text;
}

}  // namespace farsum::cli
