#!/usr/bin/env bash
# Tries a run on workers on this machine: a development server of Temporal, three
# workers, and the run whose flags are the arguments:
#
#   deploy/try-workers.sh email_to_hem --in s3://leads/lists/ --out s3://leads/hems/ --state s3://leads/state/
#
# Credentials and region of S3 come from the AWS environment; for another store
# set LEADETL_S3_ENDPOINT and LEADETL_S3_PATH_STYLE=true. For paid calls set RESOLVER to
# the address in --resolver, and LEADETL_API_KEY. It needs the command temporal
# (https://docs.temporal.io/cli), whose server has a page at http://127.0.0.1:8233.
# TEMPORAL_PORT replaces port 7233. All ends with the run.
set -euo pipefail
set -m # Ctrl-C is for the run alone, which needs the others to store its answers
port=${TEMPORAL_PORT:-7233}
on=temporal://127.0.0.1:$port/leads
unset TEMPORAL_ADDRESS TEMPORAL_NAMESPACE TEMPORAL_API_KEY TEMPORAL_PROFILE # of another server
trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT

temporal server start-dev --port "$port" --namespace leads --log-level error > /dev/null &
server=$!
until temporal operator namespace describe --address "127.0.0.1:$port" --namespace leads > /dev/null 2>&1; do
	kill -0 "$server" 2> /dev/null || { echo "the Temporal server did not start; is port $port in use?" >&2; exit 1; }
	sleep 1
done
for _ in 1 2 3; do
	leadetl worker --on "$on" --log-level warn ${RESOLVER:+--resolver "$RESOLVER"} &
done
leadetl run "$@" --on "$on"
