-- enrichment, schema version 1: the latest row of each key, and what changed
-- Every night in its order, the first one too. Rows without key are not in the table.
CREATE TABLE IF NOT EXISTS "leads" (
  "id" VARCHAR(65535),
  "key" VARCHAR(65535),
  "outcome" VARCHAR(65535),
  "seen_at" TIMESTAMP,
  "phones" SUPER,
  "occurrence" INTEGER
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
  "occurrence" INTEGER
);
COPY "leads_changes" FROM 's3://BUCKET/PREFIX/dt=2026-11-21/_changes/part-'
  IAM_ROLE default
  FORMAT AS PARQUET SERIALIZETOJSON;

CREATE TEMP TABLE "leads_found" AS
  SELECT c.*, COALESCE(c."key", h."key") AS found_by
  FROM "leads_changes" c LEFT JOIN "leads" h ON c.key_hash = SHA2(CONCAT('0a1b:', h."key"), 256) AND c.occurrence = h.occurrence
  WHERE c."key" IS NOT NULL OR h."key" IS NOT NULL;
DELETE FROM "leads" USING "leads_found" s
  WHERE "leads"."key" = s.found_by AND "leads".occurrence = s.occurrence AND s.change = 'removed';
DELETE FROM "leads_found" WHERE change = 'removed';
-- A row that failed keeps the answer it had.
MERGE INTO "leads" USING "leads_found" s
ON "leads"."key" = s.found_by AND "leads".occurrence = s.occurrence
WHEN MATCHED THEN UPDATE SET
  "id" = s."id",
  "key" = s."key",
  "outcome" = s."outcome",
  "seen_at" = CASE WHEN s.outcome IN ('failed', 'skipped') THEN "leads"."seen_at" ELSE s."seen_at" END,
  "phones" = CASE WHEN s.outcome IN ('failed', 'skipped') THEN "leads"."phones" ELSE s."phones" END
WHEN NOT MATCHED THEN INSERT ("id", "key", "outcome", "seen_at", "phones", occurrence)
  VALUES (s."id", s."key", s."outcome", s."seen_at", s."phones", s.occurrence);
