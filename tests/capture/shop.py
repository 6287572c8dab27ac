"""A database that is written to at random, and that keeps a list of its own of all that was committed."""

import threading
from dataclasses import dataclass, field
from random import Random

import psycopg

TABLES = ("public.orders", "public.lines", "public.visits")
_SCHEMA = """
create table orders (id bigint primary key, name text, price numeric(12,2), note text);
create table lines (shop text, number int, what text, primary key (shop, number));
create table visits (who text, times int);
alter table visits replica identity full;
create table audit (number bigserial, relation text, op text, old jsonb, new jsonb);
create function noted() returns trigger language plpgsql as $$
begin
  if tg_op = 'TRUNCATE' then
    insert into audit (relation, op) values (tg_table_name, 't');
  else
    insert into audit (relation, op, old, new) values (tg_table_name, lower(left(tg_op, 1)),
      case when tg_op <> 'INSERT' then to_jsonb(old) end, case when tg_op <> 'DELETE' then to_jsonb(new) end);
  end if;
  return null;
end $$;
"""
_TRIGGERS = """
create trigger noted after insert or update or delete on {0} for each row execute function noted();
create trigger emptied after truncate on {0} for each statement execute function noted();
"""


@dataclass
class Shop:
    """Writes transactions one after the other, so that the order of its list is that of their commits."""

    dsn: str
    random: Random
    stopped: threading.Event = field(default_factory=threading.Event)
    columns: list[str] = field(default_factory=list)
    added: int = 0
    transactions: int = 0

    def create(self, rows: int) -> None:
        """Make the tables, with rows that are there before anybody captures them."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(_SCHEMA)
            for name in ("orders", "lines", "visits"):
                connection.execute(_TRIGGERS.format(name))
            connection.execute("alter system set logical_decoding_work_mem = '64kB'")
            connection.execute("select pg_reload_conf()")
            connection.execute(
                "insert into orders select i, 'o' || i, i * 1.25, null from generate_series(1, %s) i", [rows]
            )
            connection.execute(
                "insert into lines select 's' || i %% 7, i, 'l' || i from generate_series(1, %s) i", [rows]
            )
            connection.execute("insert into visits select 'v' || i, i from generate_series(1, 500) i")

    def run(self) -> None:
        """Write until stopped; a database that was killed is waited for."""
        while not self.stopped.is_set():
            try:
                with psycopg.connect(self.dsn, autocommit=True, connect_timeout=2) as connection:
                    while not self.stopped.wait(self.random.random() * 0.01):
                        self.transaction(connection)
                        self.transactions += 1
            except (psycopg.Error, psycopg.Rollback):  # killed, maybe in the middle of a rollback
                self.stopped.wait(0.2)

    def transaction(self, connection) -> None:
        """Do one thing, or several in one transaction, some of which are undone."""
        chance = self.random.random()
        if chance < 0.01:
            self._alter(connection)
            return
        with connection.transaction() as outer:
            if chance < 0.03:
                self._many(connection, self.random.randrange(500, 4000))
            elif chance < 0.04:
                connection.execute(f"truncate {self.random.choice(['orders', 'lines', 'visits'])}")
                self._many(connection, self.random.choice([3, 2000]))
            for _ in range(self.random.randrange(1, 6)):
                self._within_savepoint(connection)
            if self.random.random() < 0.1:
                raise psycopg.Rollback(outer)

    def _within_savepoint(self, connection) -> None:
        with connection.transaction() as inner:
            self._statement(connection)
            if self.random.random() < 0.2:
                self._many(connection, self.random.choice([2, 300]))
                raise psycopg.Rollback(inner)

    def _statement(self, connection) -> None:
        number, other = self.random.randrange(1, 3000), self.random.randrange(1, 3000)
        statement = self.random.choice(
            [
                f"insert into orders (id, name, price) values ({number}, 'é \"{number}\" \\', {number}.5) "
                "on conflict (id) do update set name = excluded.name",
                f"update orders set price = price + 1, note = repeat('x', {other}) where id = {number}",
                f"update orders set id = {other} where id = {number} and not exists "
                f"(select 1 from orders where id = {other})",
                f"delete from orders where id between {number} and {number + 5}",
                f"insert into lines values ('s{number % 7}', {number}, null) on conflict do nothing",
                f"update lines set what = 'w{other}' where number = {number}",
                f"delete from lines where number = {number}",
                f"insert into visits values ('v{number}', {other})",
                f"update visits set times = times + 1 where times = {number % 500}",
                f"delete from visits where times = {number}",
            ]
        )
        connection.execute(statement)

    def _many(self, connection, count: int) -> None:
        start = self.random.randrange(10_000, 10_000_000)
        connection.execute(
            "insert into orders (id, name) select i, 'm' || i "
            f"from generate_series({start}, {start + count}) i on conflict do nothing"
        )

    def _alter(self, connection) -> None:
        """Add a column, or drop one: the stream describes the table anew.

        A default would change rows that are there without a change in the log, and no name comes twice.
        """
        if self.columns and self.random.random() < 0.4:
            connection.execute(f"alter table lines drop column {self.columns.pop(0)}")
            return
        self.added += 1
        name = f"extra{self.added}"
        connection.execute(f"alter table lines add column {name} int")
        self.columns.append(name)
        connection.execute(f"update lines set {name} = number where number % 5 = {self.added % 5}")
