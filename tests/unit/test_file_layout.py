"""Which properties of a table our own writer of data files follows, and when it leaves the work to Iceberg's."""

from __future__ import annotations

import pytest

from icestream.lake.data_files import layout_of

LOCATION = "s3://lake/shop/orders"


def test_files_lie_in_the_tables_data_folder_unless_a_property_says_otherwise() -> None:
    plain = layout_of({}, LOCATION)
    moved = layout_of({"write.data.path": "s3://other/data/"}, LOCATION)
    assert plain is not None and moved is not None
    assert (plain.folder, moved.folder) == (f"{LOCATION}/data", "s3://other/data")


@pytest.mark.parametrize(
    ("properties", "codec", "level"),
    [
        ({}, "zstd", 1),
        ({"write.parquet.compression-codec": "ZSTD", "write.parquet.compression-level": "9"}, "zstd", 9),
        ({"write.parquet.compression-codec": "gzip", "write.parquet.compression-level": "6"}, "gzip", 6),
        ({"write.parquet.compression-codec": "snappy", "write.parquet.compression-level": "6"}, "snappy", None),
        ({"write.parquet.compression-codec": "uncompressed"}, "none", None),
    ],
)
def test_compression_is_what_the_table_asks_for(properties: dict[str, str], codec: str, level: int | None) -> None:
    layout = layout_of(properties, LOCATION)
    assert layout is not None
    assert (layout.codec, layout.level) == (codec, level)


@pytest.mark.parametrize(
    "properties",
    [
        {"write.parquet.compression-codec": "lz4"},
        {"write.parquet.row-group-size-bytes": "1000"},
        {"write.parquet.bloom-filter-enabled.column.id": "true"},
        {"write.format.default": "orc"},
        {"write.object-storage.enabled": "true"},
        {"write.location-provider.impl": "org.example.Provider"},
        {"encryption.key-id": "k"},
    ],
)
def test_what_is_not_understood_is_left_to_icebergs_writer(properties: dict[str, str]) -> None:
    assert layout_of(properties, LOCATION) is None


def test_the_store_is_not_shown() -> None:
    layout = layout_of({}, LOCATION)
    assert "store" not in repr(layout)
