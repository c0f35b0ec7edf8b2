-- How often a mail was sent to a server that did not respond to it. Nodes of the previous version do not count.
alter table mails add column unanswered smallint not null default 0;
