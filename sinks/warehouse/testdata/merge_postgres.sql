-- enrichment, schema version 1: the latest rows of each key, and what changed
-- For psql of PostgreSQL 15 or later, as a script: if a command fails, nothing is loaded.
\set ON_ERROR_STOP on
SET client_encoding = 'UTF8';
-- Every night in its order, the first one too. Rows without key are not in the table.
CREATE TABLE IF NOT EXISTS "crm"."leads" (
  "id" text,
  "key" text,
  "outcome" text,
  "seen_at" timestamp with time zone,
  "phones" jsonb,
  "row_hash" text
);

BEGIN;
CREATE TEMP TABLE "leads_load" (
  "id" text,
  "key" text,
  "outcome" text,
  "seen_at" timestamp with time zone,
  "phones" jsonb,
  "change" text,
  "changed" text,
  "was_phones" jsonb,
  "since" text,
  "key_hash" text,
  "row_hash" text,
  "was_row_hash" text
) ON COMMIT DROP;
\copy "leads_load" FROM PROGRAM 'leadetl export s3://BUCKET/PREFIX/dt=2026-11-21/_changes/ --out -' WITH (FORMAT csv, HEADER match)
CREATE TEMP TABLE "leads_changes" ON COMMIT DROP AS SELECT
  "id",
  "key",
  "outcome",
  "seen_at",
  "phones",
  "change",
  CASE WHEN "changed" LIKE '[%' THEN ARRAY(SELECT jsonb_array_elements_text("changed"::jsonb)) ELSE string_to_array("changed", ';') END AS "changed",
  "was_phones",
  "since",
  "key_hash",
  "row_hash",
  "was_row_hash"
  FROM "leads_load";
LOCK TABLE "crm"."leads" IN SHARE ROW EXCLUSIVE MODE;

-- A row that failed keeps the answer it had.
MERGE INTO "crm"."leads" t USING (
  SELECT c.*, COALESCE(c."key", h."key") AS found_by
  FROM "leads_changes" c LEFT JOIN "crm"."leads" h ON c.key_hash = encode(sha256(convert_to(CONCAT('0a1b:', h."key"), 'UTF8')), 'hex') AND c.was_row_hash = h.row_hash
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
COMMIT;
