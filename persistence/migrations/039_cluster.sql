-- What a node reports with its lease: its live turns, the number of live turns that it accepts (0: no limit), and the commit of
-- its binary. A node with an older binary writes none of them.
alter table nodes
    add column live     int not null default 0 check (live >= 0),
    add column capacity int not null default 0 check (capacity >= 0),
    add column build    text not null default '';
