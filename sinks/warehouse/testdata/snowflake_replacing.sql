-- email_to_hem, schema version 1: the table, its format and stage, and the rows
CREATE TABLE IF NOT EXISTS lake.crm.hems (
  id VARCHAR COMMENT 'the input''s column; null when a Parquet input has no value',
  "Full Name" VARCHAR COMMENT 'a "name" | a \name',
  "ORDER" VARCHAR COMMENT '',
  "we`ird""" VARCHAR COMMENT '',
  source_row BIGINT NOT NULL COMMENT 'data row of that file (rows, from 1)',
  dt DATE,
  country VARCHAR
);

-- Logical types: instants are instants and days are days, not numbers. The vectorized scanner: lists are arrays.
CREATE FILE FORMAT IF NOT EXISTS leadetl_parquet TYPE = PARQUET USE_LOGICAL_TYPE = TRUE USE_VECTORIZED_SCANNER = TRUE;

-- Fill in the integration that may read there.
CREATE STAGE IF NOT EXISTS lake.crm.hems_stage
  URL = 's3://lake/it''s/'
  STORAGE_INTEGRATION = INTEGRATION
  FILE_FORMAT = leadetl_parquet;

-- The path ends in part-, so that rejects and manifests are passed by.
-- If a statement fails: ROLLBACK. FORCE also loads files that were loaded before.
BEGIN TRANSACTION;
DELETE FROM lake.crm.hems WHERE dt = '2026-11-20';
-- Values of country are as they stand in paths: what Hive escapes there (a/b is a%2Fb) is to be decoded behind the load.
COPY INTO lake.crm.hems (
  id,
  "Full Name",
  "ORDER",
  "we`ird""",
  source_row,
  dt,
  country
) FROM (SELECT
  $1:"id"::VARCHAR,
  $1:"Full Name"::VARCHAR,
  $1:"order"::VARCHAR,
  $1:"we`ird"""::VARCHAR,
  $1:"source_row"::BIGINT,
  '2026-11-20'::DATE,
  NULLIF(SPLIT_PART(SPLIT_PART('/' || METADATA$FILENAME, '/country=', -1), '/', 1), '__HIVE_DEFAULT_PARTITION__')
  FROM '@lake.crm.hems_stage/dt=2026-11-20/country=')
  FORCE = TRUE;
COMMIT;
