-- The account's rating of an answer: {rating, reasons, comment}. Null: none. It is erased with its message; a copy of the
-- message has none.
alter table messages add column feedback jsonb check (feedback is null or coalesce(
    role = 'assistant' and feedback ->> 'rating' in ('up', 'down') and jsonb_typeof(feedback -> 'reasons') = 'array'
    and feedback -> 'reasons' <@ '["accurate", "complete", "clear", "followed_instructions", "inaccurate", "incomplete", "unclear", "ignored_instructions", "outdated", "unsafe", "other"]'
    and char_length(feedback ->> 'comment') <= 2000, false));
