-- A follow-up that was promoted over a live turn. It starts when that turn ends, even if the turn does not complete.
alter table follow_ups add column interrupts_turn_id uuid;
create index follow_ups_promoted on follow_ups (account_id, conversation_id, position, follow_up_id)
    where state = 'queued' and interrupts_turn_id is not null;
