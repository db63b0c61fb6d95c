"""Servers that a machine may have: librdkafka's mock of Kafka (kafka_tool) and
PostgreSQL. Each is started when the first run wants it."""
import atexit
import os
import shutil
import tempfile


class Tools:
    def __init__(self):
        self.names = set()
        self.mock = self.server = None
        self.count = 0
        if os.environ.get("STAGGER_KAFKA_TOOL") and shutil.which("kcat"):
            self.names.add("kafka")
        if os.path.exists("/usr/lib/postgresql"):
            self.names.add("postgres")

    def words(self, settings):
        """Returns what @kafka@ and @postgres@ stand for in a run."""
        text = str(settings)
        found = {}
        if "@kafka@" in text:
            found["kafka"] = self.brokers()
        if "@postgres@" in text:
            found["postgres"] = self.database()
        return found

    def brokers(self):
        """Starts a cluster of the run's own: the address of a broker."""
        if self.mock is not None:
            self.mock.close()
        import kafka_case
        self.mock = kafka_case.Mock(t=2)
        return self.mock.addresses.split(",")[0]

    def database(self):
        """Makes a database of the run's own, in one server: its URL; or the name
        of a file, where the server cannot be run."""
        import postgres
        if self.server is None:
            self.folder = tempfile.TemporaryDirectory(prefix="stagger-operators-")
            try:
                self.server = postgres.Server(self.folder.name)
            except postgres.Missing:
                return "hub.db"
            atexit.register(self.close)
        self.count += 1
        name = f"run{self.count}"
        self.server.ask(f"CREATE DATABASE {name}")
        return named(self.server.url, name)

    def close(self):
        if self.mock is not None:
            self.mock.close()
            self.mock = None
        if self.server is not None:
            self.server.close()
            self.folder.cleanup()
            self.server = None


def named(url, name):
    """The URL of another database of the server."""
    head, _, options = url.partition("?")
    at = head.rindex("/") + 1
    return head[:at] + name + ("?" + options if options else "")
