package main

import (
	"context"
	"errors"
	"fmt"

	"turnstone/cmd/turnstone/connect"
	"turnstone/cmd/turnstone/settings"
	"turnstone/http/auth"
	"turnstone/persistence/mails"
	"turnstone/protocol"
	"turnstone/providers/mail"
)

// mailPages are the pages of the web app to which the links of mails lead. The token is in the fragment, which browsers do not
// send, so it is in no log.
var mailPages = map[protocol.MailKind]string{
	protocol.MailPasswordReset:     "/reset-password#",
	protocol.MailEmailConfirmation: "/confirm-email#",
}

// newSendMail returns the function that makes the text of a mail and sends it; nil if no mail server is configured.
func newSendMail(config *settings.Config) (mails.Send, error) {
	client, err := connect.Mail(config)
	if err != nil || client == nil {
		return nil, err
	}
	keys, err := auth.NewKeys(config.Access.Secret)
	if err != nil {
		return nil, err
	}
	base := config.Service.BaseURL.String()
	return func(ctx context.Context, m *mails.Mail) error {
		link := ""
		if page, has := mailPages[m.Kind]; has {
			link = base + page + keys.MailToken(m.Ref)
		}
		message := &mail.Message{ID: m.MailID.String(), To: m.Recipient, At: m.CreatedAt}
		message.Subject, message.Text = mail.Text(m.Kind, m.Language, base, link)
		err := client.Send(ctx, message)
		switch {
		case errors.Is(err, mail.ErrRefused):
			err = fmt.Errorf("%w: %w", mails.ErrRefused, err)
		case errors.Is(err, mail.ErrUnanswered):
			err = fmt.Errorf("%w: %w", mails.ErrUnanswered, err)
		}
		return err
	}, nil
}
