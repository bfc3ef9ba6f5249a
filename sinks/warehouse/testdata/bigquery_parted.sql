-- email_to_hem, schema version 1: the table, and the rows
-- BigQuery loads from Cloud Storage: copy the dataset there first, and fill in its bucket below.
--   gcloud storage rsync --recursive 's3://lake/it'\''s/dt=2026-11-20' gs://BUCKET/PREFIX/dt=2026-11-20

CREATE TABLE IF NOT EXISTS `lake.crm.hems` (
  `id` STRING OPTIONS (description = 'the input\'s column; null when a Parquet input has no value'),
  `Full Name` STRING OPTIONS (description = 'a "name" | a \\name'),
  `order` STRING OPTIONS (description = ''),
  `we\`ird"` STRING OPTIONS (description = ''),
  `source_row` INT64 NOT NULL OPTIONS (description = 'data row of that file (rows, from 1)'),
  `credits` INT64 OPTIONS (description = ''),
  `resolved_at` TIMESTAMP OPTIONS (description = ''),
  `searched_on` DATE OPTIONS (description = ''),
  `confidence` FLOAT64 OPTIONS (description = ''),
  `phone_valid` BOOL OPTIONS (description = ''),
  `matched_keywords` ARRAY<STRING> OPTIONS (description = ''),
  `hashed_emails` ARRAY<STRUCT<`email` STRING, `type` STRING>> OPTIONS (description = ''),
  `dt` DATE,
  `country` STRING
);

-- enable_list_inference: lists are arrays, not records of records.
LOAD DATA INTO `lake.crm.hems`
FROM FILES (
  format = 'PARQUET',
  enable_list_inference = true,
  uris = ['gs://BUCKET/PREFIX/dt=2026-11-20/country=*.parquet'],
  hive_partition_uri_prefix = 'gs://BUCKET/PREFIX'
)
WITH PARTITION COLUMNS (`dt` DATE, `country` STRING);
