-- enrichment, schema version 1: the latest rows of each key, and what changed
-- Every night in its order, the first one too. Rows without key are not in the table.
CREATE TABLE IF NOT EXISTS "crm"."leads" (
  "id" VARCHAR(65535),
  "key" VARCHAR(65535),
  "outcome" VARCHAR(65535),
  "seen_at" TIMESTAMP,
  "phones" SUPER,
  "row_hash" VARCHAR(65535)
);

CREATE TEMP TABLE "leads_changes" (
  "id" VARCHAR(65535),
  "key" VARCHAR(65535),
  "outcome" VARCHAR(65535),
  "seen_at" TIMESTAMP,
  "phones" SUPER,
  "change" VARCHAR(65535),
  "changed" SUPER,
  "was_phones" SUPER,
  "since" VARCHAR(65535),
  "key_hash" VARCHAR(65535),
  "row_hash" VARCHAR(65535),
  "was_row_hash" VARCHAR(65535)
);
COPY "leads_changes" FROM 's3://BUCKET/PREFIX/dt=2026-11-21/_changes/part-'
  IAM_ROLE default
  FORMAT AS PARQUET SERIALIZETOJSON;

CREATE TEMP TABLE "leads_found" AS
  SELECT c.*, COALESCE(c."key", h."key") AS found_by
  FROM "leads_changes" c LEFT JOIN "crm"."leads" h ON c.key_hash = SHA2(CONCAT('0a1b:', h."key"), 256) AND c.was_row_hash = h.row_hash
  WHERE COALESCE(c."key", h."key") IS NOT NULL AND c."change" <> 'without_key';
DELETE FROM "crm"."leads" USING "leads_found" s
  WHERE "crm"."leads"."key" = s.found_by AND "crm"."leads".row_hash = s.was_row_hash AND s.change = 'removed';
DELETE FROM "leads_found" WHERE change = 'removed';
UPDATE "crm"."leads" SET row_hash = s.row_hash FROM "leads_found" s
  WHERE "crm"."leads"."key" = s.found_by AND "crm"."leads".row_hash = s.was_row_hash;
-- A row that failed keeps the answer it had.
MERGE INTO "crm"."leads" USING "leads_found" s
ON "crm"."leads"."key" = s.found_by AND "crm"."leads".row_hash = s.row_hash
WHEN MATCHED THEN UPDATE SET
  "id" = s."id",
  "key" = s."key",
  "outcome" = s."outcome",
  "seen_at" = CASE WHEN s.outcome IN ('failed', 'skipped') THEN "crm"."leads"."seen_at" ELSE s."seen_at" END,
  "phones" = CASE WHEN s.outcome IN ('failed', 'skipped') THEN "crm"."leads"."phones" ELSE s."phones" END,
  row_hash = s.row_hash
WHEN NOT MATCHED THEN INSERT ("id", "key", "outcome", "seen_at", "phones", row_hash)
  VALUES (s."id", s."key", s."outcome", s."seen_at", s."phones", s.row_hash);
