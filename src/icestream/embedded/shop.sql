CREATE SCHEMA shop;

CREATE TABLE shop.customers (
  id         bigint PRIMARY KEY,
  name       text NOT NULL,
  email      varchar(120),
  active     boolean NOT NULL DEFAULT true,
  balance    numeric(12, 2) NOT NULL DEFAULT 0,
  profile    jsonb NOT NULL DEFAULT '{}',
  notes      text,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE shop.orders (
  id          bigint PRIMARY KEY,
  customer_id bigint NOT NULL REFERENCES shop.customers,
  status      text NOT NULL,
  total       numeric(12, 2) NOT NULL,
  paid        boolean NOT NULL DEFAULT false,
  placed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  note        text
);

CREATE TABLE shop.order_items (
  order_id bigint NOT NULL REFERENCES shop.orders,
  line     integer NOT NULL,
  product  text NOT NULL,
  quantity integer NOT NULL,
  price    numeric(10, 2) NOT NULL,
  PRIMARY KEY (order_id, line)
);

CREATE TABLE shop.events (
  id      bigint PRIMARY KEY,
  kind    text NOT NULL,
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  payload jsonb,
  body    text
);

-- Long texts are stored out of line, so updates that leave them alone do not send them again.
ALTER TABLE shop.customers ALTER COLUMN notes SET STORAGE EXTERNAL;
ALTER TABLE shop.events ALTER COLUMN body SET STORAGE EXTERNAL;
