-- The life of the server, from one crash to the next. The table is unlogged, so Postgres empties it whenever it recovers
-- from a crash, whatever it was that crashed; a clean restart keeps it. A row that is still there shows that there was no
-- crash since it was written; it does not matter if there are two. A transaction identifier that was handed out before a
-- crash may name another transaction afterwards: persistence/life.go says what follows from that.
create unlogged table server_life (life uuid not null);
grant select, insert on server_life to turnstone_app;
