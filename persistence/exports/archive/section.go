package archive

import (
	"context"

	"turnstone/protocol"
)

// Section writes one kind of resource of an account. A noun has the sections of its resources in its file export.go.
type Section struct {
	What  string // in an error
	Path  string // of its file, or of its folder with a slash at the end
	Write func(ctx context.Context, account protocol.AccountID, to *Archive) error
}

// Page is the number of rows that one statement reads.
const Page = 500

// One returns a section that is one value.
func One[T any](what, path string, read func(ctx context.Context, account protocol.AccountID) (T, error)) Section {
	return Section{what, path, func(ctx context.Context, account protocol.AccountID, to *Archive) error {
		value, err := read(ctx, account)
		if err != nil {
			return err
		}
		return to.Write(path, value)
	}}
}

// Pages returns a section that is a list; see List. begin returns the function that reads its next page.
func Pages[T any](what, path, name string, begin func(ctx context.Context, account protocol.AccountID) func() (page []T, more bool, err error)) Section {
	return Section{what, path, func(ctx context.Context, account protocol.AccountID, to *Archive) error {
		return List(to, path, name, begin(ctx, account))
	}}
}

// List writes a file with all objects of a kind, as an array in the member name. next reads their next page.
func List[T any](to *Archive, path, name string, next func() (page []T, more bool, err error)) error {
	file, err := to.Create(path)
	if err != nil {
		return err
	}
	object := NewObject(file)
	object.Begin(name)
	for more := true; more && object.Err() == nil; {
		var items []T
		if items, more, err = next(); err != nil {
			return err
		}
		for i := range items {
			object.Item(&items[i])
		}
		to.Count(name, len(items))
	}
	object.End()
	return object.Close()
}
