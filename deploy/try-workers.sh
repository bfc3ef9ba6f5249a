#!/usr/bin/env bash
# Tries a run on workers on this machine: a development server of Temporal, three
# workers, and the run whose flags are the arguments:
#
#   deploy/try-workers.sh email_to_hem --in s3://leads/lists/ --out s3://leads/hems/ --state s3://leads/state/
#
# Credentials and region of S3 come from the AWS environment; for another store
# set LEADETL_S3_ENDPOINT and LEADETL_S3_PATH_STYLE. It needs the command
# temporal (https://docs.temporal.io/cli). All ends with the run.
set -euo pipefail
on=temporal://127.0.0.1:7233/leads
trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT
temporal server start-dev --namespace leads --log-level error > /dev/null &
until temporal operator namespace describe --namespace leads > /dev/null 2>&1; do sleep 1; done
for _ in 1 2 3; do
	leadetl worker --on "$on" --log-level warn ${RESOLVER:+--resolver "$RESOLVER"} &
done
leadetl run "$@" --on "$on"
