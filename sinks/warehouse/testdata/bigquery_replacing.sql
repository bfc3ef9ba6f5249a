-- email_to_hem, schema version 1: the table, and the rows
-- BigQuery loads from Cloud Storage: copy the dataset there first, and fill in its bucket below.
--   gcloud storage rsync --recursive 's3://lake/it'\''s/dt=2026-11-20' gs://BUCKET/PREFIX/dt=2026-11-20

CREATE TABLE IF NOT EXISTS `lake.crm.hems` (
  `id` STRING OPTIONS (description = 'the input\'s column; null when a Parquet input has no value'),
  `Full Name` STRING OPTIONS (description = 'a "name" | a \\name'),
  `order` STRING OPTIONS (description = ''),
  `we\`ird"` STRING OPTIONS (description = ''),
  `source_row` INT64 NOT NULL OPTIONS (description = 'data row of that file (rows, from 1)'),
  `dt` DATE,
  `country` STRING
);

-- enable_list_inference: lists are arrays, not records of records.
LOAD DATA OVERWRITE `lake.crm.hems_load`
FROM FILES (
  format = 'PARQUET',
  enable_list_inference = true,
  uris = ['gs://BUCKET/PREFIX/dt=2026-11-20/country=*.parquet'],
  hive_partition_uri_prefix = 'gs://BUCKET/PREFIX'
)
WITH PARTITION COLUMNS (`dt` DATE, `country` STRING);

MERGE INTO `lake.crm.hems` t USING `lake.crm.hems_load` s ON FALSE
WHEN NOT MATCHED BY SOURCE AND `dt` = '2026-11-20' THEN DELETE
WHEN NOT MATCHED BY TARGET THEN INSERT (`id`, `Full Name`, `order`, `we\`ird"`, `source_row`, `dt`, `country`)
  VALUES (`id`, `Full Name`, `order`, `we\`ird"`, `source_row`, `dt`, `country`);
DROP TABLE `lake.crm.hems_load`;
