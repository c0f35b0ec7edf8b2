package machine

import (
	"fmt"

	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// progressSteps is the largest number of progress events of one attempt.
const progressSteps = 20

// Machine is the state of one upload.
type Machine struct {
	spec     *uploadlog.Spec
	state    protocol.UploadState
	sequence int64 // of the last event
	received int64
	shown    int64 // received, in the last progress event
	content  *uploadlog.Content
	failure  *protocol.UploadFailure
	file     *uploadlog.NewFile
	clean    string // the engine that found the content clean; empty: no verdict yet
}

// New returns the machine of a new upload.
func New(spec *uploadlog.Spec) *Machine { return &Machine{spec: spec, state: protocol.UploadPending} }

// Restore returns the machine of a claimed upload.
func Restore(claim *uploadlog.Claim) *Machine {
	m := &Machine{spec: &claim.Spec, state: claim.State, sequence: claim.NextSequence - 1, content: claim.Content}
	if claim.Content != nil {
		m.received = claim.Content.Size
	}
	return m
}

// Spec returns the specification of the upload.
func (m *Machine) Spec() *uploadlog.Spec { return m.spec }

// State returns the state after the last decision.
func (m *Machine) State() protocol.UploadState { return m.state }

// Content returns what was received; nil before the upload scans.
func (m *Machine) Content() *uploadlog.Content { return m.content }

// Batch lets a machine decide on a series of triggers, which become one step of the actor. Its methods are the
// triggers. A trigger that comes too late changes nothing.
type Batch struct {
	*Machine
	Events  []protocol.Payload
	Effects []Effect
}

// NewBatch starts a batch. The decision of the batch before it must have been stored, or the machine be given up.
func (m *Machine) NewBatch() *Batch { return &Batch{Machine: m} }

// Append returns the batch for the store, without the fields that the actor knows.
func (b *Batch) Append() *uploadlog.Append {
	return &uploadlog.Append{
		AccountID: b.spec.AccountID, UploadID: b.spec.UploadID, First: b.sequence - int64(len(b.Events)) + 1, Last: b.sequence,
		State: b.state, Received: b.received, Content: b.content, Failure: b.failure, File: b.file,
	}
}

// Effect is an action outside the machine that is performed after the commit.
type Effect int

// The effects.
const (
	// StartReceiving reads the body. Its end comes back as Received or Interrupted.
	StartReceiving Effect = iota + 1
	// StartScan scans the content in quarantine. Its end comes back as Scanned.
	StartScan
	// RetryScan is StartScan after a pause.
	RetryScan
	// Publish makes the clean content available, unless it is encrypted. Its end comes back as Published, Encrypted or
	// PublishFailed.
	Publish
	// RetryPublish is Publish after a pause.
	RetryPublish
	// StopWork ends the transfer, the scan and the publication.
	StopWork
	// Interrupt ends the transfer, because the node drains. Interrupted follows, with the failure of Restarted.
	Interrupt
	// Leave ends the actor at a persisted boundary. The next owner adopts the upload.
	Leave
)

func (b *Batch) emit(event protocol.Payload) {
	b.sequence++
	b.Events = append(b.Events, event)
}

// move makes a transition, with its event and, at the end, the last event.
func (b *Batch) move(trigger protocol.UploadTrigger, failure *protocol.UploadFailure) {
	to, legal := protocol.NextUploadState(b.state, trigger)
	if !legal {
		panic(fmt.Sprintf("upload: no transition %s from %s", trigger, b.state))
	}
	from := b.state
	b.state, b.failure = to, failure
	b.emit(&protocol.UploadStateChanged{From: from, State: to, Failure: failure})
	if !to.Terminal() {
		return
	}
	var file *protocol.FileID
	if b.file != nil {
		file = &b.file.FileID
	}
	b.emit(&protocol.UploadFinished{State: to, FileID: file, Failure: failure, LastSequence: b.sequence + 1})
}

// Begin is the first trigger of an upload.
func (b *Batch) Begin() {
	b.emit(&protocol.UploadStarted{
		Filename: b.spec.Filename, MediaType: b.spec.MediaType, Size: b.spec.Size, State: b.state, ExpiresAt: b.spec.ExpiresAt,
	})
}

// Receive starts the transfer of the content. It reports whether the upload accepts content.
func (b *Batch) Receive() bool {
	if b.state != protocol.UploadPending {
		return false
	}
	b.received, b.shown = 0, 0
	b.move(protocol.UploadReceives, nil)
	b.Effects = append(b.Effects, StartReceiving)
	return true
}

// Progress reports how much was received.
func (b *Batch) Progress(received int64) {
	if b.state != protocol.UploadReceiving {
		return
	}
	b.received = received
	if received-b.shown < max(b.spec.Size/progressSteps, 1) {
		return
	}
	b.shown = received
	b.emit(&protocol.UploadProgress{ReceivedBytes: received, Size: b.spec.Size})
}

// Interrupted ends a transfer without the whole content. The upload accepts the content again.
func (b *Batch) Interrupted(failure *protocol.UploadFailure) {
	if b.state != protocol.UploadReceiving {
		return
	}
	b.received = 0
	b.move(protocol.UploadInterrupted, failure)
}

// Received reports that the whole content is in quarantine. mismatch is the reason why it is not what it claims to be;
// nil if it is.
func (b *Batch) Received(content *uploadlog.Content, mismatch *protocol.UploadFailure) {
	switch {
	case b.state != protocol.UploadReceiving:
	case mismatch != nil:
		b.received = content.Size
		b.move(protocol.UploadRefused, mismatch)
	default:
		b.received, b.content = content.Size, content
		b.move(protocol.UploadReceived, nil)
	}
}

// Scanned reports the verdict on the content.
func (b *Batch) Scanned(verdict protocol.ScanVerdict) {
	switch {
	case b.state != protocol.UploadScanning:
	case verdict.Clean:
		b.clean = verdict.Engine
		b.Effects = append(b.Effects, Publish)
	default:
		b.refuse(verdict.Refusal)
	}
}

// refuse ends the upload because of what its content is. A verdict without a reason counts as malware.
func (b *Batch) refuse(code protocol.UploadFailureCode) {
	failure := &protocol.UploadFailure{Code: code}
	switch code {
	case protocol.UploadEncrypted:
		failure.Detail = "The file needs a password. Remove the password and upload the file again."
	case protocol.UploadUnscannable:
		failure.Detail = "The malware scanner cannot inspect all of the file."
	default:
		failure.Code, failure.Detail = protocol.UploadMalware, "The malware scanner reported the file. It is not available."
	}
	b.move(protocol.UploadRefused, failure)
}

// ScanFailed reports that there is no verdict. An error with CodeTooLarge or CodeNotFound is final; any other one may
// pass, so the scan is repeated.
func (b *Batch) ScanFailed(code protocol.Code) {
	switch {
	case b.state != protocol.UploadScanning:
	case code == protocol.CodeTooLarge:
		b.refuse(protocol.UploadUnscannable)
	case code == protocol.CodeNotFound:
		b.contentLost()
	default:
		b.Effects = append(b.Effects, RetryScan)
	}
}

func (b *Batch) contentLost() {
	b.move(protocol.UploadGivenUp, &protocol.UploadFailure{
		Code: protocol.UploadContentLost, Detail: "The stored content is missing or damaged. Upload the file again.",
	})
}

// Published reports that the clean content is available under the name of the upload's object.
func (b *Batch) Published(kind protocol.FileKind) {
	if b.state != protocol.UploadScanning || b.clean == "" {
		return
	}
	b.file = &uploadlog.NewFile{
		FileID: protocol.DeriveFileID(b.spec.UploadID), ObjectName: b.spec.ObjectName, Kind: kind, Engine: b.clean,
	}
	b.move(protocol.UploadAccepted, nil)
}

// Encrypted reports that the clean content cannot be read without a password.
func (b *Batch) Encrypted() {
	if b.state != protocol.UploadScanning || b.clean == "" {
		return
	}
	b.refuse(protocol.UploadEncrypted)
}

// PublishFailed reports that the content could not be made available.
func (b *Batch) PublishFailed(code protocol.Code) {
	switch {
	case b.state != protocol.UploadScanning:
	case code == protocol.CodeNotFound:
		b.contentLost()
	default:
		b.Effects = append(b.Effects, RetryPublish)
	}
}

// Deadline ends an upload that has no verdict in time.
func (b *Batch) Deadline() {
	if b.state != protocol.UploadScanning {
		return
	}
	b.move(protocol.UploadGivenUp, &protocol.UploadFailure{
		Code: protocol.UploadNoVerdict, Detail: "The malware scanner gave no verdict in time. Upload the file again.",
	})
	b.Effects = append(b.Effects, StopWork)
}

// Restarted returns the failure of a transfer whose node stops or drains.
func Restarted() *protocol.UploadFailure {
	return &protocol.UploadFailure{
		Code: protocol.UploadRestarted, Detail: "The service was restarted while it received the file. Upload the file again.",
	}
}

// Adopt continues an upload after the node that owned it has ended. One that waits for content was claimed because its lifetime is
// over, and expires.
func (b *Batch) Adopt() {
	switch b.state {
	case protocol.UploadPending:
		b.move(protocol.UploadExpires, &protocol.UploadFailure{
			Code: protocol.UploadTimeOver, Detail: "The upload was not finished in time. Upload the file again.",
		})
	case protocol.UploadReceiving:
		b.received = 0
		b.move(protocol.UploadAdopted, Restarted())
	case protocol.UploadScanning:
		b.Effects = append(b.Effects, StartScan)
	}
}

// Cancel ends the upload for its user. It reports whether the upload was open.
func (b *Batch) Cancel() bool {
	if b.state.Terminal() {
		return false
	}
	b.move(protocol.UploadCancel, nil)
	b.Effects = append(b.Effects, StopWork)
	return true
}

// Release ends the work of a node that drains. A transfer is interrupted, and the upload waits for its content again; a scan is repeated
// by the next owner.
func (b *Batch) Release() {
	if b.state == protocol.UploadReceiving {
		b.Effects = append(b.Effects, Interrupt)
		return
	}
	b.Effects = append(b.Effects, Leave)
}
