package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

var (
	readPage   = Tool{Name: "read_page", Effect: protocol.EffectRead, Risk: protocol.RiskLow, Reversibility: protocol.Reversible}
	sendMail   = Tool{Name: "send_mail", Effect: protocol.EffectSend, Risk: protocol.RiskMedium, Reversibility: protocol.Irreversible, Definition: "d1"}
	writeNote  = Tool{Name: "write_note", Effect: protocol.EffectWrite, Risk: protocol.RiskLow, Reversibility: protocol.Reversible}
	deleteNote = Tool{Name: "delete_note", Effect: protocol.EffectDestructive, Risk: protocol.RiskHigh, Reversibility: protocol.Irreversible}
	ownNote    = Tool{Name: "write_artifact", Effect: protocol.EffectWrite, Own: true, Risk: protocol.RiskLow, Reversibility: protocol.Reversible}
)

// secret is a text of a file of the account.
const secret = "The code of the vault is 7391-4402. Nobody but the owner knows where the blue key lies."

func address(text string) Description { return Description{Outward: text, Address: true} }

func TestAnAddressIsNamedAsAWhole(t *testing.T) {
	reading := func(user string) *Reading {
		return &Reading{User: []string{user}, Private: []string{secret}, Untrusted: true}
	}
	for user, at := range map[string]string{
		"Read https://example.org/a":         "https://example.org/a",
		"Read https://example.org/a.":        "https://example.org/a",
		"Look (at https://example.org/a)!":   "https://example.org/a",
		"Read [this](https://example.org/a)": "https://example.org/a",
		"Is <https://example.org/a> right?":  "https://example.org/a",
		"Read https://example.org":           "https://example.org/",
	} {
		if plan := readPage.Decide(&Call{Reading: reading(user)}, nil, address(at)); plan.Ask != nil {
			t.Errorf("%q: reading %s asks: %q", user, at, plan.Ask.Reasons)
		}
	}
	for user, at := range map[string]string{
		"Read https://example.org/abc":   "https://example.org/a",
		"Read https://example.org.evil/": "https://example.org",
		"Read https://example.org/a":     "https://example.org/a?k=7391-4402",
		"Read example.org":               "https://example.org/",
		"Read it":                        "https://example.org/a",
		"Read https://example.org/b":     "https://example.org/a",
	} {
		if plan := readPage.Decide(&Call{Reading: reading(user)}, nil, address(at)); plan.Ask == nil {
			t.Errorf("%q: reading %s does not ask", user, at)
		}
	}
	found := reading("Search")
	found.Addresses = []string{"https://example.org/found"}
	if plan := readPage.Decide(&Call{Reading: found}, nil, address("https://example.org/found")); plan.Ask != nil {
		t.Errorf("reading what a search has found asks: %q", plan.Ask.Reasons)
	}
	if plan := readPage.Decide(&Call{}, nil, address("https://example.org/a")); plan.Ask == nil {
		t.Error("a call asks for nothing although it is not known what the model has read")
	}
}

func TestAGrantCoversOnlyWhatCouldBeGrantedNow(t *testing.T) {
	calm, read := &Reading{User: []string{"Write to Ann"}}, &Reading{User: []string{"Write to Ann"}, Private: []string{secret}}
	hostile := &Reading{Untrusted: true}
	for name, each := range map[string]struct {
		tool Tool
		call Call
		note string
		of   Description
		runs bool
	}{
		"the same call":               {sendMail, Call{Reading: calm}, "hello", Description{}, true},
		"a risk that is raised":       {sendMail, Call{Reading: hostile}, "hello", Description{}, true},
		"a risk raised to the top":    {sendMail, Call{Reading: hostile}, "hello", Description{Risk: protocol.RiskHigh}, false},
		"a reading that is not known": {sendMail, Call{}, "hello", Description{}, false},
		"every call asks":             {sendMail, Call{Reading: calm, AskAll: true}, "hello", Description{}, false},
		"another resource":            {sendMail, Call{Reading: calm}, "hello", Description{Resource: "bob"}, false},
		"another definition":          {Tool{Name: "send_mail", Effect: protocol.EffectSend, Definition: "d2"}, Call{Reading: calm}, "hello", Description{}, false},
		"a tool that always asks":     {Tool{Name: "send_mail", Effect: protocol.EffectSend, Definition: "d1", AlwaysAsks: true}, Call{Reading: calm}, "hello", Description{}, false},
		"private words":               {sendMail, Call{Reading: read}, "the vault is 7391-4402", Description{}, false},
		"critical":                    {sendMail, Call{Reading: calm}, "hello", Description{Risk: protocol.RiskCritical}, false},
		"destructive":                 {Tool{Name: "send_mail", Effect: protocol.EffectDestructive, Definition: "d1"}, Call{Reading: calm}, "hello", Description{}, false},
	} {
		each.call.Grants = []turnlog.Grant{{Tool: "send_mail", Definition: "d1"}}
		input, _ := json.Marshal(map[string]string{"note": each.note})
		plan := each.tool.Decide(&each.call, input, each.of)
		if (plan.Ask == nil) != each.runs {
			t.Errorf("%s: asks %t, want %t", name, plan.Ask != nil, !each.runs)
		}
	}
}

func TestTheOptionsOfAnApproval(t *testing.T) {
	all := []protocol.Decision{protocol.ApproveOnce, protocol.ApproveForConversation, protocol.ApproveWithEdits, protocol.RejectCall}
	once := []protocol.Decision{protocol.ApproveOnce, protocol.ApproveWithEdits, protocol.RejectCall}
	short := json.RawMessage(`{"note":"hello"}`)
	long := json.RawMessage(`{"note":"` + strings.Repeat("a", maxEditable) + `"}`)
	calm := &Reading{User: []string{"Write"}}
	for name, each := range map[string]struct {
		tool  Tool
		call  Call
		input json.RawMessage
		of    Description
		want  []protocol.Decision
	}{
		"send":               {sendMail, Call{Reading: calm}, short, Description{}, all},
		"write":              {writeNote, Call{Reading: calm}, short, Description{}, all},
		"destructive":        {deleteNote, Call{Reading: calm}, short, Description{}, once},
		"critical":           {sendMail, Call{Reading: calm}, short, Description{Risk: protocol.RiskCritical}, once},
		"every call asks":    {readPage, Call{Reading: calm, AskAll: true}, short, Description{}, once},
		"a long input":       {writeNote, Call{Reading: calm}, long, Description{}, []protocol.Decision{protocol.ApproveOnce, protocol.ApproveForConversation, protocol.RejectCall}},
		"private words":      {sendMail, Call{Reading: &Reading{Private: []string{secret}}}, json.RawMessage(`{"note":"the blue key lies"}`), Description{}, once},
		"an encoded word":    {sendMail, Call{Reading: &Reading{Private: []string{secret}}}, json.RawMessage(`{"note":"VGhlIGNvZGUgb2YgdGhlIHZhdWx0"}`), Description{}, once},
		"it always asks":     {Tool{Name: "a", Effect: protocol.EffectWrite, AlwaysAsks: true}, Call{Reading: calm}, short, Description{}, once},
		"its own artifacts":  {ownNote, Call{Reading: calm}, short, Description{}, nil},
		"a read":             {readPage, Call{Reading: calm}, short, Description{}, nil},
		"an own one, asking": {ownNote, Call{Reading: calm, AskAll: true}, short, Description{}, once},
	} {
		plan := each.tool.Decide(&each.call, each.input, each.of)
		switch {
		case plan.Ask == nil && each.want != nil:
			t.Errorf("%s does not ask", name)
		case plan.Ask != nil && !slices.Equal(plan.Ask.Options, each.want):
			t.Errorf("%s offers %v, want %v", name, plan.Ask.Options, each.want)
		}
	}
}

func TestARequestShowsWhatLeavesTheService(t *testing.T) {
	plan := sendMail.Decide(&Call{Reading: &Reading{Private: []string{secret}, Untrusted: true}}, json.RawMessage(`{"note":"it is 7391-4402"}`), Description{})
	if plan.Ask == nil || !slices.Contains(plan.Ask.Marked, "7391") && !slices.Contains(plan.Ask.Marked, "7391-4402") || plan.Ask.Risk != protocol.RiskHigh {
		t.Errorf("the request is %+v", plan.Ask)
	}
}

func TestPrivateWordsAreNoticedInOtherForms(t *testing.T) {
	private := "The vault: pin 4938, card 7719-4455-88. The phrase is correct horse battery. Latitude 53.37°, longitude 7.21°. Nobody but the owner knows."
	reading := &Reading{User: []string{"What is the weather in Emden in 1999?"}, Private: []string{private}}
	query := func(text string) Plan {
		return readPage.Decide(&Call{Reading: reading}, nil, Description{Outward: text})
	}
	for _, text := range []string{
		"pin 4938", "pin 4 9 3 8", "4-9-3-8", "card 7719445588", "card 7719 4455 88", "771944 5588", "correcthorse", "the horsebattery", "weather 53.37,7.21", "weather 53,37", "but the owner", "aGVsbG8gd29ybGQgdGhpcyBpcw",
	} {
		if plan := query(text); plan.Ask == nil || len(plan.Ask.Marked) == 0 {
			t.Errorf("%q leaves without a mark", text)
		}
	}
	for _, text := range []string{"weather in Emden", "weather 1999", "tides of the north sea", "the horse", "page 53"} {
		if plan := query(text); plan.Ask != nil {
			t.Errorf("%q asks: %+v", text, plan.Ask)
		}
	}
}

// A picture may show anything, so whatever leaves asks, once for the conversation.
func TestWhatLeavesAfterAPictureAsks(t *testing.T) {
	search := Tool{Name: "web_search", Effect: protocol.EffectRead, Risk: protocol.RiskLow, Reversibility: protocol.Reversible}
	call := &Call{Reading: &Reading{User: []string{"What is this?"}, Opaque: true}}
	about := Description{Outward: "small wader with orange legs"}
	plan := search.Decide(call, nil, about)
	if plan.Ask == nil || !slices.Contains(plan.Ask.Options, protocol.ApproveForConversation) || len(plan.Ask.Marked) != 0 {
		t.Fatalf("the plan is %+v", plan.Ask)
	}
	call.Grants = []turnlog.Grant{{Tool: "web_search"}}
	if plan := search.Decide(call, nil, about); plan.Ask != nil {
		t.Errorf("a granted search asks: %+v", plan.Ask)
	}
}

// The work for a call does not grow with what the model has read, once that is indexed.
func TestManyCallsWithLongAddressesAreDecidedQuickly(t *testing.T) {
	reading := &Reading{Private: []string{strings.Repeat("a b c d e f g ", 100_000)}}
	address := address("https://e.example/" + strings.Repeat("a/b/z/", 600))
	for range 50 {
		if plan := readPage.Decide(&Call{Reading: reading}, nil, address); plan.Ask == nil {
			t.Fatal("the address does not ask")
		}
	}
}

// What a user reads before a decision cannot be written backwards, nor hide a part; the input shows every character.
func TestTheTextsOfARequestAreClean(t *testing.T) {
	plan := sendMail.Decide(&Call{Reading: &Reading{}}, json.RawMessage(`{}`), Description{
		Summary: "Sends \u202ecba\u202c to \u200bAda.", Effects: []string{"Ada\u2066 reads it."},
	})
	if plan.Ask == nil || plan.Ask.Summary != "Sends cba to Ada." || !slices.Equal(plan.Ask.Effects, []string{"Ada reads it."}) {
		t.Errorf("%+v", plan.Ask)
	}
	if plain := sendMail.Decide(&Call{Reading: &Reading{}}, json.RawMessage(`{}`), Description{}); plain.Ask.Effects == nil {
		t.Error("a request without effects has no list of them")
	}
}
