-- What was left out of the texts of files or had to be guessed, and documents of pictures, which have no text.
set local row_security = on; -- policies are meant

alter table file_texts add notes jsonb not null default '[]';
alter table file_texts drop constraint file_texts_state_check,
    add constraint file_texts_state_check check (state in ('pending', 'done', 'none', 'no_text', 'failed'));
alter table file_texts drop constraint file_texts_reason_check,
    add constraint file_texts_reason_check check (reason in ('encrypted', 'damaged', 'too_complex', 'no_reader', 'unreadable', 'text_limit', 'no_ocr', 'no_text'));
alter table file_texts drop constraint file_texts_check,
    add constraint file_texts_check check ((state in ('failed', 'no_text')) = (reason is not null));
-- A thumbnail may also belong to a text that is over the limit of the account, and a picture to a text that was recognized in it.
alter table file_texts drop constraint file_texts_check1,
    add constraint file_texts_check1 check (thumbnail is null or octet_length(thumbnail) between 1 and 131072);
alter table file_texts drop constraint file_texts_check2,
    add constraint file_texts_check2 check (picture is null or octet_length(picture) between 1 and 524288 and thumbnail is not null);
