package markdown

import (
	"context"
	_ "embed" // the style of the file
	"fmt"
	"html/template"
	"strings"
)

//go:embed file.css
var fileStyle string

var fileTemplate = template.Must(template.New("file").Parse(`<!doctype html>
<html dir="auto">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{{.Title}}</title>
<style>{{.Style}}</style>
</head>
<body>
<main dir="auto">
{{.Body}}
</main>
</body>
</html>
`))

// raised makes the headings of a file those of its own, and not below those of a page.
var raised = strings.NewReplacer("<h3>", "<h1>", "</h3>", "</h1>", "<h4>", "<h2>", "</h4>", "</h2>", "<h5>", "<h3>", "</h5>", "</h3>", "<h6>", "<h4>", "</h6>", "</h4>")

// fileSteps is what a file may cost. It is longer than a page, and one account waits for it.
const fileSteps = 4 * pageSteps

// HTML returns a self-contained page with Markdown of any length. Text that cannot be converted in bounded time is plain.
func HTML(ctx context.Context, title, source string) ([]byte, error) {
	body := plainText(source)
	if flat(source) {
		b := NewBudget(ctx)
		b.left = fileSteps
		if out, ok := b.convert(source); ok {
			body = template.HTML(raised.Replace(string(out))) // it is sanitized
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var page strings.Builder
	err := fileTemplate.Execute(&page, map[string]any{"Title": title, "Style": template.CSS(fileStyle), "Body": body}) // the style is ours
	if err != nil {
		return nil, fmt.Errorf("writing a page: %w", err)
	}
	return []byte(page.String()), nil
}
