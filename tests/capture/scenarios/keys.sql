-- Composite keys, in another order than the columns; no key; a unique index only; names that need quotes.
create table composite (a int, note text, b text, c uuid, primary key (c, a, b));
create table keyless (id int, name text);
create table keyless_full (id int, name text);
alter table keyless_full replica identity full;
create table unique_only (id int not null unique, name text);
create table "Mixed Case-and.dot" ("Id" int primary key, "näme" text, "with space" int, "0digit" int);
insert into keyless values (0, 'snapshot');
-- changes
insert into composite values (1, 'n', 'b', '00000000-0000-0000-0000-000000000001');
update composite set note = 'm';
update composite set b = 'c';
delete from composite;
insert into keyless values (1, 'one');
insert into keyless_full values (1, 'one');
update keyless_full set name = 'uno';
delete from keyless_full;
insert into unique_only values (1, 'one');
insert into "Mixed Case-and.dot" values (1, 'one', 2, 3);
delete from "Mixed Case-and.dot";
