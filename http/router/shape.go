package router

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"turnstone/protocol"
)

// Limits of a JSON body, in addition to its size. The largest valid bodies have about a thousand values, are nested four
// deep, and have no name over a hundred bytes. Names and numbers are counted as they are written in the body.
const (
	maxDepth  = 32
	maxValues = 10_000 // of the whole body, including those of unknown members
	maxName   = 1024   // bytes
	maxNumber = 128    // bytes
)

// checkShape reads a body once and stops at the first limit that it exceeds: one of those above, or the number of
// elements and members that the schema allows. It runs before huma, which first decodes the whole body, validates every
// element of an array that has too many, and panics for objects in an array whose elements must be unique. It ends at a
// syntax error, which the decoder of huma reports.
func checkShape(body []byte, schemas huma.Registry, schema *huma.Schema) error {
	s := &shape{decoder: jsontext.NewDecoder(bytes.NewReader(body)), schemas: schemas}
	if err := s.value(schema); !errors.Is(err, errMalformed) {
		return err
	}
	return nil
}

// errMalformed ends the check at a syntax error.
var errMalformed = errors.New("the body is not JSON")

// malformed returns the error for what the decoder refuses: errMalformed, unless another decoder may accept it.
func malformed(err error) error {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return errMalformed // the end of the body
	}
	switch reason := syntax.Err.Error(); { // that of err has names from the body
	case errors.Is(err, jsontext.ErrDuplicateName):
		return badShape("must have no two members with the same name in an object")
	case strings.Contains(reason, "UTF-8"), strings.Contains(reason, "surrogate"):
		return badShape("must be valid UTF-8, without half of a surrogate pair")
	}
	return errMalformed
}

// shape is the state of checkShape.
type shape struct {
	decoder *jsontext.Decoder
	schemas huma.Registry
	values  int // that were read
}

// value reads one value. schema is nil for a value of an unknown member.
func (s *shape) value(schema *huma.Schema) error {
	if s.values++; s.values > maxValues {
		return badShape("must have at most %d values", maxValues)
	}
	switch kind := s.decoder.PeekKind(); kind {
	case '{', '[':
		if s.decoder.StackDepth() >= maxDepth {
			return badShape("must be nested at most %d deep", maxDepth)
		}
		return s.container(s.resolve(schema), kind == '{')
	default:
		raw, err := s.decoder.ReadValue()
		if err != nil {
			return malformed(err)
		}
		if kind == '0' && len(raw) > maxNumber {
			return badShape("must have no number of more than %d bytes", maxNumber)
		}
		return nil
	}
}

// container reads an object or an array, with all that it contains.
func (s *shape) container(schema *huma.Schema, isObject bool) error {
	if _, err := s.decoder.ReadToken(); err != nil {
		return malformed(err)
	}
	for count := 1; ; count++ {
		switch s.decoder.PeekKind() {
		case '}', ']':
			if _, err := s.decoder.ReadToken(); err != nil {
				return malformed(err)
			}
			return nil
		case 0: // a syntax error, or the end
			return errMalformed
		}
		var of *huma.Schema
		var err error
		if isObject {
			of, err = s.name(schema, count)
		} else {
			of, err = s.element(schema, count)
		}
		if err != nil {
			return err
		}
		if err := s.value(of); err != nil {
			return err
		}
	}
}

// name reads the name of a member, and returns the schema of its value.
func (s *shape) name(schema *huma.Schema, count int) (*huma.Schema, error) {
	if schema != nil && schema.MaxProperties != nil && count > *schema.MaxProperties {
		return nil, protocol.Invalid(s.field(), fmt.Sprintf("must have at most %d members", *schema.MaxProperties))
	}
	raw, err := s.decoder.ReadValue()
	if err != nil {
		return nil, malformed(err)
	}
	if len(raw) > maxName+len(`""`) {
		return nil, badShape("must have no name of more than %d bytes", maxName)
	}
	if schema == nil {
		return nil, nil // an unknown member
	}
	name, _ := jsontext.AppendUnquote(nil, raw) // the decoder has accepted it
	if property := schema.Properties[string(name)]; property != nil {
		return property, nil
	}
	values, _ := schema.AdditionalProperties.(*huma.Schema)
	return values, nil
}

// element checks the number and the kind of the elements of an array, and returns the schema of the next one.
func (s *shape) element(schema *huma.Schema, count int) (*huma.Schema, error) {
	if schema == nil {
		return nil, nil // an element of an unknown member
	}
	if schema.MaxItems != nil && count > *schema.MaxItems {
		return nil, protocol.Invalid(s.field(), fmt.Sprintf("must have at most %d items", *schema.MaxItems))
	}
	if kind := s.decoder.PeekKind(); schema.UniqueItems && (kind == '{' || kind == '[') {
		return nil, protocol.Invalid(s.field(), "must not contain objects or arrays")
	}
	return schema.Items, nil
}

// resolve follows the references of a schema.
func (s *shape) resolve(schema *huma.Schema) *huma.Schema {
	for schema != nil && schema.Ref != "" {
		schema = s.schemas.SchemaFromRef(schema.Ref)
	}
	return schema
}

// field returns the path of the object or array that is being read, as huma spells it: body.input[3].
func (s *shape) field() string {
	path, level := "body", 1
	for token := range s.decoder.StackPointer().Tokens() {
		if level == s.decoder.StackDepth() {
			break // the last member that was read
		}
		if kind, _ := s.decoder.StackIndex(level); kind == '[' {
			path += "[" + token + "]"
		} else {
			path += "." + token
		}
		level++
	}
	return path
}

// badShape returns the error of a body that exceeds a limit of all bodies.
func badShape(format string, limit ...any) error {
	message := fmt.Sprintf(format, limit...)
	return &protocol.Error{
		Code: protocol.CodeInvalidBody, Detail: "The body " + message + ".", Fields: []protocol.FieldError{{Field: "body", Message: message}},
	}
}
