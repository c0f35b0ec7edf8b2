-- The thumbnails of pictures and of the first pages of PDFs, as JPEG or PNG. One is a part of what was read from a file, so it is stored in one statement with
-- the size of the picture, and ends with the row of the file. It is out of line and not compressed, so lists do not read it.
-- Like the text, it does not count for the quota, which limits the number of files.
alter table file_texts add column thumbnail bytea
    check (thumbnail is null or octet_length(thumbnail) between 1 and 131072
        and (state = 'none' and width is not null or state = 'done' and pages is not null));
alter table file_texts alter column thumbnail set storage external;
-- A larger version for models that accept pictures; null if no model did when the file was read.
alter table file_texts add column picture bytea
    check (picture is null or octet_length(picture) between 1 and 524288 and thumbnail is not null and state = 'none');
alter table file_texts alter column picture set storage external;
