-- email_to_hem, schema version 1: the table, what its columns mean, and the rows
-- For psql of PostgreSQL 15 or later, as a script: if a command fails, nothing is loaded.
\set ON_ERROR_STOP on
SET client_encoding = 'UTF8';
CREATE TABLE IF NOT EXISTS "lake"."crm"."hems" (
  "id" text,
  "Full Name" text,
  "order" text,
  "we`ird""" text,
  "source_row" bigint NOT NULL,
  "dt" date,
  "country" text
);

COMMENT ON COLUMN "lake"."crm"."hems"."id" IS 'the input''s column; null when a Parquet input has no value';
COMMENT ON COLUMN "lake"."crm"."hems"."Full Name" IS 'a "name" | a \name';
COMMENT ON COLUMN "lake"."crm"."hems"."order" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."we`ird""" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."source_row" IS 'data row of that file (rows, from 1)';

BEGIN;
CREATE TEMP TABLE "hems_load" (
  "id" text,
  "Full Name" text,
  "order" text,
  "we`ird""" text,
  "source_row" bigint,
  "dt" date,
  "country" text
) ON COMMIT DROP;
\copy "hems_load" FROM PROGRAM 'leadetl export ''s3://lake/it''\''''s/dt=2026-11-20'' --out -' WITH (FORMAT csv, HEADER match)
LOCK TABLE "lake"."crm"."hems" IN SHARE ROW EXCLUSIVE MODE;
DELETE FROM "lake"."crm"."hems" WHERE "dt" = '2026-11-20';
INSERT INTO "lake"."crm"."hems" ("id", "Full Name", "order", "we`ird""", "source_row", "dt", "country")
SELECT
  "id",
  "Full Name",
  "order",
  "we`ird""",
  "source_row",
  "dt",
  "country"
  FROM "hems_load";
COMMIT;
