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
SELECT * FROM events WHERE isNotNull(id) AND type != 'block';

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

-- Blocks of PyTorch's allocator (`--blocks`).
CREATE VIEW blocks AS
SELECT trace, ts, pid, tid, op, ptr, size, device, id FROM events WHERE type = 'block';

-- What was asked of NCCL. `identity` is the same for all ranks of a communicator.
CREATE VIEW collectives AS
SELECT calls.trace AS trace, id, ts, duration_us, pid, tid, op, name, error,
  calls.communicator AS communicator, identity, rank, ranks, seq, call_group, count, datatype,
  reduction, root, peer, size, stream, captured
FROM calls
LEFT JOIN (
  SELECT trace, JSONExtract(record, 'communicator', 'Nullable(UInt64)') AS communicator,
    max(JSONExtractString(record, 'identity')) AS identity,
    max(JSONExtract(record, 'rank', 'Nullable(Int32)')) AS rank,
    max(JSONExtract(record, 'ranks', 'Nullable(Int32)')) AS ranks
  FROM records
  WHERE JSONExtractString(record, 'type') = 'collective' AND JSONExtractString(record, 'op') = 'comm'
  GROUP BY trace, communicator) AS communicators
  ON communicators.trace = calls.trace AND communicators.communicator = calls.communicator
WHERE type = 'collective' AND isNotNull(calls.communicator);

-- The kernels and copies of collectives (`--gpu`), with the call that made them: `asked_by` is a
-- collective's, or the end of the group in which several were queued. Those of graphs have none.
CREATE VIEW collective_work AS
SELECT gpu.trace AS trace, gpu.ts AS ts, gpu.duration_us AS duration_us, gpu.pid AS pid,
  gpu.device AS device, gpu.stream AS stream, gpu.op AS op, gpu.kernel AS kernel,
  asking.id AS asked_by, asking.call_group AS call_group
FROM gpu
JOIN calls AS issuing ON issuing.trace = gpu.trace AND issuing.id = gpu.call
JOIN calls AS asking ON asking.trace = gpu.trace AND asking.id = issuing.within
WHERE asking.library = 'nccl';

-- Matrix products, by cuBLAS and cuBLASLt. One that another makes is a part of that.
CREATE VIEW products AS
SELECT trace, id, ts, duration_us, pid, tid, name, m, n, k, batch, trans, types, compute, epilogue,
  shape_unknown, device, stream, captured
FROM calls
WHERE type = 'product' AND isNull(parent) AND error = '';

-- The kernels of products (`--gpu`): `product` is the id of theirs. Those of graphs have none.
CREATE VIEW product_work AS
SELECT gpu.trace AS trace, gpu.ts AS ts, gpu.duration_us AS duration_us, gpu.pid AS pid,
  gpu.device AS device, gpu.stream AS stream, gpu.op AS op, gpu.kernel AS kernel,
  coalesce(asking.parent, asking.id) AS product
FROM gpu
JOIN calls AS issuing ON issuing.trace = gpu.trace AND issuing.id = gpu.call
JOIN calls AS asking ON asking.trace = gpu.trace AND asking.id = issuing.within
WHERE asking.type = 'product';

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
