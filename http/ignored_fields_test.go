package http

import (
	"testing"

	"turnstone/http/route"
	"turnstone/protocol"
)

// wantFieldError checks that a response is a 422 that names a field first.
func wantFieldError(t *testing.T, resp *reply, field string) {
	t.Helper()
	if len(resp.Errors) == 0 || resp.Errors[0].Field != field {
		t.Errorf("%s does not name %s", resp.body, field)
	}
}

func TestAChatRefusesFieldsThatDifferFromItsConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { liveOn(t, c) })
	c := w.client().register("ada@example.com")
	var mine, other protocol.Project
	c.expect(201, "POST", "/projects", route.Object{"name": "Mine"}).into(t, &mine)
	c.expect(201, "POST", "/projects", route.Object{"name": "Other"}).into(t, &other)
	var inProject, alone protocol.Conversation
	c.expect(201, "POST", "/conversations", route.Object{"project_id": mine.ProjectID}).into(t, &inProject)
	c.expect(201, "POST", "/conversations", route.Object{}).into(t, &alone)
	chat := func(status int, of protocol.Conversation, field string, value any) *reply {
		t.Helper()
		return c.expect(status, "POST", "/chat", route.Object{
			"conversation_id": of.ConversationID, "input": []route.Object{{"type": "text", "text": "Hello"}}, field: value,
		})
	}
	wantFieldError(t, chat(422, inProject, "project_id", other.ProjectID), "body.project_id")
	wantFieldError(t, chat(422, alone, "project_id", mine.ProjectID), "body.project_id")
	wantFieldError(t, chat(422, alone, "temporary", true), "body.temporary")
	chat(200, inProject, "project_id", mine.ProjectID)
	chat(200, alone, "project_id", nil)
	wantFieldError(t, c.expect(422, "POST", "/projects/"+mine.ProjectID.String()+"/conversations", route.Object{"temporary": true}), "body.temporary")
}

func TestAMissingFieldIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	wantFieldError(t, c.expect(422, "POST", "/auth/register", route.Object{"password": testPassword}), "body.email")
	c.register("ada@example.com")
	wantFieldError(t, c.expect(422, "POST", "/projects", route.Object{}), "body.name")
}
