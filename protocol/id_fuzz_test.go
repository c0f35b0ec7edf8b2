package protocol

import (
	"strings"
	"testing"
)

// FuzzIdentifierSpellings checks that a text is an identifier of at most one kind, and that an accepted text is the
// only text form of its value.
func FuzzIdentifierSpellings(f *testing.F) {
	for _, text := range []string{
		"conv_01h455vb4pex5vsknk084sn02q", "CONV_01h455vb4pex5vsknk084sn02q", "conv_01H455VB4PEX5VSKNK084SN02Q",
		"conv_8zzzzzzzzzzzzzzzzzzzzzzzzz", "conv_7zzzzzzzzzzzzzzzzzzzzzzzzz", "conv_00000000000000000000000000",
		"conv_01h455vb4pex5vsknk084sn02", "conv_01h455vb4pex5vsknk084sn02qq", "turn_01h455vb4pex5vsknk084sn02q", "_", "conv_",
		"conv__1h455vb4pex5vsknk084sn02q", "st_01h455vb4pex5vsknk084sn0ilou", "tl_01h455vb4pex5vsknk084sn02\x00", "conv_01h455vb4pex5vsknk084sn02é",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kinds := map[string]interface {
			UnmarshalText(text []byte) error
		}{
			"acct": new(AccountID), "sess": new(SessionID), "conv": new(ConversationID), "msg": new(MessageID), "br": new(BranchID),
			"fu": new(FollowUpID), "turn": new(TurnID), "part": new(PartID), "tl": new(ToolID), "st": new(SteeringID),
			"proj": new(ProjectID), "file": new(FileID), "art": new(ArtifactID), "task": new(TaskID), "use": new(UsageID),
		}
		for prefix, id := range kinds {
			if id.UnmarshalText([]byte(text)) != nil {
				continue
			}
			if before, _, _ := strings.Cut(text, "_"); before != prefix {
				t.Errorf("%q was parsed as an identifier with the prefix %s", text, prefix)
			}
			spelled, err := id.(interface{ MarshalText() ([]byte, error) }).MarshalText()
			if err != nil || string(spelled) != text {
				t.Errorf("%q was parsed and is written as %q (%v)", text, spelled, err)
			}
		}
	})
}

// FuzzIdentifierValues checks that every value except zero is unchanged after it is written as text and parsed.
func FuzzIdentifierValues(f *testing.F) {
	f.Add([]byte{15: 1})
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, value []byte) {
		var id, back TurnID
		copy(id[:], value)
		err := back.UnmarshalText([]byte(id.String()))
		if id.IsZero() {
			if err == nil {
				t.Error("the zero identifier was accepted")
			}
			return
		}
		if err != nil || back != id {
			t.Errorf("%v came back as %v (%v)", [16]byte(id), [16]byte(back), err)
		}
		if DerivePartID(id, 1) == DerivePartID(id, 2) || PartID(DeriveToolID(id, 1)) == DerivePartID(id, 1) {
			t.Errorf("identifiers derived from %v are equal", [16]byte(id))
		}
	})
}
