package http

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// hostileRequests are what one account sends so that the requests of others fail: every shared round trip is met with
// text that a statement or a pipeline might not take.
var hostileRequests = []func(c *client) *reply{
	func(c *client) *reply { return c.do("POST", "/chat", chatOf("x"), keyHeader, "\xff") },
	func(c *client) *reply { return c.do("POST", "/chat", chatOf("x"), keyHeader, "\x00") },
	func(c *client) *reply { return c.do("POST", "/chat", chatOf("x\x00")) },
	func(c *client) *reply {
		return c.do("POST", "/conversations/%00/usage", object{"kind": "k", "quantity": 1, "unit": "u"}, keyHeader, "key")
	},
	func(c *client) *reply { return c.do("POST", "/conversations/%FF/branches", object{}, keyHeader, "key") },
	func(c *client) *reply {
		return c.do("POST", "/conversations", object{"title": "\x00"}, keyHeader, "key")
	},
	func(c *client) *reply { return c.do("GET", "/conversations?cursor=%00%FF", nil) },
	func(c *client) *reply {
		return c.do("GET", "/auth/session", nil, "User-Agent", "\xff\x00", "Origin", "\xff\x00")
	},
	func(c *client) *reply {
		return c.do("GET", "/auth/session", nil, "Cookie", c.cookieName()+"=s1_\xff\x80")
	},
	func(c *client) *reply {
		return c.do("POST", "/auth/login", object{"email": "a\x00@example.com", "password": "\x00"}, "X-Forwarded-For", "\xff")
	},
}

func chatOf(text string) object {
	return object{"input": []object{{"type": "text", "text": text}}}
}

// Sessions, keys, starts and reads are looked up together with those of others. Whatever one account sends, all that
// another one asks for is done. (Limits, which are decided in time or not at all: persistence.)
func TestAHostileAccountDecidesNobodyElsesResult(t *testing.T) {
	const honest, hostile, rounds = 4, 8, 8
	w := newWorld(t, func(c *Config) { liveOn(t, c) })
	eve := w.client().register("eve@example.com")
	var attackers, victims sync.WaitGroup
	var over atomic.Bool
	for i := range hostile {
		attackers.Go(func() {
			for n := i; !over.Load(); n++ {
				if answer := hostileRequests[n%len(hostileRequests)](eve.twin()); answer.status < 400 || answer.status >= 500 {
					t.Errorf("hostile request %d: %d %s", n%len(hostileRequests), answer.status, answer.body)
				}
			}
		})
	}
	for i := range honest {
		ada := w.client().register(fmt.Sprintf("ada%d@example.com", i))
		victims.Go(func() {
			for round := range rounds {
				key := fmt.Sprintf("key-%d", round)
				for path, want := range map[string]int{"/chat": 200, "/conversations": 201} {
					if answer := ada.twin().do("POST", path, chatOf("[[script tokens=1]]"), keyHeader, key); answer.status != want {
						t.Errorf("POST %s: %d %s", path, answer.status, answer.body)
					}
				}
				if answer := ada.twin().do("GET", "/conversations", nil); answer.status != 200 {
					t.Errorf("GET /conversations: %d %s", answer.status, answer.body)
				}
			}
		})
	}
	victims.Wait()
	over.Store(true)
	attackers.Wait()
}
