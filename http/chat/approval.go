package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/actors/turn/machine"
	"turnstone/protocol"
)

// editedInput is the input of a call as the user has changed it: any object. Null is the same as an absent one.
type editedInput json.RawMessage

// Schema implements huma.SchemaProvider.
func (editedInput) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Nullable: true, AdditionalProperties: true}
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *editedInput) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*e = nil
		return nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, text)
	*e = compact.Bytes()
	return err
}

// decision returns the command of a decision on an approval.
func (b *steeringRequest) decision() (*machine.Command, error) {
	switch {
	case b.ApprovalID == nil:
		return nil, protocol.Invalid("body.approval_id", "is required")
	case b.Decision == "":
		return nil, protocol.Invalid("body.decision", "is required")
	case b.InputDigest == "":
		return nil, protocol.Invalid("body.input_digest", "is required")
	case b.Decision == protocol.ApproveWithEdits && b.EditedInput == nil:
		return nil, protocol.Invalid("body.edited_input", "is required for approve_with_edits")
	case b.Decision != protocol.ApproveWithEdits && b.EditedInput != nil:
		return nil, protocol.Invalid("body.edited_input", "is only possible with approve_with_edits")
	case b.Decision != protocol.RejectCall && b.Reason != "":
		return nil, protocol.Invalid("body.reason", "is only possible with reject")
	}
	hash := sha256.Sum256([]byte(string(b.Decision) + "\x00" + b.InputDigest + "\x00" + string(b.EditedInput) + "\x00" + b.Reason))
	return &machine.Command{
		Kind: machine.CommandDecide, SteeringID: protocol.NewSteeringID(), ApprovalID: *b.ApprovalID, Decision: b.Decision, Digest: b.InputDigest,
		EditedInput: json.RawMessage(b.EditedInput), Reason: strings.TrimSpace(b.Reason), Hash: hex.EncodeToString(hash[:]),
	}, nil
}
