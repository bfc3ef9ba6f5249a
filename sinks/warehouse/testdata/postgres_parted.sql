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
  "credits" integer,
  "resolved_at" timestamp with time zone,
  "searched_on" date,
  "confidence" double precision,
  "phone_valid" boolean,
  "matched_keywords" text[],
  "hashed_emails" jsonb,
  "dt" date,
  "country" text
);

COMMENT ON COLUMN "lake"."crm"."hems"."id" IS 'the input''s column; null when a Parquet input has no value';
COMMENT ON COLUMN "lake"."crm"."hems"."Full Name" IS 'a "name" | a \name';
COMMENT ON COLUMN "lake"."crm"."hems"."order" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."we`ird""" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."source_row" IS 'data row of that file (rows, from 1)';
COMMENT ON COLUMN "lake"."crm"."hems"."credits" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."resolved_at" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."searched_on" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."confidence" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."phone_valid" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."matched_keywords" IS '';
COMMENT ON COLUMN "lake"."crm"."hems"."hashed_emails" IS '';

BEGIN;
CREATE TEMP TABLE "hems_load" (
  "id" text,
  "Full Name" text,
  "order" text,
  "we`ird""" text,
  "source_row" bigint,
  "credits" integer,
  "resolved_at" timestamp with time zone,
  "searched_on" date,
  "confidence" double precision,
  "phone_valid" boolean,
  "matched_keywords" text,
  "hashed_emails" jsonb,
  "dt" date,
  "country" text
) ON COMMIT DROP;
\copy "hems_load" FROM PROGRAM 'leadetl export ''s3://lake/it''\''''s/dt=2026-11-20'' --out -' WITH (FORMAT csv, HEADER match)
INSERT INTO "lake"."crm"."hems" ("id", "Full Name", "order", "we`ird""", "source_row", "credits", "resolved_at", "searched_on", "confidence", "phone_valid", "matched_keywords", "hashed_emails", "dt", "country")
SELECT
  "id",
  "Full Name",
  "order",
  "we`ird""",
  "source_row",
  "credits",
  "resolved_at",
  "searched_on",
  "confidence",
  "phone_valid",
  CASE WHEN "matched_keywords" LIKE '[%' THEN ARRAY(SELECT jsonb_array_elements_text("matched_keywords"::jsonb)) ELSE string_to_array("matched_keywords", ';') END AS "matched_keywords",
  "hashed_emails",
  "dt",
  "country"
  FROM "hems_load";
COMMIT;
