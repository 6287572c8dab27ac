-- The primary key of a row changes, under the default identity and under the full one.
create table by_default (id int primary key, name text);
create table by_full (id int primary key, name text);
alter table by_full replica identity full;
insert into by_default values (1, 'one');
-- changes
update by_default set id = 2 where id = 1;
update by_default set id = 3, name = 'three' where id = 2;
insert into by_full values (1, 'one');
update by_full set id = 2 where id = 1;
