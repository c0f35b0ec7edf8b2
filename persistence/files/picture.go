package files

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const thumbnailSQL = `
	select t.thumbnail from files f join file_texts t on t.account_id = f.account_id and t.file_id = f.file_id
	where f.account_id = @account and f.file_id = @file and t.thumbnail is not null and ` + readable

// Thumbnail returns the thumbnail of a picture or a PDF, a JPEG or PNG of at most 128 KiB. The error is protocol.CodeNotFound if the
// file has none.
func (s *Texts) Thumbnail(ctx context.Context, account protocol.AccountID, id protocol.FileID) ([]byte, error) {
	picture, err := pg.Row(ctx, s.db, account, pgx.RowTo[[]byte], thumbnailSQL, pgx.NamedArgs{"account": account, "file": id})
	if err != nil {
		return nil, fmt.Errorf("reading a thumbnail: %w", err)
	}
	return picture, nil
}

// hasPicture selects the files that a model can get as a picture: pictures, and documents that have no text.
const hasPicture = `t.thumbnail is not null and (t.state in ('none', 'no_text') or f.kind = 'image')`

const picturesSQL = `
	select picture from (
		select 1 as page, coalesce(t.picture, t.thumbnail) as picture ` + fromFiles + `
		where f.account_id = @account and f.file_id = @file and ` + hasPicture + `
		union all
		select page, picture from file_pages where account_id = @account and file_id = @file and page <= @most
	) p order by page`

// FilePictures returns at most most pictures for a model, JPEG or PNG, each of at most 512 KiB; none if the file has none. Those of a
// document of pictures are its first pages. A thumbnail is the only one if no model accepted pictures when the file was read.
func (s *Texts) FilePictures(ctx context.Context, account protocol.AccountID, id protocol.FileID, most int) ([][]byte, error) {
	pictures, err := pg.Rows(ctx, s.db, account, pgx.RowTo[[]byte], picturesSQL, pgx.NamedArgs{"account": account, "file": id, "most": most})
	if err != nil {
		return nil, fmt.Errorf("reading pictures: %w", err)
	}
	return pictures, nil
}

// pictures is the number of pictures as which a model can get a file.
const pictures = `case when ` + hasPicture + ` then 1 + (select count(*) from file_pages g where g.account_id = t.account_id and g.file_id = t.file_id) else 0 end`
