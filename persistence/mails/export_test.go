package mails

import "context"

// SendOnce makes one attempt to send a mail.
func (o *Outbox) SendOnce(ctx context.Context, ref Ref, send Send) error {
	return o.send(ctx, ref, send)
}
