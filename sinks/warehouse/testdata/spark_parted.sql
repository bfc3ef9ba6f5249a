-- email_to_hem, schema version 1: a table over the files; there is nothing to load
CREATE TABLE IF NOT EXISTS `lake`.`crm`.`hems` (
  `id` STRING COMMENT 'the input\'s column; null when a Parquet input has no value',
  `Full Name` STRING COMMENT 'a "name" | a \\name',
  `order` STRING COMMENT '',
  `we``ird"` STRING COMMENT '',
  `source_row` BIGINT COMMENT 'data row of that file (rows, from 1)',
  `credits` INT COMMENT '',
  `resolved_at` TIMESTAMP COMMENT '',
  `searched_on` DATE COMMENT '',
  `confidence` DOUBLE COMMENT '',
  `phone_valid` BOOLEAN COMMENT '',
  `matched_keywords` ARRAY<STRING> COMMENT '',
  `hashed_emails` ARRAY<STRUCT<`email`: STRING, `type`: STRING>> COMMENT '',
  `dt` DATE,
  `country` STRING
)
USING PARQUET
PARTITIONED BY (`dt`, `country`)
LOCATION 's3://lake/it\'s';

-- Again whenever a partition has come.
MSCK REPAIR TABLE `lake`.`crm`.`hems`;
