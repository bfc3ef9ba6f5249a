#!/bin/sh
# Makes the dataset of every night that is due, from the files in this folder:
#   nightly.yaml  the job; ${NIGHT} in it is the date of the night
#   nights/       a file for each night that is not done, named after its date
#   hems/         the datasets, a partition of one table for each night
#   state/        what must not be lost
#   env           if it is there: variables such as HOOK, AWS_PROFILE, and LEADETL_OUT and
#                 LEADETL_STATE in place of the two folders; for this user alone to read
# The scheduler adds a night once. Every try reads its date from there, so a
# retry after midnight makes the same dataset. A night leaves the folder when it
# is done. One that needs a person stays, with its exit code in the file, and is
# not tried again until the file is empty or says: anew.
set -u
PATH=${PATH:-/usr/bin:/bin}
leadetl=${LEADETL:-$(command -v leadetl || echo /usr/local/bin/leadetl)} # cron has a short PATH
problem=0
if [ -e env ]; then
  set -a
  . ./env
  set +a
fi
for due in nights/*; do
  [ -e "$due" ] || break # no night is due
  NIGHT=${due#nights/}
  export NIGHT
  read -r asked <"$due" || : # an empty file, or one without a line end
  case $NIGHT:$asked in
  [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]:) set -- ;;
  [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]:anew) set -- --overwrite ;; # from the input as it is now
  *:"exit code "*) continue ;;
  *)
    problem=2
    echo "$due: the name of a night is its date, and its file is empty or says: anew" >&2
    continue
    ;;
  esac
  "$leadetl" run --job nightly.yaml --out "${LEADETL_OUT:-hems}" --partition-by "dt=$NIGHT" --state "${LEADETL_STATE:-state}" --quiet "$@"
  code=$?
  case $code in
  0) rm "$due" ;;
  5 | 130 | 137) exit $code ;; # the next try resumes; 137: it was killed
  *)
    problem=$code
    echo "exit code $code" >"$due"
    echo "night $NIGHT ended with exit code $code and waits in $PWD/$due; to try it again: echo > $PWD/$due; to make it anew: echo anew > $PWD/$due" >&2
    ;;
  esac
done
exit $problem
