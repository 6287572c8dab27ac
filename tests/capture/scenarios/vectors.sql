-- The types of an extension, pgvector.
create extension if not exists vector with schema public;
create table items (id int primary key, embedding public.vector(3), half public.halfvec(3), sparse public.sparsevec(5));
insert into items values (1, '[1,2.5,-3]', '[1,2.5,-3]', '{1:1,3:2.5}/5'), (2, null, null, null);
-- changes
insert into items values (11, '[1,2.5,-3]', '[1,2.5,-3]', '{1:1,3:2.5}/5'), (12, null, null, null);
