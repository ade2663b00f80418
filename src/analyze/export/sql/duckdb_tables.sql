-- Traces of cudabpf as tables, for DuckDB. `events` has a row for each call, each operation of a GPU
-- and each request to the driver; `records` has all other lines, as they are. A column is a field of
-- the format (`cudabpf schema`), and NULL where a line does not have it. Times are nanoseconds from
-- the beginning of their trace, durations microseconds.
CREATE TABLE events (
  trace VARCHAR,
@DECLARED_COLUMNS@
  args JSON
);
CREATE TABLE records (trace VARCHAR, record JSON);

CREATE VIEW calls AS
SELECT * FROM events WHERE id IS NOT NULL AND type != 'block';

-- What GPUs did, as CUPTI timed it (`--gpu`).
CREATE VIEW gpu AS
SELECT * FROM events WHERE type = 'gpu' AND direction IS DISTINCT FROM 'HtoH';

-- Requests to the driver (`--kernel`).
CREATE VIEW driver AS
SELECT * FROM events WHERE type = 'kernel' AND id IS NULL AND op != 'interrupt';

-- Blocks that calls allocated, and those that they freed. Memory also ends with its context and its
-- process, without a call.
CREATE VIEW memory AS
SELECT trace, ts, pid, tid, op, kind, ptr, size, device, id, name FROM calls
WHERE type = 'memory' AND op IN ('alloc', 'free') AND error IS NULL AND ret IS NOT NULL;

-- Blocks of PyTorch's allocator (`--blocks`).
CREATE VIEW blocks AS
SELECT trace, ts, pid, tid, op, ptr, size, device, id FROM events WHERE type = 'block';

-- What was asked of NCCL. `identity` is the same for all ranks of a communicator.
CREATE VIEW collectives AS
WITH communicators AS (
  SELECT trace, (record->>'communicator')::UBIGINT AS communicator,
    max(record->>'identity') AS identity,
    max((record->>'rank')::INTEGER) AS rank,
    max((record->>'ranks')::INTEGER) AS ranks
  FROM records WHERE (record->>'type') = 'collective' AND (record->>'op') = 'comm' GROUP BY ALL)
SELECT calls.trace, id, ts, duration_us, pid, tid, op, name, error, communicator, identity, rank,
  ranks, seq, call_group, "count", datatype, reduction, root, peer, size, stream, captured
FROM calls LEFT JOIN communicators USING (trace, communicator)
WHERE type = 'collective' AND communicator IS NOT NULL;

-- The kernels and copies of collectives (`--gpu`), with the call that made them: `asked_by` is a
-- collective's, or the end of the group in which several were queued. Those of graphs have none.
CREATE VIEW collective_work AS
SELECT gpu.trace, gpu.ts, gpu.duration_us, gpu.pid, gpu.device, gpu.stream, gpu.op, gpu.kernel,
  asking.id AS asked_by, asking.call_group
FROM gpu
JOIN calls AS issuing ON issuing.trace = gpu.trace AND issuing.id = gpu."call"
JOIN calls AS asking ON asking.trace = gpu.trace AND asking.id = issuing.within
WHERE asking.library = 'nccl';

-- Matrix products, by cuBLAS and cuBLASLt. One that another makes is a part of that.
CREATE VIEW products AS
SELECT trace, id, ts, duration_us, pid, tid, name, m, n, k, batch, trans, types, compute, epilogue,
  shape_unknown, device, stream, captured
FROM calls
WHERE type = 'product' AND parent IS NULL AND error IS NULL;

-- The kernels of products (`--gpu`): `product` is the id of theirs. Those of graphs have none.
CREATE VIEW product_work AS
SELECT gpu.trace, gpu.ts, gpu.duration_us, gpu.pid, gpu.device, gpu.stream, gpu.op, gpu.kernel,
  coalesce(asking.parent, asking.id) AS product
FROM gpu
JOIN calls AS issuing ON issuing.trace = gpu.trace AND issuing.id = gpu."call"
JOIN calls AS asking ON asking.trace = gpu.trace AND asking.id = issuing.within
WHERE asking.type = 'product';

-- Whether all is there, for each file: `complete` is true if no record was lost and every call of
-- the file has been loaded.
CREATE VIEW books AS
WITH
  loaded AS (SELECT trace, count(*) AS calls FROM events WHERE id IS NOT NULL GROUP BY trace),
  ends AS (SELECT trace, record FROM records WHERE (record->>'type') = 'end')
SELECT
  header.trace,
  (header.record->>'host') AS host,
  make_timestamp_ns((header.record->>'$.clocks.realtime_ns')::BIGINT) AS started,
  coalesce(loaded.calls, 0) AS loaded_calls,
  (ends.record->>'calls')::UBIGINT AS calls,
  (ends.record->>'driver_calls')::UBIGINT AS driver_calls,
  (ends.record->>'$.accounts.entered')::UBIGINT AS entered,
  (ends.record->>'$.accounts.emitted')::UBIGINT AS emitted,
  (ends.record->>'$.accounts.dropped')::UBIGINT AS dropped,
  (ends.record->>'$.accounts.received')::UBIGINT AS received,
  (ends.record->'losses') AS losses,
  (ends.record->>'reason') AS reason,
  coalesce(coalesce(ends.record->>'losses', '{}') = '{}'
           AND (ends.record->>'calls')::UBIGINT = coalesce(loaded.calls, 0), false) AS complete
FROM records AS header
LEFT JOIN ends ON ends.trace = header.trace
LEFT JOIN loaded ON loaded.trace = header.trace
WHERE (header.record->>'type') = 'trace';
