package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ID is a TypeID (version 0.3): a UUIDv7 with the kind of the resource that it identifies. Postgres stores it as a
// plain uuid; only the text form has the prefix: "conv_" and 26 base32 characters. The zero ID is invalid and is never
// issued.
type ID[K kind] [16]byte

type kind interface{ prefix() string }

// The kinds of identifiers. The types are empty: they only provide a prefix.
type (
	accountKind      struct{}
	sessionKind      struct{}
	conversationKind struct{}
	messageKind      struct{}
	branchKind       struct{}
	followUpKind     struct{}
	turnKind         struct{}
	partKind         struct{}
	toolCallKind     struct{}
	steeringKind     struct{}
	projectKind      struct{}
	fileKind         struct{}
	artifactKind     struct{}
	approvalKind     struct{}
	taskKind         struct{}
	usageKind        struct{}
	workKind         struct{}
	shareKind        struct{}
	importKind       struct{}
	erasureKind      struct{}
	passkeyKind      struct{}
	uploadKind       struct{}
	identityKind     struct{}
	mailKind         struct{}
	promptKind       struct{}
)

func (accountKind) prefix() string      { return "acct" }
func (sessionKind) prefix() string      { return "sess" }
func (conversationKind) prefix() string { return "conv" }
func (messageKind) prefix() string      { return "msg" }
func (branchKind) prefix() string       { return "br" }
func (followUpKind) prefix() string     { return "fu" }
func (turnKind) prefix() string         { return "turn" }
func (partKind) prefix() string         { return "part" }
func (toolCallKind) prefix() string     { return "tl" }
func (steeringKind) prefix() string     { return "st" }
func (projectKind) prefix() string      { return "proj" }
func (fileKind) prefix() string         { return "file" }
func (artifactKind) prefix() string     { return "art" }
func (approvalKind) prefix() string     { return "ap" }
func (taskKind) prefix() string         { return "task" }
func (usageKind) prefix() string        { return "use" }
func (workKind) prefix() string         { return "work" }
func (shareKind) prefix() string        { return "shr" }
func (importKind) prefix() string       { return "imp" }
func (erasureKind) prefix() string      { return "era" }
func (passkeyKind) prefix() string      { return "pk" }
func (uploadKind) prefix() string       { return "upl" }
func (identityKind) prefix() string     { return "idn" }
func (mailKind) prefix() string         { return "mail" }
func (promptKind) prefix() string       { return "prompt" }

// The identifiers of the API.
type (
	AccountID      = ID[accountKind]
	SessionID      = ID[sessionKind]
	ConversationID = ID[conversationKind]
	MessageID      = ID[messageKind]
	BranchID       = ID[branchKind]
	FollowUpID     = ID[followUpKind]
	TurnID         = ID[turnKind]
	PartID         = ID[partKind]
	ToolID         = ID[toolCallKind]
	SteeringID     = ID[steeringKind]
	ProjectID      = ID[projectKind]
	FileID         = ID[fileKind]
	ArtifactID     = ID[artifactKind]
	ApprovalID     = ID[approvalKind]
	TaskID         = ID[taskKind]
	UsageID        = ID[usageKind]
	WorkID         = ID[workKind]
	ShareID        = ID[shareKind]
	ImportID       = ID[importKind]
	ErasureID      = ID[erasureKind]
	PasskeyID      = ID[passkeyKind]
	UploadID       = ID[uploadKind]
	IdentityID     = ID[identityKind]
	MailID         = ID[mailKind]
	PromptID       = ID[promptKind]
)

// NodeID identifies one run of one process. Every start creates a new one. Clients never see it.
type NodeID [16]byte

// NewNodeID creates the identifier of a process run.
func NewNodeID() NodeID { return NodeID(newUUIDv7()) }

func (n NodeID) String() string { return uuid.UUID(n).String() }

func newID[K kind]() ID[K] { return ID[K](newUUIDv7()) }

// The constructors of the kinds of identifiers that the service creates.
func NewAccountID() AccountID           { return newID[accountKind]() }
func NewSessionID() SessionID           { return newID[sessionKind]() }
func NewConversationID() ConversationID { return newID[conversationKind]() }
func NewMessageID() MessageID           { return newID[messageKind]() }
func NewBranchID() BranchID             { return newID[branchKind]() }
func NewFollowUpID() FollowUpID         { return newID[followUpKind]() }
func NewTurnID() TurnID                 { return newID[turnKind]() }
func NewPartID() PartID                 { return newID[partKind]() }
func NewSteeringID() SteeringID         { return newID[steeringKind]() }
func NewUsageID() UsageID               { return newID[usageKind]() }
func NewProjectID() ProjectID           { return newID[projectKind]() }
func NewWorkID() WorkID                 { return newID[workKind]() }
func NewShareID() ShareID               { return newID[shareKind]() }
func NewImportID() ImportID             { return newID[importKind]() }
func NewErasureID() ErasureID           { return newID[erasureKind]() }
func NewPasskeyID() PasskeyID           { return newID[passkeyKind]() }
func NewUploadID() UploadID             { return newID[uploadKind]() }
func NewIdentityID() IdentityID         { return newID[identityKind]() }
func NewMailID() MailID                 { return newID[mailKind]() }
func NewPromptID() PromptID             { return newID[promptKind]() }
func NewArtifactID() ArtifactID         { return newID[artifactKind]() }
func NewTaskID() TaskID                 { return newID[taskKind]() }

// UUID returns the identifier in the form in which the database has it.
func (id ID[K]) UUID() string { return uuid.UUID(id).String() }

// Renew returns a new identifier that sorts where id does among others, for a copy of what id identifies. If id is not a UUIDv7 of
// the past, the new identifier is one of now.
func (id ID[K]) Renew() ID[K] {
	made := newID[K]()
	if id[6]>>4 == made[6]>>4 && bytes.Compare(id[:8], made[:8]) <= 0 {
		copy(made[:8], id[:8])
	}
	return made
}

func newUUIDv7() uuid.UUID {
	id, err := uuid.NewV7()
	if err != nil { // the system has no source of randomness: it is not safe to continue
		panic("protocol: no source of randomness: " + err.Error())
	}
	return id
}

// DerivePartID derives the identifier of the n-th part of a turn, so that the pure state machine can create
// identifiers: the same turn and number give the same identifier on every node, without a clock or randomness. The
// identifier has the timestamp of its turn, so it sorts with it.
func DerivePartID(turn TurnID, n int) PartID { return PartID(derive([16]byte(turn), 1, n)) }

// DeriveToolID derives the identifier of the n-th tool call of a turn, as DerivePartID does.
func DeriveToolID(turn TurnID, n int) ToolID { return ToolID(derive([16]byte(turn), 2, n)) }

// DeriveFollowUpID derives the identifier of the held follow-up that the n-th steering input of a turn becomes when it
// is returned.
func DeriveFollowUpID(turn TurnID, n int) FollowUpID { return FollowUpID(derive([16]byte(turn), 3, n)) }

// DeriveApprovalID derives the identifier of the approval of the n-th tool call of a turn, as DerivePartID does.
func DeriveApprovalID(turn TurnID, n int) ApprovalID { return ApprovalID(derive([16]byte(turn), 5, n)) }

// DeriveFileID derives the identifier of the file that an upload creates.
func DeriveFileID(upload UploadID) FileID { return FileID(derive([16]byte(upload), 4, 1)) }

// DeriveArtifactID derives the identifier of the artifact that a call of a tool creates.
func DeriveArtifactID(tool ToolID) ArtifactID { return ArtifactID(derive([16]byte(tool), 6, 1)) }

// DeriveArtifactPartID derives the identifier of the part of the version that a call of a tool writes.
func DeriveArtifactPartID(tool ToolID) PartID { return PartID(derive([16]byte(tool), 7, 1)) }

// DeriveWriteID derives the identifier under which a call of a tool writes its n-th artifact, if it writes several.
func DeriveWriteID(tool ToolID, n int) ToolID { return ToolID(derive([16]byte(tool), 8, n)) }

// DeriveReportID derives the identifier of the artifact with the report of a research task.
func DeriveReportID(task TaskID) ArtifactID { return ArtifactID(derive([16]byte(task), 9, 1)) }

// DeriveReportPartID derives the identifier of the n-th part of the message with the report of a research task.
func DeriveReportPartID(task TaskID, n int) PartID { return PartID(derive([16]byte(task), 10, n)) }

// DeriveTaskID derives the identifier of the research task that a call of a tool starts.
func DeriveTaskID(tool ToolID) TaskID { return TaskID(derive([16]byte(tool), 11, 1)) }

// DeriveTaskFollowUpID derives the identifier of the held follow-up that the n-th command of a research task becomes when it is
// returned.
func DeriveTaskFollowUpID(task TaskID, n int) FollowUpID {
	return FollowUpID(derive([16]byte(task), 12, n))
}

func derive(parent [16]byte, salt, n int) [16]byte {
	tail := binary.BigEndian.Uint64(parent[8:])
	binary.BigEndian.PutUint64(parent[8:], tail^mix(uint64(salt)<<32|uint64(n)))
	parent[8] = parent[8]&0x3f | 0x80
	return parent
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const base32Digits = "0123456789abcdefghjkmnpqrstvwxyz"

var base32Values = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i := range len(base32Digits) {
		values[base32Digits[i]] = byte(i)
	}
	return values
}()

func (id ID[K]) prefixOf() string {
	var k K
	return k.prefix()
}

// Prefix returns the prefix of the kind, without the underscore.
func (id ID[K]) Prefix() string { return id.prefixOf() }

// IsZero reports whether the identifier is the zero ID, which is invalid.
func (id ID[K]) IsZero() bool { return id == ID[K]{} }

// Time returns the time at which the identifier was created, with millisecond precision.
func (id ID[K]) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}

func (id ID[K]) String() string {
	text := id.prefixOf()
	return string(id.AppendText(make([]byte, 0, len(text)+27)))
}

// AppendText appends the text form: the prefix, an underscore and 26 base32 digits.
func (id ID[K]) AppendText(b []byte) []byte {
	return appendBase32(append(append(b, id.prefixOf()...), '_'), id)
}

func appendBase32(b []byte, id [16]byte) []byte {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	for shift := 125; shift >= 0; shift -= 5 {
		var v uint64
		switch {
		case shift >= 64:
			v = hi >> (shift - 64)
		case shift > 59: // the digit straddles both halves
			v = lo>>shift | hi<<(64-shift)
		default:
			v = lo >> shift
		}
		b = append(b, base32Digits[v&31])
	}
	return b
}

// MarshalText returns the text form.
func (id ID[K]) MarshalText() ([]byte, error) { return id.AppendText(nil), nil }

var errIdentifier = errors.New("is not a valid identifier")

// UnmarshalText parses a TypeID of this kind. It rejects everything else, including other spellings of the same value
// and the zero ID.
func (id *ID[K]) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), id.prefixOf()+"_")
	if !ok || len(digits) != 26 || digits[0] > '7' {
		return errIdentifier
	}
	var hi, lo uint64
	for i := range len(digits) {
		v := base32Values[digits[i]]
		if v == 0xff {
			return errIdentifier
		}
		hi, lo = hi<<5|lo>>59, lo<<5|uint64(v)
	}
	if hi == 0 && lo == 0 {
		return errIdentifier
	}
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return nil
}
