package http

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"turnstone/protocol"
)

// keys are what the service signs with, all derived from its secret. Two secrets may live at once, the newer first:
// what the older one made stays good until it is taken away.
type keys struct{ live []keySet }

type keySet struct {
	version  int16 // names the secret in rows; never the secret
	sessions []byte
	csrfKey  []byte
	confirms []byte
	cursors  cipher.AEAD
	logs     []byte
	binding  []byte // the browser of an OpenID sign-in
	devices  []byte // browsers that have signed in before
}

// What a secret must and may be.
const (
	minSecret  = 32
	maxSecrets = 2
	keySize    = sha256.Size
)

// newKeys derives the keys of one or two secrets.
func newKeys(secrets [][]byte) (*keys, error) {
	if len(secrets) == 0 || len(secrets) > maxSecrets {
		return nil, errors.New("one or two live values are needed")
	}
	k := &keys{}
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
	set.version = int16(binary.BigEndian.Uint16(name) & 0x7fff) //nolint:gosec // the mask keeps it positive
	return set, nil
}

// versions counts the live secrets; 0 is the one that signs.
func (k *keys) versions() int { return len(k.live) }

// tokenHash is what a session token is stored and found by.
func (k *keys) tokenHash(version int, token string) []byte {
	return sum(k.live[version].sessions, []byte(token))
}

func (k *keys) csrf(version int, session protocol.SessionID, tokenHash, nonce []byte) []byte {
	return sum(k.live[version].csrfKey, []byte("csrf1"), session[:], tokenHash, nonce)
}

// pseudonym stands for an account in logs.
func (k *keys) pseudonym(account protocol.AccountID) string {
	const shown = 8
	return hex.EncodeToString(sum(k.live[0].logs, account[:]))[:shown]
}

// sum is HMAC-SHA-256 over parts of known, or the last of any, length.
func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}
