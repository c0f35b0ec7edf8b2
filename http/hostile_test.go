package http

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"turnstone/http/route"
)

// hostileRequests are requests of one account that are meant to make requests of others fail. They bring text that a
// statement or a pipeline might not accept into every shared round trip.
var hostileRequests = []func(c *client) *reply{
	func(c *client) *reply { return c.do("POST", "/chat", chatOf("x"), keyField, "\xff") },
	func(c *client) *reply { return c.do("POST", "/chat", chatOf("x"), keyField, "\x00") },
	func(c *client) *reply { return c.do("POST", "/chat", chatOf("x\x00")) },
	func(c *client) *reply {
		return c.do("POST", "/conversations/%00/usage", route.Object{"kind": "k", "quantity": 1, "unit": "u"}, keyField, "key")
	},
	func(c *client) *reply {
		return c.do("POST", "/conversations/%FF/branches", route.Object{}, keyField, "key")
	},
	func(c *client) *reply {
		return c.do("POST", "/conversations", route.Object{"title": "\x00"}, keyField, "key")
	},
	func(c *client) *reply { return c.do("GET", "/conversations?cursor=%00%FF", nil) },
	func(c *client) *reply {
		return c.do("GET", "/auth/session", nil, "User-Agent", "\xff\x00", "Origin", "\xff\x00")
	},
	func(c *client) *reply {
		return c.do("GET", "/auth/session", nil, "Cookie", c.cookieName()+"=s1_\xff\x80")
	},
	func(c *client) *reply {
		return c.do("POST", "/auth/login", route.Object{"email": "a\x00@example.com", "password": "\x00"}, "X-Forwarded-For", "\xff")
	},
}

func chatOf(text string) route.Object {
	return route.Object{"input": []route.Object{{"type": "text", "text": text}}}
}

// Requests of several accounts share round trips for sessions, keys, starts and reads. Whatever one account sends, the
// requests of another account succeed. Limits, which are decided within a time limit or not at all, are tested in
// persistence.
func TestAHostileAccountCannotFailRequestsOfOthers(t *testing.T) {
	t.Parallel()
	const honest, hostile, rounds = 4, 8, 8
	w := newWorld(t, func(c *testConfig) { liveOn(t, c) })
	eve := w.client().register("eve@example.com")
	var attackers, victims sync.WaitGroup
	var over atomic.Bool
	for i := range hostile {
		attackers.Go(func() {
			for n := i; !over.Load(); n++ {
				if resp := hostileRequests[n%len(hostileRequests)](eve.twin()); resp.status < 400 || resp.status >= 500 {
					t.Errorf("hostile request %d: %d %s", n%len(hostileRequests), resp.status, resp.body)
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
					if resp := ada.twin().do("POST", path, chatOf("[[script tokens=1]]"), keyField, key); resp.status != want {
						t.Errorf("POST %s: %d %s", path, resp.status, resp.body)
					}
				}
				if resp := ada.twin().do("GET", "/conversations", nil); resp.status != 200 {
					t.Errorf("GET /conversations: %d %s", resp.status, resp.body)
				}
			}
		})
	}
	victims.Wait()
	over.Store(true)
	attackers.Wait()
}
