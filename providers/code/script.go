package code

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"turnstone/protocol"
	"turnstone/protocol/clip"
)

//go:embed prelude.js
var prelude string

// script is code that is being executed.
type script struct {
	vm       *goja.Runtime
	printed  *output
	format   goja.Callable
	rejected []*goja.Promise // without a handler
}

// execute runs the code of a task. A bug of the engine is a failure of the code.
func execute(task *Task, printed *output) (failed *failure) {
	defer func() {
		if recover() != nil {
			failed = &failure{"engine_error", "The engine that executes the code failed. Write the code in another way."}
		}
	}()
	s := &script{vm: goja.New(), printed: printed}
	if err := s.prepare(task); err != nil {
		return &failure{"engine_error", "The code could not be prepared."}
	}
	program, failed := compile(task.Code)
	if failed != nil {
		return failed
	}
	value, err := s.vm.RunProgram(program)
	if err != nil {
		return s.failure(err)
	}
	return s.finish(value)
}

// prepare makes the runtime deterministic, and adds the functions of the prelude and the files.
func (s *script) prepare(task *Task) error {
	random := rand.New(rand.NewPCG(task.Seed, 0)) // the same task gets the same numbers
	s.vm.SetRandSource(random.Float64)
	s.vm.SetTimeSource(func() time.Time { return task.Now })
	s.vm.SetMaxCallStackSize(maxCalls)
	s.vm.SetParserOptions(parser.WithDisableSourceMaps) // which are read from the file system otherwise
	s.vm.SetPromiseRejectionTracker(s.track)
	build, err := s.vm.RunString(prelude)
	if err != nil {
		return err
	}
	call, _ := goja.AssertFunction(build)
	built, err := call(goja.Undefined(), s.vm.ToValue(s.printed.print), s.vm.ToValue(s.addTable), s.vm.ToValue(s.addChart), s.vm.ToValue(readCSV))
	if err != nil {
		return err
	}
	s.format, _ = goja.AssertFunction(built.ToObject(s.vm).Get("format"))
	globals := built.ToObject(s.vm).Get("globals").ToObject(s.vm)
	for _, name := range globals.Keys() {
		if err := s.vm.Set(name, globals.Get(name)); err != nil {
			return err
		}
	}
	return s.addFiles(task.Files)
}

// addFiles makes the texts of files available under their names and, without being listed, under their ids.
func (s *script) addFiles(files []File) error {
	object := s.vm.NewObject()
	define := func(name, text string, listed goja.Flag) error { // again, if a name is that of another file or an id
		return object.DefineDataProperty(name, s.vm.ToValue(text), goja.FLAG_FALSE, goja.FLAG_TRUE, listed)
	}
	for _, file := range files {
		if err := define(file.ID, file.Text, goja.FLAG_FALSE); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := define(file.Name, file.Text, goja.FLAG_TRUE); err != nil {
			return err
		}
	}
	return s.vm.Set("files", object)
}

// track notes the promises that are rejected without a handler.
func (s *script) track(promise *goja.Promise, operation goja.PromiseRejectionOperation) {
	if operation == goja.PromiseRejectionReject {
		s.rejected = append(s.rejected, promise)
		return
	}
	for i, one := range s.rejected {
		if one == promise {
			s.rejected = append(s.rejected[:i], s.rejected[i+1:]...)
			return
		}
	}
}

// compile parses code. A failure names the line and the column.
func compile(source string) (*goja.Program, *failure) {
	parsed, err := parser.ParseFile(nil, "code", source, 0, parser.WithDisableSourceMaps)
	var list parser.ErrorList
	switch {
	case errors.As(err, &list) && len(list) > 0:
		return nil, syntax(list[0].Position.Line, list[0].Position.Column, list[0].Message)
	case err != nil:
		return nil, &failure{"syntax_error", "The code is not valid JavaScript: " + shorten(err.Error()) + "."}
	}
	program, err := goja.CompileAST(parsed, false)
	var invalid *goja.CompilerSyntaxError
	switch {
	case errors.As(err, &invalid) && invalid.File != nil:
		at := invalid.File.Position(invalid.Offset)
		return nil, syntax(at.Line, at.Column, invalid.Message)
	case err != nil:
		return nil, &failure{"syntax_error", "The code is not valid JavaScript: " + shorten(err.Error()) + "."}
	}
	return program, nil
}

func syntax(line, column int, message string) *failure {
	return &failure{"syntax_error", fmt.Sprintf("Syntax error in line %d, column %d: %s.", line, column, strings.TrimSuffix(shorten(message), "."))}
}

// finish prints the value of the last expression. The jobs of promises have run.
func (s *script) finish(value goja.Value) *failure {
	if promise := promiseOf(value); promise != nil {
		switch promise.State() {
		case goja.PromiseStateRejected:
			return s.thrown(promise.Result(), nil)
		case goja.PromiseStatePending:
			s.printed.print("Value: a promise that is never settled\n")
			return nil
		case goja.PromiseStateFulfilled:
			value = promise.Result()
		}
	}
	if len(s.rejected) > 0 {
		return s.thrown(s.rejected[0].Result(), nil)
	}
	if goja.IsUndefined(value) {
		return nil
	}
	text, err := s.format(goja.Undefined(), value)
	if err != nil {
		return s.failure(err)
	}
	s.printed.print("Value: " + text.String() + "\n")
	return nil
}

// promiseOf returns the promise that a value is; nil: it is another one, which is not exported, because that runs its getters.
func promiseOf(value goja.Value) *goja.Promise {
	object, is := value.(*goja.Object)
	if !is || object.ExportType() != reflect.TypeFor[*goja.Promise]() {
		return nil
	}
	promise, _ := object.Export().(*goja.Promise)
	return promise
}

// failure returns why a run has ended with an error.
func (s *script) failure(err error) *failure {
	var deep *goja.StackOverflowError
	var exception *goja.Exception
	switch {
	case errors.As(err, &deep):
		return tooDeep()
	case errors.As(err, &exception):
		return s.thrown(exception.Value(), exception.Stack())
	}
	return &failure{"engine_error", "The engine that executes the code failed. Write the code in another way."}
}

// thrown returns the failure of an exception, with the innermost frames of its stack.
func (s *script) thrown(value goja.Value, stack []goja.StackFrame) *failure {
	text := "a value without a text"
	if value == nil {
		value = goja.Undefined()
	}
	if formatted, err := s.format(goja.Undefined(), value); err == nil {
		text = shorten(formatted.String())
	}
	detail := "The code threw " + text
	for i, frame := range stack {
		if i == maxFrames {
			detail += "\n…"
			break
		}
		name := frame.FuncName()
		if name == "" || name == "<anonymous>" {
			name = "the code"
		}
		at := frame.Position()
		if at.Line == 0 { // a function of the engine
			detail += "\nin " + shorten(name)
			continue
		}
		detail += fmt.Sprintf("\nin %s, line %d, column %d", shorten(name), at.Line, at.Column)
	}
	return &failure{"exception", detail}
}

// shorten returns the beginning of a text that code has chosen.
func shorten(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return clip.Bytes(text, maxDetail) + "…"
}

// addTable adds a table: rows of texts as JSON, the header first. Shorter rows are filled. It returns what is wrong, for the
// code; empty: nothing.
func (s *script) addTable(title, encoded string) string {
	var rows [][]string
	if err := json.Unmarshal([]byte(encoded), &rows); err != nil {
		return "table(rows, title): the rows must be objects or arrays."
	}
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	if columns == 0 {
		return "table(rows, title): the table has no columns."
	}
	var content strings.Builder
	to := csv.NewWriter(&content)
	for _, row := range rows {
		if row = append(row, make([]string, columns-len(row))...); columns == 1 && row[0] == "" {
			to.Flush()
			content.WriteString(`""` + "\n") // package csv would write an empty line, which is no row
			continue
		}
		_ = to.Write(row) // a builder accepts everything
	}
	to.Flush()
	return s.printed.add(&Artifact{Kind: protocol.ArtifactTable, Title: title, Content: content.String()})
}

// addChart draws a chart, which is described in JSON. It returns what is wrong; empty: nothing.
func (s *script) addChart(encoded string) string {
	c, wrong := readChart(encoded)
	if wrong != "" {
		return wrong
	}
	return s.printed.add(&Artifact{Kind: protocol.ArtifactSVG, Title: c.Title, Content: c.draw()})
}

// readCSV returns the rows of a CSV text as JSON, or what is wrong.
func readCSV(text, separator string) []string {
	comma, size := utf8.DecodeRuneInString(separator)
	if size != len(separator) || size == 0 || comma == '"' || comma == '\n' || comma == '\r' || comma == utf8.RuneError {
		return []string{"", "csv(text, separator): the separator is one character."}
	}
	from := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	from.Comma, from.LazyQuotes, from.FieldsPerRecord = comma, true, -1
	rows, err := from.ReadAll()
	if err != nil {
		return []string{"", "csv(text, separator): " + err.Error() + "."}
	}
	encoded, err := json.Marshal(append([][]string{}, rows...))
	if err != nil {
		return []string{"", "csv(text, separator): " + err.Error() + "."}
	}
	return []string{string(encoded), ""}
}

func tooDeep() *failure {
	return &failure{"too_deep", "The code calls itself, or nests values or expressions, too deeply, and was ended."}
}
