package persistence

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"turnstone/persistence/accounts"
	"turnstone/persistence/approvals"
	"turnstone/persistence/artifacts"
	"turnstone/persistence/audit"
	"turnstone/persistence/conversations"
	"turnstone/persistence/erasure"
	"turnstone/persistence/exports"
	"turnstone/persistence/feed"
	"turnstone/persistence/feedback"
	"turnstone/persistence/files"
	"turnstone/persistence/followups"
	"turnstone/persistence/idempotency"
	"turnstone/persistence/imports"
	"turnstone/persistence/jobs"
	"turnstone/persistence/journal"
	"turnstone/persistence/limits"
	"turnstone/persistence/mails"
	"turnstone/persistence/memory"
	"turnstone/persistence/nodes"
	"turnstone/persistence/objects"
	"turnstone/persistence/operator"
	"turnstone/persistence/pg"
	"turnstone/persistence/projects"
	"turnstone/persistence/prompts"
	"turnstone/persistence/research"
	"turnstone/persistence/search"
	"turnstone/persistence/shares"
	"turnstone/persistence/turns"
	"turnstone/persistence/usage"
	"turnstone/protocol"
)

// Config configures Open. A number that is zero selects the default.
type Config struct {
	URL         string        // connection URL of the login role
	MaxConns    int32         // for requests
	EngineConns int32         // for the journal, the lease and the sweeps
	Objects     objects.Store // nil: for commands that neither import nor erase
	FileQuota   files.Quota   // of an account; zero: files.DefaultQuota
	Mail        bool          // a node sends the mails that are stored; else none are
	KeyWait     time.Duration // how long a request waits for another one with its Idempotency-Key; default 5 s
	CheckSpace  func() error  // see pg.Config
	Logger      *zap.Logger
}

// Stores are the stores of one database. They share its connections.
type Stores struct {
	*pg.DB
	Audit         *audit.Log
	Accounts      *accounts.Store
	Passkeys      *accounts.Passkeys
	Recovery      *accounts.Recovery
	Mails         *mails.Outbox
	Idempotency   *idempotency.Store
	Projects      *projects.Store
	Prompts       *prompts.Store
	Conversations *conversations.Store
	Drafts        *conversations.Drafts
	FollowUps     *followups.Store
	Feedback      *feedback.Store
	Approvals     *approvals.Store
	Memory        *memory.Store
	Shares        *shares.Store
	Artifacts     *artifacts.Store
	Research      *research.Store
	Usage         *usage.Store
	Exports       *exports.Store
	Imports       *imports.Store
	Files         *files.Store
	FileTexts     *files.Texts
	Uploads       *files.Uploads
	Erasures      *erasure.Store
	Feed          *feed.Store
	Search        *search.Store
	Operator      *operator.Store
	queue         *jobs.Queue
	hasObjects    bool
}

// Open connects to Postgres. It returns a one-line error if the server, the login role or the schema would break the
// guarantees of the service.
func Open(ctx context.Context, config Config) (*Stores, error) {
	db, err := pg.Open(ctx, pg.Config{
		URL: config.URL, MaxConns: config.MaxConns, EngineConns: config.EngineConns, Logger: config.Logger, SelfTest: journal.SelfTest, CheckSpace: config.CheckSpace,
	})
	if err != nil {
		return nil, err
	}
	s := &Stores{
		DB: db, Audit: audit.New(db), Passkeys: accounts.NewPasskeys(db), Idempotency: idempotency.New(db, config.KeyWait), Drafts: conversations.NewDrafts(db),
		Usage: usage.New(db), Feed: feed.New(db), Feedback: feedback.New(db), Approvals: approvals.New(db), Memory: memory.New(db), Prompts: prompts.New(db),
	}
	if s.queue, err = jobs.NewQueue(db); err != nil {
		db.Close()
		return nil, err
	}
	s.Mails = mails.NewOutbox(db, s.queue, config.Mail)
	s.Accounts = accounts.New(db, s.Mails)
	s.Recovery = accounts.NewRecovery(db, s.Accounts, s.queue, s.Mails)
	s.FollowUps = followups.New(db, config.Logger)
	s.Projects, s.Conversations, s.Operator = projects.New(db, s.queue), conversations.New(db, s.queue), operator.New(db, s.queue)
	s.Search = search.New(db)
	s.Shares, s.Artifacts = shares.New(db), artifacts.New(db, config.FileQuota)
	s.Research = research.New(db, s.Artifacts)
	s.hasObjects = config.Objects != nil
	s.Files, s.Uploads = files.New(db, s.queue, config.Objects), files.NewUploads(db, s.queue, config.Objects, config.FileQuota)
	s.FileTexts = files.NewTexts(db, s.Files, s.Search, config.FileQuota)
	s.Imports = imports.New(db, s.queue, config.Objects, s.Files, config.FileQuota)
	s.Erasures = erasure.New(db, s.queue, config.Objects)
	s.Exports = exports.New(db, s.Conversations, s.FollowUps, s.Files, exports.Others{
		BeforeConversations: slices.Concat(s.Accounts.ExportSections(), s.Memory.ExportSections()),
		BeforeFiles:         slices.Concat(s.Research.ExportSections(), s.Projects.ExportSections(), s.Prompts.ExportSections(), s.Shares.ExportSections()),
		AtEnd:               s.Usage.ExportSections(),
	})
	return s, nil
}

// StartTurns starts a store of turns. Its Close stops it.
func (s *Stores) StartTurns(options turns.Options) *turns.Store {
	return turns.New(s.DB, s.queue, s.Idempotency, s.Conversations, options)
}

// JobWorkers holds the functions that jobs call. A node does not run the jobs of a function that is nil.
type JobWorkers struct {
	// Node runs the jobs. Zero: a program that is not a node.
	Node protocol.NodeID
	// Title generates and stores an automatic title.
	Title func(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, turn protocol.TurnID) error
	// Cancel cancels what runs for a disabled account. Either both functions are nil or none.
	Cancel operator.Cancel
	// ReadText reads the text of a content; see package providers/extract.
	ReadText files.ReadText
	// ReceiveFile receives a file of an import.
	ReceiveFile imports.ReceiveFile
	// SendMail sends a mail.
	SendMail mails.Send
	// Observe gets the outcome of every job.
	Observe jobs.Observe
}

// StartJobs runs the jobs of all stores on this node: it erases deleted conversations, removes expired rows, generates
// titles, and more. Close ends it.
func (s *Stores) StartJobs(ctx context.Context, workers JobWorkers) (*jobs.Runner, error) {
	directory := nodes.NewDirectory(s.DB)
	expireTokens := func(ctx context.Context) error { return limits.ExpireTokens(ctx, s.DB) }
	kinds := []jobs.Job{
		jobs.NewExpiry(s.Idempotency.Expire, s.Accounts.Expire, expireTokens, directory.Expire, s.Conversations.Expire, s.Shares.Expire, s.Erasures.Expire, s.Feed.Expire,
			s.Uploads.Expire, s.Mails.Expire, s.Recovery.Expire, s.Memory.Expire),
		s.Conversations.PurgeJob(), s.Projects.ReindexJob(), s.Projects.PurgeJob(s.Conversations.EraseOfProject), turns.PartitionJob(s.DB), s.Audit.ExpiryJob(),
		s.Search.IndexJob(),
	}
	if s.hasObjects {
		kinds = append(kinds, s.Imports.SweepJob(), s.Erasures.Job(), s.Uploads.ReapJob(), s.Files.PurgeJob(), s.Files.SweepJob(), s.Files.ReconcileJob())
	}
	if s.hasObjects && workers.ReceiveFile != nil {
		kinds = append(kinds, s.Imports.RunJob(workers.Node, workers.ReceiveFile))
	}
	if s.hasObjects && workers.ReadText != nil {
		kinds = append(kinds, s.FileTexts.ExtractJob(workers.ReadText))
	}
	if workers.Cancel.Turn != nil {
		kinds = append(kinds, s.Operator.DisableJob(workers.Cancel))
	}
	if workers.SendMail != nil {
		kinds = append(kinds, s.Mails.SendJob(workers.SendMail), s.Recovery.ResetJob())
	}
	if workers.Title != nil {
		kinds = append(kinds, turns.TitleJob(workers.Title))
	}
	return jobs.Start(ctx, s.DB, workers.Node, workers.Observe, kinds...)
}
