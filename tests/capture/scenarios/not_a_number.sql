-- NaN and infinity where numbers and times have them.
create table specials (
    id int primary key,
    numeric_ numeric,
    numeric_5_2 numeric(5, 2),
    real_ real,
    double_ double precision,
    date_ date,
    timestamp_ timestamp,
    timestamp_3 timestamp(3),
    timestamptz_ timestamptz,
    timestamptz_3 timestamptz(3)
);
insert into specials values
    (1, 'NaN', 'NaN', 'NaN', 'NaN', 'infinity', 'infinity', 'infinity', 'infinity', 'infinity'),
    (2, 'Infinity', null, 'Infinity', 'Infinity', '-infinity', '-infinity', '-infinity', '-infinity', '-infinity'),
    (3, '-Infinity', null, '-Infinity', '-Infinity', null, null, null, null, null),
    (4, null, null, '-0', '-0', null, null, null, null, null);
-- changes
insert into specials values
    (11, 'NaN', 'NaN', 'NaN', 'NaN', 'infinity', 'infinity', 'infinity', 'infinity', 'infinity'),
    (12, 'Infinity', null, 'Infinity', 'Infinity', '-infinity', '-infinity', '-infinity', '-infinity', '-infinity'),
    (13, '-Infinity', null, '-Infinity', '-Infinity', null, null, null, null, null),
    (14, null, null, '-0', '-0', null, null, null, null, null);
