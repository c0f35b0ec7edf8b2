package turn

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"turnstone/actors/turn/machine"
	"turnstone/protocol"
)

var update = flag.Bool("update", false, "write testdata/peer_message.golden")

const (
	messageGolden = "testdata/peer_message.golden"
	formerGolden  = "testdata/peer_message-previous.golden" // what the previous release sends
)

// id reads an identifier of a golden file.
func id[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(`"`+text+`"`), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// peerCommands returns a command of each kind. The previous release has those before the decision.
func peerCommands(t *testing.T) []*machine.Command {
	t.Helper()
	seen := int64(7)
	steering := id[protocol.SteeringID](t, "st_01h2xcejqtf2nbrexx3vqjhp41")
	return []*machine.Command{
		{Kind: machine.CommandInput, SteeringID: steering, ClientID: "c1", Text: "shorter", Delivery: protocol.DeliverNextStep, Hash: "h", RequestID: "req_1"},
		{Kind: machine.CommandCancel, SteeringID: steering, Scope: protocol.CancelTurnAndFollowUps, By: protocol.CancelledByUser, Seen: &seen, RequestID: "req_2"},
		{Kind: machine.CommandWithdraw, SteeringID: steering, RequestID: "req_3"},
		{Kind: machine.CommandApply, SteeringID: steering, RequestID: "req_4"},
		{
			Kind: machine.CommandDecide, SteeringID: steering, ApprovalID: id[protocol.ApprovalID](t, "ap_01h2xcejqtf2nbrexx3vqjhp41"), Decision: protocol.ApproveWithEdits,
			Digest: "sha256:1", EditedInput: json.RawMessage(`{"note":"x"}`), Reason: "r", Hash: "h", Session: id[protocol.SessionID](t, "sess_01h2xcejqtf2nbrexx3vqjhp41"), RequestID: "req_5",
		},
	}
}

// peerMessages returns one body of each message, one per line.
func peerMessages(t *testing.T) []byte {
	t.Helper()
	account, turn := id[protocol.AccountID](t, "acct_01h2xcejqtf2nbrexx3vqjhp41"), id[protocol.TurnID](t, "turn_01h2xcejqtf2nbrexx3vqjhp41")
	bodies := []any{adoptedMessage{turn, "10.0.0.1:7000"}}
	for _, c := range peerCommands(t) {
		bodies = append(bodies, commandAsk{account, turn, peerCommandOf(c), "span"})
	}
	bodies = append(bodies,
		commandResponse{Receipt: protocol.Accepted(peerCommands(t)[0].SteeringID, turn, 9, false)},
		commandResponse{Gone: true},
		commandResponse{Error: peerErrorOf(&protocol.Error{
			Code: protocol.CodeSteeringClosed, Detail: "The turn no longer accepts input.", RetryAfter: 1,
			Fields: []protocol.FieldError{{Field: "/input", Message: "It is too long."}}, Current: map[string]string{"state": "completed"},
		})},
	)
	var all []byte
	for _, body := range bodies {
		all = append(append(all, encode(body)...), '\n')
	}
	return all
}

// TestMessagesBetweenNodesDoNotChange compares the messages with those that nodes of this release send. Add fields, and run it
// with -update; a name that changes or disappears breaks a rolling deploy.
func TestMessagesBetweenNodesDoNotChange(t *testing.T) {
	got := peerMessages(t)
	if *update {
		if err := os.WriteFile(messageGolden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(messageGolden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the messages are\n%s\nwant\n%s", got, want)
	}
}

func TestCommandsOfThePreviousReleaseAreUnderstood(t *testing.T) {
	previous, err := os.ReadFile(formerGolden)
	if err != nil {
		t.Fatal(err)
	}
	current, err := os.ReadFile(messageGolden)
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string][]byte{"previous": previous, "current": current} {
		var got []*machine.Command
		for line := range bytes.Lines(from) {
			var ask commandAsk
			if err := json.Unmarshal(line, &ask); err != nil {
				t.Fatal(err)
			}
			if ask.Command != nil {
				got = append(got, ask.Command.command())
			}
		}
		want := peerCommands(t)
		if name == "previous" {
			want = want[:len(want)-1]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the %s release sends %+v, want %+v", name, got, want)
		}
	}
}

// formerCommand is the type that the previous release sends and reads, without tags.
type formerCommand struct {
	Kind       uint8
	SteeringID protocol.SteeringID
	ClientID   string
	Text       string
	Delivery   protocol.Delivery
	Hash       string
	Scope      protocol.CancelScope
	By         protocol.CancelledBy
	Seen       *int64
	RequestID  string
}

func TestThePreviousReleaseUnderstandsCommands(t *testing.T) {
	for _, c := range peerCommands(t) {
		var got struct {
			Command *formerCommand `json:"command"`
		}
		if err := json.Unmarshal(encode(commandAsk{Command: peerCommandOf(c)}), &got); err != nil {
			t.Fatal(err)
		}
		want := formerCommand{uint8(c.Kind), c.SteeringID, c.ClientID, c.Text, c.Delivery, c.Hash, c.Scope, c.By, c.Seen, c.RequestID}
		if !reflect.DeepEqual(*got.Command, want) {
			t.Errorf("it reads %+v, want %+v", got.Command, want)
		}
	}
}

func TestACommandOfALaterReleaseIsNotGuessed(t *testing.T) {
	var ask commandAsk
	if err := json.Unmarshal([]byte(`{"command":{"command_kind":"later","Kind":1}}`), &ask); err != nil || ask.Command.command() != nil {
		t.Errorf("%+v, %v", ask.Command.command(), err)
	}
}
