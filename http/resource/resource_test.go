package resource

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"turnstone/http/auth"
	"turnstone/http/response"
	"turnstone/protocol"
)

// testKeys returns keys derived from a secret.
func testKeys(t testing.TB) *auth.Keys {
	t.Helper()
	keys, err := auth.NewKeys([][]byte{bytes.Repeat([]byte("k"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// callerOfSession returns a caller who is signed in with a session.
func callerOfSession(account protocol.AccountID, session protocol.SessionID) *auth.Caller {
	return &auth.Caller{Account: protocol.Account{AccountID: account}, SessionID: session}
}

func TestAConfirmationIsValidOnlyForWhatTheClientWasShown(t *testing.T) {
	now := time.Now()
	c := Confirmations{testKeys(t), func() time.Time { return now }}
	account, session := protocol.NewAccountID(), protocol.NewSessionID()
	mine := callerOfSession(account, session)
	counts := map[string]int{"messages": 3, "turns": 1}
	token := func(err error) string {
		t.Helper()
		p := response.ProblemOf(err)
		var current confirmationCurrent
		if p.Code != protocol.CodeConfirmation || json.Unmarshal(p.Current, &current) != nil || current.Confirmation.WillDelete["messages"] == 0 {
			t.Fatalf("%+v %s", p, p.Current)
		}
		return current.Confirmation.Token
	}
	issued := token(c.Confirm(mine, "", "conv_1", 7, counts, Irreversible))
	if err := c.Confirm(mine, issued, "conv_1", 7, counts, Irreversible); err != nil {
		t.Errorf("the token that was issued: %v", err)
	}
	token(c.Confirm(mine, issued+"A", "conv_1", 7, counts, Irreversible))
	token(c.Confirm(mine, issued, "conv_2", 7, counts, Irreversible))
	token(c.Confirm(mine, issued, "conv_1", 8, counts, Irreversible))
	token(c.Confirm(mine, issued, "conv_1", 7, map[string]int{"messages": 4, "turns": 1}, Irreversible))
	token(c.Confirm(callerOfSession(account, protocol.NewSessionID()), issued, "conv_1", 7, counts, Irreversible))
	token(c.Confirm(callerOfSession(protocol.NewAccountID(), session), issued, "conv_1", 7, counts, Irreversible))
	now = now.Add(confirmationLifetime + time.Second)
	token(c.Confirm(mine, issued, "conv_1", 7, counts, Irreversible))
}

func TestACursorOpensForItsAccountAndListOnly(t *testing.T) {
	keys := testKeys(t)
	type position struct{ N int }
	mine := callerOfSession(protocol.NewAccountID(), protocol.NewSessionID())
	text := SealCursor(mine, keys, "list a", &position{7})
	if at, err := OpenCursor[position](mine, keys, *text, "list a"); err != nil || at.N != 7 {
		t.Fatalf("%v %v", at, err)
	}
	if again := SealCursor(mine, keys, "list a", &position{7}); *again == *text {
		t.Error("two cursors of equal positions are equal")
	}
	for name, open := range map[string]func() (*position, error){
		"another list": func() (*position, error) {
			return OpenCursor[position](mine, keys, *text, "list b")
		},
		"another account": func() (*position, error) {
			return OpenCursor[position](callerOfSession(protocol.NewAccountID(), protocol.SessionID{}), keys, *text, "list a")
		},
		"truncated": func() (*position, error) {
			return OpenCursor[position](mine, keys, (*text)[:20], "list a")
		},
		"garbage": func() (*position, error) {
			return OpenCursor[position](mine, keys, "garbage", "list a")
		},
	} {
		if at, err := open(); protocol.CodeOf(err) != protocol.CodeInvalid || at != nil {
			t.Errorf("%s: %v %v", name, at, err)
		}
	}
}
