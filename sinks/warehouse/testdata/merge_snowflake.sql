-- enrichment, schema version 1: the latest rows of each key, and what changed
-- Every night in its order, the first one too. Rows without key are not in the table.
CREATE TABLE IF NOT EXISTS crm.leads (
  id VARCHAR,
  key VARCHAR,
  outcome VARCHAR,
  seen_at TIMESTAMP_LTZ,
  phones VARIANT,
  row_hash VARCHAR
);

CREATE OR REPLACE TEMPORARY TABLE crm.leads_changes (
  id VARCHAR,
  key VARCHAR,
  outcome VARCHAR,
  seen_at TIMESTAMP_LTZ,
  phones VARIANT,
  change VARCHAR,
  changed VARIANT,
  was_phones VARIANT,
  since VARCHAR,
  key_hash VARCHAR,
  row_hash VARCHAR,
  was_row_hash VARCHAR
);

-- Logical types: instants are instants and days are days, not numbers. The vectorized scanner: lists are arrays.
CREATE FILE FORMAT IF NOT EXISTS leadetl_parquet TYPE = PARQUET USE_LOGICAL_TYPE = TRUE USE_VECTORIZED_SCANNER = TRUE;

-- Fill in the integration that may read there.
CREATE STAGE IF NOT EXISTS crm.leads_stage
  URL = 's3://BUCKET/PREFIX/'
  STORAGE_INTEGRATION = INTEGRATION
  FILE_FORMAT = leadetl_parquet;

COPY INTO crm.leads_changes
  FROM @crm.leads_stage/dt=2026-11-21/_changes/part-
  FILE_FORMAT = leadetl_parquet
  MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE;

-- A row that failed keeps the answer it had.
MERGE INTO crm.leads t USING (
  SELECT c.*, COALESCE(c.key, h.key) AS found_by
  FROM crm.leads_changes c LEFT JOIN crm.leads h ON c.key_hash = SHA2(CONCAT('0a1b:', h.key), 256) AND c.was_row_hash = h.row_hash
  WHERE COALESCE(c.key, h.key) IS NOT NULL AND c.change <> 'without_key'
) s
ON t.key = s.found_by AND t.row_hash IN (s.was_row_hash, s.row_hash)
WHEN MATCHED AND s.change = 'removed' THEN DELETE
WHEN MATCHED THEN UPDATE SET
  id = s.id,
  key = s.key,
  outcome = s.outcome,
  seen_at = CASE WHEN s.outcome IN ('failed', 'skipped') THEN t.seen_at ELSE s.seen_at END,
  phones = CASE WHEN s.outcome IN ('failed', 'skipped') THEN t.phones ELSE s.phones END,
  row_hash = s.row_hash
WHEN NOT MATCHED AND s.change <> 'removed' THEN INSERT (id, key, outcome, seen_at, phones, row_hash)
  VALUES (s.id, s.key, s.outcome, s.seen_at, s.phones, s.row_hash);
