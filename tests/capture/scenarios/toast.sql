-- A value that is stored out of line is not sent when an update leaves it alone.
create table by_default (id int primary key, note int, big text, bytes bytea, bigs text[], doc jsonb, nums int[]);
create table by_full (like by_default including all);
alter table by_full replica identity full;
create view bigs as select
    string_agg(md5(i::text), '') as big,
    decode(string_agg(md5(i::text), ''), 'hex') as bytes,
    array_agg(md5(i::text)) as bigs,
    jsonb_agg(md5(i::text)) as doc,
    array_agg(hashint4(i)) as nums
from generate_series(1, 640) i;
-- changes
insert into by_default select 1, 1, * from bigs;
update by_default set note = 2 where id = 1;
update by_default set big = 'short' where id = 1;
update by_default set id = 2 where id = 1;
delete from by_default where id = 2;
insert into by_full select 1, 1, * from bigs;
update by_full set note = 2 where id = 1;
update by_full set big = 'short' where id = 1;
delete from by_full where id = 1;
