-- A partitioned table, published by its root; a row that moves; a partition that comes later.
create table orders (id int, region text, note text, primary key (region, id)) partition by list (region);
create table orders_east partition of orders for values in ('east');
create table orders_west partition of orders for values in ('west');
insert into orders values (1, 'east', 'snapshot'), (2, 'west', 'snapshot');
-- changes
insert into orders values (3, 'east', 'streamed');
update orders set note = 'changed' where id = 3;
update orders set region = 'west' where id = 3;
create table orders_north partition of orders for values in ('north');
insert into orders values (4, 'north', 'new partition');
insert into orders_north values (5, 'north', 'directly');
delete from orders where id = 3;
truncate orders_north;
