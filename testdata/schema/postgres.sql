-- deanonymization, schema version 2: the table, what its columns mean, and the rows
-- For psql of PostgreSQL 15 or later, as a script: if a command fails, nothing is loaded.
\set ON_ERROR_STOP on
SET client_encoding = 'UTF8';
CREATE TABLE IF NOT EXISTS "deanonymization" (
  "id" text,
  "seen_at" text,
  "in_email" text,
  "source" text NOT NULL,
  "source_row" bigint NOT NULL,
  "outcome" text NOT NULL,
  "reason" text,
  "resolution_id" text,
  "resolved_at" timestamp with time zone,
  "answered_by" text,
  "credits" integer,
  "first_name" text,
  "last_name" text,
  "full_name" text,
  "headline" text,
  "job_title" text,
  "seniority" text,
  "department" text,
  "email" text,
  "emails" jsonb,
  "phones" jsonb,
  "network_url" text,
  "street" text,
  "zip_code" text,
  "city" text,
  "state" text,
  "last_seen_at" timestamp with time zone,
  "phone" text,
  "phone_raw" text,
  "phone_region" text,
  "phone_type" text,
  "phone_valid" boolean,
  "hem_md5" text,
  "hem_sha1" text,
  "hem_sha256" text,
  "company_name" text,
  "company_domain" text,
  "company_website_url" text,
  "company_network_url" text,
  "company_industry" text,
  "company_revenue" text,
  "company_revenue_min" bigint,
  "company_revenue_max" bigint,
  "company_employee_count" text,
  "company_employee_min" bigint,
  "company_employee_max" bigint,
  "company_year_founded" integer,
  "company_street" text,
  "company_zip_code" text,
  "company_city" text,
  "company_state" text,
  "company_about" text,
  "match_level" text,
  "confidence" double precision,
  "dt" date
);

COMMENT ON COLUMN "deanonymization"."id" IS 'the input''s column of that name, as text; null when a Parquet input has no value; an empty CSV cell is an empty text';
COMMENT ON COLUMN "deanonymization"."seen_at" IS 'the input''s column seen at, as text; null when a Parquet input has no value; an empty CSV cell is an empty text';
COMMENT ON COLUMN "deanonymization"."in_email" IS 'the input''s column email, as text; null when a Parquet input has no value; an empty CSV cell is an empty text';
COMMENT ON COLUMN "deanonymization"."source" IS 'input file, as it was given';
COMMENT ON COLUMN "deanonymization"."source_row" IS 'data row of that file, malformed lines counted (rows, from 1)';
COMMENT ON COLUMN "deanonymization"."outcome" IS 'what became of the row';
COMMENT ON COLUMN "deanonymization"."reason" IS 'why the row is not matched; null when it is matched';
COMMENT ON COLUMN "deanonymization"."resolution_id" IS 'the service''s id of the answer; null when none, or the embedded engine answered';
COMMENT ON COLUMN "deanonymization"."resolved_at" IS 'when the service''s answer was received (microseconds, UTC); null when the embedded engine answered, or there is no answer';
COMMENT ON COLUMN "deanonymization"."answered_by" IS 'who answered: service or embedded; of several resolvers the name of the first with a match; null when no answer';
COMMENT ON COLUMN "deanonymization"."credits" IS 'cost of the answer, shared by all rows of a key (of a search: of a key and page): SELECT sum(credits) FROM (SELECT max(credits) AS credits FROM leads GROUP BY key) AS once (credits); null when no answer, or its cost is unknown';
COMMENT ON COLUMN "deanonymization"."first_name" IS 'given name; null when unknown';
COMMENT ON COLUMN "deanonymization"."last_name" IS 'family name; null when unknown';
COMMENT ON COLUMN "deanonymization"."full_name" IS 'whole name; null when unknown';
COMMENT ON COLUMN "deanonymization"."headline" IS 'headline of the profile; null when unknown';
COMMENT ON COLUMN "deanonymization"."job_title" IS 'job title; null when unknown';
COMMENT ON COLUMN "deanonymization"."seniority" IS 'level of the job; null when unknown';
COMMENT ON COLUMN "deanonymization"."department" IS 'department of the job; null when unknown';
COMMENT ON COLUMN "deanonymization"."email" IS 'first of emails; null when unknown';
COMMENT ON COLUMN "deanonymization"."emails" IS 'every address known: email, and its type, such as work; null when none';
COMMENT ON COLUMN "deanonymization"."phones" IS 'every number known: phone, and its type, such as mobile; null when none';
COMMENT ON COLUMN "deanonymization"."network_url" IS 'the person''s profile address, without scheme; null when unknown';
COMMENT ON COLUMN "deanonymization"."street" IS 'the person''s street and number; null when unknown';
COMMENT ON COLUMN "deanonymization"."zip_code" IS 'the person''s postal code, text: leading zeros stay; null when unknown';
COMMENT ON COLUMN "deanonymization"."city" IS 'the person''s city; null when unknown';
COMMENT ON COLUMN "deanonymization"."state" IS 'the person''s state; null when unknown';
COMMENT ON COLUMN "deanonymization"."last_seen_at" IS 'when the person was last seen (microseconds, UTC); null when unknown';
COMMENT ON COLUMN "deanonymization"."phone" IS 'phone number (E.164); null when none, or it cannot be read';
COMMENT ON COLUMN "deanonymization"."phone_raw" IS 'phone number as answered, or as the reference data has it; null when none';
COMMENT ON COLUMN "deanonymization"."phone_region" IS 'region of the number, 001 for none (ISO 3166-1 alpha-2); null when there is no phone, or its plan serves several regions';
COMMENT ON COLUMN "deanonymization"."phone_type" IS 'what the number is for: mobile, fixed_line and so on; null when there is no phone';
COMMENT ON COLUMN "deanonymization"."phone_valid" IS 'whether the region''s plan has given the number out; null when there is no phone';
COMMENT ON COLUMN "deanonymization"."hem_md5" IS 'first MD5 among hashed_emails (32 hex digits, lower case); null when none';
COMMENT ON COLUMN "deanonymization"."hem_sha1" IS 'first SHA-1 among hashed_emails (40 hex digits, lower case); null when none';
COMMENT ON COLUMN "deanonymization"."hem_sha256" IS 'first SHA-256 among hashed_emails (64 hex digits, lower case); null when none';
COMMENT ON COLUMN "deanonymization"."company_name" IS 'name of the company; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_domain" IS 'its domain, lower case and ASCII; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_website_url" IS 'its web site; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_network_url" IS 'its profile address, without scheme; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_industry" IS 'its industry; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_revenue" IS 'its revenue a year, a range in words; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_revenue_min" IS 'lower bound of that range (US dollars); null when none, another currency, or the words are ambiguous';
COMMENT ON COLUMN "deanonymization"."company_revenue_max" IS 'upper bound of that range (US dollars); null when none, another currency, or the words are ambiguous';
COMMENT ON COLUMN "deanonymization"."company_employee_count" IS 'its employees, a range in words; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_employee_min" IS 'lower bound of that range (people); null when none, or the words are ambiguous';
COMMENT ON COLUMN "deanonymization"."company_employee_max" IS 'upper bound of that range (people); null when none, or the words are ambiguous';
COMMENT ON COLUMN "deanonymization"."company_year_founded" IS 'year it was founded (year); null when unknown';
COMMENT ON COLUMN "deanonymization"."company_street" IS 'its street and number; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_zip_code" IS 'its postal code, text: leading zeros stay; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_city" IS 'its city; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_state" IS 'its state; null when unknown';
COMMENT ON COLUMN "deanonymization"."company_about" IS 'what it says of itself; null when unknown';
COMMENT ON COLUMN "deanonymization"."match_level" IS 'what the visit was matched with: person or company; null when not matched';
COMMENT ON COLUMN "deanonymization"."confidence" IS 'how sure the match is (0 to 1); null when unknown';

BEGIN;
CREATE TEMP TABLE "deanonymization_load" (
  "id" text,
  "seen_at" text,
  "in_email" text,
  "source" text,
  "source_row" bigint,
  "outcome" text,
  "reason" text,
  "resolution_id" text,
  "resolved_at" timestamp with time zone,
  "answered_by" text,
  "credits" integer,
  "first_name" text,
  "last_name" text,
  "full_name" text,
  "headline" text,
  "job_title" text,
  "seniority" text,
  "department" text,
  "email" text,
  "emails" jsonb,
  "phones" jsonb,
  "network_url" text,
  "street" text,
  "zip_code" text,
  "city" text,
  "state" text,
  "last_seen_at" timestamp with time zone,
  "phone" text,
  "phone_raw" text,
  "phone_region" text,
  "phone_type" text,
  "phone_valid" boolean,
  "hem_md5" text,
  "hem_sha1" text,
  "hem_sha256" text,
  "company_name" text,
  "company_domain" text,
  "company_website_url" text,
  "company_network_url" text,
  "company_industry" text,
  "company_revenue" text,
  "company_revenue_min" bigint,
  "company_revenue_max" bigint,
  "company_employee_count" text,
  "company_employee_min" bigint,
  "company_employee_max" bigint,
  "company_year_founded" integer,
  "company_street" text,
  "company_zip_code" text,
  "company_city" text,
  "company_state" text,
  "company_about" text,
  "match_level" text,
  "confidence" double precision,
  "dt" date
) ON COMMIT DROP;
\copy "deanonymization_load" FROM PROGRAM 'leadetl export s3://BUCKET/PREFIX/dt=2026-11-20 --out -' WITH (FORMAT csv, HEADER match)
INSERT INTO "deanonymization" ("id", "seen_at", "in_email", "source", "source_row", "outcome", "reason", "resolution_id", "resolved_at", "answered_by", "credits", "first_name", "last_name", "full_name", "headline", "job_title", "seniority", "department", "email", "emails", "phones", "network_url", "street", "zip_code", "city", "state", "last_seen_at", "phone", "phone_raw", "phone_region", "phone_type", "phone_valid", "hem_md5", "hem_sha1", "hem_sha256", "company_name", "company_domain", "company_website_url", "company_network_url", "company_industry", "company_revenue", "company_revenue_min", "company_revenue_max", "company_employee_count", "company_employee_min", "company_employee_max", "company_year_founded", "company_street", "company_zip_code", "company_city", "company_state", "company_about", "match_level", "confidence", "dt")
SELECT
  "id",
  "seen_at",
  "in_email",
  "source",
  "source_row",
  "outcome",
  "reason",
  "resolution_id",
  "resolved_at",
  "answered_by",
  "credits",
  "first_name",
  "last_name",
  "full_name",
  "headline",
  "job_title",
  "seniority",
  "department",
  "email",
  "emails",
  "phones",
  "network_url",
  "street",
  "zip_code",
  "city",
  "state",
  "last_seen_at",
  "phone",
  "phone_raw",
  "phone_region",
  "phone_type",
  "phone_valid",
  "hem_md5",
  "hem_sha1",
  "hem_sha256",
  "company_name",
  "company_domain",
  "company_website_url",
  "company_network_url",
  "company_industry",
  "company_revenue",
  "company_revenue_min",
  "company_revenue_max",
  "company_employee_count",
  "company_employee_min",
  "company_employee_max",
  "company_year_founded",
  "company_street",
  "company_zip_code",
  "company_city",
  "company_state",
  "company_about",
  "match_level",
  "confidence",
  "dt"
  FROM "deanonymization_load";
COMMIT;
