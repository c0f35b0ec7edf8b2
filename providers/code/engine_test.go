package code_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/providers/code"
)

// noon is the time of the tasks.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func command(behaviour string) []string { return []string{os.Args[0], "child", behaviour} }

func silent(string) {}

// run executes code. The failure is nil if it succeeds.
func run(t *testing.T, e *code.Engine, source string, files ...code.File) (*code.Result, *toolbox.Failure) {
	t.Helper()
	result, _, err := e.Run(t.Context(), protocol.NewAccountID(), &code.Task{Code: source, Files: files, Now: noon, Seed: 7}, silent)
	var failure *toolbox.Failure
	if err != nil && !errors.As(err, &failure) {
		t.Fatalf("%.80s: %v", source, err)
	}
	return result, failure
}

func TestCodePrintsAndReturnsValues(t *testing.T) {
	e := code.New(command("run")...)
	files := []code.File{{ID: "file_1", Name: "tides.csv", Text: "port,height\nEmden,3.2\n\"Bremen, Vegesack\",4\n"}, {ID: "file_2", Name: "__proto__", Text: "a name"}, {ID: "file_3", Name: "file_2", Text: "named like an id"}}
	for source, want := range map[string]string{
		"6 * 7": "Value: 42\n",
		"print('a', 1, null, undefined, true, 10n); console.log({a: [1, {b: 2}]}, [NaN, -Infinity]); undefined": "a 1 null undefined true 10\n{\"a\":[1,{\"b\":2}]} [\"NaN\",\"-Infinity\"]\n",
		"print(new Map([[1, 2]]), new Set([3]), function f() {}, Symbol('s'), /x/g, new Error('e'))":            "{\"Map\":[[1,2]]} {\"Set\":[3]} [function f] Symbol(s) /x/g Error: e\n",
		"const a = {}; a.a = a; a":                                                         "Value: [a value without a text]\n",
		"({ toString() { throw 1 }, toJSON() { throw 2 } })":                               "Value: [a value without a text]\n",
		"csv(files['tides.csv']).map(r => r.port + ' ' + Number(r.height) * 2).join('; ')": "Value: Emden 6.4; Bremen, Vegesack 8\n",
		"files.file_1 === files['tides.csv'] && Object.keys(files).join()":                 "Value: file_2,tides.csv,__proto__\n",
		"files['__proto__']":                                    "Value: a name\n",
		"files.file_2":                                          "Value: named like an id\n",
		"csv('a;b\\n1;2', ';')[0].b":                            "Value: 2\n",
		"csv('').length":                                        "Value: 0\n",
		"(async () => { await null; return 5 })()":              "Value: 5\n",
		"Promise.resolve(1).then(v => print(v + 1)); undefined": "2\n",
		"new Promise(() => {})":                                 "Value: a promise that is never settled\n",
		"const late = Promise.reject(1); late.catch(() => print('caught')); undefined": "caught\n",
		"let s = 0; for (let i = 0; i < 1e5; i++) s += i; s":                           "Value: 4999950000\n",
		"'潮'.repeat(3)": "Value: 潮潮潮\n",
		"''":            "Value: \n",
		"":              "",
	} {
		result, failure := run(t, e, source, files...)
		if failure != nil || result.Output != want || result.Cut != 0 {
			t.Errorf("%s: %+v, %v, want %q", source, result, failure, want)
		}
	}
}

// Code sees nothing but its task: the same task gives the same result, at any time and on any server.
func TestCodeIsDeterministicAndHasNoAccess(t *testing.T) {
	e := code.New(command("run")...)
	const source = `
		const before = Date.now(); for (let i = 0; i < 1e6; i++); 
		print(before, Date.now() - before, new Date().toISOString(), new Date().getTimezoneOffset(), String(new Date(0)), Math.random(), Math.random());
		Promise.resolve().then(() => print(Math.random(), Date.now()));
		const missing = ['require', 'process', 'fetch', 'XMLHttpRequest', 'WebSocket', 'setTimeout', 'setInterval', 'setImmediate', 'performance', 'Deno', 'module', 'exports', 'SharedArrayBuffer', 'Atomics', 'WebAssembly', 'importScripts', 'queueMicrotask'];
		missing.filter(name => typeof globalThis[name] !== 'undefined').join()`
	first, failure := run(t, e, source)
	if failure != nil || !strings.HasPrefix(first.Output, "1772625600000 0 2026-03-04T12:00:00.000Z 0 Thu Jan 01 1970 00:00:00 GMT+0000 (UTC) 0.") || !strings.HasSuffix(first.Output, "Value: \n") {
		t.Fatalf("%+v, %v", first, failure)
	}
	if second, _ := run(t, e, source); second.Output != first.Output {
		t.Errorf("%q, then %q", first.Output, second.Output)
	}
	other, _, err := e.Run(t.Context(), protocol.NewAccountID(), &code.Task{Code: "Math.random()", Now: noon, Seed: 8}, silent)
	if err != nil || strings.Contains(first.Output, strings.TrimSpace(strings.TrimPrefix(other.Output, "Value: "))) {
		t.Errorf("another seed gives %+v, %v", other, err)
	}
	secret := filepath.Join(t.TempDir(), "secret.map")
	if err := os.WriteFile(secret, []byte(`{"version":3,"sources":["leak"],"names":[],"mappings":"AAAA"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"throw new Error('x')\n//# sourceMappingURL=" + secret, "eval(\"throw new Error('x')\\n//# sourceMappingURL=" + secret + "\")"} {
		if _, failure := run(t, e, source); failure == nil || failure.Code != "exception" || strings.Contains(failure.Detail, "leak") {
			t.Errorf("a source map was read: %v", failure)
		}
	}
}

func TestAnErrorOfCodeSaysWhereItIs(t *testing.T) {
	e := code.New(command("run")...)
	for source, want := range map[string]string{
		"let a = 1;\nlet b = ;": "syntax_error: Syntax error in line 2, column 9: ",
		"let a; let a":          "syntax_error: Syntax error in line 1, column ",
		"await 1":               "syntax_error: Syntax error in line 1, column ",
		"import x from 'fs'":    "syntax_error: Syntax error in line 1, column ",
		"function f() {\n  throw new TypeError('no')\n}\nf()": "exception: The code threw TypeError: no\nin f, line 2, column 9\nin the code, line 4, column 2",
		"throw {a: 1}":    `exception: The code threw {"a":1}`,
		"throw null":      "exception: The code threw null",
		"throw undefined": "exception: The code threw undefined",
		"throw {toJSON() { throw {toJSON() { throw 1 }} }}": "exception: The code threw [a value without a text]",
		"print('one'); missing()":                           "exception: The code threw ReferenceError: missing is not defined",
		"Promise.reject(new Error('late')); 1":              "exception: The code threw Error: late",
		"(async () => { throw new Error('later') })()":      "exception: The code threw Error: later",
		"table([])":   "exception: The code threw TypeError: table(rows, title): rows is an array",
		"table([{}])": "exception: The code threw RangeError: table(rows, title): the table has no columns.",
		"table(['x'.repeat(2e6)].map(a => ({a})))": "exception: The code threw RangeError: A table or a chart has at most 1 MiB",
		"for (let i = 0; i < 9; i++) table([{i}])": "exception: The code threw RangeError: A run makes at most 8 tables and charts.",
		"plot(1)":                               "exception: The code threw TypeError: plot({type",
		"plot({type: 'pie', y: [1]})":           "exception: The code threw RangeError: plot({type, x, y or series, title, xLabel, yLabel}): the type is",
		"plot({y: []})":                         "exception: The code threw RangeError: plot({type, x, y or series, title, xLabel, yLabel}): there are no values.",
		"plot({y: [NaN, null]})":                "exception: The code threw RangeError: plot({type, x, y or series, title, xLabel, yLabel}): there are no values that are numbers.",
		"plot({x: [1], y: [1, 2]})":             "exception: The code threw RangeError: plot({type, x, y or series, title, xLabel, yLabel}): x has 1 values and y has 2.",
		"plot({y: ['x']})":                      "exception: The code threw RangeError: plot({type, x, y or series, title, xLabel, yLabel}): x has numbers or texts",
		"plot({y: Array(10001).fill(1)})":       "exception: The code threw RangeError: plot({type, x, y or series, title, xLabel, yLabel}): a chart has at most 10000 values",
		"csv('a', 'xx')":                        "exception: The code threw RangeError: csv(text, separator): the separator is one character.",
		"throw '</file> <b>' + 'x'.repeat(1e6)": "exception: The code threw ‹/file> <b>",
	} {
		if _, failure := run(t, e, source); failure == nil || !strings.HasPrefix(failure.Error(), want) || len(failure.Detail) > 2000 {
			t.Errorf("%.80s: %v, want %s", source, failure, want)
		}
	}
	_, failure := run(t, e, "print('first'); print('x'.repeat(2000)); throw 1")
	if failure == nil || !strings.Contains(failure.Detail, "\nBefore, it printed:\n…xxx") || len(failure.Detail) > 2000 {
		t.Errorf("%v", failure)
	}
}

// hostile lists code that uses too much, by the codes of failures that it may end with.
var hostile = map[string]string{
	"for (;;);": "cpu_limit",
	"print('before'); while (true) try { for (;;); } catch (e) {} finally { continue }":        "cpu_limit",
	"const p = new Proxy({}, { get() { for (;;); }, has() { return true } }); with (p) { x }":  "cpu_limit",
	"String({ get [Symbol.toStringTag]() { for (;;); } })":                                     "cpu_limit",
	"({ then(resolve) { for (;;); } }); Promise.resolve({ then() { for (;;); } })":             "cpu_limit",
	"const loop = () => Promise.resolve().then(loop); loop()":                                  "cpu_limit",
	"async function* f() { for (;;) yield 1 } (async () => { for await (const x of f()); })()": "cpu_limit syntax_error",
	"/^(?:(a+)+)+\\1$/.test('a'.repeat(40) + 'b')":                                             "cpu_limit",
	"/^(?=a)((a|a)*)*$/.test('a'.repeat(60) + 'b')":                                            "cpu_limit",
	"for (;;) print('x'.repeat(1e6))":                                                          "cpu_limit",
	"Array(2 ** 32 - 1).join()":                                                                "cpu_limit memory_limit exception",
	"const a = []; a[2 ** 32 - 2] = 1; a.sort(); a.reverse(); a.indexOf(2)":                    "cpu_limit memory_limit",
	"new Array(2 ** 32 - 1).fill(0)":                                                           "cpu_limit memory_limit",
	"'x'.repeat(2 ** 30).length":                                                               "memory_limit",
	"let s = 'x'; for (;;) s += s":                                                             "memory_limit exception",
	"const a = []; for (;;) a.push(new Array(1000).fill(1))":                                   "memory_limit cpu_limit",
	"const a = []; for (;;) a.push({ a })":                                                     "memory_limit",
	"const m = new Map(); for (let i = 0; ; i++) m.set(i, 'k' + i)":                            "memory_limit cpu_limit",
	"const a = []; for (;;) a.push(new Uint8Array(1 << 24).fill(1))":                           "memory_limit",
	"new ArrayBuffer(1e12)":                                                                    "memory_limit exception",
	"new ArrayBuffer(2 ** 53 - 1)":                                                             "memory_limit exception",
	"new Float64Array(1e10).fill(1)":                                                           "memory_limit exception",
	"'x'.padEnd(2 ** 31).length":                                                               "memory_limit exception",
	"2n ** (2n ** 40n)":                                                                        "cpu_limit memory_limit exception engine_error",
	"const f = () => f(); f()":                                                                 "too_deep",
	"const f = () => { try { f() } finally { f() } }; f()":                                     "too_deep",
	"const o = { get x() { return this.x } }; o.x":                                             "too_deep",
	"const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x":                           "too_deep",
	"const f = () => [1].map(f); f()":                                                          "too_deep",
	"const f = () => JSON.stringify({ toJSON: f }); f()":                                       "too_deep",
	"const f = () => 'x'.replace(/x/, f); f()":                                                 "too_deep",
	"const f = () => new Promise(f); f()":                                                      "too_deep",
	"class A { constructor() { new A() } } new A()":                                            "too_deep",
	"let a = []; for (let i = 0; i < 1e6; i++) a = [a]; JSON.stringify(a)":                     "too_deep memory_limit exception",
	"let a = []; for (let i = 0; i < 1e6; i++) a = [a]; String(a)":                             "too_deep memory_limit exception",
	"let a = []; for (let i = 0; i < 1e6; i++) a = [a]; a.flat(Infinity)":                      "too_deep memory_limit exception",
	"JSON.parse('['.repeat(1e6))":                                                              "too_deep memory_limit exception",
	"eval('('.repeat(1e6))":                                                                    "too_deep memory_limit exception",
	"new RegExp('('.repeat(1e6))":                                                              "too_deep memory_limit exception cpu_limit",
	"let f = x => x; for (let i = 0; i < 1e6; i++) f = f.bind(null); f(1)":                     "too_deep memory_limit exception",
	"let p = {}; for (let i = 0; i < 1e6; i++) p = new Proxy(p, {}); p.x":                      "too_deep memory_limit exception",
}

// quick is the processor time of code that would use any.
const quick = 400 * time.Millisecond

func TestCodeThatUsesTooMuchFailsByItself(t *testing.T) {
	short := code.Limited(code.Budget{CPU: quick, Memory: code.Default.Memory}, 4*code.MaxTime, code.MaxTime*10, command("run")...)
	long := code.Limited(code.Budget{CPU: code.Default.CPU, Memory: code.Default.Memory / 2}, 4*code.MaxTime, code.MaxTime*10, command("run")...)
	for source, codes := range hostile {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			e, most := long, code.Default.CPU
			if strings.HasPrefix(codes, "cpu_limit") {
				e, most = short, quick
			}
			result, used, err := e.Run(t.Context(), protocol.NewAccountID(), &code.Task{Code: source, Now: noon}, silent)
			var failure *toolbox.Failure
			if !errors.As(err, &failure) || !strings.Contains(" "+codes+" ", " "+string(failure.Code)+" ") || used > most+3*time.Second {
				t.Errorf("%.200v, %v after %s, want %s", result, err, used, codes)
			}
		})
	}
	for _, deep := range []string{strings.Repeat("(", code.MaxCode), strings.Repeat("[", code.MaxCode), strings.Repeat("!", code.MaxCode) + "1", "x" + strings.Repeat(".x", code.MaxCode/2), strings.Repeat("{", code.MaxCode), strings.Repeat("`${", code.MaxCode/3), "1" + strings.Repeat("+1", code.MaxCode/2)} {
		t.Run("source "+deep[:4], func(t *testing.T) {
			t.Parallel()
			_, used, err := short.Run(t.Context(), protocol.NewAccountID(), &code.Task{Code: deep, Now: noon}, silent)
			var failure *toolbox.Failure
			if err != nil && !errors.As(err, &failure) || used > quick+3*time.Second {
				t.Errorf("%v after %s", err, used)
			}
		})
	}
}

func TestAFailureKeepsWhatWasPrintedBefore(t *testing.T) {
	e := code.Limited(code.Budget{CPU: 500 * time.Millisecond, Memory: code.Default.Memory}, code.MaxTime, code.MaxWait, command("run")...)
	_, failure := run(t, e, "print('step 1'); table([{a: 1}]); for (;;);")
	if failure == nil || failure.Detail != "The code used more than 0.5 s of processor time, and was ended.\nBefore, it printed:\nstep 1\n" {
		t.Errorf("%v", failure)
	}
}

func TestTooMuchOutputIsCutAndSaidSo(t *testing.T) {
	e := code.New(command("run")...)
	result, failure := run(t, e, "print('潮'.repeat(30000)); print('more'); 5")
	if failure != nil || len(result.Output) > code.MaxOutput || len(result.Output) < code.MaxOutput-3 || result.Cut != 90001+5+9-len(result.Output) || strings.Trim(result.Output, "潮") != "" {
		t.Errorf("%d bytes, %d were cut, %v", len(result.Output), result.Cut, failure)
	}
}

func TestCodeMakesTables(t *testing.T) {
	result, failure := run(t, code.New(command("run")...), `
		table([{port: 'Emden, "old"', height: 3.2}, {height: null, extra: [1, 2]}, null], ' High \n water ');
		table([['a'], [''], []]);
		console.table([{x: '=1+1'}])`)
	if failure != nil || len(result.Artifacts) != 3 {
		t.Fatalf("%+v, %v", result, failure)
	}
	for i, want := range []code.Artifact{
		{Kind: protocol.ArtifactTable, Title: "High water", Content: "port,height,extra\n\"Emden, \"\"old\"\"\",3.2,\n,,\"[1,2]\"\n,,\n"},
		{Kind: protocol.ArtifactTable, Title: "Table 2", Content: "a\n\"\"\n\"\"\n"},
		{Kind: protocol.ArtifactTable, Title: "Table 3", Content: "x\n=1+1\n"},
	} {
		if result.Artifacts[i] != want {
			t.Errorf("%+v, want %+v", result.Artifacts[i], want)
		}
	}
}

func TestCodeDrawsCharts(t *testing.T) {
	e := code.New(command("run")...)
	for source, parts := range map[string][]string{
		"plot({y: [1, 4, 9], title: 'Squares', xLabel: 'n', yLabel: 'n²'})":                                                             {">Squares</text>", ">n²</text>", "<path d=\"M76.0", "<circle"},
		"plot({type: 'bar', x: ['Emden', 'Bremen'], y: [3, -4], title: '<script>alert(1)</script>'})":                                   {"&lt;script&gt;alert(1)", ">Emden</text>", ">-4</text>", "<rect x="},
		"plot({type: 'scatter', series: [{name: 'a&b', x: [1, 2], y: [1e300, -1e300]}, {name: '\\u0000\\ufffe\\ud800', y: [1, NaN]}]})": {">a&amp;b</text>", "<circle", ">5e+299</text>"},
		"plot({y: [5], x: [0]})":                {"<circle cx=\"388.0\""},
		"plot({y: [1, null, 2, undefined, 3]})": {"M76.0", "M388.0", "M700.0"},
		"plot({type: 'bar', x: Array.from({length: 500}, (_, i) => 'name ' + i), y: Array(500).fill(1)})":                                                    {"rotate(-35"},
		"plot({type: 'line', series: Array.from({length: 20}, (_, i) => ({name: 'series ' + i, y: Array.from({length: 500}, (_, j) => Math.sin(j + i))}))})": {">series 19</text>"},
		"plot({x: [1e-7, 2e-7], y: [0, 0]})":               {">1e-07</text>"},
		"plot({y: [Number.MAX_VALUE, -Number.MAX_VALUE]})": {"<path d=\"M76.0 44.0L700.0 378.0\""},
		"plot({y: [Number.MIN_VALUE, 0]})":                 {"<path"},
	} {
		result, failure := run(t, e, source)
		if failure != nil || len(result.Artifacts) != 1 || result.Artifacts[0].Kind != protocol.ArtifactSVG {
			t.Errorf("%s: %+v, %v", source, result, failure)
			continue
		}
		content := result.Artifacts[0].Content
		for _, part := range parts {
			if !strings.Contains(content, part) {
				t.Errorf("%s has no %s: %.3000s", source, part, content)
			}
		}
		if strings.Contains(content, "NaN") || strings.Contains(content, "Inf") || len(content) > protocol.MaxArtifactBytes {
			t.Errorf("%s: %.2000s", source, content)
		}
		wellFormed(t, content)
	}
}

// wellFormed checks that an SVG is XML with elements that draw only.
func wellFormed(t *testing.T, content string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(content))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %.500s", err, content)
		}
		if element, is := token.(xml.StartElement); is && !strings.Contains(" svg title rect text line path circle ", " "+element.Name.Local+" ") {
			t.Errorf("the element %s", element.Name.Local)
		}
	}
}

func TestAChildThatDoesNotEndIsKilledWithItsGroup(t *testing.T) {
	for name, end := range map[string]func(e *code.Engine) error{
		"time_limit: The code took longer than 5 s, and was ended.": func(e *code.Engine) error {
			_, _, err := e.Run(t.Context(), protocol.NewAccountID(), &code.Task{}, silent)
			return err
		},
		"context canceled": func(e *code.Engine) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, _, err := e.Run(ctx, protocol.NewAccountID(), &code.Task{}, func(label string) {
				if strings.HasPrefix(label, "Running for") {
					cancel()
				}
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noted := filepath.Join(t.TempDir(), "pid")
			most := 5 * time.Second
			if name == "context canceled" {
				most = code.MaxTime
			}
			if err := end(code.Limited(code.Default, most, code.MaxWait, command("hang "+noted)...)); err == nil || err.Error() != name {
				t.Errorf("%v, want %s", err, name)
			}
			written, err := os.ReadFile(noted)
			pid, wrong := strconv.Atoi(string(written))
			if err != nil || wrong != nil {
				t.Fatalf("%v, %v", err, wrong)
			}
			// The signal is sent when Run returns, but nobody waits for this process. The descriptor is readable when it has ended.
			descriptor, err := unix.PidfdOpen(pid, 0)
			if errors.Is(err, unix.ESRCH) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(descriptor) }()
			ends := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}
			for {
				ended, err := unix.Poll(ends, int(clocktest.HangGuard.Milliseconds()))
				if errors.Is(err, unix.EINTR) {
					continue
				}
				if err != nil || ended == 0 {
					_ = unix.PidfdSendSignal(descriptor, unix.SIGKILL, nil, 0)
					t.Errorf("process %d of the child runs: %v", pid, err)
				}
				return
			}
		})
	}
}

func TestAChildIsNotTrusted(t *testing.T) {
	for _, behaviour := range []string{
		"crash", "flood", "", "[]", `{"Output": 7}`, `{"Cut": -1}`, `{"Output": "` + strings.Repeat("x", code.MaxOutput+1) + `"}`,
		`{"Artifacts": [{"Kind": "html", "Title": "x", "Content": "<script>"}]}`, `{"Artifacts": [{"Kind": "table", "Title": "", "Content": "a"}]}`,
		`{"Artifacts": [` + strings.Repeat(`{"Kind": "table", "Title": "x", "Content": "a"},`, code.MaxArtifacts) + `{"Kind": "table", "Title": "x", "Content": "a"}]}`,
	} {
		result, _, err := code.New(command(behaviour)...).Run(t.Context(), protocol.NewAccountID(), &code.Task{}, silent)
		if err == nil {
			t.Errorf("%.60s: %.100v", behaviour, result)
		}
	}
	if _, _, err := code.New("/nonexistent/turnstone").Run(t.Context(), protocol.NewAccountID(), &code.Task{}, silent); err == nil {
		t.Error("a missing program is no error")
	}
}

func TestAChildHasNoNetwork(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	e := code.New(command("dial " + server.Addr().String())...)
	result, failure := run(t, e, "")
	if e.Program().Shared() {
		t.Skip("this system allows no network namespaces to unprivileged processes")
	}
	if failure != nil || !strings.Contains(result.Output, "network is unreachable") {
		t.Errorf("the child connected: %+v, %v", result, failure)
	}
}

// start starts n tasks of an account that do not end by themselves, and returns when they run. Their context ends with the test.
func start(t *testing.T, e *code.Engine, account protocol.AccountID, n int) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	running, ended := make(chan struct{}, n), make(chan struct{}, n)
	for range n {
		go func() {
			_, _, _ = e.Run(ctx, account, &code.Task{}, func(label string) {
				if label == "Running" {
					running <- struct{}{}
				}
			})
			ended <- struct{}{}
		}()
	}
	for range n {
		<-running
	}
	return func() {
		cancel()
		for range n {
			<-ended
		}
	}
}

func TestTasksWaitBrieflyForASlot(t *testing.T) {
	folder := t.TempDir()
	busy := func(e *code.Engine, account protocol.AccountID) string {
		_, _, err := e.Run(t.Context(), account, &code.Task{}, silent)
		return fmt.Sprint(err)
	}
	e := code.Limited(code.Default, code.MaxTime, 100*time.Millisecond, command("hang "+filepath.Join(folder, "pid"))...)
	mine := protocol.NewAccountID()
	endMine := start(t, e, mine, code.PerAccount)
	if got := busy(e, mine); !strings.HasPrefix(got, "busy: The account runs 2 programs already") {
		t.Errorf("a third task of the account: %s", got)
	}
	endOther := start(t, e, protocol.NewAccountID(), code.PerNode-code.PerAccount)
	if got := busy(e, protocol.NewAccountID()); !strings.HasPrefix(got, "busy: Other accounts run code") {
		t.Errorf("a task more than the node runs: %s", got)
	}
	task := &code.Task{Load: func(context.Context) ([]code.File, error) { return nil, errors.New("loaded") }}
	if _, _, err := e.Run(t.Context(), protocol.NewAccountID(), task, silent); err == nil || !strings.HasPrefix(err.Error(), "busy: ") {
		t.Errorf("files were loaded without a slot: %v", err)
	}
	endMine()
	start(t, e, protocol.NewAccountID(), 1)()
	endOther()
	if _, _, err := e.Run(t.Context(), mine, task, silent); err == nil || err.Error() != "loaded" {
		t.Errorf("files that cannot be loaded: %v", err)
	}
	if e.Open() != 0 {
		t.Errorf("%d queues are left", e.Open())
	}
}

func TestCodeReadsTheFilesThatAreLoaded(t *testing.T) {
	task := &code.Task{Code: "files.a + files.b", Files: []code.File{{ID: "1", Name: "a", Text: "ebb"}}, Load: func(context.Context) ([]code.File, error) {
		return []code.File{{ID: "2", Name: "b", Text: "flow"}}, nil
	}}
	if result, _, err := code.New(command("run")...).Run(t.Context(), protocol.NewAccountID(), task, silent); err != nil || result.Output != "Value: ebbflow\n" {
		t.Errorf("%+v, %v", result, err)
	}
}
