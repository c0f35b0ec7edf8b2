package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdhttp "net/http"
	"net/netip"
	"net/url"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol"
)

// newService returns a service without stores.
func newService(t *testing.T, now func() time.Time) *Service {
	t.Helper()
	keys, err := NewKeys([][]byte{bytes.Repeat([]byte("k"), minSecret)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Keys: keys, Log: zap.NewNop(), Now: now, BaseURL: &url.URL{Scheme: "https", Host: "turnstone.example"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestADeviceCookieIsValidForItsAccountsUntilItExpires(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	s := newService(t, func() time.Time { return now })
	req := &Request{Header: stdhttp.Header{}}
	names := make([]string, deviceAccounts+1)
	var value string
	for i := range names {
		names[i] = fmt.Sprintf("person%d@example.com", i)
		s.devices.add(req, names[i])
		cookie, err := stdhttp.ParseSetCookie(req.Header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err)
		}
		value, req.Device = cookie.Value, s.devices.open(cookie.Value)
	}
	for i, name := range names {
		if known := s.devices.open(value).knows(s.keys, name); known != (i > 0) { // the cookie knows the last four
			t.Errorf("%s: known %v", name, known)
		}
	}
	for i := range value {
		changed := []byte(value)
		changed[i] ^= 1
		if s.devices.open(string(changed)) != nil {
			t.Fatalf("the cookie is accepted with byte %d changed", i)
		}
	}
	for _, cut := range []string{"", "x", value[:len(value)-22], value + value} {
		if s.devices.open(cut) != nil {
			t.Errorf("%q is accepted", cut)
		}
	}
	now = now.Add(deviceLifetime + time.Second)
	if s.devices.open(value) != nil {
		t.Error("the cookie is accepted after it expired")
	}
}

func TestAnIPv4AddressIsItsOwnNetwork(t *testing.T) {
	if key := networkKey(netip.MustParseAddr("::ffff:198.51.100.7").Unmap()); key != "198.51.100.7" {
		t.Errorf("an IPv4 address is counted as %s", key)
	}
}

func TestOneKeyCannotTakeAllHashSlots(t *testing.T) {
	slots := newHashSlots()
	one, other := hashCaller{key: "198.51.100.1"}, hashCaller{key: "198.51.100.2"}
	release, err := slots.acquire(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	var waiting []chan struct{}
	for range maxHashesOfOne - 1 {
		waiter, _, _, err := slots.enter(one)
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, waiter.assigned)
	}
	if _, err := slots.acquire(t.Context(), one); protocol.CodeOf(err) != protocol.CodeRateLimited {
		t.Errorf("a request over the limit of the key: %v", err)
	}
	if hasSlot(waiting[0]) {
		t.Error("a key has two slots")
	}
	second, err := slots.acquire(t.Context(), other) // at once, before the waiting requests of the first key
	if err != nil {
		t.Fatal(err)
	}
	second()
	release()
	if !hasSlot(waiting[0]) || hasSlot(waiting[1]) {
		t.Error("the slot was not given to the next waiting request alone")
	}
}

// tooMany reports whether an error is 429 with the time after which the caller may try again.
func tooMany(err error) bool {
	var refusal *protocol.Error
	return errors.As(err, &refusal) && refusal.Code == protocol.CodeRateLimited && refusal.RetryAfter > 0
}

// hasSlot reports whether a waiting request was given its slot.
func hasSlot(assigned chan struct{}) bool {
	select {
	case <-assigned:
		return true
	default:
		return false
	}
}

func TestManyUnknownCallersDoNotBlockAKnownDevice(t *testing.T) {
	slots := newHashSlots()
	var releases []func()
	for n := range hashesAtOnce {
		release, err := slots.acquire(t.Context(), hashCaller{key: fmt.Sprint("running ", n)})
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	var strangers []chan struct{}
	for n := range maxHashWaiters {
		waiter, _, _, err := slots.enter(hashCaller{key: fmt.Sprint("waiting ", n)})
		if err != nil {
			t.Fatal(err)
		}
		strangers = append(strangers, waiter.assigned)
	}
	if _, err := slots.acquire(t.Context(), hashCaller{key: "another"}); !tooMany(err) {
		t.Errorf("an unknown caller over the limit of waiting requests: %v", err)
	}
	known, _, _, err := slots.enter(hashCaller{key: "device", known: true})
	if err != nil {
		t.Fatal(err)
	}
	releases[0]()
	if !hasSlot(known.assigned) || hasSlot(strangers[0]) {
		t.Error("an unknown caller was given a slot before a known device")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := slots.acquire(ctx, hashCaller{key: "device of another", known: true}); !tooMany(err) {
		t.Errorf("a caller whose request was cancelled: %v", err)
	}
	releases[1]()
	if !hasSlot(strangers[0]) || hasSlot(strangers[1]) {
		t.Error("the slot was not given to the next caller after one had cancelled its request")
	}
}

func TestConcurrentPasswordHashesAreLimited(t *testing.T) {
	p, err := newPasswords(defaultCost)
	if err != nil {
		t.Fatal(err)
	}
	for n := range hashesAtOnce {
		release, err := p.slots.acquire(t.Context(), hashCaller{key: strconv.Itoa(n)})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.hash(ctx, hashCaller{key: "another"}, "correct horse battery"); !tooMany(err) {
		t.Errorf("%v", err)
	}
}
