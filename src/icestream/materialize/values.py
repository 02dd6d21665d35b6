"""Text to typed values, as Spark expressions.

A plain cast is not a test: it takes `0044-03-15 BC` for 44 AD and rounds the nineteenth decimal. Each expression
gives NULL for what the Iceberg type can't hold; a text that was there and became NULL is *unfit*.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from icestream.model.types import Kind, TargetType

_UTC_SUFFIX = "+00"  # the session's TimeZone is pinned to UTC
_DATE_LENGTH = len("2026-01-31")
_TO_THE_END = 2147483647

# An element of an array's text: quoted, with \ before quotes and backslashes, or bare. Possessive quantifiers, since
# Java follows others by recursion, and a long element would end its stack.
_ELEMENT = r'(?s)("[^"\\]*+(?:\\.[^"\\]*+)*+"|[^,"]++)(?:,|\z)'
_ESCAPED = r"(?s)\\(.)"

_JSON_STRING = r'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Numbers that VARIANT would round or take for infinite; it holds 38 digits exactly.
_INEXACT_NUMBER = r"(?:[0-9]\.?){39}|[eE][+-]?[0-9]{3}"


def typed(raw: Column, type_: TargetType) -> Column:
    match type_.kind:
        case Kind.STRING | Kind.UUID:
            return raw
        case Kind.BOOLEAN:
            return F.when(raw == "t", F.lit(True)).when(raw == "f", F.lit(False))
        case Kind.BINARY:
            return F.unhex(F.substring(raw, 3, _TO_THE_END))  # after the leading \x
        case Kind.DATE:
            return F.when(F.length(raw) == _DATE_LENGTH, raw.try_cast("date"))
        case Kind.TIMESTAMP:
            return F.when(_has_four_digit_year(raw) & ~raw.endswith("BC"), raw.try_cast("timestamp_ntz"))
        case Kind.TIMESTAMPTZ:
            in_utc = _has_four_digit_year(raw) & raw.endswith(_UTC_SUFFIX)
            return F.when(in_utc, F.substring_index(raw, "+", 1).try_cast("timestamp"))
        case Kind.DECIMAL:
            return F.when(_fits_scale(raw, type_.scale), raw.try_cast(type_.spark))
        case Kind.VARIANT:
            outside_strings = F.regexp_replace(raw, _JSON_STRING, "")
            # What is nested too deeply for Spark is kept as one text.
            document = F.coalesce(F.try_parse_json(raw), raw.cast("variant"))
            return F.when(~outside_strings.rlike(_INEXACT_NUMBER), document)
    return raw.try_cast(type_.spark) if type_.element is None else _list(raw, type_.element)


def unfit(raw: Column, value: Column, type_: TargetType) -> Column:
    """Looks at the text first: where that is enough, which is nearly always, Spark does not make the value."""
    return raw.isNotNull() & ~_fits_at_a_glance(raw, type_) & value.isNull()


def _fits_at_a_glance(raw: Column, type_: TargetType) -> Column:
    match type_.kind:
        case Kind.DATE:
            return F.length(raw) == _DATE_LENGTH
        case Kind.TIMESTAMP:
            return _has_four_digit_year(raw) & ~raw.endswith("BC")
        case Kind.TIMESTAMPTZ:
            return _has_four_digit_year(raw) & raw.endswith(_UTC_SUFFIX)
        case Kind.DECIMAL:
            whole, point = F.length(F.substring_index(raw, ".", 1)), F.instr(raw, ".")
            few_after_point = (point == 0) | (F.length(raw) - point <= type_.scale)
            return (F.substring(raw, -1, 1) <= "9") & (whole <= type_.precision - type_.scale) & few_after_point
    return F.lit(False)


def _has_four_digit_year(raw: Column) -> Column:
    return F.substring(raw, 5, 1) == "-"


def _fits_scale(raw: Column, scale: int) -> Column:
    digits_after_point = F.length(F.rtrim(F.substring_index(raw, ".", -1), F.lit("0")))
    return (F.instr(raw, ".") == 0) | (digits_after_point <= scale)


def _list(raw: Column, element: TargetType) -> Column:
    """A list can't hold more than one dimension, nor bounds that do not start at 1 (`[0:1]={a,b}`)."""
    is_flat = raw.startswith("{") & ~raw.startswith("{{")
    body = F.substring(raw, 2, F.length(raw) - 2)
    texts = F.transform(F.regexp_extract_all(body, F.lit(_ELEMENT), F.lit(1)), _element_text)
    values = F.transform(texts, lambda text: typed(text, element))
    if not element.can_be_unfit:
        return F.when(is_flat, values)
    return F.when(is_flat & (_count_nulls(texts) == _count_nulls(values)), values)


def _element_text(part: Column) -> Column:
    inside = F.substring(part, 2, F.length(part) - 2)
    return F.when(part.startswith('"'), F.regexp_replace(inside, _ESCAPED, "$1")).when(part != "NULL", part)


def _count_nulls(values: Column) -> Column:
    return F.size(F.filter(values, lambda value: value.isNull()))
