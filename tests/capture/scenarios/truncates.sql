-- Tables are emptied, alone, together and by cascade.
create table alone (id int primary key);
create table parent (id int primary key);
create table child (id int primary key, parent int references parent);
insert into alone values (1);
-- changes
truncate alone;
insert into parent values (1);
insert into child values (1, 1);
truncate parent cascade;
truncate alone, child restart identity;
insert into alone values (2);
