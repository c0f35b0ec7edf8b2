package search

import (
	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
	"turnstone/protocol/words"
)

const sectionSQL = `
	insert into search_rows (account_id, kind, id, file_id, at, n, tokens)
	select account_id, 'file', search_section(file_id, search_section_at(@start)), file_id, created_at, 0, @tokens::tsvector
	from files where account_id = @account and file_id = @file
	on conflict do nothing`

// IndexSection queues a statement that indexes a section of the text of a file, for the transaction that stores it. The
// first section is indexed later, with the name of the file.
func IndexSection(batch *pgx.Batch, account protocol.AccountID, file protocol.FileID, start int, text string) {
	if start == 0 {
		return
	}
	v := newVector(account, protocol.SearchFile)
	text = words.Normalize(text)
	language, _ := words.Detect(text)
	t := words.Tokenizer{Stems: &words.Stems{Language: language}}
	t.Add(text)
	v.add(t.Tokens)
	tokens := v.String()
	if tokens == "" {
		return
	}
	batch.Queue(sectionSQL, pgx.NamedArgs{"account": account, "file": file, "start": start, "tokens": tokens})
}
