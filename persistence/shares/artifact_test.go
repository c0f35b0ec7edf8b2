package shares_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnstone/persistence/artifacts"
	"turnstone/persistence/audit"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// write creates an artifact of a conversation.
func (f *fixture) write(conversation protocol.ConversationID, title, content string) *protocol.Artifact {
	f.Helper()
	made, err := f.DB.Artifacts.WriteByCall(f.Context(), &turnlog.ArtifactWrite{
		Scope:  turnlog.Scope{AccountID: f.Account, ConversationID: conversation},
		TurnID: protocol.NewTurnID(), ToolID: protocol.DeriveToolID(protocol.NewTurnID(), 1),
		Kind: protocol.ArtifactCode, Language: "go", Title: title, Content: &content,
	})
	f.Must(err)
	return made
}

func (f *fixture) edit(a *protocol.Artifact, title, content string) *protocol.Artifact {
	f.Helper()
	changed, err := f.DB.Artifacts.Put(f.Context(), f.Account, &artifacts.Change{ArtifactID: a.ArtifactID, Version: &a.Version}, title, content)
	f.Must(err)
	return changed
}

// shareArtifacts shares the conversation with artifacts.
func (f *fixture) shareArtifacts(token string, ids ...protocol.ArtifactID) (*protocol.Share, error) {
	request := f.request(token)
	request.ArtifactIDs = ids
	return f.DB.Shares.Create(f.Context(), f.Account, request)
}

// wantArtifact checks what a share shows of an artifact.
func (f *fixture) wantArtifact(token string, n int, title, content string) {
	f.Helper()
	hash, sum := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(content))
	opened, err := f.DB.Shares.OpenArtifact(f.Context(), hash[:], n)
	f.Must(err)
	if opened.AccountID != f.Account || opened.N != n || opened.Kind != protocol.ArtifactCode || *opened.Language != "go" || opened.Title != title || opened.SHA256 != hex.EncodeToString(sum[:]) {
		f.Errorf("%+v, want %s", opened, title)
	}
	if got, err := f.DB.Shares.ArtifactContent(f.Context(), opened); err != nil || got != content {
		f.Errorf("%q, %v, want %q", got, err, content)
	}
}

func (f *fixture) wantNoArtifact(token string, n int) {
	f.Helper()
	hash := sha256.Sum256([]byte(token))
	_, err := f.DB.Shares.OpenArtifact(f.Context(), hash[:], n)
	storetest.WantCode(f, err, protocol.CodeNotFound)
}

func TestAShareKeepsTheVersionsThatItsArtifactsHad(t *testing.T) {
	f := newFixture(t)
	first, second := f.write(f.id, "Tides", "one"), f.write(f.id, "Winds", "two")
	first = f.edit(first, "High tides", "three")
	share, err := f.shareArtifacts("a", second.ArtifactID, first.ArtifactID)
	f.Must(err)
	if want := []protocol.ArtifactID{second.ArtifactID, first.ArtifactID}; !slices.Equal(share.ArtifactIDs, want) {
		t.Errorf("%v, want %v", share.ArtifactIDs, want)
	}
	listed, _, err := f.DB.Shares.List(t.Context(), f.Account, nil, 20)
	if err != nil || !slices.Equal(listed[0].ArtifactIDs, share.ArtifactIDs) {
		t.Errorf("%+v, %v", listed, err)
	}
	later := f.edit(first, "Low tides", "four")
	_, err = f.shareArtifacts("b", first.ArtifactID)
	f.Must(err)
	later, err = f.DB.Artifacts.Restore(t.Context(), f.Account, &artifacts.Change{ArtifactID: later.ArtifactID, Version: &later.Version}, 1)
	f.Must(err)
	f.Database.Admin(t, `delete from artifact_versions where version < $1`, later.Version) // as if there were 200 newer ones

	f.wantArtifact("a", 1, "Winds", "two")
	f.wantArtifact("a", 2, "High tides", "three")
	f.wantArtifact("b", 1, "Low tides", "four")
	for token, n := range map[string]int{"a": 3, "b": 2, "c": 1} {
		f.wantNoArtifact(token, n)
	}
	opened, err := f.open("a")
	f.Must(err)
	golang := "go"
	want := protocol.SharedArtifact{N: 2, Kind: protocol.ArtifactCode, Title: "High tides", Language: &golang, Version: 2, Bytes: 5}
	if len(opened.Artifacts) != 2 || opened.Artifacts[0].N != 1 || *opened.Artifacts[1].Language != golang {
		t.Fatalf("%+v", opened.Artifacts)
	}
	if opened.Artifacts[1].Language = &golang; opened.Artifacts[1] != want {
		t.Errorf("%+v, want %+v", opened.Artifacts[1], want)
	}
}

// A message names an artifact of the share by its number, and no other one.
func TestTheMessagesOfAShareReferToItsArtifacts(t *testing.T) {
	f := newFixture(t)
	shown, hidden := f.write(f.id, "Tides", "one"), f.write(f.id, "Winds", "two")
	f.Database.Admin(t, `update messages set parts = (select json_agg(part) from (
			select value as part from json_array_elements(parts)
			union all select json_build_object('type', 'artifact', 'part_id', $2::text, 'artifact_id', id, 'version', 1, 'kind', 'code', 'title', 'x') from unnest($3::text[]) id) p)
		where message_id = $1`, f.path(nil)[1], protocol.NewPartID().String(), []string{hidden.ArtifactID.String(), shown.ArtifactID.String()})
	_, err := f.shareArtifacts("a", shown.ArtifactID)
	f.Must(err)
	f.share("b")
	for token, want := range map[string][]int{"a": {1}, "b": nil} {
		opened, err := f.open(token)
		f.Must(err)
		var numbers []int
		for _, message := range opened.Messages {
			for _, part := range message.Parts {
				if part.Type == protocol.PartArtifact {
					numbers = append(numbers, part.N)
				}
			}
		}
		if !slices.Equal(numbers, want) {
			t.Errorf("%s: the messages refer to %v, want %v", token, numbers, want)
		}
	}
}

func TestOnlyArtifactsOfTheConversationCanBeShared(t *testing.T) {
	f := newFixture(t)
	own := f.write(f.id, "Own", "x")
	other := f.write(storetest.NewConversation(t, f.DB, f.Account, "Other").ConversationID, "Other", "x")
	account := f.Account
	f.Account = f.OtherAccount()
	foreign := f.write(storetest.NewConversation(t, f.DB, f.Account, "Foreign").ConversationID, "Foreign", "x")
	f.Account = account
	for what, id := range map[string]protocol.ArtifactID{"of another conversation": other.ArtifactID, "of another account": foreign.ArtifactID, "unknown": protocol.NewArtifactID()} {
		if _, err := f.shareArtifacts(what, own.ArtifactID, id); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := f.rows(); n != 0 {
		t.Errorf("%d rows are stored", n)
	}
}

func TestTheArtifactsOfAShareCountInItsSize(t *testing.T) {
	f := newFixture(t)
	var ids []protocol.ArtifactID
	for i := range protocol.MaxSharedBytes / protocol.MaxArtifactBytes {
		ids = append(ids, f.write(f.id, fmt.Sprint(i), strings.Repeat("x", protocol.MaxArtifactBytes)).ArtifactID)
	}
	_, err := f.shareArtifacts("a", ids...)
	storetest.WantCode(t, err, protocol.CodeInvalid)
	if !strings.Contains(err.Error(), "8 MiB together") {
		t.Errorf("%v", err)
	}
	if n := f.rows(); n != 0 {
		t.Errorf("%d rows are stored", n)
	}
	_, err = f.shareArtifacts("b", ids[1:]...)
	f.Must(err)
	f.wantArtifact("b", len(ids)-1, fmt.Sprint(len(ids)-1), strings.Repeat("x", protocol.MaxArtifactBytes))
}

func TestThePreviewListsTheArtifactsOfTheConversation(t *testing.T) {
	f := newFixture(t)
	f.write(storetest.NewConversation(t, f.DB, f.Account, "Other").ConversationID, "Other", "x")
	older := f.write(f.id, "Tides", "one")
	f.edit(older, "High tides", "three")
	newer := f.write(f.id, "Winds", "two")
	preview, next, err := f.DB.Shares.Preview(t.Context(), f.Account, f.id, nil, nil, 1)
	f.Must(err)
	want := []protocol.ShareableArtifact{
		{ArtifactID: newer.ArtifactID, Kind: protocol.ArtifactCode, Title: "Winds", Version: 1, Bytes: 3},
		{ArtifactID: older.ArtifactID, Kind: protocol.ArtifactCode, Title: "High tides", Version: 2, Bytes: 5},
	}
	if !slices.Equal(preview.Artifacts, want) || preview.ArtifactCount != 2 {
		t.Errorf("%+v, %d", preview.Artifacts, preview.ArtifactCount)
	}
	rest, _, err := f.DB.Shares.Preview(t.Context(), f.Account, f.id, nil, next, 20)
	if err != nil || len(rest.Artifacts) != 0 || rest.ArtifactCount != 0 {
		t.Errorf("%+v, %v", rest, err)
	}
	f.Database.Admin(t, `insert into artifacts (account_id, artifact_id, conversation_id, kind, title, version, created_by, bytes, sha256)
		select $1, gen_random_uuid(), $2, 'code', 'x', 1, 'model', 0, sha256('') from generate_series(1, $3::int)`, f.Account, f.id, protocol.MaxShareableArtifacts)
	preview, _, err = f.DB.Shares.Preview(t.Context(), f.Account, f.id, nil, nil, 1)
	if err != nil || len(preview.Artifacts) != protocol.MaxShareableArtifacts || preview.ArtifactCount != protocol.MaxShareableArtifacts+2 {
		t.Errorf("%d artifacts are listed, of %d (%v)", len(preview.Artifacts), preview.ArtifactCount, err)
	}
}

func TestRevokingAShareErasesItsArtifacts(t *testing.T) {
	f := newFixture(t)
	share, err := f.shareArtifacts("a", f.write(f.id, "Tides", "one").ArtifactID)
	f.Must(err)
	hash := sha256.Sum256([]byte("a"))
	opened, err := f.DB.Shares.OpenArtifact(t.Context(), hash[:], 1)
	f.Must(err)
	f.Must(f.DB.Shares.Revoke(t.Context(), f.Account, share.ShareID, protocol.NewSessionID(), audit.Requester{}))
	f.wantNoArtifact("a", 1)
	_, err = f.DB.Shares.ArtifactContent(t.Context(), opened) // found before the share ended
	storetest.WantCode(t, err, protocol.CodeNotFound)
	if n := f.rows(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
