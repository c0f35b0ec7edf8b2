package protocol

// UploadState is the state of an upload.
type UploadState string

// The states of an upload.
const (
	UploadPending   UploadState = "pending"   // waits for its content
	UploadReceiving UploadState = "receiving" // a request sends the content
	UploadScanning  UploadState = "scanning"  // the content is stored in quarantine, without a verdict
	UploadReady     UploadState = "ready"
	UploadRejected  UploadState = "rejected"
	UploadFailed    UploadState = "failed"
	UploadExpired   UploadState = "expired"
	UploadCancelled UploadState = "cancelled"
)

// UploadStates lists every state: the open states, then the terminal ones.
var UploadStates = []UploadState{
	UploadPending, UploadReceiving, UploadScanning, UploadReady, UploadRejected, UploadFailed, UploadExpired, UploadCancelled,
}

// Terminal reports whether the state is final.
func (s UploadState) Terminal() bool {
	return s != UploadPending && s != UploadReceiving && s != UploadScanning
}

// UploadTrigger is a cause of a transition of an upload.
type UploadTrigger string

// The triggers of an upload.
const (
	UploadReceives    UploadTrigger = "receive"   // a request starts to send the content
	UploadInterrupted UploadTrigger = "interrupt" // the content was not received whole, or is not the declared one
	UploadReceived    UploadTrigger = "store"     // the whole content is stored in quarantine
	UploadAdopted     UploadTrigger = "adopt"     // another owner adopts the upload
	UploadAccepted    UploadTrigger = "accept"    // the content is clean and published
	UploadRefused     UploadTrigger = "reject"    // the content is malware, or not what it claims to be
	UploadGivenUp     UploadTrigger = "give_up"   // there is no verdict in time, or the content is lost
	UploadExpires     UploadTrigger = "expire"    // the lifetime is over
	UploadCancel      UploadTrigger = "cancel"    // by the user
)

// UploadTransitions lists every legal transition of an upload. The state machine rejects all others.
var UploadTransitions = []Transition[UploadState, UploadTrigger]{
	{UploadPending, UploadReceives, UploadReceiving},
	{UploadPending, UploadExpires, UploadExpired},
	{UploadPending, UploadCancel, UploadCancelled},
	{UploadReceiving, UploadInterrupted, UploadPending},
	{UploadReceiving, UploadAdopted, UploadPending},
	{UploadReceiving, UploadReceived, UploadScanning},
	{UploadReceiving, UploadRefused, UploadRejected},
	{UploadReceiving, UploadCancel, UploadCancelled},
	{UploadScanning, UploadAccepted, UploadReady},
	{UploadScanning, UploadRefused, UploadRejected},
	{UploadScanning, UploadGivenUp, UploadFailed},
	{UploadScanning, UploadCancel, UploadCancelled},
}

// NextUploadState returns the state that a trigger leads to; ok is false when the transition is not legal.
func NextUploadState(from UploadState, trigger UploadTrigger) (to UploadState, ok bool) {
	return next(UploadTransitions, from, trigger)
}
