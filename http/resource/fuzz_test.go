package resource

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnstone/http/response"
	"turnstone/protocol"
)

// FuzzVersionHeader checks that If-Match accepts only one spelling of each version, and no weak one.
func FuzzVersionHeader(f *testing.F) {
	for _, text := range []string{`"v3"`, `W/"v3"`, `"v03"`, `"v-1"`, `v3`, `"v3`, `*`, `"v3", "v4"`, `W/W/"v3"`, `"v9223372036854775808"`, `"v+3"`, "\"v3\"\x00"} {
		f.Add(text, int64(3), true)
	}
	f.Fuzz(func(t *testing.T, text string, inBody int64, both bool) {
		var body *int64
		if both {
			body = &inBody
		}
		version, err := IfMatch{text}.Version(body)
		switch {
		case text == "*" && err == nil:
			if version != body {
				t.Errorf("any version: %v", version)
			}
		case text == "" && err == nil:
			if version != body {
				t.Errorf("without a header: %v (%v)", version, err)
			}
		case err != nil:
			if protocol.CodeOf(err) != protocol.CodeInvalid {
				t.Errorf("%q: %v", text, err)
			}
		case text != response.ETagOf(*version) || both && *version != inBody:
			t.Errorf("%q and %d give the version %d", text, inBody, *version)
		}
	})
}

// FuzzConfirmation checks that a token confirms only the subject for which it was issued, and only until it expires.
func FuzzConfirmation(f *testing.F) {
	f.Add("", []byte("subject"), 0)
	f.Add(strings.Repeat("A", 54), []byte{}, 3)
	f.Add("garbage==", []byte("x"), -7)
	c := Confirmations{testKeys(f), time.Now}
	f.Fuzz(func(t *testing.T, token string, subject []byte, flip int) {
		if c.confirmed(token, subject) {
			t.Errorf("%q confirms %q", token, subject)
		}
		made := c.confirmationToken(0, c.Now().Add(confirmationLifetime).Unix(), subject)
		if !c.confirmed(made, subject) || c.confirmed(made, append(bytes.Clone(subject), 0)) {
			t.Errorf("a token of %q does not confirm it, or confirms another subject", subject)
		}
		if c.confirmed(c.confirmationToken(0, c.Now().Unix()-1, subject), subject) {
			t.Error("an expired token confirms")
		}
		raw, _ := base64.RawURLEncoding.DecodeString(made)
		raw[uint(flip)%uint(len(raw))] ^= 1
		if c.confirmed(base64.RawURLEncoding.EncodeToString(raw), subject) {
			t.Errorf("a token with a bit changed confirms %q", subject)
		}
	})
}

// position is a position in a list of messages.
type position struct {
	Branch protocol.BranchID
	Depth  int
	Newer  bool
}

// FuzzCursor checks that a cursor opens only for the account and the list for which it was created, and that no other
// text opens.
func FuzzCursor(f *testing.F) {
	f.Add("", "messages", 0, 3, true)
	f.Add("garbage", "", 5, -1, false)
	f.Add(strings.Repeat("A", 16), "a", 1, 2, false)
	f.Add(strings.Repeat("A", 1023), "a", 1, 2, false)
	f.Add("a=b+/", "\x00", 1<<30, 9, true)
	keys := testKeys(f)
	account, other := protocol.NewAccountID(), protocol.NewAccountID()
	f.Fuzz(func(t *testing.T, text, scope string, depth, flip int, newer bool) {
		mine, theirs := callerOfSession(account, protocol.SessionID{}), callerOfSession(other, protocol.SessionID{})
		if at, err := OpenCursor[position](mine, keys, text, scope); text != "" && (at != nil || protocol.CodeOf(err) != protocol.CodeInvalid) {
			t.Errorf("%q opens to %v (%v)", text, at, err)
		}
		want := position{Branch: protocol.BranchID(account), Depth: depth, Newer: newer}
		sealed := *SealCursor(mine, keys, scope, &want)
		if at, err := OpenCursor[position](mine, keys, sealed, scope); err != nil || *at != want {
			t.Errorf("%v came back as %v (%v)", want, at, err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(sealed)
		if err != nil {
			t.Fatal(err)
		}
		raw[uint(flip)%uint(len(raw))] ^= 1 << (uint(depth) % 8)
		for name, open := range map[string]func() (*position, error){
			"of another account": func() (*position, error) {
				return OpenCursor[position](theirs, keys, sealed, scope)
			},
			"of another list": func() (*position, error) {
				return OpenCursor[position](mine, keys, sealed, scope+"x")
			},
			"with a bit changed": func() (*position, error) {
				return OpenCursor[position](mine, keys, base64.RawURLEncoding.EncodeToString(raw), scope)
			},
			"with text appended": func() (*position, error) {
				return OpenCursor[position](mine, keys, sealed+"A", scope)
			},
		} {
			if at, err := open(); at != nil || protocol.CodeOf(err) != protocol.CodeInvalid {
				t.Errorf("a cursor %s opens to %v (%v)", name, at, err)
			}
		}
	})
}

// FuzzResume checks that Last-Event-ID and after accept only whole numbers from 0, each in one spelling.
func FuzzResume(f *testing.F) {
	for _, text := range []string{"", "0", "7", "007", "-1", "+1", " 1", "1 ", "9223372036854775807", "9223372036854775808", "1e3", "٣", "0x1", "\x00"} {
		f.Add(text, "5")
		f.Add("", text)
	}
	f.Fuzz(func(t *testing.T, header, query string) {
		cursor, err := (&ResumeInput{LastEventID: header, After: query}).Position()
		text := header
		if text == "" {
			text = query
		}
		switch {
		case err != nil:
			if protocol.CodeOf(err) != protocol.CodeInvalid {
				t.Errorf("%q: %v", text, err)
			}
		case text == "" && cursor == 0:
		case cursor < 0 || strconv.FormatInt(cursor, 10) != text:
			t.Errorf("%q is read as %d", text, cursor)
		}
	})
}
