package http

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"turnstone/protocol"
)

// confirmationLife is how long somebody may think about a deletion.
const confirmationLife = 10 * time.Minute

// confirmationCurrent is the current of a 409 confirmation_required.
type confirmationCurrent struct {
	Confirmation protocol.Confirmation `json:"confirmation"`
}

// confirm lets a request that cannot be undone pass when it repeats the token of its own refusal. The token holds for the
// account, the session, the resource, its version and what would be deleted: when any of it has changed since, the client
// is asked again, and told what stands now.
func (s *Server) confirm(ctx context.Context, token, resource string, version int64, willDelete map[string]int) error {
	caller := callerOf(ctx)
	subject, err := json.Marshal([]any{caller.AccountID, caller.SessionID, resource, version, willDelete}) // sorts the counts
	if err != nil {
		return err
	}
	if s.confirmed(token, subject) {
		return nil
	}
	expires := s.now().Add(confirmationLife)
	return protocol.Conflict(protocol.CodeConfirmation, confirmationCurrent{protocol.Confirmation{
		Token: s.confirmationToken(0, expires.Unix(), subject), ExpiresAt: expires, WillDelete: willDelete,
	}}, "This cannot be undone. Repeat it with X-Confirm: "+strconv.Quote("token")+" of current.confirmation.")
}

func (s *Server) confirmed(token string, subject []byte) bool {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	const stamp = 8
	if err != nil || len(raw) <= stamp {
		return false
	}
	expires := int64(binary.BigEndian.Uint64(raw[:stamp])) //nolint:gosec // what we wrote, or the HMAC differs
	if s.now().Unix() > expires {
		return false
	}
	for version := range s.keys.versions() {
		if hmac.Equal([]byte(token), []byte(s.confirmationToken(version, expires, subject))) {
			return true
		}
	}
	return false
}

func (s *Server) confirmationToken(version int, expires int64, subject []byte) string {
	stamp := binary.BigEndian.AppendUint64(nil, uint64(expires)) //nolint:gosec // seconds of our own clock
	return encode(append(stamp, sum(s.keys.live[version].confirms, []byte("confirm1"), stamp, subject)...))
}
