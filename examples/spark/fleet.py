"""The fleet's question on Apache Spark:

    python -m blktape traces/*.tape --dataset fleet
    python examples/spark/fleet.py fleet                                local, on all cores
    spark-submit --master yarn examples/spark/fleet.py hdfs:///fleet    on a cluster, with this repository on the driver

Size histogram and storage wait of each machine, and the traces that represent all. The queries are those of
examples/fleet, the same as on DuckDB. Exit status: 0 whole, 1 failed, 2 usage, 3 some trace lacks data.
"""

import contextlib
import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fleet"))

# Nothing here uses pandas.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")

import fleet
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


class Spark:
    def __init__(self, session, dataset):
        self._session = session
        for name, more in (("records", ["_metadata.row_index AS file_row_number"]), ("traces", [])):
            files = session.read.option("basePath", os.path.join(dataset, name)).parquet(os.path.join(dataset, name, "*", "*"))
            files.selectExpr("*", *more).createOrReplaceTempView(name)

    def view(self, name, sql):
        self._session.sql(sql).createOrReplaceTempView(name)

    def table(self, name, sql):
        self._session.sql(sql).cache().createOrReplaceTempView(name)

    def rows(self, sql):
        return [row.asDict() for row in self._session.sql(sql).collect()]


@contextlib.contextmanager
def start(options):
    builder = SparkSession.builder.appName("blktape fleet")
    # A machine called 0123 is not the number 123.
    builder = builder.config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    if options.local:
        builder = builder.master("local[*]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield Spark(session, options.dataset)
    except PySparkException as error:
        raise fleet.FleetError("Spark: %s" % error) from error
    finally:
        session.stop()


def options(parser):
    # spark-submit says where it runs; started as a plain program it runs here.
    parser.add_argument("--local", action="store_true", default="SPARK_ENV_LOADED" not in os.environ,
                        help="on this machine's cores; the default unless spark-submit started it")


if __name__ == "__main__":
    sys.exit(fleet.main(__doc__, start, options))
