-- A table gets another key, loses it, and is renamed while changes are streamed; one is made, one dropped.
create table people (id int primary key, name text not null, age int);
create table short_lived (id int primary key);
insert into people values (1, 'snapshot', 1);
-- changes
insert into people values (2, 'key id', 2);
alter table people drop constraint people_pkey;
alter table people add primary key (name, id);
insert into people values (3, 'key name, id', 3);
alter table people rename column id to number;
insert into people values (4, 'key name, number', 4);
alter table people drop constraint people_pkey;
alter table people replica identity full;
insert into people values (5, 'without a key', 5);
alter table people rename to persons;
insert into persons values (6, 'another table', 6);
create table made_later (id int primary key);
insert into made_later values (1);
insert into short_lived values (1);
drop table short_lived;
