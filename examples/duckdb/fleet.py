"""The fleet's question on one machine, with DuckDB:

    python -m blktape traces/*.tape --dataset fleet
    python examples/duckdb/fleet.py fleet

Size histogram and storage wait of each machine, and the traces that represent all. The queries are those of
examples/fleet, the same as on Spark. Exit status: 0 whole, 1 failed, 2 usage, 3 some trace lacks data.
"""

import contextlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fleet"))

import duckdb
import fleet


class DuckDb:
    def __init__(self, dataset, memory):
        self._database = duckdb.connect()
        self._database.execute("SET memory_limit = '%s'" % memory.replace("'", "''"))
        for name, more in (("records", ", file_row_number = true"), ("traces", "")):
            if not os.path.isdir(os.path.join(dataset, name)):
                raise fleet.FleetError("%s: is no dataset, it has no folder %s" % (dataset, name))
            files = os.path.join(dataset, name, "*", "*", "*.parquet").replace("'", "''")
            # Not autocast: a machine called 0123 is not the number 123.
            self.view(name, "SELECT * FROM read_parquet('%s', hive_partitioning = true, hive_types_autocast = false%s)" % (
                files, more))

    def view(self, name, sql):
        self._database.execute("CREATE VIEW %s AS %s" % (name, sql))

    def table(self, name, sql):
        self._database.execute("CREATE TABLE %s AS %s" % (name, sql))

    def rows(self, sql):
        result = self._database.execute(sql)
        names = [column[0] for column in result.description]
        return [dict(zip(names, row)) for row in result.fetchall()]


@contextlib.contextmanager
def start(options):
    try:
        yield DuckDb(options.dataset, options.memory)
    except duckdb.Error as error:
        raise fleet.FleetError("DuckDB: %s" % error) from error


if __name__ == "__main__":
    sys.exit(fleet.main(__doc__, start, lambda parser: parser.add_argument(
        "--memory", default="2GB", help="what DuckDB may use before it writes to disk (2GB)")))
