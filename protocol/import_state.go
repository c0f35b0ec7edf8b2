package protocol

// ImportState is the state of an import.
type ImportState string

// The states of an import.
const (
	ImportReceiving ImportState = "receiving"
	ImportQueued    ImportState = "queued"
	ImportRunning   ImportState = "running"
	ImportCompleted ImportState = "completed"
	ImportFailed    ImportState = "failed"
	ImportCancelled ImportState = "cancelled"
)

// ImportStates lists every state: the open states, then the terminal ones.
var ImportStates = []ImportState{ImportReceiving, ImportQueued, ImportRunning, ImportCompleted, ImportFailed, ImportCancelled}

// Terminal reports whether the state is final.
func (s ImportState) Terminal() bool {
	return s != ImportReceiving && s != ImportQueued && s != ImportRunning
}

// ImportTrigger is a cause of a transition of an import.
type ImportTrigger string

// The triggers of an import.
const (
	ImportReceived ImportTrigger = "receive" // the whole body is stored
	ImportRuns     ImportTrigger = "run"     // a job reads it
	ImportContinue ImportTrigger = "resume"  // another job continues after a crash
	ImportEnds     ImportTrigger = "end"     // everything was read
	ImportFails    ImportTrigger = "fail"    // the body ended early, or nothing in it can be imported
	ImportCancel   ImportTrigger = "cancel"  // by the user
)

// ImportTransitions lists every legal transition of an import.
var ImportTransitions = []Transition[ImportState, ImportTrigger]{
	{ImportReceiving, ImportReceived, ImportQueued},
	{ImportReceiving, ImportFails, ImportFailed},
	{ImportReceiving, ImportCancel, ImportCancelled},
	{ImportQueued, ImportRuns, ImportRunning},
	{ImportQueued, ImportCancel, ImportCancelled},
	{ImportRunning, ImportContinue, ImportRunning},
	{ImportRunning, ImportEnds, ImportCompleted},
	{ImportRunning, ImportFails, ImportFailed},
	{ImportRunning, ImportCancel, ImportCancelled},
}
