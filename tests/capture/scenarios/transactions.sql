-- Transactions of several statements and tables, with savepoints, some of them rolled back; one that is empty.
create table a (id int primary key, n int);
create table b (id int primary key, n int);
-- changes
begin;
insert into a values (1, 1);
insert into b values (1, 1);
savepoint one;
insert into a values (2, 2);
savepoint two;
insert into b values (2, 2);
rollback to savepoint one;
insert into a values (3, 3);
release savepoint one;
update a set n = 10 where id = 1;
update a set n = 11 where id = 1;
delete from a where id = 3;
commit;
begin;
insert into a values (4, 4);
rollback;
begin;
insert into b values (5, 5);
delete from b where id = 5;
commit;
