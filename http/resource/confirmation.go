package resource

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"turnstone/http/auth"
	"turnstone/protocol"
)

// Confirmations issue and check the tokens of irreversible requests.
type Confirmations struct {
	Keys *auth.Keys
	Now  func() time.Time
}

// confirmationLifetime is the time for which the token of a confirmation is valid.
const confirmationLifetime = 10 * time.Minute

// Irreversible is the consequence of an action that cannot be undone.
const Irreversible = "This cannot be undone."

// confirmationCurrent is the field current of a 409 confirmation_required.
type confirmationCurrent struct {
	Confirmation protocol.Confirmation `json:"confirmation"`
}

// Confirm accepts an irreversible request that has the token of an earlier 409 response to it. The token is valid for
// the account, the session, the resource, its version and the counts of what would be deleted. If any of these has
// changed since, the response is another 409, with a new token and the current counts. consequence is a sentence about what
// happens then.
func (c *Confirmations) Confirm(caller *auth.Caller, token, resource string, version int64, willDelete map[string]int, consequence string) error {
	subject, err := json.Marshal([]any{caller.AccountID, caller.SessionID, resource, version, willDelete}) // the encoding sorts the counts
	if err != nil {
		return err
	}
	if c.confirmed(token, subject) {
		return nil
	}
	expires := c.Now().Add(confirmationLifetime)
	return protocol.Conflict(protocol.CodeConfirmation, confirmationCurrent{protocol.Confirmation{
		Token: c.confirmationToken(0, expires.Unix(), subject), ExpiresAt: expires, WillDelete: willDelete,
	}}, consequence+" To confirm, repeat the request with X-Confirm set to "+strconv.Quote("token")+" of current.confirmation.")
}

func (c *Confirmations) confirmed(token string, subject []byte) bool {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	const stamp = 8
	if err != nil || len(raw) <= stamp {
		return false
	}
	expires := int64(binary.BigEndian.Uint64(raw[:stamp])) // if we did not write it, the HMAC differs
	if c.Now().Unix() > expires {
		return false
	}
	for version := range c.Keys.Versions() {
		if hmac.Equal([]byte(token), []byte(c.confirmationToken(version, expires, subject))) {
			return true
		}
	}
	return false
}

func (c *Confirmations) confirmationToken(version int, expires int64, subject []byte) string {
	stamp := binary.BigEndian.AppendUint64(nil, uint64(expires)) // seconds of our own clock
	return base64.RawURLEncoding.EncodeToString(append(stamp, c.Keys.ConfirmationMAC(version, stamp, subject)...))
}
