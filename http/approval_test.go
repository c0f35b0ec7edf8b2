package http

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/http/route"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
	"turnstone/providers/model/modeltest"
	"turnstone/providers/model/scripted"
)

// approvalWorld returns a user of a service whose scripted model asks for approvals.
func approvalWorld(t *testing.T) *user {
	t.Helper()
	return signUp(t, newWorld(t, func(c *testConfig) {
		c.Turns = nodeOn(t, c, scripted.New(scripted.Options{}), nil, func() { t.Error("the node was fenced") })
	}))
}

// asks starts a turn with a directive in the background, and returns its pending approvals when it waits for n of them, and a
// function that waits for the end of the stream and returns its body.
func (u *user) asks(n int, body route.Object, directive string) (pending []protocol.Approval, end func() string) {
	u.t.Helper()
	return u.asksAfter(n, body, "[[script "+directive+"]]")
}

// asksAfter does the same with a text of the user.
func (u *user) asksAfter(n int, body route.Object, text string) (pending []protocol.Approval, end func() string) {
	u.t.Helper()
	body["input"] = []route.Object{{"type": "text", "text": text}}
	ended := make(chan string, 1)
	go func() { ended <- string(u.client.do("POST", "/chat", body).body) }()
	var list protocol.List[protocol.Approval]
	u.changes.Await(u.t, "the approvals are pending", func() bool {
		u.expect(200, "GET", "/approvals", nil).into(u.t, &list)
		return len(list.Data) == n
	})
	return list.Data, func() string {
		select {
		case text := <-ended:
			return text
		case <-time.After(storetest.WaitLimit):
			u.t.Fatal("the stream did not end")
			return ""
		}
	}
}

// decide sends a decision on an approval.
func (u *user) decide(status int, a *protocol.Approval, decision protocol.Decision, more route.Object) decodedReply {
	u.t.Helper()
	body := route.Object{"type": "approval", "turn_id": a.TurnID, "approval_id": a.ApprovalID, "decision": decision, "input_digest": a.InputDigest}
	for name, value := range more {
		body[name] = value
	}
	return u.do(status, "POST", "/chat/steering", body)
}

func TestADecisionOnAnApprovalCountsOnce(t *testing.T) {
	t.Parallel()
	u := approvalWorld(t)
	pending, end := u.asks(2, route.Object{}, "approval=high:irreversible approval=low:reversible tokens=5")
	second, first := &pending[0], &pending[1]
	if first.Risk != protocol.RiskHigh { // the identifiers of one turn have no order
		second, first = first, second
	}
	if first.Risk != protocol.RiskHigh || first.Reversibility != protocol.Irreversible || first.State != protocol.ApprovalPending || len(first.Reasons) == 0 || first.Decision != nil {
		t.Errorf("the approval is %+v", first)
	}
	turn := "/chat/turns/" + first.TurnID.String()
	wantField(t, u.do(200, "GET", turn, nil), "state", "requires_action")
	for _, path := range []string{turn, "/conversations/" + first.ConversationID.String()} {
		if listed, is := u.do(200, "GET", path, nil).at("pending_approvals").([]any); !is || len(listed) != 2 {
			t.Errorf("%s lists %v", path, listed)
		}
	}

	for field, body := range map[string]route.Object{
		"body.approval_id": {"approval_id": nil}, "body.input_digest": {"input_digest": "sha256:1"}, "body.decision": {"decision": "maybe"},
		"body.edited_input": {"decision": "approve_with_edits"}, "body.reason": {"reason": "no", "decision": "approve_once"},
	} {
		wantField(t, u.decide(422, first, protocol.ApproveOnce, body), "errors.0.field", field)
	}
	wantField(t, u.decide(422, first, protocol.ApproveWithEdits, route.Object{"edited_input": route.Object{"note": 7}}), "errors.0.field", "body.edited_input")
	wantField(t, u.decide(409, first, protocol.ApproveOnce, route.Object{"input_digest": "sha256:" + strings.Repeat("0", 64)}), "code", "approval_changed")
	u.decide(404, first, protocol.ApproveOnce, route.Object{"approval_id": protocol.DeriveApprovalID(first.TurnID, 9)})

	decided := u.decide(202, first, protocol.ApproveWithEdits, route.Object{"edited_input": route.Object{"note": "changed"}})
	wantField(t, decided, "replayed", false)
	again := u.decide(202, first, protocol.ApproveWithEdits, route.Object{"edited_input": route.Object{"note": "changed"}})
	wantField(t, again, "steering_id", decided.at("steering_id"))
	wantField(t, again, "replayed", true)
	conflict := u.decide(409, first, protocol.RejectCall, nil)
	wantField(t, conflict, "code", "approval_decided")
	wantField(t, conflict, "current.decision", "approve_with_edits")
	u.decide(409, first, protocol.ApproveWithEdits, route.Object{"edited_input": route.Object{"note": "other"}})
	wantField(t, u.do(200, "GET", turn, nil), "state", "requires_action")

	u.decide(202, second, protocol.RejectCall, route.Object{"reason": "Not today."})
	text := end()
	for _, want := range []string{
		`"decision":"approve_with_edits","by":"user","input":{"note":"changed"`, `"state":"succeeded","outcome":"ok"`, `"decision":"reject"`,
		`"state":"rejected","outcome":"denied"`, `said: Not today.`, `"status":"completed"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the stream has no %s:\n%s", want, text)
		}
	}
	// After the end of the turn, the receipts and the conflicts are those of before.
	wantField(t, u.decide(202, second, protocol.RejectCall, route.Object{"reason": "Not today."}), "replayed", true)
	u.decide(409, second, protocol.RejectCall, route.Object{"reason": "Never."})
	wantField(t, u.decide(409, second, protocol.ApproveOnce, nil), "current.state", "rejected")
	wantField(t, u.do(200, "GET", "/approvals/"+second.ApprovalID.String(), nil), "decision", "reject")
	wantField(t, u.do(200, "GET", "/approvals", nil), "data.0", nil)
	wantField(t, u.do(200, "GET", "/approvals?state=decided&limit=1", nil), "data.0.turn_id", second.TurnID.String())
	wantField(t, u.do(200, "GET", "/approvals?state=any&limit=1", nil), "has_more", true)

	var events []string
	for _, event := range u.events(u.account.AccountID) {
		if strings.HasPrefix(event, "approval.") {
			events = append(events, event)
		}
	}
	if want := []string{"approval.requested", "approval.requested", "approval.approved", "approval.used", "approval.rejected"}; !slices.Equal(events, want) {
		t.Errorf("the audit has %v, want %v", events, want)
	}
	if n := query[int64](u.world, `select count(*) from audit where event = 'approval.used' and detail ->> 'approval_id' = $1 and detail ->> 'tool_id' = $2`,
		first.ApprovalID.String(), first.ToolID.String())[0]; n != 1 {
		t.Errorf("the audit names the call that ran %d times", n)
	}

	var devices protocol.List[protocol.Device]
	u.expect(200, "GET", "/auth/sessions", nil).into(t, &devices)
	session := devices.Data[0].SessionID.UUID()
	if of := query[string](u.world, `select distinct session_id::text from audit where event in ('approval.approved', 'approval.rejected')`); !slices.Equal(of, []string{session}) {
		t.Errorf("the decisions are of the sessions %v, want %s", of, session)
	}
	if n := query[int64](u.world, `select count(*) from audit where event in ('approval.requested', 'approval.used') and session_id is not null`)[0]; n != 0 {
		t.Errorf("%d entries that are no decision name a session", n)
	}

	other := &user{u.world.client().register("eve@example.com")}
	other.decide(404, second, protocol.RejectCall, nil)
	other.do(404, "GET", "/approvals/"+second.ApprovalID.String(), nil)
}

// A deletion hides the approvals of a conversation at once, also from decisions.
func TestADecisionOnAnApprovalOfADeletedConversationIsNotFound(t *testing.T) {
	t.Parallel()
	u := approvalWorld(t)
	pending, end := u.asks(1, route.Object{}, "approval=medium:compensable tokens=3")
	// The row alone, so that the turn still waits as it does while the deletion is on its way to its node.
	u.world.database.Admin(t, `update conversations set deleted_at = now() where conversation_id = $1`, pending[0].ConversationID)
	u.decide(404, &pending[0], protocol.ApproveOnce, nil)
	u.do(404, "POST", "/chat/steering", route.Object{"type": "cancel", "turn_id": pending[0].TurnID})
	u.world.database.Admin(t, `update conversations set deleted_at = null where conversation_id = $1`, pending[0].ConversationID)
	u.decide(202, &pending[0], protocol.RejectCall, nil)
	end()
}

func TestATurnOfADeletedConversationTakesNoCommands(t *testing.T) {
	t.Parallel()
	e := newUncancellableTurn(t)
	e.delete()
	for _, command := range []route.Object{
		{"type": "cancel"},
		{"type": "cancel", "scope": "turn_and_follow_ups"},
		{"type": "withdraw", "steering_id": protocol.NewSteeringID()},
		{"type": "input", "client_steering_id": "1", "input": []route.Object{{"type": "text", "text": "quickly"}}},
	} {
		command["turn_id"] = e.turn
		e.expect(404, "POST", "/chat/steering", command)
	}
	e.release()
}

// An input with characters that JSON may escape is the one that was asked about, unless the user has edited it.
func TestOnlyAnEditChangesTheInputOfACall(t *testing.T) {
	t.Parallel()
	u := approvalWorld(t)
	for name, test := range map[string]struct {
		decision protocol.Decision
		edit     func(input map[string]any) // nil: the request has no input
		edited   bool
	}{
		"approved":                     {protocol.ApproveOnce, nil, false},
		"rejected":                     {protocol.RejectCall, nil, false},
		"approved with the same input": {protocol.ApproveWithEdits, func(map[string]any) {}, false},
		"edited":                       {protocol.ApproveWithEdits, func(input map[string]any) { input["note"] = "a<b" }, true},
	} {
		pending, end := u.asksAfter(1, route.Object{}, "Send a message to the crew: a<b & c>d")
		more := route.Object{}
		if test.edit != nil {
			var input map[string]any
			if err := json.Unmarshal(pending[0].Input, &input); err != nil || !strings.Contains(fmt.Sprint(input["note"]), "a<b & c>d") {
				t.Fatalf("%s: %s, %v", name, pending[0].Input, err)
			}
			test.edit(input)
			more["edited_input"] = input
		}
		u.decide(202, &pending[0], test.decision, more)
		if text := end(); strings.Contains(text, `"by":"user","input"`) != test.edited {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestACancelEndsATurnThatWaitsForAnApproval(t *testing.T) {
	t.Parallel()
	u := approvalWorld(t)
	pending, end := u.asks(1, route.Object{}, "approval=medium:compensable")
	a := &pending[0]
	u.do(202, "POST", "/chat/steering", route.Object{"type": "input", "turn_id": a.TurnID, "client_steering_id": "1", "input": []route.Object{{"type": "text", "text": "quickly"}}})
	wantField(t, u.do(200, "GET", "/chat/turns/"+a.TurnID.String(), nil), "state", "requires_action")
	u.do(202, "POST", "/chat/steering", route.Object{"type": "cancel", "turn_id": a.TurnID})
	if text := end(); !strings.Contains(text, `"decision":"cancelled","by":"policy"`) || !strings.Contains(text, `"status":"cancelled"`) {
		t.Errorf("the stream is %s", text)
	}
	wantField(t, u.decide(409, a, protocol.ApproveOnce, nil), "current.state", "cancelled")
}

func TestACallThatIsApprovedForTheConversationIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	u := approvalWorld(t)
	pending, end := u.asks(1, route.Object{}, "approval=medium:compensable tokens=3")
	u.decide(202, &pending[0], protocol.ApproveForConversation, nil)
	end()
	again := u.expect(200, "POST", "/chat", route.Object{
		"conversation_id": pending[0].ConversationID, "input": []route.Object{{"type": "text", "text": "[[script approval=medium:compensable tokens=3]]"}},
	})
	if text := string(again.body); strings.Contains(text, "approval.requested") || !strings.Contains(text, `"outcome":"ok"`) {
		t.Errorf("the second turn is %s", text)
	}
	if n := query[int64](u.world, `select count(*) from audit where event = 'approval.used' and not detail ? 'approval_id'`)[0]; n != 1 {
		t.Errorf("the audit has %d calls that ran under the grant, want 1", n)
	}
	// Another conversation asks, and so does a risk that must not be approved in advance.
	asked, finish := u.asks(1, route.Object{"conversation_id": pending[0].ConversationID}, "approval=critical:irreversible tokens=3")
	u.decide(422, &asked[0], protocol.ApproveForConversation, nil)
	u.decide(202, &asked[0], protocol.ApproveOnce, nil)
	finish()
}

func TestATurnUsesOnlyTheToolsThatItsRequestAllows(t *testing.T) {
	t.Parallel()
	u := approvalWorld(t)
	say := func(status int, tools any) string {
		body := route.Object{"input": []route.Object{{"type": "text", "text": "[[script tool=calculate:0:ok tokens=3]]"}}}
		if tools != nil {
			body["tools"] = tools
		}
		return string(u.expect(status, "POST", "/chat", body).body)
	}
	if text := say(200, route.Object{"off": []string{"calculate"}}); !strings.Contains(text, `"code":"tool_off"`) {
		t.Errorf("the stream is %s", text)
	}
	say(200, nil)
	say(422, route.Object{"off": []string{"no_such_tool"}})
	say(422, route.Object{"connectors": []string{"cb_01h455vb4pex5vsknk084sn02q"}})
	list := u.do(200, "GET", "/tools", nil)
	wantField(t, list, "data.0.name", "calculate")
	wantField(t, list, "data.0.available", true)
	project := u.project("Kitchen")
	u.do(200, "PUT", "/projects/"+project+"/settings", route.Object{"tools": route.Object{"off": []string{"calculate"}}, "version": 0})
	wantField(t, u.do(200, "GET", "/tools?project_id="+project, nil), "data.0.available", false)
	u.do(404, "GET", "/tools?project_id="+protocol.NewProjectID().String(), nil)
	u.do(422, "GET", "/tools?project_id=proj_1", nil)
}

// storeApproval stores a pending approval of a turn that has ended, and returns its identifier.
func storeApproval(w *world, turn string) string {
	w.t.Helper()
	id := idtest.Parse[protocol.TurnID](w.t, turn)
	approval := protocol.DeriveApprovalID(id, 1)
	w.database.Admin(w.t, `
		insert into approvals (account_id, approval_id, turn_id, conversation_id, body, tool_name, resource, definition, created_at, expires_at)
		select account_id, $2, turn_id, conversation_id, json_build_object('approval_id', $3::text, 'state', 'pending', 'input', '{}'::json, 'created_at', now(), 'expires_at', now() + interval '1 day'),
			'demo_action', '', '', now(), now() + interval '1 day' from turns where turn_id = $1`, id, approval, approval.String())
	return approval.String()
}

// The stand-ins of the three formats refuse a request in which a call has no result, or a result no call, as the vendors do.
func TestProvidersAcceptHistoriesWithRejectedUnknownAndRepeatedCalls(t *testing.T) {
	t.Parallel()
	for wire, profile := range map[string]string{modeltest.Chat: "balanced", modeltest.Responses: "deep_reasoning", modeltest.Anthropic: "coding"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			call := func(id, name, input string) llm.ToolCall {
				return llm.ToolCall{ID: id, Name: name, Input: json.RawMessage(input)}
			}
			server := modeltest.NewServer(wire, modeltest.Script{Respond: func(request modeltest.Request) modeltest.Step {
				results := 0
				for _, message := range request.Messages {
					if message.Role == "tool" {
						results++
					}
				}
				switch {
				case results == 0:
					return modeltest.Step{ToolCalls: []llm.ToolCall{
						call("c1", "demo_action", `{"note":"one"}`), call("c2", "demo_action", `{"note":"two","recipient":"Ada"}`), call("c3", "invented", `{}`), call("c4", "calculate", `{"sum":1}`),
					}}
				case len(request.Tools) > 0 && (wire != modeltest.Anthropic || !strings.Contains(string(request.Raw), "tool_choice")): // some models ignore tool_choice
					return modeltest.Step{ToolCalls: []llm.ToolCall{call(fmt.Sprint("d", results), "calculate", `{"expression":"6*7"}`)}}
				}
				return modeltest.Step{Text: []string{"Done."}}
			}})
			t.Cleanup(server.Close)
			u := signUp(t, newWorld(t, func(c *testConfig) {
				c.Turns = nodeOn(t, c, modelsAt(t, server.URL), nil, func() { t.Error("the node was fenced") })
			}))
			pending, end := u.asks(2, route.Object{"profile": profile}, "")
			u.decide(202, &pending[0], protocol.RejectCall, route.Object{"reason": "Not now."})
			u.decide(202, &pending[1], protocol.ApproveOnce, nil)
			text := end()
			for _, want := range []string{`"outcome":"denied"`, `"code":"unknown_tool"`, `"code":"invalid_input"`, `"code":"repeated_call"`, `"repeated":true`, `"status":"completed"`} {
				if !strings.Contains(text, want) {
					t.Errorf("the stream has no %s: %s", want, text)
				}
			}
			last := server.Requests()[len(server.Requests())-1]
			if wire == modeltest.Anthropic { // it requires the tools of earlier calls, and respects tool_choice
				if !strings.Contains(string(last.Raw), "tool_choice") || len(last.Tools) == 0 {
					t.Errorf("the last request lets the model call tools, or has none: %s", last.Raw)
				}
				return
			}
			if before := server.Requests()[len(server.Requests())-2]; !strings.Contains(string(before.Raw), "tool_choice") {
				t.Errorf("the model may call tools: %s", before.Raw)
			}
			if len(last.Tools) > 0 {
				t.Errorf("the model sees tools although it has ignored that it may not call any: %s", last.Raw)
			}
		})
	}
}

// TestAListOfApprovalsHasNoLongInputs checks that lists, which an app reads often, have no input of more than 64 KiB.
func TestAListOfApprovalsHasNoLongInputs(t *testing.T) {
	t.Parallel()
	u := approvalWorld(t)
	pending, end := u.asks(1, route.Object{}, "approval=medium:compensable")
	a := &pending[0]
	if len(a.Input) == 0 || string(a.Input) == "null" {
		t.Fatalf("a short input is %s", a.Input)
	}
	u.world.database.Admin(t, `update approvals set body = jsonb_set(body::jsonb, '{input,note}', to_jsonb(repeat('ß', 40000)))::json where approval_id = $1`, a.ApprovalID)
	one := u.do(200, "GET", "/approvals/"+a.ApprovalID.String(), nil)
	if note, _ := one.at("input.note").(string); len([]rune(note)) != 40000 {
		t.Errorf("the approval by itself has %d characters of its note", len([]rune(note)))
	}
	for path, field := range map[string]string{
		"/approvals": "data.0", "/approvals?state=any": "data.0", "/chat/turns/" + a.TurnID.String(): "pending_approvals.0", "/conversations/" + a.ConversationID.String(): "pending_approvals.0",
	} {
		reply := u.do(200, "GET", path, nil)
		wantField(t, reply, field+".input", nil)
		wantField(t, reply, field+".input_digest", a.InputDigest)
	}
	u.decide(202, a, protocol.RejectCall, nil)
	end()
}
