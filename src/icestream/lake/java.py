"""Py4J at arm's length: Java collections from Python values, and what a Java error means to us."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from icestream.errors import LakeError, LakeUnavailable

# Untyped objects of the JVM; mypy cannot see through Py4J.
Java: TypeAlias = Any

# PySpark turns some Java errors of any call into classes of its own.
JavaError: TypeAlias = Py4JJavaError | PySparkException
JAVA_ERRORS: Final = (Py4JJavaError, PySparkException)

# Doing the same again does not help: what was asked for is wrong.
_FINAL: Final = frozenset(("ValidationException", "IllegalArgumentException", "UnsupportedOperationException"))
_LONGEST: Final = 300


def string_array(jvm: Java, items: Iterable[str]) -> Java:
    values = list(items)
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.String"), len(values))
    for index, value in enumerate(values):
        jvm.java.lang.reflect.Array.set(array, index, value)
    return array


def string_map(jvm: Java, items: Mapping[str, str]) -> Java:
    result = jvm.java.util.HashMap()
    for key, value in items.items():
        result.put(key, value)
    return result


@contextmanager
def calling(action: str) -> Iterator[None]:
    """Turns what a call into the JVM raises into ours: LakeError where only a person can help, else LakeUnavailable."""
    try:
        yield
    except JAVA_ERRORS as err:
        kind = LakeError if is_final(err) else LakeUnavailable
        raise kind(f"{action} failed: {error_message(err)}") from err


def is_final(error: JavaError) -> bool:
    return not _FINAL.isdisjoint(error_classes(error))


def error_classes(error: JavaError) -> list[str]:
    """The class names of a Java error and of all its causes, outermost first."""
    return [cause.getClass().getSimpleName() for cause in _causes(error)]


def error_message(error: JavaError) -> str:
    """The part a person can use: the first line of the innermost cause, or what Spark says itself."""
    if isinstance(error, PySparkException):
        return _first_line(str(error)) or type(error).__name__
    innermost = list(_causes(error))[-1]
    return _first_line(str(innermost.getMessage() or "")) or str(innermost.getClass().getSimpleName())


def is_jvm_gone(error: BaseException) -> bool:
    """Whether Spark itself has ended: nothing but a new process helps then."""
    return isinstance(error, (Py4JNetworkError, ConnectionError)) or (
        isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
    )


def _causes(error: JavaError) -> Iterator[Java]:
    cause = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    for _ in range(20):
        if cause is None:
            return
        yield cause
        cause = cause.getCause()


def _first_line(text: str) -> str:
    """The rest of what Spark says is plans and stack traces."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:_LONGEST] if lines else ""
