package protocol

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

type specKind struct{}

func (specKind) prefix() string { return "prefix" }

// vectors are from the TypeID specification 0.3.
var vectors = map[string]string{
	"00000000000000000000000001": "00000000-0000-0000-0000-000000000001",
	"0000000000000000000000000a": "00000000-0000-0000-0000-00000000000a",
	"0000000000000000000000000g": "00000000-0000-0000-0000-000000000010",
	"00000000000000000000000010": "00000000-0000-0000-0000-000000000020",
	"7zzzzzzzzzzzzzzzzzzzzzzzzz": "ffffffff-ffff-ffff-ffff-ffffffffffff",
	"0123456789abcdefghjkmnpqrs": "0110c853-1d09-52d8-d73e-1194e95b5f19",
	"01h455vb4pex5vsknk084sn02q": "01890a5d-ac96-774b-bcce-b302099a8057",
	"01h2xcejqtf2nbrexx3vqjhp41": "0188bac7-4afa-78aa-bc3b-bd1eef28d881",
}

func TestIdentifiersAreSpelledAsTheSpecificationSays(t *testing.T) {
	for digits, want := range vectors {
		id, err := parseID[specKind]("prefix_" + digits)
		if err != nil || uuid.UUID(id).String() != want {
			t.Errorf("%s is read as %s, %v; want %s", digits, uuid.UUID(id), err, want)
		}
		if text := ID[specKind](uuid.MustParse(want)).String(); text != "prefix_"+digits {
			t.Errorf("%s is written as %s; want prefix_%s", want, text, digits)
		}
	}
}

func TestEveryOtherSpellingIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":               "",
		"only the prefix":     "prefix_",
		"without a prefix":    "01h455vb4pex5vsknk084sn02q",
		"an empty prefix":     "_01h455vb4pex5vsknk084sn02q",
		"another prefix":      "other_01h455vb4pex5vsknk084sn02q",
		"a longer prefix":     "prefixes_01h455vb4pex5vsknk084sn02q",
		"an upper-case one":   "PREFIX_01h455vb4pex5vsknk084sn02q",
		"another separator":   "prefix-01h455vb4pex5vsknk084sn02q",
		"short":               "prefix_1234567890123456789012345",
		"long":                "prefix_123456789012345678901234567",
		"spaces":              "prefix_1234567890123456789012345 ",
		"upper-case digits":   "prefix_0123456789ABCDEFGHJKMNPQRS",
		"hyphens":             "prefix_123456789-0123456789-01234",
		"a foreign alphabet":  "prefix_ooooooiiiiiiuuuuuuulllllll",
		"ambiguous digits":    "prefix_i23456789ol23456789oi23456",
		"overflow":            "prefix_8zzzzzzzzzzzzzzzzzzzzzzzzz",
		"more overflow":       "prefix_zzzzzzzzzzzzzzzzzzzzzzzzzz",
		"zero names nothing":  "prefix_00000000000000000000000000",
		"not ASCII":           "prefix_01h455vb4pex5vsknk084sn0ü",
		"the identifier's id": "01890a5d-ac96-774b-bcce-b302099a8057",
	} {
		if id, err := parseID[specKind](text); err == nil {
			t.Errorf("%s: %q was read as %s", name, text, id)
		}
	}
}

func TestAnIdentifierOfAnotherKindIsRefused(t *testing.T) {
	turn := NewTurnID()
	if id, err := parseID[conversationKind](turn.String()); err == nil {
		t.Errorf("the turn %s was read as the conversation %s", turn, id)
	}
	var body struct {
		ConversationID ConversationID `json:"conversation_id"`
	}
	if err := json.Unmarshal([]byte(`{"conversation_id":"`+turn.String()+`"}`), &body); err == nil {
		t.Errorf("%s was read into %s", turn, body.ConversationID)
	}
}

func TestEveryKindHasItsOwnPrefix(t *testing.T) {
	kinds := []kind{
		accountKind{},
		sessionKind{},
		conversationKind{},
		messageKind{},
		branchKind{},
		followUpKind{},
		turnKind{},
		partKind{},
		toolCallKind{},
		steeringKind{},
		projectKind{},
		fileKind{},
		usageKind{},
	}
	seen := map[string]bool{}
	for _, k := range kinds {
		if prefix := k.prefix(); seen[prefix] || prefix == "" || strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%T has the prefix %q", k, prefix)
		}
		seen[k.prefix()] = true
	}
}

func TestIdentifiersRoundTripThroughTextAndSortByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")
		id := MessageID(raw)
		got, err := parseID[messageKind](id.String())
		if id.IsZero() != (err != nil) || err == nil && got != id {
			t.Fatalf("%x came back as %x, %v", id, got, err)
		}
		other := MessageID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "other"))
		if (id.String() < other.String()) != (string(id[:]) < string(other[:])) {
			t.Fatalf("%s and %s do not sort as their values", id, other)
		}
	})
	before := time.Now().Truncate(time.Millisecond)
	id := NewTurnID()
	if made := id.Time(); made.Before(before) || made.After(time.Now()) {
		t.Errorf("%s was created now, but its time is %s", id, made)
	}
	if uuid.UUID(id).Version() != 7 || uuid.UUID(id).Variant() != uuid.RFC4122 {
		t.Errorf("%s is not a UUIDv7", uuid.UUID(id))
	}
}

// goldenPart is part 1 of goldenTurn. Stored logs contain derived identifiers, so the derivation must never change.
const goldenPart = "part_01h2xcejqtf2n9ry1cq0972kfe"

// TestDerivedIdentifiersAreDeterministicAndUnique is needed because any node that runs a turn derives them.
func TestDerivedIdentifiersAreDeterministicAndUnique(t *testing.T) {
	const many = 5000
	seen := map[[16]byte]bool{[16]byte(goldenTurn): true}
	for n := range many {
		derived := [][16]byte{
			[16]byte(DerivePartID(goldenTurn, n)), [16]byte(DeriveToolID(goldenTurn, n)), [16]byte(DeriveFollowUpID(goldenTurn, n)),
			[16]byte(DeriveWriteID(DeriveToolID(goldenTurn, 1), n)),
		}
		for _, id := range derived {
			if seen[id] {
				t.Fatalf("%x was derived twice", id)
			}
			seen[id] = true
			if uuid.UUID(id).Variant() != uuid.RFC4122 || uuid.UUID(id).Version() != 7 || !MessageID(id).Time().Equal(goldenTurn.Time()) {
				t.Fatalf("%s is not a UUIDv7 with the timestamp of its turn", uuid.UUID(id))
			}
		}
		if first, second := DerivePartID(goldenTurn, n), DerivePartID(goldenTurn, n); first != second {
			t.Fatalf("part %d has two identifiers", n)
		}
	}
	if got := DerivePartID(goldenTurn, 1).String(); got != goldenPart {
		t.Errorf("part 1 of %s is %s; stored logs contain %s", goldenTurn, got, goldenPart)
	}
}

// FuzzParseID checks that each identifier has only one text form.
func FuzzParseID(f *testing.F) {
	for digits := range vectors {
		f.Add("turn_" + digits)
	}
	f.Add("turn_00000000000000000000000000")
	f.Add("turn_8zzzzzzzzzzzzzzzzzzzzzzzzz")
	f.Add("turn_01H2XCEJQTF2NBREXX3VQJHP41")
	f.Add("conv_01h2xcejqtf2nbrexx3vqjhp41")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := parseID[turnKind](text)
		if err == nil && (id.String() != text || id.IsZero()) {
			t.Fatalf("%q was read as %s", text, id)
		}
	})
}
