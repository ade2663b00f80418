// SQL that loads traces into a column store as they are.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf::analyze {

enum class SqlEngine { duckdb, clickhouse };
inline constexpr std::array<std::string_view, 2> SQL_ENGINES = {"duckdb", "clickhouse"};

// Tables, views, and what loads each of the files; these may be patterns of the engine's.
std::string sql_schema(SqlEngine engine, const std::vector<std::string>& files);

}  // namespace cudabpf::analyze
