-- Columns are added, renamed, retyped and dropped while changes are streamed.
create table people (id int primary key, name text, age int);
insert into people values (1, 'snapshot', 1);
-- changes
insert into people values (2, 'before', 2);
alter table people add column email text default 'nobody@example.com';
insert into people values (3, 'added', 3, 'c@example.com');
update people set age = 22 where id = 2;
alter table people rename column name to full_name;
insert into people values (4, 'renamed', 4, null);
alter table people alter column age type numeric(6, 2);
insert into people values (5, 'retyped', 5.5, null);
alter table people drop column email;
insert into people values (6, 'dropped', 6);
alter table people add column email text;
begin;
insert into people values (7, 'in one transaction', 7, 'g@example.com');
alter table people add column town text not null default 'Rome';
insert into people values (8, 'in one transaction', 8, 'h@example.com', 'Oslo');
commit;
