package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"turnstone/persistence/mails"
	"turnstone/protocol"
)

// Recovery does what the owner of an account proves by the mails that reach its address: setting a new password, and
// confirming a new address.
type Recovery struct {
	*Service
	store RecoveryStore
}

// A token in the link of a mail is "mt1_" and base64url( account 16 | mail 16 | HMAC-SHA-256 32 ), with sizes in bytes. It is
// not stored: a row states only that the mail exists and that its link can be used. A reader of the table cannot make a token
// without the key, and neither can a writer.
const mailRefBytes = 32

// MailToken returns the token in the link of a mail.
func (k *Keys) MailToken(mail mails.Ref) string {
	content := append(mail.AccountID[:], mail.MailID[:]...)
	return protocol.MailTokenPrefix + encode(append(content, k.mailMAC(0, content)...))
}

// openMailToken returns the mail whose link has a token; ok is false for a text that is not a token.
func (k *Keys) openMailToken(token string) (mail mails.Ref, ok bool) {
	text, prefixed := strings.CutPrefix(token, protocol.MailTokenPrefix)
	content, err := base64.RawURLEncoding.DecodeString(text)
	if !prefixed || err != nil || len(content) != mailRefBytes+sha256.Size {
		return mail, false
	}
	for version := range k.Versions() {
		if hmac.Equal(content[mailRefBytes:], k.mailMAC(version, content[:mailRefBytes])) {
			copy(mail.AccountID[:], content)
			copy(mail.MailID[:], content[len(mail.AccountID):])
			return mail, true
		}
	}
	return mail, false
}

func (k *Keys) mailMAC(version int, content []byte) []byte {
	return hmacSum(k.live[version].mails, []byte("mail1"), content)
}

// errLink is the error for a link that is unknown, used, withdrawn or expired: the text does not say which.
func errLink() error { return protocol.Invalid("body.token", "is not valid, was used, or has expired") }

// Forgot requests a mail with a link to set a new password, for the account that signs in with an address. Neither its result nor
// its duration reveals whether there is one.
func (r *Recovery) Forgot(ctx context.Context, req *Request, email string) error {
	if err := r.checkConfigured(); err != nil {
		return err
	}
	email = strings.TrimSpace(email)
	if err := checkEmail("body.email", email); err != nil {
		return err
	}
	if err := r.limits.Draw(ctx, BucketSignIn, networkKey(req.Address)+":forgot"); err != nil {
		return err
	}
	name := EmailKey(email)
	if err := r.drawReset(ctx, req, name); err != nil {
		return err
	}
	return r.store.RequestReset(ctx, name, r.now(), req.Requester())
}

func (r *Recovery) checkConfigured() error {
	if r.config.MailConfigured {
		return nil
	}
	return protocol.Errorf(protocol.CodeMailNotConfigured, "This service sends no email. Ask the administrator for help.")
}

// drawReset draws for a link to set a new password, which strangers can request: all of them together can send only a few to
// one address. Whoever finds the limit used up has a recent mail in the mailbox. A device that has signed in with the address
// before draws from its own limit.
func (r *Recovery) drawReset(ctx context.Context, req *Request, name string) error {
	by := "anyone"
	if req.Device.knows(r.keys, name) {
		by = req.Device.key()
	}
	return r.limits.Draw(ctx, BucketSignIn, by+":"+mailDigest(name))
}

// drawConfirmation draws for a link that confirms an address: from the limit of the account, and from that of the address. No
// device has a limit of its own, because an address that is to be confirmed may be anyone's.
func (r *Recovery) drawConfirmation(ctx context.Context, req *Request, name string) error {
	for _, by := range []string{req.Caller.AccountID.String(), mailDigest(name)} {
		if err := r.limits.Draw(ctx, BucketSignIn, "confirm:"+by); err != nil {
			return err
		}
	}
	return nil
}

// mailDigest is the key of an address in a limit; see signInLimits.draw.
func mailDigest(name string) string {
	digest := sha256.Sum256([]byte("mail " + name))
	const digestBytes = 16
	return hex.EncodeToString(digest[:digestBytes])
}

// Reset sets a new password with the token of a mail. It ends every session of the account and does not sign the caller in.
func (r *Recovery) Reset(ctx context.Context, req *Request, token, password string) error {
	link, ok := r.keys.openMailToken(token)
	if !ok {
		return errLink()
	}
	account, err := r.store.FindReset(ctx, link, r.now())
	if err != nil {
		return linkError(err)
	}
	if err := checkPassword("body.password", password, account.Email); err != nil {
		return err
	}
	hash, err := r.passwords.hash(ctx, hashCaller{key: networkKey(req.Address)}, password)
	if err != nil {
		return err
	}
	return linkError(r.store.ResetPassword(ctx, link, hash, r.now(), req.Requester()))
}

func linkError(err error) error {
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return errLink()
	}
	return err
}

// ConfirmEmail changes the address of an account with the token of a mail, and returns the new address.
func (r *Recovery) ConfirmEmail(ctx context.Context, req *Request, token string) (email string, err error) {
	link, ok := r.keys.openMailToken(token)
	if !ok {
		return "", errLink()
	}
	email, err = r.store.ConfirmEmail(ctx, link, EmailKey, r.now(), req.Requester())
	return email, linkError(err)
}

// requestEmail is ChangeEmail for a service that sends mails.
func (r *Recovery) requestEmail(ctx context.Context, req *Request, email string, version *int64) (*protocol.Account, error) {
	if err := r.drawConfirmation(ctx, req, EmailKey(email)); err != nil {
		return nil, err
	}
	return r.store.RequestEmail(ctx, req.Caller.AccountID, email, EmailKey(email), version, r.now(), req.Requester())
}

// ResendEmail mails another link to the address that waits for its confirmation, and returns the account.
func (r *Recovery) ResendEmail(ctx context.Context, req *Request) (*protocol.Account, error) {
	if err := r.checkConfigured(); err != nil {
		return nil, err
	}
	if waiting := req.Caller.PendingEmail; waiting != nil {
		if err := r.drawConfirmation(ctx, req, EmailKey(*waiting)); err != nil {
			return nil, err
		}
	}
	return r.store.ResendEmail(ctx, req.Caller.AccountID, EmailKey, r.now(), req.Requester())
}

// CancelEmail ends a change of the address that waits for its confirmation. version is the one of the account that the request is
// based on; nil: any.
func (r *Recovery) CancelEmail(ctx context.Context, req *Request, version *int64) error {
	return r.store.CancelEmail(ctx, req.Caller.AccountID, version, r.now(), req.Requester())
}
