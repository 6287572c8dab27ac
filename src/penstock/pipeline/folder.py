"""A folder of a flow's own files, on whatever file system Spark's checkpoints are."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.errors import SinkError
from penstock.points import reach
from penstock.process.spark.java import Java

READY = ".ready"  # behind the name of a file that is whole and not yet in its place


class Folder:
    """Reads and writes through Hadoop's file systems, so that it may be on a disk or in a bucket."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        jvm: Java = spark._jvm
        self._make_path = jvm.org.apache.hadoop.fs.Path
        root = self._make_path(path)
        self._settings = spark._jsparkSession.sessionState().newHadoopConf()
        self._files = root.getFileSystem(self._settings)
        self._copy = jvm.org.apache.hadoop.fs.FileUtil.copy
        self._read_all = jvm.org.apache.commons.io.IOUtils.toString
        self._utf8 = jvm.java.nio.charset.StandardCharsets.UTF_8

    def delete(self) -> bool:
        """Delete the whole of it; False if there was none."""
        return bool(self._files.delete(self._make_path(self.path), True))

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None if there is none; somebody may be replacing it just now."""
        for each in (name, name + READY, name):
            found = self._text(each)
            if found is not None:
                return found
        return None

    def _text(self, name: str) -> str | None:
        try:
            stream = self._files.open(self._make_path(f"{self.path}/{name}"))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error.java_exception.toString()):
                return None
            raise
        try:
            return str(self._read_all(stream, self._utf8))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file; whenever it is killed, it is the old one or the new one.

        File systems don't replace a file by another in one step: in between, the new one is there as ready.
        """
        self._put_ready(name)
        draft = self._make_path(f"{self.path}/{name}.draft")
        stream = self._files.create(draft, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self._rename(draft, f"{name}{READY}")
        self._put_ready(name)

    def copy_from(self, other: str, name: str) -> None:
        """Copy another folder into this one under a name, in place of what is there."""
        source, target = self._make_path(other), self._make_path(f"{self.path}/{name}")
        self.remove(name)
        if not self._copy(self._files, source, self._files, target, False, self._settings):
            raise SinkError(
                f"{other} can't be copied to {self.path}/{name}", hint="see to its disk or bucket"
            )

    def ages(self, now: float) -> dict[str, float]:
        """Return the folders in it, and how many seconds ago each was changed."""
        return {
            str(each.getPath().getName()): now - each.getModificationTime() / 1000
            for each in self._listed("")
            if each.isDirectory()
        }

    def remove(self, name: str) -> None:
        """Remove a file or a folder in it, if it is there."""
        self._files.delete(self._make_path(f"{self.path}/{name}"), True)

    def _put_ready(self, name: str) -> None:
        """Put a file that is ready in its place; one that a kill has left, too."""
        ready = self._make_path(f"{self.path}/{name}{READY}")
        if self._files.exists(ready):
            self.remove(name)
            reach("checkpoint.replacing", name)
            self._rename(ready, name)

    def _rename(self, source: Java, name: str) -> None:
        if not self._files.rename(source, self._make_path(f"{self.path}/{name}")):
            raise SinkError(f"{self.path}/{name} can't be written", hint="see to its disk or bucket")

    def _listed(self, folder: str) -> list[Any]:
        place = self._make_path(f"{self.path}/{folder}" if folder else self.path)
        return list(self._files.listStatus(place)) if self._files.exists(place) else []
