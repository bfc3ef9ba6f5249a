#!/bin/sh
# Makes the dataset of a night: nightly.sh [YYYY-MM-DD]. Run it again at any
# time: it resumes a stopped run, and does nothing if the dataset is complete.
night=${1:-$(date -u +%Y-%m-%d)}
leadetl run --job testdata/nightly.yaml --out "out/nightly/hems/dt=$night" --quiet
code=$?
case $code in
0) ;;
3) echo "done, with rows to check: out/nightly/hems/dt=$night/_report.html" >&2 ;;
4 | 5 | 130) exit 75 ;; # try again later: it resumes
*) exit $code ;;        # a person has to check
esac
