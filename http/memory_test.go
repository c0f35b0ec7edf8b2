package http

import (
	"strings"
	"testing"
	"time"

	"turnstone/http/route"
	"turnstone/protocol"
)

// place returns the body of a location context that expires in an hour.
func (w *world) place(latitude, longitude float64) route.Object {
	return route.Object{"latitude": latitude, "longitude": longitude, "accuracy_m": 25, "place": " Emden ", "expires_at": w.clock.now().Add(time.Hour)}
}

func TestNoSourceHasAConsentUntilItIsGranted(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u, other := signUp(t, s), signUp(t, s)
	list := u.do(200, "GET", "/memory-sources", nil)
	for i, source := range protocol.MemorySources {
		got, _ := list.at("data").([]any)[i].(map[string]any)
		if got["source"] != string(source) || got["granted"] != false || got["precise"] != false || got["changed_at"] != nil {
			t.Errorf("%v", got)
		}
	}
	wantField(t, u.do(200, "PUT", "/memory-sources/files/consent", route.Object{"granted": false}), "changed_at", nil)
	granted := u.do(200, "PUT", "/memory-sources/conversations/consent", route.Object{"granted": true})
	wantField(t, granted, "granted", true)
	wantField(t, u.do(200, "PUT", "/memory-sources/conversations/consent", route.Object{"granted": true}), "changed_at", granted.at("changed_at"))
	wantField(t, u.do(200, "GET", "/memory-sources", nil), "data.0.granted", true)
	wantField(t, other.do(200, "GET", "/memory-sources", nil), "data.0.granted", false)
	wantField(t, u.do(200, "PUT", "/memory-sources/conversations/consent", route.Object{"granted": false}), "granted", false)

	for _, source := range []string{"none", "Location", "location%20", "location%00"} {
		u.do(404, "PUT", "/memory-sources/"+source+"/consent", route.Object{"granted": true})
	}
	for _, wrong := range []any{route.Object{}, route.Object{"granted": "yes"}, route.Object{"granted": nil}, route.Object{"granted": true, "precise": true}, "granted"} {
		u.do(422, "PUT", "/memory-sources/files/consent", wrong)
	}
	u.do(422, "PUT", "/memory-sources/location/consent", route.Object{"granted": false, "precise": true})
}

func TestALocationNeedsAConsentAndEndsWithIt(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u, other := signUp(t, s), signUp(t, s)
	path := "/conversations/" + u.conversation("Weather") + "/location-context"
	for _, method := range []string{"GET", "PUT"} {
		var body any
		if method == "PUT" {
			body = s.place(1, 2)
		}
		refused := u.do(409, method, path, body)
		wantField(t, refused, "code", "consent_required")
		wantField(t, refused, "current.source", "location")
		wantField(t, refused, "current.granted", false)
	}
	u.do(204, "DELETE", path, nil)

	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true})
	u.do(404, "GET", path, nil)
	for range 2 {
		stored := u.do(200, "PUT", path, s.place(53.36712, -7.20631))
		wantField(t, stored, "latitude", 53.37)
		wantField(t, stored, "longitude", -7.21)
		wantField(t, stored, "accuracy_m", 1000.0)
		wantField(t, stored, "place", "Emden")
		wantField(t, stored, "precise", false)
	}
	wantField(t, u.do(200, "GET", path, nil), "latitude", 53.37)

	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true, "precise": true})
	hidden := s.place(53.36712, -7.20631)
	hidden["place"] = "\u200bEm\u202eden\U000e0041\U000e0042 "
	wantField(t, u.do(200, "PUT", path, hidden), "place", "Emden")
	wantField(t, u.do(200, "PUT", path, s.place(53.36712, -7.20631)), "latitude", 53.36712)
	wantField(t, u.do(200, "GET", path, nil), "accuracy_m", 25.0)
	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true})
	rounded := u.do(200, "GET", path, nil)
	wantField(t, rounded, "longitude", -7.21)
	wantField(t, rounded, "accuracy_m", 1000.0)
	wantField(t, rounded, "place", nil)

	other.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true})
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		var body any
		if method == "PUT" {
			body = s.place(1, 2)
		}
		other.do(404, method, path, body)
	}
	wantField(t, u.do(200, "GET", path, nil), "latitude", 53.37)

	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": false})
	wantField(t, u.do(409, "GET", path, nil), "code", "consent_required")
	if n := query[int](s, `select count(*) from location_contexts`)[0]; n != 0 {
		t.Errorf("%d locations are still stored", n)
	}
	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true})
	u.do(404, "GET", path, nil)
}

func TestALocationIsOfOneConversationAndExpires(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true})
	conversation := u.conversation("Weather")
	path := "/conversations/" + conversation + "/location-context"
	elsewhere := "/conversations/" + u.conversation("Elsewhere") + "/location-context"
	u.do(200, "PUT", path, s.place(1, 2))
	u.do(404, "GET", elsewhere, nil)
	u.do(200, "PUT", elsewhere, s.place(3, 4))
	u.do(204, "DELETE", path, nil)
	u.do(204, "DELETE", path, nil)
	u.do(404, "GET", path, nil)

	s.database.Admin(t, `update location_contexts set expires_at = now() - interval '1 second'`)
	u.do(404, "GET", elsewhere, nil)
	if err := s.DB.Memory.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := query[int](s, `select count(*) from location_contexts`)[0]; n != 0 {
		t.Errorf("%d expired locations are still stored", n)
	}

	u.do(200, "PUT", path, s.place(1, 2))
	u.do(204, "DELETE", "/conversations/"+conversation, nil)
	for _, method := range []string{"GET", "DELETE"} {
		u.do(404, method, path, nil)
	}
	u.do(404, "PUT", path, s.place(1, 2))
}

func TestAWrongLocationIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := conversationWorld(t)
	u := signUp(t, s)
	u.do(200, "PUT", "/memory-sources/location/consent", route.Object{"granted": true})
	path := "/conversations/" + u.conversation("Weather") + "/location-context"
	for field, values := range map[string][]any{
		"latitude":   {90.0001, -91, "1", nil, true},
		"longitude":  {180.5, -181, "1", nil},
		"accuracy_m": {-1, 1_000_001, "1", nil},
		"place":      {strings.Repeat("é", 201), 7, "a\x00b", "\u200b\u202e\U000e0041", " \u2066 "},
		"expires_at": {s.clock.now(), s.clock.now().Add(-time.Minute), s.clock.now().Add(25 * time.Hour), "tomorrow", 7, nil, "2026-02-30T00:00:00Z", "9999999-01-01T00:00:00Z"},
	} {
		for _, value := range values {
			body := s.place(1, 2)
			body[field] = value
			if refused := u.do(422, "PUT", path, body); refused.at("errors.0.field") != "body."+field {
				t.Errorf("%s %v: %v", field, value, refused.at("errors.0"))
			}
		}
		body := s.place(1, 2)
		if delete(body, field); field != "place" {
			u.do(422, "PUT", path, body)
		}
	}
	for _, number := range []string{"NaN", "1e400", "-1e400", "Infinity", "0x1", "1e-400"} {
		resp := u.client.do("PUT", path, rawBody(`{"latitude": `+number+`, "longitude": 1, "accuracy_m": 1, "expires_at": "`+s.clock.now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`))
		if want := map[bool][]int{true: {200}, false: {400, 422}}[number == "1e-400"]; resp.status != want[0] && resp.status != want[len(want)-1] {
			t.Errorf("%s: %d %s", number, resp.status, resp.body)
		}
	}
	for _, edge := range [][2]float64{{90, 180}, {-90, -180}, {0, 0}, {-0.0049, 0.0049}} {
		stored := u.do(200, "PUT", path, s.place(edge[0], edge[1]))
		if latitude, _ := stored.at("latitude").(float64); latitude != 90 && latitude != -90 && latitude != 0 {
			t.Errorf("%v became %v", edge, latitude)
		}
	}
}
