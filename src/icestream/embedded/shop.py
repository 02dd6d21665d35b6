"""A small shop: four tables and the things that happen in it."""

from __future__ import annotations

import random
from collections.abc import Callable
from importlib import resources
from typing import LiteralString

from psycopg import Connection, Cursor
from psycopg.types.json import Jsonb

TABLES = ("shop.customers", "shop.orders", "shop.order_items", "shop.events")
FIRST_CUSTOMERS = 200
FIRST_ORDERS = 300

_PRODUCTS = ("anvil", "bicycle", "clock", "desk lamp", "étagère", "飛行機", 'gum "mint"', "hammer")
_STATUSES = ("new", "packed", "shipped", "returned")
_LONG_TEXT = 6_000
_MOST_ITEMS = 5
_KEPT_EVENTS = 20

_INSERT_CUSTOMER = (
    "INSERT INTO shop.customers (id, name, email, balance, profile, notes) VALUES (%s, %s, %s, %s, %s, %s)"
)
_INSERT_ORDER = "INSERT INTO shop.orders (id, customer_id, status, total, note) VALUES (%s, %s, %s, %s, %s)"
_INSERT_ITEM = "INSERT INTO shop.order_items (order_id, line, product, quantity, price) VALUES (%s, %s, %s, %s, %s)"
_INSERT_EVENT = "INSERT INTO shop.events (id, kind, payload, body) VALUES (%s, %s, %s, %s)"


class _Undone(Exception):
    """Makes a transaction block roll back."""


class Shop:
    """What happens in the shop, as transactions. The same seed makes the same history."""

    def __init__(self, conn: Connection, seed: int) -> None:
        self.changes = 0
        self.transactions = 0
        self._conn = conn
        self._random = random.Random(seed)
        self._last_id = 0
        self._customers: list[int] = []
        self._orders: list[int] = []
        self._events: list[int] = []
        self._happenings: list[tuple[int, Callable[[Cursor], None]]] = [
            (30, self._place_order),
            (25, self._move_order_on),
            (15, self._change_customer),
            (10, self._note_event),
            (6, self._welcome_customer),
            (5, self._cancel_order),
            (4, self._forget_events),
            (3, self._renumber_items),
            (2, self._change_of_mind),
            (2, self._abandon_order),
        ]

    def open(self) -> None:
        """Creates the tables with their first rows."""
        self._conn.execute(resources.files("icestream.embedded").joinpath("shop.sql").read_bytes())
        with self._conn.transaction(), self._conn.cursor() as cur:
            for _ in range(FIRST_CUSTOMERS):
                self._welcome_customer(cur)
            for _ in range(FIRST_ORDERS):
                self._place_order(cur)
        self.changes = 0

    def happen(self) -> None:
        """One more transaction; a few are rolled back, wholly or in part."""
        weights, happenings = zip(*self._happenings, strict=True)
        (happening,) = self._random.choices(happenings, weights)
        before = self.changes
        try:
            with self._conn.transaction(), self._conn.cursor() as cur:
                happening(cur)
        except _Undone:
            self.changes = before
        self.transactions += 1

    def _welcome_customer(self, cur: Cursor) -> None:
        customer = self._new_id()
        profile = Jsonb({"tags": self._random.sample(_PRODUCTS, 2), "score": self._random.random(), "vip": None})
        row = (customer, f"Customer {customer}", f"c{customer}@example.com", self._amount(), profile, self._long_text())
        self._do(cur, _INSERT_CUSTOMER, row)
        self._customers.append(customer)

    def _place_order(self, cur: Cursor) -> None:
        order, customer = self._new_id(), self._random.choice(self._customers)
        items = [self._item(order, line) for line in range(1, self._random.randint(1, _MOST_ITEMS) + 1)]
        total = sum(quantity * price for _, _, _, quantity, price in items)
        self._do(cur, _INSERT_ORDER, (order, customer, "new", total, self._random.choice((None, "", "call first"))))
        for item in items:
            self._do(cur, _INSERT_ITEM, item)
        self._do(cur, "UPDATE shop.customers SET balance = balance - %s WHERE id = %s", (total, customer))
        self._note_event(cur)
        self._orders.append(order)

    def _move_order_on(self, cur: Cursor) -> None:
        order, status = self._random.choice(self._orders), self._random.choice(_STATUSES)
        self._do(cur, "UPDATE shop.orders SET status = %s, paid = NOT paid WHERE id = %s", (status, order))
        self._do(cur, "UPDATE shop.order_items SET quantity = quantity + 1 WHERE order_id = %s", (order,))

    def _change_customer(self, cur: Cursor) -> None:
        """Leaves the long notes as they are, most of the time."""
        customer = self._random.choice(self._customers)
        change = "UPDATE shop.customers SET active = NOT active, profile = profile || %s WHERE id = %s"
        self._do(cur, change, (Jsonb({"seen": self._random.randint(0, 9)}), customer))
        if self._random.random() < 0.2:
            self._do(cur, "UPDATE shop.customers SET notes = %s WHERE id = %s", (self._long_text(), customer))

    def _note_event(self, cur: Cursor) -> None:
        event = self._new_id()
        payload = Jsonb({"number": event, "nested": {"list": [1, "two", None]}})
        self._do(cur, _INSERT_EVENT, (event, self._random.choice(_STATUSES), payload, self._long_text()))
        self._events.append(event)

    def _cancel_order(self, cur: Cursor) -> None:
        order = self._take(self._orders)
        self._do(cur, "DELETE FROM shop.order_items WHERE order_id = %s", (order,))
        self._do(cur, "DELETE FROM shop.orders WHERE id = %s", (order,))

    def _forget_events(self, cur: Cursor) -> None:
        forgotten = [self._take(self._events) for _ in range(min(5, len(self._events) - _KEPT_EVENTS))]
        self._do(cur, "DELETE FROM shop.events WHERE id = ANY(%s)", (forgotten,))

    def _renumber_items(self, cur: Cursor) -> None:
        """Changes part of a composite key."""
        renumber = "UPDATE shop.order_items SET line = line + 100 WHERE order_id = %s"
        self._do(cur, renumber, (self._random.choice(self._orders),))

    def _change_of_mind(self, cur: Cursor) -> None:
        """A savepoint is rolled back, what was around it stays; the rolled back rows were never there."""
        before = self.changes
        try:
            with self._conn.transaction():
                self._do(cur, "DELETE FROM shop.order_items WHERE order_id = %s", (self._random.choice(self._orders),))
                self._do(cur, _INSERT_EVENT, (self._new_id(), "undone", None, self._long_text()))
                raise _Undone
        except _Undone:
            self.changes = before
        self._change_customer(cur)

    def _abandon_order(self, cur: Cursor) -> None:
        """The whole transaction is rolled back."""
        order = self._new_id()
        self._do(cur, _INSERT_ORDER, (order, self._random.choice(self._customers), "new", 1, None))
        self._do(cur, _INSERT_ITEM, self._item(order, 1))
        raise _Undone

    def _do(self, cur: Cursor, statement: LiteralString, values: tuple[object, ...]) -> None:
        cur.execute(statement, values)
        self.changes += cur.rowcount

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _take(self, ids: list[int]) -> int:
        return ids.pop(self._random.randrange(len(ids)))

    def _amount(self) -> str:
        return f"{self._random.randint(-99_999, 9_999_999) / 100:.2f}"

    def _item(self, order: int, line: int) -> tuple[int, int, str, int, float]:
        return (
            order,
            line,
            self._random.choice(_PRODUCTS),
            self._random.randint(1, 9),
            self._random.randint(1, 9999) / 100,
        )

    def _long_text(self) -> str | None:
        """Nothing, a little, or so much that PostgreSQL stores it apart from the row."""
        length = self._random.choice((None, 0, 20, _LONG_TEXT))
        return None if length is None else self._random.randbytes(length // 2).hex()
