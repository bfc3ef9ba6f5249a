# A DAG of Airflow that makes a dataset every night: docs/nightly.md.
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
import pendulum

COMMAND = """
export NIGHT={{ ds }}
for try in 1 2 3 4 5 6 7 8 9 10; do
  [ $try -eq 1 ] || sleep 900
  leadetl run --job /srv/lists/nightly.yaml --out /datasets/hems --partition-by dt={{ ds }} --state /srv/lists/state --log-format json
  code=$?
  case $code in 5 | 130 | 137) ;; *) exit $code ;; esac
done
exit $code
"""

with DAG("leads", schedule="30 2 * * *", start_date=pendulum.datetime(2026, 11, 1, tz="UTC"), catchup=True, max_active_runs=1):
    BashOperator(task_id="hems", bash_command=COMMAND, retries=0, execution_timeout=pendulum.duration(hours=8))
