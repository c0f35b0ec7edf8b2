package http

import (
	"turnstone/http/accountdata"
	"turnstone/http/accounts"
	"turnstone/http/approvals"
	"turnstone/http/artifacts"
	"turnstone/http/chat"
	"turnstone/http/conversations"
	"turnstone/http/feed"
	"turnstone/http/feedback"
	"turnstone/http/files"
	"turnstone/http/memory"
	"turnstone/http/projects"
	"turnstone/http/prompts"
	"turnstone/http/research"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/search"
	"turnstone/http/system"
	"turnstone/http/tools"
	"turnstone/http/transcriptions"
	"turnstone/http/usage"
)

// table returns what every noun adds to the service, in the order of their tags in the document. A new endpoint needs a line
// in the routes of its noun, a handler and a method of the store; a new noun needs a package and its handlers here.
func (s *Server) table() route.Table {
	db, confirmations := s.DB, resource.Confirmations{Keys: s.keys, Now: s.now}
	return route.Join(
		s.system().Routes(),
		(&accounts.Handlers{
			Auth: s.auth, Sessions: s.Sessions, Passkeys: db.Passkeys, Settings: db.Accounts, Instructions: db.Accounts, SecurityLog: db.Audit, Files: db.Uploads,
			Turns: s.TurnStore, Budget: s.Budget, MaxLiveTurns: s.MaxLiveTurns, Keys: s.keys, Now: s.now,
		}).Routes(),
		accountdata.New(accountdata.Config{
			Stores:   accountdata.Stores{Exports: db.Exports, Imports: db.Imports, Erasures: db.Erasures, Audit: db.Audit},
			Sessions: s.sse, Keys: s.keys, ExpiredCookie: s.auth.ExpiredCookie, Log: s.log, Now: s.now,
		}).Routes(),
		(&chat.Handlers{
			Turns: s.Turns, Store: s.TurnStore, Messages: db.Conversations, FollowUps: db.FollowUps, Approvals: db.Approvals, Tools: s.Tools,
			Streams: s.streams, Limits: s.limits, Keys: s.keys, Now: s.now,
		}).Routes(),
		s.system().ProfileRoutes(),
		(&conversations.Handlers{
			Store: db.Conversations, Placements: db.Conversations, Branches: db.Conversations, Messages: db.Conversations, Drafts: db.Drafts,
			Turns: s.Turns, Confirmations: confirmations, Keys: s.keys,
		}).Routes(),
		(&feedback.Handlers{Store: db.Feedback}).Routes(),
		(&projects.Handlers{
			Store: db.Projects, Texts: db.Projects, Conversations: db.Conversations, Turns: s.Turns, Uploads: s.Uploads,
			Tools: s.Tools, Confirmations: confirmations, Keys: s.keys,
		}).Routes(),
		(&prompts.Handlers{Store: db.Prompts, Keys: s.keys}).Routes(),
		files.New(files.Config{
			Uploads: s.Uploads, StoredUploads: db.Uploads, Store: db.Files, Texts: db.FileTexts, Projects: db.Files, ProjectReader: db.Projects, Streams: s.streams, Sessions: s.sse, Keys: s.keys, Log: s.log, Now: s.now,
			TextWait: s.AttachmentWait, Space: s.AttachmentSpace, Pictures: s.AttachmentPictures, MaxBytes: s.MaxUploadBytes, Lifetime: s.UploadLifetime,
		}).Routes(),
		(&transcriptions.Handlers{Transcriber: s.Transcriber, Sessions: s.sse}).Routes(),
		(&usage.Handlers{Store: db.Usage, Budget: s.Budget, Keys: s.keys, Now: s.now}).Routes(),
		search.New(db.Search, db.Projects, s.keys).Routes(),
		(&feed.Handlers{Hub: s.hub, Store: db.Feed, Keys: s.keys, Streams: s.streams}).Routes(),
		s.shares.Routes(),
		(&approvals.Handlers{Store: db.Approvals, Keys: s.keys}).Routes(),
		(&artifacts.Handlers{Store: db.Artifacts, Sessions: s.sse, Keys: s.keys, Log: s.log}).Routes(),
		(&research.Handlers{Tasks: s.Research, Store: db.Research, Admission: s.ResearchAdmission, Streams: s.streams, Keys: s.keys, Now: s.now}).Routes(),
		(&tools.Handlers{Catalogue: s.Tools, Conversations: db.Conversations, Projects: db.Projects, Consents: db.Memory}).Routes(),
		(&memory.Handlers{Store: db.Memory, Now: s.now}).Routes(),
		s.shares.SharedRoutes(),
	)
}

func (s *Server) system() *system.Handlers {
	return &system.Handlers{Readiness: s.readiness, Draining: s.Draining, Environment: s.Environment, BuildSHA: s.BuildSHA, ModelFamily: s.ModelFamily, Profiles: s.Abilities}
}
