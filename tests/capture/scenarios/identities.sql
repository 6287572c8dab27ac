-- Inserts, updates and deletes under each replica identity; where it is "nothing", only inserts are allowed.
create table by_default (id int primary key, name text not null unique, note text);
create table by_full (like by_default including all);
create table by_nothing (like by_default including all);
create table by_index (like by_default including all);
alter table by_full replica identity full;
alter table by_nothing replica identity nothing;
alter table by_index replica identity using index by_index_name_key;
-- changes
insert into by_default values (1, 'one', 'n'), (2, 'two', null);
update by_default set note = 'changed' where id = 1;
update by_default set note = note where id = 2;
delete from by_default where id = 1;
insert into by_full values (1, 'one', 'n'), (2, 'two', null);
update by_full set note = 'changed' where id = 1;
update by_full set note = note where id = 2;
delete from by_full where id = 1;
insert into by_nothing values (1, 'one', 'n'), (2, 'two', null);
insert into by_index values (1, 'one', 'n'), (2, 'two', null);
update by_index set note = 'changed' where id = 1;
update by_index set name = 'uno' where id = 1;
update by_index set id = 3 where id = 1;
delete from by_index where id = 3;
