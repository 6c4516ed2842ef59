// Sets the records of a lab program without and with Farsum side by side. Pure functions of what the program printed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace farsum::cli {

using LabRecord = nlohmann::ordered_json;

// The JSON lines of an output; other lines are passed over.
[[nodiscard]] std::vector<LabRecord> lab_records(const std::string& output);

// One row of the comparison.
struct LabRow {
  std::vector<std::string> labels;  // values of LabTable::label_names
  std::string measure;
  double without = 0;  // NaN where one side has no such record
  double with = 0;
};

struct LabTable {
  std::vector<std::string> label_names;  // what tells rows apart
  std::vector<LabRow> rows;
  std::vector<std::string> notes;  // records without a number: why something was left out
};

// A measure is a field with a fraction, or an object with a median; strings and integers are labels, and the ones that
// are the same everywhere are left out.
[[nodiscard]] LabTable compare_lab_records(const std::vector<LabRecord>& without, const std::vector<LabRecord>& with);

[[nodiscard]] std::string print_lab_table(const LabTable& table);

}  // namespace farsum::cli
