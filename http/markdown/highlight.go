package markdown

import (
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxHighlighted is the longest code that is highlighted, in bytes: the HTML of highlighted code is several times longer.
const maxHighlighted = 32 << 10

// grammar is what a language writes as comments, texts and keywords.
type grammar struct {
	line     []string // starts of comments that end with the line
	block    [2]string
	quotes   string
	keywords map[string]bool
	fold     bool // keywords in any letter case
}

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

var (
	slashes  = []string{"//"}
	hashes   = []string{"#"}
	starred  = [2]string{"/*", "*/"}
	keywords = "break case continue default do else false for if null return switch true while "
	typed    = keywords + "abstract catch class const enum extends final finally implements import interface new package private protected public static super this throw throws try void volatile "
	script   = typed + "any as async await constructor declare delete export from function get in instanceof keyof let namespace never of readonly set " +
		"string symbol type typeof undefined unknown var with yield number boolean object "
	clike = keywords + "auto bool char const double enum extern float goto inline int long register short signed sizeof static struct typedef union unsigned void volatile "

	grammars = map[string]grammar{
		"go":         {slashes, starred, "\"'`", words(keywords + "chan const defer fallthrough func go goto import interface map nil package range select struct type var any string int int64 error bool byte rune"), false},
		"python":     {hashes, [2]string{`"""`, `"""`}, `"'`, words("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield self"), false},
		"javascript": {slashes, starred, "\"'`", words(script), false},
		"java":       {slashes, starred, `"'`, words(typed + "boolean byte char double float instanceof int long native short synchronized transient var record sealed"), false},
		"csharp":     {slashes, starred, `"'`, words(typed + "async await base bool byte decimal double float foreach in int internal is lock long namespace object out override partial readonly ref sealed string struct using var virtual get set"), false},
		"kotlin":     {slashes, starred, `"'`, words(typed + "as by companion data fun in init internal is object open override sealed suspend val var when"), false},
		"swift":      {slashes, starred, `"`, words(typed + "as associatedtype defer deinit extension fileprivate func guard in init inout internal is let nil open operator protocol repeat self some struct subscript typealias var where"), false},
		"scala":      {slashes, starred, `"`, words(typed + "def given implicit lazy match object override sealed trait type using val var with yield"), false},
		"dart":       {slashes, starred, `"'`, words(typed + "async await bool covariant double dynamic factory int late mixin num required String var with yield"), false},
		"php":        {[]string{"//", "#"}, starred, `"'`, words(typed + "array as echo elseif endif foreach fn function global isset match namespace use var"), false},
		"c":          {slashes, starred, `"'`, words(clike), false},
		"cpp":        {slashes, starred, `"'`, words(clike + "auto bool catch class constexpr delete explicit friend namespace new noexcept nullptr operator override private protected public template this throw try typename using virtual concept requires"), false},
		"rust":       {slashes, starred, `"`, words(keywords + "as async await const crate dyn enum extern fn impl in let loop match mod move mut pub ref self Self static struct super trait type unsafe use where bool char f32 f64 i32 i64 str u8 u32 u64 usize"), false},
		"zig":        {slashes, [2]string{}, `"'`, words(keywords + "and catch comptime const defer enum errdefer error fn inline or orelse pub struct try undefined union unreachable usingnamespace var void"), false},
		"ruby":       {hashes, [2]string{}, `"'`, words("alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield"), false},
		"bash":       {hashes, [2]string{}, `"'`, words("case do done elif else esac export fi for function if in local return set then until while echo cd exit source"), false},
		"perl":       {hashes, [2]string{}, `"'`, words("else elsif for foreach if last local my next our package return sub unless until use while"), false},
		"r":          {hashes, [2]string{}, `"'`, words("FALSE NA NULL TRUE break else for function if in library next repeat return while"), false},
		"elixir":     {hashes, [2]string{}, `"'`, words("after and case cond def defmodule defp do else end false fn for if import in nil not or raise receive rescue true try use when with"), false},
		"lua":        {[]string{"--"}, [2]string{}, `"'`, words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while"), false},
		"haskell":    {[]string{"--"}, [2]string{"{-", "-}"}, `"`, words("case class data deriving do else if import in infix instance let module newtype of then type where"), false},
		"sql":        {[]string{"--"}, starred, `'"`, words("add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then true union unique update using values view when where with"), true},
		"json":       {nil, [2]string{}, `"`, words("true false null"), false},
		"yaml":       {hashes, [2]string{}, `"'`, words("true false null"), false},
		"toml":       {hashes, [2]string{}, `"'`, words("true false"), false},
		"ini":        {[]string{"#", ";"}, [2]string{}, `"`, nil, false},
		"make":       {hashes, [2]string{}, `"'`, words("else endif export ifdef ifeq ifndef ifneq include"), false},
		"docker":     {hashes, [2]string{}, `"'`, words("add arg as cmd copy entrypoint env expose from healthcheck label run shell user volume workdir"), true},
		"hcl":        {[]string{"#", "//"}, starred, `"`, words("data false for if in locals module null output provider resource terraform true variable"), false},
		"graphql":    {hashes, [2]string{}, `"`, words("enum extend fragment implements input interface mutation on query scalar schema subscription type union"), false},
		"proto":      {slashes, starred, `"'`, words("bool bytes double enum float import int32 int64 map message oneof option optional package repeated reserved returns rpc service string syntax uint32 uint64"), false},
		"css":        {nil, starred, `"'`, nil, false},
		"xml":        {nil, [2]string{"<!--", "-->"}, `"`, nil, false},
	}

	// sameGrammar are the other names of grammars. The names of the app are in web/src/parts/languages.ts.
	sameGrammar = map[string]string{
		"golang": "go", "py": "python", "python3": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript", "node": "javascript", "jsx": "javascript",
		"typescript": "javascript", "ts": "javascript", "tsx": "javascript", "mts": "javascript", "cts": "javascript", "vue": "xml", "svelte": "xml", "html": "xml", "htm": "xml", "svg": "xml",
		"cs": "csharp", "c#": "csharp", "kt": "kotlin", "kts": "kotlin", "h": "c", "objc": "c", "objective-c": "c", "c++": "cpp", "cc": "cpp", "hpp": "cpp", "cxx": "cpp", "rs": "rust",
		"rb": "ruby", "sh": "bash", "shell": "bash", "zsh": "bash", "console": "bash", "shellscript": "bash", "powershell": "bash", "ps1": "bash", "pwsh": "bash", "pl": "perl",
		"ex": "elixir", "exs": "elixir", "hs": "haskell", "postgres": "sql", "postgresql": "sql", "mysql": "sql", "plsql": "sql", "sqlite": "sql", "jsonc": "json", "json5": "json", "jsonl": "json",
		"yml": "yaml", "conf": "ini", "properties": "ini", "nginx": "ini", "makefile": "make", "mk": "make", "dockerfile": "docker", "terraform": "hcl", "tf": "hcl", "gql": "graphql",
		"protobuf": "proto", "scss": "css", "sass": "css", "xhtml": "xml",
	}
)

// highlight returns the HTML of code, in which the classes of the elements span are the kinds of its words.
func highlight(code, language string) template.HTML {
	language = strings.ToLower(language)
	if language == "diff" || language == "patch" {
		return template.HTML(highlightDiff(code)) // it is escaped
	}
	if name := sameGrammar[language]; name != "" {
		language = name
	}
	g, known := grammars[language]
	if !known || len(code) > maxHighlighted {
		return template.HTML(template.HTMLEscapeString(code)) // it is escaped
	}
	var out strings.Builder
	for len(code) > 0 {
		kind, length := g.next(code)
		writeSpan(&out, kind, code[:length])
		code = code[length:]
	}
	return template.HTML(out.String()) // it is escaped
}

func writeSpan(out *strings.Builder, kind, text string) {
	if kind == "" {
		out.WriteString(template.HTMLEscapeString(text))
		return
	}
	out.WriteString(`<span class="` + kind + `">` + template.HTMLEscapeString(text) + `</span>`)
}

// highlightDiff colours the lines that a diff adds and removes.
func highlightDiff(code string) string {
	var out strings.Builder
	for line := range strings.Lines(code) {
		kind := ""
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
			kind = "comment"
		case strings.HasPrefix(line, "+"):
			kind = "added"
		case strings.HasPrefix(line, "-"):
			kind = "removed"
		case strings.HasPrefix(line, "@@"):
			kind = "keyword"
		}
		text := strings.TrimSuffix(line, "\n")
		writeSpan(&out, kind, text)
		out.WriteString(line[len(text):])
	}
	return out.String()
}

// next returns the kind and the length of what code starts with. It looks at each byte a bounded number of times.
func (g *grammar) next(code string) (kind string, length int) {
	for _, start := range g.line {
		if strings.HasPrefix(code, start) {
			line, _, _ := strings.Cut(code, "\n")
			return "comment", len(line)
		}
	}
	if g.block[0] != "" && strings.HasPrefix(code, g.block[0]) {
		inside, _, closed := strings.Cut(code[len(g.block[0]):], g.block[1])
		length = len(g.block[0]) + len(inside)
		if closed {
			length += len(g.block[1])
		}
		return "comment", length
	}
	if strings.IndexByte(g.quotes, code[0]) >= 0 {
		return "string", quoted(code)
	}
	first, size := utf8.DecodeRuneInString(code)
	switch {
	case first >= '0' && first <= '9':
		return "constant", span(code, func(r rune) bool { return r == '.' || r == '_' || unicode.IsDigit(r) || isLetter(r) })
	case first == '_' || unicode.IsLetter(first):
		length = span(code, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) })
		word := code[:length]
		if g.fold {
			word = strings.ToLower(word)
		}
		switch {
		case g.keywords[word]:
			kind = "keyword"
		case strings.HasPrefix(code[length:], "("):
			kind = "function"
		}
		return kind, length
	}
	return "", size
}

// span returns how many bytes at the start of a text have runes of this kind.
func span(text string, of func(rune) bool) int {
	if end := strings.IndexFunc(text, func(r rune) bool { return !of(r) }); end >= 0 {
		return end
	}
	return len(text)
}

// quoted returns the length of a text in quotes. It ends with its line, unless the quote is a backtick.
func quoted(code string) int {
	for at := 1; at < len(code); at++ {
		switch {
		case code[at] == code[0]:
			return at + 1
		case code[at] == '\\':
			at++
		case code[at] == '\n' && code[0] != '`':
			return at
		}
	}
	return len(code)
}
