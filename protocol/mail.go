package protocol

// MailKind is the kind of a mail to the owner of an account, which determines its text.
type MailKind string

// The kinds of mails.
const (
	MailPasswordReset        MailKind = "password_reset"         // has a link with which a new password can be set
	MailPasswordChanged      MailKind = "password_changed"       // the password was changed
	MailEmailConfirmation    MailKind = "email_confirmation"     // to a new address; has a link with which it is confirmed
	MailEmailChangeRequested MailKind = "email_change_requested" // to the address that is to be replaced
)

// MailKinds lists every kind.
var MailKinds = []MailKind{MailPasswordReset, MailPasswordChanged, MailEmailConfirmation, MailEmailChangeRequested}

// MailTokenPrefix is the prefix of the tokens in the links of mails.
const MailTokenPrefix = "mt1_"
