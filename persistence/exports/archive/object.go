package archive

import (
	"io"

	"turnstone/protocol/wire"
)

// Object writes a JSON object member by member, so that long lists are never in memory. The first error is returned by
// Close; the other methods do nothing after it.
type Object struct {
	to            io.Writer
	err           error
	members, list int
}

// NewObject begins an object.
func NewObject(to io.Writer) *Object {
	o := &Object{to: to}
	o.write("{")
	return o
}

func (o *Object) write(text string) {
	if o.err == nil {
		_, o.err = io.WriteString(o.to, text)
	}
}

func (o *Object) name(name string) {
	if o.members++; o.members > 1 {
		o.write(",")
	}
	o.write("\n")
	o.value(name)
	o.write(":")
}

func (o *Object) value(v any) {
	if o.err != nil {
		return
	}
	var text []byte
	if text, o.err = wire.Marshal(v); o.err == nil {
		_, o.err = o.to.Write(text)
	}
}

// Member writes a member with its value.
func (o *Object) Member(name string, v any) {
	o.name(name)
	o.value(v)
}

// Begin starts a member that is a list; Item and End follow.
func (o *Object) Begin(name string) {
	o.name(name)
	o.write("[")
	o.list = 0
}

// Item writes an element of the list.
func (o *Object) Item(v any) {
	if o.list++; o.list > 1 {
		o.write(",")
	}
	o.write("\n")
	o.value(v)
}

// End ends the list.
func (o *Object) End() { o.write("]") }

// Err returns the first error.
func (o *Object) Err() error { return o.err }

// Close ends the object and returns the first error.
func (o *Object) Close() error {
	o.write("}\n")
	return o.err
}
