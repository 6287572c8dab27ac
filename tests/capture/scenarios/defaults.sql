-- Columns with defaults: what is null in the row, and what the default says.
create table settings (
    id int generated always as identity primary key,
    label text default 'none',
    amount numeric(6, 2) default 1.5,
    required int not null default 7,
    active bool default true,
    made timestamptz default '2024-01-01 00:00:00+00',
    moment timestamptz default now(),
    key uuid default gen_random_uuid()
);
insert into settings (label, amount, active, made, moment, key) values (null, null, null, null, null, null);
-- changes
insert into settings (label, amount, active, made, moment, key) values (null, null, null, null, null, null);
insert into settings (label, amount, active, made, moment, key, required) values ('', 0, false, null, null, null, 0);
