package protocol

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var goldenUpload = mustParse[uploadKind]("upl_01h2xcejqtf2nbrexx3vqjhp47")

// uploadSamples returns one event of every type of uploads, with every field set.
func uploadSamples() []Payload {
	file, failure := DeriveFileID(goldenUpload), &UploadFailure{Code: UploadContentMismatch, Detail: "The content is of another type."}
	return []Payload{
		&UploadStarted{Filename: "tides.pdf", MediaType: "application/pdf", Size: 48213, State: UploadPending, ExpiresAt: goldenTime},
		&UploadStateChanged{From: UploadPending, State: UploadReceiving, Failure: failure},
		&UploadProgress{ReceivedBytes: 1024, Size: 48213},
		&UploadFinished{State: UploadReady, FileID: &file, Failure: failure, LastSequence: 4},
	}
}

func TestTheEventsOfAnUploadKeepTheirForm(t *testing.T) {
	events := uploadSamples()
	for _, spec := range UploadEvents {
		if !slices.ContainsFunc(events, func(p Payload) bool { return p.EventType() == spec.Type }) {
			t.Errorf("no sample of %s", spec.Type)
		}
	}
	frames, err := AppendUploadEvents(nil, goldenUpload, 1, goldenTime, events)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/upload_events.golden", frames)
	n := int64(0)
	for line := range FrameLines(frames) {
		n++
		sequence, kind, ok := FrameHead(line)
		envelope, payload, err := DecodeEvent(line)
		if err != nil || !ok || sequence != n || kind != string(envelope.Type) {
			t.Fatalf("%s: %v", line, err)
		}
		if want := events[n-1]; !reflect.DeepEqual(payload, want) {
			t.Error(cmp.Diff(want, payload))
		}
	}
	if !EndsUpload(frames) || EndsUpload(frames[:bytes.LastIndexByte(frames[:len(frames)-1], '\n')+1]) || EndsTurn(frames) {
		t.Error("the end of an upload is not recognised")
	}
}
