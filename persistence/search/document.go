package search

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/words"
)

// document is a text that can be found.
type document struct {
	AccountID   protocol.AccountID
	Kind        protocol.SearchKind
	ID          [16]byte // of the conversation, the message, the section of a file, the artifact, or the task
	ContainerID [16]byte // the conversation or the file
	At          time.Time
	Title       string // of the conversation or the artifact; the name of the file; or the question of the task
	ProjectID   *protocol.ProjectID
	BranchID    *protocol.BranchID   // of a message
	Role        *string              // of a message
	MessageID   *protocol.MessageID  // the answer that created an artifact
	Parts       []protocol.Part      // of a message
	Text        string               // of a section or an artifact
	Start       int                  // of a section, in bytes of the text of the file
	Blocks      []protocol.TextBlock // pages, sheets, slides or chapters with a part in the section
	Long        bool                 // its text is read in slices; see readSlices
	Cut         bool                 // the texts before it were long; its own was not read
}

func (d *document) object() object { return object{d.AccountID, d.Kind, d.ID} }

// textsSQL is the end of a statement that reads the texts of keys d (account_id, kind, id, container_id, n), in the
// order of n. It reads nothing of a conversation or a file that cannot be found, nor of a message that is still being
// written. When @bytes of texts were read, it reads no further ones. It never reads a long message: the memory of a page
// does not depend on the sizes of its texts. What Postgres stores of a message is compressed, so its size is only computed
// if that is short.
const textsSQL = `
	cross join lateral (
		select coalesce(nullif(title, ''), provisional_title) as title, project_id, created_at from conversations
		where d.kind <> 'file' and account_id = d.account_id and conversation_id = d.container_id and deleted_at is null and not temporary
		union all
		select filename, null, created_at from files
		where d.kind = 'file' and account_id = d.account_id and file_id = d.container_id and deleted_at is null
		limit 1) c
	left join lateral (
		select branch_id, parts, created_at,
			case when pg_column_size(parts) <= 65536 then nullif(least(octet_length(parts::text), 65537), 65537) end as bytes
		from messages
		where account_id = d.account_id and message_id = d.id and d.kind = 'message' and status <> 'streaming' limit 1) m on true
	left join lateral (
		select text, start_at, blocks, octet_length(text) as bytes from file_text_chunks
		where d.kind = 'file' and account_id = d.account_id and file_id = d.container_id and start_at <= search_section_number(d.id) * 32768
		order by start_at desc limit 1) s on true
	left join lateral (
		select r.title, r.message_id, r.created_at, v.bytes, case when v.bytes <= 65536 then v.content end as text
		from artifacts r
		join artifact_versions v on v.account_id = r.account_id and v.artifact_id = r.artifact_id and v.version = r.version
		where d.kind = 'artifact' and r.account_id = d.account_id and r.artifact_id = d.id limit 1) a on true
	left join lateral (
		select question, created_at from research_tasks
		where d.kind = 'task' and account_id = d.account_id and task_id = d.id limit 1) k on true
	where (d.kind <> 'task' or k.question is not null) and (d.kind <> 'message' or m.branch_id is not null) and (d.kind <> 'artifact' or a.bytes is not null)`

// inVisibleProject follows textsSQL where the texts are returned to the account: a deleted project hides its conversations.
// They stay indexed, because the project can be restored.
const inVisibleProject = `
		and coalesce((select p.deleted_at is null from projects p where p.account_id = d.account_id and p.project_id = c.project_id), true)`

// inProject follows inVisibleProject. A conversation may have moved since it was found.
const inProject = `
		and (@project::uuid is null or c.project_id = @project or d.kind = 'file' and exists (
			select from project_files f where f.account_id = d.account_id and f.project_id = @project and f.file_id = d.container_id))`

// inRole follows inProject.
const inRole = `
		and (@role::text is null or (select r.role from messages r where r.account_id = d.account_id and r.message_id = d.id) = @role)`

// textColumns are the columns of a document, with the size of the texts before it.
const textColumns = `
	d.account_id, d.kind, d.id, d.container_id, coalesce(m.created_at, a.created_at, k.created_at, c.created_at) as at, coalesce(a.title, k.question, c.title) as title,
	c.project_id, m.branch_id, m.parts, a.message_id,
	coalesce(s.text, a.text) as text, s.start_at, s.blocks, m.branch_id is not null and m.bytes is null or a.bytes is not null and a.text is null as long,
	sum(coalesce(m.bytes, s.bytes, octet_length(a.text), 0)) over (order by d.n) - coalesce(m.bytes, s.bytes, octet_length(a.text), 0) as before, d.n`

// documentColumns are the fields of a document, from textColumns.
const documentColumns = `
	account_id, kind, id, container_id, at, title, project_id, branch_id, message_id,
	case when coalesce(before, 0) < @bytes and not long then parts end as parts, long,
	case when coalesce(before, 0) < @bytes then coalesce(text, '') else '' end as text,
	coalesce(start_at, 0) as start, coalesce(blocks, '[]') as blocks, coalesce(before, 0) >= @bytes as cut`

// withRole follows documentColumns where the texts are returned to the account. The index does not need the role, and its
// user of the database may not read it.
const (
	withRole    = `, (select r.role from messages r where kind = 'message' and r.account_id = texts.account_id and r.message_id = texts.id) as role`
	withoutRole = `, null as role`
)

// readTextsSQL reads the texts of the keys that are passed as arrays, for the index.
const readTextsSQL = `
	select ` + documentColumns + withoutRole + readTexts + `) texts
	order by n`

// readVisibleTextsSQL is readTextsSQL for what the account may see.
const readVisibleTextsSQL = `
	select ` + documentColumns + withRole + readTexts + inVisibleProject + inProject + inRole + `) texts
	order by n`

const readTexts = `
	from (
		select ` + textColumns + `
		from unnest(@accounts::uuid[], @kinds::text[], @ids::uuid[], @containers::uuid[]) with ordinality d (account_id, kind, id, container_id, n)` +
	textsSQL

// texts returns the parts of a text that was read.
func (d *document) texts() []string {
	switch {
	case d.Kind == protocol.SearchConversation, d.Kind == protocol.SearchTask:
		return []string{d.Title}
	case d.Kind == protocol.SearchMessage:
		return visibleTexts(d.Parts)
	case d.Kind == protocol.SearchArtifact:
		return []string{d.Title, d.Text}
	case section(d.ID) > 0:
		return []string{d.Text}
	case d.Text == "":
		return []string{d.Title}
	}
	return []string{d.Title, d.Text} // the first section has the name
}

// visibleTexts returns the texts of a message that its reader sees. Parts that were superseded are not in a message.
func visibleTexts(parts []protocol.Part) []string {
	var texts []string
	for i := range parts {
		switch part := &parts[i]; part.Type {
		case protocol.PartText:
			texts = append(texts, part.Text)
		case protocol.PartCode:
			texts = append(texts, part.Code)
		}
	}
	return texts
}

// partSeparator stands between the parts of a text in an excerpt.
const partSeparator = "\n"

const (
	tagRunes     = 6       // characters of the account in a tag; other accounts with the same are filtered out
	maxPosition  = 1 << 14 // a tsvector stores positions below this
	maxPositions = 255     // and at most so many of one lexeme
	maxVector    = 900_000 // size of a tsvector, in bytes; its limit is 1 MiB
	entryBytes   = 8       // of a lexeme in a tsvector, in addition to its text and its positions
)

// tag returns the beginning of all tokens of a kind in an account.
func tag(account protocol.AccountID, kind protocol.SearchKind) string {
	id := account.String()
	return string(kind[0]) + id[len(id)-tagRunes:]
}

// vector collects tokens and writes them in the syntax of a tsvector. A text of hundreds of thousands of words may have more
// tokens than a tsvector can store. When it is full, words that occur for the first time are left out, and of the others the
// further positions; phrases are found in the first 16,000 words.
type vector struct {
	positions map[string][]uint16
	order     []string
	size      int // of the tsvector
	tag       string
}

func newVector(account protocol.AccountID, kind protocol.SearchKind) *vector {
	return &vector{positions: map[string][]uint16{}, tag: tag(account, kind)}
}

func (v *vector) add(tokens []words.Token) {
	for i := range tokens {
		t := &tokens[i]
		known, has := v.positions[t.Text]
		if v.size > maxVector {
			return
		}
		if !has {
			v.order = append(v.order, t.Text)
			v.size += entryBytes + len(v.tag) + len(t.Text)
		}
		switch {
		case words.IsForm(t.Text): // no phrase has it, so it needs no positions
			v.positions[t.Text] = nil
		case len(known) < maxPositions:
			v.positions[t.Text] = append(known, uint16(min(t.At+1, maxPosition-1))) // it is below maxPosition
			v.size += 2
		}
	}
}

// String returns the tsvector; empty: the text had no words.
func (v *vector) String() string {
	var b strings.Builder
	b.Grow(v.size * 2)
	for _, text := range v.order {
		b.WriteString("'" + v.tag + text + "'")
		for i, at := range v.positions[text] {
			if i == 0 {
				b.WriteByte(':')
			} else {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Itoa(int(at)))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// full reports whether a vector takes no further tokens.
func (v *vector) full() bool { return v.size > maxVector }

// indexing adds a text to a vector, piece by piece.
type indexing struct {
	flow
	*vector
}

func newIndexing(ctx context.Context, d *document) *indexing {
	i := &indexing{flow{ctx: ctx, t: words.Tokenizer{Stems: &words.Stems{}}}, newVector(d.AccountID, d.Kind)}
	i.consume = func([]byte, bool) error {
		i.vector.add(i.t.Tokens)
		i.t.Tokens = i.t.Tokens[:0]
		if i.full() {
			return errEnough
		}
		return nil
	}
	return i
}

// section returns the number of the section of a file that an id names. See search_section in the migrations.
func section(id [16]byte) int { return int(binary.BigEndian.Uint16(id[14:])) }
