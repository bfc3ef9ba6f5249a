-- email_to_hem, schema version 1: the table, what its columns mean, and the rows
-- For psql of PostgreSQL 15 or later, as a script: if a command fails, nothing is loaded.
\set ON_ERROR_STOP on
SET client_encoding = 'UTF8';
CREATE TABLE IF NOT EXISTS "email_to_hem" (
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
  "hashed_emails" jsonb
);

COMMENT ON COLUMN "email_to_hem"."id" IS 'the input''s column; null when a Parquet input has no value';
COMMENT ON COLUMN "email_to_hem"."Full Name" IS 'a "name" | a \name';
COMMENT ON COLUMN "email_to_hem"."order" IS '';
COMMENT ON COLUMN "email_to_hem"."we`ird""" IS '';
COMMENT ON COLUMN "email_to_hem"."source_row" IS 'data row of that file (rows, from 1)';
COMMENT ON COLUMN "email_to_hem"."credits" IS '';
COMMENT ON COLUMN "email_to_hem"."resolved_at" IS '';
COMMENT ON COLUMN "email_to_hem"."searched_on" IS '';
COMMENT ON COLUMN "email_to_hem"."confidence" IS '';
COMMENT ON COLUMN "email_to_hem"."phone_valid" IS '';
COMMENT ON COLUMN "email_to_hem"."matched_keywords" IS '';
COMMENT ON COLUMN "email_to_hem"."hashed_emails" IS '';

BEGIN;
CREATE TEMP TABLE "email_to_hem_load" (
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
  "hashed_emails" jsonb
) ON COMMIT DROP;
\copy "email_to_hem_load" FROM PROGRAM 'leadetl export s3://BUCKET/PREFIX --out -' WITH (FORMAT csv, HEADER match)
INSERT INTO "email_to_hem" ("id", "Full Name", "order", "we`ird""", "source_row", "credits", "resolved_at", "searched_on", "confidence", "phone_valid", "matched_keywords", "hashed_emails")
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
  "hashed_emails"
  FROM "email_to_hem_load";
COMMIT;
