
INSERT INTO events SELECT _path AS trace, * FROM file(@FILE@, 'JSONEachRow', '
@DECLARED_COLUMNS@
  args String')
WHERE isNotNull(id) OR type = 'kernel' OR (type = 'gpu' AND op IN ('kernel', 'copy', 'set', 'graph'))
SETTINGS input_format_skip_unknown_fields = 1, input_format_json_read_objects_as_strings = 1;

INSERT INTO records SELECT _path, json FROM file(@FILE@, 'JSONAsString', 'json String')
WHERE NOT JSONHas(json, 'id') AND JSONExtractString(json, 'type') != 'kernel'
  AND NOT (JSONExtractString(json, 'type') = 'gpu'
           AND JSONExtractString(json, 'op') IN ('kernel', 'copy', 'set', 'graph'));
