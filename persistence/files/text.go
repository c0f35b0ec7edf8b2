package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"turnstone/persistence/jobs"
	"turnstone/persistence/pg"
	"turnstone/persistence/search"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Texts stores the texts of files. Its methods may be called from any goroutine.
type Texts struct {
	db     *pg.DB
	files  *Store
	search *search.Store
	limit  int64 // bytes of all texts of an account
}

// NewTexts returns a store of the texts of files, with the TextBytes of a quota.
func NewTexts(db *pg.DB, files *Store, search *search.Store, quota Quota) *Texts {
	if quota.TextBytes == 0 {
		quota.TextBytes = DefaultQuota.TextBytes
	}
	return &Texts{db, files, search, quota.TextBytes}
}

// A file from before its text was read has none.
const getTextSQL = `
	select coalesce(t.state, 'none'), t.reason, t.pages, coalesce(t.truncated, false), coalesce(t.size, 0), coalesce(t.tokens, 0), coalesce(t.notes, '[]')
	from files f left join file_texts t on t.account_id = f.account_id and t.file_id = f.file_id
	where f.account_id = @account and f.file_id = @file and ` + readable

const chunksSQL = `
	select start_at, text, blocks from file_text_chunks
	where account_id = @account and file_id = @file and end_at > @offset and start_at < @end
	order by start_at`

// Text reads at most limit bytes of the text of a file from an offset. The range starts and ends between two characters,
// so it may start up to three bytes earlier and end up to three bytes earlier.
func (s *Texts) Text(ctx context.Context, account protocol.AccountID, id protocol.FileID, offset, limit int) (*protocol.TextRange, error) {
	args := pgx.NamedArgs{"account": account, "file": id, "offset": offset, "end": offset + limit}
	r := &protocol.TextRange{FileID: id, Blocks: []protocol.TextBlock{}, Notes: []protocol.TextNote{}}
	err := s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		err := tx.QueryRow(ctx, getTextSQL, args).Scan(&r.State, &r.Reason, &r.Pages, &r.Truncated, &r.Size, &r.Tokens, &r.Notes)
		if err != nil || offset >= r.Size {
			return err
		}
		rows, err := tx.Query(ctx, chunksSQL, args)
		if err != nil {
			return err
		}
		chunks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[chunk])
		if err != nil {
			return err
		}
		fill(r, chunks, offset, limit)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the text of a file: %w", err)
	}
	if r.State != protocol.TextDone || offset >= r.Size {
		r.Offset = min(offset, r.Size)
	}
	return r, nil
}

// chunk is a piece of a text.
type chunk struct {
	StartAt int
	Text    string
	Blocks  []protocol.TextBlock
}

// fill cuts a range out of the chunks that have a part in it.
func fill(r *protocol.TextRange, chunks []chunk, offset, limit int) {
	if len(chunks) == 0 {
		return
	}
	first := chunks[0].StartAt
	var all []byte
	for i := range chunks {
		all = append(all, chunks[i].Text...)
	}
	start := offset - first
	for start > 0 && !utf8.RuneStart(all[start]) {
		start--
	}
	end := min(start+limit, len(all))
	for end < len(all) && end > start && !utf8.RuneStart(all[end]) {
		end--
	}
	r.Text, r.Offset = string(all[start:end]), first+start
	if next := first + end; next < r.Size {
		r.NextOffset = &next
	}
	last := -1
	for i := range chunks {
		for _, b := range chunks[i].Blocks {
			if b.Offset > last && b.Offset < first+end && b.Offset+b.Length > r.Offset {
				r.Blocks, last = append(r.Blocks, b), b.Offset
			}
		}
	}
}

const (
	// chunkBytes is the size of a chunk: a range reads at most two chunks more than it returns. A chunk is a section of the
	// search (migration 037), so it starts near a multiple of this number.
	chunkBytes = 32 << 10
	// longestWord is how far a chunk ends before its size so that it ends between two words.
	longestWord = 256
)

// chunkEnd returns where the chunk ends whose size would be reached at a byte.
func chunkEnd(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	if space := strings.LastIndexFunc(text[at-longestWord:at], unicode.IsSpace); space >= 0 {
		at = at - longestWord + space + 1
	}
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// chunksOf cuts a text into chunks, between words where it can, and else between characters.
func chunksOf(x *protocol.Extraction) []chunk {
	var chunks []chunk
	block := 0 // the first that does not end before the chunk
	for start := 0; start < len(x.Text); {
		end := chunkEnd(x.Text, (len(chunks)+1)*chunkBytes)
		for block < len(x.Blocks) && x.Blocks[block].Offset+x.Blocks[block].Length <= start {
			block++
		}
		c := chunk{StartAt: start, Text: x.Text[start:end], Blocks: []protocol.TextBlock{}}
		for i := block; i < len(x.Blocks) && x.Blocks[i].Offset < end; i++ {
			c.Blocks = append(c.Blocks, x.Blocks[i])
		}
		chunks = append(chunks, c)
		start = end
	}
	return chunks
}

// ReadText reads a content of a media type, of an account with a language. A content that cannot be read is a result; an error means that another attempt
// may succeed.
type ReadText func(ctx context.Context, content io.Reader, mediaType, language string) (*protocol.Extraction, error)

const (
	insertTextSQL = `insert into file_texts (account_id, file_id, state) values (@account, @file, @text_state)`
	// beginTextSQL counts the attempt before it is made, so that one that ends the process counts, too.
	beginTextSQL = `
	update file_texts t set attempts = attempts + 1
	from files f
	where t.account_id = @account and t.file_id = @file and t.state = 'pending'
	  and f.account_id = t.account_id and f.file_id = t.file_id and ` + needed + `
	returning f.media_type, t.attempts,
		coalesce((select settings->>'language' from account_settings s where s.account_id = t.account_id), '')`
	pendingTextSQL = `select true from file_texts where account_id = @account and file_id = @file and state = 'pending' for update`
	endTextSQL     = `
	update file_texts set state = @state, reason = nullif(@reason, ''), pages = nullif(@pages, 0), width = nullif(@width, 0), height = nullif(@height, 0),
		thumbnail = @thumbnail, picture = @picture, size = @size, tokens = @tokens, truncated = @truncated, notes = @notes, read_at = now()
	where account_id = @account and file_id = @file`
	insertPageSQL  = `insert into file_pages (account_id, file_id, page, picture) values (@account, @file, @page, @picture)`
	insertChunkSQL = `
	insert into file_text_chunks (account_id, file_id, start_at, end_at, text, blocks) values (@account, @file, @start, @end, @text, @blocks)`
)

// firstTextState returns the state of the text of a new file.
func firstTextState(kind protocol.FileKind) protocol.TextState {
	if kind.HasText() {
		return protocol.TextPending
	}
	return protocol.TextNone
}

// ExtractArgs is the job that reads the text of a file.
type ExtractArgs struct {
	AccountID protocol.AccountID `json:"account_id"`
	FileID    protocol.FileID    `json:"file_id"`
}

// Kind implements river.JobArgs.
func (ExtractArgs) Kind() string { return "extract_file" }

// maxExtractAttempts is a week of the longest delays between attempts. Those that fail because of the file are fewer (maxReads);
// the others wait for the object store.
const maxExtractAttempts = 1000

// InsertOpts runs the job in a queue of its own, because it would delay the others.
func (ExtractArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: jobs.FileQueue, MaxAttempts: maxExtractAttempts}
}

const waitingSQL = `select count(*) from (select from file_texts where account_id = @account and state = 'pending' limit @most) w`

// enqueue inserts the job. The more texts of the account wait, the later its job runs, so that the first files of every
// account are read soon, however many files another one has sent.
func (s *Uploads) enqueue(ctx context.Context, tx *pg.Tx, job ExtractArgs, args pgx.NamedArgs) error {
	const few, many, most = 2, 10, 100
	args["most"] = most + 1
	var waiting int // with this one
	if err := tx.QueryRow(ctx, waitingSQL, args).Scan(&waiting); err != nil {
		return fmt.Errorf("counting the texts that wait: %w", err)
	}
	priority := jobs.LastPriority
	switch {
	case waiting <= few:
		priority = jobs.FirstPriority
	case waiting <= many:
		priority = jobs.FirstPriority + 1
	case waiting <= most:
		priority = jobs.FirstPriority + 2
	}
	return s.queue.InsertWith(ctx, tx, job, priority)
}

// extractTimeout includes the copy of a large content from the object store.
const extractTimeout = 2 * time.Minute

// ExtractJob returns the job that reads the texts of files.
func (s *Texts) ExtractJob(read ReadText) jobs.Job {
	running := running{accounts: map[protocol.AccountID]bool{}}
	extract := func(ctx context.Context, args ExtractArgs) error {
		if !running.take(args.AccountID) {
			return jobs.Later(extractLater)
		}
		defer running.end(args.AccountID)
		return s.extract(ctx, read, args)
	}
	return jobs.NewGuarded(extractTimeout, extract, func(ctx context.Context, args ExtractArgs) error {
		return s.storeText(ctx, args, unreadable())
	})
}

// extractLater is how long a job waits whose account has another one running on the node.
const extractLater = 500 * time.Millisecond

// running limits the files that the node reads to one of each account at a time.
type running struct {
	mu       sync.Mutex
	accounts map[protocol.AccountID]bool // guarded by mu
}

func (r *running) take(account protocol.AccountID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.accounts[account] {
		return false
	}
	r.accounts[account] = true
	return true
}

func (r *running) end(account protocol.AccountID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.accounts, account)
}

func unreadable() *protocol.Extraction {
	return &protocol.Extraction{State: protocol.TextFailed, Reason: protocol.TextUnreadable}
}

const (
	// maxReads limits the attempts to read a content whose reader fails.
	maxReads = 3
	// maxBegun limits all attempts, those of other jobs included.
	maxBegun = 10
)

// extract reads the text of a file and stores it. It can be repeated: a text that was stored stays.
func (s *Texts) extract(ctx context.Context, read ReadText, job ExtractArgs) error {
	args := pgx.NamedArgs{"account": job.AccountID, "file": job.FileID}
	content, err := s.open(ctx, job)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil // the file was deleted
	}
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it was only read
	type attempt struct {
		MediaType string
		Attempts  int
		Language  string
	}
	begun, err := pg.Row(ctx, s.db, job.AccountID, pgx.RowToStructByPos[attempt], beginTextSQL, args)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil // an earlier run has finished, or the file was deleted
	}
	if err != nil {
		return fmt.Errorf("beginning to read a file: %w", err)
	}
	if begun.Attempts > maxBegun {
		return s.storeText(ctx, job, unreadable())
	}
	from := &source{Reader: content}
	x, err := read(ctx, from, begun.MediaType, begun.Language)
	switch {
	case err == nil:
	case from.err != nil || ctx.Err() != nil || begun.Attempts < maxReads:
		return fmt.Errorf("reading the text of a file: %w", err)
	default:
		x = unreadable()
	}
	return s.storeText(ctx, job, x)
}

// source remembers the failure of a content.
type source struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (c *source) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

const neededContentSQL = `select f.object_name, f.size from files f where f.account_id = @account and f.file_id = @file and ` + needed

func (s *Texts) open(ctx context.Context, job ExtractArgs) (io.ReadCloser, error) {
	type object struct {
		Name string
		Size int64
	}
	stored, err := pg.Row(ctx, s.db, job.AccountID, pgx.RowToStructByPos[object], neededContentSQL, pgx.NamedArgs{"account": job.AccountID, "file": job.FileID})
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	return s.files.get(ctx, job.AccountID, job.FileID, stored.Name, 0, stored.Size)
}

// storeText stores what was read, unless another run of the job has stored it.
func (s *Texts) storeText(ctx context.Context, job ExtractArgs, x *protocol.Extraction) error {
	err := s.storeWithin(ctx, job, x)
	if errors.Is(err, errTextLimit) && len(x.Further) > 0 {
		x.ShowPages(nil)
		err = s.storeWithin(ctx, job, x)
	}
	if errors.Is(err, errTextLimit) {
		err = s.storeWithin(ctx, job, &protocol.Extraction{
			State: protocol.TextFailed, Reason: protocol.TextLimit, Pages: x.Pages, Width: x.Width, Height: x.Height, Thumbnail: x.Thumbnail,
		})
	}
	return err
}

const (
	lockTextsSQL = `select 1 from file_totals where account_id = @account for update`
	textBytesSQL = `select coalesce(sum(size), 0)::bigint from file_texts where account_id = @account`
	// pageBytesSQL counts the texts, too: pages have what texts leave.
	pageBytesSQL = `
	select ((select coalesce(sum(size), 0) from file_texts where account_id = @account)
		+ (select coalesce(sum(octet_length(picture)), 0) from file_pages where account_id = @account))::bigint`
)

var errTextLimit = errors.New("the account has as much text as is kept of one account")

// checkLimit returns errTextLimit if the account cannot have another text, or further pages, of a size. It locks the totals of the
// account.
func (s *Texts) checkLimit(ctx context.Context, tx *pg.Tx, storedSQL string, size int, args pgx.NamedArgs) error {
	if size == 0 {
		return nil
	}
	var stored int64
	_, err := tx.Exec(ctx, lockTextsSQL, args)
	if err == nil {
		err = tx.QueryRow(ctx, storedSQL, args).Scan(&stored)
	}
	if err != nil {
		return fmt.Errorf("reading how much text an account has: %w", err)
	}
	if stored+int64(size) > s.limit {
		return errTextLimit
	}
	return nil
}

// storeWithin stores a text, or returns errTextLimit and stores nothing.
func (s *Texts) storeWithin(ctx context.Context, job ExtractArgs, x *protocol.Extraction) error {
	if err := s.db.CheckSpace(); err != nil {
		return err
	}
	account, file := job.AccountID, job.FileID
	notes := x.Notes
	if notes == nil {
		notes = []protocol.TextNote{}
	}
	args := pgx.NamedArgs{
		"notes": notes, "account": account, "file": file, "state": string(x.State), "reason": string(x.Reason), "pages": x.Pages, "width": x.Width, "height": x.Height,
		"size": len(x.Text), "tokens": x.Tokens, "truncated": x.Truncated, "thumbnail": x.Thumbnail, "picture": x.Picture,
	}
	return s.db.InTx(ctx, account, func(ctx context.Context, tx *pg.Tx) error {
		var pending bool
		err := tx.QueryRow(ctx, pendingTextSQL, args).Scan(&pending)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("storing the text of a file: %w", err)
		}
		if err := s.checkLimit(ctx, tx, textBytesSQL, len(x.Text), args); err != nil {
			return err
		}
		if err := s.checkLimit(ctx, tx, pageBytesSQL, len(bytes.Join(x.Further, nil)), args); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for _, c := range chunksOf(x) {
			blocks, err := json.Marshal(c.Blocks)
			if err != nil {
				return fmt.Errorf("storing the text of a file: %w", err)
			}
			batch.Queue(insertChunkSQL, pgx.NamedArgs{
				"account": account, "file": file, "start": c.StartAt, "end": c.StartAt + len(c.Text), "text": c.Text, "blocks": blocks,
			})
			search.IndexSection(batch, account, file, c.StartAt, c.Text)
		}
		for i, page := range x.Further {
			batch.Queue(insertPageSQL, pgx.NamedArgs{"account": account, "file": file, "page": i + 2, "picture": page})
		}
		batch.Queue(endTextSQL, args)
		if err := tx.Run(ctx, batch); err != nil {
			return fmt.Errorf("storing the text of a file: %w", err)
		}
		return nil
	})
}

const headFields = `
	select f.file_id, f.filename, f.media_type, coalesce(t.state, 'none'), coalesce(t.pages, 0), coalesce(t.width, 0), coalesce(t.height, 0), coalesce(t.size, 0),
		coalesce(t.tokens, 0), ` + pictures + `, coalesce(t.reason, ''), coalesce(t.notes, '[]')`

const headColumns = headFields + fromFiles

const headsSQL = headColumns + `where f.account_id = @account and f.file_id = any(@files)`

// FileHeads returns what is known of files, also of deleted ones. Those that do not exist are absent.
func (s *Texts) FileHeads(ctx context.Context, account protocol.AccountID, ids []protocol.FileID) ([]turnlog.FileHead, error) {
	heads, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByPos[turnlog.FileHead], headsSQL, pgx.NamedArgs{"account": account, "files": ids})
	if err != nil {
		return nil, fmt.Errorf("reading files: %w", err)
	}
	return heads, nil
}

// scopedHeadsSQL selects those of some files that a conversation reaches: those of its messages, and those of its project, or
// without one those of the library. A project whose memory is its own keeps its files.
const scopedHeadsSQL = headColumns + `where f.account_id = @account and f.file_id = any (@files) and (
		f.deleted_at is null and case when @project::uuid is null then not exists (
			select from project_files m join projects p on p.account_id = m.account_id and p.project_id = m.project_id
			where m.account_id = f.account_id and m.file_id = f.file_id and p.settings ->> 'memory_scope' = 'project')
		else exists (
			select from project_files p where p.account_id = f.account_id and p.project_id = @project and p.file_id = f.file_id)
		end
		or exists (
			select from message_files u join messages m on m.account_id = u.account_id and m.message_id = u.message_id
			where u.account_id = f.account_id and u.file_id = f.file_id and m.conversation_id = @conversation))`

func (s *Texts) scopedHeads(ctx context.Context, scope turnlog.Scope, ids []protocol.FileID) ([]turnlog.FileHead, error) {
	args := pgx.NamedArgs{"account": scope.AccountID, "conversation": scope.ConversationID, "project": scope.ProjectID, "files": ids}
	heads, err := pg.Rows(ctx, s.db, scope.AccountID, pgx.RowToStructByPos[turnlog.FileHead], scopedHeadsSQL, args)
	if err != nil {
		return nil, fmt.Errorf("reading the files of a scope: %w", err)
	}
	return heads, nil
}

// ScopedFileHead is FileHeads for one file. The error is protocol.CodeNotFound if it is not in the scope.
func (s *Texts) ScopedFileHead(ctx context.Context, scope turnlog.Scope, id protocol.FileID) (*turnlog.FileHead, error) {
	heads, err := s.scopedHeads(ctx, scope, []protocol.FileID{id})
	switch {
	case err != nil:
		return nil, err
	case len(heads) == 0:
		return nil, protocol.Errorf(protocol.CodeNotFound, "There is no file with this id.")
	}
	return &heads[0], nil
}

// scopedRounds limits the searches of one SearchFiles: what is not in the scope does not fill its page.
const scopedRounds = 3

// SearchFiles returns the best files for a query, of the project of a scope, or of the library if it has none.
func (s *Texts) SearchFiles(ctx context.Context, scope turnlog.Scope, query string, limit int) (all []protocol.SearchResult, err error) {
	q := &search.Query{Text: query, ProjectID: scope.ProjectID, Kind: protocol.SearchFile}
	for range scopedRounds {
		q.Limit = limit - len(all)
		found, next, err := s.search.Find(ctx, scope.AccountID, q)
		if err != nil {
			return nil, err
		}
		var ids []protocol.FileID
		for i := range found {
			ids = append(ids, *found[i].FileID)
		}
		heads, err := s.scopedHeads(ctx, scope, ids)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if slices.ContainsFunc(heads, func(h turnlog.FileHead) bool { return h.FileID == *found[i].FileID }) {
				all = append(all, found[i])
			}
		}
		if q.After = next; next == nil || len(all) >= limit {
			break
		}
	}
	return all, nil
}

const projectHeadsSQL = headFields + fromProjectFiles + `
	where m.account_id = @account and m.project_id = @project and f.deleted_at is null
	order by m.file_id desc limit @limit`

// ProjectFileHeads returns what is known of the newest files of a project.
func (s *Texts) ProjectFileHeads(ctx context.Context, account protocol.AccountID, project protocol.ProjectID, limit int) ([]turnlog.FileHead, error) {
	args := pgx.NamedArgs{"account": account, "project": project, "limit": limit}
	heads, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByPos[turnlog.FileHead], projectHeadsSQL, args)
	if err != nil {
		return nil, fmt.Errorf("reading the files of a project: %w", err)
	}
	return heads, nil
}

// FileContent returns the whole text of a file; empty if the file does not exist.
func (s *Texts) FileContent(ctx context.Context, account protocol.AccountID, id protocol.FileID) (string, []protocol.TextBlock, error) {
	args := pgx.NamedArgs{"account": account, "file": id, "offset": 0, "end": maxTextBytes}
	chunks, err := pg.Rows(ctx, s.db, account, pgx.RowToStructByPos[chunk], chunksSQL, args)
	if err != nil {
		return "", nil, fmt.Errorf("reading the text of a file: %w", err)
	}
	r := &protocol.TextRange{Size: maxTextBytes}
	fill(r, chunks, 0, maxTextBytes)
	return r.Text, r.Blocks, nil
}

// maxTextBytes is the maximum size of a text; see table file_texts.
const maxTextBytes = 4 << 20
