package route

import (
	"slices"

	"turnstone/http/auth"
)

// Bucket names a limit. A request draws from the bucket of its account or, without a session, from that of its address.
type Bucket = auth.Bucket

// The buckets. Reads, replays and refusals are counted in the process, so that they can always be decided; the others
// are in Redis.
const (
	NoBucket     Bucket = ""
	BucketReads  Bucket = "reads"
	BucketWrites Bucket = "writes"
	BucketChat   Bucket = "chat"

	BucketRefusals Bucket = "refusals" // by address, for requests that end in 401 or 403
	BucketSearch   Bucket = "search"
	BucketCancel   Bucket = "cancel"  // in addition to chat, so that an account over its chat quota can still stop a turn
	BucketReplays  Bucket = "replays" // for the events of work that has ended; see exchange.Streams.ServeLog
	bucketUploads  Bucket = "uploads" // for the creation of uploads, and for recordings
	BucketShares   Bucket = "shares"  // for the creation of shares
	BucketShared   Bucket = "shared"  // by address, for everybody who reads shares
)

// Limits of JSON bodies, in bytes. A route has the limit SmallBody unless its table says otherwise; then WithMaxBody
// states the size of its largest valid body, in which every character may be written as two escapes of six bytes.
const (
	SmallBody  = 32 << 10
	MediumBody = 256 << 10 // for a text of 16,000 characters
	MaxBody    = 1 << 20
)

// Policy states the conditions under which the handler of a route runs. The zero Policy is the strict one: it requires
// a session and, for an unsafe method, the CSRF header.
type Policy struct {
	Public     bool   // no session needed; publicRoutes in policy_test.go lists all such routes
	Bucket     Bucket // the limit of the request; NoBucket: the handler draws from a bucket itself, or there is no limit
	Sudo       bool   // needs a sign-in that is at most ten minutes old
	NoStore    bool   // Cache-Control: no-store instead of private, no-cache
	Idempotent bool   // a creating POST that accepts Idempotency-Key
	Streamed   bool   // the handler reads the body, so an Idempotency-Key is bound to it when it has ended
	OneBody    bool   // an Idempotency-Key with another body is a conflict (409) instead of an invalid value (422)
	Conflicts  bool   // may respond 409
	Cancels    bool   // may be a cancel, which has reserved slots; the handler calls exchange.CheckReservedSlot
	Heavy      bool   // may take many milliseconds of Postgres and of a processor: few of an account run at once; see exchange.Queues
	Readiness  bool   // while persistence is down, and no session can be verified, reports that to every caller
}

// The common policies.
var (
	Reads          = Policy{Bucket: BucketReads}
	Lists          = Policy{Bucket: BucketReads, Heavy: true}
	Searches       = Policy{Bucket: BucketSearch, NoStore: true, Heavy: true}
	Writes         = Policy{Bucket: BucketWrites, Conflicts: true}
	Creates        = Policy{Bucket: BucketWrites, Conflicts: true, Idempotent: true}
	Copies         = Policy{Bucket: BucketWrites, Conflicts: true, Idempotent: true, Heavy: true}
	Imports        = Policy{Bucket: BucketWrites, Conflicts: true, Idempotent: true, Streamed: true}
	Shares         = Policy{Bucket: BucketShares, Conflicts: true, Idempotent: true, Heavy: true}
	Uploads        = Policy{Bucket: bucketUploads, Conflicts: true, Idempotent: true, OneBody: true}
	Transcriptions = Policy{Bucket: bucketUploads, NoStore: true}
	Shared         = Policy{Public: true, NoStore: true, Bucket: BucketShared}
	Redirects      = Policy{Public: true, NoStore: true, Bucket: BucketWrites, Conflicts: true}
	PublicWrites   = Policy{Public: true, NoStore: true, Bucket: BucketWrites, Conflicts: true} // limited by address
)

// Unstored returns the policy for responses that no cache may store.
func (p Policy) Unstored() Policy { p.NoStore = true; return p }

// Recent returns the policy for requests that need a recent sign-in.
func (p Policy) Recent() Policy { p.Sudo = true; return p }

// CacheControl returns the value of the header Cache-Control.
func (p Policy) CacheControl() string {
	if p.NoStore {
		return "no-store"
	}
	return "private, no-cache"
}

var safeMethods = []string{"GET", "HEAD", "OPTIONS"}

// Safe reports whether a method is defined to change nothing.
func Safe(method string) bool { return slices.Contains(safeMethods, method) }
