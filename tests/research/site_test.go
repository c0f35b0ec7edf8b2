package research

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"turnstone/providers/embedded"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/verify"
	"turnstone/providers/model/modeltest"
)

// settings returns the settings of a program that searches the corpus and asks a stand-in for the model.
func (c *corpus) settings(t *testing.T, wire string, lies bool) []string {
	t.Helper()
	model := modeltest.NewServer(wire, c.model(lies))
	t.Cleanup(model.Close)
	api := []string{"TURNSTONE_MODEL_PROVIDER=anthropic"}
	if wire != modeltest.Anthropic {
		api = []string{"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_API=" + wire}
	}
	return append(api,
		"TURNSTONE_MODEL_BASE_URL="+model.URL, "TURNSTONE_MODEL_BALANCED=researcher", "TURNSTONE_MODEL_CODING=researcher",
		"TURNSTONE_SEARCH_PROVIDERS=searxng", "TURNSTONE_SEARCH_SEARXNG_URL="+c.search.URL, "TURNSTONE_WEB_ALLOW=127.0.0.0/8",
		"TURNSTONE_WEB_SEARCHES_PER_DAY=0", "TURNSTONE_WEB_PAGES_PER_DAY=0", "TURNSTONE_DRAIN_GRACE=300ms",
	)
}

// result is what a task has left.
type result struct {
	task    *protocol.ResearchTask
	log     *verify.Research
	report  string // without the day on which its sources were read
	sources []protocol.ResearchKeptSource
}

var accessDay = regexp.MustCompile(`\((\d{4}-\d\d-\d\d), SHA-256`)

// resultOf reads and checks what a task has left. It must have completed.
func resultOf(t *testing.T, u *sitetest.User, id string) *result {
	t.Helper()
	r := &result{}
	r.log, r.task = u.CheckResearch(t, id, false)
	if r.task.State != protocol.ResearchCompleted || r.task.ArtifactID == nil {
		t.Fatalf("the task ended %s: %+v", r.task.State, r.task.Failure)
	}
	content := u.Do(t, http.MethodGet, "/artifacts/"+r.task.ArtifactID.String()+"/content", nil).Want(t, http.StatusOK, nil).Body
	r.report = accessDay.ReplaceAllString(string(content), "(day, SHA-256")
	var page protocol.List[protocol.ResearchKeptSource]
	u.Get(t, "/research-tasks/"+id+"/sources?limit=100", &page)
	r.sources = page.Data
	return r
}

// finish waits until a task has ended, and returns what it has left.
func finish(t *testing.T, u *sitetest.User, task *protocol.ResearchTask) *result {
	t.Helper()
	id := task.TaskID.String()
	if err := u.FollowResearch(sitetest.Within(t, sitetest.HangGuard), id, nil); err != nil {
		t.Fatal(err)
	}
	return resultOf(t, u, id)
}

// superuser connects to the database of a site without row-level security.
func superuser(t *testing.T, s *sitetest.Site) *pgx.Conn {
	t.Helper()
	address, err := url.Parse(s.Owner)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(embedded.Superuser)
	db, err := pgx.Connect(sitetest.Within(t, sitetest.HangGuard), address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	return db
}

// rowID returns an identifier as it is in the database.
func rowID(id protocol.TaskID) string { return uuid.UUID(id).String() }
