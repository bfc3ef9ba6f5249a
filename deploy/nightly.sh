#!/bin/sh
# Makes the dataset of every night that is due, from the files in this folder:
#   nightly.yaml  the job
#   nights/       an empty file for each night that is due, named after its date
#   hems/         the datasets, one folder for each night
#   state/        what must not be lost
# The scheduler adds a night once. Every try reads its date from there, so a
# retry after midnight makes the same dataset.
set -u
PATH=${PATH:-/usr/bin:/bin}
leadetl=${LEADETL:-/usr/local/bin/leadetl}
problem=0
for due in nights/*; do
  [ -e "$due" ] || break # no night is due
  night=${due#nights/}
  "$leadetl" run --job nightly.yaml --out "hems/dt=$night" --state state --quiet
  code=$?
  case $code in
  0) rm "$due" ;;
  5 | 130 | 137) exit $code ;; # the next try resumes; 137: it was killed
  *)
    problem=$code
    rm "$due"
    echo "night $night ended with exit code $code; to run it again: touch $PWD/$due" >&2
    ;;
  esac
done
exit $problem
