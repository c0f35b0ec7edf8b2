package promises

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/load"
	"turnstone/protocol"
	"turnstone/protocol/client"
)

// responses measures every kind of request that a client sends all the time, one after the other, while nothing fails. A
// handler that became slow is found here even if nothing else of the bench uses it.
func (r *run) responses(ctx context.Context) error {
	api := r.via[0][0]
	requests, hide, err := everyday(ctx, api)
	if err != nil {
		return err
	}
	for range r.pick(5, 1) {
		for _, one := range requests {
			status, took, err := respond(ctx, api, one)
			if err != nil {
				return err
			}
			if status >= http.StatusBadRequest {
				return fmt.Errorf("%s %s without a fault: %d", one.Method, one.Path, status)
			}
			r.add(goals.ResponseLimit, one.Method+" "+hide.Replace(one.Path), took)
			_, took, err = respond(ctx, api, client.Request{Method: http.MethodGet, Path: "/health"})
			if err != nil {
				return err
			}
			r.addIdle(goals.ResponseLimit, took)
		}
	}
	return nil
}

// everyday returns the requests, which concern a new conversation and a new project. hide removes their identifiers from a
// path.
func everyday(ctx context.Context, api *client.Client) (requests []client.Request, hide *strings.Replacer, err error) {
	var conversation protocol.Conversation
	var project protocol.Project
	create := func(path string, body map[string]string, into any) error {
		request := client.Request{Method: http.MethodPost, Path: path, Body: body}
		requests = append(requests, request)
		return api.Do(ctx, request, into)
	}
	if err := create("/conversations", map[string]string{"title": "Responses"}, &conversation); err != nil {
		return nil, nil, err
	}
	if err := create("/projects", map[string]string{"name": "Responses"}, &project); err != nil {
		return nil, nil, err
	}
	inConversation, inProject := "/conversations/"+conversation.ConversationID.String(), "/projects/"+project.ProjectID.String()
	for _, path := range []string{
		"/account/identities", "/account/imports", "/account/passkeys", "/account/security-log", "/account/settings", "/auth/session", "/auth/sessions", "/conversations",
		"/files", "/files/picker?q=a",
		"/projects", "/search?q=responses", "/shares", "/usage", "/version", "/profiles", "/ready",
		inConversation, inConversation + "/messages", inConversation + "/branches", inConversation + "/follow-ups", inConversation + "/move-targets",
		inConversation + "/shares", inConversation + "/usage", inConversation + "/export",
		inProject, inProject + "/conversations", inProject + "/files", inProject + "/instructions", inProject + "/search?q=responses", inProject + "/settings",
		inProject + "/work-history",
	} {
		requests = append(requests, client.Request{Method: http.MethodGet, Path: path})
	}
	hide = strings.NewReplacer(conversation.ConversationID.String(), "…", project.ProjectID.String(), "…")
	return append(requests,
		client.Request{Method: http.MethodPut, Path: inConversation + "/title", Body: map[string]string{"title": "Responses"}},
		client.Request{Method: http.MethodPut, Path: inConversation + "/draft", Body: map[string]string{"content": time.Now().String()}},
		client.Request{Method: http.MethodPost, Path: "/chat", Body: client.ChatRequest{Input: client.Text(load.Script{Tokens: 1}.String())}},
	), hide, nil
}
