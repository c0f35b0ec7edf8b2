package http

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	stdhttp "net/http"
	"slices"
	"time"
)

// A browser that has signed in keeps a device cookie. It says, signed by the service, to which accounts this browser has
// signed in before. It is never a session: all that it gives is that attempts to sign in to these accounts are counted for
// the device and not together with those of strangers, so that nobody who guesses at an account can lock its owner out.
//
// The cookie is base64url( id 16 | time of issue 8 | one tag of 16 for each account | HMAC-SHA-256 32 ). A tag is the HMAC
// of a sign-in name, so the cookie names nobody.

const (
	deviceLife     = 180 * 24 * time.Hour // from the last sign-in
	deviceID       = 16
	deviceTag      = 16
	deviceStamp    = 8
	deviceAccounts = 4 // the accounts of one browser that are remembered
	deviceMost     = deviceID + deviceStamp + deviceAccounts*deviceTag + sha256.Size
)

// device is what a valid cookie says.
type device struct {
	id      []byte
	version int      // of the key that signed it
	tags    [][]byte // the last account that signed in first
}

// key names the device in limits.
func (d *device) key() string { return "device:" + hex.EncodeToString(d.id) }

// knows says whether the device has signed in with a name before.
func (d *device) knows(k *keys, name string) bool {
	if d == nil {
		return false
	}
	tag := k.deviceTag(d.version, name)
	return slices.ContainsFunc(d.tags, func(own []byte) bool { return hmac.Equal(own, tag) })
}

func (s *Server) deviceCookieName() string {
	if s.secure() {
		return "__Host-device"
	}
	return "device"
}

// deviceOf reads the device that a request comes from; nil when it brings no valid cookie.
func (s *Server) deviceOf(r *stdhttp.Request) *device {
	cookie, err := r.Cookie(s.deviceCookieName())
	if err != nil || len(cookie.Value) > base64.RawURLEncoding.EncodedLen(deviceMost) {
		return nil
	}
	return s.openDevice(cookie.Value)
}

func (s *Server) openDevice(value string) *device {
	content, err := base64.RawURLEncoding.DecodeString(value)
	tags := len(content) - deviceID - deviceStamp - sha256.Size
	if err != nil || tags < deviceTag || tags%deviceTag != 0 {
		return nil
	}
	signed, mac := content[:len(content)-sha256.Size], content[len(content)-sha256.Size:]
	for version := range s.keys.versions() {
		if !hmac.Equal(mac, s.keys.deviceMAC(version, signed)) {
			continue
		}
		issued := time.Unix(int64(binary.BigEndian.Uint64(signed[deviceID:])), 0) //nolint:gosec // we signed it
		if now := s.now(); now.Before(issued.Add(-time.Hour)) || now.After(issued.Add(deviceLife)) {
			return nil
		}
		return &device{id: signed[:deviceID], version: version, tags: slices.Collect(slices.Chunk(signed[deviceID+deviceStamp:], deviceTag))}
	}
	return nil
}

// remember hands out a device cookie that knows one more name, in place of the one that came.
func (s *Server) remember(ex *exchange, name string) {
	id, tag := make([]byte, deviceID), s.keys.deviceTag(0, name)
	_, _ = rand.Read(id) // never fails
	tags := [][]byte{tag}
	if before := ex.device; before != nil {
		id = before.id
		if before.version == 0 { // tags under the secret before cannot be carried over
			tags = append(tags, slices.DeleteFunc(slices.Clone(before.tags), func(own []byte) bool { return hmac.Equal(own, tag) })...)
		}
	}
	content := binary.BigEndian.AppendUint64(slices.Clone(id), uint64(s.now().Unix())) //nolint:gosec // after 1970
	for _, own := range tags[:min(len(tags), deviceAccounts)] {
		content = append(content, own...)
	}
	content = append(content, s.keys.deviceMAC(0, content)...)
	cookie := &stdhttp.Cookie{
		Name: s.deviceCookieName(), Value: encode(content), Path: "/", MaxAge: int(deviceLife / time.Second), HttpOnly: true,
		Secure: s.secure(), SameSite: stdhttp.SameSiteLaxMode,
	}
	setCookie(ex.header, cookie.Name, cookie.String())
}

// rememberOwn is remember for a signed-in caller who has just proved the password, or set it.
func (s *Server) rememberOwn(ex *exchange) {
	if ex.caller.Email != "" {
		s.remember(ex, EmailKey(ex.caller.Email))
	}
}

func (k *keys) deviceTag(version int, name string) []byte {
	return sum(k.live[version].devices, []byte("name "), []byte(name))[:deviceTag]
}

func (k *keys) deviceMAC(version int, signed []byte) []byte {
	return sum(k.live[version].devices, []byte("device "), signed)
}
