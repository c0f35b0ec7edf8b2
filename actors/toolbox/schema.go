package toolbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"turnstone/actors/llm"
)

// maxInput limits the input of a call, in bytes. An artifact of the largest size fits into it, escaped.
const maxInput = 3 << 20

// schema validates the inputs of a tool.
type schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// newSchema reads the JSON Schema of a tool, which must be that of an object.
func newSchema(text json.RawMessage) (*schema, error) {
	root := &jsonschema.Schema{}
	if err := json.Unmarshal(text, root); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if root.Type != "object" {
		return nil, errors.New("the schema is not that of an object")
	}
	resolved, err := root.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, fmt.Errorf("resolving the schema: %w", err)
	}
	return &schema{root, resolved}, nil
}

// canonical returns an input in its canonical form: valid, with defaults, its members sorted, without white space and
// duplicates. The text of an error is for the model.
func (s *schema) canonical(input json.RawMessage) (json.RawMessage, error) {
	if len(input) > maxInput {
		return nil, fmt.Errorf("the input has %d bytes, and at most %d are possible", len(input), maxInput)
	}
	if err := checkJSON(input); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid JSON: something follows the object")
	}
	if value == nil {
		return nil, errors.New("invalid JSON: it is not an object")
	}
	if err := fill(s.root, value); err != nil {
		return nil, err
	}
	if err := normalize(value); err != nil {
		return nil, err
	}
	if err := s.resolved.Validate(plain(value)); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding the input: %w", err)
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

// maxWhole is the largest number that is written as a whole number: larger ones are not exact in JSON.
const maxWhole = 1 << 53

// normalize writes whole numbers such as 8.0 without a fraction, as tools read them, in an object and all that is in it. It
// refuses the character NUL, which the database cannot store.
func normalize(object map[string]any) error {
	for name, value := range object {
		normal, err := normalized(value)
		if err != nil {
			return err
		}
		if strings.ContainsRune(name, 0) {
			return errNUL
		}
		object[name] = normal
	}
	return nil
}

var errNUL = errors.New("a text has the character NUL (U+0000), which is not possible")

func normalized(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		return v, normalize(v)
	case []any:
		for i, element := range v {
			normal, err := normalized(element)
			if err != nil {
				return nil, err
			}
			v[i] = normal
		}
	case string:
		if strings.ContainsRune(v, 0) {
			return nil, errNUL
		}
	case json.Number:
		if number, err := v.Float64(); err == nil && strings.ContainsAny(string(v), ".eE") && number == math.Trunc(number) && math.Abs(number) <= maxWhole {
			return json.Number(strconv.FormatInt(int64(number), 10)), nil
		}
	}
	return value, nil
}

// plain returns a value with its numbers as floats: the validator takes a json.Number for a string.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(v))
		for name, member := range v {
			copied[name] = plain(member)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, element := range v {
			copied[i] = plain(element)
		}
		return copied
	case json.Number:
		if number, err := v.Float64(); err == nil {
			return number
		}
	}
	return value
}

// fill adds the defaults of a schema to an object, and to the objects in it.
func fill(s *jsonschema.Schema, object map[string]any) error {
	for name, property := range s.Properties {
		value, present := object[name]
		if !present && len(property.Default) > 0 {
			decoder := json.NewDecoder(bytes.NewReader(property.Default))
			decoder.UseNumber()
			if err := decoder.Decode(&value); err != nil {
				return fmt.Errorf("reading the default of %s: %w", name, err)
			}
			object[name] = value
		}
		if inner, is := object[name].(map[string]any); is {
			if err := fill(property, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkJSON returns an error if the model's arguments of a call were not JSON; see llm.InvalidArguments. Its text is
// for the model.
func checkJSON(input json.RawMessage) error {
	var written map[string]json.RawMessage
	var text string
	if json.Unmarshal(input, &written) != nil || len(written) != 1 || json.Unmarshal(written[llm.InvalidArguments], &text) != nil {
		return nil
	}
	reason := "it is not an object"
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		reason = err.Error()
	}
	return errors.New("invalid JSON: " + reason)
}
