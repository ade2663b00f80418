#include "analyze/export/sql_schema.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf::analyze;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) count++;
  return count;
}

}  // namespace

TEST_CASE("SQL for a column store has a column for each field, of the field's kind") {
  std::string duckdb = sql_schema(SqlEngine::duckdb, {"a.jsonl"});
  CHECK(count_of(duckdb, "@") == 0);
  CHECK(count_of(duckdb, "  \"ts\" UBIGINT,\n") == 1);
  CHECK(count_of(duckdb, "  \"duration_us\": 'DECIMAL(18, 3)',\n") == 1);
  CHECK(count_of(duckdb, "  \"grid\" UINTEGER[],\n") == 1);
  CHECK(count_of(duckdb, "cmdline") == 0);  // of processes, which `records` has
  std::string clickhouse = sql_schema(SqlEngine::clickhouse, {"a.jsonl"});
  CHECK(count_of(clickhouse, "@") == 0);
  CHECK(count_of(clickhouse, "  ret Nullable(Int64),\n") == 2);
}

TEST_CASE("SQL loads each file, whatever its name is") {
  std::string odd = "it's a \\trace.jsonl";
  CHECK(count_of(sql_schema(SqlEngine::duckdb, {odd, "b"}), "'it''s a \\trace.jsonl'") == 2);
  CHECK(count_of(sql_schema(SqlEngine::duckdb, {odd, "b"}), "('b'") == 2);
  CHECK(count_of(sql_schema(SqlEngine::clickhouse, {odd, "b"}), "'it''s a \\\\trace.jsonl'") == 2);
  CHECK(count_of(sql_schema(SqlEngine::duckdb, {}), "INSERT") == 0);
}
