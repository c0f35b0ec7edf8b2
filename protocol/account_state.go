package protocol

// AccountState says whether an account can sign in. It has no column: it follows from the times at which the account was disabled
// and at which its erasure began.
type AccountState string

// The states of an account.
const (
	AccountActive   AccountState = "active"
	AccountDisabled AccountState = "disabled" // by an operator: it keeps all that it has
	AccountErasing  AccountState = "erasing"  // its rows are being deleted, and it with them
)

// AccountStates lists every state.
var AccountStates = []AccountState{AccountActive, AccountDisabled, AccountErasing}

// AccountTrigger is a cause of a transition of an account.
type AccountTrigger string

// The triggers of an account.
const (
	AccountDisable AccountTrigger = "disable"
	AccountEnable  AccountTrigger = "enable"
	AccountErase   AccountTrigger = "erase"
)

// AccountTransitions lists every legal transition of an account.
var AccountTransitions = []Transition[AccountState, AccountTrigger]{
	{AccountActive, AccountDisable, AccountDisabled},
	{AccountActive, AccountErase, AccountErasing},
	{AccountDisabled, AccountEnable, AccountActive},
	{AccountDisabled, AccountErase, AccountErasing},
}
