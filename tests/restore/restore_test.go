package restore

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/protocol/verify"
	"turnstone/providers/embedded"
	"turnstone/providers/model/modeltest"
)

const (
	clients     = 2
	turnsEach   = 2
	moreWrites  = 24 // between two steps of the drill
	moreEvents  = 50 // of each live turn after the end of the archive
	modelPace   = 15 * time.Millisecond
	longAnswer  = 20_000 // words: five minutes, longer than the drill
	shortAnswer = 5
	wantsLong   = "at length"
)

// drill is one run of the service, its clients and the history of what they were sent.
type drill struct {
	*installation
	history
	site     *sitetest.Site
	process  *sitetest.Process
	model    *modeltest.Server
	users    []*sitetest.User
	finished []string // turns that had ended before the base backup
	live     []string // turns that were live at the end
	owner    map[string]*sitetest.User
	cursor   string // of the account feed, at the end
	readers  sync.WaitGroup
}

// TestABackupRestoresWhatWasAcknowledgedBeforeItsEnd is the drill of docs/backup.md.
func TestABackupRestoresWhatWasAcknowledgedBeforeItsEnd(t *testing.T) {
	d := &drill{installation: newInstallation(t), history: history{Witness: verify.NewWitness()}, owner: map[string]*sitetest.User{}}
	d.model = modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: answer, Interval: modelPace})
	t.Cleanup(d.model.Close)
	server := d.startFirst()
	d.site = sitetest.NewSiteOn(t, server, "TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL="+d.model.URL,
		"TURNSTONE_MODEL_BALANCED=reciter", "TURNSTONE_MODEL_CODING=reciter")
	d.process = d.site.Start()
	d.startClients()

	base := "first"
	d.run("Postgres: the base backup", "SUPERUSER="+server.DSN(embedded.Superuser, "postgres"), "BASE="+base)
	d.awaitWrites(moreWrites)
	point := time.Now().Truncate(time.Microsecond) // the precision of Postgres
	d.awaitWrites(moreWrites)
	copying := time.Now()
	d.run("The objects in a folder", "DATA="+d.site.Folder)
	d.awaitWrites(moreWrites) // with files that the copy of the objects does not have
	archived := d.archive(server)
	d.awaitWrites(moreWrites)
	d.awaitEvents(moreEvents)

	failed := d.fail(server)
	t.Logf("%d writes were acknowledged; %d of them and %d events of %d live turns after the end of the archive, %s before the failure",
		d.count(), d.writesAfter(archived), d.CountSince(archived), len(d.live), failed.Sub(archived).Round(time.Millisecond))
	d.restoreToTheEnd(base, archived, copying)
	d.restoreToAPoint(base, point, copying)
}

// answer recites; its length depends on the last message.
func answer(request modeltest.Request) modeltest.Step {
	words := shortAnswer
	if strings.Contains(request.Messages[len(request.Messages)-1].Text, wantsLong) {
		words = longAnswer
	}
	text := make([]string, words)
	for i := range text {
		text[i] = fmt.Sprintf("w%d ", i)
	}
	return modeltest.Step{Text: text, Usage: &llm.Usage{InputTokens: 1, OutputTokens: words}}
}

// finish answers what follows what a turn has already.
func finish(modeltest.Request) modeltest.Step {
	return modeltest.Step{Text: []string{"and so on."}, Usage: &llm.Usage{InputTokens: 1, OutputTokens: 1}}
}

// startClients signs the users up, ends a turn of each, starts the live turns and the writers.
func (d *drill) startClients() {
	d.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	d.t.Cleanup(func() {
		stop()
		d.readers.Wait()
		for _, line := range d.wrong {
			d.t.Error(line)
		}
	})
	for number := range clients {
		u := sitetest.NewUser(d.t, d.site.Base)
		d.users = append(d.users, u)
		s := u.Chat(d.t, sitetest.NewChatBody("briefly").In(u.NewConversation(d.t)))
		d.follow(s, u)
		if _, end := s.ReadToEnd(d.t); end.Status != protocol.TurnCompleted {
			d.t.Errorf("a turn ended %s", end.Status)
		}
		d.finished = append(d.finished, s.Turn)
		for range turnsEach {
			s := u.Chat(d.t, sitetest.NewChatBody(wantsLong).In(u.NewConversation(d.t)))
			d.follow(s, u)
			s.AwaitKind(d.t, "answer.delta")
			d.live = append(d.live, s.Turn)
			d.readers.Go(func() {
				if err := s.Drain(nil); err != nil {
					d.history.fail("%v", err)
				}
			})
		}
		d.readers.Go(func() { d.keepWriting(ctx, number, u) })
	}
	d.awaitWrites(moreWrites)
}

// follow records what a stream returns.
func (d *drill) follow(s *sitetest.Stream, u *sitetest.User) {
	d.owner[s.Turn] = u
	s.Checks = func(e sitetest.Event) error {
		return d.Saw(s.Turn, e.Sequence, e.Data, time.Now())
	}
}

func (d *drill) awaitWrites(more int) {
	d.t.Helper()
	until := d.count() + more
	sitetest.Eventually(d.t, "more was written", func() bool { return d.count() >= until })
}

func (d *drill) awaitEvents(more int) {
	d.t.Helper()
	for _, turn := range d.live {
		until := d.Count(turn) + more
		sitetest.Eventually(d.t, "more was streamed", func() bool { return d.Count(turn) >= until })
	}
}

func (d *drill) writesAfter(at time.Time) (n int) {
	for i := range d.writes {
		if d.writes[i].acked.After(at) {
			n++
		}
	}
	return n
}

// fail kills the service and the database at once, as the loss of a host computer does, and returns when that was. Everything
// but the backups and the secret is gone.
func (d *drill) fail(server *embedded.Postgres) time.Time {
	d.t.Helper()
	d.cursor, _ = d.feedItem(d.users[0], "")
	for _, u := range d.users {
		u.Ledger.Plan() // until the end of the test: a restored service has other addresses of its servers
	}
	failed := time.Now()
	if err := server.Kill(); err != nil {
		d.t.Fatal(err)
	}
	d.process.Kill()
	d.readers.Wait()
	if err := server.Close(sitetest.Within(d.t, sitetest.HangGuard)); err != nil {
		d.t.Fatal(err)
	}
	for _, gone := range []string{server.Folder(), d.site.Folder} {
		if err := os.RemoveAll(gone); err != nil {
			d.t.Fatal(err)
		}
	}
	return failed
}

// serve starts the service on a restored database, with a data folder that has nothing but the copied objects.
func (d *drill) serve(server *embedded.Postgres) *sitetest.Process {
	d.t.Helper()
	folder := filepath.Join(filepath.Dir(d.site.Folder), fmt.Sprintf("restored-%d", d.servers))
	d.run("The objects: the restore", "DATA="+folder)
	dsn := func(old string) string { // the same role and database, on the restored server
		_, rest, _ := strings.Cut(old, "://")
		role, rest, _ := strings.Cut(rest, "@")
		database, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "?")
		return server.DSN(role, database)
	}
	environment := append(d.site.Environment, "TURNSTONE_DATA_DIR="+folder, "DATABASE_URL="+dsn(d.site.Login))
	code, _, stderr := sitetest.Finish(d.t, append(environment, "TURNSTONE_MIGRATE_DATABASE_URL="+dsn(d.site.Owner)), "migrate")
	if code != 0 {
		d.t.Fatalf("migrate: %d %s", code, stderr)
	}
	d.run("Comparison of rows and objects", "OWNER="+dsn(d.site.Owner))
	process := d.site.Build.Start(d.t, environment, "serve")
	process.AwaitLog("turnstone serves")
	return process
}

// restored returns the users as clients of a restored service: with the same sessions, and without what their readers saw.
func (d *drill) restored() []*sitetest.User {
	users := make([]*sitetest.User, len(d.users))
	for i, u := range d.users {
		users[i] = u.Via(d.t, d.site.Base)
		users[i].Witness = sitetest.NewWitness(d.t)
	}
	return users
}

// restoreToTheEnd restores everything that was archived.
func (d *drill) restoreToTheEnd(base string, archived, copying time.Time) {
	t := d.t
	released := make(chan struct{})
	d.model.SetScript(modeltest.Script{Respond: func(request modeltest.Request) modeltest.Step {
		<-released
		return finish(request)
	}})
	began := time.Now()
	server := d.installation.restore(base, time.Time{})
	recovered := time.Since(began)
	process := d.serve(server)
	users := d.restored()
	users[0].Do(t, http.MethodGet, "/auth/session", nil).Want(t, http.StatusOK, nil) // the secret is the same
	served := time.Since(began)

	d.checkCursors(users)
	close(released)
	unchanged := 0
	for i, turn := range append(d.finished, d.live...) {
		read := d.reader(users, turn).CheckTurn(t, turn)
		if i < len(d.finished) {
			sitetest.Report(t, "an ended turn", d.CheckAll(turn, read.Events))
		}
		unchanged += d.checkTurn(read, archived)
	}
	ended := time.Since(began)
	o := d.check(t, users, archived, copying, false)
	if o.withoutContent == 0 {
		t.Error("the restored rows have no file that is newer than the copy of the objects")
	}
	process.AwaitLog(fmt.Sprintf(`"msg":"files compared with the object store","orphans":%d,"missing":%d`, 0, o.withoutContent))
	compared := time.Since(began)
	d.checkKeys(users)
	t.Logf("RPO of the archive: %d of %d acknowledged writes were lost (none that was archived), %d files have no content; %d events are unchanged",
		o.lost, o.lost+o.kept, o.withoutContent, unchanged)
	t.Logf("RTO: Postgres after %s, the service after %s, all live turns ended after %s, rows and objects compared after %s",
		recovered.Round(time.Millisecond), served.Round(time.Millisecond), ended.Round(time.Millisecond), compared.Round(time.Millisecond))
	d.stop(process, server)
}

// checkTurn checks that a turn completed, and compares its log with what its readers received before until.
func (d *drill) checkTurn(read *verify.Turn, until time.Time) (compared int) {
	d.t.Helper()
	if read.End.Status != protocol.TurnCompleted {
		d.t.Errorf("%s is %s", read.ID, read.End.Status)
	}
	compared, found := d.CheckLog(read.ID, read.Events, until)
	sitetest.Report(d.t, read.ID, found)
	return compared
}

// reader returns the restored user that owns a turn.
func (d *drill) reader(users []*sitetest.User, turn string) *sitetest.User {
	for i, u := range d.users {
		if d.owner[turn] == u {
			return users[i]
		}
	}
	d.t.Fatalf("%s has no owner", turn)
	return nil
}

// checkCursors checks what readers get that have seen more than was restored.
func (d *drill) checkCursors(users []*sitetest.User) {
	d.t.Helper()
	for _, turn := range d.live {
		s, refused, err := d.reader(users, turn).FollowAgain(sitetest.Within(d.t, sitetest.HangGuard), turn, int64(d.Count(turn)), "")
		switch {
		case err != nil:
			d.t.Fatal(err)
		case s != nil:
			s.Close()
			d.t.Errorf("a reader that is ahead of %s continues", turn)
		default:
			refused.WantProblem(d.t, http.StatusConflict, protocol.CodeSequenceAhead)
		}
	}
	if _, item := d.feedItem(users[0], d.cursor); item.Type != protocol.FeedReset {
		d.t.Errorf("a reader of the account feed that is ahead of it gets %s", item.Type)
	}
}

// feedItem returns the first item of the account feed after a cursor, and its cursor.
func (d *drill) feedItem(u *sitetest.User, after string) (cursor string, item protocol.FeedItem) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), sitetest.HangGuard)
	defer cancel()
	response, err := u.Open(ctx, http.MethodGet, "/events?after="+after, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	frame, err := client.NewFrameReader(response.Body).Next()
	if err != nil {
		d.t.Fatalf("reading the account feed: %d %v", response.StatusCode, err)
	}
	var feed verify.Feed
	if item, err = feed.Next(string(frame.ID), string(frame.Event), string(frame.Data)); err != nil {
		d.t.Fatal(err)
	}
	return feed.Cursor, item
}

// checkKeys repeats the first write, which was restored, and the last one, which was lost, with their keys: the first has its
// response again, the other one is executed.
func (d *drill) checkKeys(users []*sitetest.User) {
	d.t.Helper()
	conversations := slices.DeleteFunc(slices.Clone(d.writes), func(w write) bool { return w.isFile() })
	for _, w := range []write{conversations[0], conversations[len(conversations)-1]} {
		u := users[w.user]
		there := u.Do(d.t, http.MethodGet, w.path, nil).Status == http.StatusOK
		response := u.Do(d.t, http.MethodPost, "/conversations", map[string]string{"title": w.title}, "Idempotency-Key", w.key)
		var made protocol.Conversation
		response.Want(d.t, http.StatusCreated, &made)
		if same := "/conversations/"+made.ConversationID.String() == w.path; same != there || response.Replayed() != there {
			d.t.Errorf("a repeated write whose first execution is there (%v): the same resource %v, replayed %v", there, same, response.Replayed())
		}
	}
}

// restoreToAPoint restores what was acknowledged before a point in time, and nothing that came later.
func (d *drill) restoreToAPoint(base string, point, copying time.Time) {
	t := d.t
	server := d.installation.restore(base, point)
	process := d.serve(server)
	users := d.restored()
	for _, turn := range d.live {
		d.checkTurn(d.reader(users, turn).CheckTurn(t, turn), point)
	}
	o := d.check(t, users, point, copying, true)
	if o.lost == 0 || o.kept == 0 {
		t.Errorf("the restored point has %+v", o)
	}
	t.Logf("point in time: %d writes before it are there, %d after it are not", o.kept, o.lost)
	d.stop(process, server)
}

// stop stops a restored installation, so that the next one can use its addresses, and checks the log of the service.
func (d *drill) stop(process *sitetest.Process, server *embedded.Postgres) {
	d.t.Helper()
	process.Kill()
	sitetest.CheckLog(d.t, process.Stderr()+process.Stdout())
	if err := server.Close(sitetest.Within(d.t, sitetest.HangGuard)); err != nil {
		d.t.Error(err)
	}
}
