package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/persistence"
	"turnstone/persistence/files"
	"turnstone/persistence/objects"
	"turnstone/persistence/objects/s3"
	"turnstone/persistence/objects/s3test"
	"turnstone/protocol"
	"turnstone/protocol/client"
	"turnstone/providers/scanner/clamdtest"
	"turnstone/providers/scanner/scannertest"
)

const (
	// The names in the policy of docs/files.md, and the account that it is for.
	filesBucket    = "turnstone-files"
	filesAccessKey = "service"
	filesSecretKey = "service-secret"

	// largeFile is sent in several parts. It does not fit into the buffers of the sockets between the store and a client.
	largeFile = 24<<20 + 7
	// someParts is a beginning of it of which the store gets at least one part.
	someParts = 20 << 20
	afterAll  = 30 * 24 * time.Hour // later than any object may be without a row
)

// fileSite is an installation with an S3 server and a ClamAV daemon of its own, both configured as docs/files.md says.
type fileSite struct {
	*sitetest.Site
	t       *testing.T
	gateway *s3test.Gateway
	clamd   *clamdtest.Daemon
	bucket  *s3.Store // with the credentials of the bucket's owner
	process *sitetest.Process
	user    *sitetest.User
}

var policyBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

// bucketPolicy returns the policy of docs/files.md, for the account of the service.
func bucketPolicy(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	block := policyBlock.FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/files.md has no policy")
	}
	var policy struct {
		Version   string
		Statement []map[string]any
	}
	if err := json.Unmarshal(block[1], &policy); err != nil {
		t.Fatal(err)
	}
	for _, statement := range policy.Statement {
		statement["Principal"] = map[string]any{"AWS": []string{filesAccessKey}}
	}
	text, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startFileSite starts an installation and signs a user in.
func startFileSite(t *testing.T) *fileSite {
	t.Helper()
	return startFileSiteThrough(t, func(gateway *s3test.Gateway) string { return gateway.Endpoint })
}

// startFileSiteThrough is startFileSite for a service that reaches the S3 server at another address.
func startFileSiteThrough(t *testing.T, endpoint func(*s3test.Gateway) string) *fileSite {
	t.Helper()
	gateway, err := s3test.Start(sitetest.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gateway.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(
		gateway.CreateBucket(t.Context(), filesBucket), gateway.AddUser(t.Context(), filesAccessKey, filesSecretKey),
		gateway.SetPolicy(t.Context(), filesBucket, bucketPolicy(t)),
	); err != nil {
		t.Fatal(err)
	}
	bucket, err := s3.Open(t.Context(), s3.Options{
		Endpoint: gateway.Endpoint, Region: s3test.Region, Bucket: filesBucket, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close() })
	s := &fileSite{t: t, gateway: gateway, clamd: clamdtest.Start(t, 0), bucket: bucket}
	s.Site = sitetest.NewSite(t,
		"TURNSTONE_S3_ENDPOINT="+endpoint(gateway), "TURNSTONE_S3_REGION="+s3test.Region, "TURNSTONE_S3_BUCKET="+filesBucket,
		"AWS_ACCESS_KEY_ID="+filesAccessKey, "AWS_SECRET_ACCESS_KEY="+filesSecretKey, "TURNSTONE_CLAMD_ADDRESS="+s.clamd.Address)
	s.process = s.Start()
	s.user = sitetest.NewUser(t, s.Base)
	return s
}

// wav returns a content of a size that no compression makes smaller, and its SHA-256.
func wav(size int) (content client.Content, sum string) {
	content = make([]byte, size)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(content) // never fails
	copy(content, "RIFF\x00\x00\x00\x00WAVEfmt ")
	hash := sha256.Sum256(content)
	return content, hex.EncodeToString(hash[:])
}

// create starts an upload.
func (s *fileSite) create(name, media string, size int, more ...string) *protocol.Upload {
	s.t.Helper()
	body := map[string]any{"filename": name, "media_type": media, "size": size, "purpose": "attachment"}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	var u protocol.Upload
	s.user.Do(s.t, http.MethodPost, "/files/uploads", body).Want(s.t, http.StatusCreated, &u)
	return &u
}

// send sends a content, and returns the response.
func (s *fileSite) send(u *protocol.Upload, content any) *sitetest.Response {
	s.t.Helper()
	return s.user.Do(s.t, http.MethodPut, u.Path()+"/content", content, "Content-Type", u.MediaType)
}

// sendReady sends a content that becomes a file.
func (s *fileSite) sendReady(u *protocol.Upload, content client.Content) protocol.FileID {
	s.t.Helper()
	var sent protocol.Upload
	if s.send(u, content).Want(s.t, http.StatusOK, &sent); sent.State != protocol.UploadReady || sent.FileID == nil {
		s.t.Fatalf("%+v, %+v", sent, sent.Failure)
	}
	return *sent.FileID
}

// state reads a session.
func (s *fileSite) state(u *protocol.Upload) *protocol.Upload {
	s.t.Helper()
	var current protocol.Upload
	s.user.Get(s.t, u.Path(), &current)
	return &current
}

// await waits until a session has a state.
func (s *fileSite) await(u *protocol.Upload, state protocol.UploadState) *protocol.Upload {
	s.t.Helper()
	var current *protocol.Upload
	sitetest.Eventually(s.t, "the upload is "+string(state), func() bool {
		current = s.state(u)
		return current.State == state
	})
	return current
}

// wantContent downloads a file and compares it, whole and in a range.
func (s *fileSite) wantContent(id protocol.FileID, content []byte) {
	s.t.Helper()
	path := "/files/" + id.String() + "/content"
	whole := s.user.Do(s.t, http.MethodGet, path, nil).Want(s.t, http.StatusOK, nil)
	if !bytes.Equal(whole.Body, content) {
		s.t.Errorf("the content has %d bytes, or other ones; %d were sent", len(whole.Body), len(content))
	}
	from, to := len(content)/3, len(content)-2
	part := s.user.Do(s.t, http.MethodGet, path, nil, "Range", fmt.Sprintf("bytes=%d-%d", from, to)).Want(s.t, http.StatusPartialContent, nil)
	if !bytes.Equal(part.Body, content[from:to+1]) || part.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", from, to, len(content)) {
		s.t.Errorf("the range has %d bytes, %q", len(part.Body), part.Header.Get("Content-Range"))
	}
}

// keys lists the objects of the bucket with a prefix.
func (s *fileSite) keys(prefix string) (keys []string) {
	s.t.Helper()
	list, err := s.bucket.List(s.t.Context(), prefix, "", objects.MaxList)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, object := range list {
		keys = append(keys, object.Key)
	}
	return keys
}

// wantAgreement checks that rows and objects agree: there is one object for each of the files, and one in quarantine for each
// malware. The objects of other sessions that have ended are gone.
func (s *fileSite) wantAgreement(files, malware int) {
	s.t.Helper()
	stores := s.stores()
	if err := stores.Uploads.Reap(s.t.Context()); err != nil {
		s.t.Error(err)
	}
	if found, err := stores.Files.Reconcile(s.t.Context(), time.Now().Add(afterAll)); err != nil || found != noDifferences {
		s.t.Errorf("%+v, %v", found, err)
	}
	if published, kept := s.keys("f/"), s.keys("q/"); len(published) != files || len(kept) != malware || len(s.keys("")) != files+malware {
		s.t.Errorf("published %v, in quarantine %v, %d objects together", published, kept, len(s.keys("")))
	}
}

var noDifferences files.Differences

// stores opens the database and the bucket as a node does.
func (s *fileSite) stores() *persistence.Stores {
	s.t.Helper()
	stores, err := persistence.Open(s.t.Context(), persistence.Config{URL: s.Login, Objects: s.bucket, Logger: zap.NewNop()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(stores.Close)
	return stores
}

// TestFilesAreStoredInABucketAndScannedByClamd is the way of files through the service as an operator runs it.
func TestFilesAreStoredInABucketAndScannedByClamd(t *testing.T) {
	s := startFileSite(t)
	u := s.user
	status, ready, err := sitetest.Fetch(t, http.MethodGet, "http://"+s.Internal+"/ready", "")
	const want = `{"status":"ready","scanner":"clamav","checks":{"cache":"ok","malware_scanning":"ok","model_access":"ok","object_storage":"ok","persistence":"ok"}}`
	if status != http.StatusOK || strings.TrimSpace(ready) != want || err != nil {
		t.Errorf("/ready: %d %s %v", status, ready, err)
	}

	pdf := client.Content(twoPages)
	id := s.sendReady(s.create("tides.pdf", "application/pdf", len(pdf)), pdf)
	var file protocol.File
	u.Get(t, "/files/"+id.String(), &file)
	if file.Scan.Verdict != "clean" || file.Scan.Engine != "clamav" || file.Scan.At.IsZero() {
		t.Errorf("the verdict is %+v", file.Scan)
	}
	s.wantContent(id, pdf)
	var text protocol.TextRange
	sitetest.Eventually(t, "the text was read", func() bool {
		u.Get(t, "/files/"+id.String()+"/text", &text)
		return text.State != protocol.TextPending
	})
	if text.State != protocol.TextDone || text.Text != "Tides rise\nTides fall\n" {
		t.Errorf("the text is %+v", text)
	}
	kept := s.wantCited(id)

	large, sum := wav(largeFile)
	largeID := s.sendReady(s.create("tides.wav", "audio/wav", len(large), "sha256", sum), large)
	if u.Get(t, "/files/"+largeID.String(), &file); file.SHA256 != sum || file.Size != largeFile {
		t.Errorf("the large file is %+v", file)
	}
	s.wantContent(largeID, large)

	s.wantUnreadable(s.wantRejected("eicar.txt", "text/plain", scannertest.EICAR, protocol.UploadMalware))
	s.wantUnreadable(s.wantRejected("tides.zip", "application/zip", sealedZip(t), protocol.UploadEncrypted))
	s.wantAgreement(2, 1)

	u.Do(t, http.MethodDelete, "/files/"+largeID.String(), nil).Want(t, http.StatusNoContent, nil)
	u.Do(t, http.MethodGet, "/files/"+largeID.String()+"/content", nil).Want(t, http.StatusNotFound, nil)
	sitetest.Eventually(t, "the object of the deleted file is gone", func() bool { return len(s.keys("f/")) == 1 })
	u.Do(t, http.MethodDelete, "/files/"+id.String(), nil).Want(t, http.StatusNoContent, nil)
	s.wantAgreement(1, 1) // a message still has this file
	s.wantContent(id, pdf)
	u.Do(t, http.MethodDelete, "/conversations/"+kept, nil).Want(t, http.StatusNoContent, nil)
	stores := s.stores()
	sitetest.Eventually(t, "the object of the deleted conversation's file is gone", func() bool { // a job sweeps every ten minutes
		return stores.Files.Sweep(t.Context()) == nil && len(s.keys("f/")) == 0
	})
	s.wantAgreement(0, 1)
}

// wantCited asks about a file, checks that the answer cites it, and returns the conversation.
func (s *fileSite) wantCited(id protocol.FileID) (conversation string) {
	s.t.Helper()
	conversation = s.user.NewConversation(s.t)
	s.user.Chat(s.t, sitetest.ChatBody{"input": []map[string]any{
		{"type": "text", "text": "When do the tides fall?"}, {"type": "file", "file_id": id},
	}}.In(conversation)).ReadToEnd(s.t)
	messages := s.user.Messages(s.t, conversation)
	answer := messages[len(messages)-1].Parts[0]
	if !strings.Contains(answer.Text, "Tides fall") || len(answer.Citations) != 1 || answer.Citations[0].FileID == nil || *answer.Citations[0].FileID != id || answer.Citations[0].Page != 2 {
		s.t.Errorf("the answer is %+v", answer)
	}
	return conversation
}

// wantRejected uploads a content that is rejected for a reason.
func (s *fileSite) wantRejected(name, media, content string, reason protocol.UploadFailureCode) *protocol.Upload {
	s.t.Helper()
	var u protocol.Upload
	s.send(s.create(name, media, len(content)), client.Content(content)).Want(s.t, http.StatusOK, &u)
	if u.State != protocol.UploadRejected || u.FileID != nil || u.Failure == nil || u.Failure.Code != reason {
		s.t.Errorf("%s: %+v, %+v", name, u, u.Failure)
	}
	return &u
}

// wantUnreadable checks that no route reads the content of a session, and that no message gets it.
func (s *fileSite) wantUnreadable(u *protocol.Upload) {
	s.t.Helper()
	id := protocol.DeriveFileID(u.UploadID)
	for _, path := range []string{"", "/content", "/text", "/thumbnail"} {
		s.user.Do(s.t, http.MethodGet, "/files/"+id.String()+path, nil).Want(s.t, http.StatusNotFound, nil)
	}
	for _, list := range []string{"/files?q=", "/files/picker?q="} {
		if found := s.user.Do(s.t, http.MethodGet, list+u.Filename, nil).Want(s.t, http.StatusOK, nil); strings.Contains(string(found.Body), id.String()) {
			s.t.Errorf("%s", found.Body)
		}
	}
	conversation := s.user.NewConversation(s.t)
	for _, attempt := range []sitetest.Attempt{
		{Method: http.MethodPost, Path: "/conversations/" + conversation + "/attachments", Body: map[string]any{"file_ids": []protocol.FileID{id}}},
		{Method: http.MethodPost, Path: "/chat", Body: sitetest.ChatBody{"input": []map[string]any{
			{"type": "text", "text": "What is in it?"}, {"type": "file", "file_id": id},
		}}.In(conversation)},
	} {
		refused := s.user.Do(s.t, attempt.Method, attempt.Path, attempt.Body).Want(s.t, http.StatusConflict, nil)
		if problem := refused.Problem(); !strings.Contains(string(problem.Current), string(protocol.FileMissing)) {
			s.t.Errorf("%s: %s", attempt.Path, refused.Body)
		}
	}
	if messages := s.user.Messages(s.t, conversation); len(messages) != 0 {
		s.t.Errorf("the conversation has %+v", messages)
	}
}

// gated is a content that a test sends in steps.
type gated struct {
	*io.PipeWriter
	response <-chan *sitetest.Response
}

// sendGated starts to send a content. Nothing is sent before the test writes it.
func (s *fileSite) sendGated(u *protocol.Upload) gated {
	s.t.Helper()
	body, feed := io.Pipe()
	done := make(chan *sitetest.Response, 1)
	ctx := sitetest.Within(s.t, sitetest.HangGuard)
	context.AfterFunc(ctx, func() { _ = feed.CloseWithError(ctx.Err()) }) // net/http waits for a body that it reads
	go func() {
		response, err := s.user.Request(ctx, http.MethodPut, u.Path()+"/content", client.Body{Reader: body, Size: u.Size}, "Content-Type", u.MediaType)
		if err != nil {
			response = &sitetest.Response{Response: &client.Response{Body: []byte(err.Error())}} // without a status
		}
		_ = body.CloseWithError(io.ErrClosedPipe) // ends writes
		done <- response
	}()
	return gated{feed, done}
}

// wantRefusedUnread checks that a content is refused with 503 before a byte of it was sent, and that its session waits for it.
func (s *fileSite) wantRefusedUnread(u *protocol.Upload) {
	s.t.Helper()
	refused := <-s.sendGated(u).response
	refused.WantProblem(s.t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	if refused.Header.Get("Retry-After") == "" {
		s.t.Error("there is no Retry-After")
	}
	if current := s.state(u); current.State != protocol.UploadPending || current.ReceivedBytes != 0 {
		s.t.Errorf("the session is %+v", current)
	}
}

func (s *fileSite) restartGateway() {
	s.t.Helper()
	if err := s.gateway.Restart(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fileSite) killGateway() {
	s.t.Helper()
	if err := s.gateway.Kill(); err != nil {
		s.t.Fatal(err)
	}
}

func TestWithoutClamdNoContentIsReadAndAScanIsRepeated(t *testing.T) {
	s := startFileSite(t)
	content := client.Content("The tides of " + sitetest.Canary + " rise.")
	for name, fault := range map[string]struct{ lose, repair func() }{
		"killed before an upload": {s.clamd.Kill, s.clamd.Restart},
		"frozen before an upload": {s.clamd.Pause, s.clamd.Resume},
	} {
		t.Run(name, func(t *testing.T) {
			u := s.create("tides.txt", "text/plain", len(content))
			over := s.user.Ledger.Plan()
			fault.lose()
			failed := time.Now()
			s.wantRefusedUnread(u)
			sitetest.AwaitDown(t, s.Internal, "malware_scanning", failed)
			fault.repair()
			sitetest.AwaitReady(t, s.Internal, time.Now())
			over()
			s.wantContent(s.sendReady(u, content), content)
		})
	}
	for name, lose := range map[string]struct{ first, then func() }{
		"killed while it receives the content": {first: s.clamd.Kill, then: func() {}},
		"killed while it scans the content":    {first: s.clamd.Pause, then: s.clamd.Kill},
	} {
		t.Run(name, func(t *testing.T) {
			u := s.create("tides.txt", "text/plain", len(content))
			sending := s.sendGated(u)
			_, _ = sending.Write(content[:9])
			s.await(u, protocol.UploadReceiving)
			before := strings.Count(s.process.Stderr(), noVerdict)
			lose.first()
			_, _ = sending.Write(content[9:])
			_ = sending.Close()
			s.await(u, protocol.UploadScanning)
			lose.then()
			sitetest.Eventually(t, "the scan was repeated", func() bool { return strings.Count(s.process.Stderr(), noVerdict) >= before+2 })
			if current := s.state(u); current.State != protocol.UploadScanning || current.FileID != nil || current.ReceivedBytes != u.Size {
				t.Errorf("the session is %+v", current)
			}
			s.wantUnreadable(u)
			s.clamd.Restart()
			ready := s.await(u, protocol.UploadReady)
			s.wantContent(*ready.FileID, content)
			var sent protocol.Upload
			response := <-sending.response
			response.Want(t, response.Status, &sent)
			if response.Status != http.StatusOK && (response.Status != http.StatusAccepted || sent.State != protocol.UploadScanning) { // after 10 s
				t.Errorf("the content gets %d %s", response.Status, response.Body)
			}
		})
	}
	s.wantAgreement(4, 0)
}

// as returns the site for another account.
func (s *fileSite) as(u *sitetest.User) *fileSite {
	other := *s
	other.user = u
	return &other
}

// clamd accepts a hundred connections (MaxQueue), and a content that is scanned while it is received has one of them for as
// long as its client takes.
func TestSlowUploadsDoNotOccupyTheScanner(t *testing.T) {
	const accounts, each = 4, 26
	s := startFileSite(t)
	content := client.Content("The tides of " + sitetest.Canary + " rise.")
	var last *protocol.Upload
	var slow gated
	for range accounts {
		other := s.as(sitetest.NewUser(t, s.Base))
		for range each {
			last = other.create("tides.txt", "text/plain", len(content))
			slow = other.sendGated(last)
			_, _ = slow.Write(content[:9])
			other.await(last, protocol.UploadReceiving)
		}
	}
	if status, checks := sitetest.Readiness(t, s.Internal); status != http.StatusOK || checks["malware_scanning"] != "ok" {
		t.Errorf("/ready: %d %v", status, checks)
	}
	s.wantContent(s.sendReady(s.create("tides.txt", "text/plain", len(content)), content), content)
	_, _ = slow.Write(content[9:])
	_ = slow.Close()
	var sent protocol.Upload
	if (<-slow.response).Want(t, http.StatusOK, &sent); sent.State != protocol.UploadReady {
		t.Errorf("%+v", sent)
	}
}

// noVerdict is logged for every scan without a verdict.
const noVerdict = "the malware scanner gave no verdict"

func TestWithoutTheObjectStoreNothingIsHalfReceivedOrHalfSent(t *testing.T) {
	s := startFileSite(t)
	large, sum := wav(largeFile)
	content := client.Content("The tides of " + sitetest.Canary + " rise.")
	t.Run("killed before an upload", func(t *testing.T) {
		u := s.create("tides.txt", "text/plain", len(content))
		over := s.user.Ledger.Plan()
		s.killGateway()
		failed := time.Now()
		s.wantRefusedUnread(u)
		sitetest.AwaitDown(t, s.Internal, "object_storage", failed)
		s.restartGateway()
		sitetest.AwaitReady(t, s.Internal, time.Now())
		over()
		s.wantContent(s.sendReady(u, content), content)
	})
	t.Run("killed while it receives a content", func(t *testing.T) {
		u := s.create("tides.wav", "audio/wav", len(large), "sha256", sum)
		over := s.user.Ledger.Plan()
		sending := s.sendGated(u)
		if _, err := sending.Write(large[:someParts]); err != nil {
			t.Fatal(err)
		}
		sitetest.Eventually(t, "the store has a part", func() bool {
			parts, err := s.gateway.IncompleteUploads(t.Context(), filesBucket)
			return err == nil && len(parts) == 1
		})
		s.killGateway()
		go func() { _, _ = sending.Write(large[someParts:]) }() // ends with the response
		refused := <-sending.response
		refused.WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
		if current := s.state(u); current.State != protocol.UploadPending || current.ReceivedBytes != 0 || current.Failure == nil || current.Failure.Code != protocol.UploadStoreUnavailable {
			t.Errorf("the session is %+v, %+v", current, current.Failure)
		}
		s.restartGateway()
		sitetest.AwaitReady(t, s.Internal, time.Now())
		over()
		s.wantContent(s.sendReady(u, large), large)
		if left, err := s.gateway.IncompleteUploads(t.Context(), filesBucket); err != nil || len(left) != 1 { // a lifecycle rule removes it
			t.Errorf("the multipart uploads %v are left, %v", left, err)
		}
	})
	t.Run("the service is killed while it receives a content", func(t *testing.T) {
		u := s.create("tides.wav", "audio/wav", len(large), "sha256", sum)
		over := s.user.Ledger.Plan()
		sending := s.sendGated(u)
		if _, err := sending.Write(large[:someParts]); err != nil {
			t.Fatal(err)
		}
		s.process.Kill()
		_ = sending.CloseWithError(io.ErrUnexpectedEOF)
		if response := <-sending.response; response.Status != 0 {
			t.Errorf("the content gets %d", response.Status)
		}
		s.process = s.Start()
		if current := s.await(u, protocol.UploadPending); current.Failure == nil || current.Failure.Code != protocol.UploadRestarted {
			t.Errorf("the session is %+v, %+v", current, current.Failure)
		}
		over()
		s.wantContent(s.sendReady(u, large), large)
	})
	t.Run("killed before a clean content is published", func(t *testing.T) {
		u := s.create("tides.txt", "text/plain", len(content))
		sending := s.sendGated(u)
		_, _ = sending.Write(content[:9])
		s.await(u, protocol.UploadReceiving)
		s.clamd.Pause()
		_, _ = sending.Write(content[9:])
		_ = sending.Close()
		s.await(u, protocol.UploadScanning)
		s.killGateway()
		s.clamd.Resume()
		s.process.AwaitLog("clean content was not published")
		if current := s.state(u); current.State != protocol.UploadScanning {
			t.Errorf("the session is %+v", current)
		}
		s.restartGateway()
		s.wantContent(*s.await(u, protocol.UploadReady).FileID, content)
		<-sending.response
	})
	t.Run("killed before and during a download", func(t *testing.T) {
		id := s.sendReady(s.create("tides.wav", "audio/wav", len(large)), large)
		path := "/files/" + id.String() + "/content"
		over := s.user.Ledger.Plan()
		download, err := s.user.Open(sitetest.Within(t, sitetest.HangGuard), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = download.Body.Close() }()
		s.killGateway()
		if n, err := io.Copy(io.Discard, download.Body); download.StatusCode != http.StatusOK || download.ContentLength != largeFile || !errors.Is(err, io.ErrUnexpectedEOF) || n >= largeFile {
			t.Errorf("%d with %d bytes of %d, %v", download.StatusCode, n, download.ContentLength, err)
		}
		refused := s.user.Do(t, http.MethodGet, path, nil, "Range", "bytes=0-9")
		refused.WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
		if refused.Header.Get("Retry-After") == "" || refused.Header.Get("Content-Range") != "" || refused.Header.Get("Content-Disposition") != "" {
			t.Errorf("the header is %v", refused.Header)
		}
		s.restartGateway()
		sitetest.AwaitReady(t, s.Internal, time.Now())
		over()
		s.wantContent(id, large)
	})
	s.wantAgreement(5, 0)
}

// Each operation of an upload and of a deletion is refused or executed without a response, first once, which nobody notices, and then
// until the store is repaired. Whatever was executed, rows and objects agree in the end.
func TestAnObjectStoreThatLosesResponsesLosesNoFile(t *testing.T) {
	t.Parallel()
	var faulty *s3test.Faulty
	s := startFileSiteThrough(t, func(gateway *s3test.Gateway) string {
		faulty = s3test.NewFaulty(t, gateway)
		return faulty.Endpoint
	})
	small := client.Content("The tides of " + sitetest.Canary + " rise.")
	large, _ := wav(largeFile)
	files := 0
	for _, c := range []struct {
		name, method string
		content      client.Content
		publishes    bool // the content is received, and published when the store is repaired
		chosen       func(r *http.Request) bool
	}{
		{"receiving", http.MethodPut, small, false, func(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") == "" }},
		{"completing", http.MethodPost, large, false, func(r *http.Request) bool { return r.URL.Query().Has("uploadId") }},
		{"publishing", http.MethodPut, small, true, func(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") != "" }},
		{"removing", http.MethodDelete, small, true, func(*http.Request) bool { return true }},
	} {
		for kind, fault := range map[string]s3test.Fault{"refused": s3test.Refused, "lost": s3test.Lost} {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				inject := func(most int64) (injected *atomic.Int64) {
					injected = &atomic.Int64{}
					faulty.Inject(func(r *http.Request) s3test.Fault {
						if r.Method == c.method && c.chosen(r) && injected.Add(1) <= most {
							return fault
						}
						return 0
					})
					return injected
				}
				name, media := "tides.txt", "text/plain"
				if len(c.content) == largeFile {
					name, media = "tides.wav", "audio/wav"
				}
				u := s.create(name, media, len(c.content))
				once := inject(1)
				s.wantContent(s.sendReady(u, c.content), c.content)
				sitetest.Eventually(t, "a fault", func() bool { return once.Load() > 0 })

				u = s.create(name, media, len(c.content))
				over := s.user.Ledger.Plan()
				always := inject(math.MaxInt64)
				sending := s.sendGated(u)
				go func() { _, _ = sending.Write(c.content); _ = sending.Close() }()
				if c.publishes {
					sitetest.Eventually(t, "several faults", func() bool { return always.Load() > 2 })
				} else {
					(<-sending.response).WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
					if current := s.state(u); current.State != protocol.UploadPending || current.Failure == nil || current.Failure.Code != protocol.UploadStoreUnavailable {
						t.Errorf("the session is %+v, %+v", current, current.Failure)
					}
				}
				faulty.Inject(nil)
				over()
				if !c.publishes {
					s.wantContent(s.sendReady(u, c.content), c.content)
				} else {
					s.wantContent(*s.await(u, protocol.UploadReady).FileID, c.content)
					<-sending.response
				}
				files += 2
			})
		}
	}
	s.wantAgreement(files, 0)
	if !strings.Contains(s.process.Stderr(), `"logger":"library"`) {
		t.Error("what the library of the store logs is not in the log")
	}
	for line := range strings.Lines(s.process.Stderr()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has the line %q", line)
		}
	}
}
