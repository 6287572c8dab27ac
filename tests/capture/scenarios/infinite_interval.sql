-- An interval may be infinite since PostgreSQL 17.
create table spans (id int primary key, span interval);
insert into spans values (1, 'infinity'), (2, '-infinity');
-- changes
insert into spans values (11, 'infinity'), (12, '-infinity');
