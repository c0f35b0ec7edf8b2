package failpoints

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

// uploadScenario is the scenario in which an upload meets the fault. In the end there is one file with the content.
type uploadScenario struct {
	status int    // of the request with the content
	left   string // what is stored when the fault has ended the program; two states: the kill and the commit of the transfer are not ordered
	again  bool   // whether the session waits for its content again after a fault that does not end the program
}

// asStored is the status of a request that waited for the end of the scan when the node began to drain: it returns the
// session as it is then, 202 while its content is scanned or 200 when it is ready.
const asStored = 1

// The states in which a program may leave a session.
const (
	receiving = "receiving" // the next process makes it wait for its content again
	scanning  = "scanning"  // the next process scans the content in quarantine
	ready     = "ready"
)

const (
	uploadStateSQL = `select state from uploads where upload_id = $1`
	uploadedSQL    = `
select format('%s files, %s published', count(f), count(f) filter (where f.object_name = u.object_name))
from uploads u left join files f on f.account_id = u.account_id and f.file_id = u.file_id
where u.upload_id = $1 group by u.upload_id`
)

func (want uploadScenario) play(t *testing.T, s *installation, c cell) {
	// No job reads the text of an archive, so the upload is the only work that meets the fault.
	content := client.Content("PK\x03\x04" + strings.Repeat("An upload "+newKey()+". ", 5000))
	var u protocol.Upload
	s.user.Do(t, http.MethodPost, "/files/uploads", map[string]any{
		"filename": "a.zip", "media_type": "application/zip", "size": len(content), "purpose": "library",
	}).Want(t, http.StatusCreated, &u)
	s.user.HTTP.CloseIdleConnections()
	s.arm(c.spec())
	response, err := s.user.Request(sitetest.Within(t, sitetest.HangGuard), http.MethodPut, u.Path()+"/content", content, "Content-Type", "application/zip")
	if c.ends() {
		s.awaitExit(c)
		left := queryOne[string](s, uploadStateSQL, uuid.UUID(u.UploadID).String())
		if !slices.Contains(strings.Fields(want.left), left) {
			t.Errorf("the program left the session %s, want %s", left, want.left)
		}
		want.again = left == receiving
		s.restart()
	} else {
		s.awaitFailpoint(c)
	}
	if want.status == asStored && err == nil {
		want.status = map[protocol.UploadState]int{protocol.UploadScanning: accepted, protocol.UploadReady: okay}[stateIn(t, response)]
	}
	s.wantStatus(want.status, response, nil, err)
	current := s.awaitUpload(&u)
	waits := current.State == protocol.UploadPending
	if waits != want.again {
		t.Fatalf("the session is %+v, waits again: %t, want %t", current, waits, want.again)
	}
	if waits {
		s.user.Do(t, http.MethodPut, u.Path()+"/content", content, "Content-Type", "application/zip").Want(t, http.StatusOK, current)
	}
	if current.State != protocol.UploadReady || current.FileID == nil {
		t.Fatalf("the session ended %+v", current)
	}
	file := s.user.Do(t, http.MethodGet, "/files/"+current.FileID.String()+"/content", nil).Want(t, http.StatusOK, nil)
	if string(file.Body) != string(content) {
		t.Errorf("the file has %d bytes, %d were sent", len(file.Body), len(content))
	}
	if stored := queryOne[string](s, uploadedSQL, uuid.UUID(u.UploadID).String()); stored != "1 files, 1 published" {
		t.Error(stored)
	}
	log := s.user.ReadUpload(t, &u)
	sitetest.Report(t, "the session", log.CheckResource(current))
	if log.End == nil {
		t.Errorf("the log of the session has no end: %+v", log.Events)
	}
}

func stateIn(t *testing.T, response *sitetest.Response) protocol.UploadState {
	t.Helper()
	var u protocol.Upload
	if err := json.Unmarshal(response.Body, &u); err != nil {
		t.Fatalf("%s: %v", response.Body, err)
	}
	return u.State
}

// awaitUpload waits until nobody works on an upload.
func (s *installation) awaitUpload(u *protocol.Upload) *protocol.Upload {
	s.t.Helper()
	var current protocol.Upload
	sitetest.Eventually(s.t, "the upload rests", func() bool {
		s.user.Get(s.t, u.Path(), &current)
		return current.State != protocol.UploadReceiving && current.State != protocol.UploadScanning
	})
	return &current
}
