-- Traces of cudabpf as tables, for ClickHouse. `events` has a row for each call, each operation of a
-- GPU and each request to the driver; `records` has all other lines, as they are. A column is a field
-- of the format (`cudabpf schema`); where a line does not have it, it is NULL or, as a text, empty.
-- Times are nanoseconds from the beginning of their trace, durations microseconds.
CREATE TABLE events (
  trace LowCardinality(String),
@DECLARED_COLUMNS@
  args String
) ENGINE = MergeTree ORDER BY (trace, ts);
CREATE TABLE records (trace LowCardinality(String), record String) ENGINE = MergeTree ORDER BY trace;

CREATE VIEW calls AS
SELECT * FROM events WHERE isNotNull(id);

-- What GPUs did, as CUPTI timed it (`--gpu`).
CREATE VIEW gpu AS
SELECT * FROM events WHERE type = 'gpu' AND direction != 'HtoH';

-- Requests to the driver (`--kernel`).
CREATE VIEW driver AS
SELECT * FROM events WHERE type = 'kernel' AND isNull(id) AND op != 'interrupt';

-- Blocks that calls allocated, and those that they freed. Memory also ends with its context and its
-- process, without a call.
CREATE VIEW memory AS
SELECT trace, ts, pid, tid, op, kind, ptr, size, device, id, name FROM calls
WHERE type = 'memory' AND op IN ('alloc', 'free') AND error = '' AND isNotNull(ret);

-- Whether all is there, for each file: `complete` is 1 if no record was lost and every call of the
-- file has been loaded.
CREATE VIEW books AS
SELECT
  header.trace AS trace,
  JSONExtractString(header.record, 'host') AS host,
  fromUnixTimestamp64Nano(JSONExtractInt(header.record, 'clocks', 'realtime_ns')) AS started,
  loaded.calls AS loaded_calls,
  JSONExtractUInt(ends.record, 'calls') AS calls,
  JSONExtractUInt(ends.record, 'driver_calls') AS driver_calls,
  JSONExtractUInt(ends.record, 'accounts', 'entered') AS entered,
  JSONExtractUInt(ends.record, 'accounts', 'emitted') AS emitted,
  JSONExtractUInt(ends.record, 'accounts', 'dropped') AS dropped,
  JSONExtractUInt(ends.record, 'accounts', 'received') AS received,
  JSONExtractRaw(ends.record, 'losses') AS losses,
  JSONExtractString(ends.record, 'reason') AS reason,
  ends.trace != '' AND losses IN ('', '{}') AND calls = loaded_calls AS complete
FROM (SELECT * FROM records WHERE JSONExtractString(record, 'type') = 'trace') AS header
LEFT JOIN (SELECT * FROM records WHERE JSONExtractString(record, 'type') = 'end') AS ends
  ON ends.trace = header.trace
LEFT JOIN (SELECT trace, count() AS calls FROM events WHERE isNotNull(id) GROUP BY trace) AS loaded
  ON loaded.trace = header.trace;
