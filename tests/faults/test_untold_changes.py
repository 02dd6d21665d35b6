"""What the stream does not tell reaches the tables through real workers, while the others go on."""

from __future__ import annotations

from support.shop import Shop
from support.waiting import wait_for
from support.working import working


def test_columns_and_values_that_no_row_tells_of_arrive(shop: Shop) -> None:
    customers, orders = shop.keys
    pipeline = shop.pipeline
    with pipeline.capturing(), working(shop):
        shop.wait_until_applied()
        pipeline.execute("ALTER TABLE customers ADD COLUMN level int DEFAULT 7")
        wait_for(lambda: "level" in _columns(shop, customers), "the new column")
        assert pipeline.query(f"SELECT DISTINCT level FROM {customers}") == [(7,)]
        pipeline.execute("ALTER TABLE orders ALTER line TYPE int USING line + 100")
        shop.change()
        wait_for(lambda: (shop.reasons()[orders] or "").endswith("was rewritten"), "the rewrite to be noticed")
        shop.change()
        wait_for(lambda: shop.reasons()[orders] is None, "another copy")
        shop.wait_until_applied()
    shop.assert_mirrored()


def _columns(shop: Shop, key: str) -> list[str]:
    return [str(name) for name in shop.pipeline.lake.spark.table(key).columns]
