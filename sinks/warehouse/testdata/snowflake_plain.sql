-- email_to_hem, schema version 1: the table, its format and stage, and the rows
CREATE TABLE IF NOT EXISTS email_to_hem (
  id VARCHAR COMMENT 'the input''s column; null when a Parquet input has no value',
  "Full Name" VARCHAR COMMENT 'a "name" | a \name',
  "ORDER" VARCHAR COMMENT '',
  "we`ird""" VARCHAR COMMENT '',
  source_row BIGINT NOT NULL COMMENT 'data row of that file (rows, from 1)',
  credits INTEGER COMMENT '',
  resolved_at TIMESTAMP_LTZ COMMENT '',
  searched_on DATE COMMENT '',
  confidence DOUBLE COMMENT '',
  phone_valid BOOLEAN COMMENT '',
  matched_keywords VARIANT COMMENT '',
  hashed_emails VARIANT COMMENT ''
);

-- Logical types: instants are instants and days are days, not numbers. The vectorized scanner: lists are arrays.
CREATE FILE FORMAT IF NOT EXISTS leadetl_parquet TYPE = PARQUET USE_LOGICAL_TYPE = TRUE USE_VECTORIZED_SCANNER = TRUE;

-- Fill in the integration that may read there.
CREATE STAGE IF NOT EXISTS email_to_hem_stage
  URL = 's3://BUCKET/PREFIX/'
  STORAGE_INTEGRATION = INTEGRATION
  FILE_FORMAT = leadetl_parquet;

-- The path ends in part-, so that rejects and manifests are passed by.
COPY INTO email_to_hem
  FROM @email_to_hem_stage/part-
  MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE;
