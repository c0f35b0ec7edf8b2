package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"turnstone/protocol"
)

// Keys are the keys for signing and encrypting, derived from the secrets of the service. Two secrets can be live at
// once, the newer one first: signatures of the older secret stay valid until it is removed.
type Keys struct{ live []keySet }

type keySet struct {
	version  int16 // identifies the secret in rows, without revealing it
	sessions []byte
	csrfKey  []byte
	confirms []byte
	cursors  cipher.AEAD
	logs     []byte
	binding  []byte // for binding an OpenID sign-in to its browser
	devices  []byte // for the cookies of known devices
	shares   []byte // for the tokens of shares
	mails    []byte // for the tokens in the links of mails
}

// Requirements of secrets.
const (
	minSecret  = 32
	maxSecrets = 2
	keySize    = sha256.Size
)

// NewKeys derives the keys from one or two secrets.
func NewKeys(secrets [][]byte) (*Keys, error) {
	if len(secrets) == 0 || len(secrets) > maxSecrets {
		return nil, errors.New("want one or two secrets")
	}
	k := &Keys{}
	for _, secret := range secrets {
		set, err := deriveKeys(secret)
		if err != nil {
			return nil, err
		}
		k.live = append(k.live, set)
	}
	return k, nil
}

func deriveKeys(secret []byte) (keySet, error) {
	if len(secret) < minSecret {
		return keySet{}, errors.New("a secret must have at least 32 bytes")
	}
	set := keySet{}
	var name, cursors []byte
	for _, target := range []struct {
		key  *[]byte
		info string
	}{
		{&set.sessions, "turnstone session 1"},
		{&set.csrfKey, "turnstone csrf 1"},
		{&set.confirms, "turnstone confirm 1"},
		{&set.logs, "turnstone log 1"},
		{&set.binding, "turnstone oidc 1"},
		{&set.devices, "turnstone device 1"},
		{&set.shares, "turnstone share 1"},
		{&set.mails, "turnstone mail 1"},
		{&cursors, "turnstone cursor 1"},
		{&name, "turnstone key name 1"},
	} {
		key, err := hkdf.Key(sha256.New, secret, nil, target.info, keySize)
		if err != nil {
			return keySet{}, err
		}
		*target.key = key
	}
	var err error
	if set.cursors, err = newAEAD(cursors); err != nil {
		return keySet{}, err
	}
	set.version = int16(binary.BigEndian.Uint16(name) & 0x7fff) // the mask keeps it positive
	return set, nil
}

// Versions returns the number of live secrets. Secret 0 signs.
func (k *Keys) Versions() int { return len(k.live) }

// tokenHash returns the HMAC under which a session token is stored and found.
func (k *Keys) tokenHash(version int, token string) []byte {
	return hmacSum(k.live[version].sessions, []byte(token))
}

func (k *Keys) csrf(version int, session protocol.SessionID, tokenHash, nonce []byte) []byte {
	return hmacSum(k.live[version].csrfKey, []byte("csrf1"), session[:], tokenHash, nonce)
}

// Pseudonym returns the name of an account in logs, which does not reveal the account.
func (k *Keys) Pseudonym(account protocol.AccountID) string {
	const shown = 8
	return hex.EncodeToString(hmacSum(k.live[0].logs, account[:]))[:shown]
}

// hmacSum returns the HMAC-SHA-256 of the parts. Only the last part may have a variable length; otherwise different
// parts could have the same sum.
func hmacSum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// SealCursor encrypts the position of a list. scope is authenticated with it.
func (k *Keys) SealCursor(plain, scope []byte) string {
	aead := k.live[0].cursors
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return encode(aead.Seal(nonce, nonce, plain, scope))
}

// OpenCursor decrypts what SealCursor returned for the same scope; ok is false for anything else.
func (k *Keys) OpenCursor(text string, scope []byte) (plain []byte, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	for _, set := range k.live {
		if size := set.cursors.NonceSize(); len(sealed) >= size {
			if plain, err := set.cursors.Open(nil, sealed[:size], sealed[size:], scope); err == nil {
				return plain, true
			}
		}
	}
	return nil, false
}

// ConfirmationMAC returns the HMAC of a confirmation of an irreversible request.
func (k *Keys) ConfirmationMAC(version int, stamp, subject []byte) []byte {
	return hmacSum(k.live[version].confirms, []byte("confirm1"), stamp, subject)
}

// ShareToken returns the token of a new share, and the version of the key from which ShareTokenOf derives it again.
func (k *Keys) ShareToken(share protocol.ShareID) (token string, version int16) {
	return k.live[0].shareToken(share), k.live[0].version
}

// ShareTokenOf returns the token of a share; live is false if the secret of that version has been removed. Shares are found
// by the hash of their token, so they do not end with the secret.
func (k *Keys) ShareTokenOf(version int16, share protocol.ShareID) (token string, live bool) {
	for i := range k.live {
		if k.live[i].version == version {
			return k.live[i].shareToken(share), true
		}
	}
	return "", false
}

func (s *keySet) shareToken(share protocol.ShareID) string {
	return protocol.SharePrefix + encode(hmacSum(s.shares, share[:]))
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
