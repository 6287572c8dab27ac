-- Two tables of three rows, an empty one and one of a single row that are there before the capture begins.
create table a_first (id int primary key, name text);
create table b_second (id int primary key, name text);
create table c_empty (id int primary key, name text);
create table d_single (id int primary key, name text);
insert into a_first values (1, 'one'), (2, 'two'), (3, 'three');
insert into b_second values (1, 'one'), (2, 'two'), (3, 'three');
insert into d_single values (1, 'one');
-- changes
insert into c_empty values (1, 'one');
