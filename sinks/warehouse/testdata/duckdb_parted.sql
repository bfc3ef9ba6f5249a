-- email_to_hem, schema version 1: the table, what its columns mean, and the rows
CREATE TABLE IF NOT EXISTS "lake"."crm"."hems" (
  "id" VARCHAR,
  "Full Name" VARCHAR,
  "order" VARCHAR,
  "we`ird""" VARCHAR,
  "source_row" BIGINT NOT NULL,
  "credits" INTEGER,
  "resolved_at" TIMESTAMP WITH TIME ZONE,
  "searched_on" DATE,
  "confidence" DOUBLE,
  "phone_valid" BOOLEAN,
  "matched_keywords" VARCHAR[],
  "hashed_emails" STRUCT("email" VARCHAR, "type" VARCHAR)[],
  "dt" DATE,
  "country" VARCHAR
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

INSERT INTO "lake"."crm"."hems" BY NAME
SELECT * REPLACE (nullif("country", '__HIVE_DEFAULT_PARTITION__') AS "country") FROM read_parquet('s3://lake/it''s/dt=2026-11-20/country=*/part-*.parquet', hive_partitioning = true, hive_types = {'dt': DATE, 'country': VARCHAR});
