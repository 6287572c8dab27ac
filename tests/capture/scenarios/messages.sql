-- Messages in the log that belong to no table, in a transaction and outside of one.
create table t (id int primary key);
-- changes
select pg_logical_emit_message(false, 'loose', 'not in a transaction');
select pg_logical_emit_message(true, 'bound', 'in a transaction of its own');
begin;
insert into t values (1);
select pg_logical_emit_message(true, 'bound', 'between two rows');
insert into t values (2);
commit;
begin;
select pg_logical_emit_message(true, 'bound', 'rolled back');
select pg_logical_emit_message(false, 'loose', 'in a transaction that is rolled back');
rollback;
select pg_logical_emit_message(true, 'bytes', '\x00ff'::bytea);
select pg_logical_emit_message(true, '', '');
