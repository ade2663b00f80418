
INSERT INTO events BY NAME
SELECT filename AS trace, * EXCLUDE (filename)
FROM read_json(@FILE@, format = 'newline_delimited', filename = true, columns = {
@QUOTED_COLUMNS@
  args: 'JSON'
})
WHERE id IS NOT NULL OR type = 'kernel' OR (type = 'gpu' AND op IN ('kernel', 'copy', 'set', 'graph'));

INSERT INTO records
SELECT filename, json FROM read_ndjson_objects(@FILE@, filename = true)
WHERE (json->>'id') IS NULL AND (json->>'type') != 'kernel'
  AND NOT ((json->>'type') = 'gpu' AND (json->>'op') IN ('kernel', 'copy', 'set', 'graph'));
