package imports

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"turnstone/persistence/idempotency"
	"turnstone/persistence/open"
	"turnstone/persistence/pg"
	"turnstone/protocol"
)

const activeInterval = 10 * time.Second // between two signs of activity

const (
	receivingSQL = `
	update imports set size = @size, chunks = @chunks, active_at = now()
	where account_id = @account and import_id = @import and state = 'receiving'`
	receivedSQL = `
	update imports set state = 'queued', size = @size, chunks = @chunks, active_at = now()
	where account_id = @account and import_id = @import and state = 'receiving'`
	receiveFailedSQL = `
	update imports set state = 'failed', failure = @failure, finished_at = now()
	where account_id = @account and import_id = @import and state = 'receiving'`
	// openOrStoredSQL reports whether an import has not ended. The objects of one that has ended may exist again.
	openOrStoredSQL = `
	with ended as (
		update imports set stored = true
		where account_id = @account and import_id = @import and state in ('completed', 'failed', 'cancelled'))
	select exists (select from imports where account_id = @account and import_id = @import and ` + open.Imports + `)`
)

// Receive stores the body of an upload and enqueues its import. size is the declared one; -1: unknown. The errors are
// those of begin, protocol.CodeTooLarge, and protocol.CodeConflict with the import if it was cancelled meanwhile. After
// any other error, the import has failed, unless only the reply to the commit that queued it was lost.
func (s *Store) Receive(ctx context.Context, account protocol.AccountID, body io.Reader, size int64) (*protocol.Import, error) {
	if size > protocol.MaxImportBytes {
		return nil, tooLarge()
	}
	buffered := bufio.NewReader(body)
	switch _, err := buffered.Peek(1); { // whether another import is open does not matter for a body that is wrong
	case errors.Is(err, io.EOF):
		return nil, protocol.Errorf(protocol.CodeInvalidBody, "The body is empty.")
	case err != nil:
		return nil, unreadable(err)
	}
	id, err := s.begin(ctx, account, size)
	if err != nil {
		return nil, err
	}
	r := &transfer{store: s, account: account, id: id}
	var received *protocol.Import
	if err = r.copy(ctx, buffered); err == nil {
		received, err = r.finish(ctx)
	}
	switch {
	case errors.Is(err, errEnded):
		r.discard(ctx, "")
		ended, err := s.Import(ctx, account, id)
		if err != nil {
			return nil, err
		}
		return nil, protocol.Conflict(protocol.CodeConflict, ended, "The import was canceled.")
	case err != nil:
		r.discard(ctx, "The upload ended early.")
		return nil, err
	}
	return received, nil
}

func tooLarge() error {
	return protocol.Errorf(protocol.CodeTooLarge, "The body must have at most %d GiB.", protocol.MaxImportBytes>>30)
}

func unreadable(err error) error {
	return &protocol.Error{Code: protocol.CodeInvalidBody, Detail: "The body could not be read completely.", Err: err}
}

// transfer is an upload that is being received.
type transfer struct {
	store   *Store
	account protocol.AccountID
	id      protocol.ImportID
	size    int64
	chunks  int
	shown   time.Time // when the row last showed activity
}

func (r *transfer) copy(ctx context.Context, body io.Reader) error {
	r.shown = time.Now()
	buffer := make([]byte, 0, chunkSize)
	for {
		n, err := body.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if r.size+int64(len(buffer)) > protocol.MaxImportBytes {
			return tooLarge()
		}
		if len(buffer) == cap(buffer) || errors.Is(err, io.EOF) && len(buffer) > 0 {
			if err := r.put(ctx, buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unreadable(err)
		}
		if time.Since(r.shown) > activeInterval {
			if err := r.show(ctx); err != nil {
				return err
			}
		}
	}
}

func (r *transfer) put(ctx context.Context, content []byte) error {
	if _, err := r.store.objects.Put(ctx, chunkKey(r.account, r.id, r.chunks), bytes.NewReader(content), int64(len(content))); err != nil {
		return fmt.Errorf("storing an upload: %w", err)
	}
	r.size += int64(len(content))
	r.chunks++
	return r.show(ctx)
}

// show stores how much was received; errEnded if the import was cancelled.
func (r *transfer) show(ctx context.Context) error {
	r.shown = time.Now()
	changed, err := r.store.db.Exec(ctx, r.account, receivingSQL, r.args())
	if err == nil && changed == 0 {
		return errEnded
	}
	if err != nil {
		return err
	}
	return idempotency.Renew(ctx)
}

func (r *transfer) args() pgx.NamedArgs {
	return pgx.NamedArgs{"account": r.account, "import": r.id, "size": r.size, "chunks": r.chunks}
}

// finish queues the import, and stores the response to an idempotent request.
func (r *transfer) finish(ctx context.Context) (received *protocol.Import, err error) {
	err = r.store.db.InTx(ctx, r.account, func(ctx context.Context, tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, receivedSQL, r.args())
		if err != nil {
			return fmt.Errorf("storing an upload: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errEnded
		}
		if received, err = readImport(ctx, tx, getImportSQL, r.args()); err != nil {
			return err
		}
		if err := r.store.queue.Insert(ctx, tx, RunArgs{r.account, r.id}); err != nil {
			return err
		}
		return idempotency.StoreResponseIn(ctx, tx, received)
	})
	return received, err
}

// discard ends the import as failed and deletes its upload, also what was stored after the upload was deleted. It changes nothing if the
// import is queued: then only the reply to that commit was lost. The sweep deletes what discard could not delete.
func (r *transfer) discard(ctx context.Context, failure string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pg.RequestTimeout)
	defer cancel()
	args := r.args()
	args["failure"] = failure
	isOpen := false
	_, err := r.store.db.Exec(ctx, r.account, receiveFailedSQL, args)
	if err == nil {
		isOpen, err = pg.Row(ctx, r.store.db, r.account, pgx.RowTo[bool], openOrStoredSQL, args)
	}
	if err == nil && !isOpen {
		err = r.store.deleteUpload(ctx, r.account, r.id)
	}
	if err != nil {
		r.store.db.Log.Warn("an upload was not deleted; the sweep of imports does it", zap.Error(err))
	}
}
