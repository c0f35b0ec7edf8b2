package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const (
	windowMatches = 200     // of the newest matches of a kind, which are ranked together
	maxWindows    = 4       // that one page reads
	pendingRows   = 20_000  // of an account that one search reads
	pendingBytes  = 8 << 20 // of their texts
	pageBytes     = 4 << 20 // of the texts of a page's results; a page ends before it needs more

	// The limits of long texts, which are read in slices: of those that are pending, and of a page's results.
	pendingLong = 32 << 20
	pageLong    = 8 << 20
)

// kinds are the kinds of objects in the order of their rank.
var kinds = []protocol.SearchKind{protocol.SearchConversation, protocol.SearchMessage, protocol.SearchFile, protocol.SearchArtifact, protocol.SearchTask}

// pastKinds are the kinds of objects of a Query with Past.
var pastKinds = kinds[:2]

// Query selects a page of results.
type Query struct {
	Text           string
	ConversationID *protocol.ConversationID // nil: all conversations
	ProjectID      *protocol.ProjectID      // nil: in and outside projects; not together with ConversationID
	Kind           protocol.SearchKind      // empty: all kinds
	Past           bool                     // only titles and messages of conversations
	Role           string                   // of messages; empty: any. With a role, only messages are found
	From, To       time.Time                // when what is found was created, without To; zero: no limit
	After          *Position                // nil: the first page
	Limit          int
}

// match is an object that matches.
type match struct {
	Place
	container [16]byte // the conversation or the file
	score     int
	loose     bool      // it has another form of a word
	pending   *document // nil: read from the index
}

// compareRank orders the matches of a window: better ones first, then newer ones.
func compareRank(a, b match) int {
	return cmp.Or(cmp.Compare(b.score, a.score), b.compare(a.Place))
}

// Find returns a page of what matches a query, and the position after it; nil at the end. Titles come before messages,
// messages before files, files before artifacts, and those before research tasks. A file is found once, by the section that matches best.
// What has the words themselves, of all kinds, comes before what has other forms of them.
// Within a kind, the newest windowMatches matches are ranked, then the next ones, and so on. A search ends after a bounded
// amount of work. If its words are so common and their order so rare that few of the objects match, a page has fewer
// results than its limit and a position from which the search continues.
func (s *Store) Find(ctx context.Context, account protocol.AccountID, request *Query) (page []protocol.SearchResult, next *Position, err error) {
	f := s.finder(account, request)
	if len(f.query.terms) == 0 {
		return []protocol.SearchResult{}, nil, nil
	}
	at := Position{Kind: f.kinds[0]}
	if request.After != nil {
		at = *request.After
	}
	if err := f.start(ctx, at); err != nil {
		return nil, nil, fmt.Errorf("searching: %w", err)
	}
	if err := f.scoreLong(ctx); err != nil {
		return nil, nil, fmt.Errorf("searching long texts: %w", err)
	}
	found, next, err := f.page(ctx, at, request.Limit)
	if err != nil {
		return nil, nil, fmt.Errorf("searching: %w", err)
	}
	return f.results(ctx, found, next)
}

func (s *Store) finder(account protocol.AccountID, request *Query) *finder {
	f := &finder{
		db: s.db, account: account, query: parse(request.Text), conversation: request.ConversationID,
		project: request.ProjectID, few: s.few, kinds: kinds, longTexts: s.longTexts, from: request.From, newest: Place{pg.Latest, pg.HighestID},
	}
	f.many = request.After != nil
	if !request.To.IsZero() {
		f.newest = Place{At: request.To}
	}
	if loose, distinguishes := f.query.loose(); distinguishes {
		f.loose = &loose
	}
	if request.Past {
		f.kinds = pastKinds
	}
	if request.Kind != "" {
		f.kinds = []protocol.SearchKind{request.Kind}
	}
	if request.Role != "" {
		f.kinds, f.role = []protocol.SearchKind{protocol.SearchMessage}, &request.Role
	}
	return f
}

// finder is one search.
type finder struct {
	db           *pg.DB
	account      protocol.AccountID
	query        query
	loose        *query // for the words in any form; nil: they have no other forms
	many         bool   // there may be many texts with the words themselves, which the index would also find for any form
	conversation *protocol.ConversationID
	project      *protocol.ProjectID
	few          int                   // see fewRows
	kinds        []protocol.SearchKind // in the order of their rank
	role         *string               // of messages; nil: any
	from         time.Time             // what is older is not found
	newest       Place                 // nor what is at this place or newer
	longTexts    chan struct{}         // see Store

	long    []*document // those of the pending texts that were not scored yet
	slices  int         // bytes of long texts that were read
	pending map[object]*pendingText
	windows map[protocol.SearchKind]*window // the first of each kind
	read    int                             // number of windows
}

// pendingText is a text that may not be in the index, or not in its present form.
type pendingText struct {
	match
	kind protocol.SearchKind
}

// rankedMatch is a match with the position after it.
type rankedMatch struct {
	match
	kind  protocol.SearchKind
	after Position
}

// readPendingSQL reads the newest pending texts of an account. An object may have several rows.
const readPendingSQL = `
	select ` + documentColumns + withRole + `
	from (
		select ` + textColumns + `
		from (
			select account_id, kind, id, container_id, -max(n) as n
			from (
				select account_id, kind, id, coalesce(conversation_id, file_id) as container_id, n from search_pending
				where account_id = @account order by n desc limit @limit) p
			where @conversation::uuid is null or container_id = @conversation
				or kind = 'file' and container_id in (select f.file_id from (` + filesOfConversation + `) f)
			group by account_id, kind, id, container_id) d` +
	textsSQL + inVisibleProject + inProject + inRole + `) texts`

// start reads what is pending and the first windows, in one round trip. What is pending is read first: a text that is
// indexed between the two is in both, and never in neither.
func (f *finder) start(ctx context.Context, at Position) error {
	batch := &pgx.Batch{}
	batch.Queue(readPendingSQL, pgx.NamedArgs{
		"account": f.account, "conversation": f.conversation, "project": f.project, "role": f.role, "limit": pendingRows, "bytes": pendingBytes,
	}).Query(func(rows pgx.Rows) error { return f.readPending(ctx, rows) })
	f.queueWindows(batch, at)
	return f.db.Send(ctx, f.account, batch)
}

func (f *finder) readPending(ctx context.Context, rows pgx.Rows) error {
	documents, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[document])
	f.pending = map[object]*pendingText{}
	for _, d := range documents {
		switch {
		case d.Cut, d.At.Before(f.from), (Place{d.At, d.ID}).compare(f.newest) >= 0:
		case d.Long:
			f.long = append(f.long, d)
		default:
			if err := f.score(ctx, d); err != nil {
				return err
			}
		}
	}
	return err
}

// score adds a pending text.
func (f *finder) score(ctx context.Context, d *document) error {
	s := f.query.scoring(ctx)
	if err := f.readText(d, &s.flow); err != nil {
		return err
	}
	score, loose := s.score()
	f.pending[d.object()] = &pendingText{kind: d.Kind, match: match{Place: Place{d.At, d.ID}, container: d.ContainerID, score: score, loose: loose, pending: d}}
	return nil
}

// scoreLong adds the pending texts that are long, the newest first.
func (f *finder) scoreLong(ctx context.Context) error {
	for _, d := range f.long {
		if f.slices >= pendingLong {
			break
		}
		if err := f.score(ctx, d); err != nil {
			return err
		}
	}
	f.slices = 0
	return nil
}

// page collects the matches of a page. next is the position from which the search continues; nil: there is nothing more. What has
// other forms of the words is only read when everything with the words themselves was found.
func (f *finder) page(ctx context.Context, at Position, limit int) (found []rankedMatch, next *Position, err error) {
	found, next, err = f.collect(ctx, at, limit, nil)
	if err != nil || next != nil || at.Loose || f.loose == nil {
		return found, next, err
	}
	f.many = f.many || len(found) == limit
	at = Position{Kind: f.kinds[0], Loose: true}
	batch := &pgx.Batch{}
	f.queueWindows(batch, at)
	if err := f.db.Send(ctx, f.account, batch); err != nil {
		return nil, nil, err
	}
	return f.collect(ctx, at, limit, found)
}

// collect adds the matches from a position on, which have the words themselves or other forms of them, as those of the position.
func (f *finder) collect(ctx context.Context, at Position, limit int, found []rankedMatch) (all []rankedMatch, next *Position, err error) {
	for _, kind := range f.kinds[slices.Index(f.kinds, at.Kind):] {
		if kind != at.Kind {
			at = Position{Kind: kind, Loose: at.Loose}
		}
		for w := f.windows[kind]; ; {
			for _, m := range f.rank(w, at) {
				if len(found) == limit {
					return found, &found[limit-1].after, nil
				}
				after := at
				after.Score, after.After = m.score, &Place{m.At, m.ID}
				found = append(found, rankedMatch{m, kind, after})
			}
			if w.next == nil {
				break
			}
			at = Position{Kind: kind, Loose: at.Loose, Before: w.next}
			if f.read >= maxWindows {
				return found, &at, nil
			}
			w = &window{}
			batch := &pgx.Batch{}
			f.queueWindow(batch, at, w)
			if err := f.db.Send(ctx, f.account, batch); err != nil {
				return nil, nil, err
			}
		}
	}
	return found, nil, nil
}

// rank returns the matches of a window after a position, in their order. What is pending replaces what is in the index.
func (f *finder) rank(w *window, at Position) []match {
	matches := make([]match, 0, len(w.matches))
	for _, m := range w.matches {
		if f.pending[object{f.account, at.Kind, m.ID}] == nil {
			matches = append(matches, m)
		}
	}
	for _, p := range f.pending {
		inWindow := (at.Before == nil || p.compare(*at.Before) < 0) && (w.next == nil || p.compare(*w.next) >= 0)
		if p.kind == at.Kind && p.score > 0 && p.loose == at.Loose && inWindow {
			matches = append(matches, p.match)
		}
	}
	slices.SortFunc(matches, compareRank)
	if at.Kind == protocol.SearchFile {
		matches = eachOnce(matches)
	}
	if at.After == nil {
		return matches
	}
	last := match{Place: *at.After, score: at.Score}
	from, _ := slices.BinarySearchFunc(matches, last, func(m, last match) int {
		if compareRank(m, last) <= 0 {
			return -1
		}
		return 1
	})
	return matches[from:]
}

// eachOnce returns the best match of each file.
func eachOnce(matches []match) []match {
	seen := map[[16]byte]bool{}
	return slices.DeleteFunc(matches, func(m match) bool {
		again := seen[m.container]
		seen[m.container] = true
		return again
	})
}

// results reads the texts of matches and cuts their excerpts. A match that was deleted in the meantime is left out.
func (f *finder) results(ctx context.Context, found []rankedMatch, next *Position) ([]protocol.SearchResult, *Position, error) {
	var wanted columns
	texts := map[object]*document{}
	for i := range found {
		m := &found[i]
		if m.pending == nil {
			wanted.add(object{f.account, m.kind, m.ID}, m.container, 0)
		} else {
			texts[object{f.account, m.kind, m.ID}] = m.pending
		}
	}
	if len(wanted.ids) > 0 {
		args := wanted.args()
		args["bytes"], args["project"], args["role"] = pageBytes, f.project, f.role
		documents, err := pg.Rows(ctx, f.db, f.account, pgx.RowToAddrOfStructByName[document], readVisibleTextsSQL, args)
		if err != nil {
			return nil, nil, fmt.Errorf("reading what was found: %w", err)
		}
		for _, d := range documents {
			texts[d.object()] = d
		}
	}
	page := make([]protocol.SearchResult, 0, len(found))
	for i := range found {
		m := &found[i]
		switch d := texts[object{f.account, m.kind, m.ID}]; {
		case d == nil:
		case d.Cut, d.Long && f.slices >= pageLong:
			return page, &found[i-1].after, nil
		default:
			result, err := f.result(ctx, d, m.loose)
			if err != nil {
				return nil, nil, fmt.Errorf("reading what was found: %w", err)
			}
			page = append(page, result)
		}
	}
	return page, next, nil
}
