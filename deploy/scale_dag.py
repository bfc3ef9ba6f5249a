# A DAG of Airflow that makes one dataset on many machines: docs/scale.md.
from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import dag, task
import json, pendulum, subprocess


def leadetl(day, *args):
    done = subprocess.run(["leadetl", *args, "--job", "emails.yaml", "--out", "s3://leads/hems", "--partition-by", f"dt={day}"], stdout=subprocess.PIPE, text=True)
    if done.returncode in (5, 130) or done.returncode < 0:  # below 0: it was killed
        raise AirflowException("try again")
    if done.returncode != 0:
        raise AirflowFailException(f"exit code {done.returncode}")
    return done.stdout


@dag(schedule="@daily", start_date=pendulum.datetime(2026, 11, 1, tz="UTC"), catchup=False)
def emails():
    @task(retries=6)
    def survey(ds=None):
        return list(range(json.loads(leadetl(ds, "survey", "--json"))["windows"]))

    @task(retries=6)
    def part(index, ds=None):
        leadetl(ds, "part", "--index", str(index))

    @task(retries=6, trigger_rule="none_failed")
    def finish(ds=None):
        leadetl(ds, "finish")

    part.expand(index=survey()) >> finish()


emails()
