from __future__ import annotations

import pytest

from icestream.config.partition import PartitionField, Transform
from icestream.config.section import facts_of, walk
from icestream.config.settings import Settings
from icestream.model.table import TableName, Target, WriteMode
from support.settings_texts import load_text, settings_of, with_sections


def test_what_is_set_for_a_table_wins_over_the_sink() -> None:
    settings = settings_of(
        with_sections(
            table="""
                primary_key: [id]
                skip_snapshot: true
                iceberg:
                  name: archive.old_orders
                  partition: [day(ts), "bucket[4](id)"]
                  properties: {write.parquet.compression-codec: zstd, history.expire.max-snapshot-age-ms: 1000}
                  format_version: 2
            """,
            tables="- name: public.items",
            sink="namespace: shop",
        )
    )
    assert settings.tables[0].iceberg.partition[1] == PartitionField(Transform.BUCKET, "id", 4)
    assert settings.target_for(TableName("public", "orders")) == Target(
        namespace="archive",
        name="old_orders",
        format_version=2,
        primary_key=("id",),
        partition=("day(ts)", "bucket[4](id)"),
        properties={"write.parquet.compression-codec": "zstd", "history.expire.max-snapshot-age-ms": "1000"},
        skip_snapshot=True,
    )
    assert settings.target_for(TableName("public", "items")) == Target(namespace="shop", name="items")


def test_mode_order_and_place_can_be_set_per_table() -> None:
    settings = settings_of(
        with_sections(
            table="iceberg: {write_mode: append, sort_order: [_ts DESC], location: s3://other/orders/}",
            tables="- name: public.items",
            sink="write_mode: equality",
        )
    )
    assert settings.target_for(TableName("public", "orders")) == Target(
        namespace="public",
        name="orders",
        write_mode=WriteMode.APPEND,
        sort_order=("_ts desc",),
        location="s3://other/orders",
    )
    assert settings.target_for(TableName("public", "items")) == Target(
        namespace="public", name="items", write_mode=WriteMode.EQUALITY
    )


def test_without_a_namespace_the_schema_is_taken() -> None:
    settings = settings_of(with_sections(tables="- name: sales.a.b"))
    assert settings.target_for(TableName("sales", "a.b")) == Target(namespace="sales", name="a.b")


@pytest.mark.parametrize(
    ("table", "entry"),
    [
        ("public.orders", "public.orders"),  # in full, although the pattern comes first
        ("public.items", "public.*"),
        ("public.tmp_1", None),
        ("public.audit", None),
        ("Public.items", None),
        ("sales.x1", "s*s.x?"),
        ("sales.x12", None),
        ("sales.[x]", "sales.[*"),
        ("other.items", None),
    ],
)
def test_patterns(table: str, entry: str | None) -> None:
    settings = settings_of(
        """
        tables:
          - name: public.*
            exclude: [public.tmp_*, public.audit]
          - name: public.orders
          - name: s*s.x?
          - name: sales.[*
        source: {postgres: {host: h, database: d, user: u}}
        sink: {warehouse: /lake}
        """
    )
    found = settings.entry_for(TableName.parse(table))
    assert (found.name if found else None) == entry
    assert (settings.target_for(TableName.parse(table)) is None) == (entry is None)


def test_keys_of_other_versions_are_checked_and_answered_by_a_notice() -> None:
    loaded = load_text(
        with_sections(
            table="watermark_column: updated_at\ncolumns: [{name: id, pg_type: Character  Varying, nullable: true}]"
        )
    )
    assert loaded.settings.tables[0].columns[0].pg_type == "character varying"
    assert [str(notice) for notice in loaded.notices] == [
        "tables[0].watermark_column (line 3) is used only in query mode (`source.mode: query`), "
        "and the mode is logical",
    ]


def test_only_keys_of_what_does_not_exist_yet_or_has_no_meaning_here_are_answered_by_a_notice() -> None:
    care_and_meta = ("table care", "meta tables")
    others = [
        path for path, field in walk(Settings) if (said := facts_of(field).notice) and not _any(care_and_meta, said)
    ]
    assert others == [
        ("tables[]", "watermark_column"),
        ("source", "query", "poll_interval"),
        ("sink", "events_partition"),
        ("state", "path"),
    ]


def _any(parts: tuple[str, ...], text: str) -> bool:
    return any(part in text for part in parts)


def test_what_is_switched_off_needs_no_notice() -> None:
    sink = "meta_enabled: false\nmeta_namespace: ''\nmaintenance_retention: ''\ntarget_file_size: 0"
    loaded = load_text(with_sections(sink=sink))
    assert loaded.notices == ()
    assert loaded.settings.sink.maintenance_retention is None


def test_variables_without_effect_are_named() -> None:
    loaded = load_text(with_sections(), {"PPROF": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTHER": "1"})
    assert [notice.key for notice in loaded.notices] == ["PPROF", "OTEL_EXPORTER_OTLP_ENDPOINT"]


def test_settings_are_frozen() -> None:
    settings = settings_of(with_sections())
    with pytest.raises(ValueError, match="frozen"):
        settings.sink.warehouse = "/other"  # type: ignore[misc]


def test_the_size_of_files_is_a_property_of_new_tables_unless_the_table_has_its_own() -> None:
    own = "iceberg: {properties: {write.target-file-size-bytes: 1000}}"
    settings = settings_of(
        with_sections(table=own, tables="- name: public.items", sink="materializer_target_file_size: 8mb")
    )
    targets = [settings.target_for(TableName("public", name)) for name in ("orders", "items")]
    assert [target and target.properties for target in targets] == [
        {"write.target-file-size-bytes": "1000"},
        {"write.target-file-size-bytes": "8388608"},
    ]
