#!/bin/sh
# Makes the dataset of a night: nightly.sh [YYYY-MM-DD]. It can be run again at
# any time, goes on where it was stopped, and does nothing when all is done.
night=${1:-$(date -u +%Y-%m-%d)}
leadetl run --job testdata/nightly.yaml --out "out/nightly/hems/dt=$night" --quiet
code=$?
case $code in
0) ;;
3) echo "done, with rows to look at: out/nightly/hems/dt=$night/_report.html" >&2 ;;
4 | 5 | 130) exit 75 ;; # try again later: it goes on
*) exit $code ;;        # somebody has to look
esac
