#include "analyze/export/sql_schema.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <type_traits>

#include "trace/read/line.hpp"

namespace cudabpf::analyze {

namespace {

constexpr char DUCKDB_TABLES[] =
#include "duckdb_tables.inc"
    ;
constexpr char DUCKDB_LOAD[] =
#include "duckdb_load.inc"
    ;
constexpr char CLICKHOUSE_TABLES[] =
#include "clickhouse_tables.inc"
    ;
constexpr char CLICKHOUSE_LOAD[] =
#include "clickhouse_load.inc"
    ;

// What a column holds: how line_fields.def says that a field is read.
enum class Holds {
  name,
  flag,
  time,
  duration,
  address,
  dimensions,
  number_32,
  number_64,
  signed_64
};

namespace holding {

template <typename Number>
constexpr Holds whole = std::is_signed_v<Number> ? Holds::signed_64
                        : sizeof(Number) == 4    ? Holds::number_32
                                                 : Holds::number_64;
template <typename>
constexpr Holds nanoseconds = Holds::time;
template <typename>
constexpr Holds microseconds = Holds::duration;
template <typename>
constexpr Holds address = Holds::address;
template <typename>
constexpr Holds dimensions = Holds::dimensions;

}  // namespace holding

std::string_view type_of(Holds holds, SqlEngine engine) {
  bool duckdb = engine == SqlEngine::duckdb;
  switch (holds) {
    case Holds::name:
      return duckdb ? "VARCHAR" : "LowCardinality(String)";
    case Holds::flag:
      return duckdb ? "BOOLEAN" : "Bool";
    case Holds::time:
      return duckdb ? "UBIGINT" : "UInt64";
    case Holds::duration:
      return duckdb ? "DECIMAL(18, 3)" : "Nullable(Decimal(18, 3))";
    case Holds::address:
      return duckdb ? "VARCHAR" : "String";
    case Holds::dimensions:
      return duckdb ? "UINTEGER[]" : "Array(UInt32)";
    case Holds::number_32:
      return duckdb ? "UINTEGER" : "Nullable(UInt32)";
    case Holds::number_64:
      return duckdb ? "UBIGINT" : "Nullable(UInt64)";
    case Holds::signed_64:
      return duckdb ? "BIGINT" : "Nullable(Int64)";
  }
  return {};
}

struct SqlColumn {
  std::string_view name;
  Holds holds;
};

// Fields that only other lines have are no columns; `records` has these lines.
std::vector<SqlColumn> columns() {
  std::vector<SqlColumn> all;
#define SHOWN_nowhere(...)
#define SHOWN_column(...) __VA_ARGS__
#define SHOWN_detail(...) __VA_ARGS__
#define SHOWN_unusual(...) __VA_ARGS__
#define NUMBER(key, member, type, read, shown) \
  SHOWN_##shown(all.push_back({#key, holding::read<type>});)
#define NAME(key, member, shown) SHOWN_##shown(all.push_back({#key, Holds::name});)
#define FLAG(key, member, shown) all.push_back({#key, Holds::flag});
#include "trace/read/line_fields.def"
  return all;
}

void replace_all(std::string& text, std::string_view place, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(place, at)) != text.npos; at += with.size())
    text.replace(at, place.size(), with);
}

// Only ClickHouse takes a backslash for the beginning of an escape.
std::string quoted(std::string text, SqlEngine engine) {
  if (engine == SqlEngine::clickhouse) replace_all(text, "\\", "\\\\");
  replace_all(text, "'", "''");
  return '\'' + text + '\'';
}

}  // namespace

std::string sql_schema(SqlEngine engine, const std::vector<std::string>& files) {
  bool duckdb = engine == SqlEngine::duckdb;
  std::string declared, in_quotes;
  for (const SqlColumn& column : columns()) {
    // Some of the names are DuckDB's own words.
    std::string name = duckdb ? fmt::format("\"{}\"", column.name) : std::string(column.name);
    declared += fmt::format("  {} {},\n", name, type_of(column.holds, engine));
    in_quotes += fmt::format("  {}: '{}',\n", name, type_of(column.holds, engine));
  }
  declared.pop_back();  // the template has the line's end
  in_quotes.pop_back();
  std::string all = duckdb ? DUCKDB_TABLES : CLICKHOUSE_TABLES;
  replace_all(all, "@DECLARED_COLUMNS@", declared);
  for (const std::string& file : files) {
    std::string load = duckdb ? DUCKDB_LOAD : CLICKHOUSE_LOAD;
    replace_all(load, "@DECLARED_COLUMNS@", declared);
    replace_all(load, "@QUOTED_COLUMNS@", in_quotes);
    replace_all(load, "@FILE@", quoted(file, engine));
    all += load;
  }
  return all;
}

}  // namespace cudabpf::analyze
