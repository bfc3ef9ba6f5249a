-- email_to_hem, schema version 1: an external table over the files; there is nothing to load
CREATE EXTERNAL TABLE IF NOT EXISTS `lake`.`crm`.`hems` (
  `id` string COMMENT 'the input''s column; null when a Parquet input has no value',
  `full name` string COMMENT 'a "name" | a \name',
  `order` string COMMENT '',
  `we``ird"` string COMMENT '',
  `source_row` bigint COMMENT 'data row of that file (rows, from 1)'
)
PARTITIONED BY (`dt` string, `country` string)
STORED AS PARQUET
LOCATION 's3://lake/it''s/';

-- Again whenever a partition has come.
MSCK REPAIR TABLE `lake`.`crm`.`hems`;
