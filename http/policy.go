package http

import "slices"

// bucket names a limit. A request draws from its account's bucket, or from its address's where nobody is signed in.
type bucket string

// The buckets. Reads, replays and refusals are kept in the process, so that they can always decide; the others are in Redis.
const (
	noBucket     bucket = ""
	bucketReads  bucket = "reads"
	bucketWrites bucket = "writes"
	bucketChat   bucket = "chat"
	bucketSignIn bucket = "signin"

	bucketSignInAccount bucket = "signin_account" // see drawSignIn
	bucketSignInReserve bucket = "signin_reserve"

	bucketRefusals bucket = "refusals" // by address, for requests that end in 401 or 403
	bucketReplays  bucket = "replays"  // for the events of finished turns; see getTurnEvents
)

// maxBody is what a JSON body may hold.
const maxBody = 1 << 20

// Policy is what has to hold before a route's handler runs. The zero Policy is the strict one: it needs a session and,
// for an unsafe method, the CSRF header.
type Policy struct {
	Public     bool   // no session needed; publicRoutes in policy_test.go lists every one
	Bucket     bucket // which limit the request draws from; noBucket: the handler draws itself, or nothing is limited
	Sudo       bool   // needs a sign-in that is at most ten minutes old
	NoStore    bool   // Cache-Control: no-store instead of private, no-cache
	Idempotent bool   // a creating POST: takes Idempotency-Key
	Conflicts  bool   // may answer 409
	Cancels    bool   // may be a cancel, which has reserved slots; the handler calls keepSlot
	Readiness  bool   // reports to every caller that persistence is down, since no session can be checked then
}

// The usual policies.
var (
	reads   = Policy{Bucket: bucketReads}
	writes  = Policy{Bucket: bucketWrites, Conflicts: true}
	creates = Policy{Bucket: bucketWrites, Conflicts: true, Idempotent: true}
	enters  = Policy{Public: true, NoStore: true, Bucket: bucketWrites, Conflicts: true} // by the address: nobody is known yet
)

func (p Policy) noStore() Policy { p.NoStore = true; return p }
func (p Policy) sudo() Policy    { p.Sudo = true; return p }

func (p Policy) cacheControl() string {
	if p.NoStore {
		return "no-store"
	}
	return "private, no-cache"
}

var safeMethods = []string{"GET", "HEAD", "OPTIONS"}

// safe says whether a method changes nothing, by its definition.
func safe(method string) bool { return slices.Contains(safeMethods, method) }
