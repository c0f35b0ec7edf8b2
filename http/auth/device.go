package auth

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

// A browser that has signed in has a device cookie. The cookie states, signed by the service, to which accounts the
// browser has signed in before. It is not a session. Its only effect is that attempts to sign in to these accounts are
// counted for the device and not together with those of strangers, so that a stranger who guesses passwords cannot lock
// the owner out.
//
// The cookie is base64url( id 16 | time of issue 8 | one tag of 16 for each account | HMAC-SHA-256 32 ), with sizes in
// bytes. A tag is the HMAC of a sign-in name, so the cookie does not reveal the name.

const (
	deviceLifetime  = 180 * 24 * time.Hour // from the last sign-in
	deviceID        = 16
	deviceTag       = 16
	deviceTimestamp = 8
	deviceAccounts  = 4 // maximum number of accounts in a cookie
	maxDeviceCookie = deviceID + deviceTimestamp + deviceAccounts*deviceTag + sha256.Size
)

// device is the content of a valid cookie.
type device struct {
	id      []byte
	version int      // of the key that signed it
	tags    [][]byte // of the accounts, the latest sign-in first
}

// key returns the name of the device in limits.
func (d *device) key() string { return "device:" + hex.EncodeToString(d.id) }

// knows reports whether an account with this sign-in name has signed in on the device before. A nil device knows no
// name.
func (d *device) knows(k *Keys, name string) bool {
	if d == nil {
		return false
	}
	tag := k.deviceTag(d.version, name)
	return slices.ContainsFunc(d.tags, func(own []byte) bool { return hmac.Equal(own, tag) })
}

// devices reads and sets device cookies.
type devices struct {
	keys    *Keys
	cookies cookies
	now     func() time.Time
}

// of returns the device that sends a request; nil if there is no valid cookie.
func (d *devices) of(r *stdhttp.Request) *device {
	value := d.cookies.of(r, deviceCookie)
	if len(value) > base64.RawURLEncoding.EncodedLen(maxDeviceCookie) {
		return nil
	}
	return d.open(value)
}

func (d *devices) open(value string) *device {
	content, err := base64.RawURLEncoding.DecodeString(value)
	tags := len(content) - deviceID - deviceTimestamp - sha256.Size
	if err != nil || tags < deviceTag || tags%deviceTag != 0 {
		return nil
	}
	signed, mac := content[:len(content)-sha256.Size], content[len(content)-sha256.Size:]
	for version := range d.keys.Versions() {
		if !hmac.Equal(mac, d.keys.deviceMAC(version, signed)) {
			continue
		}
		issued := time.Unix(int64(binary.BigEndian.Uint64(signed[deviceID:])), 0) // we signed it
		if now := d.now(); now.Before(issued.Add(-time.Hour)) || now.After(issued.Add(deviceLifetime)) {
			return nil
		}
		return &device{id: signed[:deviceID], version: version, tags: slices.Collect(slices.Chunk(signed[deviceID+deviceTimestamp:], deviceTag))}
	}
	return nil
}

// add sets a device cookie with one more sign-in name. It replaces the one of the request.
func (d *devices) add(req *Request, name string) {
	id, tag := make([]byte, deviceID), d.keys.deviceTag(0, name)
	_, _ = rand.Read(id) // never fails
	tags := [][]byte{tag}
	if before := req.Device; before != nil {
		id = before.id
		if before.version == 0 { // tags made with the previous secret cannot be converted
			tags = append(tags, slices.DeleteFunc(slices.Clone(before.tags), func(own []byte) bool { return hmac.Equal(own, tag) })...)
		}
	}
	content := binary.BigEndian.AppendUint64(slices.Clone(id), uint64(d.now().Unix())) // after 1970
	for _, own := range tags[:min(len(tags), deviceAccounts)] {
		content = append(content, own...)
	}
	content = append(content, d.keys.deviceMAC(0, content)...)
	d.cookies.set(req.Header, deviceCookie, encode(content), int(deviceLifetime/time.Second))
}

// addOwn is add for a signed-in caller who has just proved or set the password.
func (d *devices) addOwn(req *Request) {
	if req.Caller.Email != "" {
		d.add(req, EmailKey(req.Caller.Email))
	}
}

func (k *Keys) deviceTag(version int, name string) []byte {
	return hmacSum(k.live[version].devices, []byte("name "), []byte(name))[:deviceTag]
}

func (k *Keys) deviceMAC(version int, signed []byte) []byte {
	return hmacSum(k.live[version].devices, []byte("device "), signed)
}
