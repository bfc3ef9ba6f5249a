-- email_to_hem, schema version 1: the table, what its columns mean, and the rows
CREATE TABLE IF NOT EXISTS "email_to_hem" (
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
  "hashed_emails" STRUCT("email" VARCHAR, "type" VARCHAR)[]
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

INSERT INTO "email_to_hem" BY NAME
SELECT * FROM read_parquet('BUCKET/PREFIX/part-*.parquet');
