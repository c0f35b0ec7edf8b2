package scripted

// toolWrite is the tool that writes artifacts.
const toolWrite = "write_artifact"

// artifacts are the contents that the directive artifact=KIND writes, by kind.
var artifacts = map[string]string{
	"document": "# Tides\n\nThe **ruddy turnstone** feeds at low tide.\n\n1. Look up the tide.\n2. Walk to the shore.\n",
	"code":     "package main\n\nfunc main() {\n\tprintln(\"low tide\")\n}\n",
	"html":     "<!doctype html>\n<title>Tides</title>\n<h1>Tides</h1>\n<p id=\"tide\">Low tide at six.</p>\n",
	"svg":      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 120 40\">\n  <title>Tides</title>\n  <path d=\"M0 20q15-20 30 0t30 0 30 0 30 0\" fill=\"none\" stroke=\"teal\" stroke-width=\"3\"/>\n</svg>\n",
	"table":    "Shore,Low tide\nNorth,06:10\nSouth,06:40\n",
	"diagram":  "flowchart LR\n  low[Low tide] --> high[High tide]\n  high --> low\n",
}

// kindsOfArtifacts are the kinds of artifacts by the words that people use for them.
var kindsOfArtifacts = map[string]string{"document": "document", "page": "html", "table": "table", "diagram": "diagram", "picture": "svg"}

// artifactInput returns the input of a call that writes an artifact of a kind.
func artifactInput(kind string) map[string]any {
	content, known := artifacts[kind]
	if !known {
		kind, content = "document", artifacts["document"]
	}
	input := map[string]any{"kind": kind, "title": "Tides", "content": content}
	if kind == "code" {
		input["language"] = "go"
	}
	return input
}
