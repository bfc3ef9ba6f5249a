-- email_to_hem, schema version 1: the table, what its columns mean, and the rows
-- COPY takes columns by their place: they are in the order of the files. Times are UTC.
CREATE TABLE IF NOT EXISTS "lake"."crm"."hems" (
  "id" VARCHAR(65535),
  "full name" VARCHAR(65535),
  "order" VARCHAR(65535),
  "we`ird""" VARCHAR(65535),
  "source_row" BIGINT NOT NULL,
  "dt" DATE,
  "country" VARCHAR(65535)
);

COMMENT ON COLUMN "lake"."crm"."hems"."id" IS 'the input''s column; null when a Parquet input has no value';
COMMENT ON COLUMN "lake"."crm"."hems"."full name" IS 'a "name" | a \name';
COMMENT ON COLUMN "lake"."crm"."hems"."order" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."we`ird""" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."source_row" IS 'data row of that file (rows, from 1)';

-- The files are without the columns that are in their path.
CREATE TEMP TABLE "hems_load" (
  "id" VARCHAR(65535),
  "full name" VARCHAR(65535),
  "order" VARCHAR(65535),
  "we`ird""" VARCHAR(65535),
  "source_row" BIGINT NOT NULL
);

BEGIN;
DELETE FROM "lake"."crm"."hems" WHERE "dt" = '2026-11-20';

-- COPY takes no values from paths: what follows is for each folder country=VALUE, with VALUE filled in,
-- the temporary table made empty before each. NULL is the value of __HIVE_DEFAULT_PARTITION__.
-- The DELETE above is for all of them, and so is COMMIT. TRUNCATE would commit, too: empty the temporary table by DELETE.

-- The path ends in part-, so that rejects and manifests are passed by. To load exactly
-- the files of a dataset: leadetl schema --dataset DATASET --redshift-manifest, and COPY … MANIFEST.
COPY "hems_load" FROM 's3://lake/it''s/dt=2026-11-20/country=VALUE/part-'
  IAM_ROLE default
  FORMAT AS PARQUET;
INSERT INTO "lake"."crm"."hems" SELECT *, '2026-11-20'::DATE, 'VALUE'::VARCHAR(65535) FROM "hems_load";
COMMIT;
