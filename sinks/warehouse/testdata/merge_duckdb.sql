-- enrichment, schema version 1: the latest rows of each key, and what changed
-- Every night in its order, the first one too. Rows without key are not in the table.
CREATE TABLE IF NOT EXISTS "crm"."leads" (
  "id" VARCHAR,
  "key" VARCHAR,
  "outcome" VARCHAR,
  "seen_at" TIMESTAMP WITH TIME ZONE,
  "phones" STRUCT("phone" VARCHAR, "type" VARCHAR)[],
  "row_hash" VARCHAR
);

CREATE OR REPLACE TEMP TABLE "leads_changes" AS SELECT * FROM read_parquet('BUCKET/PREFIX/dt=2026-11-21/_changes/part-*.parquet');

-- A row that failed keeps the answer it had.
MERGE INTO "crm"."leads" t USING (
  SELECT c.*, COALESCE(c."key", h."key") AS found_by
  FROM "leads_changes" c LEFT JOIN "crm"."leads" h ON c.key_hash = sha256(CONCAT('0a1b:', h."key")) AND c.was_row_hash = h.row_hash
  WHERE COALESCE(c."key", h."key") IS NOT NULL AND c."change" <> 'without_key'
) s
ON t."key" = s.found_by AND t.row_hash IN (s.was_row_hash, s.row_hash)
WHEN MATCHED AND s."change" = 'removed' THEN DELETE
WHEN MATCHED THEN UPDATE SET
  "id" = s."id",
  "key" = s."key",
  "outcome" = s."outcome",
  "seen_at" = CASE WHEN s.outcome IN ('failed', 'skipped') THEN t."seen_at" ELSE s."seen_at" END,
  "phones" = CASE WHEN s.outcome IN ('failed', 'skipped') THEN t."phones" ELSE s."phones" END,
  row_hash = s.row_hash
WHEN NOT MATCHED AND s."change" <> 'removed' THEN INSERT ("id", "key", "outcome", "seen_at", "phones", row_hash)
  VALUES (s."id", s."key", s."outcome", s."seen_at", s."phones", s.row_hash);
