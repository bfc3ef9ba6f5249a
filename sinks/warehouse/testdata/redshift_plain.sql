-- email_to_hem, schema version 1: the table, what its columns mean, and the rows
-- COPY takes columns by their place: they are in the order of the files. Times are UTC.
CREATE TABLE IF NOT EXISTS "email_to_hem" (
  "id" VARCHAR(65535),
  "full name" VARCHAR(65535),
  "order" VARCHAR(65535),
  "we`ird""" VARCHAR(65535),
  "source_row" BIGINT NOT NULL,
  "credits" INTEGER,
  "resolved_at" TIMESTAMP,
  "searched_on" DATE,
  "confidence" DOUBLE PRECISION,
  "phone_valid" BOOLEAN,
  "matched_keywords" SUPER,
  "hashed_emails" SUPER
);

COMMENT ON COLUMN "email_to_hem"."id" IS 'the input''s column; null when a Parquet input has no value';
COMMENT ON COLUMN "email_to_hem"."full name" IS 'a "name" | a \name';
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

-- The path ends in part-, so that rejects and manifests are passed by. To load exactly
-- the files of a dataset: leadetl schema --dataset DATASET --redshift-manifest, and COPY … MANIFEST.
COPY "email_to_hem" FROM 's3://BUCKET/PREFIX/part-'
  IAM_ROLE default
  FORMAT AS PARQUET SERIALIZETOJSON;
